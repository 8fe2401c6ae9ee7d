"""What learners in a box are fed in their tests, and what they earn on a task."""

import numpy as np

import randomist as rd


def averages(learner, task, seeds, rounds, batch=1):
    """Average payoff so far, with `batch` trials asked at a time.  (seeds, rounds)"""
    task, all_payoffs = rd.task(task), []
    for seed in range(seeds):
        chooser = rd.make(learner, task, seed=seed)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
        while chooser.told < rounds:
            trials = chooser.ask(batch=batch)
            payoffs = task.payoff(np.array([trial.mediator for trial in trials]), rng)
            for trial, payoff in zip(trials, payoffs, strict=True):
                chooser.tell(trial, float(payoff))
        all_payoffs.append(chooser.record.payoffs)
    return np.cumsum(all_payoffs, axis=1) / np.arange(1, rounds + 1)


def hill(mediator):
    """A payoff with a slope in every dimension, in [0, 1]."""
    z = np.ravel(mediator)
    return float(np.exp(-np.sum((z - 0.3 * np.arange(1, z.size + 1)) ** 2)))


def fed(learner, rounds=40, payoff=hill):
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, payoff(trial.mediator))
    return learner


def noisy(payoff, std=0.1, seed=0):
    """A payoff with Gaussian noise, the same for one seed."""
    rng = np.random.default_rng(seed)
    return lambda z: payoff(z) + std * rng.standard_normal()
