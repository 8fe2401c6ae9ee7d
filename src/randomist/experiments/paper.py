"""The paper's experiments with the settings of its figures, and quick versions of them."""

from __future__ import annotations

from randomist.experiments.contenders import PAPER_CONTENDERS, Contender
from randomist.experiments.specs import Experiment, TaskSpec

PARTS = ("illustrative", "lqg", "mountain-car", "chains", "cartpole", "grid")
SPREADS = ((2.0, 2.0), (2.0, 0.1), (0.1, 2.0), (0.1, 0.1))  # (σ, λ) of Figure 2
MCMC_FULL = Contender("mcmc-randomist", {"perturbation_scale": 1.1})
MCMC_FULL_PAPER_BIAS = Contender("mcmc-randomist", {"perturbation_scale": 1.1, "bias_correction": "paper"})
MCMC_ONE_STEP = Contender("mcmc-randomist", {"perturbation_scale": 1.1, "density": "one-step"})
CARTPOLE_MCMC = Contender("mcmc-randomist", {"perturbation_scale": 0.1, "density": "one-step"})
CARTPOLE_MCMC_PAPER_BIAS = Contender(
    "mcmc-randomist", {"perturbation_scale": 0.1, "density": "one-step", "bias_correction": "paper"}
)
STEP_SIZES = (1.0, 10.0, 100.0)  # of payoffs mapped to [0, 1]; 0.01 to 1 of returns in the hundreds
PGPES = tuple(Contender("pgpe", {"step_size": step}) for step in STEP_SIZES)

QUICK = (
    "These are quick runs, shorter and fewer than the paper's: some claims are about long runs and do not hold here. "
    "The verdicts that count are those of the whole ones, `randomist reproduce all`."
)


def illustrative(quick: bool = False) -> Experiment:
    """Figure 2: regret on the four illustrative problems."""
    tasks = tuple(
        TaskSpec("illustrative", {"sigma": sigma, "lambda_": lambda_}, f"σ = {sigma:g}, λ = {lambda_:g}")
        for sigma, lambda_ in SPREADS
    )
    return Experiment("illustrative", tasks, PAPER_CONTENDERS, 1000 if quick else 10_000, 6 if quick else 20)


def lqg(quick: bool = False) -> Experiment:
    """Figure 3, left: regret on LQG with 100 gains."""
    learners = (*(c for c in PAPER_CONTENDERS if c.name != "ftl"), Contender("gp-ucb"))
    return Experiment("lqg", (TaskSpec("lqg", title="LQG"),), learners, 500 if quick else 5000, 4 if quick else 30)


def mountain_car(quick: bool = False) -> Experiment:
    """Figure 3, right: return on Mountain Car."""
    learners = (
        *(MCMC_FULL, MCMC_FULL_PAPER_BIAS, MCMC_ONE_STEP, Contender("grid-optimist", {"kappa": 2.0})),
        *(*PGPES, Contender("pois")),
    )
    tasks = (TaskSpec("mountain-car", title="Mountain Car"),)
    return Experiment("mountain-car", tasks, learners, 600 if quick else 2500, 3 if quick else 5)


def cartpole(quick: bool = False) -> Experiment:
    """Figure 5, left: return on the continuous Cartpole."""
    learners = (CARTPOLE_MCMC, CARTPOLE_MCMC_PAPER_BIAS, Contender("grid-optimist", {"kappa": 4.0}), *PGPES)
    tasks = (TaskSpec("cartpole", title="Cartpole"),)
    return Experiment("cartpole", tasks, learners, 500 if quick else 5000, 3 if quick else 5)


EXPERIMENTS = {"illustrative": illustrative, "lqg": lqg, "mountain-car": mountain_car, "cartpole": cartpole}
