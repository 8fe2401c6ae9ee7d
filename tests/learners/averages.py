"""What learners earn on a task, asked one by one or in batches."""

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
