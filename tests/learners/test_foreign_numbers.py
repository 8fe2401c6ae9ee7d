"""Values of other libraries that become numbers: real ones do, and nothing else does, wherever they come in."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import randomist as rd
from randomist import errors


class Raises:
    """What a library may hand over: looking at it fails."""

    def __float__(self):
        raise RuntimeError("no memory on the device")

    def __repr__(self):
        raise RuntimeError("no memory on the device")


class Odd(Raises):
    def __float__(self):
        return "0.5"


class Half:
    """A number of another library."""

    shape = ()

    def __float__(self):
        return 0.5

    def item(self):
        return 0.5


NO_NUMBERS = {
    "complex": 1 + 0j,
    "NumPy's complex": np.complex128(1),
    "array of complex": np.array(1 + 0j),
    "text": "0.5",
    "bytes": b"0.5",
    "bytearray": bytearray(b"0.5"),
    "memory": memoryview(b"0.5"),
    "array of text": np.array("0.5"),
    "array of bytes": np.array(b"0.5"),
    "text as an object": np.array("0.5", dtype=object),
    "time": np.datetime64(1, "s"),
    "time in an array": np.array(1, "m8[s]"),
    "masked": np.ma.masked,
    "masked array": np.ma.array(0.5, mask=True),
    "nothing": None,
    "raises": Raises(),
    "odd": Odd(),
    "huge": 10**400,
    "a list": [0.5],
    "a class": float,
}
NUMBERS = [0.5, np.float32(0.5), np.float64(0.5), np.longdouble(0.5)]
NUMBERS += [np.array(0.5), Half(), Decimal("0.5"), Fraction(1, 2)]
SPACE = rd.Finite(rd.Gaussian(mean=[0.0, 1.0], std=1.0))


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_number_is_no_payoff(kind):
    value, learner = NO_NUMBERS[kind], rd.UCB1(SPACE)
    trial = learner.ask()
    for tell in (learner.tell, lambda trial, payoff: learner.tell_all([trial], [payoff])):
        with pytest.raises(errors.PayoffError, match="a payoff is a finite number, got"):
            tell(trial, value)
    learner.tell(trial, 0.25)
    assert learner.record.payoffs.tolist() == [0.25]


@pytest.mark.parametrize("kind", [kind for kind in NO_NUMBERS if kind != "nothing"])
def test_what_is_no_number_fails_its_trial_and_not_the_run(kind):
    value = NO_NUMBERS[kind]
    if kind == "a list":
        value = [0.5, 0.5]
    calls = []

    def simulate(x):
        calls.append(x)
        return value if len(calls) == 2 else x

    run = rd.optimize(simulate, parameters={"x": (0, 1)}, rounds=4, seed=0)
    assert len(calls) == 4
    assert len(run.payoffs) == 3
    assert next(iter(run.failures.values())).startswith("returned ")


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: type(value).__name__)
def test_real_numbers_of_any_library_are_payoffs(value):
    learner = rd.UCB1(SPACE)
    learner.tell(learner.ask(), value)
    assert learner.record.payoffs.tolist() == [0.5]
    run = rd.optimize(lambda x: value, parameters={"x": (0, 1)}, rounds=2, seed=0)
    assert run.payoffs.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("wrong", [np.array([0j, -1]), np.array(["-1", "-2"]), [None, -1.0], [Raises(), -1.0]])
def test_what_is_no_number_is_no_likelihood_and_no_setting(wrong):
    learner = rd.Realist(rd.Finite.likelihoods(2))
    trial = learner.ask()
    with pytest.raises(errors.MediatorError, match="log_likelihoods must be numbers"):
        learner.tell(trial, 0.5, log_likelihoods=wrong)
    learner.tell(trial, 0.5, log_likelihoods=[-1.0, -math.inf] if trial.decision == 0 else [-math.inf, -1])
    with pytest.raises(errors.ParameterError, match="must be a number or an array of numbers"):
        rd.Gaussian(mean=wrong, std=1.0)
    with pytest.raises(errors.RandomistError):
        rd.Box(rd.Gaussian(std=[0.1, 0.1]), low=wrong, high=[5, 5])


@pytest.mark.parametrize("wrong", ["0.5", np.complex128(1), Raises(), None])
def test_a_task_that_pays_no_number_fails_the_trial(wrong):
    class Strange(rd.Task):
        id, payoff_range, space = "strange", (0.0, 1.0), SPACE

        def __init__(self):
            self.calls = 0

        def payoff(self, mediators, rng):
            self.calls += 1
            return [wrong if self.calls == 2 else 0.5 for _ in mediators]

    run = rd.optimize(Strange(), rounds=4, seed=0)
    assert len(run.failures) == 1
    assert len(run.payoffs) == 3
