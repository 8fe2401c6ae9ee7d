"""The table of families, and how one is made of its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from randomist import _lookup
from randomist.errors import StateError

if TYPE_CHECKING:
    from randomist.families.base import Family

# Where each kind is defined. A family of ours is its file and one line here.
KINDS = {
    "Categorical": "randomist.families.categorical:Categorical",
    "Dirac": "randomist.families.dirac:Dirac",
    "Gaussian": "randomist.families.gaussian:Gaussian",
    "Likelihoods": "randomist.families.likelihoods:Likelihoods",
    "LocationScale": "randomist.families.location_scale:LocationScale",
    "Mixed": "randomist.families.mixed:Mixed",
    "Policies": "randomist.policies.trajectories:Policies",
    "TruncatedGaussian": "randomist.families.truncated_gaussian:TruncatedGaussian",
    "Uniform": "randomist.families.uniform:Uniform",
}


def family_from_state(state: dict[str, Any]) -> Family:
    """Undo `Family.state()`. Its `kind` is one of `KINDS`, or names a family that is not ours."""
    try:
        found = find(state["kind"])
        return found(**{name: _decode(value) for name, value in state.items() if name != "kind"})
    except (KeyError, TypeError, RecursionError) as error:
        raise StateError(f"a family cannot be made of {str(state)[:200]}: {error!r}") from error


def find(kind: Any) -> type[Family]:
    """The class of this kind, which is a name in data."""
    from randomist.families.base import Family

    found: type[Family]
    if isinstance(kind, str) and kind in KINDS:
        found = _lookup.ours(KINDS[kind])
    else:
        with _lookup.reading():
            found = _lookup.named(kind, Family, "kind of family", KINDS)
    return found


def kind_of(cls: type[Family]) -> str:
    """What the state of a family calls its class; undone by `find`."""
    return _lookup.name_of(cls)


def _decode(value: Any) -> Any:
    """Families inside of families are states inside of states."""
    if isinstance(value, dict):
        return family_from_state(value)
    if isinstance(value, list | tuple) and value and all(isinstance(entry, dict) for entry in value):
        return tuple(family_from_state(entry) for entry in value)
    return value
