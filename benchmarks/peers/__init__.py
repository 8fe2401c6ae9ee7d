"""The methods one would otherwise use, on the same tasks, policies, boxes and budgets: `python -m benchmarks.peers`."""
