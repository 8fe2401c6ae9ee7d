"""A problem of COCO's `bbob-noisy`, and what it hides: its value without noise.

Eight functions of the noiseless suite are behind the thirty noisy ones, with the same optimum, rotation and best value
in each instance. There are three differences: the ellipsoid (f116 to f118) has a conditioning of 1e4 instead of 1e6 and
is computed here; Griewank and Rosenbrock's function (f125 to f127) is a tenth of its twin; penalties differ, but only
outside of the box [-5, 5]^d, where nobody plays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bbob.legacy import Array, best_value, ellipsoid

LOW, HIGH = -5.0, 5.0
FUNCTIONS = range(101, 131)
SPHERE, STEPS, ROSENBROCK, ELLIPSOID, GRIEWANK = 1, 7, 8, 10, 19
TWINS = (SPHERE, ROSENBROCK, SPHERE, ROSENBROCK, STEPS, ELLIPSOID, 14, 17, GRIEWANK, 21)  # of three functions each
APART = 997  # evaluations by which the noise of one instance begins after that of the one before


def twin(function: int) -> int:
    """The number of the noiseless function behind a noisy one."""
    return TWINS[(function - FUNCTIONS[0]) // 3]


class Problem:
    """A noisy function in an instance: payoffs are minus its values.

    COCO has one stream of noise, which begins anew with every suite that is made: here it does so for each problem, at
    a place that depends on the instance. The same evaluations then have the same payoffs, whatever was run before.
    """

    def __init__(self, function: int, dimension: int, instance: int) -> None:
        self.function, self.dimension, self.instance = function, dimension, instance
        _, self._noiseless = self._twins = _problem("bbob", twin(function), dimension, instance)
        _, self._noisy = self._suite = _problem("bbob-noisy", function, dimension, instance)  # begins the noise anew
        for _ in range(APART * instance):
            self._noisy(np.zeros(dimension))

    def payoff(self, x: Array) -> float:
        """With noise.  (d,) -> number"""
        return -float(self._noisy(x))

    def mean(self, x: Array) -> Array:
        """Minus the value without noise.  (n, d) -> (n,)"""
        if twin(self.function) == ELLIPSOID:
            return -ellipsoid(x, self.instance, conditioning=1e4)
        values = np.array([self._noiseless(row) for row in x])
        if twin(self.function) == GRIEWANK:
            best = best_value(GRIEWANK, self.instance)
            values = best + (values - best) / 10
        return -values

    @property
    def best(self) -> float:
        """Minus the value at the optimum."""
        return -best_value(twin(self.function), self.instance)


def _problem(suite: str, function: int, dimension: int, instance: int) -> tuple[Any, Any]:
    """The suite, which must outlive its problem, and the problem."""
    import cocoex

    chosen = f"dimensions: {dimension} function_indices: {function - (100 if suite == 'bbob-noisy' else 0)}"
    made = cocoex.Suite(suite, f"instances: {instance}", chosen)
    return made, made.get_problem(0)
