"""Models of payoffs: doubly robust estimates by their definition, bets that no model can spoil, and no look ahead."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import randomist as rd
from randomist import errors

pytest.importorskip("sklearn")

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks.logs import models  # noqa: E402


def test_doubly_robust_is_its_definition():
    table = models.draw(900, np.random.default_rng(0))
    x = np.column_stack([table[name] for name in models.CONTEXT])
    guess = np.clip(0.3 + 0.2 * x[:, :1] + np.array([0.0, 0.1, 0.2, 0.3]), 0.0, 1.0)
    found = models.log_of(table, lambda frame: guess).evaluate(level=0.9)
    rows = np.arange(900)
    weight = (models.candidate(x) / models.logger(x))[rows, table["action"]]
    means = (models.candidate(x) * guess).sum(axis=1)
    value = weight * (table["payoff"] - guess[rows, table["action"]]) + means
    half = stats.norm.isf(0.05) * value.std() / np.sqrt(900)
    assert found.doubly_robust[0] == pytest.approx(value.mean())
    assert found.doubly_robust_low[0] == pytest.approx(value.mean() - half)
    assert found.doubly_robust_high[0] == pytest.approx(value.mean() + half)
    assert found.direct[0] == pytest.approx(means.mean())


def test_ridge_on_other_folds_and_on_earlier_rows():
    """Against fits by hand; what comes later changes nothing that was expected before."""
    linear = pytest.importorskip("sklearn.linear_model")
    table = models.draw(1100, np.random.default_rng(1))
    expected = models.log_of(table, "default").arrays().expected
    x = np.column_stack([table[name] for name in models.CONTEXT])
    x = (x - x[:256].mean(axis=0)) / x[:256].std(axis=0)
    one_hot = np.eye(4)[table["action"]]
    design = np.hstack([x, one_hot, (x[:, :, None] * one_hot[:, None, :]).reshape(1100, -1)])
    fit = linear.Ridge(alpha=1.0).fit(design[:512], table["payoff"][:512])
    np.testing.assert_allclose(expected[512:1024, 0], np.clip(fit.predict(design[512:1024]), 0, 1), atol=1e-9)
    fold = np.arange(1100) % 5 == 2
    fit = linear.Ridge(alpha=1.0).fit(design[~fold], table["payoff"][~fold])
    np.testing.assert_allclose(expected[fold, 2], np.clip(fit.predict(design[fold]), 0, 1), atol=1e-9)
    assert (expected[:256, :2] == 0).all()

    later = {name: values.copy() for name, values in table.items()}
    later["payoff"][600:] = 0.9
    later["x0"][600:] = -later["x0"][600:]
    again = models.log_of(later, "default").arrays().expected
    np.testing.assert_array_equal(again[:600, :2], expected[:600, :2])


@pytest.mark.parametrize("model", ["noise", "opposite", "true function"])
def test_no_model_spoils_the_bets(model):
    """80 logs at level 0.8: if it held 80% of the time, fewer would be seen one time in 1,000."""
    right, held = models.truth(), 0
    for child in np.random.SeedSequence(7).spawn(80):
        rng = np.random.default_rng(child)
        found = models.log_of(models.draw(1100, rng), models.models(rng)[model]).evaluate(level=0.8)
        held += bool(found.low[0] <= right <= found.high[0])
    assert held >= stats.binom.ppf(1e-3, 80, 0.8)


def test_a_good_model_narrows_and_a_fitted_one_nearly_as_much():
    found = models.simulate(3, 8000, seed=3)
    assert found["true function"][1] < 0.9 * found["no model"][1]
    assert found["ridge"][1] < 1.1 * found["true function"][1]
    assert found["opposite"][1] == pytest.approx(found["no model"][1], rel=0.02)


def test_without_a_bound_no_model_is_bet_on():
    widths = []
    for seed in range(4):
        table = models.draw(3000, np.random.default_rng(seed))
        x = np.column_stack([table[name] for name in models.CONTEXT])
        table["pscore"] = models.logger(x)[np.arange(3000), table["action"]]
        asked = {"action": "action", "propensity": "pscore", "context": models.CONTEXT}
        asked["policies"] = {"new": models.candidate(x)}
        plain, modelled = (rd.Log.from_table(table, model=model, **asked).evaluate() for model in (None, "default"))
        np.testing.assert_array_equal(plain.low, modelled.low)
        assert plain.doubly_robust is None
        assert modelled.doubly_robust is not None
        bounded = rd.Log.from_table(table, model="default", propensity_floor=0.075, **asked).evaluate()
        widths.append((bounded.width[0], plain.width[0]))
    assert np.mean(widths, axis=0)[0] < np.mean(widths, axis=0)[1]


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (lambda frame: np.full((300, 4), np.nan), errors.LogError, r"not finite in 300 rows \(0, 1, 2"),
        (lambda frame: np.zeros(300), errors.LogError, r"for each of \(300, 4\), got \(300,\)"),
        (3.0, errors.ParameterError, "'default', a regressor"),
    ],
)
def test_wrong_models(model, error, words):
    with pytest.raises(error, match=words):
        models.log_of(models.draw(300, np.random.default_rng(0)), model)
