"""Randomist inside other tools: Optuna, MLflow and TensorBoard, each in a file of its own that needs an extra.

`randomist.integrations.optuna` has a sampler for Optuna's studies; `.mlflow` and `.tensorboard` have callbacks for
`rd.optimize`.
"""
