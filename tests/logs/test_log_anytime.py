"""Intervals that hold at every row at once, and sums that are kept: coverage at every row, bits after a resume."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import polars as pl
import pytest
from scipy import stats

import randomist as rd
from randomist import errors
from randomist.cli import main
from randomist.importance.intervals import RunningBets
from randomist.logs import RunningEvaluation
from randomist.logs.anytime import ends_tile, tile_ends
from randomist.logs.kernel import TILE

LOGGER, CHANCE = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.5])
POLICIES = {"now": LOGGER, "new": np.array([0.2, 0.3, 0.5])}
TRUTH = np.array([p @ CHANCE for p in POLICIES.values()])


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    action = rng.choice(3, size=rows, p=LOGGER)
    found = {"payoff": (rng.random(rows) < CHANCE[action]) * 1.0, "log_propensity": np.log(LOGGER[action])}
    return found | {f"log_likelihood:{name}": np.log(p)[action] for name, p in POLICIES.items()}


def test_the_bound_is_where_the_definition_reaches_the_level():
    rng = np.random.default_rng(1)
    x = rng.exponential(0.4, 700)
    bets = RunningBets(700, 0.02)
    growth = bets.growth()
    for part in np.split(x, [1, 30, 333]):
        growth.add([part])
    bound = bets.lower_bound(growth.total(), 0.0, 1.0)
    exponents = np.arange(-14, 5)
    prior = 1 / (16 + (exponents + 5.0) ** 2)
    wealth = [np.exp(np.log1p(stake * x).sum() - 700 * math.log1p(stake * bound)) for stake in 2.0**exponents]
    assert prior @ wealth / prior.sum() == pytest.approx(50.0, rel=1e-6)


def test_bounds_hold_at_every_row_at_once():
    """400 runs of 1,500 rows, looked at after each: ever wrong at error 0.2 as often as that or less.

    If the error were 0.2, this would fail one time in 1,000; exact looks, because wealth is computed at every row.
    """
    rng, failures = np.random.default_rng(2), 0
    exponents = np.arange(-14, 5)
    prior = 1 / (16 + (exponents + 5.0) ** 2)
    stakes, log_prior = 2.0**exponents, np.log(prior / prior.sum())
    for _ in range(400):
        x = rng.choice([0.0, 0.5, 4.0], size=1500, p=[0.5, 0.4, 0.1])
        wealth = np.cumsum(np.log1p(np.outer(stakes, x)) - np.log1p(stakes * x_mean)[:, None], axis=1)
        evidence = np.logaddexp.reduce(wealth + log_prior[:, None], axis=0)
        failures += evidence.max() >= math.log(1 / 0.2)
    assert 0 < failures <= stats.binom.isf(1e-3, 400, 0.2)


x_mean = 0.5 * 0.4 + 4.0 * 0.1


def test_an_evaluation_at_any_time():
    log = rd.Log(table(4000))
    found, fixed = log.evaluate(anytime=True), log.evaluate()
    assert ((found.low <= TRUTH) & (found.high >= TRUTH)).all()
    assert (found.width < 1.7 * fixed.width).all()
    sequence = found.anytime
    assert sequence.rows[0] == 64
    assert sequence.rows[-1] == 4000
    np.testing.assert_array_equal(sequence.low[-1], found.low)
    assert ((sequence.low <= TRUTH) & (sequence.high >= TRUTH)).all()
    assert "at every row at once" in found.assumptions()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["anytime"] is True
    with pytest.raises(errors.ParameterError, match="anytime=True does not take"):
        log.evaluate(anytime=True, compare="pairs")


def test_a_running_evaluation_is_its_definition_at_every_noted_row():
    """Gains and losses of all rows so far, weighted by the policy that acted; more rows than a tile has."""
    columns = table(3 * TILE, seed=5)
    running = RunningEvaluation(("now", "new"), level=0.9)
    running.add(rd.Log(columns))
    sequence = running.sequence()
    assert len(sequence.rows) == len(set(sequence.rows.tolist())) > 30
    weight = np.exp(columns["log_likelihood:new"] - columns["log_propensity"])
    y = columns["payoff"]
    for at in (0, 5, -5, -1):
        rows = sequence.rows[at]
        for values, found in ((weight * y, sequence.low[at, 1]), (weight * (1 - y), 1 - sequence.high[at, 1])):
            bets = RunningBets(rows, 0.1 / 4)
            growth = np.log1p(bets.stakes.T * values[:rows]).sum(axis=1)[None, :]
            assert found == pytest.approx(bets.lower_bound(growth, 0.0, 1.0), abs=1e-11)
    assert running.estimate()[1] == pytest.approx((weight * y).sum() / weight.sum(), rel=1e-12)


def test_tiles_end_where_they_do_wherever_a_log_begins():
    """Ends of pieces that are whole tiles are the same; the others lie between them."""
    whole = set(tile_ends(0, 10**6, 8 * TILE))
    for cut in (1, 64, 100, 12_345, 500_000):
        first, second = list(tile_ends(0, cut, TILE)), [cut + end for end in tile_ends(cut, 10**6 - cut, TILE)]
        assert first[-1] == cut
        assert second[-1] == 10**6
        kept = {end for end in [*first, *second] if ends_tile(end)}
        assert whole - {10**6} <= kept
        assert [end for end in [*first, *second] if not ends_tile(end)] in ([10**6], [cut, 10**6])
        assert max(np.diff([0, *first, *second])) <= TILE


@pytest.mark.parametrize("cut", [1, 63, 64, 1000, 1031])
def test_saved_sums_and_new_rows_are_all_rows_at_once(tmp_path, cut):
    columns = table(2000, seed=3)
    first, second = ({k: v[part] for k, v in columns.items()} for part in (slice(0, cut), slice(cut, None)))
    whole = RunningEvaluation(("now", "new"))
    whole.add(rd.Log(columns, chunk_rows=77))
    running = RunningEvaluation(("now", "new"))
    running.add(rd.Log(first), "monday")
    running.save(tmp_path / "sums.npz")
    running = RunningEvaluation.load(tmp_path / "sums.npz")
    assert running.sources == ["monday"]
    running.add(rd.Log(second))
    for field in ("rows", "low", "high"):
        np.testing.assert_array_equal(getattr(running.sequence(), field), getattr(whole.sequence(), field))
    np.testing.assert_array_equal(running.estimate(), whole.estimate())


@pytest.mark.parametrize("cuts", [(5000, 5001, 30_000), (TILE, 4 * TILE)])
def test_several_logs_with_any_workers_are_one(cuts):
    columns = table(6 * TILE + 7, seed=6)
    whole, running = RunningEvaluation(("now", "new")), RunningEvaluation(("now", "new"))
    whole.add(rd.Log(columns), jobs=1)
    for i, (begin, end) in enumerate(zip((0, *cuts), (*cuts, None), strict=True)):
        running.add(rd.Log({k: v[begin:end] for k, v in columns.items()}), jobs=1 + i % 3)
    assert running.rows == whole.rows == 6 * TILE + 7
    for field in ("rows", "low", "high"):
        np.testing.assert_array_equal(getattr(running.sequence(), field), getattr(whole.sequence(), field))
    np.testing.assert_array_equal(running.estimate(), whole.estimate())


def test_what_does_not_fit_is_refused(tmp_path):
    running = RunningEvaluation(("now",))
    with pytest.raises(errors.LogError, match="cannot be added to the sums"):
        running.add(rd.Log(table(100)))
    (tmp_path / "x.npz").write_text("nothing")
    with pytest.raises(errors.StateError, match="does not hold saved sums"):
        RunningEvaluation.load(tmp_path / "x.npz")
    state = running.state()
    state["about"]["version"] = 99
    with pytest.raises(errors.StateError, match="version 99"):
        RunningEvaluation.of(state)


def test_a_watched_folder(tmp_path, monkeypatch, capsys):
    columns = pl.DataFrame(table(900, seed=4))

    def look(*more):
        monkeypatch.setattr(sys, "argv", ["randomist", "evaluate", str(tmp_path), "--watch", "--every", "0", *more])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    columns[:400].write_parquet(tmp_path / "monday.parquet")
    assert "monday.parquet: 400 rows" in look()[1].out
    columns[400:].write_csv(tmp_path / "tuesday.csv")
    code, printed = look()
    assert code == 0
    assert "monday" not in printed.out
    assert "tuesday.csv: 900 rows; now 0." in printed.out
    whole = rd.Log(columns).evaluate(anytime=True)
    np.testing.assert_array_equal(RunningEvaluation.load(tmp_path / "randomist.npz").interval()[0], whole.low)
    assert (tmp_path / "out" / "evaluate.png").exists()
    assert look("--level", "0.9")[0] == 1
