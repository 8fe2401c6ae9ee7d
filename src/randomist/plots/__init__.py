"""Pictures of runs, of what was searched, and of policies: `rd.plot`, by matplotlib to keep or by plotly to explore."""

from randomist.plots.policies import effective_samples, estimates
from randomist.plots.runs import best_so_far, payoffs, regret
from randomist.plots.searches import parallel, slices

__all__ = ["best_so_far", "effective_samples", "estimates", "parallel", "payoffs", "regret", "slices"]
