"""What a service did, in Prometheus' text format."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import defaultdict

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
ABORTED = 499  # the client went before it had sent all of its request, and got no answer


class Metrics:
    """Counters and a histogram of latency per route; the number of routes bounds its size."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._latency: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self.open = 0
        self.started = time.time()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[method, route, status] += 1
            buckets = self._latency.setdefault(route, [0] * (len(BUCKETS) + 1))
            buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds[route] += seconds

    def text(self, studies: dict[str, dict[str, int]]) -> str:
        """All of it; `studies` has counters per study."""
        lines = ["# HELP randomist_requests_total Requests by method, route and status.",
                 "# TYPE randomist_requests_total counter"]  # fmt: skip
        with self._lock:
            for (method, route, status), n in sorted(self._requests.items()):
                lines.append(f'randomist_requests_total{{method="{method}",route="{route}",status="{status}"}} {n}')
            lines += ["# HELP randomist_request_seconds How long requests took.",
                      "# TYPE randomist_request_seconds histogram"]  # fmt: skip
            for route, buckets in sorted(self._latency.items()):
                total = 0
                for bound, n in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                    total += n
                    lines.append(f'randomist_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
                lines.append(f'randomist_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
                lines.append(f'randomist_request_seconds_count{{route="{route}"}} {total}')
            lines += ["# HELP randomist_requests_open Requests in progress.", "# TYPE randomist_requests_open gauge",
                      f"randomist_requests_open {self.open}",
                      "# HELP randomist_start_time_seconds When the service started.",
                      "# TYPE randomist_start_time_seconds gauge",
                      f"randomist_start_time_seconds {self.started:.3f}"]  # fmt: skip
        lines += ["# HELP randomist_trials_total Trials of a study: asked, told, failed.",
                  "# TYPE randomist_trials_total counter"]  # fmt: skip
        for name, counts in studies.items():
            for state, n in counts.items():
                lines.append(f'randomist_trials_total{{study="{name}",event="{state}"}} {n}')
        return "\n".join(lines) + "\n"


class MeasureRequests:
    """Counts every request under the route that served it."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = ABORTED, time.perf_counter()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.open += 1
        try:
            await self.app(scope, receive, watched)
        except BaseException:
            status = 500
            raise
        finally:
            self.metrics.open -= 1
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "POST", "HEAD") else "other"
            self.metrics.count(method, route, status, time.perf_counter() - started)
