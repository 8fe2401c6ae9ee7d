"""What is imported, and when: heavy packages come with the first use of what needs them."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import randomist as rd
import randomist.learners
import randomist.tasks

COMMAND = Path(sys.executable).with_name("randomist")
HEAVY = ("gymnasium", "joblib", "matplotlib", "numba", "plotly", "polars", "scipy", "sqlalchemy")
SHOW = "import sys, json; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"


def loaded_after(program: str) -> set[str]:
    """The packages that a program has imported at its end."""
    done = subprocess.run([sys.executable, "-c", f"{program}\n{SHOW}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def loaded_by(*arguments: object, cwd: Path | None = None) -> set[str]:
    """The packages that a command of the console script has imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert done.returncode == 0, done.stderr[-2000:]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def test_importing_the_package_imports_numpy_at_most():
    assert not loaded_after("import randomist").intersection(HEAVY)


@pytest.mark.parametrize(
    ("use", "allowed"),
    [
        ("rd.errors, rd.LEARNERS, list(rd.LEARNERS), rd.task_ids(), dir(rd)", set()),
        ("rd.simulation, rd.optimize, rd.make, rd.Task", set()),
        ("rd.Finite(rd.Gaussian([0, 1], 1.0))", {"numba", "scipy"}),
        ("rd.make('ucb1', rd.Finite(rd.Gaussian([0, 1], 1.0))).ask()", {"numba", "scipy"}),
        ("rd.make('randomist', rd.task('illustrative')).ask()", {"numba", "scipy"}),
    ],
)
def test_a_use_imports_what_it_needs(use, allowed):
    assert loaded_after(f"import randomist as rd; {use}").intersection(HEAVY) <= allowed


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["run", "--help"], ["study", "ask", "--help"], ["evaluate", "--help"]]
)
def test_help_needs_nothing_heavy(arguments):
    assert not loaded_by(*arguments).intersection(HEAVY)


def test_a_shell_worker_loads_what_a_study_needs(tmp_path):
    space = '{"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1, 3], "std": 2}}'
    subprocess.run([COMMAND, "study", "create", "a", "--space", space], cwd=tmp_path, check=True, capture_output=True)
    loaded = loaded_by("study", "ask", "a", cwd=tmp_path)
    assert not loaded.intersection({"gymnasium", "joblib", "matplotlib", "plotly", "polars", "fastapi", "alembic"})


def names_for_type_checkers(module: object) -> set[str]:
    """The names that a package imports `if TYPE_CHECKING`."""
    tree = ast.parse(inspect.getsource(module))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    return {str(alias.asname) for node in block.body for alias in node.names}


@pytest.mark.parametrize("package", [rd, randomist.learners, randomist.tasks])
def test_editors_see_the_names_that_there_are(package):
    eager = {name for node in ast.parse(inspect.getsource(package)).body if isinstance(node, ast.ImportFrom)
             for name in (alias.name for alias in node.names)}  # fmt: skip
    assert names_for_type_checkers(package) == set(package.__all__) - eager
    assert len(package.__all__) == len(set(package.__all__))


@pytest.mark.parametrize("package", [rd, randomist.learners, randomist.tasks])
def test_every_name_is_there(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nobody'"):
        package.nobody  # noqa: B018


def test_star_import_gives_every_name():
    program = "from randomist import *; import randomist; assert set(randomist.__all__) <= set(globals())"
    loaded_after(program)


def test_a_task_named_like_its_library_is_still_a_task():
    program = "import randomist as rd; rd.task('gym:Pendulum-v1'); assert rd.tasks.gymnasium is rd.tasks.GymnasiumTask"
    loaded_after(program)


def test_our_environments_are_found_by_gymnasium_and_by_tasks():
    place = "randomist.tasks.environments:"
    loaded_after(f"import gymnasium; assert gymnasium.make('{place}randomist/LQG-v0').spec.max_episode_steps == 20")
    loaded_after("import randomist as rd; rd.task('gym:randomist/ContinuousCartPole-v0')")
    loaded_after("import randomist as rd; rd.task('cartpole').make_env(); rd.task('lqg').make_env()")


@pytest.mark.parametrize(
    ("use", "missing", "extra"),
    [
        ("rd.Log", "polars", "run"),
        ("rd.load_study('a', storage='sqlite:///a.db')", "sqlalchemy", "study"),
    ],
)
def test_what_is_not_installed_is_named(use, missing, extra):
    program = f"import sys; sys.modules[{missing!r}] = None; import randomist as rd; {use}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"needs the `{extra}` extra" in done.stderr
    assert f"pip install 'randomist[{extra}]'" in done.stderr


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_line_without_its_extra_says_what_to_install(missing):
    program = f"import sys; sys.modules[{missing!r}] = None; from randomist.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'randomist[run]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
