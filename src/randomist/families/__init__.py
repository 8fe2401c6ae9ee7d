"""What is known about the world: p_x, the distribution of the mediator under each decision."""

from __future__ import annotations

from typing import Any

from randomist.errors import StateError
from randomist.families.base import Family
from randomist.families.categorical import Categorical
from randomist.families.dirac import Dirac
from randomist.families.gaussian import Gaussian
from randomist.families.location_scale import LocationScale
from randomist.families.mixed import Mixed
from randomist.families.uniform import Uniform

__all__ = ["Categorical", "Dirac", "Family", "Gaussian", "LocationScale", "Mixed", "Uniform", "family_from_state"]


def family_from_state(state: dict[str, Any]) -> Family:
    """Undo `Family.state()`, of any subclass that has been imported."""
    kinds = _kinds() | {kind.__name__: kind for kind in (Categorical, Dirac, Gaussian, LocationScale, Mixed, Uniform)}
    try:
        kind = state["kind"]
        return kinds[kind](**{name: _decode(value) for name, value in state.items() if name != "kind"})
    except (KeyError, TypeError) as error:
        raise StateError(
            f"no family can be read from {state!r} ({error!r}); known kinds are {sorted(kinds)}, one of your own must "
            "be imported first"
        ) from error


def _decode(value: Any) -> Any:
    """Families inside of families are states inside of states."""
    if isinstance(value, dict):
        return family_from_state(value)
    if isinstance(value, list | tuple) and value and all(isinstance(entry, dict) for entry in value):
        return tuple(family_from_state(entry) for entry in value)
    return value


def _kinds() -> dict[str, type[Family]]:
    """Every subclass of Family by its name."""
    found: dict[str, type[Family]] = {}
    left = Family.__subclasses__()
    while left:
        kind = left.pop()
        found[kind.__name__] = kind
        left += kind.__subclasses__()
    return found
