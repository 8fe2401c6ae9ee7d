"""The whole paper with one call: every experiment, every figure, a verdict on every claim, one report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from randomist.errors import ParameterError
from randomist.experiments import paper
from randomist.experiments.chains import Chains, record_chains
from randomist.experiments.claims import CLAIMS, Claim, chain_claims
from randomist.experiments.figures import Panel, chains_figure, curves_figure, grid_figure
from randomist.experiments.report import write_report
from randomist.experiments.runner import Engine, run_experiment
from randomist.experiments.specs import Cell, read_experiment
from randomist.experiments.store import Store, write_whole

CHAIN_SEEDS = 20


@dataclass(frozen=True)
class Reproduction:
    """What came out, and where it lies."""

    claims: list[Claim]
    failures: dict[Cell, str]
    figures: list[Path]
    report: Path


def stores_for(parts: Sequence[str], out: Path, quick: bool) -> list[Store]:
    """The experiments among the parts, with their place on disk."""
    if unknown := set(parts) - set(paper.PARTS):
        raise ParameterError(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join(paper.PARTS)} and all")
    return [Store(out, paper.EXPERIMENTS[part](quick)) for part in parts if part in paper.EXPERIMENTS]


def reproduce(
    parts: Sequence[str],
    out: Path,
    *,
    quick: bool = False,
    jobs: int = 1,
    engine: Engine = "loky",
    retry: bool = True,
    progress: Callable[[Cell], None] | None = None,
) -> Reproduction:
    """Make what is missing of these parts of the paper, then figures, claims and the report from what is there."""
    stores = stores_for(parts, out, quick)
    failures: dict[Cell, str] = {}
    for store in stores:
        failures |= run_experiment(store, jobs=jobs, engine=engine, retry=retry, progress=progress)
    if "chains" in parts and not (out / "chains.json").exists():
        recorded = [record_chains(seed).state() for seed in range(CHAIN_SEEDS)]
        write_whole(out / "chains.json", json.dumps(recorded).encode())
    figures = draw(stores, out / "figures") + draw_extra(out, parts)
    there = [store for store in stores_for(paper.PARTS, out, quick) if store.folder.exists()]
    claims, report = conclude(there, out)
    return Reproduction(claims, failures, figures, report)


def conclude(stores: Sequence[Store], out: Path) -> tuple[list[Claim], Path]:
    """Claims and report from what lies in a folder."""
    finished = [store for store in stores if not store.missing()]
    claims = [claim for store in finished if _is_papers(store) for claim in CLAIMS[store.experiment.name](store)]
    recorded = read_chains(out)
    if recorded:
        claims += chain_claims(recorded)
    claims.sort(key=lambda claim: claim.number)
    report, _ = write_report(out, stores, claims, chains=recorded[0] if recorded else None)
    return claims, report


def _is_papers(store: Store) -> bool:
    """Whether this is an experiment of the paper, not one of the same name."""
    make = paper.EXPERIMENTS.get(store.experiment.name)
    return make is not None and store.experiment.digest in {make(quick).digest for quick in (True, False)}


def read_chains(out: Path) -> list[Chains]:
    """The chains that were recorded into a folder, one per seed; none if they were not."""
    path = out / "chains.json"
    return [Chains.from_state(state) for state in json.loads(path.read_text())] if path.exists() else []


FIGURES = {
    "illustrative": "figure-2-illustrative",
    "lqg": "figure-3-lqg",
    "mountain-car": "figure-3-mountain-car",
    "cartpole": "figure-5-cartpole",
}


def draw(stores: Sequence[Store], folder: Path) -> list[Path]:
    """One figure per finished experiment, as PNG and PDF."""
    paths: list[Path] = []
    for store in stores:
        if store.missing():
            continue
        spec = store.experiment
        name = FIGURES.get(spec.name, spec.name)
        repeated = sum(other.experiment.name == spec.name for other in stores) > 1
        paths += _both(folder / (f"{name}-{spec.digest}" if repeated else name))
        caption = f"{spec.seeds} runs, mean and 95% t-interval; {store.folder.name}/spec.toml"
        curves_figure([panel_of(store, i) for i in range(len(spec.tasks))], paths[-2:], caption)
    return paths


def draw_extra(out: Path, parts: Sequence[str] = paper.PARTS) -> list[Path]:
    """Figure 4, where chains were recorded, and the right half of Figure 5."""
    paths: list[Path] = []
    if "chains" in parts and (recorded := read_chains(out)):
        paths += _both(out / "figures" / "figure-4-chains")
        chains_figure(recorded[0], paths[-2:])
    if "grid" in parts:
        paths += _both(out / "figures" / "figure-5-grid")
        grid_figure(paths[-2:])
    return paths


def panel_of(store: Store, number: int) -> Panel:
    """The curves of one task of a finished experiment."""
    spec, task = store.experiment, store.experiment.tasks[number]
    columns = store.load(Cell(task, spec.learners[0], spec.rounds, 0)).columns
    column = "regret" if "regret" in columns else "average_payoff"
    curves = {learner: store.curves(task, learner, column) for learner in spec.learners}
    return Panel(task.name, curves, column.replace("_", " "), task.make() if column == "regret" else None)


def find_stores(folder: Path) -> list[Store]:
    """The experiments that lie in a folder, by their specs."""
    folder = folder.resolve()
    specs = sorted(folder.glob("*/spec.toml")) or sorted(folder.glob("spec.toml"))
    if not specs:
        raise ParameterError(f"no experiment lies in {folder}: it has no */spec.toml; give the folder of --out")
    stores = [Store(path.parent.parent, read_experiment(path)) for path in specs]
    for store, path in zip(stores, specs, strict=True):
        if store.folder != path.parent:
            raise ParameterError(f"{path} was changed: its runs belong to another experiment; run it as one of its own")
    return stores


def _both(stem: Path) -> list[Path]:
    return [stem.with_suffix(".png"), stem.with_suffix(".pdf")]
