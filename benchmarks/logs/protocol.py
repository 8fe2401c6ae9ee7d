"""How tight is a one-sided bound on what a policy earns? The protocol of Sakhi et al. (2024, "Logarithmic smoothing").

    python -m benchmarks.logs.protocol                  # 8 data sets, 45 settings, 10 repetitions; about 6 CPU minutes
    python -m benchmarks.logs.protocol --repetitions 1

Policies know the label of each row: a softmax over actions with a temperature, on the label; loggers take the label
after the true one for the first two labels. A payoff is 1 if the action is the label, and flipped with some noise. Only
label counts matter, so they are all that is kept of the data sets (those of UCI, as OpenML has them, labels sorted as
text). A log has 98% of the rows. The radius is (truth - bound) / truth for a lower bound at 95%, 0 if the bound fails;
the truth is exact. "one stake" is logarithmic smoothing, the single stake 1/√n; "hindsight" the best of 64 single
stakes for each log, which is no bound but says what is left to win.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator

import numpy as np

from randomist._types import Array
from randomist.importance.intervals import Bets, Constant, PlugIn

LABELS = {
    "ecoli": [143, 77, 2, 2, 35, 20, 5, 52],
    "balance-scale": [49, 288, 288],
    "vehicle": [218, 212, 217, 199],
    "yeast": [463, 5, 35, 44, 51, 163, 244, 429, 20, 30],
    "page-blocks": [4913, 329, 28, 88, 115],
    "optdigits": [554, 571, 557, 572, 568, 558, 558, 566, 554, 562],
    "satimage": [1531, 703, 1356, 625, 707, 1508],
    "kropt": [2796, 1433, 2854, 2166, 471, 198, 4553, 1712, 78, 683, 592, 390, 1985, 4194, 81, 3597, 246, 27],
}
NOISES, TARGETS, LOGGERS = (0.0, 0.1, 0.2), (0.1, 0.2, 0.3, 0.4, 0.5), (0.3, 0.25, 0.2)
ERROR = 0.05


class Single(Bets):
    """One stake, for a number of rows."""

    def __init__(self, rows: int, stake: float) -> None:
        self.rows, self.error, self.offsets = rows, ERROR, np.zeros(1)
        self.stakes, self.log_prior = np.array([[stake]]), np.zeros((1, 1))

    def log_fair(self, m: float) -> Array:
        return np.asarray(self.rows * np.log1p(self.stakes * m))


def chances(temperature: float, actions: int) -> tuple[float, float]:
    """How likely a policy is to take the action it knows, and any other one."""
    known = math.exp(1.0 / temperature)
    return known / (known + actions - 1), 1.0 / (known + actions - 1)


def logs(name: str, rng: np.random.Generator) -> Iterator[tuple[float, Array]]:
    """The truth and ω y of every row, for 45 settings."""
    counts = LABELS[name]
    actions, labels = len(counts), np.repeat(np.arange(len(counts)), counts)
    rows = int(0.98 * len(labels))
    for noise in NOISES:
        for target in TARGETS:
            right, wrong = chances(target, actions)
            truth = right * (1 - noise) + (1 - right) * noise
            for logger in LOGGERS:
                label = rng.permutation(labels)[:rows]
                aim = np.where(label < 2, (label + 1) % actions, label)
                hit, miss = chances(logger, actions)
                aside = (aim + 1 + rng.integers(0, actions - 1, rows)) % actions
                action = np.where(rng.random(rows) < hit, aim, aside)
                payoff = (action == label) ^ (rng.random(rows) < noise)
                weight = np.where(action == label, right, wrong) / np.where(action == aim, hit, miss)
                yield truth, weight * payoff


def radius(truth: float, bound: float) -> float:
    return max((truth - bound) / truth, 0.0)


def bounds(gain: Array) -> dict[str, float]:
    """Lower bounds on the mean, by method."""
    rows = len(gain)
    ours = PlugIn(rows, ERROR, [0.0], [0.0])
    ours.add([gain])
    singles = []
    for stake in [1.0, *2.0 ** np.arange(-8, 8, 0.25)]:
        single = Constant(Single(rows, stake / math.sqrt(rows)))
        single.add([gain])
        singles.append(single.lower_bound(0.0, 1.0))
    return {"ours": ours.lower_bound(0.0, 1.0), "one stake": singles[0], "hindsight": max(singles)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    print(f"normalised radius of a lower bound at 95%, {options.repetitions} repetitions of 45 settings")
    print(f"{'data set':14} {'rows':>6} {'ours':>7} {'one stake':>9} {'hindsight':>9} {'failed':>7}")
    means, failures = [], []
    for name in LABELS:
        found: dict[str, list[float]] = {}
        failed, rng = [], np.random.default_rng([options.seed, len(name)])
        for _ in range(options.repetitions):
            for truth, gain in logs(name, rng):
                of_log = bounds(gain)
                failed.append(of_log["ours"] > truth)
                for method, bound in of_log.items():
                    found.setdefault(method, []).append(radius(truth, bound))
        means.append([float(np.mean(values)) for values in found.values()])
        failures.append(float(np.mean(failed)))
        row = f"{means[-1][0]:7.3f} {means[-1][1]:9.3f} {means[-1][2]:9.3f} {failures[-1]:7.4f}"
        print(f"{name:14} {int(0.98 * sum(LABELS[name])):6} {row}", flush=True)
    ours, one, best = np.mean(means, axis=0)
    print(f"{'mean':21} {ours:7.3f} {one:9.3f} {best:9.3f} {np.mean(failures):7.4f}")


if __name__ == "__main__":
    main()
