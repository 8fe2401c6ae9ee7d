"""Every estimator with every divergence in every finite space: it runs, or is refused for a reason."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError
from randomist.importance.divergences import DIVERGENCES
from randomist.importance.estimators import ESTIMATORS
from tests import problems

COMBINATIONS = list(itertools.product(ESTIMATORS, DIVERGENCES))
REFUSED = 44  # "per-step" without policies: 4 estimators in 10 spaces; "log-smoothing" with per-decision weights: 4


def refusal(space, estimator, divergence):
    """Why a combination makes no sense; None where it does."""
    if divergence == "per-step" and space not in ("policies", "per-decision"):
        return "Finite.policies"
    if estimator == "log-smoothing" and space == "per-decision":
        return "sum over steps"
    return None


def test_so_many_are_refused():
    every = itertools.product(problems.FINITE, ESTIMATORS, DIVERGENCES)
    assert sum(refusal(*one) is not None for one in every) == REFUSED
    assert len(COMBINATIONS) * len(problems.FINITE) == 192


@pytest.mark.parametrize(("estimator", "divergence"), COMBINATIONS)
@pytest.mark.parametrize("space", problems.FINITE)
def test_it_runs_or_is_refused(space, estimator, divergence):
    settings = {"estimator": estimator, "divergence": divergence, "seed": 1, **problems.settings(space)}
    why = refusal(space, estimator, divergence)
    if why is not None:
        with pytest.raises(ParameterError, match=why):
            rd.Randomist(problems.FINITE[space], **settings)
        return
    learner = rd.Randomist(problems.FINITE[space], **settings)
    low, high = problems.settings(space).get("payoff_range", (0.0, 1.0))
    for _ in range(30):
        problems.tell(learner, learner.ask(), space)
        seen = learner.estimates()
        known = seen.log_effective_samples > -np.inf
        assert not any(np.isnan(entry).any() for entry in seen)
        assert np.isfinite(seen.value).all()
        assert all(np.isfinite(entry[known]).all() for entry in seen)
        assert (seen.effective_samples >= seen.plays * (1 - 1e-12)).all()
        assert (seen.coverage >= 0).all()
        assert (seen.plays.sum(), len(seen.value)) == (learner.told, problems.FINITE[space].size)
        if estimator == "self-normalised":  # a mean of payoffs, if there are any with a weight
            assert ((low - 1e-9 <= seen.value) & (seen.value <= high + 1e-9)).all()
        elif estimator == "optimistic":
            assert (seen.value <= high + 1e-9).all()
            assert (seen.value[~known] == high).all()
        else:
            assert (seen.value >= low - 1e-9).all()
    assert math.isfinite(learner.index(learner.estimates(), np.random.default_rng(0)).sum())
