"""Studies under load: many processes on one study, beside Optuna; and a service with many clients.

    python -m benchmarks.studies workers            # 16 processes x 500 trials, on SQLite and PostgreSQL
    python -m benchmarks.studies workers --prefill 10000 --trials 40
    python -m benchmarks.studies load --minutes 10  # 32 clients of one service
    python -m benchmarks.studies dashboard          # what a page of 10^5 trials takes, and one of 1,000 studies

Optuna runs with another interpreter (`--peers`, by default .venv-peers/bin/python), with its random sampler and one
float parameter, on the same storage, right after ours. PostgreSQL is started from the installed binaries, in a
temporary folder.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    workers = commands.add_parser("workers")
    workers.add_argument("--workers", type=int, default=16)
    workers.add_argument("--trials", type=int, default=500, help="of each worker")
    workers.add_argument("--prefill", type=int, default=0, help="told trials before the clock runs")
    workers.add_argument("--storages", default="sqlite,postgresql")
    workers.add_argument("--peers", default=str(ROOT / ".venv-peers/bin/python"))
    load = commands.add_parser("load")
    load.add_argument("--minutes", type=float, default=10.0)
    load.add_argument("--clients", type=int, default=32)
    pages = commands.add_parser("dashboard")
    pages.add_argument("--trials", type=int, default=100_000)
    pages.add_argument("--studies", type=int, default=1000)
    many = commands.add_parser("crowd")  # started by `workers`
    many.add_argument("kind")
    many.add_argument("url")
    many.add_argument("workers", type=int)
    many.add_argument("trials", type=int)
    many.add_argument("folder", type=Path)
    fill = commands.add_parser("fill")
    fill.add_argument("kind")
    fill.add_argument("url")
    fill.add_argument("n", type=int)
    chosen = parser.parse_args()
    if chosen.command == "workers":
        compare(chosen.workers, chosen.trials, chosen.prefill, chosen.storages.split(","), chosen.peers)
    elif chosen.command == "load":
        mixed_load(chosen.minutes, chosen.clients)
    elif chosen.command == "dashboard":
        dashboard(chosen.trials, chosen.studies)
    elif chosen.command == "fill":
        {"ours": fill_ours, "optuna": fill_optuna}[chosen.kind](chosen.url, chosen.n)
    else:
        crowd(chosen.kind, chosen.url, chosen.workers, chosen.trials, chosen.folder)


# Many processes on one study.


def compare(workers: int, trials: int, prefill: int, storages: list[str], peers: str) -> None:
    kinds = {"ours": sys.executable} | ({"optuna": peers} if Path(peers).exists() else {})
    print(f"{workers} processes x {trials} trials, {prefill} told before", flush=True)
    for storage in storages:
        for kind, python in kinds.items():
            with tempfile.TemporaryDirectory() as folder, database(storage, Path(folder)) as url:
                subprocess.run([python, HERE, "fill", kind, url, str(prefill)], check=True)
                report(storage, kind, race(python, kind, url, workers, trials, Path(folder)))
                check(python, kind, url, prefill + workers * trials)


def race(python: str, kind: str, url: str, workers: int, trials: int, folder: Path) -> dict[str, Any]:
    """All workers load, wait for each other, and run: seconds on the clock, and of every ask and tell."""
    subprocess.run([python, HERE, "crowd", kind, url, str(workers), str(trials), folder], check=True)
    said = [json.loads(file.read_text()) for file in folder.glob("worker-*")]
    assert len(said) == workers
    seconds = max(one["end"] for one in said) - min(one["start"] for one in said)
    return {"seconds": seconds} | {name: [x for one in said for x in one[name]] for name in ("ask", "tell")}


def crowd(kind: str, url: str, workers: int, trials: int, folder: Path) -> None:
    """Workers as forked processes: the imports are done once."""
    if kind == "ours":
        warm = learner()
        warm.tell(warm.ask(), 0.5)
    else:
        import optuna  # noqa: F401
    children = []
    for i in range(workers):
        pid = os.fork()
        if pid == 0:
            work(kind, url, trials, folder, i)
            os._exit(0)
        children.append(pid)
    while len(list(folder.glob("ready-*"))) < workers:
        time.sleep(0.05)
    (folder / "go").touch()
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in children), "a worker failed"


def report(storage: str, kind: str, result: dict[str, Any]) -> None:
    n = len(result["ask"])
    parts = [f"{name} median {1e3 * at(result[name], 0.5):7.1f} ms, p99 {1e3 * at(result[name], 0.99):7.1f} ms"
             for name in ("ask", "tell")]  # fmt: skip
    print(f"{storage:10s} {kind:7s} {n / result['seconds']:7.1f} trials/s; {'; '.join(parts)}", flush=True)


def at(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, math.ceil(part * len(values)) - 1)]


def check(python: str, kind: str, url: str, n: int) -> None:
    """Nothing lost, nothing twice."""
    if kind != "ours":
        return
    import randomist as rd

    study = rd.load_study("bench", storage=url)
    trials = study.trials()
    told = [t for t in trials if t.state == "told"]
    twice = len(trials) - len({t.mediator for t in trials})
    order = sorted(t.closing or 0 for t in told)
    assert order == list(range(1, n + 1))
    print(f"{'':10s} {'':7s} {len(told)} told, {n - len(told)} lost, {twice} duplicates", flush=True)
    assert (len(told), twice, study.counters[:3]) == (n, 0, (n, n, n))


def learner() -> Any:
    import randomist as rd

    return rd.Randomist(rd.Finite.grid(rd.Gaussian(std=0.15), -1, 1, 20), seed=0)


def work(kind: str, url: str, trials: int, folder: Path, number: int) -> None:
    ask, tell = ours(url) if kind == "ours" else optuna(url)
    warm = ask()
    tell(warm, 0.5)  # compiled, connected
    (folder / f"ready-{number}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    asks, tells, start = [], [], time.time()
    for _ in range(trials - 1):
        began = time.perf_counter()
        trial = ask()
        asked = time.perf_counter()
        tell(trial, 0.5)
        asks.append(asked - began)
        tells.append(time.perf_counter() - asked)
    said = {"start": start, "end": time.time(), "ask": asks, "tell": tells}
    (folder / f"worker-{number}").write_text(json.dumps(said))


def ours(url: str) -> Any:
    import randomist as rd

    study = rd.load_study("bench", storage=url)
    return study.ask, study.tell


def optuna(url: str) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name="bench", storage=_optuna_storage(url), sampler=optuna.samplers.RandomSampler())

    def ask() -> Any:
        trial = study.ask()
        trial.suggest_float("x", -1, 1)
        return trial

    return ask, study.tell


def fill_ours(url: str, n: int, chooser: Any = None) -> None:
    """A study of a learner, of 20 decisions unless one is given, with so many told trials, drawn at random."""
    import sqlalchemy as sa

    import randomist as rd
    from randomist.study.storages.sql import schema

    study = rd.create_study("bench", learner() if chooser is None else chooser, storage=url)
    if not n:
        return
    import numpy as np

    rng = np.random.default_rng(0)
    space = study.space
    if isinstance(space, rd.Finite):
        decisions = rng.integers(space.size, size=n)
    else:
        decisions = space.low + rng.random((n, *np.shape(space.low))) * (space.high - space.low)
    mediators, payoffs = space.family.sample(decisions, rng).tolist(), rng.random(n).tolist()
    told = {
        "study": study.record.id,
        "worker": "fill",
        "state": "told",
        "asked_at": 1.0,
        "lease_until": 2.0,
        "closed_at": 2.0,
    }
    rows = []
    for i, (x, z) in enumerate(zip(decisions.tolist(), mediators, strict=True)):
        drawn = {"number": i, "ticket": f"{i}/0", "basis": i, "decision": json.dumps(x), "mediator": json.dumps(z)}
        rows.append(told | drawn | {"payoff": payoffs[i], "closing": i + 1})

    def write(connection: sa.Connection, _: int) -> None:
        connection.execute(sa.insert(schema.trials), rows)
        connection.execute(sa.update(schema.studies).values(asked=n, closed=n, told=n))

    study.storage.database.write(write)


def fill_optuna(url: str, n: int) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(study_name="bench", storage=_optuna_storage(url))
    rng, space = random.Random(0), {"x": optuna.distributions.FloatDistribution(-1, 1)}
    study.add_trials(
        [optuna.trial.create_trial(params={"x": rng.uniform(-1, 1)}, distributions=space, value=0.5) for _ in range(n)]
    )


def _optuna_storage(url: str) -> Any:
    """As patient as ours: with SQLite's usual 5 seconds its workers give up, the database being locked."""
    from optuna.storages import RDBStorage

    patience = {"connect_args": {"timeout": 100}} if url.startswith("sqlite") else {}
    return RDBStorage(url.replace("postgresql://", "postgresql+psycopg://"), engine_kwargs=patience)


