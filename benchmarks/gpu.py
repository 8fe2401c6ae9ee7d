"""`python -m benchmarks.gpu`: whole runs and estimates on a device, beside the CPU. One command per row.

    python -m benchmarks.gpu pass                                            # one estimate: what it reads a second
    python -m benchmarks.gpu runs --seeds 10000 --save out/gpu.json          # whole runs, on a machine with a GPU
    python -m benchmarks.gpu runs --problems grid --learners realist --seeds 1
    python -m benchmarks.gpu cpu --seeds 1000 --jobs 2 --save out/cpu.json   # the same, anywhere
    python -m benchmarks.gpu compare out/gpu.json out/cpu.json
    python -m benchmarks.gpu crossover                                       # an estimate on the device and by numba
    python -m benchmarks.gpu ask --decisions 1000000 --rounds 200            # learners that are asked and told
    python -m benchmarks.gpu grid-optimist --decisions 1000000               # its largest grid
    python -m benchmarks.gpu controller                                      # 100³ controllers beside box learners
    python -m benchmarks.gpu figure --seeds 10000                            # regrets of the illustrative problem
    python -m benchmarks.gpu draw out/figure.json --save figure.png          # of which this makes a picture

`runs` writes the time of the first call and of a second one, compiling included. `pass` measures one estimate of a
million decisions from 4,000 samples beside the copy bandwidth of the device. `compare` tests the mean regrets of both
files against each other (Welch's test). `draw` needs matplotlib, the others no more than NumPy, SciPy, numba and JAX.
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

MOST_ON_CPU = 10**9  # weights of an estimate by numba: 8 GB
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

    from randomist.importance.passes.jax import BYTES
    from randomist.vectorised.backend import computing_on, device_named
    from randomist.vectorised.history import Shared

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
            for _ in range(arguments.times):
                begin = time.perf_counter()
                runs = vectorised.optimize_many(task, learner, rounds, arguments.seeds, device=arguments.device)
                times.append(time.perf_counter() - begin)
            regret = runs.regret
            assert regret is not None
            row = summary(regret[:, -1]) | {"seconds": times, "rounds": rounds}
            found["rows"][f"{name} {learner}"] = row
            took = ", then ".join(f"{seconds:.1f} s" for seconds in times)
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


def crossover(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds of one estimate after one more sample, everything included, on the device and by numba."""
    import randomist as rd

    found: dict[str, Any] = {"device": arguments.device, "rows": []}
    for size in (100, 1_000, 10_000, 100_000, arguments.decisions):
        for told in (100, 1_000, 4_000):
            row: dict[str, Any] = {"decisions": size, "samples": told}
            for name in ("cpu", arguments.device):
                if name == "cpu" and size * told > MOST_ON_CPU:
                    continue
                space, rng = rd.Finite(rd.Gaussian(np.linspace(-1, 1, size), 0.15)), np.random.default_rng(0)
                history = rd.Optimist(space, payoff_range=(0, 1), refresh=None, device=name).history
                decisions = rng.integers(size, size=told)
                drawn = np.linspace(-1, 1, size)[decisions] + 0.15 * rng.standard_normal(told)
                history.extend(decisions, drawn, rng.random(told))
                times = []
                for _ in range(7):
                    begin = time.perf_counter()
                    history.append(size // 2, 0.01, 0.5)
                    history.estimate(2.0)
                    times.append(time.perf_counter() - begin)
                row[name] = sorted(times)[3]
                del history
            found["rows"].append(row)
            cells = ", ".join(f"{name} {1000 * row[name]:.2f} ms" for name in ("cpu", arguments.device) if name in row)
            print(f"{size:,} decisions, {told:,} samples: {cells}", flush=True)
    return found


def asked(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds a round of learners that are asked and told over a grid in three dimensions."""
    import randomist as rd

    points = round(arguments.decisions ** (1 / 3))
    task = rd.task("lqg", dimension=3, space="grid", points=points)
    found: dict[str, Any] = {"device": arguments.device, "decisions": points**3, "rows": {}}
    for name in arguments.learners.split(","):
        begin = time.perf_counter()
        learner, rng, times = rd.make(name, task, device=arguments.device), np.random.default_rng(0), []
        made = time.perf_counter() - begin
        for _ in range(arguments.rounds or 200):
            begin = time.perf_counter()
            trial = learner.ask()
            learner.tell(trial, float(task.payoff(np.array([trial.mediator]), rng)[0]))
            times.append(time.perf_counter() - begin)
        row = {"making": made, "first rounds": sum(times[:10]), "round": float(np.median(times[10:]))}
        found["rows"][name] = row
        print(
            f"{name}: made in {made:.1f} s, 10 rounds {sum(times[:10]):.1f} s, then {1000 * row['round']:.1f} ms each"
        )
    return found


def grown(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds a round of OPTIMIST2 takes with its grid of this many points, in three dimensions."""
    import randomist as rd

    space, rng = rd.Box(rd.Gaussian(std=[0.2] * 3), [-1.0] * 3, [1.0] * 3), np.random.default_rng(0)
    per_dimension = round(arguments.decisions ** (1 / 3))
    told = (per_dimension - 1) ** 2  # κ = 2: the next round has that many points per dimension
    learner = rd.GridOptimist(space, device=arguments.device, max_points=arguments.decisions)
    points = rng.uniform(-1, 1, (told, 3))
    for point in points:
        learner.history.append(point, point + 0.2 * rng.standard_normal(3), rng.random())
        learner.record.append(point, point, 0.5, learner.told)
        if learner._rows is not None:
            learner._rows.add_sample(learner.history.arrays())
    begin = time.perf_counter()
    learner._regrid(per_dimension)
    times = [time.perf_counter() - begin]
    for _ in range(5):
        begin = time.perf_counter()
        learner._decide()
        times.append(time.perf_counter() - begin)
    row = {"points": per_dimension**3, "samples": told, "regrid": times[0], "round": float(np.median(times[2:]))}
    took = f"{times[0]:.2f} s for the grid, {1000 * row['round']:.1f} ms a round"
    print(f"{row['points']:,} points, {told:,} samples: {took}")
    return {"device": arguments.device} | row


def controllers(arguments: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.controller import compared

    return compared(arguments.device, arguments.decisions, arguments.rounds or 1000, arguments.seeds, arguments.jobs)


def figure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Mean regrets of an illustrative problem, with their standard errors, at some of the rounds."""
    import randomist as rd
    from randomist import vectorised

    rounds, task = arguments.rounds or 2000, rd.task("illustrative", sigma=2, lambda_=0.1)
    at = np.unique(np.linspace(0, rounds - 1, 200).astype(int))
    found: dict[str, Any] = {"seeds": arguments.seeds, "rounds": (at + 1).tolist(), "rows": {}}
    for name in arguments.learners.split(","):
        begin = time.perf_counter()
        regret = vectorised.optimize_many(task, name, rounds, arguments.seeds, device=arguments.device).regret
        assert regret is not None
        some = regret[:, at]
        error = some.std(axis=0, ddof=1) / math.sqrt(len(some))
        found["rows"][name] = {"mean": some.mean(axis=0).tolist(), "error": error.tolist()}
        print(f"{name}: {time.perf_counter() - begin:.1f} s; {some[:, -1].mean():.3f} ± {error[-1]:.3f}", flush=True)
    return found


def draw(saved: Path, picture: Path) -> None:
    """A picture of what `figure` saved, in the look of the package."""
    from randomist.learners.registry import TABLE
    from randomist.plots.drawing import draw as drawn
    from randomist.plots.marks import Axis, Band, Line, Mark, Panel, Picture, ends, heights, places

    found = json.loads(saved.read_text())
    rounds, bands, lines = np.array(found["rounds"], float), list[Mark](), list[Mark]()
    for i, (name, row) in enumerate(found["rows"].items()):
        mean, error = np.array(row["mean"]), np.array(row["error"])
        bands.append(Band(rounds, np.maximum(mean - 1.96 * error, 0.0), mean + 1.96 * error, "", i))
        lines.append(Line(rounds, mean, TABLE[name].title, i, i))
    marks = bands + lines
    low, high = ends(*(part for mark in marks for part in heights(mark)))
    start, end = ends(*(part for mark in marks for part in places(mark)), pad=0.01)
    panel = Panel(Axis("round", start, end, whole=True), Axis("cumulative regret", low, high), tuple(marks))
    drawn(Picture((panel,), f"mean of {found['seeds']:,} runs, with 95% bands"), path=picture)
    print(picture)


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


ROWS: dict[str, tuple[Any, dict[str, Any]]] = {
    "runs": (on_device, {"seeds": 10_000}),
    "cpu": (on_cpu, {}),
    "pass": (one_pass, {}),
    "crossover": (crossover, {}),
    "ask": (asked, {"learners": "optimist,randomist,realist"}),
    "grid-optimist": (grown, {}),
    "controller": (controllers, {"seeds": 3}),
    "figure": (figure, {"seeds": 10_000, "learners": "realist,randomist,optimist,ftl,ucb1"}),
}


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Whole runs and estimates on a device.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, (_, usual) in ROWS.items():
        one = kinds.add_parser(kind)
        one.add_argument("--problems", default="lqg,illustrative")
        one.add_argument("--learners", default=usual.get("learners", ",".join(LEARNERS)))
        one.add_argument("--rounds", type=int, help="each problem has its own default")
        one.add_argument("--seeds", type=int, default=usual.get("seeds", 200))
        one.add_argument("--device", default="gpu")
        one.add_argument("--decisions", type=int, default=10**6)
        one.add_argument("--jobs", type=int, default=1)
        one.add_argument("--times", type=int, default=2, help="how often each row is run")
        one.add_argument("--save", type=Path, default=Path(f"out/{kind}.json"))
    both = kinds.add_parser("compare")
    both.add_argument("ours", type=Path)
    both.add_argument("theirs", type=Path)
    picture = kinds.add_parser("draw")
    picture.add_argument("saved", type=Path)
    picture.add_argument("--save", type=Path, default=Path("out/figure.png"))
    arguments = parser.parse_args(given)
    if arguments.kind == "compare":
        compare(arguments.ours, arguments.theirs)
        return
    if arguments.kind == "draw":
        draw(arguments.saved, arguments.save)
        return
    found = ROWS[arguments.kind][0](arguments)
    arguments.save.parent.mkdir(parents=True, exist_ok=True)
    arguments.save.write_text(json.dumps(found, indent=1))
    print(arguments.save)


if __name__ == "__main__":
    main()
