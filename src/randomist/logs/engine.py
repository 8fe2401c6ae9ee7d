"""Who does the work: threads of this process, or the workers of a Ray or Dask cluster.

Work is cut by row numbers before it is given away, and what comes back is taken in the order of rows, so that it does
not matter who did what, how many there were, or who had to do it again.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from randomist import _checks

Item = TypeVar("Item")
Result = TypeVar("Result")

ENGINES = ("threads", "ray", "dask")


class Engine(Protocol):
    """Calls a function on items, some at a time, and gives what it returns in the order of the items."""

    remote: bool  # whether workers may be on other machines: they then read files themselves

    def map(self, function: Callable[..., Result], items: Iterable[Item], *shared: Any) -> Iterator[Result]: ...

    def close(self) -> None: ...


def find_engine(name: str, jobs: int | None) -> Engine:
    """The engine of this name; by default with as many workers as there are processors."""
    _checks.choice(name, ENGINES, "engine")
    if jobs is not None:
        _checks.whole_number(jobs, "jobs")
    if name == "ray":
        return Ray(jobs)
    if name == "dask":
        return Dask(jobs)
    return Threads(processors() if jobs is None else jobs)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Threads:
    """Threads of this process. One job needs none."""

    remote = False

    def __init__(self, jobs: int) -> None:
        self.jobs, self._pool = jobs, None if jobs == 1 else ThreadPoolExecutor(jobs)

    def map(self, function: Callable[..., Result], items: Iterable[Item], *shared: Any) -> Iterator[Result]:
        if self._pool is None:
            return (function(item, *shared) for item in items)
        pool = self._pool
        return _in_order((pool.submit(function, item, *shared) for item in items), self.jobs, lambda f: f.result())

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def _in_order(calls: Iterator[Any], jobs: int, result: Callable[[Any], Result]) -> Iterator[Result]:
    """What calls return, in their order; one more than there are workers is on its way at a time."""
    running: deque[Any] = deque()
    for call in calls:
        running.append(call)
        if len(running) > jobs:
            yield result(running.popleft())
    while running:
        yield result(running.popleft())


class Ray:
    """Workers of a Ray cluster: the one that runs (`RAY_ADDRESS`), or one on this machine. A worker that dies is
    replaced."""

    remote = True

    def __init__(self, jobs: int | None) -> None:
        try:
            import ray
        except ImportError:
            raise ImportError("engine='ray' needs the extra ray: pip install 'randomist[ray]'") from None
        self._ray: Any = ray
        self._started = not ray.is_initialized()
        if self._started:
            address = os.environ.get("RAY_ADDRESS")
            ray.init(address, num_cpus=None if address else jobs, log_to_driver=False)
        self.jobs = jobs or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def map(self, function: Callable[..., Result], items: Iterable[Item], *shared: Any) -> Iterator[Result]:
        call = self._ray.remote(function).options(max_retries=-1)
        kept = [self._ray.put(value) for value in shared]
        return _in_order((call.remote(item, *kept) for item in items), self.jobs, self._ray.get)

    def close(self) -> None:
        if self._started:
            self._ray.shutdown()


class Dask:
    """Workers of a Dask cluster: that of `DASK_SCHEDULER_ADDRESS` or of the current client, or one on this machine."""

    remote = True

    def __init__(self, jobs: int | None) -> None:
        try:
            from distributed import Client, LocalCluster, get_client
        except ImportError:
            raise ImportError("engine='dask' needs the extra dask: pip install 'randomist[dask]'") from None
        self._cluster, address = None, os.environ.get("DASK_SCHEDULER_ADDRESS")
        try:
            self._client = Client(address) if address else get_client()
        except ValueError:
            count = processors() if jobs is None else jobs
            self._cluster = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
            self._client = Client(self._cluster)
        self.jobs = jobs or max(1, sum(self._client.nthreads().values()))

    def map(self, function: Callable[..., Result], items: Iterable[Item], *shared: Any) -> Iterator[Result]:
        kept = [self._client.scatter(value, broadcast=True, hash=False) for value in shared]
        calls = (self._client.submit(function, item, *kept, pure=False) for item in items)
        return _in_order(calls, self.jobs, lambda future: future.result())

    def close(self) -> None:
        if self._cluster is not None:
            self._client.close()
            self._cluster.close()
