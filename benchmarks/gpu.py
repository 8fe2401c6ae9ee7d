"""`python -m benchmarks.gpu`: whole runs over many seeds on a device, beside runs one after the other on the CPU.

    python -m benchmarks.gpu runs --device gpu --seeds 10000 --save out/gpu.json    # on a machine with a GPU
    python -m benchmarks.gpu cpu --seeds 1000 --jobs 2 --save out/cpu.json           # anywhere
    python -m benchmarks.gpu compare out/gpu.json out/cpu.json

`runs` writes the time of the first call and of a second one, compiling included. `pass` measures one estimate of a
million decisions from 4,000 samples beside the copy bandwidth of the device. `compare` tests the mean regrets of both
files against each other (Welch's test).
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

LEARNERS = ("randomist", "optimist", "ftl", "ucb1")
PROBLEMS: dict[str, dict[str, Any]] = {
    "lqg": {"task": "lqg", "rounds": 5000, "settings": {}},
    "grid": {"task": "lqg", "rounds": 4000, "settings": {"dimension": 3, "space": "grid", "points": 100}},
    "illustrative": {"task": "illustrative", "rounds": 2000, "settings": {"sigma": 2, "lambda_": 0.1}},
}


def bandwidth(device: Any) -> float:
    """Bytes read and written a second when an array is copied with one addition."""
    import jax
    import jax.numpy as jnp

    n = 2**28 if device.platform == "gpu" else 2**24
    with jax.default_device(device):
        x, add = jnp.zeros(n, jnp.float32), jax.jit(lambda x: x + 1)
        add(x).block_until_ready()
        begin = time.perf_counter()
        for _ in range(10):
            x = add(x)
        x.block_until_ready()
        return 10 * 2 * 4 * n / (time.perf_counter() - begin)


def one_pass(arguments: argparse.Namespace) -> dict[str, Any]:
    """One estimate of K decisions from t samples: what it reads a second, beside a copy."""
    import jax
    import jax.numpy as jnp

    from randomist.vectorised.backend import computing_on, device_named
    from randomist.vectorised.history import BYTES, Shared

    device, size, rounds = device_named(arguments.device), arguments.decisions, arguments.rounds or 4000
    with computing_on(device):
        known = Shared.empty(size, rounds)._replace(effective=jnp.full(size, 100.0))
        length = known.ratios.shape[1]
        known = known._replace(
            ratios=jnp.full((size, length), 0.5, jnp.float32), payoffs=0.3 * (jnp.arange(length) < rounds)
        )
        seen = jax.jit(lambda known, t: known.seen(t, 2.0).value)
        seen(known, rounds).block_until_ready()
        begin = time.perf_counter()
        for _ in range(20):
            found = seen(known, rounds)
        found.block_until_ready()
        seconds = (time.perf_counter() - begin) / 20
        expected = rounds * min(1 / math.sqrt(100 * 2 * math.log(rounds + 1)), 0.5) * 0.3
        assert abs(float(found[0]) / expected - 1) < 1e-6
    read, copied = size * rounds * BYTES / seconds, bandwidth(device)
    rates = f"{read / 1e12:.2f} TB/s, {read / copied:.2f} of a copy's {copied / 1e12:.2f}"
    print(f"{device.device_kind}: {size:,} decisions, {rounds:,} samples: {1000 * seconds:.2f} ms, {rates}", flush=True)
    weight = numba_weight(min(size, 50_000), rounds)
    ratio = weight * size * rounds / seconds
    cost = f"{1e9 * weight:.2f} ns a weight with {min(size, 50_000):,} decisions"
    print(f"numba, one core: {cost}; {ratio:.0f} times as long")
    return {"device": device.device_kind, "seconds": seconds, "bytes a second": read, "copy": copied, "numba": weight}


def numba_weight(size: int, rounds: int) -> float:
    """Seconds a weight of the compiled pass takes on the CPU, one decision told before each estimate."""
    import randomist as rd

    space, rng = rd.Finite(rd.Gaussian(np.linspace(-1, 1, size), 0.15)), np.random.default_rng(0)
    learner = rd.Optimist(space, payoff_range=(0, 1), refresh=None)
    trials = learner.ask(batch=1)
    learner.tell(trials[0], 0.5)
    decisions = rng.integers(size, size=rounds)
    drawn = space.family.mean[decisions] + 0.15 * rng.standard_normal(rounds)
    learner.history.extend(decisions, drawn, rng.random(rounds))
    learner.history.estimate(2.0)
    times = []
    for _ in range(3):
        learner.history.append(0, float(space.family.mean[0]), 0.5)
        begin = time.perf_counter()
        learner.history.estimate(2.0)
        times.append(time.perf_counter() - begin)
    return float(min(times)) / (size * rounds)


def on_device(arguments: argparse.Namespace) -> dict[str, Any]:
    import randomist as rd
    from randomist import vectorised
    from randomist.vectorised.backend import device_named

    device = device_named(arguments.device)
    found: dict[str, Any] = {"device": device.device_kind, "bytes a second": bandwidth(device), "rows": {}}
    print(f"{device.device_kind}: copies {found['bytes a second'] / 1e12:.2f} TB/s", flush=True)
    for name in arguments.problems.split(","):
        problem = PROBLEMS[name]
        rounds, task = arguments.rounds or problem["rounds"], rd.task(problem["task"], **problem["settings"])
        for learner in arguments.learners.split(","):
            times = []
            for _ in range(2):
                begin = time.perf_counter()
                runs = vectorised.optimize_many(task, learner, rounds, arguments.seeds, device=arguments.device)
                times.append(time.perf_counter() - begin)
            regret = runs.regret
            assert regret is not None
            row = summary(regret[:, -1]) | {"seconds": times, "rounds": rounds}
            found["rows"][f"{name} {learner}"] = row
            took = f"{times[0]:.1f} s, then {times[1]:.1f} s"
            print(f"{name} {learner}: {took}; {row['mean']:.3f} ± {row['error']:.3f}", flush=True)
    return found


def on_cpu(arguments: argparse.Namespace) -> dict[str, Any]:
    import randomist as rd

    found: dict[str, Any] = {"device": platform.processor() or platform.machine(), "rows": {}}
    for name in arguments.problems.split(","):
        problem = PROBLEMS[name]
        rounds, task = arguments.rounds or problem["rounds"], rd.task(problem["task"], **problem["settings"])
        for learner in arguments.learners.split(","):
            begin = time.perf_counter()
            runs = rd.optimize_many(task, learner, rounds, arguments.seeds, jobs=arguments.jobs)
            seconds = time.perf_counter() - begin
            row = summary(np.array([run.regret[-1] for run in runs if run.regret is not None]))
            found["rows"][f"{name} {learner}"] = row | {"seconds": [seconds], "rounds": rounds}
            print(f"{name} {learner}: {seconds:.1f} s; {row['mean']:.3f} ± {row['error']:.3f}", flush=True)
    return found


def summary(regret: np.ndarray) -> dict[str, Any]:
    n = len(regret)
    return {"seeds": n, "mean": float(regret.mean()), "error": float(regret.std(ddof=min(n - 1, 1)) / math.sqrt(n))}


def compare(ours: Path, theirs: Path) -> None:
    from scipy import stats

    rows, others = (json.loads(path.read_text())["rows"] for path in (ours, theirs))
    print("| problem | seeds | regret | seeds, CPU | regret, CPU | p | seconds a run | CPU's | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in rows:
        if name not in others:
            continue
        a, b = rows[name], others[name]
        p = 2 * stats.norm.sf(abs(a["mean"] - b["mean"]) / math.hypot(a["error"], b["error"]))
        mine, other = a["seconds"][-1] / a["seeds"], b["seconds"][-1] / b["seeds"]
        cells = [f"{one['seeds']:,} | {one['mean']:.3f} ± {one['error']:.3f}" for one in (a, b)]
        print(f"| {name} | {' | '.join(cells)} | {p:.3f} | {mine:.2g} | {other:.2g} | {other / mine:.0f} |")


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Whole runs over many seeds on a device.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("runs", "cpu", "pass"):
        one = kinds.add_parser(kind)
        one.add_argument("--problems", default="lqg,illustrative")
        one.add_argument("--learners", default=",".join(LEARNERS))
        one.add_argument("--rounds", type=int, help="each problem has its own default")
        one.add_argument("--seeds", type=int, default=10_000 if kind == "runs" else 200)
        one.add_argument("--device", default="gpu")
        one.add_argument("--decisions", type=int, default=10**6, help="of a pass")
        one.add_argument("--jobs", type=int, default=1)
        one.add_argument("--save", type=Path, default=Path(f"out/{kind}.json"))
    both = kinds.add_parser("compare")
    both.add_argument("ours", type=Path)
    both.add_argument("theirs", type=Path)
    arguments = parser.parse_args(given)
    if arguments.kind == "compare":
        compare(arguments.ours, arguments.theirs)
        return
    found = {"runs": on_device, "cpu": on_cpu, "pass": one_pass}[arguments.kind](arguments)
    arguments.save.parent.mkdir(parents=True, exist_ok=True)
    arguments.save.write_text(json.dumps(found, indent=1))
    print(arguments.save)


if __name__ == "__main__":
    main()
