"""Every family keeps the contract, and the contract finds faults."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from randomist.errors import ParameterError
from randomist.families import Dirac, Family, Gaussian, Mixed, TruncatedGaussian
from randomist.testing import check_family
from tests.families.cases import FAMILIES, LOCATION


@pytest.mark.parametrize("name", FAMILIES)
def test_contract(name: str) -> None:
    check_family(FAMILIES[name], np.random.default_rng(2))


def test_contract_of_location_families() -> None:
    check_family(LOCATION, decisions=[[0.0, 1.0], [0.1, 3.0], [-1.0, 4.0]])
    check_family(Gaussian(std=0.4), decisions=[0.0, 0.1, 0.5])
    check_family(TruncatedGaussian(std=0.4, low=-0.1, high=2), decisions=[-0.1, 0.1, 0.5])
    with pytest.raises(AssertionError, match="checked at points"):
        check_family(LOCATION)


@dataclass(frozen=True, eq=False)
class Broken(Gaussian):
    """A Gaussian with one fault."""

    fault: str = ""

    def sample(self, decisions: Any, rng: np.random.Generator) -> Any:
        draws = super().sample(decisions, np.random.default_rng() if self.fault == "seed" else rng)
        if self.fault == "spread":
            return 1.3 * draws
        return draws[:, None] if self.fault == "shape" else draws

    def draw(self, decision: Any, rng: np.random.Generator) -> Any:
        return self.sample([decision], rng)[0] + (self.fault == "draw")

    def log_density(self, decisions: Any, mediators: Any) -> Any:
        density = super().log_density(decisions, mediators)
        if self.fault == "nan":
            return np.where(density < -1e100, np.nan, density)
        if self.fault == "support":
            return np.where(density < -2, -np.inf, density)
        if self.fault == "none":
            return density[::-1] if decisions is None else density
        return density.T if self.fault == "axes" else density

    def log_densities(self, mediator: Any) -> Any:
        return super().log_densities(mediator) + (self.fault == "densities")

    def log_renyi(self, decisions: Any, others: Any, order: float = 2.0) -> Any:
        values = super().log_renyi(decisions, others, order)
        if self.fault == "sign":
            return -values
        if self.fault == "direction":
            return super().log_renyi(others, decisions, order).T
        if self.fault == "half":
            return values / 2
        if self.fault == "order":
            return super().log_renyi(decisions, others, 1 / min(order, 1e3))
        if self.fault == "bound":
            return (
                0.9 * values
                if order == math.inf
                else np.minimum(values, 0.9 * super().log_renyi(decisions, others, math.inf))
            )
        if self.fault == "self":
            return values + 1e-3
        return values

    def state(self) -> dict[str, Any]:
        return super().state() | ({"std": 1.0} if self.fault == "state" else {})


FAULTS = {
    "seed": "same seed",
    "spread": "samples and densities say",
    "shape": "must return one mediator of shape",
    "draw": "draw must equal sample",
    "nan": "never be NaN",
    "support": "gives density 0",
    "none": "log_density\\(None",
    "axes": "n_decisions, n_mediators",
    "densities": "log_densities must be",
    "sign": "never be negative",
    "direction": "samples and densities say",
    "half": "samples and densities say",
    "order": "below that of a smaller order",
    "bound": "exceeds their divergence of order inf",
    "self": "to itself must be 0",
    "state": "read back",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_contract_finds_faults(fault: str) -> None:
    means, stds = [0.0, 0.4, 2.0], [0.5, 1.3, 0.9]
    check_family(Broken(means, stds))
    with pytest.raises(AssertionError, match=FAULTS[fault]):
        check_family(Broken(means, stds, fault=fault))


@dataclass(frozen=True, eq=False)
class Laplace(Family):
    """A family of somebody else's: no closed form to any other kind."""

    at: float
    members: int = 1
    shape: tuple[int, ...] = ()

    def sample(self, decisions: Any, rng: np.random.Generator) -> Any:
        return rng.laplace(self.at, size=len(self.indices(decisions)))

    def log_density(self, decisions: Any, mediators: Any) -> Any:
        row = -np.abs(self.mediator_rows(mediators)[:, 0] - self.at) - math.log(2)
        return np.repeat(row[None], len(self.indices(decisions)), axis=0)

    def log_renyi(self, decisions: Any, others: Any, order: float = 2.0) -> Any:
        return np.zeros((len(self.indices(decisions)), len(self.indices(others))))


def test_families_of_others() -> None:
    check_family(Laplace(0.5))
    check_family(Mixed((Laplace(0.5), Dirac(1.0))))
    beside = Mixed((Laplace(0.0), Gaussian(0.0)))
    assert beside.log_renyi([0], [0])[0, 0] == 0
    with pytest.raises(ParameterError, match="no divergence is known between Laplace and Gaussian"):
        beside.log_renyi(None, None)
