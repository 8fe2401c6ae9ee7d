"""Whether what one learner leads by, over seeds that it shares with another, is more than chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]


def paired(differences: Array) -> float:
    """The p-value of a paired t-test, two-sided; 1 where all differences are nothing.  (seeds,) -> number"""
    if len(differences) < 2 or np.allclose(differences, 0, atol=1e-12):
        return 1.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue) if np.ptp(differences) > 0 else 0.0


def holm(p: Array) -> Array:
    """P-values corrected for their number: Holm (1979).  (n,) -> (n,)"""
    order = np.argsort(p)
    corrected = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(corrected, 1.0)[np.argsort(order)]
