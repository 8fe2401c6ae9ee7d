"""The methods as they come, on functions where nothing is tuned: settings that follow from rounds and batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.peers.methods import METHODS
from benchmarks.peers.search import Method, Search


@dataclass(frozen=True)
class Standard:
    """A method with its settings for a number of rounds, asked one by one or in batches."""

    method: Method
    settings: Callable[[int, int], dict[str, Any]] = lambda rounds, batch: {}

    def search(self, rounds: int, batch: int = 1) -> Callable[..., Search]:
        return partial(self.method.search, **self.settings(rounds, batch))


def _batch(rounds: int, batch: int) -> dict[str, Any]:
    return {"batch": batch}


def _population(rounds: int, batch: int) -> dict[str, Any]:
    return {"population": batch} if batch > 1 else {}


def _half(rounds: int, batch: int) -> dict[str, Any]:
    return {"points": rounds // 2, "keep": 8, "again": 4}


def _throughout(rounds: int, batch: int) -> dict[str, Any]:
    return {"explore": rounds, "batch": batch}


def _commit(rounds: int, batch: int) -> dict[str, Any]:
    return {"explore": max(40, rounds // 6), "batch": batch}


STANDARD = {
    "auto": Standard(METHODS["auto"], _batch),
    "cma": Standard(METHODS["cma-es"], _population),
    "random": Standard(METHODS["random-search"]),
    "etc": Standard(METHODS["explore-then-commit"], _half),  # half of the rounds
    "etc-10": Standard(METHODS["explore-then-commit"]),  # ten points
    "tpe": Standard(METHODS["tpe"], _throughout),
    "tpe-commit": Standard(METHODS["tpe"], _commit),
    "gp": Standard(METHODS["gp"], _throughout),
    "gp-commit": Standard(METHODS["gp"], _commit),
    "turbo": Standard(METHODS["turbo"], _throughout),
    "ars": Standard(METHODS["ars"]),
    "pgpe": Standard(METHODS["pgpe"]),
}


def standard(name: str) -> Standard:
    """A method by name; what follows a colon is the user's own label: `auto:wider` is `auto`."""
    key = name.partition(":")[0]
    if key not in STANDARD:
        raise SystemExit(f"no method is called {key}; there are {', '.join(STANDARD)}")
    if missing := STANDARD[key].method.missing:
        raise SystemExit(f"{key} needs packages that are not installed: {', '.join(missing)}")
    return STANDARD[key]
