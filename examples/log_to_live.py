"""From a log to live traffic: what the table of a shop says, and then a service that chooses while visitors come.

The shop is that of `recommender_shop.py`. Its table shows which recommenders may be better than the bestsellers; these
two and the bestsellers go live: a study, a service, and eight processes that serve visitors. Whether somebody buys is
known later, and in another order. At half time a fourth recommender comes, and begins with what all visitors so far say
about it, since what was shown to them is on file. At the end the history of the study is itself a log, and evaluated.

    python examples/log_to_live.py               # 10,000 visitors; writes out/live.db and out/visits-*.jsonl
    python examples/log_to_live.py --visits 2000 --workers 4
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import socket
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import numpy as np
from recommender_shop import FOLDER, SHOP, Visits, choose, log_likelihood, policy, truths, visits_table

import randomist as rd
from randomist.errors import MediatorError
from randomist.study.client import Client, RemoteStudy

OLD, LATE = "bestsellers", "personal-fresh"  # what runs today; who comes at half time
AHEAD, DELAY = 5, 40  # decisions that a process fetches at once; visits until a payoff is known
TOKEN = "a-token-of-this-example"


def from_the_log() -> list[str]:
    """Those that may be best, by the shop's table, and what runs today."""
    visits_table(SHOP, 40_000, seed=0).write_parquet(FOLDER / "shop.parquet")
    log = rd.Log.from_table(
        FOLDER / "shop.parquet",
        payoff="bought",
        logger="shown_by",
        id="visit",
        policies={name: policy(name) for name in ("bestsellers", "exploring", "personal", "fresh", "margins")},
        candidates=["bestsellers", "personal", "fresh", "margins"],
    )
    print(log.evaluate(compare="leader").verdict())
    return [OLD, *(name for name in log.best().names if name != OLD)]


def log_likelihoods(names: list[str], visits: Visits, shown: np.ndarray) -> np.ndarray:
    """How likely each policy is to show just that.  (n, policies)"""
    return np.column_stack([log_likelihood(SHOP.scores(name, visits), shown) for name in names])


def serve(address: str, number: int, count: int) -> int:
    """One process that serves visitors, and tells of each some time later whether something was bought."""
    rng, shuffle = np.random.default_rng([7, number]), random.Random(number)
    waiting: list[tuple[rd.Trial, Visits, np.ndarray, float]] = []
    with Client(address, TOKEN) as client, (FOLDER / f"visits-{number}.jsonl").open("w") as file:
        study = client.study("shop")
        names = list(study.names)
        for served in range(0, count, AHEAD):
            for trial in study.ask(AHEAD, worker=f"web-{number}"):
                visit = SHOP.visits(1, rng)
                shown = choose(SHOP.scores(trial.name, visit), rng)
                row = {"trial": trial.id, "segment": int(visit.segment[0]), "seen": np.flatnonzero(visit.seen).tolist()}
                file.write(json.dumps(row | {"shown": shown[0].tolist()}) + "\n")
                waiting.append((trial, visit, shown, float(SHOP.payoffs(visit, shown, rng)[0])))
            file.flush()  # what was shown is on file before it is told
            over = served + AHEAD >= count
            if len(waiting) >= 2 * DELAY or over:
                shuffle.shuffle(waiting)
                known, waiting = (waiting, []) if over else (waiting[:DELAY], waiting[DELAY:])
                names = tell(study, names, known)
    return count


def tell(study: RemoteStudy, names: list[str], known: list[tuple[rd.Trial, Visits, np.ndarray, float]]) -> list[str]:
    """Tell what is known by now; the names of the policies, which may be more than before."""
    trials, visits, shown, payoffs = zip(*known, strict=True)
    together = Visits(np.concatenate([v.segment for v in visits]), np.concatenate([v.seen for v in visits]))
    while True:
        said = log_likelihoods(names, together, np.concatenate(shown))
        try:
            study.tell_all(trials, payoffs, log_likelihoods=[dict(zip(names, row, strict=True)) for row in said])
            return names
        except MediatorError:  # one came meanwhile
            names = list(study.names)


def join(study: RemoteStudy, name: str) -> None:
    """A new policy, with how likely it would have done what was done so far: all of that counts for it, too."""
    while True:
        try:
            study.add(name=name, log_likelihoods=so_far(name))
            return
        except MediatorError:  # more was told since the files were read
            continue


def so_far(name: str) -> dict[int, float]:
    """How likely a policy would have shown what was shown, by trial."""
    files = [path.read_text().splitlines() for path in FOLDER.glob("visits-*.jsonl")]
    rows = [json.loads(line) for lines in files for line in lines if line.endswith("}")]
    seen = np.zeros((len(rows), SHOP.margin.size), bool)
    np.put_along_axis(seen, np.array([row["seen"] for row in rows]), True, axis=1)
    visits = Visits(np.array([row["segment"] for row in rows]), seen)
    found = log_likelihoods([name], visits, np.array([row["shown"] for row in rows]))[:, 0]
    return {row["trial"]: float(x) for row, x in zip(rows, found, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description="From a log to live traffic.")
    parser.add_argument("--visits", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=8, help="processes that serve visitors")
    given = parser.parse_args()
    visits, workers = given.visits, given.workers
    FOLDER.mkdir(exist_ok=True)
    for old in (*FOLDER.glob("live.db*"), *FOLDER.glob("visits-*.jsonl")):
        old.unlink()
    names = from_the_log()
    print(f"live: {' and '.join(names)}")

    storage = f"sqlite:///{FOLDER}/live.db"
    learner = rd.Realist(rd.Finite.likelihoods(len(names), names=names), payoff_range=(0, 1), seed=0)
    rd.create_study("shop", learner, storage=storage).close()

    (FOLDER / "tokens").write_text(f"work {TOKEN}\n")
    with socket.socket() as free:  # any port that nobody uses
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    randomist = str(Path(sys.executable).with_name("randomist"))
    options = ["--tokens", str(FOLDER / "tokens"), "--port", str(port), "--body", str(2**21)]
    service = subprocess.Popen([randomist, "serve", "--storage", storage, *options], stderr=subprocess.DEVNULL)
    address, began = f"http://127.0.0.1:{port}", time.monotonic()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool, Client(address, TOKEN) as client:
        study = client.study("shop")
        share = visits // workers
        done: list[Future[int]] = [pool.submit(serve, address, number, share) for number in range(workers)]
        while study.info().told < visits // 2:
            time.sleep(0.05)
        join(study, LATE)
        served = sum(each.result() for each in done)
        plays = dict(zip(study.names, study.estimates().plays.tolist(), strict=True))
    service.terminate()
    service.wait()
    seconds = time.monotonic() - began
    print(f"{served:,} visitors in {seconds:.0f} s: {', '.join(f'{name} {n:,}' for name, n in plays.items())}")

    evaluate = f"evaluate study:shop --storage {storage} --baseline {OLD} --payoff-range 0 1".split()
    print(subprocess.run([randomist, *evaluate], capture_output=True, text=True, check=True).stdout.strip())
    found, truth = rd.load_study("shop", storage=storage).log().evaluate(), truths(SHOP, seed=1)
    inside = [found.low[k] <= truth[name] <= found.high[k] for k, name in enumerate(found.candidates)]
    print("truth:", ", ".join(f"{name} {truth[name]:.4f}" for name in found.candidates))
    print(f"{sum(inside)} of {len(inside)} intervals hold it")


if __name__ == "__main__":
    main()
