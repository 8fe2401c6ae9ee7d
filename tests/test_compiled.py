"""The cache of compiled functions: true to all sources, and safe with many processes at once."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import randomist
from randomist._compiled import KEPT, digest, prepared

SOURCES = Path(randomist.__file__).parent
HEAD = "from randomist._compiled import compiled\n"
PROGRAM = "from randomist.outer import outer; print(outer(1.0))"


def small_package(folder: Path, constant: float) -> Path:
    """A package `randomist` in which a compiled function calls one of another file, which adds `constant`."""
    package = folder / "randomist"
    package.mkdir(exist_ok=True)
    shutil.copy(SOURCES / "_compiled.py", package)
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text(f"{HEAD}@compiled\ndef inner(x):\n    return x + {constant}\n")
    outer = package / "outer.py"
    if not outer.exists():
        outer.write_text(f"{HEAD}from randomist.inner import inner\n@compiled\ndef outer(x):\n    return inner(x)\n")
    return package


def run_at_once(folder: Path, processes: int) -> set[str]:
    variables = os.environ | {"PYTHONPATH": str(folder)}
    variables.pop("NUMBA_CACHE_DIR", None)
    started = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=variables, stdout=-1, stderr=-1, text=True)
        for _ in range(processes)
    ]
    ended = [process.communicate() for process in started]
    assert [errors for _, errors in ended] == [""] * processes
    return {printed.strip() for printed, _ in ended}


def test_a_change_in_another_file_is_seen_by_processes_that_start_at_once(tmp_path):
    package = small_package(tmp_path, 10.0)
    assert run_at_once(tmp_path, 4) == {"11.0"}
    cache = package / "__pycache__" / "randomist-compiled"
    (before,) = cache.iterdir()
    compiled = {path: path.stat().st_mtime_ns for path in before.rglob("*.nbi")}
    assert len(compiled) == 2
    assert run_at_once(tmp_path, 1) == {"11.0"}
    assert {path: path.stat().st_mtime_ns for path in before.rglob("*.nbi")} == compiled  # taken from the cache
    small_package(tmp_path, 20.0)
    assert run_at_once(tmp_path, 4) == {"21.0"}
    assert before.exists()  # a process may still be using it
    assert len(list(cache.iterdir())) == 2


def test_a_folder_goes_when_nobody_has_used_it_for_long(tmp_path):
    old, recent = prepared(tmp_path, "old"), prepared(tmp_path, "recent")
    (old / "file").write_text("")
    long_ago = time.time() - KEPT - 60
    os.utime(old, (long_ago, long_ago))
    assert prepared(tmp_path, "recent") == recent
    assert old.exists()  # only where a new folder is made
    prepared(tmp_path, "new")
    assert not old.exists()
    assert recent.exists()


def test_using_a_folder_keeps_it(tmp_path):
    folder = prepared(tmp_path, "used")
    long_ago = time.time() - KEPT - 60
    os.utime(folder, (long_ago, long_ago))
    prepared(tmp_path, "used")
    prepared(tmp_path, "new")
    assert folder.exists()


def test_the_name_depends_on_every_source_that_can_matter(tmp_path):
    package = small_package(tmp_path, 1.0)
    (package / "cli").mkdir()
    seen = {digest(package)}
    (package / "cli" / "app.py").write_text("")
    assert {digest(package)} == seen
    for name in ("new.py", "inner.py"):
        (package / name).write_text("x = 1234\n")
        seen.add(digest(package))
    assert len(seen) == 3


def test_every_compiled_function_is_made_here():
    """`numba.njit(cache=True)` elsewhere would not notice changes in other files."""
    using = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "numba" for name in names):
                using.append(str(path.relative_to(SOURCES)))
    assert set(using) == {"_compiled.py"}
