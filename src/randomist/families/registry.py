"""The table of families, and how one is made of its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from randomist._lookup import descendants, imported, is_foreign, name_in, ours
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
    """Undo `Family.state()`. Its `kind` is one of `KINDS`, or "module:Class" for a family that is not ours."""
    try:
        found = find(state["kind"])
        return found(**{name: _decode(value) for name, value in state.items() if name != "kind"})
    except (KeyError, TypeError) as error:
        raise StateError(f"a family cannot be made of {state!r}: {error!r}") from error


def find(kind: Any) -> type[Family]:
    """The class of this kind."""
    from randomist.families.base import Family

    if is_foreign(kind):
        found = imported(kind)
        if not (isinstance(found, type) and issubclass(found, Family)):
            raise StateError(f"{kind!r} is not a family; it must be a subclass of randomist.Family")
        return found
    if isinstance(kind, str) and kind in KINDS:
        known: type[Family] = ours(KINDS[kind])
        return known
    cls: type[Family]
    for cls in descendants(Family):  # version 0.1.0 wrote the bare name of families that are not ours
        if cls.__name__ == kind:
            return cls
    raise StateError(
        f"unknown kind of family {str(kind)[:60]!r}; known kinds: {', '.join(KINDS)}; one of your own is named "
        "module:Class, or must be imported first"
    )


def kind_of(cls: type[Family]) -> str:
    """What the state of a family calls its class; undone by `find`."""
    return name_in(KINDS.values(), cls)


def _decode(value: Any) -> Any:
    """Families inside of families are states inside of states."""
    if isinstance(value, dict):
        return family_from_state(value)
    if isinstance(value, list | tuple) and value and all(isinstance(entry, dict) for entry in value):
        return tuple(family_from_state(entry) for entry in value)
    return value