class database:  # noqa: N801 (used as a function)
    """A storage of the asked kind: a file in the folder, or a server that lives as long as the block."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder, self.server = kind, folder, None

    def __enter__(self) -> str:
        if self.kind == "sqlite":
            return f"sqlite:///{self.folder}/study.db"
        sys.path.insert(0, str(ROOT / "tests/study"))
        from conftest import Server

        self.server = Server()
        return self.server.database()

    def __exit__(self, *_: object) -> None:
        if self.server is not None:
            self.server.stop()


# A service with many clients.


def mixed_load(minutes: float, clients: int) -> None:
    """Asks, tells, fails, estimates, pages and dashboards from all clients at once: statuses and memory."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        tokens.write_text("admin " + "a" * 24 + "\n")
        port = random.randint(20000, 40000)
        command = [Path(sys.executable).with_name("randomist"), "serve", "--storage", f"sqlite:///{folder}/study.db",
                   "--tokens", tokens, "--port", str(port), "--rate", "100000"]  # fmt: skip
        service = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            _load(f"http://127.0.0.1:{port}", service.pid, minutes, clients)
        finally:
            service.terminate()
            print(f"the service ended with {service.wait(30)}")


def _load(address: str, pid: int, minutes: float, clients: int) -> None:
    from randomist.errors import RandomistError, ServiceError
    from randomist.study.client import Client

    with Client(address, "a" * 24) as client:
        space = {"kind": "Grid", "family": {"kind": "Gaussian", "std": 0.15}, "low": -1, "high": 1, "points": 20}
        for i in range(4):
            client.create(f"s{i}", "randomist", space, seed=i)
    end, counts, latencies = time.monotonic() + 60 * minutes, {"ok": 0, "refused": 0, "5xx": 0}, []
    lock = threading.Lock()

    def one(i: int) -> None:
        rng = random.Random(i)
        with Client(address, "a" * 24, patience=0.0) as client:
            study = client.study(f"s{i % 4}")
            while time.monotonic() < end:
                began = time.perf_counter()
                try:
                    what = rng.random()
                    if what < 0.8:
                        trial = study.ask(worker=f"c{i}")
                        study.tell(trial, 0.5) if what < 0.75 else study.fail(trial, "load")
                    elif what < 0.85:
                        study.estimates()
                    elif what < 0.9:
                        study.tell(0, 0.123)  # refused
                    elif what < 0.95:
                        client.call("GET", f"studies/{study.name}/trials?limit=50")
                    else:
                        client.call("GET", f"studies/{study.name}/dashboard")
                    kind = "ok"
                except ServiceError as error:
                    kind = "5xx" if error.status is None or error.status >= 500 else "refused"
                    if kind == "5xx":
                        print(error, flush=True)
                except RandomistError:
                    kind = "refused"
                with lock:
                    counts[kind] += 1
                    latencies.append(time.perf_counter() - began)
                time.sleep(rng.expovariate(10))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(min(30.0, 60 * minutes / 10))
        with lock:
            done, p99 = len(latencies), at(latencies, 0.99) if latencies else 0.0
        print(f"{done} requests, {counts}, p99 {1e3 * p99:.0f} ms, memory {_memory(pid):.0f} MiB", flush=True)
    assert counts["5xx"] == 0


