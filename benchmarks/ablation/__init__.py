"""What estimator, divergence, bias correction and learner each contribute: `python -m benchmarks.ablation`."""
