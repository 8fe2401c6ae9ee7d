"""Arrays in, arrays out: weights, divergence bounds and estimators of multiple importance sampling. Knows no RL."""

from randomist.importance.divergences import log_effective_samples, log_harmonic_divergence
from randomist.importance.estimators import (
    confidence_term,
    log_threshold,
    monte_carlo,
    multiple_importance,
    truncated_multiple_importance,
    width,
)
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
