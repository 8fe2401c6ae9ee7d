"""The mixture D of every column is a function of what was told: not of when it was asked for, nor of loads."""

from __future__ import annotations

import numpy as np
import pytest

from randomist.histories.columns import Columns
from tests import problems
from tests.histories.cases import TOLD, samples
from tests.histories.helpers import assert_same_bits, empty

STOPS = (1, 31, 32, 33, 64, 1000, 1023, 1024, 1025, 1056, TOLD)


def grown(name, divergence, asked=(), loads=()):
    """A history whose estimates are asked for, and which is saved and loaded, after so many samples."""
    space, told = problems.DRAWN[name], samples(name)
    history = empty(space, divergence, size=64)
    for n, (source, mediator, payoff) in enumerate(zip(told[0].tolist(), *told[1:], strict=True), start=1):
        history.append(source, mediator, payoff)
        if n in asked:
            history.estimate(2.0)
        if n in loads:
            history, saved = empty(space, divergence, size=64), history.state()
            history.restore(saved, *(column[:n] for column in told))
    return history


def mixtures(history):
    """D and the weights' denominators, block by block."""
    return [(block.mixture[:, : block.used], block.ratios[:, : block.used]) for block in blocks(history.columns)]


def blocks(columns: Columns):
    list(columns.parts())  # brings them up to date
    return [*columns.earlier, columns.stored, *([] if columns.keyed is None else [columns.keyed])]


@pytest.mark.parametrize("divergence", ["harmonic", "mixture", "empirical"])
@pytest.mark.parametrize("name", problems.DRAWN)
def test_the_mixture_does_not_depend_on_when_it_was_asked_for(name, divergence):
    never = grown(name, divergence)
    for other in (
        grown(name, divergence, asked=range(TOLD)),
        grown(name, divergence, asked=STOPS, loads=STOPS),
        grown(name, divergence, loads=(33, 1025)),
    ):
        for ours, theirs in zip(mixtures(other), mixtures(never), strict=True):
            assert_same_bits(ours, theirs)
        eta = never.divergence.effective_samples(never.columns, never.eta)
        assert_same_bits(other.divergence.effective_samples(other.columns, other.eta), eta)
        assert_same_bits(other.columns.table(eta, 14.0, TOLD), never.columns.table(eta, 14.0, TOLD))
        assert_same_bits(other.estimate(2.0), never.estimate(2.0))


@pytest.mark.parametrize("name", problems.DRAWN)
def test_the_mixture_is_the_sum_over_plays(name):
    for stops in ((), STOPS):
        history = grown(name, "harmonic", asked=stops)
        plays, seen = history.plays, 0
        assert plays.sum() == TOLD
        for mixture, ratios in mixtures(history):
            np.testing.assert_allclose(mixture[0], plays @ ratios, rtol=1e-12)
            np.testing.assert_array_equal(mixture[1], 1 / mixture[0])
            seen += mixture.shape[1]
        assert seen == (4 if history.counted else TOLD - len(history.columns.distant))


def test_absorbed_plays_begin_a_new_sum():
    """Between told samples come plays of which only the counts are known."""
    space = problems.LOGGED
    one, two = empty(space), empty(space)
    decisions, mediators, payoffs = samples("logged", 200)
    for n, sample in enumerate(zip(decisions.tolist(), mediators, payoffs, strict=True)):
        for history in (one, two):
            if n == 77:
                history.add_plays(np.array([3, 0, 2, 40]))
                for source, times in ((0, 3), (2, 2), (3, 40)):
                    for k in range(times):
                        history.add_counted(source, space.family.log_densities(0.1 * k), 0.5)
            history.append(*sample)
        one.estimate(2.0)
    for (ours, ratios), (theirs, _) in zip(mixtures(one), mixtures(two), strict=True):
        assert_same_bits(ours, theirs)
        np.testing.assert_allclose(ours[0], one.plays @ ratios, rtol=1e-12)
    np.testing.assert_array_equal(one.plays - np.bincount(decisions, minlength=4), [3, 0, 2, 40])
    assert len(one) == 245
