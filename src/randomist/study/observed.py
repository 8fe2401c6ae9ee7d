"""What a policy did, where the environment produces it: as users tell it, as a row of a study holds it, and back.

A trial of `Finite.likelihoods` is told the log-likelihood of what was done under every policy. Its row holds these in
the order of the policies, `{"log_likelihoods": [-0.7, null]}`, null being -inf. A trial of `Finite.policies` is told an
episode, and its row holds what the policies say of that, `{"mediator": ...}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from randomist import _json
from randomist._checks import reals
from randomist._types import Array, Indices
from randomist.errors import MediatorError, ParameterError, RandomistError
from randomist.families.likelihoods import Likelihoods
from randomist.spaces import Finite

LIKELIHOODS, MEDIATOR = "log_likelihoods", "mediator"  # what a row's `extra` has


def sources_of(space: Finite) -> tuple[str, ...]:
    """The names of the policies whose likelihoods are told: the decisions, and then the loggers."""
    return (*(space.names or map(str, range(space.size))), *space.loggers)


def likelihoods_told(space: Finite, given: Any, trial: int, decision: int, arrivals: Indices, alone: Any) -> Array:
    """Log-likelihoods of what was done, by name or in order, checked: one per policy.  (S,)

    A policy that came after the trial was asked, and shares nothing with others, need not be named.
    """
    family, names = space.family, sources_of(space)
    assert isinstance(family, Likelihoods)
    if not isinstance(given, Mapping):
        return family.checked(decision, given)
    late = {names[k] for k in alone if arrivals[k] > trial}
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given and name not in late]
    if unknown or missing:
        wrong = [f"there is no policy {name!r:.80}" for name in unknown[:3]]
        wrong += [f"that of {name!r} is missing" for name in missing[:3]]
        raise MediatorError(
            f"log_likelihoods must have one entry per policy, {', '.join(names)[:200]}, retired ones included: "
            f"{'; '.join(wrong)}; one that would never have done this has -inf (null in JSON)"
        )
    values = [given.get(name, -math.inf) for name in names]
    return family.checked(decision, [-math.inf if value is None else value for value in values])


def text_of(vector: Array) -> str:
    """Log-likelihoods as a row holds them."""
    values = [value if value > -math.inf else None for value in vector.tolist()]
    return json.dumps({LIKELIHOODS: values}, allow_nan=False, separators=(",", ":"))


def text_of_mediator(mediator: Array) -> str:
    """What policies say of an episode, as a row holds it."""
    return _json.dumps({MEDIATOR: mediator})


def read(family: Any, text: Any) -> Array:
    """What a row holds: log-likelihoods or a mediator; `ValueError` where it holds something else."""
    if not isinstance(text, str):
        raise ValueError("no text")
    if family.steps_known:
        try:
            said = _json.loads(text)
        except RandomistError as error:
            raise ValueError(str(error)) from error
        if set(said) != {MEDIATOR} or not isinstance(said[MEDIATOR], np.ndarray):
            raise ValueError("no mediator")
        return np.asarray(said[MEDIATOR], np.float64)
    said = json.loads(text)
    if not isinstance(said, dict) or set(said) != {LIKELIHOODS} or not isinstance(said[LIKELIHOODS], list):
        raise ValueError("no log-likelihoods")
    if not {*map(type, said[LIKELIHOODS])} <= {float, int, type(None)}:
        raise ValueError("no numbers")
    return np.array([-math.inf if value is None else value for value in said[LIKELIHOODS]], np.float64)


def by_name(space: Finite, observed: Array) -> dict[str, float]:
    """The log-likelihoods of a row, by the names of the policies that there were then."""
    family = space.family
    if family.steps_known:
        observed = family.log_density(None, observed)[:, 0]
    return dict(zip(sources_of(space), observed.tolist(), strict=False))


def same(before: str | None, now: str | None) -> bool:
    """Whether two rows say the same of what was done, though a policy may have come in between."""
    if before == now or before is None or now is None:
        return before == now
    try:
        one, other = json.loads(before)[LIKELIHOODS], json.loads(now)[LIKELIHOODS]
        return bool(one == other[: len(one)])
    except (ValueError, TypeError, LookupError):
        return False


def column_told(given: Any, told: Indices) -> dict[str, Any]:
    """The log-likelihoods under a new policy of all that was told: by trial id, or in the order of the tells."""
    if isinstance(given, Mapping):
        missing = [number for number in told.tolist() if number not in given]
        if missing:
            raise MediatorError(
                f"log_likelihoods of a new policy must have all {len(told)} trials that were told, by id; that of "
                f"trial {missing[0]} is missing; leave log_likelihoods out to begin from scratch"
            )
        values = [given[number] for number in told.tolist()]
    elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        values = list(given)
        if len(values) != len(told):
            raise MediatorError(
                f"log_likelihoods of a new policy must have one entry per trial told so far, {len(told)}, got "
                f"{len(values)}; give them by trial id, or leave them out to begin from scratch"
            )
    else:
        raise ParameterError(f"log_likelihoods of a new policy are numbers by trial id, got {given!r:.80}")
    try:
        column = reals([-math.inf if value is None else value for value in values], "a log-likelihood")
    except (TypeError, ValueError):
        raise MediatorError("log_likelihoods of a new policy must be numbers") from None
    return {"ids": told.copy(), "values": column}
