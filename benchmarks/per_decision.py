"""Per-decision weights against weights of whole trajectories: variance and bias on action-based LQG at horizon 100.

Noisy linear policies ran 100 episodes. From these the expected payoffs of five policies are estimated with both kinds
of weights, untruncated (with the balance heuristic both are unbiased), 2,000 times over. The truth comes from 400,000
episodes of each policy. Once a single policy ran that is none of the five, once each of the five did.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WIDE = 2.81  # standard errors: ten intervals hold together at 95%
HORIZON, EPISODES, NOISE = 100, 100, 0.5
LIMIT, STATE_NOISE, DISCOUNT = 4.0, 0.1, 0.99
SHARES = DISCOUNT ** np.arange(HORIZON) / np.sum(DISCOUNT ** np.arange(HORIZON))
SETTINGS = {  # gains that ran, gains that are estimated
    "one other policy ran": (np.array([-0.5]), np.array([-0.35, -0.4, -0.45, -0.55, -0.6])),
    "each of them ran": (np.array([-0.1, -0.3, -0.5, -0.7, -0.9]), np.array([-0.1, -0.3, -0.5, -0.7, -0.9])),
}


@dataclass(frozen=True)
class Comparison:
    """Of every policy: the truth, both estimators' bias with its standard error, and the ratio of their variances."""

    truth: np.ndarray
    stepwise_bias: np.ndarray
    stepwise_error: np.ndarray
    whole_bias: np.ndarray
    whole_error: np.ndarray
    factor: np.ndarray  # variance with whole trajectories over variance per decision


def episodes(gains: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, actions as drawn, and rewards of LQG, one episode per gain.  (n, H) each"""
    n = len(gains)
    states, actions, rewards = np.empty((3, n, HORIZON))
    x = rng.uniform(-LIMIT, LIMIT, n)
    for h in range(HORIZON):
        states[:, h] = x
        actions[:, h] = gains * x + NOISE * rng.standard_normal(n)
        u = np.clip(actions[:, h], -LIMIT, LIMIT)
        rewards[:, h] = 1 - 0.9 * (x**2 + u**2) / (1.8 * LIMIT**2)
        x = np.clip(x + u + STATE_NOISE * rng.standard_normal(n), -LIMIT, LIMIT)
    return states, actions, rewards


def estimates(
    played: np.ndarray, targets: np.ndarray, told: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """MIS per decision, and with weights of whole trajectories; as many episodes of each played policy.  (K,), (K,)"""
    states, actions, rewards = told

    def log_density(gains: np.ndarray) -> np.ndarray:
        """Up to every step  (K, n, H)"""
        return np.cumsum(-0.5 * ((actions - gains[:, None, None] * states) / NOISE) ** 2, axis=2)

    log_mixture = np.logaddexp.reduce(log_density(played), axis=0) - np.log(len(played))
    omega = np.exp(log_density(targets) - log_mixture)
    earned = SHARES * rewards
    return (omega * earned).sum(axis=2).mean(axis=1), (omega[:, :, -1] * earned.sum(axis=1)).mean(axis=1)


def compare(
    played: np.ndarray, targets: np.ndarray, repetitions: int = 2000, truth_episodes: int = 400_000, seed: int = 0
) -> Comparison:
    rng = np.random.default_rng(seed)
    truth, truth_error = np.empty((2, len(targets)))
    for k, gain in enumerate(targets):
        blocks = [episodes(np.full(10_000, gain), rng)[2] @ SHARES for _ in range(truth_episodes // 10_000)]
        payoffs = np.concatenate(blocks)
        truth[k], truth_error[k] = payoffs.mean(), payoffs.std() / np.sqrt(len(payoffs))
    ran = np.repeat(played, EPISODES // len(played))
    found = np.array([estimates(played, targets, episodes(ran, rng)) for _ in range(repetitions)])  # (R, 2, K)
    errors = np.hypot(found.std(axis=0, ddof=1) / np.sqrt(repetitions), truth_error)
    biases, variances = found.mean(axis=0) - truth, found.var(axis=0, ddof=1)
    return Comparison(truth, biases[0], errors[0], biases[1], errors[1], variances[1] / variances[0])


def main() -> None:
    print(f"LQG, horizon {HORIZON}, {EPISODES} episodes, action noise {NOISE}; bias ± {WIDE} standard errors")
    for name, (played, targets) in SETTINGS.items():
        found = compare(played, targets)
        print(f"{name}\n gain   truth    per-decision         whole trajectories   variance ratio")
        for k, gain in enumerate(targets):
            stepwise = f"{found.stepwise_bias[k]:+.4f} ± {WIDE * found.stepwise_error[k]:.4f}"
            whole = f"{found.whole_bias[k]:+.4f} ± {WIDE * found.whole_error[k]:.4f}"
            print(f"{gain:5.2f}  {found.truth[k]:.4f}   {stepwise}     {whole}   {found.factor[k]:8.1f}")
        print(f"median over policies of the variance ratio: {np.median(found.factor):.1f}")


if __name__ == "__main__":
    main()
