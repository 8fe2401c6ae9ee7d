"""Ten million logged rows: how much memory an evaluation takes, and how fast it is beside polars' own scan of the file.

    python -m benchmarks.logged_data                    # 10⁷ rows, ten candidates, three loggers
    python -m benchmarks.logged_data --rows 1000000

    python -m benchmarks.logged_data --repeat 10        # a folder of ten such files, too: the cost of a row stays

The file is written part by part into a temporary folder (about 80 bytes a row). Each side then runs in a process of its
own, whose peak memory and processor time are what the operating system says: polars summing every column, and
`randomist evaluate --json`, with two threads and with one (of ours and of polars). The evaluation reads the file twice:
to check the rows, and for the sums. Where other work is going on, compare processor times.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

CANDIDATES, LOGGERS, PART = 10, 3, 500_000
SCAN = """
import sys, polars as pl
sums = pl.scan_parquet(sys.argv[1]).select(pl.all().exclude("logger").sum(), pl.col("logger").n_unique())
sums.collect(engine="streaming")
"""


def write(path: Path, rows: int) -> None:
    """Gaussian policies on a line; the payoff is 1 with a probability that grows along it."""
    rng, means = np.random.default_rng(0), np.linspace(-0.5, 0.9, CANDIDATES)
    parts = []
    for start in range(0, rows, PART):
        count = min(PART, rows - start)
        acted = rng.integers(0, LOGGERS, count)
        z = means[acted] + rng.standard_normal(count)
        columns = {
            "id": np.arange(start, start + count),
            "payoff": (rng.random(count) < 1 / (1 + np.exp(-z))).astype(float),
            "logger": np.array([f"policy-{k}" for k in range(LOGGERS)])[acted],
        }
        columns |= {f"log_likelihood:policy-{k}": -0.5 * (z - means[k]) ** 2 for k in range(CANDIDATES)}
        parts.append(path.with_name(f"part-{start:09d}.parquet"))
        pl.DataFrame(columns).write_parquet(parts[-1])
    pl.scan_parquet(parts).sink_parquet(path)
    for part in parts:
        part.unlink()


@dataclass(frozen=True)
class Cost:
    """Of a process: seconds, processor time in seconds, peak memory in MiB, and what it printed."""

    seconds: float
    processor: float
    memory: float
    printed: str


def measure(command: list[str], threads: int = 2) -> Cost:
    """Of a process of its own, with so many threads of polars."""
    begin = time.perf_counter()
    environment = os.environ | {"POLARS_MAX_THREADS": str(threads)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    with process.stdout:
        printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"error: {' '.join(command)} failed")
    process.returncode = 0
    return Cost(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, printed)


def evaluation(path: Path, jobs: int) -> Cost:
    randomist = str(Path(sys.executable).with_name("randomist"))
    return measure([randomist, "evaluate", str(path), "--json", "--jobs", str(jobs)], jobs)


def compare(folder: Path, rows: int) -> dict[str, Cost]:
    """Write a log and evaluate it, beside polars."""
    path, small = folder / "log.parquet", folder / "small.parquet"
    writer = multiprocessing.get_context("spawn").Process(target=write, args=(path, rows))
    writer.start()  # apart, because what this process holds counts as a child's peak
    writer.join()
    pl.scan_parquet(path).head(1000).sink_parquet(small)
    evaluation(small, 2)  # compiles
    return {
        "start-up": evaluation(small, 2),
        "polars, sum of every column": measure([sys.executable, "-c", SCAN, str(path)]),
        "randomist, two threads": evaluation(path, 2),
        "randomist, one thread": evaluation(path, 1),
    }


def show(name: str, cost: Cost, rows: int) -> None:
    speed = f"{rows / cost.seconds / 1e6:5.2f} M rows/s"
    print(
        f"{name + ':':29} {cost.seconds:6.2f} s ({cost.processor:6.2f} of processors), {speed}, {cost.memory:,.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    rows = options.rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        costs = compare(folder, rows)
        size = (folder / "log.parquet").stat().st_size / 2**20
        print(f"{rows:,} rows, {CANDIDATES} candidates, {LOGGERS} loggers: a file of {size:,.0f} MiB")
        for words, cost in costs.items():
            show(words, cost, 1000 if words == "start-up" else rows)
        start, scan, two, one = costs.values()
        print(
            f"{two.seconds / scan.seconds:.1f} times polars ({two.processor / scan.processor:.1f} of processors), "
            f"start-up included; two threads {one.seconds / two.seconds:.2f} times as fast as one"
        )
        if options.repeat > 1:
            many = folder / "many"
            many.mkdir()
            for part in range(options.repeat):
                pl.scan_parquet(folder / "log.parquet").with_columns(pl.col("id") + part * rows).sink_parquet(
                    many / f"{part:03d}.parquet"
                )
            cost = evaluation(many, 2)
            show(f"randomist, {options.repeat} such files", cost, options.repeat * rows)
            each = (cost.processor - start.processor) / options.repeat / (two.processor - start.processor)
            print(f"the cost of a row is {each:.2f} times that of one file")
        print(json.loads(two.printed)["verdict"])


if __name__ == "__main__":
    main()
