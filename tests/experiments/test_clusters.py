"""The same rows from any engine: processes of this machine, Dask, and a Ray cluster of two nodes that may lose one.

Experiments run in a process of their own, as on a cluster's login node: this one starts nodes, kills one, and looks.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import polars as pl
import pytest

from randomist.experiments.contenders import Contender
from randomist.experiments.runner import run_experiment
from randomist.experiments.specs import Experiment, TaskSpec, to_toml
from randomist.experiments.store import Store

pytestmark = pytest.mark.slow

PATIENCE = 180  # seconds
EXPERIMENT = Experiment(
    "clustered",
    (TaskSpec("illustrative", {"sigma": 2.0, "lambda_": 0.1}), TaskSpec("lqg")),
    (Contender("ucb1"), Contender("randomist")),
    rounds=1000,
    seeds=6,
)
SCRIPT = """
import sys
from pathlib import Path
from randomist.experiments.runner import run_experiment
from randomist.experiments.specs import read_experiment
from randomist.experiments.store import Store

spec, out, engine = sys.argv[1:]
store = Store(Path(out), read_experiment(Path(spec)))
failed = run_experiment(store, jobs=2, engine=engine, progress=lambda cell: print("done", cell.key, flush=True))
sys.exit(len(failed))
"""
Rows = dict[str, pl.DataFrame]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of one process."""
    store = Store(tmp_path_factory.mktemp("one"), EXPERIMENT)
    assert run_experiment(store) == {}
    return rows(store)


def rows(store: Store) -> Rows:
    """All finished rows, by run; nothing else may be there."""
    cells = EXPERIMENT.cells()
    assert sorted(path.stem for path in store.runs.glob("*.parquet")) == sorted(cell.key for cell in cells)
    assert not list(store.runs.glob("*.failed"))
    return {cell.key: store.load(cell) for cell in cells}


@contextmanager
def process(*command: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process and its children, which end with the block."""
    started = subprocess.Popen(
        command,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        kill(started)
        started.communicate()


def kill(started: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):  # it and its children have ended
        os.killpg(started.pid, signal.SIGKILL)


@contextmanager
def experiment(folder: Path, engine: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the experiment into a folder and prints a line for every run that it has kept."""
    spec = folder / "spec.toml"
    spec.write_text(to_toml(EXPERIMENT), encoding="utf-8")
    with process(sys.executable, "-c", SCRIPT, str(spec), str(folder), engine, **environment) as started:
        yield started


def finish(started: subprocess.Popen[str], folder: Path, expected: Rows) -> None:
    """Every run was kept, once, with the rows that one process makes."""
    printed = started.communicate(timeout=PATIENCE)[0]
    assert started.returncode == 0
    kept = [line.split()[1] for line in printed.splitlines() if line.startswith("done ")]
    assert sorted(kept) == sorted(expected)
    for key, frame in rows(Store(folder, EXPERIMENT)).items():
        assert frame.equals(expected[key]), key


@contextmanager
def ray_cluster() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Two nodes of one core each, as separate processes: the address, and the node that is not the head."""
    ray = Path(sys.executable).with_name("ray")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    node = [str(ray), "start", "--block", "--num-cpus=1", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
    node += ["--object-store-memory=100000000", "--dashboard-agent-listen-port=0"]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True))  # short
        head = ["--head", f"--port={address.split(':')[1]}", f"--temp-dir={folder}", "--include-dashboard=false"]
        stack.enter_context(process(*node, *head))
        wait_for_nodes(address, 1)
        other = stack.enter_context(process(*node, f"--address={address}"))
        wait_for_nodes(address, 2)
        yield address, other


def wait_for_nodes(address: str, count: int) -> None:
    script = f"import ray; ray.init({address!r}, log_to_driver=False); print(sum(n['Alive'] for n in ray.nodes()))"
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        if asked.stdout.strip() == str(count):
            return
        time.sleep(1)
    raise AssertionError(f"no Ray cluster of {count} nodes at {address}: {asked.stderr[-500:]}")


@pytest.mark.parametrize("engine", ["loky", "dask"])
def test_two_processes_make_the_rows_of_one(tmp_path: Path, expected: Rows, engine: str) -> None:
    if engine == "dask":
        pytest.importorskip("distributed")
    with experiment(tmp_path, engine) as started:
        finish(started, tmp_path, expected)


@pytest.mark.parametrize("lost", [False, True], ids=["whole", "a node is killed"])
def test_a_ray_cluster_makes_the_rows_of_one_process(tmp_path: Path, expected: Rows, lost: bool) -> None:
    pytest.importorskip("ray")
    with ray_cluster() as (address, other), experiment(tmp_path, "ray", RAY_ADDRESS=address) as started:
        if lost:
            runs = Store(tmp_path, EXPERIMENT).runs
            end = time.monotonic() + PATIENCE
            while not any(runs.glob("*.parquet")) and time.monotonic() < end:
                time.sleep(0.05)
            kill(other)  # the first list of runs is being kept, and others are to come
            assert len(list(runs.glob("*.parquet"))) < len(expected)
        finish(started, tmp_path, expected)
