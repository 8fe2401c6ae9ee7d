"""What happened in a run, to compute with and to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from randomist import _html
from randomist._checks import choice
from randomist._types import Array, Indices
from randomist.errors import ParameterError

if TYPE_CHECKING:
    from randomist.learners.box.auto.interval import Interval
    from randomist.parameters import Meaning

RECENT = 0.1  # of the rounds, for the average at the end


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What happened: one entry per told round, payoffs in the user's units."""

    task: str
    learner: str
    seed: int
    decisions: NDArray[Any]  # (n,) indices or (n, d) points
    mediators: NDArray[Any]  # (n,) or (n, d)
    payoffs: Array  # (n,)
    regret: Array | None  # cumulative, where the expected payoffs are known  (n,)
    recommendation: Any  # the learner's last word
    clipped: int = 0  # payoffs outside the range, clipped for the learner
    failures: dict[int, str] = field(default_factory=dict)  # trials without a payoff, and why
    surviving: tuple[int, ...] | None = None  # decisions that may still be best, of a run `until="sure"`
    direction: Literal["maximize", "minimize"] = "maximize"
    space: Meaning | None = None  # what the mediators stand for, where parameters have names
    ids: Indices | None = None  # the trial of each round; trials count the asks  (n,)
    failed: dict[int, Any] = field(default_factory=dict)  # the mediators of the trials without a payoff
    notes: tuple[str, ...] = ()  # why it ended early, and what else should be known of it
    interrupted: bool = False  # by Ctrl-C
    best_payoff: Interval | None = None  # of the mean payoff at `best`, of Auto: `basis` says on what it stands

    @property
    def average_payoff(self) -> Array:
        """The mean payoff of rounds 1..t for every t: exploration counts.  (n,)"""
        return np.cumsum(self.payoffs) / np.arange(1, len(self.payoffs) + 1)

    @property
    def best(self) -> Any:
        """What the learner recommends: parameters by name, or the decision; None where nothing was told."""
        if self.space is None or self.recommendation is None:
            return self.recommendation
        return self.space.named(self.recommendation)

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """The parameters of every round, by name; empty where they have none."""
        return [] if self.space is None else [self.space.named(mediator) for mediator in self.mediators]

    def to_frame(self, library: Literal["polars", "pandas"] | None = None) -> Any:
        """Every trial as a row: its number, its parameters (or decision and mediator), its payoff, or why it failed.

        A frame of polars, or of pandas where polars is not installed; `library` chooses.
        """
        names = ("polars", "pandas")
        for name in names if library is None else (choice(library, names, "library"),):
            try:
                frames = __import__(name)
            except ImportError:
                continue
            return frames.DataFrame(self._columns())
        raise ParameterError(
            f"a frame needs {library or 'polars or pandas'}, which is not installed; pip install polars"
        )

    def summary(self) -> str:
        """What there is to say of the run, in a few lines of text."""
        width = max(len(name) for name, _ in self._lines())
        return "\n".join([self._title(), *(f"  {name:{width}}  {text}" for name, text in self._lines())])

    def __repr__(self) -> str:
        average = f", average payoff {self.average_payoff[-1]:.4g}" if len(self.payoffs) else ""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Run: {self._title()}{average}{failed}, best {_shown(self.best)}>"

    def _repr_html_(self) -> str:
        return _html.table(self._title(), self._lines())

    def _title(self) -> str:
        return f"{self.learner} on {self.task}, {len(self.payoffs)} rounds, seed {self.seed}"

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("best", _shown(self.best))]
        if self.best_payoff is not None and self.best_payoff.supported:
            lines.append(("its mean payoff", str(self.best_payoff)))
        if n := len(self.payoffs):
            recent = self.payoffs[-max(1, round(RECENT * n)) :]
            extreme = np.max if self.direction == "maximize" else np.min
            lines.append(
                ("average payoff", f"{self.average_payoff[-1]:.4g}; of the last {len(recent)}: {recent.mean():.4g}")
            )
            word = "largest" if self.direction == "maximize" else "smallest"
            lines.append((f"{word} payoff", f"{extreme(self.payoffs):.4g}"))
        if self.space is not None and n:
            lines += self.space.looked_at(self.parameters, self.best)
        if self.regret is not None and len(self.regret):
            lines.append(("regret", f"{self.regret[-1]:.4g}"))
        if self.surviving is not None:
            lines.append(("may be best", ", ".join(map(str, self.surviving))))
        if self.clipped:
            lines.append(("clipped", f"{self.clipped} payoffs outside of their range"))
        if self.failures:
            first, reason = next(iter(self.failures.items()))
            many = f"{len(self.failures)} trials; the first, " if len(self.failures) > 1 else "1 trial; "
            lines.append(("failed", f"{many}trial {first}: {_first_line(reason)}"))
        return lines + [("note", note) for note in self.notes]

    def _columns(self) -> dict[str, list[Any]]:
        """Of told and failed trials, in the order in which they were asked."""
        ids = range(len(self.payoffs)) if self.ids is None else self.ids.tolist()
        told = dict(zip(ids, zip(self.mediators, self.payoffs.tolist(), self.decisions, strict=True), strict=True))
        order = sorted({*told, *self.failures})
        mediators = [told[i][0] if i in told else self.failed.get(i) for i in order]
        columns: dict[str, list[Any]] = {"trial": order}
        if self.space is not None:
            named = [{} if mediator is None else self.space.named(mediator) for mediator in mediators]
            for name in self.space.names:
                column = f"{name}_" if name in ("trial", "payoff", "failure") else name
                columns[column] = [values.get(name) for values in named]
        else:
            columns |= _spread("decision", [told[i][2] if i in told else None for i in order])
            columns |= _spread("mediator", mediators)
        columns["payoff"] = [told[i][1] if i in told else None for i in order]
        columns["failure"] = [self.failures.get(i) for i in order]
        return columns


def _spread(name: str, values: list[Any]) -> dict[str, list[Any]]:
    """Numbers as one column, arrays as one per entry."""
    rows = [None if value is None else np.asarray(value).reshape(-1).tolist() for value in values]
    size = max((len(row) for row in rows if row is not None), default=1)
    scalar = all(value is None or np.ndim(value) == 0 for value in values)
    return {name if scalar else f"{name}_{k}": [None if row is None else row[k] for row in rows] for k in range(size)}


def _shown(best: Any) -> str:
    if isinstance(best, dict):
        return ", ".join(f"{name}={_short(value)}" for name, value in best.items())
    if isinstance(best, np.ndarray):
        return f"[{', '.join(map(_short, best.tolist()))}]"
    return _short(best)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def _first_line(text: str) -> str:
    line = text.splitlines()[0] if text else ""
    return line if len(line) <= 100 else f"{line[:97]}..."
