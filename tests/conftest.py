"""Hypothesis without timing noise, more time for slow tests, and temporary files in memory."""

import os
import shutil

import hypothesis
import pytest

hypothesis.settings.register_profile("repo", deadline=None, print_blob=True)
hypothesis.settings.load_profile("repo")

SLOW = 1200  # seconds for a test that is marked slow; others have the 120 of pyproject.toml
MEMORY, ENOUGH = "/dev/shm", 2**31  # bytes that must be free there; a run without slow tests writes some 200 MB


def pytest_configure(config: pytest.Config) -> None:
    """No test stops the machine, so none needs files on a disk; waiting for one at each commit takes minutes in all."""
    if config.option.markexpr == "not slow" and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW))
