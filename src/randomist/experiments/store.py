"""Results on disk: one Parquet file per finished run, written whole or not at all, with a manifest beside it.

DIR/NAME-DIGEST/spec.toml            the experiment; a changed one has another digest, hence another folder
DIR/NAME-DIGEST/runs/KEY.parquet     one row per round: what the seed decides, and nothing else
DIR/NAME-DIGEST/runs/KEY.json        manifest: spec digest, seed, seconds, versions, commit
DIR/NAME-DIGEST/runs/KEY.failed      why a run failed, until it is retried
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import platform
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from randomist.experiments.contenders import Contender
from randomist.experiments.specs import Cell, Experiment, TaskSpec, to_toml
from randomist.simulation import Run

PACKAGES = ("randomist", "numpy", "scipy", "numba", "gymnasium", "polars", "joblib")


class Store:
    """The results of one experiment under a folder."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        self.experiment = experiment
        self.folder = folder / f"{experiment.name}-{experiment.digest}"
        self.runs = self.folder / "runs"

    def create(self) -> None:
        """Make the folder and write the spec; raises OSError where that is not possible."""
        self.runs.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / "spec.toml", to_toml(self.experiment).encode())

    def missing(self, retry: bool = True) -> list[Cell]:
        """Runs that are not there yet; failed ones only on `retry`."""
        cells = [cell for cell in self.experiment.cells() if not self._path(cell).exists()]
        return cells if retry else [cell for cell in cells if not self._failed(cell).exists()]

    def failures(self) -> dict[Cell, str]:
        """Failed runs, and why."""
        return {
            cell: self._failed(cell).read_text()
            for cell in self.experiment.cells()
            if self._failed(cell).exists() and not self._path(cell).exists()
        }

    def save(self, cell: Cell, run: Run, seconds: float) -> None:
        """One finished run: the manifest first, then the rows, whose presence says that the run is finished."""
        manifest = {
            "experiment": self.experiment.name,
            "digest": self.experiment.digest,
            "task": cell.task.id,
            "learner": cell.learner.name,
            "seed": cell.seed,
            "seconds": seconds,
            "clipped": run.clipped,
            "failed_trials": len(run.failures),
            "recommendation": np.asarray(run.recommendation).tolist(),
            **environment(),
        }
        write_whole(self._path(cell).with_suffix(".json"), json.dumps(manifest, indent=1).encode())
        rows = io.BytesIO()
        frame(run).write_parquet(rows, compression="zstd")
        write_whole(self._path(cell), rows.getvalue())
        self._failed(cell).unlink(missing_ok=True)

    def save_failure(self, cell: Cell, reason: str) -> None:
        write_whole(self._failed(cell), reason.encode())

    def load(self, cell: Cell) -> pl.DataFrame:
        """The rows of a finished run."""
        return pl.read_parquet(self._path(cell))

    def manifest(self, cell: Cell) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads(self._path(cell).with_suffix(".json").read_text())
        return manifest

    def curves(self, task: TaskSpec, learner: Contender, column: str) -> np.typing.NDArray[np.float64]:
        """A column of every run, one row per seed.  (seeds, rounds)"""
        cells = [Cell(task, learner, self.experiment.rounds, seed) for seed in range(self.experiment.seeds)]
        return np.stack([self.load(cell)[column].to_numpy() for cell in cells])

    def _path(self, cell: Cell) -> Path:
        return self.runs / f"{cell.key}.parquet"

    def _failed(self, cell: Cell) -> Path:
        return self.runs / f"{cell.key}.failed"


def frame(run: Run) -> pl.DataFrame:
    """A run as rows: round, payoff, average payoff, regret where it is known, and the decision."""
    columns: dict[str, Any] = {
        "round": np.arange(1, len(run.payoffs) + 1),
        "payoff": run.payoffs,
        "average_payoff": run.average_payoff,
    }
    if run.regret is not None:
        columns["regret"] = run.regret
    decisions = run.decisions.reshape(len(run.payoffs), -1)
    columns |= {f"decision_{d}": decisions[:, d] for d in range(decisions.shape[1])}
    return pl.DataFrame(columns)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is either there as a whole or not at all, also after a crash."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())  # as any other file, not as a secret
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@cache
def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@cache
def environment() -> dict[str, Any]:
    """Versions and commit, for manifests."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    try:
        here = Path(__file__).parent
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=5, check=False
        )
        commit = done.stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        commit = None
    return {"python": platform.python_version(), "versions": versions, "commit": commit}
