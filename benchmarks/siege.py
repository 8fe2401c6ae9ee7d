"""The service under siege: what honest clients get beside those who take all that they can.

    python -m benchmarks.service siege

Three minutes, and one to two of CPU time, on SQLite. Each attack runs in a process of its own at low priority, as it
would on another machine; honest clients have a token of their own. A table says for each attack how many asks were
answered of those tried, or how many were answered a second in comparison to none, and the service's memory.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import multiprocessing
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

GOOD, READ = "g" * 24, "r" * 24
ROWS = 20_000  # of the study that is exported
TURNS = 6
MOST = 60.0  # seconds of an attack, whatever becomes of this process
Attack = Callable[[int, float], None]  # a port, and until when


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        siege(Path(folder))


def siege(folder: Path) -> None:
    url = f"sqlite:///{folder / 'study.db'}"
    fill(url)
    (folder / "tokens").write_text(f"work {GOOD}\nread {READ}\n")
    print("| attack | asks answered | asks a second | peak memory |\n|---|---|---|---|", flush=True)
    with serving(url, folder) as (port, service):
        closed_loop(port, 2.0)  # loaded, compiled
        answered("none", port, service, None)
        answered("700 slow bodies without a token", port, service, slow_bodies(700, None))
        answered("700 slow bodies with a token to read", port, service, slow_bodies(700, READ))
        answered("1500 connections without a head", port, service, slow_bodies(1500, None, b""))
        big = "/api/v1/studies/big"
        compared("60 exports, over and over", port, service, repeated(60, f"{big}/export?format=csv"))
        compared("60 readers of pages of trials", port, service, repeated(60, f"{big}/trials?limit=1000"))
        compared("250 exports that nobody takes", port, service, untaken(250, f"{big}/export"))
    with serving(url, folder) as (port, service), attacking(guesses(8.0), port):
        time.sleep(14.0)
    with serving(url, folder) as (port, service):
        with attacking(guesses(100.0), port):
            time.sleep(3.0)
        answered("guesses, after a restart", port, service, guesses(40.0))


def answered(name: str, port: int, service: int, attack: Attack | None) -> None:
    """How many asks were answered of those that came ten a second."""
    with attacking(attack, port), memory(service) as peak:
        time.sleep(4.0 if attack else 0.0)
        there, tried = paced(port, 10.0)
    print(f"| {name} | {there} of {tried} | | {max(peak):.0f} MiB |", flush=True)


def compared(name: str, port: int, service: int, attack: Attack) -> None:
    """How many asks are answered a second with the attack and without, in turns: what else runs here changes."""
    calm = beside = 0
    with attacking(attack, port) as process, memory(service) as peak:
        assert process is not None
        time.sleep(3.0)
        for _ in range(TURNS):
            os.kill(process, signal.SIGSTOP)
            time.sleep(0.5)
            calm += closed_loop(port, 1.5)
            os.kill(process, signal.SIGCONT)
            time.sleep(0.5)
            beside += closed_loop(port, 1.5)
    rate = beside / TURNS / 1.5
    print(f"| {name} | | {rate:.0f} ({beside / max(calm, 1):.0%} of calm) | {max(peak):.0f} MiB |", flush=True)


# Those who ask.


def paced(port: int, seconds: float, each: float = 0.1) -> tuple[int, int]:
    """Asks that come in time, whatever became of those before: how many were answered within 5 s, and how many came."""
    statuses: list[int] = []
    threads = []
    for i in range(int(seconds / each)):
        threads.append(threading.Thread(target=lambda: statuses.append(ask(port))))
        threads[i].start()
        time.sleep(each)
    for thread in threads:
        thread.join()
    return statuses.count(200), len(threads)


def closed_loop(port: int, seconds: float) -> int:
    """Of four clients that ask again as soon as they were answered: how many asks were."""
    end, statuses = time.monotonic() + seconds, list[int]()

    def client() -> None:
        while time.monotonic() < end:
            statuses.append(ask(port))

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses.count(200)


def ask(port: int) -> int:
    """The status of an ask, 0 where none came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    headers = {"Authorization": f"Bearer {GOOD}", "Content-Type": "application/json"}
    try:
        connection.request("POST", "/api/v1/studies/small/ask", b"{}", headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


# Those who attack.


def slow_bodies(n: int, token: str | None, head: bytes | None = None) -> Attack:
    """So many requests at once, 100 more a second, whose body does not come; what is closed is opened again."""
    begun = b"POST /api/v1/studies/big/estimates HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n"
    begun += b"" if token is None else f"Authorization: Bearer {token}\r\n".encode()

    def attack(port: int, end: float) -> None:
        held: list[socket.socket] = []
        while time.monotonic() < end:
            held = [peer for peer in held if not is_over(peer)]
            for _ in range(min(10, n - len(held))):
                with contextlib.suppress(OSError):
                    held.append(socket.create_connection(("127.0.0.1", port), timeout=2))
                    held[-1].sendall(begun + b"\r\n" if head is None else head)
            time.sleep(0.1)

    return attack


def repeated(n: int, path: str) -> Attack:
    """So many readers that take all, and begin again."""

    def attack(port: int, end: float) -> None:
        def read() -> None:
            while time.monotonic() < end:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                with contextlib.suppress(OSError, http.client.HTTPException):
                    connection.request("GET", path, headers={"Authorization": f"Bearer {READ}"})
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status != 200:
                        time.sleep(1.0)
                connection.close()

        for _ in range(n):
            threading.Thread(target=read, daemon=True).start()
        time.sleep(max(end - time.monotonic(), 0.0))

    return attack


def untaken(n: int, path: str) -> Attack:
    """So many requests whose answer is not read; what is closed is opened again."""
    return slow_bodies(n, None, f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {READ}\r\n\r\n".encode())


def guesses(rate: float) -> Attack:
    """Wrong tokens, so many a second."""

    def attack(port: int, end: float) -> None:
        for i in itertools.count():
            if time.monotonic() > end:
                return
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/api/v1/studies", headers={"Authorization": f"Bearer {i:024d}"})
                connection.getresponse().read()
            connection.close()
            time.sleep(1 / rate)

    return attack


def is_over(peer: socket.socket) -> bool:
    """Whether the service has closed a connection, or said something short and is done."""
    if not select.select([peer], [], [], 0)[0]:
        return False
    try:
        said = peer.recv(1, socket.MSG_PEEK)
    except OSError:
        said = b""
    return not said and (peer.close() is None)


@contextlib.contextmanager
def attacking(attack: Attack | None, port: int) -> Iterator[int | None]:
    if attack is None:
        yield None
        return
    process = multiprocessing.get_context("fork").Process(target=_attack, args=(attack, port))
    process.start()
    try:
        yield process.pid
    finally:
        process.kill()
        process.join()


def _attack(attack: Attack, port: int) -> None:
    os.nice(19)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    attack(port, time.monotonic() + MOST)


# The service.


def fill(url: str) -> None:
    import randomist as rd

    gaussians = rd.Finite(rd.Gaussian(mean=[0, 1, 2, 2.95, 3], std=[2, 2, 2, 0.1, 2]))
    rd.create_study("small", rd.UCB1(gaussians, seed=0), storage=url)
    big = rd.create_study("big", rd.UCB1(gaussians, seed=0), storage=url)
    for _ in range(ROWS // 1000):
        trials = big.ask(1000)
        big.tell_all(trials, [0.5] * len(trials))


@contextlib.contextmanager
def serving(url: str, folder: Path) -> Iterator[tuple[int, int]]:
    """A service in a process of its own: its port, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    given = ["serve", "--storage", url, "--tokens", str(folder / "tokens"), "--port", str(port), "--rate", "100000"]
    run = "from randomist.cli import main; main()"
    with (folder / "log").open("a") as log:
        service = subprocess.Popen([sys.executable, "-c", run, *given], stderr=log, stdout=log)
    try:
        for _ in range(300):
            time.sleep(0.1)
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
        yield port, service.pid
    finally:
        service.terminate()
        try:
            service.wait(30)
        except subprocess.TimeoutExpired:
            service.kill()


@contextlib.contextmanager
def looking(look: Callable[[], float], pause: float) -> Iterator[list[float]]:
    """What a look says, again and again."""
    found, over = [look()], threading.Event()

    def again() -> None:
        while not over.wait(pause):
            found.append(look())

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def memory(process: int) -> contextlib.AbstractContextManager[list[float]]:
    """MiB of a process and those that it started."""
    return looking(lambda: resident(process), 0.3)


def resident(process: int) -> float:
    children = [file.read_text() for file in Path(f"/proc/{process}/task").glob("*/children")]
    total = 0.0
    for one in [str(process), *"".join(children).split()]:
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{one}/status").read_text()
            total += int(status.partition("VmRSS:")[2].split()[0]) / 1024
    return total


if __name__ == "__main__":
    main()
