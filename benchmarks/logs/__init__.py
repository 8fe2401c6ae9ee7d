"""Benchmarks of logged data: the protocol of logarithmic smoothing, troubled logs, comparisons."""
