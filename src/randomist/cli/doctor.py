"""What is installed, what is missing, and whether what is there works."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import NamedTuple

import typer

from randomist.cli.app import app, out
from randomist.cli.options import AsJson

FOR = {
    "run": "the command line, tables and figures",
    "study": "studies, their service and dashboard",
    "models": "reward and propensity models",
    "ray": "experiments on a Ray cluster",
    "dask": "experiments on a Dask cluster",
    "render": "films of Gymnasium's classic tasks",
    "mujoco": "tasks of MuJoCo",
    "optuna": "a sampler for Optuna's studies",
    "mlflow": "runs in MLflow",
    "tensorboard": "runs in TensorBoard",
}


class Part(NamedTuple):
    """The core or an extra, and what it needs."""

    name: str
    use: str
    there: dict[str, str]  # versions, by package
    missing: list[str]


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what is installed, which extras are missing, and what works.

    It tries each thing that it can: a search, a compiled loop, a study in memory, a figure. Exits with 1 if one that
    should work does not.
    """
    parts, checks = list(_parts()), [(name, *_tried(check)) for name, check in CHECKS.items()]
    broken = [name for name, problem, _ in checks if problem is not None and not problem.startswith("needs ")]
    if as_json:
        shown = {name: {"works": problem is None, "problem": problem, "seconds": s} for name, problem, s in checks}
        print(json.dumps({"parts": [part._asdict() for part in parts], "checks": shown}))
        raise typer.Exit(bool(broken))
    out.print(f"randomist {metadata.version('randomist')}, Python {platform.python_version()}, {platform.system()}")
    for part in parts:
        versions = ", ".join(f"{name} {version}" for name, version in part.there.items())
        if not part.missing:
            out.print(f"  [green]✓[/] [bold]{part.name}[/] ({part.use}): {versions}", soft_wrap=True)
        else:
            remedy = f"pip install 'randomist\\[{part.name}]'"
            missing = ", ".join(part.missing)
            out.print(f"  [yellow]–[/] [bold]{part.name}[/] ({part.use}): without {missing}; {remedy}", soft_wrap=True)
    for name, problem, seconds in checks:
        mark = "[green]✓[/]" if problem is None else "[yellow]–[/]" if problem.startswith("needs ") else "[red]✗[/]"
        out.print(f"  {mark} {name}: {f'works, {seconds:.1f} s' if problem is None else problem}", soft_wrap=True)
    raise typer.Exit(bool(broken))


def _parts() -> Iterator[Part]:
    """The core and the extras, as the package says of itself."""
    needs: dict[str, list[str]] = {"core": []}
    for requirement in metadata.requires("randomist") or ():
        needs.setdefault(_extra(requirement) or "core", []).extend(_packages(requirement))
    for name, packages in needs.items():
        versions = {package: _version(package) for package in packages}
        there = {package: version for package, version in versions.items() if version is not None}
        missing = [package for package, version in versions.items() if version is None]
        yield Part(name, "learners, tasks, logs" if name == "core" else FOR.get(name, name), there, missing)


def _extra(requirement: str) -> str | None:
    found = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", requirement)
    return None if found is None else found.group(1)


def _packages(requirement: str) -> list[str]:
    """The package that a requirement names, and those of its extra, as in gymnasium[mujoco]."""
    found = re.match(r"([\w.-]+)(?:\[([\w-]+)\])?", requirement)
    assert found is not None
    package, extra = found.groups()
    if extra is None or _version(package) is None:
        return [package]
    return [package, *(p for r in metadata.requires(package) or () if _extra(r) == extra for p in _packages(r))]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _tried(check: Callable[[], None]) -> tuple[str | None, float]:
    """What is wrong, and how long it took to find out."""
    began = time.perf_counter()
    try:
        check()
    except ImportError as error:
        return f"needs {error.name or error}", time.perf_counter() - began
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", time.perf_counter() - began
    return None, time.perf_counter() - began


def _search() -> None:
    import randomist as rd

    run = rd.optimize(lambda x: -((x - 0.3) ** 2), low=0, high=1, rounds=20)
    assert abs(run.best - 0.3) < 0.2, f"the best of a parabola was {run.best}"


def _choice() -> None:
    import randomist as rd

    run = rd.optimize("illustrative", rounds=50)
    assert len(run.payoffs) == 50


def _study() -> None:
    import randomist as rd

    study = rd.create_study("doctor", rd.Auto(low=0, high=1), storage=f"memory://doctor-{time.time_ns()}")
    assert study.optimize(lambda x: x, 3).payoffs.size == study.told == 3


def _figure() -> None:
    import io

    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot([0, 1], [0, 1])
    figure.savefig(io.BytesIO(), format="png")


def _workers() -> None:
    import randomist as rd

    run = rd.optimize(_square, low=0, high=1, rounds=2, jobs=2, timeout=60)
    assert len(run.payoffs) == 2, next(iter(run.failures.values()))


def _square(x: float) -> float:
    return x * x


CHECKS: dict[str, Callable[[], None]] = {
    "a search in a box": _search,
    "a choice among policies": _choice,
    "workers in processes of their own": _workers,
    "a study in memory": _study,
    "a figure": _figure,
}
