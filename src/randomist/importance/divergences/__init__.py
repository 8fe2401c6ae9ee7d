"""Divergences by name. A new one is its file and one line of the table."""

from __future__ import annotations

from typing import Any

from randomist.importance.divergences.base import Divergence
from randomist.importance.divergences.empirical import Empirical
from randomist.importance.divergences.harmonic import Harmonic, log_effective_samples, log_harmonic_divergence
from randomist.importance.divergences.mixture import Mixture
from randomist.importance.divergences.per_step import PerStep
from randomist.importance.parts import find_part

__all__ = ["DIVERGENCES", "Divergence", "find_divergence", "log_effective_samples", "log_harmonic_divergence"]

DIVERGENCES: dict[str, type[Divergence]] = {kind.name: kind for kind in (Harmonic, Mixture, Empirical, PerStep)}


def find_divergence(given: str | type[Divergence] | Divergence) -> type[Divergence]:
    """The divergence that was given, or that has this name: one of the table, or one of your own."""
    found: Any = find_part(given, Divergence, "divergence", DIVERGENCES)
    cls: type[Divergence] = found if isinstance(found, type) else type(found)
    return cls  # each history makes an object of its own
