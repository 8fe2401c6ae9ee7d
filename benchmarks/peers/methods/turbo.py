"""TuRBO-1, with BoTorch's Gaussian process: D. Eriksson, M. Pearce, J. Gardner, R. Turner and M. Poloczek, Scalable
Global Optimization via Local Bayesian Optimization, NeurIPS 2019.

A box around the best point by the posterior mean, stretched by the lengthscales, grows after successes and shrinks
after failures; the next points are the best of posterior samples at candidates in it (Thompson sampling). Below its
smallest length the search begins again elsewhere. Of the points that were played, the one with the largest posterior
mean less a standard deviation is recommended, of all regions so far.

Differences from the paper: the hyperparameters have BoTorch's priors (without these, few noisy payoffs are taken for
noise alone or for none), and are fitted by L-BFGS from the last ones whenever there are a tenth more points than at the
last fit; a success is a gain of a thousandth of the spread of payoffs, not of the best of them, which a constant would
change; candidates are scrambled Halton points; once `explore` points were played, the recommended one is played.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.problems import Array
from benchmarks.peers.search import Search, commit, play_all

LONGEST, SHORTEST, FIRST = 1.6, 0.5**7, 0.8  # sides of the trust region, of the unit box
SUCCESSES = 3  # in a row, before it grows
STEPS = 50  # of L-BFGS, at most
JITTER = 1e-5  # of the largest variance, so that it has a root
REFIT = 1.1  # more points than at the last fit


@dataclass
class Region:
    """The side of the trust region, and what it has seen lately."""

    length: float
    successes: int = 0
    failures: int = 0

    def learn(self, payoffs: Array, fresh: Array) -> None:
        """A batch is a success if it is better than the best before it by a thousandth of the payoffs' spread."""
        if fresh.max() > payoffs.max() + 1e-3 * payoffs.std():
            self.successes, self.failures = self.successes + 1, 0
        else:
            self.successes, self.failures = 0, self.failures + 1

    def adapt(self, patience: int) -> None:
        if self.successes == SUCCESSES:
            self.length, self.successes = min(2 * self.length, LONGEST), 0
        elif self.failures == patience:
            self.length, self.failures = self.length / 2, 0


def turbo(
    start: Array,
    start_payoff: float,
    rng: np.random.Generator,
    length: float = FIRST,
    initial: int = 2,
    explore: int | None = None,
    batch: int = 1,
) -> Search:
    """`initial` random points per dimension come first, and after each restart; `length` is the first side."""
    d, most = start.size, math.inf if explore is None else explore
    patience = math.ceil(max(4 / batch, d / batch))
    best, total = start, 1
    kept, kept_low = start, -math.inf  # of the regions before this one
    points, payoffs = start[None], np.array([start_payoff])
    while total < most:
        fresh = rng.uniform(size=(max(initial * d, 2) - len(points), d))
        told = yield from play_all(fresh, best)
        points, payoffs, total = np.vstack([points, fresh]), np.append(payoffs, told), total + len(fresh)
        region, known, fitted = Region(length), None, 0
        while region.length >= SHORTEST and total < most:
            due = len(points) >= REFIT * fitted
            model, means, lows, known = _model(points, payoffs, known, fit=due)
            fitted = len(points) if due else fitted
            best = points[int(np.argmax(lows))] if lows.max() > kept_low else kept
            asked = _proposed(model, points[int(np.argmax(means))], region.length, batch, rng)
            told = yield from play_all(asked, best)
            region.learn(payoffs, told)
            region.adapt(patience)
            points, payoffs, total = np.vstack([points, asked]), np.append(payoffs, told), total + batch
        if total < most:
            kept, kept_low = best, max(kept_low, float(lows.max()))
        points, payoffs = np.empty((0, d)), np.empty(0)
    yield from commit(best)


def _model(points: Array, payoffs: Array, known: Any, fit: bool) -> tuple[Any, Array, Array, Any]:
    """A Gaussian process, its means at the points, these less a standard deviation, its parameters.  (n, d), (n,)"""
    import torch
    from botorch.exceptions import BotorchWarning
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
    from gpytorch.mlls import ExactMarginalLogLikelihood
    from gpytorch.utils.warnings import GPInputWarning, NumericalWarning
    from linear_operator.utils.errors import NotPSDError

    torch.set_num_threads(1)
    centre, spread = payoffs.mean(), payoffs.std() or 1.0
    inputs = torch.from_numpy(points.copy())
    outputs = torch.from_numpy((payoffs - centre) / spread)[:, None]
    matern = get_covar_module_with_dim_scaled_prior(ard_num_dims=points.shape[1], use_rbf_kernel=False)
    model = SingleTaskGP(inputs, outputs, covar_module=matern, outcome_transform=None)
    if known is not None:
        model.load_state_dict(known)
    with warnings.catch_warnings():
        for kind in (BotorchWarning, NumericalWarning, GPInputWarning, RuntimeWarning):
            warnings.simplefilter("ignore", kind)
        if fit:
            try:
                likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
                fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": STEPS}}, max_attempts=1)
            except (RuntimeError, NotPSDError):  # it keeps the parameters that it had
                pass
        model.eval()
        with torch.no_grad():
            posterior = model.posterior(inputs)
            means, stds = posterior.mean[:, 0].numpy(), posterior.variance[:, 0].sqrt().numpy()
    return model, means * spread + centre, (means - stds) * spread + centre, model.state_dict()


def _proposed(model: Any, center: Array, length: float, batch: int, rng: np.random.Generator) -> Array:
    """The best candidates of a posterior sample each, in a box around the center.  (d,) -> (batch, d)"""
    import torch
    from gpytorch.utils.warnings import NumericalWarning
    from scipy.stats import qmc

    d = center.size
    scales = model.covar_module.lengthscale.detach().numpy().ravel()
    sides = length * scales / np.exp(np.log(scales).mean())  # of volume length^d
    low, high = np.clip(center - sides / 2, 0.0, 1.0), np.clip(center + sides / 2, 0.0, 1.0)
    n = min(100 * d, 5000)
    anywhere = low + (high - low) * qmc.Halton(d, seed=rng).random(n)
    moved = rng.random((n, d)) < min(1.0, 20 / d)
    moved[np.arange(n), rng.integers(d, size=n)] = True  # at least one coordinate
    candidates = np.where(moved, anywhere, center)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        posterior = model.posterior(torch.from_numpy(candidates))
        mean, covariance = posterior.mean[:, 0].numpy(), posterior.distribution.covariance_matrix.numpy()
    covariance[np.diag_indices(n)] += JITTER * covariance.diagonal().max()
    samples = mean + rng.standard_normal((batch, n)) @ np.linalg.cholesky(covariance).T  # (batch, n)
    chosen: Array = candidates[np.argmax(samples, axis=1)]
    return chosen
