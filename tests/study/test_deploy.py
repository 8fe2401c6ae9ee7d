"""What `deploy/` says: it fits the command line, runs as nobody, and is read by the programs that read it, if there."""

from __future__ import annotations

import configparser
import ipaddress
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from randomist.cli.studies import serve
from randomist.study.service.server import GRACE, PORT

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMMAND = Path(sys.executable).with_name("randomist")


def options() -> set[str]:
    """All options of `randomist serve`."""
    app = typer.Typer()
    app.command()(serve)
    return {option for parameter in typer.main.get_command(app).params for option in parameter.opts}


def check_command(words: list[str]) -> dict[str, str]:
    """`serve` and options that there are: their values."""
    assert words[0] == "serve"
    given = [word for word in words[1:] if word.startswith("--")]
    assert set(given) <= options(), set(given) - options()
    assert len(words) == 1 + 2 * len(given), "each has a value"
    return dict(zip(words[1::2], words[2::2], strict=True))


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def test_the_image_is_small_and_not_root():
    found = instructions()
    assert {word for word, _ in found} <= {
        *("FROM", "WORKDIR", "COPY", "RUN", "LABEL", "ENV", "USER", "VOLUME", "EXPOSE"),
        *("HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"),
    }
    stages = [rest for word, rest in found if word == "FROM"]
    assert len(stages) == 2
    assert all(re.fullmatch(r"python:3\.\d+-slim( AS build)?", stage) for stage in stages), "pinned, and slim"
    last = found[max(i for i, (word, _) in enumerate(found) if word == "FROM") :]
    (user,) = [rest for word, rest in last if word == "USER"]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user), "a number, so that Kubernetes can see that it is not root"
    after = [word for word, _ in last][[word for word, _ in last].index("USER") :]
    assert "RUN" not in after
    assert all("--no-cache-dir" in rest for word, rest in found if word == "RUN" and "pip install" in rest)
    extras = re.search(r"\.\[([a-z,]+)\]", next(rest for word, rest in found if "pip install" in rest))
    project = (ROOT / "pyproject.toml").read_text()
    assert extras is not None
    assert all(re.search(rf"^{extra} = \[", project, re.M) for extra in extras[1].split(","))


def test_what_the_image_copies_is_there():
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    for word, rest in instructions():
        if word == "COPY" and "--from" not in rest:
            for path in rest.split()[:-1]:
                assert (ROOT / path).exists()
                assert f"!{path}" in ignored


def test_the_image_serves_and_is_asked_how_it_is():
    found = dict(instructions())
    assert found["ENTRYPOINT"] == '["randomist"]'
    given = check_command(yaml.safe_load(found["CMD"]))
    assert given["--port"] == found["EXPOSE"] == str(PORT)
    assert given["--log-format"] == "json"
    assert f"http://127.0.0.1:{PORT}/healthz" in found["HEALTHCHECK"]
    program = yaml.safe_load(found["HEALTHCHECK"].split("CMD", 1)[1])
    compile(program[2], "HEALTHCHECK", "exec")


def test_the_health_check_works(sqlite):
    from tests.study.serving import serving

    program = yaml.safe_load(dict(instructions())["HEALTHCHECK"].split("CMD", 1)[1])[2]
    with serving(sqlite) as service:
        well = subprocess.run([sys.executable, "-c", program.replace(str(PORT), str(service.port))])
    assert well.returncode == 0
    gone = subprocess.run([sys.executable, "-c", program.replace(str(PORT), str(service.port))], capture_output=True)
    assert gone.returncode != 0


def test_the_compose_file():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    assert set(services) == {"db", "randomist", "proxy"}
    ours = services["randomist"]
    given = check_command(ours["command"])
    (network,) = [one["subnet"] for one in compose["networks"]["outside"]["ipam"]["config"]]
    assert given["--trusted-proxy"] == network, "the proxy is believed, and nobody else"
    assert ipaddress.ip_network(network).is_private
    assert compose["networks"]["inside"]["internal"] is True
    assert services["db"]["networks"] == ["inside"], "the database is not on the network of the proxy"
    assert [name for name in services if "ports" in services[name]] == ["proxy"], "only TLS is open"
    assert ours["cap_drop"] == ["ALL"]
    assert ours["read_only"] is True
    assert "no-new-privileges:true" in ours["security_opt"]
    assert given["--tokens"] == f"/run/secrets/{ours['secrets'][0]}"
    assert set(ours["secrets"]) == set(compose["secrets"])
    assert ours["environment"]["RANDOMIST_STORAGE"] == (
        f"postgresql://{services['db']['environment']['POSTGRES_USER']}@db/{services['db']['environment']['POSTGRES_DB']}"
    )
    assert not any("password@" in str(value) for value in ours["environment"].values())
    for service in services.values():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in services[other] or other == "randomist", "its image has one"
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).exists()
    assert (DEPLOY / ours["build"]["context"] / ours["build"]["dockerfile"]).exists()
    variables = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    example = {line.split("=")[0] for line in (DEPLOY / ".env.example").read_text().splitlines() if "=" in line}
    assert variables == example
    assert int(ours["stop_grace_period"].rstrip("s")) > GRACE, "requests that are under way are finished"


def test_the_proxy():
    text = (DEPLOY / "Caddyfile").read_text()
    assert "{$RANDOMIST_DOMAIN} {" in text, "a domain, so TLS by itself"
    assert f"reverse_proxy randomist:{PORT}" in text
    assert "flush_interval -1" in text, "events are passed on as they come"
    assert text.count("{") == text.count("}")
    if shutil.which("caddy"):
        checked = ["caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"]
        assert subprocess.run(checked, env={"RANDOMIST_DOMAIN": "localhost"}).returncode == 0


def unit() -> configparser.ConfigParser:
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(DEPLOY / "randomist.service")
    return found


def test_the_unit():
    service = unit()["Service"]
    words = shlex.split(service["ExecStart"])
    assert words[0].endswith("/bin/randomist")
    given = check_command(words[1:])
    assert given["--tokens"] == "%d/tokens"
    assert service["LoadCredential"].startswith("tokens:")
    assert service["DynamicUser"] == "yes"
    assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")
    assert int(service["TimeoutStopSec"]) > GRACE
    assert int(service["LimitNOFILE"]) > 4096


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_reads_the_unit(tmp_path):
    text = (DEPLOY / "randomist.service").read_text().replace("/opt/randomist/bin/randomist", str(COMMAND))
    (tmp_path / "randomist.service").write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "randomist.service"], capture_output=True, text=True, timeout=60
    )
    said = [line for line in done.stderr.splitlines() if "randomist.service" in line]
    assert (done.returncode, said) == (0, [])


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="needs hadolint")
def test_hadolint_reads_the_dockerfile():
    assert subprocess.run(["hadolint", DEPLOY / "Dockerfile"]).returncode == 0
