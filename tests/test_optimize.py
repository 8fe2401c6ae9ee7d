"""One call for a plain function: how it is called, what it may return, where it runs, when it ends."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import randomist as rd
from randomist import errors
from randomist.tasks.function import payoff_of
from tests.simulated import bowl, off

SPACE = rd.Parameters(kp=rd.Real(0.1, 100, log=True), taps=rd.Integer(1, 12), mode=rd.Choice("a", "b"))


def test_a_function_is_called_with_its_parameters_in_their_units():
    seen = []

    def simulate(kp, taps, mode):
        seen.append({"kp": kp, "taps": taps, "mode": mode})
        return bowl(kp, taps, mode)

    run = rd.optimize(simulate, parameters=SPACE, rounds=120)
    assert (run.task, run.learner, run.seed) == ("simulate", "Auto", 0)
    assert run.parameters == seen
    assert all(0.1 <= values["kp"] <= 100 and type(values["taps"]) is int and values["mode"] in "ab" for values in seen)
    assert run.payoffs.tolist() == [bowl(**values) for values in seen]
    assert set(run.best) == {"kp", "taps", "mode"}
    assert bowl(**run.best) > 0.8
    assert run.payoffs[-30:].mean() > run.payoffs[:30].mean()


def test_the_seed_alone_decides():
    a, b, c = (rd.optimize(bowl, parameters=SPACE, rounds=15, seed=seed) for seed in (1, 1, 2))
    assert a.parameters == b.parameters != c.parameters
    unseeded = rd.optimize(bowl, parameters=SPACE, rounds=15, seed=None)
    again = rd.optimize(bowl, parameters=SPACE, rounds=15, seed=unseeded.seed)
    assert unseeded.parameters == again.parameters


def test_pairs_corners_numbers_and_spaces():
    pairs = rd.optimize(bowl, parameters={"kp": (0.1, 10), "taps": rd.Integer(1, 12)}, rounds=10)
    assert set(pairs.best) == {"kp", "taps"}

    def norm(x):
        assert isinstance(x, np.ndarray)
        assert ((x >= [-1, 0]) & (x <= [1, 20])).all()
        x += 1.0  # a function may do with it what it likes
        return -float(x @ x)

    corners = rd.optimize(norm, low=[-1, 0], high=[1, 20], rounds=40)
    assert corners.best.shape == (2,)
    number = rd.optimize(lambda x: -abs(x - 2), low=0, high=5, rounds=40)
    assert isinstance(number.best, float)
    finite = rd.optimize(lambda x: 10 * x, space=rd.Finite(rd.Gaussian([0, 1, 3], 0.5)), rounds=40)
    assert (finite.learner, finite.best) == ("Realist", 2)
    boxed = rd.optimize(lambda x: -((x - 2) ** 2), "pgpe", space=rd.Box(rd.Gaussian(std=0.3), 0, 5), rounds=40)
    assert 0 <= boxed.best <= 5


def test_a_learner_by_name_with_its_settings():
    run = rd.optimize(bowl, "pgpe", parameters={"kp": (0.1, 10)}, rounds=10, step_size=0.5)
    assert run.learner == "PGPE"


def test_costs_are_minimized_and_stay_as_they_are():
    def cost(x):
        return 100 + (x - 2) ** 2

    down = rd.optimize(cost, low=0, high=5, rounds=30, direction="minimize")
    up = rd.optimize(lambda x: -cost(x), low=0, high=5, rounds=30)
    assert down.payoffs.tolist() == [cost(x) for x in np.clip(down.mediators, 0, 5).tolist()]
    np.testing.assert_array_equal(down.mediators, up.mediators)
    np.testing.assert_array_equal(down.payoffs, -up.payoffs)
    grid = rd.Finite(rd.Gaussian([0, 1, 2], 0.1))
    known = rd.optimize(lambda x: min(max(x, -1), 4), rounds=60, space=grid, direction="minimize", payoff_range=(-1, 4))
    assert known.best == 0
    task = rd.task("illustrative")
    worst = rd.optimize(task, rd.UCB1, 200, direction="minimize")
    assert worst.best == int(np.argmin(task.expected_payoff()))
    assert worst.regret is None


@pytest.mark.parametrize(
    ("value", "payoff"),
    [(1, 1.0), (2.5, 2.5), (True, 1.0), (np.float32(0.5), 0.5), (np.array(3), 3.0), (np.array([[4.0]]), 4.0)],
)
def test_numbers_of_all_kinds_are_payoffs(value, payoff):
    assert payoff_of(value) == payoff
    assert type(payoff_of(value)) is float


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "returned None, which is not a number"),
        ("3", "returned '3'"),
        (1j, "returned 1j"),
        (np.zeros(2), r"an array of shape \(2,\)"),
        (math.nan, "returned nan, which is not a finite"),
        (np.array([math.inf]), "returned inf"),
        ((1, 2), r"returned \(1, 2\)"),
        (1e200, "1e150|1e\\+150"),
        (10**400, "a whole number that is too large"),
        (np.array(0.5, dtype=object), "not a number"),
        (np.ma.masked, "a masked value"),
    ],
)
def test_anything_else_fails_the_trial_and_the_run_goes_on(value, words):
    returned = iter([value, *range(9)])
    run = rd.optimize(lambda x: next(returned), low=0, high=1, rounds=10)
    assert run.payoffs.tolist() == list(range(9))
    (reason,) = run.failures.values()
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(reason)


def test_the_first_row_of_what_happened_to_a_new_user():
    with pytest.raises(errors.TaskError, match=r'where to search bowl.*"kp": .low, high., "taps"'):
        rd.optimize(bowl, rd.Auto, rounds=50)


def narrow(kp, gain=1, *, taps):
    return 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"parameters": {"kq": (0, 1)}}, r"\(kq\).*bowl takes \(kp, taps=3, mode='a'\).*no argument is called kq.*kp"),
        ({"parameters": {"taps": (0, 1)}}, "no parameter is called kp; name them alike"),
        ({"parameters": {}}, "no parameters"),
        ({"parameters": {"kp": (0, 1)}, "low": 0, "high": 1}, "more than one"),
        ({"low": 0}, "high is missing"),
        ({"low": [1, 2], "high": [2, 2]}, "low must be below high"),
        ({"parameters": {"kp": (0, 1)}, "rounds": 0}, "rounds must be a whole number >= 1.*0"),
        ({"parameters": {"kp": (0, 1)}, "jobs": 0}, "jobs must be"),
        ({"parameters": {"kp": (0, 1)}, "timeout": 0}, "timeout must be a finite number > 0"),
        ({"parameters": {"kp": (0, 1)}, "direction": "down"}, "'maximize', 'minimize'"),
        ({"parameters": {"kp": (0, 1)}, "catch": (KeyboardInterrupt,)}, "catch must be"),
        ({"parameters": {"kp": (0, 1)}, "patience": 1}, "patience must be a whole number >= 2"),
        ({"parameters": {"kp": (0, 1)}, "until": "sure"}, "finite sets.*patience="),
        ({"space": rd.Finite(rd.Gaussian([0, 1], 1)), "until": "sure"}, "payoff_range.*patience="),
        ({"parameters": {"kp": (0, 1)}, "no_such": 1}, "Auto has no setting no_such"),
    ],
)
def test_bad_input(given, words):
    with pytest.raises(rd.RandomistError, match=f"(?s){words}"):
        rd.optimize(bowl, **given)


def test_arguments_are_checked_as_python_would():
    for function in (narrow, functools.partial(bowl, mode="b"), lambda **anything: 0.0, max):
        rd.tasks.function.FunctionTask(function, rd.Parameters(kp=(0, 1), taps=(0, 1)))
    with pytest.raises(errors.ParameterError, match="no parameter is called taps"):
        rd.tasks.function.FunctionTask(narrow, rd.Parameters(kp=(0, 1)))
    with pytest.raises(errors.TaskError, match="parameters= are those of a plain function"):
        rd.optimize("illustrative", parameters={"kp": (0, 1)})


def test_a_run_without_a_single_payoff_says_so():
    with pytest.raises(errors.NoDataError, match=r"all 4 trials of .* failed; the first, trial 0: NameError") as caught:
        rd.optimize(lambda x: nobody, low=0, high=1, rounds=4)  # noqa: F821
    assert len(caught.value.run.failures) == 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_ends_with_the_error_of_its_first_five_calls(jobs, tmp_path):
    with pytest.raises(ZeroDivisionError, match="the plant is off") as caught:
        rd.optimize(off, low=0, high=1, rounds=40, jobs=jobs, save=tmp_path / "run")
    assert len(caught.value.run.failures) == 5
    assert "fail_fast=False" in "".join(caught.value.__notes__)
    with pytest.raises(errors.NoDataError, match="all 7 trials"):
        rd.optimize(off, low=0, high=1, rounds=7, fail_fast=False)


def test_calls_that_fail_in_different_ways_or_not_all_do_not_end_a_run(tmp_path):
    calls = []

    def unsure(x):
        calls.append(x)
        if len(calls) in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11):
            raise ValueError("alike")
        return x

    assert len(rd.optimize(unsure, low=0, high=1, rounds=15).payoffs) == 5
    with pytest.raises(errors.PayoffError, match="nan"):
        rd.optimize(lambda x: math.nan, low=0, high=1, rounds=15)


def test_a_summary_says_what_was_looked_at_and_what_lies_on_a_bound():
    box = {"kp": (0, 10), "taps": rd.Integer(1, 4), "mode": rd.Choice("a", "b", "c")}
    run = rd.optimize(lambda kp, taps, mode: kp - taps + (mode == "a"), parameters=box, rounds=60)
    modes = [values["mode"] for values in run.parameters]
    most = max("abc", key=modes.count)
    assert f"mode={most} in {modes.count(most)} of 60 rounds" in run.summary()
    assert "taps=1 (lowest allowed)" in run.summary()
    inside = rd.optimize(lambda kp: -((kp - 4) ** 2), parameters={"kp": (0, 10)}, rounds=60)
    assert "bound" not in inside.summary()


def test_what_is_not_caught_carries_the_run():
    def fifth(x):
        if next(numbers) == 5:
            raise LookupError("the fifth")
        return x

    numbers = iter(range(10))
    run = rd.optimize(fifth, low=0, high=1, rounds=10)
    assert run.failures == {5: "LookupError: the fifth"}
    assert set(run.failed) == {5}
    numbers = iter(range(10))
    with pytest.raises(LookupError, match="the fifth") as caught:
        rd.optimize(fifth, low=0, high=1, rounds=10, catch=(ValueError,))
    assert len(caught.value.run.payoffs) == 5
    assert "error.run: 5 rounds told" in caught.value.__notes__[0]


def test_errors_of_tasks_and_of_ranges_carry_the_run_too():
    class Raises(rd.Task):
        id = "raises"
        space = rd.Finite(rd.Gaussian([0, 1], 1.0))

        def payoff(self, mediators, rng):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        rd.optimize(Raises(), rd.UCB1, 3)
    assert len(caught.value.run.payoffs) == 0
    assert len(rd.optimize(Raises(), rd.UCB1, 3, catch=(ArithmeticError,)).failures) == 3
    with pytest.raises(errors.PayoffOutOfRangeError) as outside:
        rd.optimize(lambda x: 7.0, space=Raises.space, rounds=3, payoff_range=(0, 1))
    assert outside.value.run.failures == {}


def test_callbacks_are_functions():
    with pytest.raises(errors.ParameterError, match="functions of an Outcome, got 3"):
        rd.optimize(lambda x: x, low=0, high=1, rounds=2, callbacks=[3])


def test_callbacks_see_every_round_and_may_end_the_run():
    outcomes, done = [], []

    def simulate(kp):
        if kp < 1:
            raise ValueError("too small")
        return kp

    def enough(outcome):
        outcomes.append(outcome)
        return outcome.round == 12

    run = rd.optimize(simulate, parameters={"kp": (0, 5)}, rounds=50, callbacks=[enough], progress=done.append)
    assert done == [outcome.round for outcome in outcomes] == list(range(1, 13))
    assert [outcome.payoff for outcome in outcomes if outcome.failure is None] == run.payoffs.tolist()
    assert {o.trial.id: o.failure for o in outcomes if o.payoff is None} == run.failures
    assert all(o.parameters == {"kp": min(max(o.trial.mediator[0], 0), 1) * 5} for o in outcomes)
    assert run.notes == ("a callback ended the run, after 12 rounds",)


def test_patience_ends_a_run_that_no_longer_improves():
    rng = np.random.default_rng(0)
    run = rd.optimize(lambda x: -((x - 0.4) ** 2) + 0.01 * rng.normal(), low=0, high=1, rounds=1000, patience=30)
    assert 60 <= len(run.payoffs) < 1000
    assert "the last 30 payoffs were no better than the 30 before" in run.notes[0]
    rising = iter(range(200))
    assert len(rd.optimize(lambda x: next(rising), low=0, high=1, rounds=200, patience=10).payoffs) == 200


def test_a_function_of_a_finite_set_until_sure():
    run = rd.optimize(
        lambda x: float(x > 0),
        rd.Identify,
        space=rd.Finite(rd.Gaussian([-2, 2], 0.5)),
        rounds=500,
        until="sure",
        payoff_range=(0, 1),
    )
    assert (run.best, run.surviving) == (1, (1,))
    assert len(run.payoffs) < 500
    assert "one decision is left" in run.notes[0]


# Callbacks that follow a run from its beginning to its end.


class Follower:
    def __init__(self):
        self.calls = []

    def on_begin(self, learner, run):
        self.calls.append(("begin", type(learner).__name__, len(run.payoffs)))

    def __call__(self, outcome):
        self.calls.append(outcome.round)

    def on_end(self, run, error):
        self.calls.append(("end", len(run.payoffs), run.interrupted, error))


@pytest.mark.parametrize("raised", [None, KeyboardInterrupt(), ZeroDivisionError()])
def test_callbacks_are_told_when_a_run_begins_and_ends(raised):
    def stops(x):
        if raised is not None and len(follower.calls) == 4:
            raise raised
        return x

    follower, plain = Follower(), []
    settings = {"parameters": {"x": (0, 1)}, "rounds": 5, "catch": (OSError,), "callbacks": [follower, plain.append]}
    if isinstance(raised, ZeroDivisionError):
        with pytest.raises(ZeroDivisionError):
            rd.optimize(stops, **settings)
    else:
        rd.optimize(stops, **settings)
    n = 5 if raised is None else 3
    interrupted, error = isinstance(raised, KeyboardInterrupt), raised if isinstance(raised, Exception) else None
    assert follower.calls == [("begin", "Auto", 0), *range(1, n + 1), ("end", n, interrupted, error)]
    assert len(plain) == n


def test_callbacks_are_told_where_all_trials_failed():
    follower = Follower()
    with pytest.raises(errors.NoDataError) as raised:
        rd.optimize(lambda x: math.nan, parameters={"x": (0, 1)}, rounds=3, callbacks=[follower])
    assert follower.calls[-1] == ("end", 0, False, raised.value)


def test_a_callback_that_raises_at_the_end_keeps_the_run_and_the_others():
    class Bad(Follower):
        def on_end(self, run, error):
            raise RuntimeError("full")

    follower = Follower()
    with pytest.raises(RuntimeError, match="full") as raised:
        rd.optimize(lambda x: x, parameters={"x": (0, 1)}, rounds=4, callbacks=[Bad(), follower])
    assert len(raised.value.run.payoffs) == 4
    assert follower.calls[-1] == ("end", 4, False, None)


def test_the_first_point_is_given_in_the_units_of_the_parameters():
    box = {"kp": rd.Real(0.1, 1000, log=True), "taps": rd.Integer(1, 9)}
    run = rd.optimize(lambda kp, taps: -kp, parameters=box, rounds=3, first={"kp": 10.0, "taps": 7})
    assert run.parameters[0] == {"kp": pytest.approx(10.0), "taps": 7}
    with pytest.raises(errors.ParameterError, match="taps: a value must be at most 9, got 12"):
        rd.optimize(lambda kp, taps: -kp, parameters=box, rounds=3, first={"kp": 10.0, "taps": 12})
