"""Large logs: the same bits for any number of workers, any chunks, any engine; against bets laid row by row."""

from __future__ import annotations

import json
import os
import signal
import time

import numpy as np
import polars as pl
import pytest

import randomist as rd
from randomist import errors
from randomist.importance import growth
from randomist.importance.intervals import difference_baselines
from randomist.logs import evidence, kernel, pieces
from randomist.logs.engine import Threads
from randomist.logs.source import Scan
from randomist.logs.tally import Ends, bettor
from randomist.logs.units import of_rows

ROWS = 3 * kernel.TILE + 1234


def table(rows=ROWS, seed=0, loggers=3):
    """Gaussian policies; payoffs between 0 and 1 that depend on where one is."""
    rng, means = np.random.default_rng(seed), np.linspace(-0.5, 0.9, 5)
    acted = rng.integers(0, loggers, rows)
    z = means[acted] + rng.standard_normal(rows)
    columns = {"id": np.arange(rows), "payoff": rng.beta(2, 3, rows) / (1 + np.exp(-z))}
    columns |= {f"log_likelihood:p{k}": -0.5 * (z - mean) ** 2 for k, mean in enumerate(means)}
    return columns | {"logger": np.array([f"p{k}" for k in range(loggers)])[acted]}


def bits(log, **settings):
    found = log.evaluate(**settings)
    return json.dumps(found.to_dict()), found.at_least.tolist(), found.low.tolist(), found.high.tolist()


ASKED = {
    "intervals": {},
    "pairs": {"compare": "pairs"},
    "pairs, bounds known": {"compare": "pairs", "weight_bounds": 60.0, "distance_bounds": 60.0},
    "clusters": {"cluster": "user", "compare": "pairs"},
    "anytime": {"anytime": True},
}


