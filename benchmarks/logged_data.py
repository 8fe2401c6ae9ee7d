"""Ten million logged rows: how much memory an evaluation takes, and how fast it is beside polars' own scan of the file.

    python -m benchmarks.logged_data                    # 10⁷ rows, ten candidates, three loggers
    python -m benchmarks.logged_data --rows 1000000

The file is written part by part into a temporary folder (about 80 bytes a row). Each side then runs in a process of its
own, whose peak memory is what the operating system says: polars summing every column, and `randomist evaluate --json`.
The evaluation reads the file several times: for the names of the loggers, for repeated ids, to check the rows, for the
sums, and to compare the leader with whoever is left.
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


def measure(command: list[str]) -> tuple[float, float, str]:
    """Seconds, peak memory in MiB, and what it printed, of a process of its own."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"error: {' '.join(command)} failed")
    process.returncode = 0
    return time.perf_counter() - begin, usage.ru_maxrss / 1024, printed


@dataclass(frozen=True)
class Comparison:
    """Seconds and MiB of both sides on one file."""

    file_size: float
    scan: float
    scan_memory: float
    seconds: float
    memory: float
    startup: float
    verdict: str


def compare(folder: Path, rows: int) -> Comparison:
    """Write a log and evaluate it, beside polars."""
    randomist, path, small = (
        str(Path(sys.executable).with_name("randomist")),
        folder / "log.parquet",
        folder / "small.parquet",
    )
    writer = multiprocessing.get_context("spawn").Process(target=write, args=(path, rows))
    writer.start()  # apart, because what this process holds counts as a child's peak
    writer.join()
    pl.scan_parquet(path).head(1000).sink_parquet(small)
    measure([randomist, "evaluate", str(small), "--json"])  # compiles
    startup, _, _ = measure([randomist, "evaluate", str(small), "--json"])
    scan, scan_memory, _ = measure([sys.executable, "-c", SCAN, str(path)])
    seconds, memory, printed = measure([randomist, "evaluate", str(path), "--json"])
    size = path.stat().st_size / 2**20
    return Comparison(size, scan, scan_memory, seconds, memory, startup, json.loads(printed)["verdict"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else []).rows
    with tempfile.TemporaryDirectory() as folder:
        c = compare(Path(folder), rows)
    print(f"{rows:,} rows, {CANDIDATES} candidates, {LOGGERS} loggers: a file of {c.file_size:,.0f} MiB")
    for name, seconds, memory in (
        ("polars, sum of every column", c.scan, c.scan_memory),
        ("randomist evaluate", c.seconds, c.memory),
    ):
        print(f"{name + ':':29} {seconds:6.2f} s, {rows / seconds / 1e6:5.2f} M rows/s, peak {memory:,.0f} MiB")
    print(
        f"ratio {c.seconds / c.scan:.1f}, start-up of {c.startup:.2f} s included; peak {c.memory:,.0f} MiB (bar 1024)"
    )
    print(c.verdict)


if __name__ == "__main__":
    main()
