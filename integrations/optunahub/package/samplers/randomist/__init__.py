from randomist.integrations.optuna import RandomistSampler

__all__ = ["RandomistSampler"]
