"""Spaces, learners and payoffs that many tests share: asymmetric and ill-scaled, so that signs and transposes show."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import randomist as rd

# Finite sets.

GAUSSIANS = rd.Finite(rd.Gaussian([0, 1, 2, 2.95, 3], [2, 2, 2, 0.1, 2]))
PLANE = rd.Finite(rd.Gaussian([[0, 30], [1, 10], [-0.5, 20]], [0.7, 9]))
NARROW = rd.Finite(rd.Gaussian([0, 1, 2, 2.95, 3], 0.1))
NEAR_SINGULAR = rd.Finite(rd.Gaussian([0, 1, 3], 0.1))  # log d2 up to 900
BOXES = rd.Finite(rd.Uniform([0, 0.5, 3], [1, 2, 4]))
CATEGORIES = rd.Finite(rd.Categorical([[0.7, 0.3, 0, 0], [0.1, 0.2, 0.3, 0.4], [0, 0, 0.5, 0.5]]))
MIXED = rd.Finite([rd.Uniform(0, 1), rd.Dirac(0.25), rd.Gaussian(0.5, 0.2)])
BESIDE_AN_ATOM = rd.Finite([rd.Uniform(0, 1), rd.Dirac(0.25)])
GRID = rd.Finite.grid(rd.Gaussian(std=0.15), low=-1, high=1, points=30)
LOGGED = rd.Finite(rd.Gaussian([0, 1, 2.5], [1, 1.2, 0.8]), loggers={"old": rd.Gaussian(mean=[0.5], std=1.5)})
LIKELIHOODS = rd.Finite.likelihoods(4)
DIVERGENCES = np.array([[0, 0.3, 1.1, 2], [0.4, 0, 0.5, 1.5], [1.3, 0.6, 0, np.inf], [2.5, 1.2, 0.9, 0]])
LIKELIHOODS_KNOWN = rd.Finite.likelihoods(4, log_divergences=DIVERGENCES)

_NOISY = rd.GaussianPolicy(rd.Linear(2, 1, bias=True), 0.5)
_WIDER = rd.GaussianPolicy(rd.Linear(2, 1, bias=True), 0.65)
POLICY_LIST = [
    (_NOISY, [-0.2, 0.1, 0.0]),
    (_NOISY, [-0.9, 0.4, 0.3]),
    (_WIDER, [0.3, -0.5, -0.2]),
    (_WIDER, [-0.5, 0.0, 0.6]),
]
POLICIES = rd.Finite.policies(POLICY_LIST)
PER_DECISION = rd.Finite.policies(POLICY_LIST, weights="per-decision", discount=0.9, horizon=6, average=True)

LOCATED = {"gaussians": GAUSSIANS, "plane": PLANE, "near-singular": NEAR_SINGULAR, "grid": GRID}
DRAWN = LOCATED | {"boxes": BOXES, "categories": CATEGORIES, "mixed": MIXED, "logged": LOGGED}
TOLD = {
    "likelihoods": LIKELIHOODS,
    "likelihoods-known": LIKELIHOODS_KNOWN,
    "policies": POLICIES,
    "per-decision": PER_DECISION,
}
FINITE = DRAWN | TOLD

# Boxes.

LINE = rd.Box(rd.Gaussian(std=0.3), low=-1, high=2)
RECTANGLE = rd.Box(rd.Gaussian(std=[0.15, 3.0]), low=[-1, 0], high=[1, 20])
HYPERBOX = rd.Box(rd.Gaussian(std=[0.15, 3.0, 1.0, 0.02]), low=[-1, 0, 3, -0.1], high=[1, 20, 9, 0.1])
BOXED = {"line": LINE, "rectangle": RECTANGLE, "hyperbox": HYPERBOX}

# Learners, by what they search. Those without likelihoods cannot tell a space of them from any other.

SHARING = {
    "ftl": rd.FollowTheLeader,
    "ftl each": partial(rd.FollowTheLeader, start="each"),
    "optimist": rd.Optimist,
    "randomist 1.1": rd.Randomist,
    "randomist 8.1": partial(rd.Randomist, perturbation_scale=8.1),
    "randomist gaussian": partial(rd.Randomist, perturbation="gaussian", bias_correction=0.5),
    "ftl optimistic": partial(rd.FollowTheLeader, estimator="optimistic"),
    "ftl self-normalised": partial(rd.FollowTheLeader, estimator="self-normalised", divergence="empirical"),
    "optimist computed": partial(rd.Optimist, divergence="mixture", bias_correction="computed"),
    "randomist optimistic": partial(rd.Randomist, estimator="optimistic", divergence="empirical"),
    "realist": rd.Realist,
    "identify": rd.Identify,
    "safe": partial(rd.Safe, baseline=2, fraction=0.4),
}
# Settings that all of these have: estimates that are kept, samples that are forgotten, what was known before.
SETTINGS = {
    "randomist refreshed": partial(rd.Randomist, refresh=1.3, refresh_from=20),
    "realist refreshed": partial(rd.Realist, refresh=1.3, refresh_from=20),
    "randomist window": partial(rd.Randomist, window=25),
    "realist window": partial(rd.Realist, window=25),
    "optimist discount": partial(rd.Optimist, discount=0.97),
    "randomist prior": partial(rd.Randomist, prior=(0.25, 2.0)),
}
FORGETFUL = ("randomist window", "realist window", "optimist discount")
PER_STEP = {"optimist per-step": partial(rd.Optimist, divergence="per-step")}
BANDITS = {"ucb1": rd.UCB1, "phe": rd.PerturbedHistory, "thompson": rd.ThompsonSampling, "gp-ucb": rd.GPUCB}
RIVALS = {
    "kl-ucb": rd.KLUCB,
    "kl-ucb++": partial(rd.KLUCB, variant="kl-ucb++"),
    "thompson beta": partial(rd.ThompsonSampling, prior="beta"),
    "experts": rd.StochasticExperts,
    "experts clipped": partial(rd.StochasticExperts, mean="clipped"),
}
BOX_LEARNERS = {
    "mcmc full": rd.MCMCRandomist,
    "mcmc exact": partial(rd.MCMCRandomist, exact=True, bias_correction="paper"),
    "mcmc one-step": partial(rd.MCMCRandomist, density="one-step", perturbation_scale=0.5, estimator="optimistic"),
    "grid-optimist": partial(rd.GridOptimist, kappa=4.0),
    "prospector": rd.Prospector,
    "pgpe": partial(rd.PGPE, batch=10),
    "pois": partial(rd.POIS, batch=20),
    "auto": rd.Auto,
}


def takes(name: str, space: str) -> bool:
    """Whether a finite learner can search a space of `FINITE`."""
    if name == "gp-ucb":
        return space in LOCATED
    if name in PER_STEP:
        return space in ("policies", "per-decision")
    if name in ("experts", "experts clipped"):  # divergences must be known
        return space in DRAWN or (name == "experts" and space == "likelihoods-known")
    if name in FORGETFUL:
        return space != "per-decision"  # steps are not forgotten one by one
    return not (name == "optimist computed" and space in TOLD)  # nothing to integrate under


FINITE_LEARNERS = SHARING | SETTINGS | PER_STEP | BANDITS | RIVALS
FINITE_CASES = [(name, space) for name in FINITE_LEARNERS for space in FINITE if takes(name, space)]
BOX_CASES = [(name, space) for name in BOX_LEARNERS for space in BOXED]


def make(name: str, space: str, **settings: Any) -> rd.Learner:
    makers: dict[str, Any] = FINITE_LEARNERS | BOX_LEARNERS
    spaces: dict[str, Any] = FINITE | BOXED
    return makers[name](spaces[space], **settings)


# What the world answers: a function of the trial alone.


def payoff(trial: Any) -> float:
    """In [0, 1]: irregular, exact in float64, the same wherever it is computed."""
    return float(round(512 * (0.5 + 0.5 * math.sin(3.7 * float(np.sum(trial.mediator)) + 0.3)))) / 512


def log_likelihoods(trial: Any) -> np.ndarray:
    """Of a made-up action of the four policies of `LIKELIHOODS`; some repeat, one policy cannot do everything."""
    rng = np.random.default_rng([trial.id % 97, trial.decision])
    vector = np.log(rng.dirichlet(np.ones(4)))
    if trial.id % 5 == 0 and trial.decision != 2:
        vector[2] = -np.inf
    return vector


def episode(trial: Any) -> Any:
    """What a policy of `POLICY_LIST` did in three to six steps."""
    rng = np.random.default_rng([trial.id, trial.decision, 7])
    noisy, theta = POLICY_LIST[trial.decision]
    state, seen, did, earned = rng.normal(size=2), [], [], []
    for _ in range(int(rng.integers(3, 7))):
        seen.append(state)
        did.append(noisy.sample(np.array(theta), state, rng))
        state = 0.7 * state + 0.3 * np.resize(np.asarray(did[-1], float), 2) + 0.1 * rng.normal(size=2)
        earned.append(1 / (1 + float(state @ state)))
    return rd.Episode(np.array(seen), np.array(did), np.array(earned))


def tell(learner: Any, trial: Any, space: str) -> None:
    """Answer a trial of a space by its name."""
    if space in ("policies", "per-decision"):
        learner.tell_episode(trial, episode(trial))
    elif space in TOLD:
        value = float(round(512 * np.exp(log_likelihoods(trial)[trial.decision]))) / 512
        learner.tell(trial, value, log_likelihoods=log_likelihoods(trial))
    else:
        learner.tell(trial, payoff(trial))


def settings(space: str) -> dict[str, Any]:
    """What a learner must know of the payoffs of a space."""
    return {"payoff_range": (0.0, 6.0)} if space == "policies" else {}
