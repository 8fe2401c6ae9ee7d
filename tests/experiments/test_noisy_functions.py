"""The noisy functions that Auto is measured on are what they say; learners are compared on them as defined."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks import cells  # noqa: E402
from benchmarks.auto.functions import BURST, DESIGN, SETS, TABLE, Function  # noqa: E402
from benchmarks.auto.shapes import sparse, unstable_system  # noqa: E402
from benchmarks.peers.search import follow  # noqa: E402
from benchmarks.peers.standard import standard  # noqa: E402
from benchmarks.significance import holm  # noqa: E402

ALL = [pytest.param(function, id=f"{of}-{name}") for of, by_name in SETS.items() for name, function in by_name.items()]


@pytest.mark.parametrize("function", ALL)
def test_the_best_is_at_its_place_and_nowhere_exceeded(function: Function) -> None:
    rng, width = np.random.default_rng(0), function.high - function.low
    place = function.low + function.shape.place * width
    assert function.mean(place) == pytest.approx(function.best, abs=1e-9)
    near = place + 10.0 ** rng.uniform(-4, 0, (2000, 1)) * rng.normal(size=(2000, len(width))) * width
    anywhere = rng.uniform(function.low, function.high, (2000, function.dimension))
    points = np.clip(np.vstack([near, anywhere]), function.low, function.high)
    assert function.mean(points).max() <= function.best + 1e-9


@pytest.mark.parametrize("function", [case for case in ALL if "coins" not in str(case.id)])
def test_payoffs_scatter_around_the_mean(function: Function) -> None:
    """By their median, which heavy tails spare: within 5 standard errors of it, one false alarm in a million."""
    rng = np.random.default_rng(1)
    x = rng.uniform(function.low, function.high)
    payoffs = np.array([function.payoff(x, rng, t=0) for _ in range(2000)])
    spread = np.subtract(*np.percentile(payoffs, [75, 25]))
    assert abs(np.median(payoffs) - function.mean(x)) <= 5 * spread / np.sqrt(len(payoffs)) + 1e-12


@pytest.mark.parametrize("function", [case for case in ALL if "coins" in str(case.id)])
def test_coins_are_0_or_1_and_their_mean_is_the_chance(function: Function) -> None:
    """Within 5 standard errors of it, one false alarm in a million."""
    rng = np.random.default_rng(1)
    x = function.low + function.shape.place * (function.high - function.low)
    payoffs, chance = np.array([function.payoff(x, rng) for _ in range(2000)]), function.best
    assert set(payoffs.round(12)) == {0.0, 1.0}
    assert abs(payoffs.mean() - chance) <= 5 * np.sqrt(chance * (1 - chance) / 2000)


def test_a_burst_is_loud_and_ends() -> None:
    function, x = DESIGN["burst-3"], DESIGN["burst-3"].low
    spread = [
        np.std([function.payoff(x, np.random.default_rng(k), t) for k in range(200)]) for t in (99, *BURST[::49], 150)
    ]
    np.testing.assert_allclose(np.array(spread) / spread[0], [1, 50, 50, 1])


def test_a_sparse_ball_is_hit_once_in_so_many_draws() -> None:
    for d in (1, 2, 3):
        hits = (sparse(d, seed=3, draws=125).value(np.random.default_rng(d).random((200_000, d))) > 0).sum()
        assert abs(hits - 1600) < 5 * 40  # 1,600 expected, standard deviation 40


def test_the_cost_of_a_controller_is_that_of_its_simulation() -> None:
    """Long-run means of one simulation of 200,000 steps, to 2%; the best gains are those of Riccati's equation."""
    shape = unstable_system(seed=0, width=1.5)
    assert shape.value(shape.place) == pytest.approx(shape.best, rel=1e-9)
    rng = np.random.default_rng(0)
    drawn = 0.45 * rng.standard_normal((3, 3))  # the system, as its seed draws it
    a, b = drawn * 1.15 / np.abs(np.linalg.eigvals(drawn)).max(), rng.standard_normal((3, 2))
    place, gains = rng.uniform(0.3, 0.7, 6), _best_gains(a, b)
    np.testing.assert_allclose(place, shape.place)
    u = place + 0.05
    k = gains + 1.5 * (u - place).reshape(2, 3)
    noise = np.random.default_rng(1).normal(size=(200_000, 3)) * np.sqrt([0.3, 0.2, 0.1])
    state, total = np.zeros(3), 0.0
    for push in noise:
        control = -k @ state
        total += state @ state + 0.1 * control @ control
        state = a @ state + b @ control + push
    assert -total / len(noise) == pytest.approx(float(shape.value(u)), rel=0.02)
    assert shape.value(place + 100.0) == -100


def _best_gains(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """By iterating Riccati's equation."""
    p = np.eye(3)
    for _ in range(2000):
        k = np.linalg.solve(0.1 * np.eye(2) + b.T @ p @ b, b.T @ p @ a)
        p = np.eye(3) + a.T @ p @ (a - b @ k)
    return k


def test_the_two_sets_share_kinds_and_no_function() -> None:
    assert {name.rsplit("-", 1)[0] for name in DESIGN} == {name.rsplit("-", 1)[0] for name in TABLE}
    for name in DESIGN.keys() & TABLE.keys():
        assert not np.array_equal(DESIGN[name].low, TABLE[name].low)


def test_holm_corrects_as_defined() -> None:
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])
    assert holm(np.array([])).size == 0


def test_follow_plays_the_start_first_and_stays_in_the_cube() -> None:
    def evaluate(point: np.ndarray, t: int) -> float:
        seen.append((t, point))
        return float(point.sum())

    seen = list[tuple[int, np.ndarray]]()
    start = np.array([0.9, 0.95])
    run = follow(standard("auto").search(40, batch=4), evaluate, start, np.random.default_rng(0), [20, 40])
    assert [t for t, _ in seen] == list(range(40))
    np.testing.assert_array_equal(run.played, [point for _, point in seen])
    np.testing.assert_array_equal(run.played[0], start)
    assert ((run.played >= 0) & (run.played <= 1)).all()
    assert run.payoffs.shape == run.scouts.shape == (40,)
    assert run.recommended.shape == (2, 2)


def test_finished_cells_are_kept_and_a_torn_line_is_run_again(tmp_path: Path) -> None:
    path, calls = tmp_path / "cells.json", list[cells.Cell]()

    def do(cell: cells.Cell) -> cells.Row:
        calls.append(cell)
        return {"value": cell[1]}

    todo = [("a", 1), ("a", 2)]
    cells.run(todo, do, path)
    path.write_text(path.read_text()[:-5])  # a kill in the middle of the last line
    assert cells.run([*todo, ("b", 3)], do, path) == {
        ("a", 1): {"value": 1},
        ("a", 2): {"value": 2},
        ("b", 3): {"value": 3},
    }
    assert calls == [("a", 1), ("a", 2), ("a", 2), ("b", 3)]
    assert cells.run(todo, do, path, again=[("a", 1)])[("a", 1)] == {"value": 1}
    assert calls[-1] == ("a", 1)
    assert [json.loads(line)["cell"][0] for line in path.read_text().splitlines()[2:]] == ["a", "b", "a"]
