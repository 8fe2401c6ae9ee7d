"""What the paper claims, each with its statistic, its test and a verdict.

Means are compared by Welch's t-test, two-sided at 5%: a claim that one learner beats another held if the difference has
the claimed sign and is significant, did not hold if it is significant the other way, and is unclear otherwise. A claim
of several checks held if all of them did, did not hold if any did not, and is unclear otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import stats

from randomist._types import Array
from randomist.experiments import paper
from randomist.experiments.chains import Chains
from randomist.experiments.contenders import PAPER_CONTENDERS, Contender
from randomist.experiments.specs import TaskSpec
from randomist.experiments.store import Store
from randomist.learners.box.grid_optimist import points_per_dimension

Verdict = Literal["held", "did not hold", "unclear"]
LEVEL = 0.05


@dataclass(frozen=True)
class Check:
    """One comparison: what was measured, by which test, and what it says."""

    text: str
    statistic: str
    test: str
    verdict: Verdict


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and how it came out."""

    number: int
    text: str
    checks: list[Check] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        verdicts = {check.verdict for check in self.checks}
        return "did not hold" if "did not hold" in verdicts else "held" if verdicts == {"held"} else "unclear"

    def state(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "text": self.text,
            "verdict": self.verdict,
            "checks": [vars(check) for check in self.checks],
        }


def less(text: str, ours: Array, theirs: Array, sign: int = 1) -> Check:
    """Whether the first mean is below the second (above, with `sign` -1)."""
    difference = sign * float(ours.mean() - theirs.mean())
    if min(len(ours), len(theirs)) < 2:
        p = 1.0  # one run says nothing about the spread
    elif np.ptp(ours) == 0 and np.ptp(theirs) == 0:
        p = 0.0 if difference else 1.0
    else:
        p = float(stats.ttest_ind(ours, theirs, equal_var=False).pvalue)
    verdict: Verdict = "unclear" if p >= LEVEL or math.isnan(p) else "held" if difference < 0 else "did not hold"
    statistic = f"{ours.mean():.4g} against {theirs.mean():.4g}"
    return Check(text, statistic, f"Welch t-test, n = {len(ours)} and {len(theirs)}, p = {p:.2g}", verdict)


def more(text: str, ours: Array, theirs: Array) -> Check:
    """Whether the first mean is above the second."""
    return less(text, ours, theirs, sign=-1)


def within(text: str, value: float, low: float, high: float, statistic: str) -> Check:
    """Whether a number lies between two bounds that were fixed beforehand."""
    return Check(text, statistic, f"between {low:g} and {high:g}", "held" if low <= value <= high else "did not hold")


def final(store: Store, task: TaskSpec, learner: Contender, column: str = "regret") -> Array:
    return store.curves(task, learner, column)[:, -1]


def growth(curves: Array) -> float:
    """What the second half of the rounds added, as a part of what the first half added: 1 if linear, 0 if constant."""
    half = curves.shape[1] // 2
    first, second = curves[:, half - 1].mean(), (curves[:, -1] - curves[:, half - 1]).mean()
    return float(second / max(first, 1e-12))


RANDOMIST_8, RANDOMIST_1, OPTIMIST, FTL, UCB1, PHE, TS = PAPER_CONTENDERS


