"""Settings that name a class: what a user gives may be a name, the class itself, or an object of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from randomist._checks import choice
from randomist._lookup import is_foreign, name_of, named
from randomist.errors import ParameterError


def find_part(given: Any, base: Any, what: str, ours: Mapping[str, Any]) -> Any:
    """The class or the object that was given, or that a name or `described` stands for."""
    if isinstance(given, base) or (isinstance(given, type) and issubclass(given, base)):
        return given
    if isinstance(given, str) and given in ours:
        return ours[given]
    if not isinstance(given, Mapping):
        try:
            return named(given, base, what, ours)
        except ParameterError:
            if is_foreign(given):
                raise
            return choice(given, ours, what)  # raises, too, and says it in the words of other settings
    kind = given.get("kind")
    if not isinstance(kind, str):
        raise ParameterError(f"the kind of {what} is a name, got {kind!r:.80}")
    try:
        return find_part(kind, base, what, ours)(**{key: value for key, value in given.items() if key != "kind"})
    except TypeError as error:
        raise ParameterError(f"the {what} {kind!r:.80} does not take these settings: {error}") from None


def described(part: Any) -> Any:
    """How data describes what was given: by its name, and by its fields where it has some."""
    if isinstance(part, type):
        return name_of(part)
    cls = type(part)
    fields = [f.name for f in dataclasses.fields(part)] if dataclasses.is_dataclass(part) else []
    if set(getattr(part, "__dict__", ())) - {*fields}:
        raise ParameterError(
            f"{part!r:.80} cannot be saved: make {cls.__name__} a dataclass, whose fields are its settings"
        )
    values = {field: getattr(part, field) for field in fields}
    return {"kind": name_of(cls)} | values if values else name_of(cls)
