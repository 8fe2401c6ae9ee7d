"""COCO's noisy functions, `bbob-noisy`: `python -m benchmarks.bbob`."""
