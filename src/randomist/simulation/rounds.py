"""One round after the other: ask, call, tell; what is on disk is done again first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from randomist._json import frozen
from randomist.errors import NoDataError, ParameterError, PayoffError, PayoffOutOfRangeError, SavedRunError
from randomist.simulation.calls import Answer, Calls
from randomist.simulation.journal import Journal

if TYPE_CHECKING:
    from randomist.learners.base import Learner
    from randomist.learners.trial import Trial
    from randomist.parameters import Meaning
    from randomist.simulation.run import Run


FAILING = 5  # first calls that fail alike end a run; fewer might be chance, more are wasted


class Outcome(NamedTuple):
    """What a callback is given after every round."""

    round: int  # how many trials were told or failed so far
    trial: Trial
    parameters: dict[str, Any] | None  # by name, where they have names
    payoff: float | None  # None where it failed
    failure: str | None  # why


class AskTell(Protocol):
    """What is played: a learner, or a study."""

    @property
    def told(self) -> int: ...
    def ask(self) -> Trial: ...
    def tell(self, trial: Trial, payoff: float, /) -> None: ...
    def fail(self, trial: Trial, reason: str, /) -> None: ...


class Rounds:
    """The rounds of one run."""

    def __init__(
        self,
        learner: AskTell,
        calls: Calls,
        space: Meaning | None,
        sign: int,
        *,
        journal: Journal | None,
        draws: np.random.Generator | None,
        progress: Callable[[int], None] | None,
        callbacks: Sequence[Callable[[Outcome], Any]],
        endings: Sequence[Callable[[int], str | None]],
        fail_fast: bool,
    ) -> None:
        for callback in callbacks:
            if not callable(callback):
                raise ParameterError(f"callbacks are functions of an Outcome, got {callback!r:.80}")
        self.learner, self.space, self.sign = learner, space, sign
        self.failed: dict[int, Any] = {}  # mediators
        self.notes: list[str] = []
        self.open: dict[int, Trial] = {}  # being called
        self.asked = self.done = 0
        self._calls, self._journal, self._draws = calls, journal, draws
        self._progress, self._callbacks, self._endings = progress, callbacks, endings
        self._waiting: list[Trial] = []  # asked, and not called yet
        self._confirms: list[Trial] = []  # of a confirmation on disk: what is asked next there
        self._confirmed = -1  # how many rounds were asked before the last confirmation
        self._over = self._resumed = False
        self._doubtful = fail_fast  # until a call has a payoff, or two fail in different ways
        self._alike: list[str] = []  # why the first calls failed

    def play(self, rounds: int) -> None:
        """Go on until `rounds` trials were asked and answered, or something says that it is enough."""
        if self._journal is not None and not self._resumed:
            self._resume(self._journal.events)
        self._resumed = True
        with Interrupts() as interrupts:
            while True:
                while self._calls.free and (trial := self._next(rounds)) is not None:
                    self.open[trial.id] = trial
                    self._calls.begin(trial)
                if not self.open:
                    break
                with interrupts.allowed():
                    answers = self._calls.finished()
                for trial, answer in answers:
                    self._close(trial, answer)
                    del self.open[trial.id]
            interrupts.raise_late()

    def confirm(self, plays: int) -> None:
        """Play what is recommended now so many times more, unless the file has just that."""
        learner: Any = self.learner
        if self._confirmed < self.asked and learner.told:
            self._confirmed = self.asked
            if self._journal is not None:
                self._journal.confirm(plays)
            for trial in learner.confirm(plays):
                self._write(trial)
                self._waiting.append(trial)
        self.play(self.asked)

    def left(self) -> list[Trial]:
        """Trials that were asked and will not be answered, after something ended the run."""
        return [*self.open.values(), *self._waiting]

    def _next(self, rounds: int) -> Trial | None:
        if self._waiting:
            return self._waiting.pop(0)
        if self._over or self.asked >= rounds:
            return None
        trial = self.learner.ask()
        self.asked += 1
        self._write(trial)
        return trial

    def _write(self, trial: Trial) -> None:
        if self._journal is not None:
            self._journal.ask(trial, self._named(trial))

    def _close(self, trial: Trial, answer: Answer) -> None:
        if answer.error is not None and not answer.caught:
            raise answer.error
        payoff, reason = self._tell(trial, answer.payoff, answer.reason)
        if self._journal is not None:
            draws = None if self._draws is None else dict(self._draws.bit_generator.state)
            self._journal.close_trial(trial, payoff, reason, draws)
        self._count()
        outcome = Outcome(self.done, trial, self._named(trial), payoff, reason if payoff is None else None)
        for callback in self._callbacks:
            if callback(outcome) is True:
                self._end("a callback ended the run")
        self._look()
        if self._doubtful:
            self._doubt(payoff, reason, answer.error)

    def _doubt(self, payoff: float | None, reason: str, error: Exception | None) -> None:
        """End the run where its first calls all fail in one way: they say what is wrong with the function."""
        self._alike.append(reason)
        self._doubtful = payoff is None and reason == self._alike[0]
        if self._doubtful and len(self._alike) == FAILING:
            raised = PayoffError(reason) if error is None else error
            raised.add_note(f"the first {FAILING} calls failed so; fail_fast=False goes on")
            raise raised

    def _tell(self, trial: Trial, payoff: float | None, reason: str) -> tuple[float | None, str]:
        """Tell a payoff or a failure; one that no learner can compute with is a failure too."""
        if payoff is not None:
            try:
                self.learner.tell(trial, self.sign * payoff)
            except PayoffOutOfRangeError:
                raise
            except PayoffError as error:
                payoff, reason = None, str(error)
        if payoff is None:
            self.learner.fail(trial, reason)
            self.failed[trial.id] = trial.mediator
        return payoff, reason

    def _count(self) -> None:
        self.done += 1
        if self._progress is not None:
            self._progress(self.done)

    def _look(self) -> None:
        for ending in self._endings:
            if (why := ending(self.done)) is not None:
                self._end(why)

    def _end(self, why: str) -> None:
        if not self._over:
            self._over = True
            self.notes.append(f"{why}, after {self.done} rounds")

    def _named(self, trial: Trial) -> dict[str, Any] | None:
        return None if self.space is None else self.space.named(trial.mediator)

    # What is on disk.

    def _resume(self, events: Sequence[dict[str, Any]]) -> None:
        """Ask and tell again what was asked and told, in that order; then the learner is where it was."""
        open_trials: dict[int, Trial] = {}
        for event in events:
            try:
                if "confirm" in event:
                    learner: Any = self.learner
                    self._confirms, self._confirmed = learner.confirm(event["confirm"]), self.asked
                    continue
                if "ask" in event:
                    trial = self._asked_again(event)
                    open_trials[trial.id] = trial
                    continue
                payoff = event.get("payoff")
                trial = open_trials.pop(event["fail"] if payoff is None else event["tell"])
                self._tell(trial, payoff, event.get("reason", ""))
            except (KeyError, TypeError, ValueError) as error:
                raise SavedRunError(f"the file of the run does not fit: {event!r:.120} ({error!r:.120})") from error
            if self._draws is not None:
                self._draws.bit_generator.state = event["draws"]
            self._count()
        self._waiting = list(open_trials.values())
        for trial in self._confirms:  # it was cut off before these were written
            self._write(trial)
            self._waiting.append(trial)
        if self.done:
            self._look()

    def _asked_again(self, event: dict[str, Any]) -> Trial:
        if self._confirms:
            trial = self._confirms.pop(0)
        else:
            trial = self.learner.ask()
            self.asked += 1
        if trial.id != event["ask"]:
            raise ValueError(f"trial {trial.id} is next")
        if np.array_equal(trial.decision, event["decision"]) and np.array_equal(trial.mediator, event["mediator"]):
            return trial
        note = "the file has other trials than this version or machine asks; those of the file were taken"
        if note not in self.notes:
            self.notes.append(note)
        before = trial._replace(**{key: frozen(np.asarray(event[key])) for key in ("decision", "mediator")})
        learner: Any = self.learner
        learner.replace(before)
        return before


def carry_out(
    running: Rounds,
    rounds: int,
    confirm: int | None,
    so_far: Callable[[bool], Run],
    left: str,
    learner: Learner,
    callbacks: Sequence[Any],
    pays: bool,
) -> Run:
    """All rounds, and the plays that confirm. Ctrl-C gives what there is so far; an error carries it.

    Callbacks that have `on_begin` and `on_end` are told of both. Where a function `pays`, one payoff at least is due.
    """
    try:
        for callback in callbacks:
            if hasattr(callback, "on_begin"):
                callback.on_begin(learner, so_far(False))
        running.play(rounds)
        if confirm is not None:
            running.confirm(confirm)
        run = so_far(False)
        if pays and not len(run.payoffs):
            id_, reason = next(iter(run.failures.items()))
            first = f"the first, trial {id_}: {reason}"
            raise NoDataError(f"all {len(run.failures)} trials of {run.task} failed; {first}")
    except KeyboardInterrupt:
        running.notes.append(f"interrupted after {running.done} of {rounds} rounds{left}")
        run = so_far(True)
    except BaseException as error:
        _attach(error, run := so_far(False))
        _ended(callbacks, run, error)
        raise
    _ended(callbacks, run)
    return run


def _ended(callbacks: Sequence[Any], run: Run, error: BaseException | None = None) -> None:
    """Tell all callbacks that want to know, even where one of them raises."""
    try:
        with ExitStack() as hooks:
            for callback in reversed(callbacks):
                if hasattr(callback, "on_end"):
                    hooks.callback(callback.on_end, run, error)
    except BaseException as raised:
        _attach(raised, run)
        raise


def _attach(error: Any, run: Run) -> None:
    """Nothing is lost: the error carries what was told."""
    error.run = run
    error.add_note(f"the run so far is error.run: {len(run.payoffs)} rounds told, {len(run.failures)} failed")


class Interrupts:
    """Ctrl-C during a call is raised at once; during anything else, so that nothing is left half done, before the next.

    A second one does not wait. Other handlers than Python's own are left alone, and so are other threads.
    """

    def __init__(self) -> None:
        self._came = self._open = False
        self._handler: Any = None

    def __enter__(self) -> Interrupts:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._handler = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        self._open = True
        try:
            self.raise_late()
            yield
        finally:
            self._open = False

    def raise_late(self) -> None:
        """Raise what came while nothing could be interrupted."""
        if self._came:
            raise KeyboardInterrupt

    def _handle(self, *_: object) -> None:
        if self._open or self._came:
            raise KeyboardInterrupt
        self._came = True