def illustrative_claims(store: Store) -> list[Claim]:
    """Claims 1 to 3."""
    tasks = dict(zip(paper.SPREADS, store.experiment.tasks, strict=True))

    def regret(spread: tuple[float, float], learner: Contender) -> Array:
        return final(store, tasks[spread], learner)

    def ratio(spread: tuple[float, float], learner: Contender) -> float:
        return growth(store.curves(tasks[spread], learner, "regret"))

    def half(text: str, spread: tuple[float, float], learner: Contender, low: float, high: float) -> Check:
        value = ratio(spread, learner)
        return within(f"{text} at {spread}", value, low, high, f"second half adds {value:.3g} of the first")

    perfect, *others = paper.SPREADS
    little = [(0.1, 2.0), (0.1, 0.1)]
    ranks = {
        spread: sorted(PAPER_CONTENDERS, key=lambda c: regret(spread, c).mean()).index(TS) + 1
        for spread in paper.SPREADS
    }
    return [
        Claim(
            1,
            "FTL is constant with perfect mediator feedback and small v, near-linear when v is infinite or huge.",
            [
                half("FTL is constant", perfect, FTL, 0.0, 0.1),
                *(half("FTL is near-linear", spread, FTL, 0.5, 2.0) for spread in others),
            ],
        ),
        Claim(
            2,
            "RANDOMIST 8.1 beats OPTIMIST except where v is small, where OPTIMIST is constant; 1.1 stays sublinear.",
            [
                *(
                    less(
                        f"RANDOMIST a=8.1 has less regret than OPTIMIST at {s}",
                        regret(s, RANDOMIST_8),
                        regret(s, OPTIMIST),
                    )
                    for s in others
                ),
                half("OPTIMIST is constant", perfect, OPTIMIST, 0.0, 0.1),
                *(half("RANDOMIST a=1.1 is sublinear", spread, RANDOMIST_1, 0.0, 0.8) for spread in paper.SPREADS),
            ],
        ),
        Claim(
            3,
            "When little information is shared, UCB1 beats OPTIMIST and PHE beats RANDOMIST; TS does well everywhere.",
            [
                *(
                    less(f"UCB1 has less regret than OPTIMIST at {s}", regret(s, UCB1), regret(s, OPTIMIST))
                    for s in little
                ),
                *(
                    less(f"PHE has less regret than RANDOMIST a=8.1 at {s}", regret(s, PHE), regret(s, RANDOMIST_8))
                    for s in little
                ),
                *(
                    within(f"TS is in the better half at {s}", rank, 1, 4, f"rank {rank} of {len(PAPER_CONTENDERS)}")
                    for s, rank in ranks.items()
                ),
            ],
        ),
    ]


def lqg_claims(store: Store) -> list[Claim]:
    """Claim 4."""
    (task,) = store.experiment.tasks
    regret = {learner.title: final(store, task, learner) for learner in store.experiment.learners}
    learners = (RANDOMIST_8, RANDOMIST_1, OPTIMIST, UCB1, Contender("gp-ucb"))
    r8, r1, optimist, ucb, gp = (regret[learner.title] for learner in learners)
    closeness = float(r8.mean() / optimist.mean())
    return [
        Claim(
            4,
            "LQG: OPTIMIST and RANDOMIST beat UCB1; 8.1 is close to OPTIMIST; 1.1 is clearly better; GP-UCB is good.",
            [
                less("OPTIMIST has less regret than UCB1", optimist, ucb),
                less("RANDOMIST a=8.1 has less regret than UCB1", r8, ucb),
                less("RANDOMIST a=1.1 has less regret than UCB1", r1, ucb),
                within(
                    "RANDOMIST a=8.1 is close to OPTIMIST", closeness, 0.8, 1.25, f"ratio of regrets {closeness:.3g}"
                ),
                less("RANDOMIST a=1.1 has less regret than a=8.1", r1, r8),
                less("RANDOMIST a=1.1 has less regret than OPTIMIST", r1, optimist),
                less("GP-UCB has less regret than UCB1", gp, ucb),
            ],
        )
    ]