@pytest.mark.parametrize("loggers", [1, 3])
@pytest.mark.parametrize("asked", ASKED)
def test_any_number_of_workers_and_any_chunks_give_the_same_bits(loggers, asked, tmp_path):
    columns, settings = table(loggers=loggers), ASKED[asked]
    columns["user"] = np.random.default_rng(2).integers(0, ROWS // 3, ROWS)
    if "bounds" in asked:
        columns |= {name: np.maximum(values, -3.0) for name, values in columns.items() if name.startswith("log_")}
    pl.DataFrame(columns).write_parquet(tmp_path / "log.parquet", row_group_size=3000)
    whole = bits(rd.Log(columns), jobs=1, **settings)
    assert bits(rd.Log(columns, jobs=1, chunk_rows=777), jobs=3, **settings) == whole
    assert bits(rd.Log(tmp_path / "log.parquet", chunk_rows=5000), jobs=2, **settings) == whole


def test_rows_that_are_left_out_do_not_move_the_tiles(tmp_path):
    columns = table()
    order = np.sort(np.random.default_rng(1).choice(ROWS + 50, ROWS, replace=False))
    broken = {name: np.zeros(ROWS + 50, values.dtype) for name, values in columns.items()}
    for name, values in columns.items():
        broken[name][order] = values
    broken["id"], broken["logger"] = np.arange(ROWS + 50), broken["logger"].astype("U4")
    missing = np.setdiff1d(np.arange(ROWS + 50), order)
    broken["payoff"][missing], broken["logger"][missing] = np.nan, "p0"
    found, clean = rd.Log(broken, skip_bad_rows=True).evaluate(jobs=2), rd.Log(columns).evaluate(jobs=2)
    assert found.rows_skipped == 50
    assert found.low.tolist() == clean.low.tolist()
    assert found.mis.tolist() == clean.mis.tolist()


@pytest.mark.parametrize(("loggers", "bound"), [(1, None), (1, 40.0), (3, None)])
def test_intervals_are_those_of_bets_that_are_laid_row_by_row(loggers, bound):
    """An independent path: the bets of `tally`, fed with every row's gain and loss, as clusters and risk use them."""
    log = rd.Log({name: values for name, values in table(9000, 3, loggers).items() if name != "id"})
    if bound is not None:
        log = rd.Log({k: np.maximum(v, -3.0) if k.startswith("log_") else v for k, v in table(9000, 3, 1).items()})
    found = log.evaluate(weight_bounds=bound)
    assert not [warning for warning in found.warnings if warning.name == "drift"]  # which would change the stakes
    share = {"p0": 3.0, "p1": 3.0, "p2": 3.0}
    for k, name in enumerate(log.candidates):
        known = bound or (len(log) / log.loggers[name] if name in share and name in log.loggers else np.inf)
        ends = Ends(len(log), 0.05 / (2 * len(log.candidates)), known, same_mean=loggers == 1)
        for batch in log.batches():
            units = of_rows(batch)
            ends.add(units.gain[k], units.loss[k], units.control(k))
        assert found.low[k] == pytest.approx(ends.low(), rel=1e-9)
        assert found.high[k] == pytest.approx(ends.high(), rel=1e-9)


@pytest.mark.parametrize("loggers", [1, 3])
def test_comparisons_are_those_of_bets_that_are_laid_row_by_row(loggers):
    """An independent path: (ω_a - ω_b)(y - c) and ω_a y + ω_b (1 - y) in NumPy, with two candidates and bounds."""
    columns = {
        name: np.maximum(v, -3.0) if name.startswith("log_") else v for name, v in table(9000, 4, loggers).items()
    }
    log = rd.Log(columns, candidates=["p0", "p4"])
    found = log.evaluate(compare="pairs", weight_bounds=50.0, distance_bounds=45.0)
    bounds = [min(50.0, len(log) / log.loggers["p0"]), 50.0]
    arrays = log.arrays()
    weight = np.exp(arrays.log_likelihoods.T - arrays.log_density)
    for a, b in ((0, 1), (1, 0)):
        kinds, offsets, floors = difference_baselines(bounds[a], bounds[b], 45.0, 4 if loggers == 1 else 2)
        spans = [np.inf if c is None else max(c, 1 - c) * 45.0 for c in kinds]
        bets = bettor(9000, 0.05 / 4, offsets, floors, loggers == 1, spans)
        plain = weight[a] * arrays.payoffs + weight[b] * (1 - arrays.payoffs)
        bets.add([plain if c is None else (weight[a] - weight[b]) * (arrays.payoffs - c) for c in kinds])
        low = max(bets.lower_bound(-1.0, 1.0), found.low[a] - found.high[b])
        assert found.at_least[a, b] == pytest.approx(low, rel=1e-9)
        assert low > found.low[a] - found.high[b] + 1e-6  # what is tested is what is reported


def test_clusters_are_bet_on_as_their_sums():
    """An independent path: sums by NumPy, bets laid unit by unit."""
    columns = table(9000, 5)
    user = np.random.default_rng(6).integers(0, 3000, 9000)
    log = rd.Log(columns | {"user": user})
    found = log.evaluate(cluster="user")
    units, count = of_rows(log.arrays()), len(np.unique(user))
    codes = np.unique(user, return_inverse=True)[1]
    assert found.clusters == count
    for k, bound in enumerate(found.weight_bound):
        size = np.bincount(codes).max() * count / 9000
        ends = Ends(count, 0.05 / 10, bound * size, same_mean=False)
        gain, loss, weight = (
            np.bincount(codes, values[k]) * count / 9000 for values in (units.gain, units.loss, units.weight)
        )
        ends.add(gain, loss, weight)
        assert found.low[k] == pytest.approx(ends.low(), rel=1e-9)
        assert found.high[k] == pytest.approx(ends.high(), rel=1e-9)


def test_growth_is_the_sum_of_logarithms_where_products_leave_float64():
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.exponential(size=700), np.full(70, 1e12), np.full(701, -0.85), rng.random(3)])
    stakes = np.array([1e-6, 1e-3, 0.5, 1.0])
    found, cap = np.zeros(4), 1e9
    growth.grow(values, len(values), stakes, cap, np.empty(4), found)
    naive = np.log1p(stakes[:, None] * np.minimum(values, cap)).sum(axis=1)
    assert found == pytest.approx(naive, rel=1e-11)


def test_weights_far_outside_float64_are_merged_with_others():
    """Tiles with weights of e^-900 and of e^650 beside usual ones; estimates stay in the range of the payoffs."""
    columns = table(2 * kernel.TILE + 100, loggers=1)
    likelihood = columns["log_likelihood:p1"]
    likelihood[: kernel.TILE] -= 900.0
    columns = {name: columns[name] for name in ("payoff", "logger", "log_likelihood:p0")} | {
        "log_likelihood:p1": likelihood
    }
    found = rd.Log(columns).evaluate()
    rest = slice(kernel.TILE, None)
    weight = np.exp(likelihood[rest] - columns["log_likelihood:p0"][rest])
    assert found.self_normalised[1] == pytest.approx((weight * columns["payoff"][rest]).sum() / weight.sum(), rel=1e-9)
    likelihood[rest] += 650.0
    found = rd.Log(columns).evaluate()
    assert found.self_normalised[1] == pytest.approx((weight * columns["payoff"][rest]).sum() / weight.sum(), rel=1e-9)
    likelihood[:] -= 1e6
    assert 0.0 <= rd.Log(columns).evaluate().self_normalised[1] <= 1.0