# What the dashboard's pages are drawn from.


def dashboard(trials: int, studies: int) -> None:
    """CPU seconds, and how far memory rose, of a first look at a study that is loaded, and of the looks after it."""
    import numpy as np

    import randomist as rd
    from randomist.study.dashboard.curve import Curve, Curves
    from randomist.study.dashboard.data import estimates, news, overview, snapshot

    space = rd.Finite.grid(rd.Gaussian(std=0.15), -1, 1, 20)
    learners = {
        "K = 20": lambda: rd.Randomist(space, seed=0),
        "Auto": lambda: rd.Auto(low=[-1.0, 0.0], high=[1.0, 20.0], seed=0),
    }
    for name, make in learners.items():
        warm = rd.create_study("warm", make(), storage=f"memory://{name}")
        for payoff in np.random.default_rng(0).random(60).tolist():
            warm.tell(warm.ask(), payoff)
        snapshot(warm)  # compiled
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/study.db"
            fill_ours(url, trials, make())
            study = rd.load_study("bench", storage=url)
            print(f"{name}: {trials} trials, loaded in {_cost(lambda one=study: one.learner)}")
            curve = Curve(study.storage, study.record.id)
            print(f"  all of the page, first:     {_cost(lambda one=study, c=curve: snapshot(one, curve=c))}")
            print(f"  all of the page, again:     {_cost(lambda one=study, c=curve: snapshot(one, curve=c))}")
            study.tell(study.ask(), 0.5)
            known = curve.columns(study.counters)
            last = known["size"], len(known["x"]) - 1
            print(f"  what is new after a tell:   {_cost(lambda one=study, c=curve, at=last: news(one, c, *at))}")
            print(f"  estimates after a tell:     {_cost(lambda one=study: estimates(one))}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/study.db"
        for i in range(studies):
            study = rd.create_study(f"s{i}", rd.UCB1(space, seed=i), storage=url)
            for trial in study.ask(10):
                study.tell(trial, 0.5)
        curves = Curves(study.storage)
        print(f"{studies} studies of 10 trials")
        for times in ("first", "again"):
            cost = _cost(lambda: overview(study.storage, curves, lambda name: True))
            print(f"  the first 50 of them, {times}: {cost}", flush=True)


def _cost(work: Any) -> str:
    """CPU seconds, MiB above what the process had, and the size of the answer."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed is not there to be used again
    Path("/proc/self/clear_refs").write_text("5")  # the largest so far is forgotten
    before, started = _memory(os.getpid()), time.process_time()
    found = work()
    seconds = time.process_time() - started
    rise = _memory(os.getpid(), "VmHWM") - before
    size = f", {len(json.dumps(found)) / 1000:.1f} kB" if isinstance(found, dict) else ""
    return f"{seconds:.3f} CPU s, {max(rise, 0.0):.0f} MiB{size}"


def _memory(pid: int, what: str = "VmRSS") -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return math.nan
    return int(next(line for line in status.splitlines() if line.startswith(what)).split()[1]) / 1024


if __name__ == "__main__":
    main()
