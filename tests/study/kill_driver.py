"""A worker that is killed again and again: `kill_driver.py URL MOMENTS SEED`, with a table of what was acknowledged.

The worker is a forked process, so that a restart costs no imports. It writes to a pipe what `tell` acknowledged.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import sys
import time

import randomist as rd
from tests.problems import GAUSSIANS, payoff

ACKNOWLEDGED = struct.Struct("<qd")


def worker(url: str, pipe: int) -> None:
    study = rd.load_study("killed", storage=url, worker="driver")
    open_trials = study.pending()
    study.learner  # noqa: B018 (loaded)
    os.write(pipe, ACKNOWLEDGED.pack(-1, 0.0))  # it begins
    while True:
        trial = open_trials.pop(0) if open_trials else study.ask()
        value = payoff(trial)
        study.tell(trial, value)
        os.write(pipe, ACKNOWLEDGED.pack(trial.id, value))


def main(url: str, moments: int, seed: int) -> None:
    rng = random.Random(seed)
    learner = rd.Randomist(GAUSSIANS, seed=4)
    for _ in range(3):  # compiled before the clock runs
        learner.tell(learner.ask(), 0.5)
    rd.create_study("killed", rd.Randomist(GAUSSIANS, seed=4), storage=url).close()
    acknowledged: list[tuple[int, float]] = []
    rounds = []
    loading, round_ = 0.05, 0.01  # seconds that these took so far: a busy machine needs longer
    for _ in range(moments):
        out, in_ = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(out)
            worker(url, in_)
        os.close(in_)
        said, span = b"", loading
        if rng.random() < 0.85:  # else while it loads
            started = time.monotonic()
            said = os.read(out, ACKNOWLEDGED.size)
            loading = 0.7 * loading + 0.3 * (time.monotonic() - started)
            for _ in range(rng.randrange(4)):
                started = time.monotonic()
                said += os.read(out, ACKNOWLEDGED.size)
                round_ = 0.7 * round_ + 0.3 * (time.monotonic() - started)
            span = 1.5 * round_
        time.sleep(rng.uniform(0.0, span))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        while chunk := os.read(out, 65536):
            said += chunk
        os.close(out)
        told = [(id_, value) for id_, value in ACKNOWLEDGED.iter_unpack(said) if id_ >= 0]
        acknowledged += told
        rounds.append(len(told))
    print(json.dumps({"acknowledged": acknowledged, "rounds": rounds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
