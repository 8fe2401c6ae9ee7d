"""Fitted propensities: folds by hand, calibration, intervals that hold if the stated factor does."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import randomist as rd
from randomist import errors
from randomist.cli import main
from randomist.logs.propensities import FACTOR

base = pytest.importorskip("sklearn.base")
BaseEstimator, ClassifierMixin = base.BaseEstimator, base.ClassifierMixin

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks.logs import fitted  # noqa: E402


def table(rows=3000, seed=0, wrong=False):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(rows, 2))
    drawn = fitted.logger(x, wrong)
    action = (drawn.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
    payoff = (rng.random(rows) < fitted.value(x)[np.arange(rows), action]).astype(float)
    return {"x0": x[:, 0], "x1": x[:, 1], "action": action, "payoff": payoff}, drawn, x


def test_propensities_are_those_of_other_folds():
    """Against fits by hand."""
    linear = pytest.importorskip("sklearn.linear_model")
    columns, _, x = table()
    asked = {"action": "action", "context": ["x0", "x1"], "policies": {"new": fitted.candidate(x)}}
    log = rd.Log.from_table(columns, propensity_model="default", **asked)
    inputs = (x - x[:256].mean(axis=0)) / x[:256].std(axis=0)
    inside = np.arange(3000) % 5 == 3
    model = linear.LogisticRegression(max_iter=1000).fit(inputs[~inside], columns["action"][~inside])
    by_hand = model.predict_proba(inputs[inside])[np.arange(inside.sum()), columns["action"][inside]]
    np.testing.assert_allclose(np.exp(log.arrays().log_own[inside]), by_hand, rtol=1e-9)
    assert log.fitted.model == "logistic regression"


def test_a_wrong_classifier_is_seen_by_its_calibration():
    """Groups expect 1,000 actions or more: a frequency is off by 20% by chance less than one time in a million."""
    columns, _, x = table(20_000, 1)
    asked = {"action": "action", "context": ["x0", "x1"], "policies": {"new": fitted.candidate(x)}}
    right = rd.Log.from_table(columns, propensity_model="default", **asked)
    assert 1.0 < right.fitted.off_by < 1.2
    assert right.fitted.groups >= 9
    wrong = rd.Log.from_table(columns, propensity_model=Stubborn(), **asked)
    assert wrong.fitted.off_by > 1.2
    assert "calibration" in [warning.name for warning in wrong.evaluate().warnings]
    assert "calibration" not in [warning.name for warning in right.evaluate().warnings]


class Stubborn(ClassifierMixin, BaseEstimator):
    """Says of every row that the first action is three times as likely as each of the others, or nearly so."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x):
        first = 0.6 + 0.01 * np.tanh(x[:, 0])
        return np.column_stack([first, (1 - first) / 2, (1 - first) / 2])

    def decision_function(self, x):
        return -np.abs(x[:, [0, 0, 0]])  # of no use to whoever wants to calibrate it


def test_what_an_evaluation_rests_on_is_said_and_stakes_are_constant():
    columns, _, x = table()
    asked = {"action": "action", "context": ["x0", "x1"], "policies": {"new": fitted.candidate(x)}}
    log = rd.Log.from_table(columns, propensity_model="default", **asked)
    found = log.evaluate()
    assert found.propensity_factor == FACTOR == 1.2
    assert found.verdict().endswith(", at 95%, if propensities are right to within a factor of 1.2 in every row.")
    words = found.assumptions()
    assert "right to within a factor of 1.2 in every row. Propensities were fitted (logistic regression" in words
    assert found.to_dict()["fitted"] == str(log.fitted)
    widths = [part.width[0] for part in log.sensitivity().values()]
    assert widths == sorted(widths)
    exact = log.evaluate(propensity_factor=1.0)
    assert (exact.width == log.evaluate(propensity_factor=1.0, weight_bounds=500.0).width).all()  # bounds do not help


def test_intervals_hold_if_the_factor_does():
    """60 logs at level 0.8 of each kind: if one held 80% of the time, fewer would be seen one time in 1,000."""
    right = fitted.truth()
    for kind, factor in (("off by 1.5", 1.5), ("off by 1.1", 1.1), ("fitted", 1.2)):
        held = 0
        for child in np.random.SeedSequence(11).spawn(60):
            log = fitted.log_of(kind, 800, np.random.default_rng(child))
            found = log.evaluate(level=0.8, propensity_factor=factor)
            held += bool(found.low[0] <= right <= found.high[0])
        assert held >= stats.binom.ppf(1e-3, 60, 0.8), kind


def test_other_classifiers_are_calibrated():
    bayes = pytest.importorskip("sklearn.naive_bayes")
    columns, drawn, x = table(6000)
    asked = {"action": "action", "context": ["x0", "x1"], "policies": {"new": fitted.candidate(x)}}
    log = rd.Log.from_table(columns, propensity_model=bayes.GaussianNB(), **asked)
    assert log.fitted.model == "GaussianNB, calibrated"
    found = np.exp(log.arrays().log_own)
    true = drawn[np.arange(6000), columns["action"]]
    assert np.mean(np.abs(np.log(found / true))) < 0.15


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"propensity_model": 3}, errors.ParameterError, "'default' or a classifier"),
        ({"propensity_model": "default", "logged_by": "uniform"}, errors.ParameterError, "tables without propensities"),
        ({"propensity_model": "default", "context": None}, errors.ParameterError, "context="),
    ],
)
def test_wrong_settings(settings, error, words):
    columns, _, x = table(300)
    asked = {"action": "action", "context": ["x0"], "policies": {"new": fitted.candidate(x)}}
    with pytest.raises(error, match=words):
        rd.Log.from_table(columns, **asked | settings)


def test_rare_actions_and_anytime_are_refused():
    columns, _, x = table(300)
    columns["action"][:] = 0
    columns["action"][:150], columns["action"][7] = 1, 2
    asked = {"action": "action", "context": ["x0"], "policies": {"new": fitted.candidate(x)}}
    with pytest.raises(errors.LogError, match="taken in 1 rows, too few"):
        rd.Log.from_table(columns, propensity_model="default", **asked)
    columns, _, x = table(300)
    with pytest.raises(errors.ParameterError, match="seen later rows"):
        rd.Log.from_table(columns, propensity_model="default", **asked).evaluate(anytime=True)


def test_the_command_prints_the_sensitivity(tmp_path, capsys, monkeypatch):
    columns, _, _ = table()
    pl.DataFrame(columns).write_csv(tmp_path / "log.csv")
    words = ["evaluate", str(tmp_path / "log.csv"), "--payoff", "payoff", "--action", "action", "--context", "x0"]
    words += ["--context", "x1", "--policy", "even=uniform", "--propensity-model", "default"]
    monkeypatch.setattr("sys.argv", ["randomist", *words, "--figure", str(tmp_path / "out.png")])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code in (0, None)
    printed = capsys.readouterr().out
    assert "rests on propensities that are right to within a factor of 1.2" in printed
    assert [line.split()[0] for line in printed.splitlines() if " to " in line][-4:] == ["1", "1.1", "1.2", "1.5"]
