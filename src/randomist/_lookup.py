"""Things by the text "module:name", imported on first use; packages whose names come that way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from randomist.errors import ParameterError


def is_foreign(name: Any) -> bool:
    """Whether this is the text "module:name", which says where something is defined."""
    return isinstance(name, str) and name.count(":") == 1 and all(name.split(":"))


def ours(place: str) -> Any:
    """What "module:name" names in a table of ours."""
    module, _, path = place.partition(":")
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def imported(name: str) -> Any:
    """What "module:name" names, given by a user; the module must be importable from here."""
    try:
        return ours(name)
    except ImportError as error:
        raise ParameterError(
            f"{name!r} cannot be imported: {error}; write module:name, with a module that Python finds "
            "(installed, in the current folder, or on PYTHONPATH)"
        ) from error
    except (AttributeError, ValueError) as error:
        raise ParameterError(
            f"{name!r} cannot be imported: {error}; write module:name, with a name that the module defines at its top"
        ) from error


def name_in(places: Iterable[str], cls: type) -> str:
    """How a state names a class: the bare name of one of ours, which are at `places`, "module:Class" of another.

    A class that is defined inside of a function cannot be imported, so that its bare name is all there is.
    """
    place = f"{cls.__module__}:{cls.__qualname__}"
    return cls.__name__ if place in places or "<locals>" in place else place


def descendants(cls: Any) -> Iterator[Any]:
    """A class and all subclasses that have been imported, the latest definitions first."""
    for child in reversed(cls.__subclasses__()):
        yield from descendants(child)
    yield cls


def lazy(
    package: str, homes: Mapping[str, str], needs: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are imported on first use.

    `homes` has the module in which each name is defined; a name whose home is "" is a submodule itself, and one whose
    home ends in a colon stands for that module. `needs` has the extra that a module needs beyond the core, for the
    message where it is not installed.
    """
    extras = needs or {}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = homes[name].rstrip(":") or f"{package}.{name}"
        try:
            found = import_module(module)
        except ImportError as missing:
            extra = extras.get(module)
            if extra is None or str(missing.name).startswith("randomist"):
                raise
            raise ImportError(
                f"{package}.{name} needs the `{extra}` extra ({missing}); pip install 'randomist[{extra}]'"
            ) from missing
        value = found if homes[name] in ("", f"{module}:") else getattr(found, name)
        setattr(sys.modules[package], name, value)  # from now on without this function
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, listed
