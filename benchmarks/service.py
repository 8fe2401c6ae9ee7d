"""A service under load: how many decisions a second beside Optuna, and how long others wait under attack.

    python -m benchmarks.service throughput             # 32 clients, a study of 20 policies known by their likelihoods
    python -m benchmarks.service throughput --batch 50
    python -m benchmarks.service starvation             # idle connections, slow bodies, heavy reads, a dashboard
    python -m benchmarks.service siege                  # those who take all that they can, one kind at a time

Clients, service and PostgreSQL (from the installed binaries, in a temporary folder) share this machine. A decision is
an ask, and a tell with the log-likelihoods of what was done under every policy, each durable when it is answered. Then
the service is killed (SIGKILL) while it works, and what clients were told is looked for in the database. Optuna runs on
the same server right after: 32 processes with its random sampler and one float parameter, ask and tell.

`starvation` runs 16 workers first alone, and then while others hold idle connections, send bodies a byte at a time, and
read estimates of 1,000 decisions each time something changes; it prints the 99th percentile of each kind of request.
Each takes about two minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import siege
from benchmarks.studies import at, database, fill_optuna, optuna

TOKEN = "a" * 24
POLICIES, ACTIONS = 20, 5
Times = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["throughput", "starvation", "siege"])
    parser.add_argument("--learner", default="realist")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--processes", type=int, default=4, help="in which the clients are threads")
    parser.add_argument("--batch", type=int, default=1, help="decisions of one request")
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    if chosen.what == "siege":
        siege.main()
        return
    with tempfile.TemporaryDirectory() as folder, database("postgresql", Path(folder)) as url:
        if chosen.what == "throughput":
            throughput(chosen, url, Path(folder))
        else:
            starvation(chosen, url, Path(folder))


# How many decisions.


def throughput(chosen: argparse.Namespace, url: str, folder: Path) -> None:
    with serving(url, folder, chosen.learner) as (address, service):
        run(address, 1, 1, 2.0, chosen.batch)  # compiled, connected
        counted = run(address, chosen.clients, chosen.processes, chosen.seconds, chosen.batch)
        report(f"randomist, {chosen.clients} clients, batches of {chosen.batch}", counted, chosen.seconds)
        threading.Timer(3.0, lambda: os.kill(service, signal.SIGKILL)).start()
        counted = run(address, chosen.clients, chosen.processes, 5.0, chosen.batch)
    print(f"{len(counted['acknowledged'])} tells acknowledged before kill -9, {lost(url, counted)} lost", flush=True)
    try:
        import optuna as _  # noqa: F401
    except ImportError:
        print("Optuna is not installed")
        return
    with contextlib.closing(socket.socket()):
        fill_optuna(url, 0)
    peers = spread(chosen.clients, chosen.clients, lambda i: optuna_worker(url, chosen.seconds))
    report(f"Optuna, {chosen.clients} processes", peers, chosen.seconds)


def run(address: str, clients: int, processes: int, seconds: float, batch: int) -> Times:
    return spread(clients, processes, lambda i: client(address, i, seconds, batch))


def client(address: str, number: int, seconds: float, batch: int) -> Times:
    """Decide, and tell what was done, until the time is over or the service is gone."""
    from randomist.errors import ServiceError
    from randomist.study.client import Client

    rng = random.Random(number)
    names = [f"p{k}" for k in range(POLICIES)]
    table = [[rng.random() + 0.1 for _ in range(ACTIONS)] for _ in range(POLICIES)]
    import math

    logs = [[math.log(x / sum(row)) for x in row] for row in table]
    found: Times = {"ask": [], "tell": [], "acknowledged": []}
    end = time.monotonic() + seconds
    with Client(address, TOKEN, patience=0.0) as service, contextlib.suppress(ServiceError):
        study = service.study("bench")
        while time.monotonic() < end:
            began = time.perf_counter()
            trials = study.ask(batch) if batch > 1 else [study.ask()]
            asked = time.perf_counter()
            actions = [rng.randrange(ACTIONS) for _ in trials]
            said = [{name: row[action] for name, row in zip(names, logs, strict=True)} for action in actions]
            payoffs = [rng.random() for _ in trials]
            if batch > 1:
                study.tell_all(trials, payoffs, log_likelihoods=said)
            else:
                study.tell(trials[0], payoffs[0], log_likelihoods=said[0])
            found["ask"].append(asked - began)
            found["tell"].append(time.perf_counter() - asked)
            found["acknowledged"] += [float(trial.id) for trial in trials]
    return found


def optuna_worker(url: str, seconds: float) -> Times:
    ask, tell = optuna(url)
    found: Times = {"ask": [], "tell": [], "acknowledged": []}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        trial = ask()
        asked = time.perf_counter()
        tell(trial, 0.5)
        found["ask"].append(asked - began)
        found["tell"].append(time.perf_counter() - asked)
        found["acknowledged"].append(float(trial.number))
    return found


def lost(url: str, counted: Times) -> int:
    """How many acknowledged tells are not in the database."""
    import randomist as rd

    told = {trial.id for trial in rd.load_study("bench", storage=url).trials("told")}
    return sum(int(number) not in told for number in counted["acknowledged"])


def report(name: str, counted: Times, seconds: float) -> None:
    rate = len(counted["acknowledged"]) / seconds
    waits = (f"{kind} median {1e3 * at(counted[kind], 0.5):.1f} ms, p99 {1e3 * at(counted[kind], 0.99):.1f} ms"
             for kind in ("ask", "tell"))  # fmt: skip
    print(f"{name}: {rate:.0f} decisions/s; {'; '.join(waits)}", flush=True)


# How long others wait.


def starvation(chosen: argparse.Namespace, url: str, folder: Path) -> None:
    with serving(url, folder, chosen.learner) as (address, _):
        run(address, 1, 1, 2.0, 1)
        with watching(address) as health:
            alone = run(address, 16, 2, chosen.seconds, 1)
        tell_of("alone", alone, health)
        with attackers(address, chosen.seconds + 5.0), watching(address) as health:
            time.sleep(2.0)
            attacked = run(address, 16, 2, chosen.seconds, 1)
        tell_of("attacked", attacked, health)
        for kind in ("ask", "tell"):
            print(f"p99 of {kind}: {at(attacked[kind], 0.99) / at(alone[kind], 0.99):.2f} times that without them")


def tell_of(name: str, counted: Times, health: list[float]) -> None:
    waits = (f"{kind} p99 {1e3 * at(counted[kind], 0.99):.0f} ms" for kind in ("ask", "tell"))
    print(f"{name}: {len(counted['ask'])} decisions; {'; '.join(waits)}; /healthz p99 {1e3 * at(health, 0.99):.0f} ms")


def watching(address: str) -> contextlib.AbstractContextManager[list[float]]:
    """How long /healthz takes, all the while."""
    import urllib.request

    def look() -> float:
        began = time.perf_counter()
        with urllib.request.urlopen(f"{address}/healthz", timeout=30) as answer:
            assert answer.status == 200
        return time.perf_counter() - began

    return siege.looking(look, 0.1)


@contextlib.contextmanager
def attackers(address: str, seconds: float) -> Iterator[None]:
    """2,000 idle connections, 100 slow bodies, 45 heavy readers and a dashboard, in a process of their own."""
    process = multiprocessing.get_context("fork").Process(target=attack, args=(address, seconds))
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def attack(address: str, seconds: float) -> None:
    os.nice(19)  # they would be on other machines
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    host, port = address.removeprefix("http://").split(":")
    idle = []
    for _ in range(2000):
        with contextlib.suppress(OSError):
            idle.append(socket.create_connection((host, int(port)), timeout=5))
    head = f"POST /api/v1/studies/bench/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    slow = []
    for _ in range(100):
        with contextlib.suppress(OSError):
            slow.append(socket.create_connection((host, int(port)), timeout=5))
            slow[-1].sendall(head + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
    end = time.monotonic() + seconds
    for i in range(45):
        threading.Thread(target=read, args=(address, i, end), daemon=True).start()
    while time.monotonic() < end:
        for one in slow:
            with contextlib.suppress(OSError):
                one.send(b" ")
        time.sleep(1.0)


def read(address: str, number: int, end: float) -> None:
    """Estimates of a thousand decisions of a box, never the same twice; one reader is a dashboard instead."""
    from randomist.errors import RandomistError
    from randomist.study.client import Client

    rng = random.Random(number)
    with Client(address, TOKEN, patience=0.0, timeout=60.0) as service:
        while time.monotonic() < end:
            with contextlib.suppress(RandomistError):
                if number:
                    service.study("box").estimate([rng.random() for _ in range(1000)])
                else:
                    service.call("GET", "studies/bench/dashboard")


# The service, and those who use it.


@contextlib.contextmanager
def serving(url: str, folder: Path, learner: str) -> Iterator[tuple[str, int]]:
    """A service in a process of its own: its address, and its process."""
    from randomist.study.client import Client

    (folder / "tokens").write_text(f"admin {TOKEN}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("randomist"), "serve", "--storage", url, "--tokens", folder / "tokens",
               "--port", str(port), "--rate", "100000"]  # fmt: skip
    service = subprocess.Popen([*map(str, command)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        with Client(address, TOKEN) as client:
            names = [f"p{k}" for k in range(POLICIES)]
            client.create("bench", learner, {"kind": "Likelihoods", "names": names}, payoff_range=[0, 1], seed=0)
            family = {"kind": "Gaussian", "std": 0.15}
            box = client.create("box", "mcmc-randomist", {"kind": "Box", "family": family, "low": 0, "high": 1}, seed=0)
            for _ in range(10):
                trials = box.ask(100)
                box.tell_all(trials, [random.random() for _ in trials])
        yield address, service.pid
    finally:
        service.terminate()
        service.wait(30)


def spread(clients: int, processes: int, work: Callable[[int], Times]) -> Times:
    """What clients say, which are threads of so many processes."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()

    def process(numbers: range) -> None:
        said: list[Times] = []
        threads = [threading.Thread(target=lambda i=i: said.append(work(i))) for i in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        queue.put(json.dumps(said))

    workers = [context.Process(target=process, args=(range(i, clients, processes),)) for i in range(processes)]
    for worker in workers:
        worker.start()
    said = [times for _ in workers for times in json.loads(queue.get())]
    for worker in workers:
        worker.join()
    kinds: list[str] = ["ask", "tell", "acknowledged"]
    everything: dict[str, Any] = {kind: [x for times in said for x in times[kind]] for kind in kinds}
    return everything


if __name__ == "__main__":
    main()
