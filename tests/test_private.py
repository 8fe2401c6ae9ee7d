"""What is private stays at home: no module touches a private attribute of what another module defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
PUBLIC = {"_replace", "_asdict", "_fields", "_make"}  # of named tuples, whatever they look like
ALLOWED: dict[str, str] = {}  # "path: owner._name" and why there is no other way
MOST_IGNORES = 10
IGNORE = re.compile(r"#\s*type:\s*ignore")


def is_private(name: str) -> bool:
    return name.startswith("_") and name not in PUBLIC and not (name.startswith("__") and name.endswith("__"))


def own_names(tree: ast.Module) -> set[str]:
    """The names that a module defines: classes, functions, variables, fields, attributes that it gives to `self`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            names.add(node.attr)
    return names


def is_own(owner: ast.expr) -> bool:
    """Whether this is the object whose class is being written: self, cls or super()."""
    if isinstance(owner, ast.Call):
        return isinstance(owner.func, ast.Name) and owner.func.id == "super"
    return isinstance(owner, ast.Name) and owner.id in ("self", "cls")


def imported(tree: ast.Module) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}


def trespasses(source: str) -> Iterator[tuple[int, str]]:
    """Lines on which a private attribute of somebody else's is read or set, and which one.

    An object of a class of the same module is at home, whatever it is called: what counts is that the module defines
    an attribute of this name. What was imported never is; a private module may be, such as `_types`.
    """
    tree = ast.parse(source)
    home, strangers = own_names(tree), imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            stranger = isinstance(node.value, ast.Name) and node.value.id in strangers
            if stranger or node.attr not in home:
                yield node.lineno, f"{ast.unparse(node.value)}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module:
            folder = SOURCE.joinpath(*node.module.split("."))
            for name in (alias.name for alias in node.names):
                if is_private(name) and not (folder / f"{name}.py").exists():
                    yield node.lineno, f"{node.module}.{name}"


def test_no_module_touches_what_is_private_to_another():
    found = {
        f"{path.relative_to(SOURCE)}:{line}: {what}"
        for path in MODULES
        for line, what in trespasses(path.read_text(encoding="utf-8"))
        if f"{path.relative_to(SOURCE)}: {what}" not in ALLOWED
    }
    assert not found, "private to another module:\n" + "\n".join(sorted(found))


def test_what_is_allowed_is_a_handful_and_still_there():
    assert len(ALLOWED) <= 5
    for place, reason in ALLOWED.items():
        path, what = place.split(": ")
        assert reason
        assert what in {found for _, found in trespasses((SOURCE / path).read_text(encoding="utf-8"))}, place


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("def f(x):\n    return x._hidden", ["x._hidden"]),
        ("def f(x):\n    x._hidden = 1", ["x._hidden"]),
        ("import m\nm._hidden()\n_hidden = 1", ["m._hidden"]),
        ("class A:\n    def f(self):\n        return self.part._hidden", ["self.part._hidden"]),
        ("class A:\n    def f(self):\n        return self._hidden + super()._other()", []),
        ("class A:\n    def f(self, other):\n        self._x = other._x", []),
        ("def f(x):\n    return x._replace(a=x.__class__)", []),
        ("from m import _hidden", ["m._hidden"]),
        ("from randomist import _types", []),
    ],
)
def test_a_trespass_is_seen(source, caught):
    assert [what for _, what in trespasses(source)] == caught


def test_types_are_seldom_ignored():
    lines = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if IGNORE.search(line)
    ]
    assert len(lines) <= MOST_IGNORES, f"{len(lines)} lines ignore a type, at most {MOST_IGNORES} may: {lines}"
