"""Whole runs over thousands of seeds, or a million decisions, on a GPU. Nothing in the core imports this room."""

from randomist.vectorised import backend  # noqa: F401  # before the others: it says what to install
from randomist.vectorised.runs import Runs, optimize_many

__all__ = ["Runs", "optimize_many"]
