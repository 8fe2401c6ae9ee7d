"""Many runs at once: rounds are a loop on the device, seeds an axis of every array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from randomist._checks import whole_number
from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.histories.device_nodes import nodes_of
from randomist.importance.passes.jax import BYTES
from randomist.importance.passes.layout import BINS
from randomist.learners.base import Learner
from randomist.learners.finite.realist import Realist
from randomist.learners.registry import LearnerLike, make
from randomist.learners.trial import Trial
from randomist.simulation.run import Run
from randomist.spaces import Finite
from randomist.tasks.base import Task
from randomist.tasks.base import task as find_task
from randomist.vectorised import realist
from randomist.vectorised.backend import computing_on, device_named, memory_of
from randomist.vectorised.history import LONG, Own, Shared
from randomist.vectorised.learners import INDICES, index_of, integrates, shares, tables_of
from randomist.vectorised.spaces import Set, set_of
from randomist.vectorised.tasks import payoff_of

STREAM = 18  # of the seed: runs on a device draw other numbers than runs elsewhere
ALONE = 2**16  # decisions from which on runs are made one at a time
PARTS = 50  # of a run, after each of which a progress bar moves


@dataclass(frozen=True, eq=False)
class Runs(Sequence[Run]):
    """The runs, one after the other or all together in arrays."""

    task: Task
    learner: str
    seeds: tuple[int, ...]
    decisions: Indices  # (seeds, rounds)
    mediators: NDArray[Any]  # (seeds, rounds, *shape)
    payoffs: Array  # (seeds, rounds)
    fresh: Callable[..., Learner]  # a learner like that of the runs, which knows nothing
    own_space: bool = True  # whether decisions are those of the task's own space

    @property
    def regret(self) -> Array | None:
        """Cumulative, where expected payoffs are known.  (seeds, rounds)"""
        if self.task.optimum is None or not self.own_space:
            return None
        gaps: Array = self.task.optimum - self.task.expected_payoff()
        return np.cumsum(gaps[self.decisions], axis=1)

    def resumed(self, i: int, **settings: Any) -> Learner:
        """The learner of run i as one that is asked and told, on the CPU: the same history, then draws of its own.

        `settings` replace those of the run, such as `device`.
        """
        learner = self.fresh(**{"seed": self.seeds[i]} | settings)
        told = zip(self.decisions[i].tolist(), self.mediators[i], strict=True)
        trials = [Trial.of(learner.space, t, x, z.item() if z.ndim == 0 else z) for t, (x, z) in enumerate(told)]
        for trial in trials:
            learner.enter(trial)
        learner.tell_all(trials, self.payoffs[i].tolist())
        return learner

    def __len__(self) -> int:
        return len(self.seeds)

    @overload
    def __getitem__(self, i: int) -> Run: ...
    @overload
    def __getitem__(self, i: slice) -> list[Run]: ...
    def __getitem__(self, i: int | slice) -> Run | list[Run]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        decisions = self.decisions[i].astype(np.int64)
        regret = None
        if self.task.optimum is not None and self.own_space:
            regret = np.cumsum(self.task.optimum - self.task.expected_payoff(decisions))
        return Run(
            task=self.task.id,
            learner=self.learner,
            seed=self.seeds[i],
            decisions=decisions,
            mediators=self.mediators[i],
            payoffs=self.payoffs[i],
            regret=regret,
            recommendation=int(np.bincount(decisions).argmax()),
            notes=("run on a device: the recommendation is what was played most",),
        )


def optimize_many(
    task: str | Task,
    learner: LearnerLike | None = None,
    rounds: int = 100,
    seeds: int | Sequence[int] = 10,
    *,
    device: str = "gpu",
    space: Finite | None = None,
    progress: Callable[[int], None] | bool | None = None,
    **settings: Any,
) -> Runs:
    """One run per seed on a device of JAX, as many at a time as its memory holds.

    The tasks are the paper's, those of a box with a finite `space` to search instead: `illustrative`, `lqg`,
    `mountain-car` and `cartpole`; the learners FollowTheLeader, Optimist, Randomist, Realist and UCB1. Numbers are
    drawn on the device, from streams of its own: the same seed gives the same run on the same kind of device.

    `progress=True` shows a bar (with rich); a function is told how many rounds of all runs are done.
    """
    rounds, given = whole_number(rounds, "rounds"), find_task(task)
    chosen = tuple(range(whole_number(seeds, "seeds")) if isinstance(seeds, int) else map(int, seeds))
    searched = given.space if space is None else space
    if not isinstance(searched, Finite):
        raise ParameterError(
            f"runs over many seeds at once are for finite sets; {given.id!r} has a box: give space=Finite.grid(...)"
        )
    if learner is None:
        raise ParameterError(f"name a learner for runs on a device: {', '.join(cls.__name__ for cls in INDICES)}")
    if min(chosen) < 0:
        raise ParameterError(f"seeds must be whole numbers >= 0, got {min(chosen)}")
    fresh = partial(make, learner, given, **{"space": space} | settings)
    maker: Any = fresh(seed=0)
    if isinstance(maker.payoff_range, str) or not np.isfinite(maker.payoff_range).all():
        raise ParameterError(f"runs on a device need a payoff_range of two numbers, got {maker.payoff_range!r:.80}")
    place = device_named(device)
    with computing_on(place), _told(progress, rounds * len(chosen)) as tell:
        set_, index, payoff = set_of(searched), index_of(maker), payoff_of(given)
        if integrates(maker):
            set_ = set_._replace(nodes=nodes_of(searched, set_.members))
        alone = searched.size > ALONE
        begin, go_on = _whole_run(maker, index, payoff, rounds, searched.family.shape, alone)
        world = set_, tables_of(maker, rounds)
        length = rounds if progress is None else -(-rounds // PARTS)
        some = 1 if alone else _chunk(len(chosen), rounds, memory_of(place), shares(maker), set_)
        parts = []
        for start in range(0, len(chosen), some):
            part = np.array(chosen[start : start + some])
            filled = np.resize(part, some)  # the last chunk has the shape of the others: one program serves all
            state, found = begin(world, jnp.asarray(filled[0] if alone else filled)), []
            for t in range(0, rounds, length):  # rounds beyond the last one are thrown away
                state, out = go_on(world, state, jnp.arange(t, t + length))
                found.append([side[None] if alone else side for side in jax.device_get(out)])
                tell(start * rounds + len(part) * min(t + length, rounds))
            del state
            parts.append([np.concatenate(side, axis=1)[: len(part), :rounds] for side in zip(*found, strict=True)])
    decisions, mediators, payoffs = (np.concatenate(entries) for entries in zip(*parts, strict=True))
    mediators = mediators.reshape(*decisions.shape, *searched.family.shape)
    return Runs(given, type(maker).__name__, chosen, decisions, mediators, payoffs, fresh, space is None)


@contextmanager
def _told(progress: Callable[[int], None] | bool | None, total: int) -> Iterator[Callable[[int], None]]:
    """What is to be told how many rounds are done."""
    if progress is not True:
        yield progress or (lambda done: None)
        return
    try:
        from rich.progress import Progress
    except ImportError as missing:
        raise ImportError(
            f"a progress bar needs rich ({missing}); pip install 'randomist[run]', or give progress= a function"
        ) from missing
    with Progress() as bar:
        rounds = bar.add_task("rounds", total=total)
        yield lambda done: bar.update(rounds, completed=done)


def _chunk(seeds: int, rounds: int, memory: int, stores: bool, space: Set) -> int:
    """How many runs fit: K x T ratios each, their mixture and payoffs, what they return, and what integrals take."""
    one = rounds * (space.size * BYTES + 16 if stores else 0) + rounds * 32 + 64 * space.size
    if space.nodes is not None:  # sums at nodes, and the weights and bins of some samples
        one += 8 * (3 * space.nodes.weights.size + LONG * (2 * BINS + min(space.size, realist.EXACT)))
    most = max(1, memory // one)
    return -(-seeds // -(-seeds // most))  # chunks of one size


def _whole_run(
    maker: Any, index: Any, payoff: Any, rounds: int, shape: tuple[int, ...], alone: bool
) -> tuple[Any, Any]:
    """Compiled functions: of many seeds, or one, where runs begin; of that and some rounds, how they go on."""
    history: Any = Shared if shares(maker) else Own
    opening = maker.opening()
    first = len(opening) == 1 and maker.first is None and shares(maker)  # x_1, which every run draws itself
    order = jnp.asarray(opening if not first else [0], jnp.int32)
    low, high = maker.payoff_range

    def round_(world: Any, state: Any, t: Any) -> Any:
        (space, tables), (known, key) = world, state
        key, ties, own, drawn, paid = jax.random.split(key, 5)
        found, known = index(known, t, own, space, tables)
        indices = jnp.where(known.known, found, jnp.inf)
        luck = jnp.where(indices == indices.max(), jax.random.uniform(ties, indices.shape, jnp.float32), -1.0)
        decided = jnp.argmax(luck)
        opened = jax.random.randint(ties, (), 0, space.size) if first else order[jnp.minimum(t, len(order) - 1)]
        x = jnp.where(t < len(order), opened, decided).astype(jnp.int32)
        z = space.draw(x, drawn)
        paid_out = payoff(z.reshape(shape), paid)
        y = jnp.clip((paid_out - low) / (high - low), 0.0, 1.0)
        return (known.told(t, x, z, y, space), key), (x, z, paid_out)

    def begin(world: Any, seed: Any) -> Any:
        known = history.beginning(world[0], rounds)
        if isinstance(maker, Realist):
            known = realist.beginning(known)
        return known, jax.random.fold_in(jax.random.key(STREAM), seed)

    def go_on(world: Any, state: Any, numbers: Any) -> Any:
        return jax.lax.scan(partial(round_, world), state, numbers)

    if alone:
        return jax.jit(begin), jax.jit(go_on, donate_argnums=1)
    return (
        jax.jit(jax.vmap(begin, (None, 0))),
        jax.jit(jax.vmap(go_on, (None, 0, None)), donate_argnums=1),
    )
