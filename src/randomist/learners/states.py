"""Saved states become learners again, also those of earlier versions."""

from __future__ import annotations

from typing import Any

from randomist._lookup import reading
from randomist.errors import RandomistError, StateError
from randomist.learners.base import FORMAT, Learner
from randomist.learners.registry import class_named
from randomist.spaces import space_from_state

GONE = {"Realist": ("deviation", "caution", "minimum")}  # settings of 0.1.0 that nothing takes any more

# What 0.1.0 called the parts of a search, in caches and, with an underscore before it, in the rows of a study.
SEARCHES = {
    "MCMCRandomist": {"current": "current"},
    "Prospector": {"last": "last"},
    "Auto": {"best": "best", "scale": "scale", "scale_now": "scale"},
}


@reading()
def load(state: dict[str, Any], *, device: str | None = None) -> Learner:
    """The learner that `state()` described; it goes on bit for bit as the saved one would have.

    `device` is where a learner that shares samples is to estimate, the CPU by default: wherever it was before, it has
    the same history, and estimates to within rounding.
    """
    try:
        learner = fresh(_placed(state, device))
        learner.restore(_upgraded(state, learner))
    except KeyError as error:
        raise StateError(f"state lacks the entry {error}; pass what `learner.state()` returned") from error
    except (TypeError, ValueError, ArithmeticError, AttributeError, IndexError, RecursionError) as error:
        if isinstance(error, RandomistError):
            raise
        raise StateError(f"state does not describe a learner: {error}; pass what `learner.state()` returned") from error
    return learner


def _placed(state: dict[str, Any], device: str | None) -> dict[str, Any]:
    return state if device is None else state | {"settings": state["settings"] | {"device": device}}


@reading()
def fresh(description: dict[str, Any]) -> Learner:
    """A learner that knows nothing yet, of the `learner`, `space` and `settings` that a state describes."""
    if type(description["format"]) is not int or description["format"] not in range(1, FORMAT + 1):
        raise StateError(
            f"state has format {description['format']!r}, this version reads 1 to {FORMAT}; it was written by a newer "
            "version: install that"
        )
    cls, gone = class_named(description["learner"]), GONE.get(description["learner"], ())
    settings = {name: value for name, value in description["settings"].items() if name not in gone}
    space = space_from_state(description["space"])
    if settings.get("seed", 0) is not None or "entropy" not in description:
        return cls(space, **settings)
    learner = cls(space, **settings | {"seed": int(description["entropy"])})  # some draw from it when they are made
    learner.disown_seed()
    return learner


def upgraded_search(learner: str, search: Any) -> dict[str, Any] | None:
    """The search of a learner as a study of 0.1.0 wrote it, in the present form; None where it had not begun."""
    names = SEARCHES.get(learner)
    if names is None or search is None:
        return None
    found = {names[name.lstrip("_")]: value for name, value in search.items() if name.lstrip("_") in names}
    return None if any(value is None for value in found.values()) else found


def _upgraded(state: dict[str, Any], learner: Learner) -> dict[str, Any]:
    """A state of this format."""
    if state["format"] == FORMAT:
        return state
    return state | {
        "format": FORMAT,
        "entropy": int(learner.entropy if state["settings"]["seed"] is None else state["settings"]["seed"]),
        "search": upgraded_search(state["learner"], state["caches"]),
    }
