"""Runs that begin with known results and end with a confirmation."""

import json
import math

import numpy as np
import pytest

import randomist as rd


def cost(x, y):
    return (x - 0.3) ** 2 + (y - 0.6) ** 2 + 0.05 * math.sin(1000 * x * y)


BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def test_a_run_confirms_its_best():
    run = rd.optimize(cost, parameters=BOX, rounds=60, direction="minimize", confirm=20)
    assert len(run.payoffs) == 80
    assert len(np.unique(run.mediators[-20:], axis=0)) == 1
    assert run.best == run.space.named(run.mediators[-1])
    assert run.best_payoff.basis == "asymptotic"
    assert run.best_payoff.low <= cost(**run.best) <= run.best_payoff.high + 1e-12
    assert "asymptotic" in run.summary()


def test_a_run_without_a_confirmation_has_the_interval_of_the_surface():
    run = rd.optimize(cost, parameters=BOX, rounds=150, direction="minimize")
    assert run.best_payoff.basis in ("surface", "unsupported")
    assert run.best_payoff.low < run.best_payoff.high


def test_known_results_begin_a_run():
    rng = np.random.default_rng(0)
    points = [{"x": x, "y": y} for x, y in rng.random((40, 2))]
    payoffs = [cost(**point) for point in points]
    run = rd.optimize(cost, parameters=BOX, rounds=10, direction="minimize", begin=(points, payoffs))
    assert len(run.payoffs) == 10
    assert cost(**run.best) < 0.1
    plain = rd.optimize(lambda z: -float(np.sum(z**2)), low=[-1, -1], high=[1, 1], rounds=5, begin=([[0, 0]], [0.0]))
    assert len(plain.payoffs) == 5


@pytest.mark.parametrize("cut", [3, 65, 70, 85])
def test_a_confirmed_run_goes_on_where_it_was_cut_off(tmp_path, cut):
    whole = rd.optimize(cost, parameters=BOX, rounds=60, confirm=20)
    calls = 0

    def dies(x, y):
        nonlocal calls
        calls += 1
        if calls == cut:
            raise KeyboardInterrupt
        return cost(x, y)

    dies.__qualname__ = dies.__name__ = "cost"
    dies.__module__ = cost.__module__
    path = tmp_path / "run.jsonl"
    rd.optimize(dies, parameters=BOX, rounds=60, confirm=20, save=path)
    again = rd.optimize(dies, parameters=BOX, rounds=60, confirm=20, save=path)
    np.testing.assert_array_equal(again.mediators, whole.mediators)
    np.testing.assert_array_equal(again.payoffs, whole.payoffs)
    assert again.best_payoff == whole.best_payoff
    lines = path.read_text().splitlines()
    assert sum("confirm" in json.loads(line) for line in lines) == 1
    once_more = rd.optimize(dies, parameters=BOX, rounds=60, confirm=20, save=path)  # nothing is left to do
    assert len(once_more.payoffs) == 80
    assert path.read_text().splitlines() == lines


def test_a_file_cut_within_the_asks_of_a_confirmation(tmp_path):
    path = tmp_path / "run.jsonl"
    whole = rd.optimize(cost, parameters=BOX, rounds=20, confirm=5, save=path)
    lines = path.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.startswith('{"confirm"'))
    path.write_text("".join(lines[: at + 3]))
    again = rd.optimize(cost, parameters=BOX, rounds=20, confirm=5, save=path)
    np.testing.assert_array_equal(again.mediators, whole.mediators)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"confirm": 0}, "confirm"),
        ({"begin": 3}, "points, payoffs"),
        ({"begin": ([[0.5, 7.0]], [1.0])}, "box"),
        ({"begin": ([[0.5, 0.5]], ["a"])}, "number"),
    ],
)
def test_refusals(settings, words):
    with pytest.raises(rd.RandomistError, match=words):
        rd.optimize(lambda z: 0.0, low=[0, 0], high=[1, 1], rounds=5, **settings)


def test_learners_without_a_confirmation_refuse():
    for settings in ({"confirm": 5}, {"begin": ([0], [1.0])}):
        with pytest.raises(rd.errors.ParameterError, match="Auto"):
            rd.optimize("illustrative", rounds=5, **settings)


def test_equal_plays_of_a_confirmation_are_no_certainty_where_payoffs_come_in_levels():
    """Chances of 0.9. Student's interval of equal plays had no width, and missed in 10 of these 40 runs.

    None is missed now. Bounds may miss one run of twenty: more than 5 of 40 would be one case in 72.
    """
    missed = 0
    for seed in range(40):
        luck = np.random.default_rng(seed)
        run = rd.optimize(
            lambda x, luck=luck: float(luck.random() < 0.9), low=0, high=1, rounds=6, confirm=10, seed=seed
        )
        found, equal = run.best_payoff, np.ptp(run.payoffs[-10:]) == 0
        assert found.basis == ("asymptotic" if not equal else "seen" if np.ptp(run.payoffs) > 0 else "unsupported")
        missed += not found.low <= 0.9 <= found.high
    assert missed <= 5
