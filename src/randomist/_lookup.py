"""Names of classes: ours in tables, a user's own by where Python defined them; and who may import.

A name in data (a file, a row, a state, a request) is looked up among the classes that Python has
defined, and nowhere else: it imports nothing and calls nothing. What a person types, in Python or
on a command line, may name a module. `named` is where the difference is made; `reading` says that
what follows is data.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, ClassVar, TypeVar
from weakref import ref

from randomist.errors import ParameterError, StateError

N = TypeVar("N", bound=type)

REMEDY = "import the module that defines it first (command line and service: start with --with module)"

_reading: ContextVar[bool] = ContextVar("reading", default=False)
_defined: list[ref[type]] = []  # in order
_registered: dict[type, str] = {}


class Named:
    """A base of which users have classes of their own: each is known once Python has defined it."""

    _ours: ClassVar[str]  # "module:table" with the names of ours

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        _defined.append(ref(cls))


@contextmanager
def reading() -> Iterator[None]:
    """Within, names are data, and import nothing."""
    token = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(token)


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
    """What "module:name" names, typed by a person; the module must be importable from here."""
    _refuse_data(name)  # whichever way it came here
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


def check_module(name: str) -> None:
    """Refuse "module:name" in data where the module has not been imported: another library would do it."""
    module, colon, _ = name.partition(":")
    if colon and module not in sys.modules:
        _refuse_data(name)


def _refuse_data(name: str) -> None:
    if _reading.get():
        raise StateError(f"{name[:80]!r} stands in data, which imports nothing; {REMEDY}")


def check_known(settings: Any) -> None:
    """Refuse settings in which "module:name" stands for nothing that is known: they may be used later, elsewhere."""
    if isinstance(settings, Mapping | list | tuple):
        for setting in settings.values() if isinstance(settings, Mapping) else settings:
            check_known(setting)
    elif is_foreign(settings) and known(settings, Named) is None:
        raise StateError(f"{settings[:80]!r} names no class that is known; {REMEDY}")


def named(name: Any, base: Any, what: str, table: Iterable[str]) -> Any:
    """The class of a user that is called so: a known one or, of what a person types, one of a module."""
    found = known(name, base)
    if found is None and is_foreign(name) and not _reading.get():
        found = imported(name)
        if not (isinstance(found, type) and issubclass(found, base)):
            raise ParameterError(f"{name!r} is not a {what}; it must be a subclass of randomist.{base.__name__}")
    if found is None:
        unknown = f"unknown {what} {str(name)[:60]!r}; known {what.partition(' ')[0]}s: {', '.join(table)}; "
        if _reading.get():
            raise StateError(f"{unknown}if it is yours, {REMEDY}")
        raise ParameterError(f"{unknown}one of your own is named module:Class")
    return found


def known(name: Any, base: Any) -> Any:
    """The class of a user's that Python has defined under this name; of several, the last one defined; or None.

    It is called by its place, "module:Class", by its bare name, and by the name that it was registered with.
    """
    if not isinstance(name, str):
        return None
    wanted = name.removeprefix("__main__:").removeprefix("__mp_main__:")
    for one in reversed(_defined):
        cls = one()
        if cls is None or not issubclass(cls, base) or _is_ours(cls) or inspect.isabstract(cls):
            continue
        if wanted in (_place(cls), cls.__name__, _registered.get(cls)):
            return cls
    return None


def name_of(cls: type) -> str:
    """How data names a class: bare where it is ours, or where no other process could import it."""
    if cls in _registered:
        return _registered[cls]
    table = _table(cls)
    if _is_ours(cls):
        names = table if isinstance(table, Mapping) else {}
        return next((name for name, one in names.items() if cls in (one, type(one))), cls.__name__)
    if cls.__module__ not in ("__main__", "__mp_main__") and "<locals>" not in cls.__qualname__:
        return _place(cls)
    if cls.__name__ in table:
        raise ParameterError(
            f"{_place(cls)} is called like one of ours, and in data it would be that; give it another "
            f'name, in Python or by rd.register({cls.__name__}, "another")'
        )
    return cls.__name__


def register(cls: N, name: str | None = None) -> N:
    """Give a class of yours a name of your choice, for Python, the command line and data.

    A learner, estimator, divergence, family, policy, task or storage is known by "module:Class"
    as soon as Python has defined it. Registered, it keeps its name when it moves to another module.
    Without `name` it is called by its `id` (a task), its `name` (an estimator, a divergence), or as
    in Python. A class that is defined again, as by a notebook cell, takes the place of the one
    before; the names of ours are refused.
    """
    kind: Any = cls
    taken = _table(kind)
    own = (name, getattr(cls, "id", None), getattr(cls, "name", None), cls.__name__)
    given = next(one for one in own if isinstance(one, str))
    if not re.fullmatch(r"[\w.-]{1,64}", given):
        raise ParameterError(f"a name has letters, digits, dots and dashes, 64 at most, got {given!r:.80}")
    if given in taken:
        raise ParameterError(f"{given!r} is the name of one of ours; register {cls.__name__} with another name")
    alike: list[Any] = [other for other, held in _registered.items() if held == given]
    for other in [other for other in alike if other._ours == kind._ours]:
        if _place(other) != _place(cls):
            raise ParameterError(f"{given!r} is the name of {_place(other)}; register {_place(cls)} with another name")
        del _registered[other]  # it was defined again
    _registered[cls] = given
    return cls


def registered(base: type) -> list[str]:
    """The names that subclasses were registered with."""
    return [name for cls, name in _registered.items() if issubclass(cls, base)]


def _table(cls: Any) -> Iterable[str]:
    """The names of ours of this kind."""
    if not (isinstance(cls, type) and issubclass(cls, Named) and hasattr(cls, "_ours")):
        kinds = "Learner, Estimator, Divergence, Family, Policy, Task, Storage"
        raise ParameterError(f"only a subclass of one of {kinds} has a name in data, got {cls!r:.80}")
    names: Iterable[str] = ours(cls._ours)
    return names


def _is_ours(cls: type) -> bool:
    package, _, rest = cls.__module__.partition(".")
    return package == "randomist" and not rest.startswith("testing")


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


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
