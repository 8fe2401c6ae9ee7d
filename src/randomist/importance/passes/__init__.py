"""The hot loops behind one seam: what a history of columns calls, by backend.

A backend is one module with the functions of `numba`, over arrays as `layout` describes them, and one line here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from randomist._checks import choice

BACKENDS = {"numba": "randomist.importance.passes.numba"}


def backend(name: str = "numba") -> Any:
    """The module of a backend."""
    return import_module(BACKENDS[choice(name, BACKENDS, "backend")])
