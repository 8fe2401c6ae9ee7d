"""Learners in a box: one file per algorithm."""
