"""A service of a database that can be read only: what is there is served, and what would write is refused."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import randomist as rd
from tests.problems import GAUSSIANS
from tests.study.helpers import play
from tests.study.serving import ADMIN, CAR, READ, SPACE, STUDIES, serving

pytestmark = pytest.mark.xdist_group("service")
ROOT = str(Path(__file__).parents[2])
READS = ("", "/decisions", "/estimates", "/recommendation", "/trials", "/export", "/export?format=csv", "/audit",
         "/dashboard", "/dashboard/news", "/dashboard/estimates", "/dashboard/trials", "/events?most=1")  # fmt: skip
WRITES = (("POST", f"{CAR}/ask", {}), ("POST", f"{CAR}/trials/0/retract", {}), ("POST", f"{CAR}/archive", {}),
          ("POST", f"{CAR}/trials/8/tell", {"payoff": 0.5}), ("POST", f"{CAR}/decisions/retire", {"decision": 0}),
          ("POST", f"{CAR}/rename", {"name": "bus"}), ("DELETE", CAR, None),
          ("POST", STUDIES, {"name": "bus", "learner": "ucb1", "space": SPACE}))  # fmt: skip


def check(service) -> None:
    """All that can be read is, nothing is written, and health says so."""
    status, said, _ = service.request("GET", "/healthz", token=None)
    assert (status, said["status"]) == (200, "read-only")
    for path in (STUDIES, "/api/v1/overview", "/metrics", *(f"{CAR}{path}" for path in READS)):
        status, said, _ = service.request("GET", path, token=READ)
        assert status == 200, (path, said)
    for method, path, body in WRITES:
        status, said, headers = service.request(method, path, body, ADMIN)
        assert (status, said["error"]) == (503, "ReadOnlyStorageError"), (path, said)
        assert "nothing can be written" in said["message"]
        assert "study.db" not in said["message"]
        assert headers["retry-after"] == "1"


@pytest.fixture
def mounted(tmp_path):
    """A folder, and the same where it is mounted read-only."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "--bind", ours, theirs], capture_output=True).returncode:
        pytest.skip("needs to mount")
    try:
        if subprocess.run([mount, "-o", "remount,bind,ro", theirs], capture_output=True).returncode:
            pytest.skip("needs to mount read-only")
        yield ours, theirs
    finally:
        subprocess.run(["umount", theirs], check=True)


@pytest.mark.parametrize("log", ["without a log", "with a log"])
def test_a_mount_that_is_read_only_is_served(log, mounted):
    ours, theirs = mounted
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=f"sqlite:///{ours}/study.db")
    play(study, 8)
    study.ask()
    if log == "without a log":
        study.storage.disconnect()
        assert not (ours / "study.db-wal").exists()
    with serving(f"sqlite:///{theirs}/study.db") as service:
        check(service)
        for told in (9, 10):  # who may write goes on
            study.tell(study.ask(), 0.5)
            assert service.request("GET", CAR, token=READ)[1]["told"] == told
            assert service.request("GET", f"{CAR}/trials", token=READ)[1]["trials"][-1]["state"] == "told"
            study.storage.disconnect()


SERVING = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.study.test_service_read_only import *
with serving(sys.argv[2]) as service:
    check(service)
print("served")
"""


@pytest.mark.parametrize("writable", ["folder", "nothing"])
def test_files_that_must_not_be_written_are_served(writable):
    """Root without the right to write what it must not: another user might not even read this Python."""
    plain = [] if os.geteuid() else ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    if plain and not shutil.which("setpriv"):
        pytest.skip("needs setpriv")
    folder = Path(tempfile.mkdtemp(prefix="randomist-reading-"))
    try:
        url = f"sqlite:///{folder}/study.db"
        with rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url) as study:
            play(study, 8)
            study.ask()
        study.storage.disconnect()
        (folder / "study.db").chmod(0o444)
        folder.chmod(0o777 if writable == "folder" else 0o555)
        command = [*plain, sys.executable, "-c", SERVING, ROOT, url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.stdout == "served\n", done.stderr[-3000:]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_disk_that_is_full_is_said_to_be(tmp_path):
    mount, size = shutil.which("mount"), 3_000_000
    disk = tmp_path / "disk"
    disk.mkdir()
    given = [mount or "mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk]
    if mount is None or subprocess.run(given, capture_output=True).returncode:
        pytest.skip("needs to mount")
    try:
        study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=f"sqlite:///{disk}/study.db")
        play(study, 8)
        study.ask()
        with serving(f"sqlite:///{disk}/study.db") as service:
            assert service.request("GET", "/healthz", token=None)[1]["status"] == "ok"
            filler = (disk / "filler").open("wb", buffering=0)
            with filler, contextlib.suppress(OSError):  # there is no more space
                while True:
                    filler.write(b"x" * 4096)
            check_full(service)
            (disk / "filler").unlink()
            assert service.request("POST", f"{CAR}/ask", {}, ADMIN)[0] == 200
        study.storage.disconnect()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def check_full(service) -> None:
    for _ in range(400):  # as long as its log has room
        status, said, _ = service.request("POST", f"{CAR}/ask", {"batch": 50}, ADMIN)
        if status != 200:
            break
    assert (status, said["error"]) == (503, "ReadOnlyStorageError"), said
    assert service.request("GET", f"{CAR}/trials", token=READ)[0] == 200
    assert service.request("GET", "/healthz", token=None)[1]["status"] == "read-only"


@pytest.mark.xdist_group("postgresql")
def test_a_server_that_is_read_only_is_served(postgres):
    url = postgres.database()
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    play(study, 8)
    study.ask()
    import sqlalchemy as sa

    name = sa.make_url(url).database
    with study.storage.database._engine.connect() as connection:
        connection.exec_driver_sql(f'alter database "{name}" set default_transaction_read_only = on')
        connection.commit()
    study.storage.disconnect()
    with serving(url) as service:
        check(service)
