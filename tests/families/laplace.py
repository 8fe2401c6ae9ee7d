"""A location family that is no Gaussian: what somebody else would bring to a Box."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from randomist.families import Family


@dataclass(frozen=True, eq=False)
class Laplace(Family):
    """Independent Laplace distributions around the decision, of scales (d,), or of one scale where it is a number."""

    scale: Any
    members: None = field(init=False, default=None)
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", np.array(self.scale, float))
        object.__setattr__(self, "shape", self.scale.shape)

    @property
    def spread(self) -> np.ndarray:
        return np.atleast_1d(self.scale)

    def sample(self, decisions: Any, rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(self.decision_rows(decisions), self.spread).reshape(-1, *self.shape)

    def log_density(self, decisions: Any, mediators: Any) -> np.ndarray:
        points, rows = self.decision_rows(decisions), self.mediator_rows(mediators)
        total = np.zeros((len(points), len(rows)))
        for x, z, scale in zip(points.T, rows.T, self.spread, strict=True):  # independent dimensions add
            total -= np.abs(x[:, None] - z) / scale + math.log(2 * scale)
        return total

    def log_renyi(self, decisions: Any, others: Any, order: float = 2.0) -> np.ndarray:
        points, rows = self.decision_rows(decisions), self.decision_rows(others)
        total = np.zeros((len(points), len(rows)))
        for x, y, scale in zip(points.T, rows.T, self.spread, strict=True):
            total += divergence(np.abs(x[:, None] - y) / scale, order)
        return total


def divergence(distance: np.ndarray, order: float) -> np.ndarray:
    """D_a in one dimension: e^((a-1) D_a) = (a e^((a-1)δ) + (a-1) e^(-aδ)) / (2a - 1), and its limits."""
    if order == math.inf:
        return distance
    if order == 1:
        return distance + np.expm1(-distance)
    if order == 0.5:
        return distance - 2 * np.log1p(distance / 2)
    if order > 1:  # the larger exponential taken out
        rest = (order + (order - 1) * np.exp(-(2 * order - 1) * distance)) / (2 * order - 1)
        return distance + np.log(rest) / (order - 1)
    total = (order * np.exp((order - 1) * distance) + (order - 1) * np.exp(-order * distance)) / (2 * order - 1)
    return np.log(total) / (order - 1)
