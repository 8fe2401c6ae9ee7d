"""What every learner must keep: tickets, determinism, resume, symmetry, and errors that lose nothing."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._types import Array
from randomist.errors import ClosedTrialError, PayoffError, PayoffOutOfRangeError, RandomistError, UnknownTrialError
from randomist.families import Family
from randomist.learners.base import Learner, Trial, load
from randomist.learners.finite.base import FiniteLearner
from randomist.spaces import Finite, Space, space_from_state

MakeLearner = Callable[..., Learner]


def check_learner(make: MakeLearner, space: Space, *, rounds: int = 60, other_process: bool = True) -> None:
    """Assert the contract of a learner.

    `make(space, **settings)` builds it: a class, or a function that adds settings of its own. It must take `seed`,
    `payoff_range` and `out_of_range`. `other_process=False` skips the one check that needs `make` to be importable.
    """
    _check_same_seed_same_run(make, space, rounds, other_process)
    _check_batch_equals_sequence(make, space, rounds)
    _check_late_and_failed_tells(make, space)
    _check_resume_equals_uninterrupted(make, space, rounds)
    _check_rescaled_payoffs_change_nothing(make, space, rounds)
    _check_bad_input_loses_nothing(make, space)
    _check_running_range(make, space, rounds)
    if isinstance(space, Finite):
        _check_permuted_decisions_permute_estimates(make, space, rounds)


def _payoff(trial: Trial) -> float:
    """A payoff in [0, 1] that any mediator has: bounded, irregular, exact in float64."""
    return float(round(512 * (0.5 + 0.5 * math.sin(3.7 * float(np.sum(trial.mediator)) + 0.3)))) / 512


def _play(learner: Learner, rounds: int, payoff: Callable[[Trial], float] = _payoff) -> list[Trial]:
    trials = []
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, payoff(trial))
        trials.append(trial)
    return trials


def _trace(make: MakeLearner, space_state: dict[str, Any], seed: int, rounds: int) -> list[Trial]:
    return _play(make(space_from_state(space_state), seed=seed), rounds)


def _assert_same_trials(ours: list[Trial], theirs: list[Trial], what: str) -> None:
    assert len(ours) == len(theirs), what
    for a, b in zip(ours, theirs, strict=True):
        same = a.id == b.id and np.array_equal(a.decision, b.decision) and np.array_equal(a.mediator, b.mediator)
        assert same, f"{what}: {a} became {b}"


def _check_same_seed_same_run(make: MakeLearner, space: Space, rounds: int, other_process: bool) -> None:
    first = _play(make(space, seed=3), rounds)
    _assert_same_trials(first, _play(make(space, seed=3), rounds), "the same seed must give the same run")
    other = _play(make(space, seed=4), rounds)
    assert any(not np.array_equal(a.mediator, b.mediator) for a, b in zip(first, other, strict=True)) or _still(
        first + other
    ), "another seed must give another run"
    if other_process:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            elsewhere = pool.apply(_trace, (make, space.state(), 3, rounds))
        _assert_same_trials(first, elsewhere, "the same seed must give the same run in another process")


def _still(trials: list[Trial]) -> bool:
    """Whether every decision has one possible mediator, so that seeds cannot show."""
    return len({(str(t.decision), str(t.mediator)) for t in trials}) == len({str(t.decision) for t in trials})


def _check_batch_equals_sequence(make: MakeLearner, space: Space, rounds: int) -> None:
    one, many = make(space, seed=5), make(space, seed=5)
    for size in (1, 8, 3):
        sequence, batch = [one.ask() for _ in range(size)], many.ask(batch=size)
        _assert_same_trials(sequence, batch, "a batch of asks must equal the asks one by one")
        for trial in sequence:
            one.tell(trial, _payoff(trial))
            many.tell(trial.id, _payoff(trial))


def _check_late_and_failed_tells(make: MakeLearner, space: Space) -> None:
    learner = make(space, seed=6)
    trials = learner.ask(batch=6)
    assert [t.id for t in learner.pending] == [t.id for t in trials]
    for trial in (trials[4], trials[1], trials[3]):
        learner.tell(trial, _payoff(trial))
    before = learner.state()["record"]
    learner.fail(trials[0], "the simulator crashed")
    assert learner.failures == {trials[0].id: "the simulator crashed"}
    assert _equal(before, learner.state()["record"]), "a failed trial must leave no trace in the record"
    assert learner.told == 3
    for closed in (trials[0], trials[4]):
        for close in (lambda t: learner.tell(t, 0.5), learner.fail):
            _assert_raises(ClosedTrialError, close, closed)
    _assert_raises(UnknownTrialError, lambda: learner.tell(10**9, 0.5))
    _assert_raises(UnknownTrialError, lambda: learner.tell(trials[2]._replace(id=-1), 0.5))
    _play(learner, 5)


def _check_resume_equals_uninterrupted(make: MakeLearner, space: Space, rounds: int) -> None:
    straight, broken = make(space, seed=7), make(space, seed=7)
    for learner in (straight, broken):
        _play(learner, rounds // 2)
        late = learner.ask(batch=3)
        learner.tell(late[1], _payoff(late[1]))
        learner.fail(late[0], "lost")
    state = broken.state()
    _assert_plain(state)
    resumed = load(state)
    assert type(resumed) is type(broken)
    assert _equal(state, resumed.state()), "state must survive a round trip"
    _assert_same_trials(straight.pending, resumed.pending, "pending trials must survive a round trip")
    for learner in (straight, resumed):
        learner.tell(late[2].id, _payoff(late[2]))
    _assert_same_trials(
        _play(straight, rounds), _play(resumed, rounds), "a resumed run must equal an uninterrupted one"
    )
    assert _equal(straight.state(), resumed.state()), "bit for bit"


def _check_rescaled_payoffs_change_nothing(make: MakeLearner, space: Space, rounds: int) -> None:
    plain = _play(make(space, seed=8), rounds)
    scaled = make(space, seed=8, payoff_range=(-8.0, 24.0))  # 32 y - 8: exact in binary
    trials = _play(scaled, rounds, lambda trial: 32 * _payoff(trial) - 8)
    _assert_same_trials(plain, trials, "payoffs scaled with their range must change no decision")


def _check_running_range(make: MakeLearner, space: Space, rounds: int) -> None:
    """A range that grows maps the whole history anew, also after a load."""
    running = make(space, seed=10, payoff_range="running")
    _play(running, rounds // 2, lambda trial: 32 * _payoff(trial) - 8)
    resumed = load(running.state())
    _assert_same_trials(
        _play(running, rounds // 2, lambda trial: 40 * _payoff(trial) - 9),
        _play(resumed, rounds // 2, lambda trial: 40 * _payoff(trial) - 9),
        "a resumed run with a running range must equal an uninterrupted one",
    )


def _check_bad_input_loses_nothing(make: MakeLearner, space: Space) -> None:
    learner = make(space, seed=9, payoff_range=(0.0, 1.0))
    _play(learner, 10)
    trial = learner.ask()
    before = learner.state()
    for payoff, error in (
        (math.nan, PayoffError),
        (math.inf, PayoffError),
        ("a lot", PayoffError),
        (None, PayoffError),
        (1.5, PayoffOutOfRangeError),
        (np.array([0.5, 0.5]), RandomistError),
    ):
        _assert_raises(error, lambda payoff=payoff: learner.tell(trial, payoff))
        assert _equal(before, learner.state()), f"refusing {payoff!r} must change nothing"
    for batch in (0, -1, 1.5):
        _assert_raises(RandomistError, lambda batch=batch: learner.ask(batch=batch))
    learner.tell(trial, 0.5)
    clipping = make(space, seed=9, payoff_range=(0.0, 1.0), out_of_range="clip")
    _play(clipping, 3, lambda _: 7.0)
    assert clipping.clipped == 3
    assert (clipping.record.payoffs == 7.0).all(), "clipped payoffs are recorded as they were told"


def _check_permuted_decisions_permute_estimates(make: MakeLearner, space: Finite, rounds: int) -> None:
    order = np.random.default_rng(0).permutation(space.size)
    plain, permuted = make(space, seed=1), make(Finite(_Permuted(space.family, order)), seed=1)
    assert isinstance(plain, FiniteLearner)
    assert isinstance(permuted, FiniteLearner)
    rng = np.random.default_rng(2)
    for decision in rng.integers(space.size, size=rounds).tolist():
        mediator = space.family.draw(decision, rng)
        payoff = _payoff(Trial(0, decision, mediator))
        plain._absorb(decision, mediator, payoff)
        permuted._absorb(int(np.flatnonzero(order == decision)[0]), mediator, payoff)
    for name, ours, theirs in zip(plain.estimates()._fields, plain.estimates(), permuted.estimates(), strict=True):
        np.testing.assert_allclose(
            ours[order], theirs, rtol=1e-12, err_msg=f"permuting decisions must permute {name}"
        )  # fmt: skip


class _Permuted(Family):
    """The members of a family in another order."""

    def __init__(self, family: Family, order: NDArray[np.int64]) -> None:
        self.family, self.order = family, order
        self.members, self.shape = family.members, family.shape

    @property
    def points(self) -> Array | None:
        return None if self.family.points is None else self.family.points[self.order]

    def nodes(self) -> tuple[NDArray[Any], Array]:
        points, weights = self.family.nodes()
        return points[self.order], weights[self.order]

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> NDArray[Any]:
        return self.family.sample(self.order[self._indices(decisions)], rng)

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        return self.family.log_density(self.order[self._indices(decisions)], mediators)

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        return self.family.log_renyi(self.order[self._indices(decisions)], self.order[self._indices(others)], order)


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
