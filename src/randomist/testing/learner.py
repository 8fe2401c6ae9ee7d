"""What every learner must keep: tickets, determinism, resume, symmetry, and errors that lose nothing."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np

from randomist.errors import (
    ClosedTrialError,
    ParameterError,
    PayoffError,
    PayoffOutOfRangeError,
    RandomistError,
    UnknownTrialError,
)
from randomist.learners import load
from randomist.learners.base import Learner
from randomist.learners.finite.base import FiniteLearner
from randomist.learners.trial import Trial
from randomist.spaces import Finite, Space, space_from_state
from randomist.testing.answers import World, permuted, world

MakeLearner = Callable[..., Learner]

_PATIENCE = 600.0  # seconds that another process may take
_BAD_PAYOFFS: tuple[tuple[Any, type[Exception]], ...] = (
    (math.nan, PayoffError),
    (math.inf, PayoffError),
    ("a lot", PayoffError),
    (None, PayoffError),
    (1.5, PayoffOutOfRangeError),
    (np.array([0.5, 0.5]), RandomistError),
)


def check_learner(make: MakeLearner, space: Space, *, rounds: int = 60, other_process: bool = True) -> None:
    """Assert the contract of a learner in a space of any kind: trials are told payoffs, likelihoods or episodes.

    `make(space, **settings)` builds it: a class, or a function that adds settings of its own. It must take `seed`,
    `payoff_range` and `out_of_range`. `other_process=False` skips the one check that needs `make` to be importable.
    """
    _check_same_seed_same_run(make, space, rounds, other_process)
    _check_batch_equals_sequence(make, space)
    _check_late_and_failed_tells(make, space)
    _check_resume_equals_uninterrupted(make, space, rounds)
    _check_rescaled_payoffs_change_nothing(make, space, rounds)
    _check_bad_input_loses_nothing(make, space)
    _check_running_range(make, space, rounds)
    if isinstance(space, Finite):
        _check_permuted_decisions_permute_estimates(make, space, rounds)


def _play(learner: Learner, rounds: int, world: World) -> list[Trial]:
    trials = []
    for _ in range(rounds):
        trial = learner.ask()
        world(trial).tell(learner, trial)
        trials.append(trial)
    return trials


def _trace(make: MakeLearner, given: Space, seed: int, rounds: int) -> list[Trial]:
    space = space_from_state(given.state())  # of classes that this process knows, since `given` was sent to it
    return _play(make(space, seed=seed), rounds, world(space))


def _assert_same_trials(ours: list[Trial], theirs: list[Trial], what: str) -> None:
    assert len(ours) == len(theirs), what
    for a, b in zip(ours, theirs, strict=True):
        same = a.id == b.id and np.array_equal(a.decision, b.decision) and np.array_equal(a.mediator, b.mediator)
        assert same, f"{what}: {a} became {b}"


def _check_same_seed_same_run(make: MakeLearner, space: Space, rounds: int, other_process: bool) -> None:
    first, again, other = (_play(make(space, seed=seed), rounds, world(space)) for seed in (3, 3, 4))
    _assert_same_trials(first, again, "the same seed must give the same run")
    differ = any(not np.array_equal(a.mediator, b.mediator) for a, b in zip(first, other, strict=True))
    assert differ or _still(first + other), "another seed must give another run"
    if other_process:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            elsewhere = pool.apply_async(_trace, (make, space, 3, rounds)).get(timeout=_PATIENCE)
        _assert_same_trials(first, elsewhere, "the same seed must give the same run in another process")


def _still(trials: list[Trial]) -> bool:
    """Whether every decision has one possible mediator, so that seeds cannot show."""
    return len({(str(t.decision), str(t.mediator)) for t in trials}) == len({str(t.decision) for t in trials})


def _check_batch_equals_sequence(make: MakeLearner, space: Space) -> None:
    one, many, answer = make(space, seed=5), make(space, seed=5), world(space)
    for size in (1, 8, 3):
        sequence, batch = [one.ask() for _ in range(size)], many.ask(batch=size)
        _assert_same_trials(sequence, batch, "a batch of asks must equal the asks one by one")
        for trial in sequence:
            answer(trial).tell(one, trial)
            answer(trial).tell(many, trial.id)


def _check_late_and_failed_tells(make: MakeLearner, space: Space) -> None:
    learner, answer = make(space, seed=6), world(space)
    trials = learner.ask(batch=6)
    assert [t.id for t in learner.pending] == [t.id for t in trials]
    for trial in (trials[4], trials[1], trials[3]):
        answer(trial).tell(learner, trial)
    before = learner.state()["record"]
    learner.fail(trials[0], "the simulator crashed")
    assert learner.failures == {trials[0].id: "the simulator crashed"}
    assert _equal(before, learner.state()["record"]), "a failed trial must leave no trace in the record"
    assert learner.told == 3
    for closed in (trials[0], trials[4]):
        _assert_raises(ClosedTrialError, answer(closed).tell, learner, closed)
        _assert_raises(ClosedTrialError, learner.fail, closed)
    for unknown in (10**9, trials[2]._replace(id=-1)):
        _assert_raises(UnknownTrialError, answer(trials[2]).tell, learner, unknown)
    _play(learner, 5, answer)


def _check_resume_equals_uninterrupted(make: MakeLearner, space: Space, rounds: int) -> None:
    straight, broken, answer = make(space, seed=7), make(space, seed=7), world(space)
    for learner in (straight, broken):
        _play(learner, rounds // 2, answer)
        late = learner.ask(batch=3)
        answer(late[1]).tell(learner, late[1])
        learner.fail(late[0], "lost")
    state = broken.state()
    _assert_plain(state)
    resumed = load(state)
    assert type(resumed) is type(broken)
    assert _equal(state, resumed.state()), "state must survive a round trip"
    _assert_same_trials(straight.pending, resumed.pending, "pending trials must survive a round trip")
    for learner in (straight, resumed):
        answer(late[2]).tell(learner, late[2].id)
    _assert_same_trials(
        _play(straight, rounds, answer), _play(resumed, rounds, answer), "a resumed run must equal an uninterrupted one"
    )
    assert _equal(straight.state(), resumed.state()), "bit for bit"


def _check_rescaled_payoffs_change_nothing(make: MakeLearner, space: Space, rounds: int) -> None:
    low, high = -8.0, 24.0  # 32 y - 8 is exact in binary
    unit = _play(make(space, seed=8), rounds, world(space))
    scaled = _play(make(space, seed=8, payoff_range=(low, high)), rounds, world(space, low, high))
    _assert_same_trials(unit, scaled, "payoffs scaled with their range must change no decision")


def _check_running_range(make: MakeLearner, space: Space, rounds: int) -> None:
    """A range that grows maps the whole history anew, also after a load; a learner may say that it must know it."""
    try:
        running = make(space, seed=10, payoff_range="running")
    except ParameterError:
        return
    _play(running, rounds // 2, world(space, -8, 24))
    resumed = load(running.state())
    ours, theirs = (_play(learner, rounds // 2, world(space, -9, 31)) for learner in (running, resumed))
    _assert_same_trials(ours, theirs, "a resumed run with a running range must equal an uninterrupted one")


def _check_bad_input_loses_nothing(make: MakeLearner, space: Space) -> None:
    learner = make(space, seed=9, payoff_range=(0.0, 1.0))
    _play(learner, 10, world(space))
    trial = learner.ask()
    answer, before = world(space)(trial), learner.state()
    for payoff, error in _BAD_PAYOFFS:
        if payoff is None and answer.episode is not None:
            continue  # there it says that the rewards are all
        _assert_raises(error, answer.paying(payoff).tell, learner, trial)
        assert _equal(before, learner.state()), f"refusing {payoff!r} must change nothing"
    for batch in (0, -1, 1.5):
        _assert_raises(RandomistError, lambda batch=batch: learner.ask(batch=batch))
    answer.tell(learner, trial)
    clipping = make(space, seed=9, payoff_range=(0.0, 1.0), out_of_range="clip")
    _play(clipping, 3, lambda trial: world(space)(trial).paying(7.0))
    assert clipping.clipped == 3
    told = clipping.record.payoffs
    assert np.allclose(told, 7.0, rtol=1e-12), f"clipped payoffs are recorded as they were told, got {told} for 7"


def _check_permuted_decisions_permute_estimates(make: MakeLearner, space: Finite, rounds: int) -> None:
    """Two learners of one history, the second of which has the decisions in another order."""
    rng, answer = np.random.default_rng(2), world(space)
    order = np.concatenate([np.random.default_rng(0).permutation(space.size), np.arange(space.size, space.sources)])
    plain, shuffled = make(space, seed=1), make(permuted(space, order), seed=1)
    assert isinstance(plain, FiniteLearner)
    assert isinstance(shuffled, FiniteLearner)
    for number, decision in enumerate(rng.integers(space.size, size=rounds).tolist()):
        trial = Trial(number, decision, space.family.draw(decision, rng))
        same = trial._replace(decision=int(np.flatnonzero(order == decision)[0]))
        plain.adopt(trial)
        shuffled.adopt(same)
        answer(trial).tell(plain, trial)
        answer(trial).permuted(order).tell(shuffled, same)
    for name, ours, theirs in zip(plain.estimates()._fields, plain.estimates(), shuffled.estimates(), strict=True):
        what = f"permuting decisions must permute {name}"
        np.testing.assert_allclose(ours[order[: space.size]], theirs, rtol=1e-12, err_msg=what)


def _assert_raises(error: type[Exception], call: Callable[..., Any], *arguments: Any) -> None:
    raised: Exception | None = None
    try:
        call(*arguments)
    except error as expected:
        raised = expected
    assert raised is not None, f"expected {error.__name__}"
    assert isinstance(raised, RandomistError), f"{raised!r} is not of randomist's own tree"
    assert str(raised), "an error must say what is wrong"


def _assert_plain(state: Any, path: str = "state") -> None:
    """Only arrays of numbers, numbers, strings, booleans and None, in dicts, lists and tuples."""
    if isinstance(state, dict):
        for key, value in state.items():
            assert isinstance(key, str), f"{path} has the key {key!r}"
            _assert_plain(value, f"{path}[{key!r}]")
    elif isinstance(state, list | tuple):
        for i, value in enumerate(state):
            _assert_plain(value, f"{path}[{i}]")
    elif isinstance(state, np.ndarray):
        assert state.dtype.kind in "biuf", f"{path} is an array of {state.dtype}"
    else:
        assert state is None or isinstance(state, bool | int | float | str), f"{path} is a {type(state).__name__}"


def _equal(ours: Any, theirs: Any) -> bool:
    """Equality of states, bit for bit."""
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(_equal(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(_equal, ours, theirs))
    if isinstance(ours, np.ndarray):
        return np.array_equal(ours, theirs)
    return bool(ours == theirs)
