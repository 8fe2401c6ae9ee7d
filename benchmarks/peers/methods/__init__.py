"""One file per method. `METHODS` is the table that the command, the tuning and the tests read."""

from __future__ import annotations

from benchmarks.peers.methods import ars, auto, bayes, cma, direct, hyperpolicy, pgpe, turbo
from benchmarks.peers.search import Method

# Six settings each, the default first: equal effort in tuning. Random search has nothing to tune. A new method is a
# file here and an entry below.
METHODS = {
    method.id: method
    for method in (
        Method("random-search", "random search", direct.random_search),
        Method(
            "explore-then-commit",
            "explore, then commit",
            direct.explore_then_commit,
            ({"points": 10}, {"points": 3}, {"points": 5}, {"points": 20}, {"points": 30}, {"points": 50}),
        ),
        Method("auto", "Auto", auto.auto),
        Method(
            "mcmc-randomist",
            "MCMC-RANDOMIST",
            hyperpolicy.mcmc_randomist,
            (
                {"std": 0.1, "perturbation_scale": 0.1},
                {"std": 0.2, "perturbation_scale": 0.1},
                {"std": 0.3, "perturbation_scale": 0.1},
                {"std": 0.4, "perturbation_scale": 0.1},
                {"std": 0.2, "perturbation_scale": 0.01},
                {"std": 0.2, "perturbation_scale": 1.1},
            ),
        ),
        Method(
            "ars",
            "ARS",
            ars.ars,
            (
                {"step": 0.1, "noise": 0.1, "directions": 4, "top": 2},
                {"step": 0.1, "noise": 0.1, "directions": 2, "top": 1},
                {"step": 0.2, "noise": 0.1, "directions": 2, "top": 1},
                {"step": 0.05, "noise": 0.1, "directions": 2, "top": 1},
                {"step": 0.05, "noise": 0.05, "directions": 1, "top": 1},
                {"step": 0.02, "noise": 0.05, "directions": 2, "top": 1},
            ),
        ),
        Method(
            "cma-es",
            "CMA-ES",
            cma.cma_es,
            (
                {"sigma": 0.2},
                {"sigma": 0.05},
                {"sigma": 0.1},
                {"sigma": 0.4},
                {"sigma": 0.6},
                {"sigma": 0.2, "populations": 2},
            ),
            needs=("cmaes",),
        ),
        Method(
            "pgpe",
            "PGPE, ClipUp",
            pgpe.pgpe_clipup,
            (
                {"std": 0.1, "step": 0.1, "population": 8},
                {"std": 0.1, "step": 0.1, "population": 4},
                {"std": 0.2, "step": 0.2, "population": 4},
                {"std": 0.2, "step": 0.1, "population": 4},
                {"std": 0.2, "step": 0.05, "population": 4},
                {"std": 0.2, "step": 0.02, "population": 4},
            ),
            needs=("torch", "evotorch"),
        ),
        Method(
            "tpe",
            "Optuna TPE",
            bayes.tpe,
            (
                {"explore": 40, "again": 3},
                {"explore": 10, "again": 3},
                {"explore": 20, "again": 3},
                {"explore": 80, "again": 3},
                {"explore": 20, "again": 2},
                {"explore": 40, "again": 5},
            ),
            needs=("optuna",),
        ),
        Method(
            "gp",
            "Optuna GP",
            bayes.gp,
            (
                {"explore": 40, "again": 3},
                {"explore": 20, "again": 3},
                {"explore": 60, "again": 3},
                {"explore": 80, "again": 3},
                {"explore": 40, "again": 2},
                {"explore": 40, "again": 5},
            ),
            needs=("optuna", "torch"),
        ),
        Method(
            "turbo",
            "TuRBO-1",
            turbo.turbo,
            (
                {"length": 0.8},
                {"length": 0.4},
                {"length": 0.2},
                {"length": 0.8, "initial": 4},
                {"length": 0.4, "initial": 1},
                {"length": 1.6},
            ),
            needs=("torch", "botorch"),
            most=500,
        ),
    )
}
