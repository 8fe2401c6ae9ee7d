"""Learners as JSON, for the command line and the service.

    {"learner": "randomist", "settings": {"perturbation_scale": 1.1, "seed": 0},
     "space": {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1, 2], "std": 2}}}

A space is `Finite` (a `family` with members, or `families`, a list; `names` of the decisions), `Box` (`family`, `low`,
`high`), `Grid` (a `Finite` of `points` per dimension between `low` and `high`), `Parameters` (`parameters`, a list such
as [{"name": "kp", "kind": "Real", "low": 0.1, "high": 100, "log": true}]), or `Likelihoods` (`names` of policies whose
likelihoods are told; `loggers`). A learner or a kind of family that is not ours is named "module:Class", and the module
must have been imported: data imports nothing.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from randomist._lookup import reading
from randomist.errors import ParameterError, RandomistError, ShapeError, StateError
from randomist.families import family_from_state
from randomist.families.base import Family
from randomist.families.registry import kind_of
from randomist.learners.registry import LearnerLike, made
from randomist.parameters import Meaning
from randomist.spaces import Box, Finite, Parameters, Space

if TYPE_CHECKING:
    from randomist.learners.base import Learner
    from randomist.policies.episodes import Episode
    from randomist.tasks.base import Task

MOST_POINTS = 20_000  # of a grid
KINDS = {
    "Finite": {"family", "families", "names"},
    "Box": {"family", "low", "high"},
    "Grid": {"family", "low", "high", "points"},
    "Parameters": {"parameters"},
    "Likelihoods": {"names", "loggers"},
}


def learner_from(name: Any, space: Any, settings: Any = None, *, tried: bool = False) -> Learner:
    """A learner that works, of data: a class that is not ours must be known (see `_lookup`).

    Where it was `tried` elsewhere, it is made and not tried.
    """
    given = dict(settings or {})
    with reading(), refusing("a learner", name):
        _check_device(given)
        return made(name, space_from(space), _seeded(given)) if tried else on_trial(name, space_from(space), given)


def _check_device(settings: Any) -> None:
    """Data does not choose where it is computed: JAX takes seconds to load, and a device may be somebody's."""
    if isinstance(settings, Mapping):
        if settings.get("device", "cpu") != "cpu":
            raise ParameterError(f'device must be "cpu" here, got {settings["device"]!r:.80}; name one in Python')
        _check_device(settings.get("settings"))


def _seeded(settings: dict[str, Any]) -> dict[str, Any]:
    """A study is made again of its settings, so it needs to know its seed."""
    return settings | {"seed": secrets.randbits(128)} if settings.get("seed", 0) is None else settings


@contextmanager
def refusing(what: str, of: Any) -> Iterator[None]:
    """Whatever a description makes our constructors raise, it is the reason why it is refused."""
    try:
        yield
    except StateError as error:  # it is no state: somebody asks for it now
        raise ParameterError(str(error)) from error
    except RandomistError:
        raise
    except KeyError as error:
        raise ParameterError(f"{what} cannot be made of {str(of)[:200]}: {error} is missing") from error
    except Exception as error:
        raise ParameterError(f"{what} cannot be made of {str(of)[:200]}: {_line(error)}") from error


def on_trial(learner: LearnerLike, place: Space | Task, settings: dict[str, Any]) -> Learner:
    """What `rd.make` makes, if it can be asked, told and asked for a recommendation; else the reason why not."""
    settings = _seeded(settings)
    probe = made(learner, place, settings)
    with refusing(f"{type(probe).__name__}, which was tried,", settings):
        payoff = 0.0 if probe.payoff_range == "running" else float(np.mean(probe.payoff_range))
        for _ in range(2):
            _tell(probe, payoff if math.isfinite(payoff) else 0.0)
        if probe.told:
            probe.recommend()
    return made(learner, place, settings)


def _tell(probe: Any, payoff: float) -> None:
    """Ask for a trial and tell it; what policies over trajectories would do cannot be made up."""
    trial, family = probe.ask(), probe.space.family
    if family.drawn:
        probe.tell(trial, payoff)
    elif not family.steps_known:
        probe.tell(trial, payoff, log_likelihoods=np.zeros(family.members))


def member_from(description: Any, space: Space) -> Family | None:
    """A new member of a finite set, of its family's JSON form, whose kind may be left out where the set has one kind.

    It is None, and must be, where policies are known by their likelihoods.
    """
    if description is None and not space.family.drawn:
        return None
    if not isinstance(description, Mapping):
        raise ParameterError(f'a member is an object such as {{"mean": 0.3, "std": 1}}, got {str(description)[:80]!r}')
    with refusing("a member", description):
        return family_from_state({"kind": kind_of(type(space.family)), **description})


def episode_from(description: Mapping[str, Any]) -> Episode:
    """An episode of its JSON form: observations, actions, rewards, and a payoff where that is not their sum."""
    from randomist.policies.episodes import Episode

    try:
        observations, actions, rewards = (
            np.array(description[name]) for name in ("observations", "actions", "rewards")
        )
        return Episode(observations, actions, rewards, description.get("payoff"))
    except KeyError as error:
        raise ParameterError(f"an episode has observations, actions and rewards; {error} is missing") from None
    except (TypeError, ValueError) as error:
        raise ShapeError(f"the rows of an episode must have one length: {_line(error)}") from None


def space_from(description: Any) -> Space:
    """A space of its JSON form."""
    if not isinstance(description, Mapping) or str(description.get("kind")) not in KINDS:
        raise ParameterError(
            f"a space is an object with a kind, one of {', '.join(KINDS)}; got {str(description)[:80]!r}"
        )
    entries = {key: value for key, value in description.items() if key != "kind"}
    kind, known = description["kind"], KINDS[description["kind"]]
    if not set(entries) <= known:
        raise ParameterError(f"a {kind} has {', '.join(sorted(known))}; got {', '.join(map(str, entries))[:200]}")
    with refusing(f"a {kind}, which has {', '.join(sorted(known))},", entries):
        if kind == "Finite":
            names = entries.get("names")
            if "families" in entries:
                return Finite([family_from_state(family) for family in entries["families"]], names=names)
            return Finite(family_from_state(entries["family"]), names=names)
        if kind == "Likelihoods":
            names = _texts(entries["names"], "names")
            return Finite.likelihoods(len(names), names=names, loggers=_texts(entries.get("loggers", []), "loggers"))
        if kind == "Parameters":
            return Parameters(Meaning.from_state(entries["parameters"]).parameters)
        family: Any = family_from_state(entries["family"])
        if kind == "Box":
            return Box(family, entries["low"], entries["high"])
        if np.prod(np.broadcast_to(entries["points"], family.shape or (1,)), dtype=float) > MOST_POINTS:
            raise ParameterError(f"a grid has {MOST_POINTS} points at most, got points={entries['points']!r}")
        return Finite.grid(family, entries["low"], entries["high"], entries["points"])


def _texts(names: Any, what: str) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"{what} must be a list of texts, got {str(names)[:80]!r}")
    return names


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