def _phases(curves: Array) -> tuple[Array, Array, Array]:
    """Of payoffs: the mean of all rounds, of the first fifth (speed) and of the last tenth (final), for every run."""
    n = curves.shape[1]
    return curves.mean(axis=1), curves[:, : n // 5].mean(axis=1), curves[:, -max(n // 10, 1) :].mean(axis=1)


def _best(store: Store, task: TaskSpec, learners: Sequence[Contender]) -> Contender:
    return max(learners, key=lambda learner: store.curves(task, learner, "payoff").mean())


def mountain_car_claims(store: Store) -> list[Claim]:
    """Claim 5, for both readings of b, and the second half of claim 7."""
    (task,) = store.experiment.tasks
    rivals = {"OPTIMIST2": [c for c in store.experiment.learners if c.name == "grid-optimist"]}
    rivals |= {"PGPE's best step": list(paper.PGPES), "PB-POIS": [Contender("pois")]}
    checks = []
    for ours, label in ((paper.MCMC_FULL, "b = 0"), (paper.MCMC_FULL_PAPER_BIAS, "the paper's b")):
        mine = _phases(store.curves(task, ours, "payoff"))
        for rival, learners in rivals.items():
            theirs = _phases(store.curves(task, _best(store, task, learners), "payoff"))
            for what, us, them in zip(
                ("over all rounds", "in the first fifth", "in the last tenth"), mine, theirs, strict=True
            ):
                checks.append(more(f"MCMC-RANDOMIST with {label} returns more than {rival} {what}", us, them))
    full, one_step = (store.curves(task, c, "payoff").mean(axis=1) for c in (paper.MCMC_FULL, paper.MCMC_ONE_STEP))
    alike = float(one_step.mean() / full.mean())
    return [
        Claim(
            5, "Mountain Car: MCMC-RANDOMIST beats PGPE, PB-POIS and OPTIMIST in speed and final performance.", checks
        ),
        Claim(
            7,
            "One-step and full density perform alike.",
            [within("one-step returns as much as full", alike, 0.95, 1.05, f"ratio of average returns {alike:.3f}")],
        ),
    ]


def cartpole_claims(store: Store) -> list[Claim]:
    """Claim 6."""
    (task,) = store.experiment.tasks
    (grid,) = (c for c in store.experiment.learners if c.name == "grid-optimist")
    pgpe = _phases(store.curves(task, _best(store, task, paper.PGPES), "payoff"))[0]
    checks = []
    for ours, label in ((paper.CARTPOLE_MCMC, "b = 0"), (paper.CARTPOLE_MCMC_PAPER_BIAS, "the paper's b")):
        share = float(store.curves(task, ours, "payoff").mean() / pgpe.mean())
        text = f"MCMC-RANDOMIST with {label} is comparable to PGPE's best step"
        checks.append(within(text, share, 0.9, math.inf, f"{share:.3f} of PGPE's average return"))
    curves = store.curves(task, grid, "payoff")
    early, late = float(curves[:, :100].mean()), float(_phases(curves)[2].mean())
    statistic = f"{early:.1f} in the first 100 rounds, {late:.1f} in the last tenth"
    checks.append(within("OPTIMIST2 does not learn: no more than 10% better", late / early, 0, 1.1, statistic))
    points = points_per_dimension(store.experiment.rounds, 2.0) ** 4
    text = f"{points:,} points at round {store.experiment.rounds} with κ = 2, by its formula"
    checks.append(within("OPTIMIST2's grid explodes", points, 1e5, math.inf, text))
    return [
        Claim(6, "Cartpole: MCMC-RANDOMIST is comparable to PGPE; OPTIMIST2 does not learn, its grid explodes.", checks)
    ]


def chain_claims(recorded: Sequence[Chains]) -> list[Claim]:
    """Claim 7: how far chains travel from start to end, in units of the proposal's std, early and late in a run."""
    early, late = (
        np.concatenate([run.distances(getattr(run, part)) for run in recorded]) for part in ("early", "late")
    )
    ratio = float(np.median(late) / np.median(early))
    statistic = f"median distance {np.median(early):.3g} against {np.median(late):.3g} std, {len(recorded)} runs"
    return [
        Claim(
            7,
            "Chains travel far in rounds 2-6 and barely move in rounds 501-505.",
            [within("late chains travel less than half as far", ratio, 0.0, 0.5, statistic)],
        )
    ]


CLAIMS: Mapping[str, Callable[[Store], list[Claim]]] = {
    "illustrative": illustrative_claims,
    "lqg": lqg_claims,
    "mountain-car": mountain_car_claims,
    "cartpole": cartpole_claims,
}
