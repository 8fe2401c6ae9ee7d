"""Every benchmark, one after the other: `python -m benchmarks`, or one by name: `python -m benchmarks ask_tell`."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = (
    "startup",
    *("ask_tell", "control_tasks", "box_learners", "loading"),
    *("long_runs", "drift"),
    *("rivals", "realist", "further", "lock_in"),
    "optuna_sampler",
    *("logged_data", "log_intervals", "categorical", "per_decision"),
    *("logs.protocol", "logs.troubled", "logs.promises", "logs.models", "logs.fitted"),
)


def main() -> None:
    chosen = sys.argv[1:] or BENCHMARKS
    unknown = set(chosen) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"error: unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    for name in chosen:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
