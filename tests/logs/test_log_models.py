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
from randomist.logs.source import CUTS  # noqa: E402


def test_doubly_robust_is_its_definition():
    table = models.draw(900, np.random.default_rng(0))
    x = np.column_stack([table[name] for name in models.CONTEXT])
    guess = np.clip(0.3 + 0.2 * x[:, :1] + np.array([0.0, 0.1, 0.2, 0.3]), 0.0, 1.0)
    found = models.log_of(table, lambda frame: guess).evaluate(level=0.9)
    rows = np.arange(900)
    weight = (models.MODEST.candidate(x) / models.MODEST.logger(x))[rows, table["action"]]
    means = (models.MODEST.candidate(x) * guess).sum(axis=1)
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


@pytest.mark.parametrize("problem", [models.MODEST, models.LARGE], ids=["modest", "large"])
@pytest.mark.parametrize("model", ["noise", "opposite", "true function"])
def test_no_model_spoils_the_bets(model, problem):
    """80 logs at level 0.8: if it held 80% of the time, fewer would be seen one time in 1,000."""
    right, held = models.truth(problem), 0
    for child in np.random.SeedSequence(7).spawn(80):
        rng = np.random.default_rng(child)
        log = models.log_of(models.draw(1100, rng, problem), models.models(rng, problem)[model], problem)
        found = log.evaluate(level=0.8)
        held += bool(found.low[0] <= right <= found.high[0])
    assert held >= stats.binom.ppf(1e-3, 80, 0.8)


def test_a_good_model_narrows_and_a_fitted_one_nearly_as_much():
    for problem, share, of_true in ((models.MODEST, 0.95, 1.15), (models.LARGE, 0.6, 1.05)):  # of few logs
        found = models.simulate(3, 10_000, seed=3, problem=problem)
        assert found["true function"][1] < share * found["no model"][1]
        assert found["ridge"][1] < of_true * found["true function"][1]
        assert found["opposite"][1] < 1.03 * found["no model"][1]


def test_models_are_cut_to_floors_that_hold_and_their_mean_stays():
    """By the definition, action by action; what is added has mean 0 in every context, whatever the model."""
    table, problem = models.draw(600, np.random.default_rng(2), models.LARGE), models.LARGE
    x = np.column_stack([table[name] for name in models.CONTEXT])
    rows, guess = np.arange(600), np.random.default_rng(5).random((600, 4))
    log = models.log_of(table, lambda frame: guess, problem)
    added = log.arrays().expected[:, 4:].reshape(600, CUTS, 2)
    weight, policy = problem.candidate(x) / problem.logger(x), problem.candidate(x)
    assert log.cuts["new"] == pytest.approx([log.early_bounds["new"] / 2 ** (j + 1) for j in range(CUTS)])
    for j, most in enumerate(log.cuts["new"]):
        for side, value in enumerate((guess, 1.0 - guess)):
            cut = np.minimum(value, most / weight)
            of_actions = (policy * cut).sum(axis=1, keepdims=True) - weight * cut  # (n, A)
            np.testing.assert_allclose((problem.logger(x) * of_actions).sum(axis=1), 0.0, atol=1e-12)
            assert (of_actions >= -most - 1e-12).all()
            np.testing.assert_allclose(added[256:, j, side], of_actions[rows, table["action"]][256:], atol=1e-12)
            assert (added[:256, j, side] == 0).all()


def test_a_floor_of_the_propensities_cuts_models_too():
    table, problem = models.draw(3000, np.random.default_rng(4), models.LARGE), models.LARGE
    x = np.column_stack([table[name] for name in models.CONTEXT])
    table["pscore"] = problem.logger(x)[np.arange(3000), table["action"]]
    asked = {"action": "action", "propensity": "pscore", "context": models.CONTEXT, "propensity_floor": 0.1}
    log = rd.Log.from_table(table, policies={"new": problem.candidate(x)}, model="default", **asked)
    added = log.arrays().expected[:, 4:].reshape(3000, CUTS, 2)
    assert log.cuts["new"] == [5.0, 2.5, 1.25, 0.625]
    assert (added.min(axis=0) >= -np.array(log.cuts["new"])[:, None] - 1e-12).all()
    plain = rd.Log.from_table(table, policies={"new": problem.candidate(x)}, **asked).evaluate()
    assert log.evaluate().width[0] < 0.8 * plain.width[0]


def test_without_a_bound_no_model_is_bet_on():
    widths = []
    for seed in range(4):
        table = models.draw(3000, np.random.default_rng(seed))
        x = np.column_stack([table[name] for name in models.CONTEXT])
        table["pscore"] = models.MODEST.logger(x)[np.arange(3000), table["action"]]
        asked = {"action": "action", "propensity": "pscore", "context": models.CONTEXT}
        asked["policies"] = {"new": models.MODEST.candidate(x)}
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
