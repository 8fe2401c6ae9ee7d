"""A run of `rd.optimize` in TensorBoard: `rd.optimize(..., callbacks=[TensorBoardCallback("runs")])`."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any

try:
    from tensorboardX import SummaryWriter
except ImportError as missing:
    raise ImportError(
        f"randomist.integrations.tensorboard needs the `tensorboard` extra ({missing}); "
        "pip install 'randomist[tensorboard]'"
    ) from missing

from randomist.errors import ParameterError
from randomist.integrations.tracking import Round, Tracker, described, recommended
from randomist.learners.base import Learner
from randomist.simulation import Run

FLUSH = 10  # seconds until what was written is on disk


class TensorBoardCallback(Tracker):
    """Write a run for TensorBoard as it goes; each run of `rd.optimize` is a folder.

    Scalars are `payoff`, `average_payoff`, `best_so_far` and `failures` at every round, in the single precision that
    TensorBoard has. The texts `run`, `best` and `summary` say what the run is, what it recommends, and what there is to
    say of it at the end, after Ctrl-C and after an error too.

    Parameters
    ----------
    folder
        Where the folders of runs are: `tensorboard --logdir folder` shows them.
    name
        The name of the run's folder; by default that of the task, the learner and the seed. A folder that exists is
        left as it is: the next one is called name-2.
    """

    def __init__(self, folder: str | PathLike[str], *, name: str | None = None) -> None:
        try:
            self.folder = Path(folder)
        except TypeError:
            raise ParameterError(f"folder must be the path of a folder, got {folder!r:.80}") from None
        self.name = name
        self.path: Path | None = None  # of the last run
        self._writer: Any = None

    def _open(self, learner: Learner, run: Run) -> None:
        name = re.sub(r"[^\w\-.]", "_", self.name or f"{run.task}-{run.learner}-{run.seed}")
        self.path, copies = self.folder / name, 1
        while self.path.exists():
            copies += 1
            self.path = self.folder / f"{name}-{copies}"
        self._writer = SummaryWriter(str(self.path), flush_secs=FLUSH)
        self._writer.add_text("run", _table(described(learner, run)), 0)

    def _write(self, rounds: list[Round]) -> None:
        for one in rounds:
            for name, value in one._asdict().items():
                if name != "number" and value is not None:
                    self._writer.add_scalar(name, value, one.number)

    def _close(self, run: Run, error: BaseException | None) -> None:
        writer, self._writer = self._writer, None
        try:
            last = len(run.payoffs) + len(run.failures)
            best: dict[str, Any] = recommended(run)
            if run.best_payoff is not None:
                best["its mean payoff"] = str(run.best_payoff)
            writer.add_text("best", _table(best), last)
            ended = "" if error is None else f"\n  error  {error!r}"
            writer.add_text("summary", f"```\n{run.summary()}{ended}\n```", last)
        finally:
            writer.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_writer": None, "_learner": None}  # a copy follows runs of its own


def _table(values: dict[str, Any]) -> str:
    """Names and values as Markdown."""
    rows = (f"| {name} | {str(value).replace('|', '&#124;')} |" for name, value in values.items())
    return "\n".join(["| name | value |", "|---|---|", *rows])
