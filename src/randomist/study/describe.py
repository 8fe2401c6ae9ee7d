"""Learners as JSON, for the command line and the service.

    {"learner": "randomist", "settings": {"perturbation_scale": 1.1, "seed": 0},
     "space": {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1, 2], "std": 2}}}

A space is `Finite` (a `family` with members, or `families`, a list), `Box` (`family`, `low`, `high`), or `Grid` (a
`Finite` of `points` per dimension between `low` and `high`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from randomist.errors import ParameterError, RandomistError
from randomist.families import family_from_state
from randomist.learners import LEARNERS, Learner
from randomist.spaces import Box, Finite, Space

MOST_POINTS = 20_000  # of a grid
KINDS = {
    "Finite": {"family", "families"},
    "Box": {"family", "low", "high"},
    "Grid": {"family", "low", "high", "points"},
}


def learner_from(name: Any, space: Any, settings: Any = None) -> Learner:
    """A learner that works: it was asked and told once, on trial."""
    cls = LEARNERS.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ParameterError(f"unknown learner {str(name)[:60]!r}; known learners: {', '.join(LEARNERS)}")
    return made(cls, space_from(space), dict(settings or {}))


def made(cls: type[Learner], space: Space, settings: dict[str, Any]) -> Learner:
    """A learner of these settings, or the reason why there is none."""
    try:
        chosen: dict[str, Any] = {
            key: tuple(v) if key == "payoff_range" and isinstance(v, list) else v for key, v in settings.items()
        }
        if chosen.get("seed", 0) is None:
            chosen["seed"] = int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
        probe = cls(space, **chosen)
        low, high = probe._scale.low, probe._scale.high
        payoff = (low + high) / 2 if np.isfinite([low, high]).all() else 0.0
        for _ in range(2):
            probe.tell(probe.ask(), payoff)
        probe.recommend()
        return cls(space, **chosen)
    except RandomistError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, MemoryError) as error:
        raise ParameterError(f"{cls.__name__} cannot be made of these settings: {_line(error)}") from error


def space_from(description: Any) -> Space:
    """A space of its JSON form."""
    if not isinstance(description, Mapping) or description.get("kind") not in KINDS:
        raise ParameterError(
            f"a space is an object with a kind, one of {', '.join(KINDS)}; got {str(description)[:80]!r}"
        )
    entries = {key: value for key, value in description.items() if key != "kind"}
    kind, known = description["kind"], KINDS[description["kind"]]
    if not set(entries) <= known:
        raise ParameterError(f"a {kind} has {', '.join(sorted(known))}; got {', '.join(map(str, entries))[:200]}")
    try:
        if kind == "Finite":
            if "families" in entries:
                return Finite([family_from_state(family) for family in entries["families"]])
            return Finite(family_from_state(entries["family"]))
        family: Any = family_from_state(entries["family"])
        if kind == "Box":
            return Box(family, entries["low"], entries["high"])
        if np.prod(np.broadcast_to(entries["points"], family.shape or (1,)), dtype=float) > MOST_POINTS:
            raise ParameterError(f"a grid has {MOST_POINTS} points at most, got points={entries['points']!r}")
        return Finite.grid(family, entries["low"], entries["high"], entries["points"])
    except RandomistError:
        raise
    except KeyError as error:
        raise ParameterError(f"a {kind} needs {', '.join(sorted(known))}; {error} is missing") from error
    except (TypeError, ValueError, ArithmeticError, AttributeError, IndexError) as error:
        raise ParameterError(f"no {kind} can be made of {str(entries)[:200]}: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
