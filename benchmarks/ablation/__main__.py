"""`python -m benchmarks.ablation`: every row of the TOML files beside this one, a table and a figure of each.

Each row is an experiment of its own, kept run by run under `--out`: a killed ablation goes on where it stopped, and a
row that is added later costs no more than itself. `python -m benchmarks.ablation finite` takes one file only, and
`--only log-smoothing` the rows of one learner or setting.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path

from benchmarks.ablation.figure import draw
from benchmarks.ablation.table import Row, markdown
from randomist.experiments.runner import run_experiment
from randomist.experiments.specs import Experiment, read_experiment
from randomist.experiments.store import Store

FILES = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}


def chosen(experiment: Experiment, word: str | None) -> Experiment:
    """The rows of the learner of this name, or with this word among their settings; all of them for None."""
    rows = [row for row in experiment.learners if word in (None, row.name, *map(str, row.settings.values()))]
    if not rows:
        raise SystemExit(f"{experiment.name} has no row with {word!r}; see {FILES[experiment.name]}")
    return dataclasses.replace(experiment, learners=tuple(rows))


def rows_of(experiment: Experiment, out: Path, jobs: int) -> list[Row]:
    """Run what is missing and read every row back."""
    rows = []
    for learner in experiment.learners:
        start = time.perf_counter()
        row = Experiment(experiment.name, experiment.tasks, (learner,), experiment.rounds, experiment.seeds)
        store = Store(out, row)
        for cell, reason in run_experiment(store, jobs=jobs).items():
            raise SystemExit(f"{cell.key} failed: {reason}")
        rows.append(Row.read(store))
        print(f"{learner.title}: {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="*", help=f"which of {', '.join(FILES)}; all by default")
    parser.add_argument("--out", type=Path, default=Path("out/ablation"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="a learner, or the value of a setting: rows that have it")
    arguments = parser.parse_args(given)
    if unknown := set(arguments.files) - set(FILES):
        parser.error(f"unknown {', '.join(sorted(unknown))}; there are {', '.join(FILES)}")
    for name in arguments.files or FILES:
        experiment = chosen(read_experiment(FILES[name]), arguments.only)
        rows = rows_of(experiment, arguments.out, arguments.jobs)
        measure = "regret" if rows[0].regret else "average payoff"
        print(f"\n{name}: {measure} after {experiment.rounds} rounds, {experiment.seeds} runs, 95% intervals\n")
        print(markdown(experiment, rows))
        path = arguments.out / f"ablation-{name}.png"
        draw(experiment, rows, path)
        print(f"\nfigure: {path}\n", flush=True)


if __name__ == "__main__":
    main()
