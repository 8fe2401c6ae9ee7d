"""What every task must keep: whole episodes from the generator alone, payoffs in range, expectations that hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._types import Array
from randomist.errors import TaskError
from randomist.spaces import Box, Finite
from randomist.tasks import ControlTask, GymnasiumTask, Task

_EXPECTED_EPISODES = 20_000
_LOG_ALARM = 12.5  # 5 standard errors: a false alarm has probability 2 exp(-12.5) = 7e-6 by Bernstein's inequality
_ROUNDING = 1e-9


def check_task(
    task: Task, rng: np.random.Generator | None = None, *, mediators: ArrayLike | None = None, episodes: int = 12
) -> None:
    """Raise an AssertionError that says what is wrong, if `task` breaks the contract of `Task`.

    It is played with `mediators`, by default `episodes` of them: drawn from decisions of the task's space, or normal
    parameters of its policy where it has no space.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    low, high = task.payoff_range
    bounded = math.isfinite(low) and math.isfinite(high)
    assert low < high, f"payoff_range must have low < high, got {task.payoff_range}"
    assert bounded or (low, high) == (-math.inf, math.inf), f"payoff_range is finite or (-inf, inf), got {(low, high)}"

    played = _some_mediators(task, episodes, rng) if mediators is None else np.array(mediators)
    seed = int(rng.integers(2**32))
    payoffs = _check_batch(task, played, seed)
    _check_range(task, payoffs)
    _check_episodes_are_whole(task, played, payoffs, seed)
    _check_not_finite(task, played, high, seed)
    if isinstance(task, GymnasiumTask) and task.workers > 1:
        alone = task.with_workers(1).payoff(played, np.random.default_rng(seed))
        _assert_same(alone, payoffs, f"{task.workers} worker processes must give what one process gives")
    _check_expectation(task, rng)


def _some_mediators(task: Task, n: int, rng: np.random.Generator) -> NDArray[Any]:
    if task.space is not None:
        return task.space.family.sample(_some_decisions(task, n, rng), rng)
    assert isinstance(task, ControlTask), "a task without a space needs check_task(task, mediators=...)"
    return rng.standard_normal((n, task.policy.size))


