"""The folder for OptunaHub's registry: its front matter, what it exports, and its example."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

optuna = pytest.importorskip("optuna")

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "integrations/optunahub/package/samplers/randomist"


def test_the_front_matter_has_what_the_registry_wants():
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    matter = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    assert matter
    found = yaml.safe_load(matter[1])
    assert set(found) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert all(isinstance(found[name], str) and found[name] for name in ("author", "title", "description", "license"))
    assert found["tags"][0] == "sampler"
    assert all(isinstance(tag, str) for tag in found["tags"])
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", str(version)) for version in found["optuna_versions"])
    assert found["license"] == "MIT License"
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_it_exports_the_sampler_and_names_its_settings():
    spec = importlib.util.spec_from_file_location("hub", PACKAGE / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    from randomist.integrations.optuna import RandomistSampler

    assert module.__all__ == ["RandomistSampler"]
    assert module.RandomistSampler is RandomistSampler
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    for setting in RandomistSampler.__init__.__kwdefaults__:
        assert f"`{setting}`:" in text


def test_the_example_runs(tmp_path):
    pytest.importorskip("optunahub")
    done = subprocess.run([sys.executable, PACKAGE / "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    mean, best = done.stdout.splitlines()
    assert float(mean.rpartition(":")[2]) < 3.0  # 11 at random
    assert "'kind': 'bold'" in best
