"""Arrays in, arrays out: weights, divergences, estimators and intervals of multiple importance sampling."""

from randomist.importance.bounds import confidence_term, log_threshold, width
from randomist.importance.divergences import log_effective_samples, log_harmonic_divergence
from randomist.importance.means import monte_carlo, multiple_importance, truncated_multiple_importance
from randomist.importance.weights import log_mixture, log_weights

__all__ = [
    "confidence_term",
    "log_effective_samples",
    "log_harmonic_divergence",
    "log_mixture",
    "log_threshold",
    "log_weights",
    "monte_carlo",
    "multiple_importance",
    "truncated_multiple_importance",
    "width",
]