def _some_decisions(task: Task, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """Decisions of the task's space; of a finite one, the first and the last are among them."""
    if isinstance(task.space, Finite):
        last = task.space.size - 1
        return np.concatenate([[0, last], rng.integers(last + 1, size=n)])[:n]
    assert isinstance(task.space, Box)
    return rng.uniform(task.space.low, task.space.high, size=(n, *task.space.family.shape))


def _check_batch(task: Task, played: NDArray[Any], seed: int) -> Array:
    """Shape, dtype, repetition; the payoffs of the mediators with this seed.  (n,)"""
    given = played.copy()
    payoffs = task.payoff(played, np.random.default_rng(seed))
    assert isinstance(payoffs, np.ndarray), f"payoff must return an array, got {type(payoffs).__name__}"
    assert payoffs.shape == (len(played),), f"payoff must have shape ({len(played)},), got {payoffs.shape}"
    assert payoffs.dtype == np.float64, f"payoff must be float64, got {payoffs.dtype}"
    assert np.array_equal(given, played), "payoff must not change the mediators it is given"
    assert np.isfinite(payoffs).any(), f"of {len(played)} mediators, none has a finite payoff: {payoffs}"
    none = task.payoff(played[:0], np.random.default_rng(seed))
    assert none.shape == (0,), f"no mediators have no payoffs, shape (0,); got {none.shape}"
    again = task.payoff(played, np.random.default_rng(seed))
    _assert_same(again, payoffs, "the same generator must give the same payoffs")
    return payoffs


def _check_episodes_are_whole(task: Task, played: NDArray[Any], payoffs: Array, seed: int) -> None:
    """Nothing of an episode reaches the next but through the generator."""
    one_by_one = np.random.default_rng(seed)
    singles = [task.payoff(mediator[None], one_by_one)[0] for mediator in played]
    _assert_same(np.array(singles), payoffs, "a batch must give what the same mediators give one by one")
    together = np.random.default_rng(seed)
    task.payoff(played, together)
    assert one_by_one.bit_generator.state == together.bit_generator.state, (
        "a batch must leave the generator where the same mediators leave it one by one"
    )
    halves, half = np.random.default_rng(seed), len(played) // 2
    parts = [task.payoff(played[:half], halves), task.payoff(played[half:], halves)]
    _assert_same(np.concatenate(parts), payoffs, "the payoffs must not depend on the size of the batch")


def _check_not_finite(task: Task, played: NDArray[Any], high: float, seed: int) -> None:
    """A policy that is not finite has no payoff; other mediators may have one, but not the best."""
    if played.dtype.kind != "f":
        return
    policy, sound = isinstance(task, ControlTask), played[[0, 0, -1]]
    expected = task.payoff(sound, np.random.default_rng(seed))
    for bad in (math.nan, math.inf, -math.inf) if policy else (math.nan,):  # infinity may be a sound mediator elsewhere
        for entry in {0, played[0].size - 1}:
            spoilt = sound.copy()
            spoilt.reshape(3, -1)[1, entry] = bad
            with np.errstate(invalid="ignore"):
                payoffs = task.payoff(spoilt, np.random.default_rng(seed))
            wrong = math.isfinite(payoffs[1]) and (policy or payoffs[1] >= high)
            assert not wrong, f"a mediator with {bad} must not look good, got the payoff {payoffs[1]}; return NaN"
            _assert_same(payoffs[[0, 2]], expected[[0, 2]], f"a mediator with {bad} must not change its neighbours")


def _check_expectation(task: Task, rng: np.random.Generator) -> None:
    """expected_payoff against the mean of many episodes, and the optimum against expected_payoff."""
    if task.space is None:
        assert task.optimum is None, "a task without a space has no optimum"
        return
    decisions = _some_decisions(task, 40, rng)
    try:
        expected = task.expected_payoff(decisions)
    except TaskError:
        assert task.optimum is None, "where expected payoffs are not known, neither is the optimum: it must be None"
        return
    assert expected.shape == (40,), f"expected_payoff of 40 decisions must have shape (40,), got {expected.shape}"
    assert np.isfinite(expected).all(), f"expected payoffs must be finite, got {expected}"
    for decision, exact in zip(decisions[:3], expected, strict=False):
        drawn = task.space.family.sample(np.repeat(decision[None], _EXPECTED_EPISODES, axis=0), rng)
        payoffs = task.payoff(drawn, rng)
        _check_range(task, payoffs)
        mean, margin = payoffs.mean(), _margin(payoffs, task)
        assert abs(mean - exact) <= margin, (
            f"expected_payoff says {exact:.6g} at decision {decision}, {_EXPECTED_EPISODES} episodes say {mean:.6g} "
            f"(± {margin:.2g})"
        )
    if task.optimum is None:
        return
    best, allowed = float(expected.max()), _ROUNDING * max(1.0, abs(task.optimum))
    if isinstance(task.space, Finite):
        best = float(task.expected_payoff().max())
        assert task.optimum <= best + allowed, f"no decision attains the optimum {task.optimum}; the best has {best}"
    assert task.optimum >= best - allowed, f"a decision is expected to pay {best}, more than the optimum {task.optimum}"


def _margin(payoffs: Array, task: Task) -> float:
    """How far a mean may stray: 5 standard errors, and where the range is known what rare payoffs may add to it."""
    n, spread = len(payoffs), float(np.ptp(task.payoff_range))
    rare = 7 * spread * _LOG_ALARM / (3 * (n - 1)) if math.isfinite(spread) and task.out_of_range != "clip" else 0.0
    return math.sqrt(2 * _LOG_ALARM * float(payoffs.var(ddof=1)) / n) + rare + _ROUNDING


def _check_range(task: Task, payoffs: Array) -> None:
    low, high = task.payoff_range
    outside = payoffs[np.isfinite(payoffs) & ((payoffs < low) | (payoffs > high))]
    assert task.out_of_range == "clip" or not outside.size, (
        f'payoffs must lie in payoff_range ({low}, {high}), got {outside[0]}; widen it or set out_of_range = "clip"'
    )


def _assert_same(ours: Array, theirs: Array, what: str) -> None:
    assert np.array_equal(ours, theirs, equal_nan=True), f"{what}; got {ours} and {theirs}"
