"""Histories with given plays, of spaces that differ in everything: what tests of estimates and divergences share."""

from __future__ import annotations

import numpy as np

import randomist as rd
from tests import problems
from tests.histories.helpers import empty, told
from tests.problems import BESIDE_AN_ATOM, CATEGORIES, GAUSSIANS, NARROW

SPACES = {
    "stds that differ": rd.Finite(rd.Gaussian([0.0, 0.4, -0.3, 1.0], [1.0, 0.8, 1.3, 0.75])),
    "illustrative (2, 0.1)": GAUSSIANS,
    "illustrative (0.1, 2)": rd.Finite(rd.Gaussian([0, 1, 2, 2.95, 3], [0.1, 0.1, 0.1, 2, 0.1])),
    "illustrative (0.1, 0.1)": NARROW,
    "uniform boxes, partly disjoint": rd.Finite(rd.Uniform([0, 0.5, 3, 0.2], [1, 2, 4, 0.9])),
    "categories": CATEGORIES,
    "uniform against Dirac": BESIDE_AN_ATOM,
    "Gaussian, Uniform and Dirac": rd.Finite([rd.Gaussian(0.3, 0.7), rd.Uniform(-0.5, 1), rd.Dirac(0.25)]),
    "two dimensions": rd.Finite(rd.Gaussian([[0, 10], [0.5, 8], [-0.4, 14]], [[1, 3], [0.9, 4], [1.2, 5]])),
}


TOLD = 1100  # samples: across epochs of 32 plays, and an era of 1,024


def samples(name, count=TOLD, seed=0):
    """Decisions, mediators and payoffs, some of which repeat; in one space a few samples are far from everything."""
    space, rng = problems.DRAWN[name], np.random.default_rng(seed)
    decisions = rng.integers(space.size, size=count)
    mediators = space.family.sample(decisions, rng)
    if name == "near-singular":
        decisions[::90], mediators[::90] = 0, 5.0  # e^1050 times as likely under another decision
    return decisions, mediators, np.round(rng.random(count), 2)


def history_of(space, counts, seed=0, divergence="harmonic"):
    """A history with these plays of every decision, in a shuffled order, and payoffs that depend on the mediator."""
    rng = np.random.default_rng(seed)
    decisions = rng.permutation(np.repeat(np.arange(space.size), counts))
    mediators = space.family.sample(decisions, rng)
    payoffs = 0.5 + 0.5 * np.sin(3 * mediators.reshape(len(decisions), -1).sum(axis=1))
    return told(empty(space, divergence), decisions, mediators, payoffs), decisions, mediators, payoffs


def fed(cls, space, decisions, mediators, payoffs, **settings):
    """A learner whose history is this one, whatever it would have played."""
    learner = cls(space, **settings)
    for id_, (decision, mediator, payoff) in enumerate(zip(decisions.tolist(), mediators, payoffs, strict=True)):
        learner.adopt(rd.Trial(id_, decision, mediator))
        learner.tell(id_, float(payoff))
    return learner


def weights_by_definition(space, decisions, mediators):
    """ω_x(z_i) = p_x(z_i) / Φ(z_i), a loop for each.  (K, m)"""
    density = np.exp(space.family.log_density(None, mediators))
    m = len(decisions)
    weights = np.empty((space.size, m))
    for i in range(m):
        mixture = sum(density[j, i] for j in decisions) / m
        for x in range(space.size):
            weights[x, i] = density[x, i] / mixture
    return weights
