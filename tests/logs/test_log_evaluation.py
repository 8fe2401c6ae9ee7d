"""What a log says about its candidates, against definitions written naively; and how logs are read."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import randomist as rd
from randomist import errors
from randomist.importance.intervals import truncated_interval
from randomist.logs import pairs as pairs_module
from randomist.logs import sums, tally, totals

NAMES = ("old", "new", "wild", "far")


def columns(rows=400, seed=0, shift=0.0, propensity=False):
    """Four Gaussian policies, of which two acted; "wild" is wider than both, so its weights have no variance."""
    rng = np.random.default_rng(seed)
    mean, std = np.array([0.0, 0.7, -0.4, 2.5]), np.array([1.0, 0.8, 1.6, 1.0])
    acted = rng.choice([0, 1], size=rows, p=[0.7, 0.3])
    z = mean[acted] + std[acted] * rng.standard_normal(rows)
    likelihood = -0.5 * ((z - mean[:, None]) / std[:, None]) ** 2 - np.log(std[:, None])
    likelihood -= 1.5 if propensity else 0.0  # as if of something discrete
    table = {"payoff": rng.beta(2, 1, rows) / (1 + np.exp(-z))}
    table |= {f"log_likelihood:{name}": values + shift for name, values in zip(NAMES, likelihood, strict=True)}
    if propensity:
        return table | {"log_propensity": likelihood[acted, np.arange(rows)] + shift}
    return table | {"logger": np.array(NAMES)[acted]}


def oracle(table, threshold, own=False):
    """The definitions, with 50 digits and no care for speed: one row per entry of FIELDS."""
    with mpmath.workdps(50):
        y = [mpmath.mpf(float(v)) for v in table["payoff"]]
        p = {name: [mpmath.exp(mpmath.mpf(float(v))) for v in table[f"log_likelihood:{name}"]] for name in NAMES}
        n = len(y)
        if "log_propensity" in table:
            density = [mpmath.exp(mpmath.mpf(float(v))) for v in table["log_propensity"]]
        elif own:
            density = [p[str(who)][i] for i, who in enumerate(table["logger"])]
        else:
            share = {name: mpmath.mpf(int((table["logger"] == name).sum())) / n for name in NAMES}
            density = [sum(share[name] * p[name][i] for name in NAMES) for i in range(n)]
        found = []
        for name in NAMES:
            w = [p[name][i] / density[i] for i in range(n)]
            cut = [min(mpmath.mpf(threshold), v) for v in w]
            gain = sum(a * b for a, b in zip(w, y, strict=True))
            found.append(
                (
                    gain / n,
                    sum(a * b for a, b in zip(cut, y, strict=True)) / n,
                    1 - sum(a * (1 - b) for a, b in zip(cut, y, strict=True)) / n,
                    gain / sum(w),
                    sum(w) ** 2 / sum(v * v for v in w),
                    1 - sum(cut) / n,
                )
            )
        return np.array(found, dtype=float).T


FIELDS = ("mis", "tmis", "optimistic", "self_normalised", "effective_samples", "missing_mass")


def assert_equals_oracle(found, expected):
    for field, values in zip(FIELDS, expected, strict=True):
        np.testing.assert_allclose(getattr(found, field), values, rtol=1e-10, atol=1e-10, err_msg=field)


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
@pytest.mark.parametrize("threshold", [1.3, 20.0])
def test_estimates_are_the_definitions(shift, threshold):
    table = columns(shift=shift)
    assert_equals_oracle(rd.Log(table).evaluate(threshold=threshold), oracle(table, threshold))


def test_estimates_against_the_policy_that_acted_and_against_propensities():
    table = columns(seed=3)
    assert_equals_oracle(rd.Log(table, weights="own").evaluate(threshold=2.0), oracle(table, 2.0, own=True))
    table = columns(seed=4, propensity=True)
    log = rd.Log(table)
    assert log.weights == "own"
    assert_equals_oracle(log.evaluate(threshold=2.0), oracle(table, 2.0))


def test_the_threshold_is_the_root_of_the_rows_and_the_papers_where_divergences_are_known():
    log = rd.Log(columns(rows=900))
    assert log.evaluate().threshold == pytest.approx(30.0)
    divergence = {name: dict.fromkeys(("old", "new"), 1.5) for name in NAMES}
    found = log.evaluate(log_divergences=divergence, confidence=3.0)
    eta = 900 / math.exp(1.5)
    share = log.loggers["old"] + log.loggers["new"] * math.exp(-1.5)  # a policy's divergence to itself is as given
    assert share > eta
    assert found.threshold[2] == pytest.approx(900 / math.sqrt(eta * 3.0 * math.log(901)))


def test_chunks_of_any_size_give_the_same_bits():
    table = columns(rows=1000, seed=5)
    whole = json.dumps(rd.Log(table).evaluate().to_dict())
    for size in (1, 7, 31, 32, 33, 999, 10_000):
        assert json.dumps(rd.Log(table, chunk_rows=size).evaluate().to_dict()) == whole


def test_parquet_csv_frames_and_arrays_are_the_same_log(tmp_path):
    table = columns(rows=300, seed=6)
    frame = pl.DataFrame(table).with_columns(pl.col("logger").cast(pl.Categorical), colour=pl.lit("red"))
    frame.write_parquet(tmp_path / "log.parquet", row_group_size=64)
    frame.write_csv(tmp_path / "log.csv")
    (tmp_path / "folder").mkdir()
    frame[:100].write_parquet(tmp_path / "folder" / "a.parquet")
    frame[100:].write_parquet(tmp_path / "folder" / "b.parquet")
    likelihoods = {name: table[f"log_likelihood:{name}"] for name in NAMES}
    logs = [
        rd.Log(table),
        rd.Log(frame),
        rd.Log(frame.lazy()),
        rd.Log(tmp_path / "log.parquet", chunk_rows=50),
        rd.Log(str(tmp_path / "log.csv")),
        rd.Log(tmp_path / "folder"),
        rd.Log.from_arrays(table["payoff"], likelihoods, loggers=table["logger"]),
    ]
    assert len({json.dumps(log.evaluate().to_dict()) for log in logs}) == 1


def test_candidates_can_be_chosen_and_loggers_still_count():
    table = columns(seed=8)
    log = rd.Log(table, candidates=["far", "new"])
    assert log.candidates == ("far", "new")
    assert log.loggers == {"new": int((table["logger"] == "new").sum()), "old": int((table["logger"] == "old").sum())}
    expected = oracle(table, 5.0)[:, [3, 1]]
    assert_equals_oracle(log.evaluate(threshold=5.0), expected)


def test_arrays_are_what_a_learner_needs():
    table = columns(rows=50, seed=9)
    arrays = rd.Log(table, payoff_range=(0, 2), chunk_rows=8).arrays()
    assert len(arrays) == 50
    np.testing.assert_allclose(arrays.payoffs, table["payoff"] / 2, rtol=1e-15)
    np.testing.assert_array_equal(arrays.log_likelihoods.T, [table[f"log_likelihood:{name}"] for name in NAMES])
    share = [np.mean(table["logger"] == name) for name in ("old", "new")]
    expected = np.log(sum(s * np.exp(table[f"log_likelihood:{n}"]) for s, n in zip(share, ("old", "new"), strict=True)))
    np.testing.assert_allclose(arrays.log_density, expected, rtol=1e-13)
    assert [NAMES[k] for k in arrays.loggers] == table["logger"].tolist()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.floats(0.01, 1e4), start=st.floats(-1e3, 1e3))
def test_other_units_and_another_order_change_nothing_else(seed, scale, start):
    table = columns(rows=60, seed=seed)
    order = np.random.default_rng(seed).permutation(60)
    plain = rd.Log(table).evaluate()
    moved = {name: np.asarray(values)[order] for name, values in table.items()}
    moved["payoff"] = np.clip(start + scale * moved["payoff"], start, start + scale)
    found = rd.Log(moved, payoff_range=(start, start + scale)).evaluate()
    assert found.contenders == plain.contenders
    for field in (*FIELDS[:4], "low", "high", "naive_low", "naive_high"):
        expected = start + scale * getattr(plain, field)
        np.testing.assert_allclose(getattr(found, field), expected, rtol=1e-6, atol=1e-6 * scale, err_msg=field)
    np.testing.assert_allclose(found.leads, scale * plain.leads, rtol=1e-6, atol=1e-6 * scale)


def test_weights_beyond_float64_and_none_at_all():
    n = 100
    table = {"payoff": np.full(n, 0.5), "logger": np.array(["a"] * n), "log_likelihood:a": np.zeros(n)}
    huge, nothing = np.zeros(n), np.full(n, -np.inf)
    huge[3], huge[50] = 9000.0, 9000.0 + math.log(3)
    table |= {"log_likelihood:huge": huge, "log_likelihood:never": nothing, "log_likelihood:tiny": np.full(n, -9000.0)}
    found = rd.Log(table).evaluate()
    assert found.self_normalised[:2] == pytest.approx([0.5, 0.5])
    assert found.effective_samples == pytest.approx([100.0, 16 / 10, 0.0, 100.0])
    assert np.isnan(found.self_normalised[2])
    assert np.isfinite(found.mis).all()
    assert found.missing_mass[2:] == pytest.approx([1.0, 1.0])
    assert found.optimistic[2:] == pytest.approx([1.0, 1.0])
    assert (found.low[2:] == 0).all()
    assert (found.high[2:] == 1).all()
    assert found.low[0] > 0.3
    assert found.high[0] < 0.7
    assert any("average" in warning and "huge" in warning for warning in found.warnings)
    json.dumps(found.to_dict(), allow_nan=False)


def test_sums_are_compensated():
    """A plain sum of 10⁵ thirds with one 10⁹ in front loses digits that merged tables keep."""
    tables = np.full((10**5 + 1, 1, totals.TIME), 1 / 3)
    tables[0] = 1e9
    total = totals.Sums(1, totals.TIME, totals.TIME, 0)
    total.merge(tables)
    exact, plain = math.fsum(tables[:, 0, 0]), tables[:, 0, 0].cumsum()[-1]
    assert total.total()[0] == pytest.approx(np.full(totals.TIME, exact), rel=2e-16)
    assert plain != pytest.approx(exact, rel=1e-14)
    assert sums.Moments(total.total()[0]).truncated(1) == pytest.approx(exact, rel=2e-16)


def test_the_lemma_solves_its_own_inequality():
    eta, rows, alpha, error = np.array([5.0, 300.0, 9000.0]), 10_000, 2.0, 0.003
    value = np.array([0.5, 0.5, 0.5])
    low, high = truncated_interval(value, np.log(eta), rows, alpha, error)
    term = alpha * math.log(rows + 1)
    for k in (1, 2):  # the first is vacuous
        below, above = value[k] - low[k], high[k] - value[k]
        tail = math.exp(-(below**2) * eta[k] / (2 * (1 + below / 3 * math.sqrt(eta[k] / term))))
        if low[k] > 0:
            assert tail == pytest.approx(error, rel=1e-9)
        if high[k] < 1:
            assert math.exp(-eta[k] / 2 * (above - math.sqrt(term / eta[k])) ** 2) == pytest.approx(error, rel=1e-9)
    assert (low[0], high[0]) == (0.0, 1.0)
    assert low[2] > 0
    assert high[2] < 1
    unknown = truncated_interval(value[:1], np.array([-np.inf]), rows, alpha, error)
    assert (unknown[0][0], unknown[1][0]) == (0.0, 1.0)


def test_the_lemma_is_reported_beside_and_used_on_request():
    log = rd.Log(columns(rows=5000))
    divergence = {
        "old": {"new": 0.8},
        "new": {"old": 0.5},
        "wild": {"old": 2.0, "new": 3.0},
        "far": {"old": 6.25, "new": math.inf},
    }
    found = log.evaluate(log_divergences=divergence)
    assert (found.lemma_low <= found.low).all()
    assert (found.lemma_high >= found.high).all()
    used = log.evaluate(log_divergences=divergence, method="lemma")
    np.testing.assert_array_equal(used.low, found.lemma_low)
    np.testing.assert_array_equal(used.high, found.lemma_high)


def test_adaptive_logs_are_flagged_and_weighted_by_who_acted(tmp_path):
    table = columns(rows=100)
    assert rd.Log(table).weights == "balance"
    flagged = rd.Log(table | {"adaptive": np.arange(100) == 40})
    assert flagged.adaptive
    assert flagged.weights == "own"
    pl.DataFrame(table | {"adaptive": ["true"] * 100}).write_csv(tmp_path / "log.csv")
    for log in (rd.Log(table, adaptive=True), rd.Log(tmp_path / "log.csv")):
        assert log.weights == "own"
        found = log.evaluate()
        assert found.adaptive
        assert "may have been chosen by looking" in found.assumptions()
    kept = rd.Log(table, adaptive=True, weights="balance").evaluate()
    assert "adaptively" in kept.warnings[0]


def test_propensities_serve_where_a_logger_has_no_likelihood():
    table = columns(rows=80, propensity=True)
    named = rd.Log(table | {"logger": np.array(["unknown"] * 80)})
    assert named.weights == "own"
    np.testing.assert_array_equal(named.evaluate().low, rd.Log(table).evaluate().low)


def test_weight_bounds_are_checked_and_tighten():
    table = columns(rows=3000, propensity=True)
    log = rd.Log(table)
    free = log.evaluate()
    bounds = dict(zip(NAMES, (free.largest_weight * 1.01).tolist(), strict=True))
    bound = log.evaluate(weight_bounds=bounds)
    assert (bound.width <= free.width * 1.05).all()
    assert bound.width[0] < free.width[0]
    with pytest.raises(errors.LogError, match=r"a weight of 'wild' is .*above its weight_bounds 1\.5"):
        log.evaluate(weight_bounds={"wild": 1.5})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"level": 1.0}, "level must lie in"),
        ({"method": "guess"}, "'betting', 'lemma'"),
        ({"method": "lemma"}, "needs log_divergences"),
        ({"threshold": 0.0}, "threshold must be"),
        ({"weight_bounds": 0.5}, "must be >= 1"),
        ({"weight_bounds": {"nobody": 3.0}}, "nobody"),
        ({"log_divergences": {"old": {"new": -1.0}}}, r"\['old'\]\['new'\] must be >= 0"),
        ({"log_divergences": {}}, "must be >= 0"),
    ],
)
def test_wrong_settings_of_an_evaluation(arguments, words):
    with pytest.raises(errors.ParameterError, match=words):
        rd.Log(columns(rows=20)).evaluate(**arguments)


def test_the_core_imports_without_polars():
    code = (
        "import sys; sys.modules['polars'] = None\n"
        "import randomist as rd\n"
        "try:\n    rd.Log\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "randomist[run]" in done.stdout


def test_who_logged_a_share_has_a_bound_by_itself():
    table = columns(rows=500, seed=11)
    acted = [int((table["logger"] == name).sum()) for name in ("old", "new")]
    balanced = rd.Log(table).evaluate()
    assert balanced.weight_bound == pytest.approx([500 / acted[0], 500 / acted[1], math.inf, math.inf])
    assert (balanced.largest_weight <= balanced.weight_bound * (1 + 1e-12)).all()
    assert rd.Log(table).evaluate(weight_bounds={"far": 1e9}).weight_bound[3] == 1e9
    assert np.isinf(rd.Log(table, weights="own").evaluate().weight_bound).all()


@pytest.mark.parametrize(
    ("asked", "intervals", "pairs"),
    [({}, 1.0, 0), ({"compare": "leader"}, 0.5, 12), ({"compare": "pairs"}, 0.5, 12), ({"baseline": "new"}, 0.5, 6)],
)
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_the_error_is_shared_by_everything_that_is_said(monkeypatch, level, asked, intervals, pairs):
    """2K ends of intervals, and the comparisons that might have been looked at, add up to the error that is allowed."""
    given: dict[str, list[float]] = {"ends": [], "pairs": []}

    def noted(name, make):
        def bettor(rows, error, *rest):
            given[name].append(error)
            return make(rows, error, *rest)

        return bettor

    monkeypatch.setattr(tally, "bettor", noted("ends", tally.bettor))
    monkeypatch.setattr(pairs_module, "bettor", noted("pairs", pairs_module.bettor))
    rd.Log(columns(rows=50)).evaluate(level=level, **asked)
    assert given["ends"] == pytest.approx([intervals * (1 - level) / 8] * 8)
    looked_at = {"leader": 3, "pairs": 12}.get(asked.get("compare"), pairs)
    assert given["pairs"] == pytest.approx([(1 - intervals) * (1 - level) / max(pairs, 1)] * looked_at)


def test_the_error_of_a_self_normalised_estimate_is_the_delta_method():
    table = columns(rows=300, seed=12)
    found = rd.Log(table).evaluate(level=0.9)
    arrays = rd.Log(table).arrays()
    for k in range(4):
        w = np.exp(arrays.log_likelihoods[:, k] - arrays.log_density)
        ratio = np.average(arrays.payoffs, weights=w)
        error = np.sqrt(((w * (arrays.payoffs - ratio)) ** 2).sum()) / w.sum()
        half = stats.norm.isf(0.1 / 8) * error
        assert found.self_normalised_low[k] == pytest.approx(max(ratio - half, 0.0), abs=1e-10)
        assert found.self_normalised_high[k] == pytest.approx(min(ratio + half, 1.0), abs=1e-10)
