"""What an evaluation found: numbers, a verdict in words, a table, JSON."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from randomist import _html
from randomist._types import Array
from randomist.logs.pairs import Difference
from randomist.logs.problems import Problem
from randomist.logs.trouble import Trouble

if TYPE_CHECKING:
    from randomist.logs.anytime import Sequence


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Estimates and intervals of every candidate, in the units of the payoffs.  Arrays are (K,)."""

    candidates: tuple[str, ...]
    rows: int  # used
    rows_skipped: int
    problems: tuple[Problem, ...]  # of the rows that were left out
    loggers: dict[str, int]  # rows of each policy that acted; empty where only propensities are known
    weights: str  # "balance" or "own"
    adaptive: bool
    level: float
    payoff_range: tuple[float, float]
    cluster: str | None  # the column of clusters, if intervals are by clusters
    clusters: int | None  # how many there are
    mis: Array  # mean of ω y
    tmis: Array  # mean of min(M, ω) y: never too high on average
    optimistic: Array  # 1 - mean of min(M, ω) (1 - y): never too low on average
    self_normalised: Array  # Σ ω y / Σ ω; NaN where every weight is 0
    self_normalised_low: Array  # ± normal quantile times its standard error: holds for large logs only (asymptotic)
    self_normalised_high: Array
    doubly_robust: Array | None  # mean of ω (y - f) + f̄ with a model that was fitted on other rows
    doubly_robust_low: Array | None  # ± normal quantile times its standard error: asymptotic, for large logs only
    doubly_robust_high: Array | None
    direct: Array | None  # mean of f̄, what the model alone expects: for comparison, it may be far off
    effective_samples: Array  # (Σ ω)² / Σ ω²
    missing_mass: Array  # 1 - mean of min(M, ω)
    largest_weight: Array
    weight_bound: Array  # what no weight can exceed; inf where not known
    threshold: Array  # M
    low: Array  # the intervals, together at `level`
    high: Array
    naive_low: Array  # mean ± normal quantile: no guarantee, for comparison
    naive_high: Array
    lemma_low: Array | None  # the paper's lemma, where divergences were given
    lemma_high: Array | None
    compared: str | None  # "leader" or "pairs": which comparisons on paired rows were asked for
    baseline: str | None  # the candidate that all others are compared with
    leader: str  # the candidate with the best lower end
    leads: Array  # by how much the leader is at least better than each; not positive where that cannot be said
    at_least: Array  # by how much the candidate of the row is at least better than that of the column  (K, K)
    contenders: tuple[str, ...]  # the best is one of them, at `level`
    warnings: tuple[Trouble, ...]
    propensity_factor: float = 1.0  # by which propensities may be wrong in any row
    fitted: str | None = None  # how propensities were fitted, if they were not logged
    anytime: Sequence | None = None  # the intervals so far, if they hold at every row
    segments: dict[str, Evaluation] = dataclasses.field(default_factory=dict)  # by the values of `by`

    @property
    def best(self) -> str | None:
        """The best candidate at `level`, None if there is more than one contender."""
        return self.contenders[0] if len(self.contenders) == 1 else None

    @property
    def width(self) -> Array:
        return self.high - self.low

    def verdict(self) -> str:
        """Which candidate is best, or which cannot be told apart; and what that rests on, if it must be said."""
        words = self._verdict()
        if self.propensity_factor == 1.0 and self.fitted is None:
            return words
        rests = f"if propensities are right to within a factor of {self.propensity_factor:g} in every row"
        return f"{words.removesuffix('.')}, {rests}."

    def _verdict(self) -> str:
        level = f"{self.level:.0%}" if round(self.level * 100, 6).is_integer() else f"{self.level:.4g}"
        if len(self.candidates) == 1:
            return f"{self.leader} is worth between {self.low[0]:.4g} and {self.high[0]:.4g}, at {level}."
        if self.best is not None:
            lead = min(lead for name, lead in zip(self.candidates, self.leads, strict=True) if name != self.best)
            among = f"the best of {len(self.candidates)} at {level}"
            return f"{self.best} is {among}: ahead of every other by {lead:.2g} or more."
        worse = [name for name in self.candidates if name not in self.contenders]
        words = f"No single best at {level}: {_listed(self.contenders)} cannot be told apart"
        return words + (f"; {_listed(worse)} {'is' if len(worse) == 1 else 'are'} worse." if worse else ".")

    def differences(self) -> tuple[Difference, ...]:
        """J_a - J_b of pairs of candidates: those with the baseline first, and all of them with `compare="pairs"`.

        Without comparisons that were asked for, they follow from the intervals alone, and are wide.
        """
        span = self.payoff_range[1] - self.payoff_range[0]
        names = list(self.candidates)
        home = [self.baseline] if self.baseline is not None else []
        pairs = [(a, b) for b in home for a in names if a != b]
        if self.compared != "leader":
            rest = [name for name in names if name not in home]
            pairs += [(a, b) for k, a in enumerate(rest) for b in rest[k + 1 :] if not home or self.compared]
        else:
            pairs += [(self.leader, b) for b in names if b != self.leader and b not in home]
        low = {(a, b): self.at_least[i, j] for i, a in enumerate(names) for j, b in enumerate(names)}
        return tuple(Difference(a, b, float(max(low[a, b], -span)), float(min(-low[b, a], span))) for a, b in pairs)

    def assumptions(self) -> str:
        """What the intervals rest on."""
        if self.anytime is not None:
            return (
                f"{self.rows:,} rows, payoffs in [{self.payoff_range[0]:g}, {self.payoff_range[1]:g}], weights against "
                "the policy that acted; holds at every row at once, however policies and the end were chosen."
            )
        how = {
            "balance": "weights against the mixture of all loggers; rows independent, and loggers chosen without "
            "looking at payoffs",
            "own": "weights against the policy that acted"
            + (", which may have been chosen by looking at earlier payoffs" if self.adaptive else "; rows independent"),
        }[self.weights]
        start = f"{self.rows:,} rows, payoffs in [{self.payoff_range[0]:g}, {self.payoff_range[1]:g}], {how}"
        if self.propensity_factor == 1.0 and self.fitted is None:
            return f"{start}."
        rests = f"rests on propensities that are right to within a factor of {self.propensity_factor:g} in every row"
        return f"{start}; {rests}." + (f" {self.fitted[0].upper()}{self.fitted[1:]}." if self.fitted else "")

    def _repr_html_(self) -> str:
        columns = (self.self_normalised, self.low, self.high, self.effective_samples)
        rows = list(zip(self.candidates, *(column.tolist() for column in columns), strict=True))
        heads = ("candidate", "estimate", "low", "high", "effective rows")
        notes = (self.assumptions(), *map(str, self.warnings))
        return _html.table(self.verdict(), rows, heads, notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, NaN and infinity as None: for JSON."""
        plain: dict[str, Any] = {"verdict": self.verdict(), "best": self.best}
        per_candidate = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "at_least":
                plain["differences"] = [dataclasses.asdict(difference) for difference in self.differences()]
            elif field.name == "anytime":
                plain["anytime"] = value is not None
            elif field.name == "segments":
                plain |= {"segments": {name: part.to_dict() for name, part in value.items()}} if value else {}
            elif isinstance(value, np.ndarray):
                per_candidate[field.name] = value.tolist()
            elif field.name == "problems":
                plain["problems"] = [problem.to_dict() for problem in self.problems]
            elif field.name != "candidates" and value is not None:
                plain[field.name] = list(value) if isinstance(value, tuple) else value
        plain["troubles"] = [{"name": warning.name, "value": _number(warning.value)} for warning in self.warnings]
        plain["candidates"] = {
            name: {key: _number(values[k]) for key, values in per_candidate.items()}
            for k, name in enumerate(self.candidates)
        }
        return plain


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
