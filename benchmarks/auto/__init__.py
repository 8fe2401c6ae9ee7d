"""How `Auto` fares on noisy functions of its own: `python -m benchmarks.auto.trial`."""
