"""Many runs at once: rounds are a loop on the device, seeds an axis of every array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import jax
import numpy as np
from numpy.typing import NDArray

from randomist._checks import whole_number
from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.learners.registry import LearnerLike, make
from randomist.simulation.run import Run
from randomist.spaces import Finite
from randomist.tasks.base import Task
from randomist.tasks.base import task as find_task
from randomist.vectorised.backend import computing_on, device_named, memory_of
from randomist.vectorised.history import BYTES, Own, Shared
from randomist.vectorised.learners import INDICES, index_of, shares
from randomist.vectorised.spaces import Set, set_of
from randomist.vectorised.tasks import payoff_of

STREAM = 18  # of the seed: runs on a device draw other numbers than runs elsewhere


@dataclass(frozen=True, eq=False)
class Runs(Sequence[Run]):
    """The runs, one after the other or all together in arrays."""

    task: Task
    learner: str
    seeds: tuple[int, ...]
    decisions: Indices  # (seeds, rounds)
    mediators: NDArray[Any]  # (seeds, rounds, *shape)
    payoffs: Array  # (seeds, rounds)

    @property
    def regret(self) -> Array | None:
        """Cumulative, where expected payoffs are known.  (seeds, rounds)"""
        if self.task.optimum is None:
            return None
        gaps: Array = self.task.optimum - self.task.expected_payoff()
        return np.cumsum(gaps[self.decisions], axis=1)

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
        if self.task.optimum is not None:
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
    progress: Callable[[int], None] | None = None,
    **settings: Any,
) -> Runs:
    """One run per seed on a device of JAX, as many at a time as its memory holds; `progress` is told how many are done.

    The tasks are the paper's `illustrative` and `lqg`, the learners FollowTheLeader, Optimist, Randomist and UCB1.
    Numbers are drawn on the device, from streams of its own: the same seed gives the same run on the same kind of
    device.
    """
    rounds, given = whole_number(rounds, "rounds"), find_task(task)
    chosen = tuple(range(whole_number(seeds, "seeds")) if isinstance(seeds, int) else map(int, seeds))
    if not isinstance(given.space, Finite):
        raise ParameterError(f"runs over many seeds at once are for finite sets; {given.id!r} has a box")
    if learner is None:
        raise ParameterError(f"name a learner for runs on a device: {', '.join(cls.__name__ for cls in INDICES)}")
    if min(chosen) < 0:
        raise ParameterError(f"seeds must be whole numbers >= 0, got {min(chosen)}")
    maker = make(learner, given, **{"seed": 0, **settings})
    if isinstance(maker.payoff_range, str) or not np.isfinite(maker.payoff_range).all():
        raise ParameterError(f"runs on a device need a payoff_range of two numbers, got {maker.payoff_range!r:.80}")
    place = device_named(device)
    with computing_on(place):
        space, index, payoff = set_of(given.space), index_of(maker), payoff_of(given)
        whole = _whole_run(maker, space, index, payoff, rounds)
        some = _chunk(len(chosen), space.size, rounds, memory_of(place), shares(maker))
        parts = []
        for start in range(0, len(chosen), some):
            part = np.array(chosen[start : start + some])
            filled = np.resize(part, some)  # the last chunk has the shape of the others: one program serves all
            found = jax.device_get(whole(jax.numpy.asarray(filled)))
            parts.append([entry[: len(part)] for entry in found])
            if progress is not None:
                progress(start + len(part))
    decisions, mediators, payoffs = (np.concatenate(entries) for entries in zip(*parts, strict=True))
    low, high = maker.payoff_range
    return Runs(given, type(maker).__name__, chosen, decisions, mediators, low + (high - low) * payoffs)


def _chunk(seeds: int, size: int, rounds: int, memory: int, stores: bool) -> int:
    """How many runs fit: K x T ratios each, their mixture and payoffs, and what they return."""
    one = rounds * (size * BYTES + 16 if stores else 0) + rounds * 32 + 64 * size
    most = max(1, memory // one)
    return -(-seeds // -(-seeds // most))  # chunks of one size


def _whole_run(maker: Any, space: Set, index: Any, payoff: Any, rounds: int) -> Any:
    """A compiled function of many seeds: decisions, mediators and payoffs in [0, 1] of all rounds."""
    jnp, history = jax.numpy, Shared if shares(maker) else Own
    opening = maker.opening()
    first = len(opening) == 1 and maker.first is None and shares(maker)  # x_1, which every run draws itself
    order = jnp.asarray(opening if not first else [0], jnp.int32)
    low, high = maker.payoff_range

    def round_(state: Any, t: Any) -> Any:
        known, key = state
        key, ties, own, drawn, paid = jax.random.split(key, 5)
        indices = index(known.seen(t, maker.confidence), own)
        indices = jnp.where(known.effective > 0 if history is Shared else known.plays > 0, indices, jnp.inf)
        luck = jnp.where(indices == indices.max(), jax.random.uniform(ties, indices.shape, jnp.float32), -1.0)
        decided = jnp.argmax(luck)
        opened = jax.random.randint(ties, (), 0, space.size) if first else order[jnp.minimum(t, len(order) - 1)]
        x = jnp.where(t < len(order), opened, decided).astype(jnp.int32)
        z = space.draw(x, drawn)
        y = jnp.clip((payoff(z, paid) - low) / (high - low), 0.0, 1.0)
        return (known.told(t, x, z, y, space), key), (x, z, y)

    def run(seed: Any) -> Any:
        key = jax.random.fold_in(jax.random.key(STREAM), seed)
        return jax.lax.scan(round_, (history.empty(space.size, rounds), key), jnp.arange(rounds))[1]

    return jax.jit(jax.vmap(run))
