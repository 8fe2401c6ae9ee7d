"""The hot loops behind one seam: all that histories call that is compiled.

`numba` has the passes over columns, `points` those of a box at a fixed std, `scales` those of a box whose decisions
carry their scale. `jax` has the passes over columns on a device, where arrays are replaced, not written to: so it has
a history of its own, `histories.device`. Another backend for columns on the CPU is one module with the functions of
`numba`, over arrays as `layout` describes them, and one line here.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from randomist._checks import choice

BACKENDS = {"numba": "randomist.importance.passes.numba"}


@cache  # every round comes here
def backend(name: str = "numba") -> Any:
    """The module of a backend."""
    return import_module(BACKENDS[choice(name, BACKENDS, "backend")])
