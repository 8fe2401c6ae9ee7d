"""Divergences by name. A new one is its file and one line of the table."""

from __future__ import annotations

from randomist._checks import choice
from randomist._lookup import imported, is_foreign
from randomist.importance.divergences.base import Divergence
from randomist.importance.divergences.empirical import Empirical
from randomist.importance.divergences.harmonic import Harmonic, log_effective_samples, log_harmonic_divergence
from randomist.importance.divergences.mixture import Mixture
from randomist.importance.divergences.per_step import PerStep

__all__ = ["DIVERGENCES", "Divergence", "find_divergence", "log_effective_samples", "log_harmonic_divergence"]

DIVERGENCES: dict[str, type[Divergence]] = {kind.name: kind for kind in (Harmonic, Mixture, Empirical, PerStep)}


def find_divergence(name: str) -> type[Divergence]:
    """The divergence of this name: one of the table, or "module:Class" for one that is not ours."""
    if is_foreign(name):
        found: type[Divergence] = imported(name)
        return found
    return DIVERGENCES[choice(name, DIVERGENCES, "divergence")]
