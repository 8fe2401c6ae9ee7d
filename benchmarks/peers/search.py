"""The loop that all methods share. A method is a generator: it yields what to play, and is sent the return.

The loop, not the method, counts episodes, plays the start first and keeps points in the box: no method can forget to.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.problems import EPISODES, SEARCH, Array, Problem, generator


class Play(NamedTuple):
    """What a method does next: play a point of the unit box, and recommend one were it asked now."""

    point: Array  # (d,)
    recommended: Array | Callable[[], Array]  # (d,), or what computes it, where that is dear
    ahead: Array | None = None  # this point and those sure to follow it, whatever they return  (n, d)
    scout: bool = False  # whether the method plays it to see, not to earn


Search = Generator[Play, float, None]
ABREAST = 32  # episodes at once, at most


class Trace(NamedTuple):
    """What happened: the return of every episode, exploration included, and the policy that was recommended last."""

    payoffs: Array  # (episodes,)
    parameters: Array  # (d,)


@dataclass(frozen=True)
class Method:
    """A way to search, with the settings that tuning chooses from: the first of them are the default.

    `search(start, start_payoff, rng, **settings)` begins after the first episode, which played the start.
    """

    id: str
    title: str
    search: Callable[..., Search]
    grid: tuple[dict[str, Any], ...] = ({},)
    needs: tuple[str, ...] = ()  # packages
    most: int | None = None  # episodes of a reported run, where more of them cost too much

    @property
    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [package for package in self.needs if find_spec(package) is None]

    def __call__(self, problem: Problem, episodes: int, seed: int, **settings: Any) -> Trace:
        """Run for that many episodes, from the start that the seed draws for every method."""
        if episodes < 1:
            raise ValueError(f"episodes must be >= 1, got {episodes}")
        rng = generator(seed, EPISODES)
        start = problem.start(seed)

        def played(points: Array) -> list[tuple[Array, float]]:
            return list(zip(points, problem.returns(problem.parameters(points), rng).tolist(), strict=True))

        payoffs = [played(start[None])[0][1]]
        search = self.search(start.copy(), payoffs[0], generator(seed, SEARCH), **settings)
        play, known = next(search), deque[tuple[Array, float]]()
        while len(payoffs) < episodes:
            if not known:
                points = play.ahead if problem.abreast and play.ahead is not None else play.point[None]
                known.extend(played(points[: min(ABREAST, episodes - len(payoffs))]))
            point, payoff = known.popleft()
            if not np.array_equal(point, play.point, equal_nan=True):
                raise RuntimeError(f"{self.id} plays another point than it had announced")
            payoffs.append(payoff)
            play = search.send(payoff)
        recommended = play.recommended() if callable(play.recommended) else play.recommended
        search.close()
        return Trace(np.array(payoffs), problem.parameters(recommended))


class Followed(NamedTuple):
    """What a search did on a function of the unit cube."""

    asked: Array  # as the method gave them, in the cube or not  (rounds, d)
    played: Array  # moved to the border of the cube where they lay beyond  (rounds, d)
    payoffs: Array  # (rounds,)
    scouts: Array  # which were played to see, not to earn  (rounds,)
    recommended: Array  # after each of the marks  (marks, d)
    seconds: float  # of CPU time in the search itself


def follow(
    search: Callable[[Array, float, np.random.Generator], Search],
    evaluate: Callable[[Array, int], float],
    start: Array,
    rng: np.random.Generator,
    marks: Sequence[int],
) -> Followed:
    """Play one point after the other, the start first, up to the last of the marks, each a number of rounds.

    `evaluate(point, t)` is the payoff of a point of the cube in round t = 0, 1, ...
    """
    asked, played, scouts, recommended = [start], [start], [False], []
    payoffs, begun = [evaluate(start, 0)], time.process_time()
    steps = search(start.copy(), payoffs[0], rng)
    play, seconds = next(steps), time.process_time() - begun
    for t in range(1, max(marks) + 1):
        begun = time.process_time()
        if t in marks:
            now = play.recommended() if callable(play.recommended) else play.recommended
            recommended.append(np.clip(now, 0.0, 1.0))
        if t < max(marks):
            point = np.clip(play.point, 0.0, 1.0)
            asked.append(np.array(play.point))
            played.append(point)
            scouts.append(play.scout)
            evaluated = time.process_time()
            payoffs.append(evaluate(point, t))
            begun += time.process_time() - evaluated
            play = steps.send(payoffs[-1])
        seconds += time.process_time() - begun
    steps.close()
    return Followed(*map(np.array, (asked, played, payoffs, scouts, recommended)), seconds)


def play_all(points: Array, recommended: Array) -> Generator[Play, float, Array]:
    """Play points one after the other: `payoffs = yield from play_all(points, recommended)`.  (n, d) -> (n,)"""
    payoffs = []
    for k, point in enumerate(points):
        payoffs.append((yield Play(point, recommended, points[k:])))
    return np.array(payoffs)


def commit(point: Array) -> Search:
    """Play one point from now on."""
    ahead = np.tile(point, (ABREAST, 1))
    while True:
        yield Play(point, point, ahead)


def reevaluate(points: Array, payoffs: Array, keep: int, again: int) -> Generator[Play, float, Array]:
    """The best `keep` points by one payoff each are played `again` times; the best mean of those wins.  -> (d,)

    The payoff that a point was kept for is not in the mean: it is the luckiest of many.
    """
    best = np.argsort(-payoffs, kind="stable")[:keep]
    fresh = yield from play_all(np.repeat(points[best], again, axis=0), points[best[0]])
    chosen: Array = points[best[int(np.argmax(fresh.reshape(-1, again).mean(axis=1)))]]
    return chosen
