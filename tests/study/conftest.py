"""Storages for the tests of studies (a SQLite file, memory, PostgreSQL from the installed binaries), and a service."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import randomist as rd
from tests.problems import GAUSSIANS, RECTANGLE
from tests.study.helpers import play

if TYPE_CHECKING:  # the service is imported by the tests that need it
    from tests.study.serving import Service

GOLDEN = Path(__file__).parents[1] / "golden"
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]))
POSTGRES = BINARIES[-1] if BINARIES else (Path(p).parent if (p := shutil.which("initdb")) else None)


class Server:
    """A PostgreSQL server in a temporary folder, run by an unprivileged user: its programs refuse root."""

    def __init__(self) -> None:
        assert POSTGRES is not None
        self.folder = Path(tempfile.mkdtemp(prefix="randomist-pg-", dir="/tmp"))
        self.data = self.folder / "data"
        self.user = ("postgres" if _exists("postgres") else "nobody") if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(self.folder, self.user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._numbers = itertools.count()
        self._call("initdb", "-D", self.data, "-A", "trust", "-U", "randomist", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=80"
        options += (
            " -c fsync=off"  # processes are killed here, never the machine: what was written is not lost with them
        )
        self._call("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", options, "start")

    def kill(self) -> None:
        """As if the power went: no server process has a moment to tidy up."""
        file = self.data / "postmaster.pid"
        main = int(file.read_text().split()[0])
        os.kill(main, signal.SIGSTOP)  # no more children
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(main)], capture_output=True, text=True).stdout
        everyone = [main, *map(int, children.split())]
        for pid in everyone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(map(_alive, everyone)):
            time.sleep(0.01)
        file.unlink()  # where nobody buries the dead, its process seems to live

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)

    def database(self) -> str:
        """A fresh database's URL."""
        name = f"t{next(self._numbers)}"
        self._call("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "randomist", name)
        return f"postgresql://randomist@127.0.0.1:{self.port}/{name}"

    def _call(self, program: str, *arguments: object) -> None:
        assert POSTGRES is not None
        command = [str(POSTGRES / program), *map(str, arguments)]
        with tempfile.TemporaryFile() as said:  # no pipe: the server would keep it open
            done = subprocess.run(command, stdout=said, stderr=said, user=self.user, cwd=self.folder)
            said.seek(0)
            assert done.returncode == 0, f"{command}: {said.read().decode()}"


def _exists(user: str) -> bool:
    import pwd

    return any(entry.pw_name == user for entry in pwd.getpwall())


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    if POSTGRES is None:
        pytest.skip("needs PostgreSQL's binaries")
    server = Server()
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind, without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/study.db"
    return request.getfixturevalue("postgres").database()


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def memory() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture(params=["sqlite", "memory", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))])
def place(request: pytest.FixtureRequest) -> str:
    """A storage of each kind."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres").database()
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))])
def old_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that version 0.1.0 left behind (`tests/golden/record_saved.py`)."""
    if request.param == "sqlite":
        shutil.copy(GOLDEN / "studies-0.1.0.db", tmp_path / "study.db")
        return f"sqlite:///{tmp_path}/study.db"
    if shutil.which("psql") is None:
        pytest.skip("needs psql")
    url = request.getfixturevalue("postgres").database()
    script = (GOLDEN / "studies-0.1.0.sql").read_text()
    subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", url], input=script, text=True, check=True, timeout=60)
    return url


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with two studies, `car` and `box`, that refuses nobody for asking too often."""
    from tests.study.serving import serving

    url = f"sqlite:///{tmp_path_factory.mktemp('service')}/study.db"
    with serving(url, rate=1e6, burst=1e6, guesses=1e6) as running:
        play(rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url), 3)
        play(rd.create_study("box", rd.PGPE(RECTANGLE, seed=0), storage=url), 3)
        yield running
