"""Hypothesis without timing noise, and more time for slow tests."""

import hypothesis
import pytest

hypothesis.settings.register_profile("repo", deadline=None, print_blob=True)
hypothesis.settings.load_profile("repo")

SLOW = 1200  # seconds for a test that is marked slow; others have the 120 of pyproject.toml


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW))