def test_pieces_have_the_same_tiles_whatever_their_length():
    frame = pl.DataFrame({"x": np.arange(200_000)})

    def starts(at):
        found = []
        for piece in pieces.cut([frame[:12345], frame[12345:70_001], frame[70_001:]], at):
            assert piece.frame()["x"].to_list() == list(range(piece.start, piece.start + piece.rows))
            found += range(piece.start, piece.start + piece.rows, kernel.TILE)
        return found

    span = pieces.longest(5)
    assert pieces.longest(900) < span
    assert starts(pieces.ends(span, True)) == starts(pieces.ends(pieces.REMOTE * span, True))
    assert starts(pieces.ends(span, True)) == starts(pieces.ends(pieces.longest(900), True))
    assert starts(pieces.ends(span, False)) == list(range(0, 200_000, kernel.TILE))
    remote = list(pieces.elsewhere(Scan(frame.lazy()), 200_000, pieces.ends(pieces.REMOTE * span, True)))
    assert pl.concat([piece.frame() for piece in remote]).equals(frame)


def test_results_come_in_order_and_few_are_on_their_way():
    asked = []

    def items():
        for i in range(20):
            asked.append(i)
            yield i

    workers = Threads(3)
    found = workers.map(lambda i, more: (time.sleep(0.001 * (i % 3)), i + more)[1], items(), 100)
    assert next(found) == 100
    assert len(asked) <= 5
    assert list(found) == list(range(101, 120))
    workers.close()


def test_ids_that_do_not_increase_are_still_compared():
    columns = table(3000)
    columns["id"] = columns["id"][::-1].copy()
    assert rd.Log(columns).rows == 3000
    columns["id"][[7, 2000]] = columns["id"][9]
    with pytest.raises(errors.BadRowsError, match="repeats that of an earlier row in 2 rows"):
        rd.Log(columns)


def test_unknown_engines_and_jobs_are_refused():
    log = rd.Log(table(300))
    with pytest.raises(errors.ParameterError, match="engine must be"):
        log.evaluate(engine="spark")
    with pytest.raises(errors.ParameterError, match="jobs"):
        log.evaluate(jobs=0)
    with pytest.raises(errors.ParameterError, match="jobs"):
        rd.Log(table(300), jobs=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_bits_when_a_worker_is_killed(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    pl.DataFrame(table(40 * kernel.TILE, loggers=1)).write_parquet(tmp_path / "log.parquet")
    log = rd.Log(tmp_path / "log.parquet")
    whole, in_memory = bits(log, jobs=2), bits(rd.Log(table(20_000)))
    monkeypatch.setattr(evidence, "summed", dies_once(tmp_path / "died"))
    assert bits(log, engine="ray", jobs=2) == whole
    assert (tmp_path / "died").exists()
    assert bits(rd.Log(table(20_000)), engine="ray", jobs=2) == in_memory  # these workers are sent their rows
    monkeypatch.undo()
    ray.init(num_cpus=2, log_to_driver=False)  # once for all that follows
    try:
        same_bits_for_all_that_is_asked(tmp_path, "ray")
    finally:
        ray.shutdown()


def dies_once(mark):
    """The work of `summed`; whoever gets the first long piece is killed in the middle of it."""

    def work(piece, *shared):
        if piece.start > 10_000 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return pieces.summed(piece, *shared)

    return work


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dask_gives_the_same_bits_when_a_worker_is_killed(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    pl.DataFrame(table(40 * kernel.TILE, loggers=1)).write_parquet(tmp_path / "log.parquet")
    log = rd.Log(tmp_path / "log.parquet")
    whole = bits(log, jobs=2)
    monkeypatch.setattr(evidence, "summed", dies_once(tmp_path / "died"))
    assert bits(log, engine="dask", jobs=2) == whole
    assert (tmp_path / "died").exists()
    monkeypatch.undo()
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None):  # once for all that follows
        same_bits_for_all_that_is_asked(tmp_path, "dask")


def same_bits_for_all_that_is_asked(folder, engine):
    columns = table()
    columns["user"] = np.random.default_rng(2).integers(0, ROWS // 3, ROWS)
    columns |= {name: np.maximum(values, -3.0) for name, values in columns.items() if name.startswith("log_")}
    pl.DataFrame(columns).write_parquet(folder / "asked.parquet")
    log = rd.Log(folder / "asked.parquet")
    for settings in ASKED.values():
        assert bits(log, engine=engine, jobs=2, **settings) == bits(log, jobs=1, **settings)
