"""Compile functions with numba, and keep what was compiled true to its sources.

numba caches a compiled function and compiles it again when its own file changes, but not when a function or a constant
that it takes from another file does. So the cache is a folder per state of the sources: a process reads and writes the
folder of the sources that it runs, and no folder that others may be using is ever emptied.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, overload

import numba

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent
ELSEWHERE = {"cli", "experiments", "integrations", "plots", "study", "testing"}  # nothing compiled, nothing it needs
KEPT = 24 * 3600.0  # seconds that a folder is left alone after its last use
_lock = threading.Lock()  # numba's setting is for the whole process


@overload
def compiled(function: F, /) -> F: ...
@overload
def compiled(*, fastmath: bool | set[str] = False, nogil: bool = False) -> Callable[[F], F]: ...
def compiled(function: Any = None, /, **options: Any) -> Any:
    """`numba.njit` with a cache: `@compiled`, or `@compiled(fastmath=True)` where no inf and no NaN can reach it, or
    with some of LLVM's flags; `nogil=True` where threads are to run it side by side."""
    if function is None:
        return partial(_compile, options)
    return _compile({}, function)


def _compile(options: dict[str, Any], function: Any) -> Any:
    with _lock:
        settings: Any = numba.config
        before = settings.CACHE_DIR
        settings.CACHE_DIR = _folder(before)  # read when the function is decorated
        try:
            return numba.njit(cache=True, **options)(function)
        finally:
            settings.CACHE_DIR = before


@cache
def _folder(given: str) -> str:
    """Where the compiled functions of these sources are; what was given where no folder can be made."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    places = [Path(given)] if given else [PACKAGE / "__pycache__", home]
    for place in places:
        try:
            return str(prepared(place / "randomist-compiled", digest(PACKAGE)))
        except OSError:  # it cannot be written: the next one
            continue
    return given


def prepared(base: Path, name: str) -> Path:
    """The folder of this name, made where it is new; then those that nobody has used for long go."""
    folder, now = base / name, time.time()
    if folder.is_dir():
        if now - folder.stat().st_mtime > KEPT / 24:
            os.utime(folder)
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for other in base.iterdir():
        if other != folder and now - other.stat().st_mtime > KEPT:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def digest(package: Path) -> str:
    """A name for the present state of the sources that compiled functions are made of."""
    sources = hashlib.sha256()
    for folder, inner, files in os.walk(package):
        inner[:] = sorted(set(inner) - ELSEWHERE - {"__pycache__"})
        for file in sorted(name for name in files if name.endswith(".py")):
            path = os.path.join(folder, file)
            status = os.stat(path)
            sources.update(f"{os.path.relpath(path, package)} {status.st_mtime_ns} {status.st_size}\n".encode())
    return sources.hexdigest()[:16]
