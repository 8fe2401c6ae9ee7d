"""How `Auto` fares on a design set of its own: `python -m benchmarks.auto`."""
