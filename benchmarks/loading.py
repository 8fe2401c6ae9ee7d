"""What loading a study costs, from its trials alone and with a checkpoint: `python -m benchmarks loading`.

CPU seconds of one process, on SQLite, K = 20, all trials told, the least of three turns; a small study is loaded
before, so that nothing is compiled on the clock. The slope is that of log seconds over log trials, first to last.
"""

from __future__ import annotations

import math
import tempfile
import time

import randomist as rd
from benchmarks.studies import fill_ours

TRIALS = (1_000, 25_000, 50_000, 100_000)  # the first one warms up
TURNS = 3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        alone, checkpointed = [], []
        for n in TRIALS:
            url = f"sqlite:///{folder}/{n}.db"
            fill_ours(url, n)
            alone.append(min(seconds_to_load(url) for _ in range(TURNS)))
            load(url).ask()  # leaves a checkpoint
            checkpointed.append(min(seconds_to_load(url) for _ in range(TURNS)))
    for n, seconds, quick in zip(TRIALS[1:], alone[1:], checkpointed[1:], strict=True):
        print(f"{n:7,d} told trials: {seconds:5.2f} s of CPU from the trials alone, {quick:5.2f} s with a checkpoint")
    slope = math.log(alone[-1] / alone[1]) / math.log(TRIALS[-1] / TRIALS[1])
    print(f"slope {slope:.2f}, at most 1.1; {alone[-1]:.2f} s at {TRIALS[-1]:,d}, at most 2 s")
    with tempfile.TemporaryDirectory() as folder:
        for n in (TRIALS[0], TRIALS[-1]):
            url = f"sqlite:///{folder}/{n}.db"
            fill_ours(url, n, rd.Auto(dimension=10))
            seconds = min(seconds_to_load(url) for _ in range(TURNS))
    print(f"Auto in ten dimensions: {seconds:.2f} s at {TRIALS[-1]:,d}, at most 5 s")


def load(url: str) -> rd.Study:
    study = rd.load_study("bench", storage=url)
    assert study.learner.told
    return study


def seconds_to_load(url: str) -> float:
    began = time.process_time()
    load(url)
    return time.process_time() - began


if __name__ == "__main__":
    main()
