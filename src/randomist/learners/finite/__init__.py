"""Learners on a finite set: one file per algorithm."""
