"""What several tests of studies share: every learner, rounds played, work in threads, databases edited by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import sqlalchemy as sa

import randomist as rd
from randomist.study.storages.sql.urls import parse
from tests.problems import GAUSSIANS, RECTANGLE, payoff

SIXTH = rd.Gaussian([1.4], [0.7])  # a decision that comes to the five of GAUSSIANS
SIX = rd.Finite(rd.Gaussian([0, 1, 2, 2.95, 3, 1.4], [2, 2, 2, 0.1, 2, 0.7]))
SETTINGS: dict[str, dict[str, Any]] = {"pgpe": {"batch": 4}, "pois": {"batch": 4}, "grid-optimist": {"kappa": 3.0}}


def make(name: str, seed: int = 0, **settings: Any) -> rd.Learner:
    """A learner of the command line's table, on a space that fits it."""
    cls = rd.LEARNERS[name]
    space = GAUSSIANS if issubclass(cls, rd.FiniteLearner) else RECTANGLE
    return cls(space, seed=seed, **SETTINGS.get(name, {}) | settings)


def play(study: rd.Study | rd.Learner, rounds: int) -> list[rd.Trial]:
    trials = []
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, payoff(trial))
        trials.append(trial)
    return trials


def same(ours: Any, theirs: Any) -> bool:
    """Trials, or lists of them, bit for bit."""
    if isinstance(ours, rd.Trial):
        return ours.id == theirs.id and all(map(np.array_equal, ours[1:], theirs[1:]))
    return len(ours) == len(theirs) and all(map(same, ours, theirs))


def at_once(work: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
    """`work` on each argument, all at the same time in threads: what it returned, or the first error."""
    given = list(arguments)
    with ThreadPoolExecutor(len(given)) as threads:
        return list(threads.map(work, given))


def edit(url: str, statement: str, **values: Any) -> int:
    """A change behind the back of the library: how many rows it met."""
    with connected(url) as connection, connection.begin():
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA ignore_check_constraints=ON")
        plain = statement if values else statement.replace(":", "\\:")
        return connection.execute(sa.text(plain), values).rowcount


def query(url: str, statement: str) -> list[tuple[Any, ...]]:
    with connected(url) as connection:
        return [tuple(row) for row in connection.execute(sa.text(statement))]


@contextlib.contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    engine = sa.create_engine(parse(url))
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
