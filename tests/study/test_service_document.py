"""The service's OpenAPI document: complete, and true of what it describes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from randomist.study.client import Client
from tests.study.serving import ADMIN, SPACE

pytestmark = pytest.mark.xdist_group("service")


def test_the_document_has_examples_and_says_who_may(service):
    document = service.request("GET", "/openapi.json", token=None)[1]
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["summary"]
            assert path == "/healthz" or operation["security"]
    for name, model in document["components"]["schemas"].items():
        for field, described in model.get("properties", {}).items():
            nested = "$ref" in json.dumps(described) or name in ("Snapshot", "ValidationError", "HTTPValidationError")
            assert nested or "examples" in described, f"{name}.{field} has no example"


def test_schemathesis_finds_nothing(service, tmp_path):
    with Client(service.address, ADMIN) as client:
        study = client.create("fuzzed", "randomist", SPACE)
        study.ask(batch=3)
    config = tmp_path / "schemathesis.toml"
    # A space or a payoff can be of the right form and still make no sense: 422.
    config.write_text('[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", 401, 403, 404, 409, 422]\n')
    command = [Path(sys.executable).with_name("st"), "--config-file", config, "run", f"{service.address}/openapi.json"]
    options = ["-H", f"Authorization: Bearer {ADMIN}", "--max-examples", "12", "--seed", "7", "--suppress-health-check",
               "all", "--exclude-path", "/api/v1/studies/{name}/events"]  # fmt: skip
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6000:]
