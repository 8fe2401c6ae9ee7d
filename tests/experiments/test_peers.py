"""The comparison with peers is fair: one start, budget and box for all, failures that count, tables that add up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

import randomist as rd

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks.peers import __main__ as command  # noqa: E402
from benchmarks.peers import choices, results, table, tuning  # noqa: E402
from benchmarks.peers.methods import METHODS, ars, direct, pgpe  # noqa: E402
from benchmarks.peers.problems import PROBLEMS, Array, Problem  # noqa: E402
from benchmarks.peers.results import Job, Result  # noqa: E402
from benchmarks.peers.search import Method, Play, Search  # noqa: E402

LOW, HIGH = np.array([-1.0, 2.0]), np.array([3.0, 2.5])  # far from square
QUICK = {"gp": {"explore": 12}, "tpe": {"explore": 12}, "turbo": {"explore": 6}}  # of those whose models are costly
PARAMETRIZED = pytest.mark.parametrize("id", METHODS)


class Recorder(rd.Task):
    """Plays a function of the parameters, and remembers them."""

    id = "recorder"

    def __init__(self, function: Callable[[Array], float]) -> None:
        self.function, self.played = function, list[Array]()

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        rows = np.array(mediators, dtype=np.float64)
        self.played += list(rows)
        return np.array([self.function(row) for row in rows])


def bowl(parameters: Array) -> float:
    """Best at (2, 2.1), off centre."""
    return float(-(((parameters[0] - 2) / 4) ** 2) - ((parameters[1] - 2.1) / 0.5) ** 2)


def recorded(function: Callable[[Array], float] = bowl) -> tuple[Problem, Recorder]:
    task = Recorder(function)
    return Problem("recorder", "Recorder", lambda: task, LOW, HIGH, worst=-7.0), task


def installed(id: str) -> Method:
    for package in METHODS[id].needs:
        pytest.importorskip(package)
    return METHODS[id]


# One start, one budget, one box.


@PARAMETRIZED
def test_every_method_starts_where_the_seed_says(id: str) -> None:
    method = installed(id)
    for seed in (0, 7):
        problem, task = recorded()
        trace = method(problem, 3, seed, **QUICK.get(id, {}))
        expected = problem.parameters(problem.start(seed))
        np.testing.assert_array_equal(task.played[0], expected)
        assert trace.payoffs[0] == bowl(expected)
    assert not np.array_equal(problem.start(0), problem.start(7))


@pytest.mark.parametrize("id", PROBLEMS)
def test_starts_are_uniform_in_the_box(id: str) -> None:
    problem = PROBLEMS[id]
    starts = np.array([problem.start(seed) for seed in range(400)])
    assert starts.shape == (400, problem.dimension)
    assert stats.kstest(starts.ravel(), "uniform").pvalue > 1e-3
    np.testing.assert_array_equal(problem.parameters(np.zeros(problem.dimension)), problem.low)
    np.testing.assert_array_equal(problem.parameters(np.ones(problem.dimension)), problem.high)


@PARAMETRIZED
@pytest.mark.parametrize("episodes", [1, 2, 43])
def test_the_trace_is_as_long_as_the_budget_and_holds_what_was_played(id: str, episodes: int) -> None:
    problem, task = recorded()
    trace = installed(id)(problem, episodes, 3, **QUICK.get(id, {}))
    assert trace.payoffs.shape == (episodes,)
    np.testing.assert_array_equal(trace.payoffs, [bowl(row) for row in task.played])  # no episode is free
    for parameters in (*task.played, trace.parameters):
        assert (parameters >= LOW).all()
        assert (parameters <= HIGH).all()


@PARAMETRIZED
def test_the_same_seed_gives_the_same_run(id: str) -> None:
    method = installed(id)
    (first, _), (second, _) = recorded(), recorded()
    one, other = (method(problem, 30, 5, **QUICK.get(id, {})) for problem in (first, second))
    np.testing.assert_array_equal(one.payoffs, other.payoffs)
    np.testing.assert_array_equal(one.parameters, other.parameters)


@PARAMETRIZED
def test_methods_find_a_better_policy_than_the_start(id: str) -> None:
    method = installed(id)
    for seed in range(3):
        problem, _ = recorded()
        found = method(problem, 200, seed, **QUICK.get(id, {})).parameters
        assert bowl(found) > min(bowl(problem.parameters(problem.start(seed))), -0.1)


@PARAMETRIZED
def test_episodes_abreast_and_a_longer_budget_change_no_payoff(id: str) -> None:
    method, problem = installed(id), replace(PROBLEMS["pendulum"], make=short_pendulum)
    one_by_one = method(replace(problem, abreast=False), 70, 4, **QUICK.get(id, {}))
    abreast, longer = (method(problem, episodes, 4, **QUICK.get(id, {})) for episodes in (70, 90))
    np.testing.assert_array_equal(abreast.payoffs, one_by_one.payoffs)
    np.testing.assert_array_equal(abreast.parameters, one_by_one.parameters)
    np.testing.assert_array_equal(longer.payoffs[:70], one_by_one.payoffs)


def short_pendulum() -> rd.Task:
    return rd.task("gym:Pendulum-v1", policy="linear-bias", horizon=20)


def test_what_is_announced_is_played() -> None:
    def fickle(start: Array, start_payoff: float, rng: np.random.Generator) -> Search:
        points = rng.uniform(size=(3, start.size))
        yield Play(points[0], start, points[[0, 1]])
        yield Play(points[2], start)

    problem = replace(recorded()[0], abreast=True)
    with pytest.raises(RuntimeError, match="fickle plays another point"):
        Method("fickle", "fickle", fickle)(problem, 5, 0)


def test_a_budget_of_no_episodes_is_refused() -> None:
    with pytest.raises(ValueError, match="episodes must be >= 1"):
        METHODS["random-search"](recorded()[0], 0, 0)


# Failures count as the worst, and ties are no triumph.


@pytest.mark.parametrize("failure", [np.nan, np.inf, -np.inf])
def test_an_episode_that_is_not_finite_counts_as_the_worst(failure: float) -> None:
    problem, _ = recorded(lambda parameters: failure if parameters[0] > 0 else 1.0)
    trace = METHODS["random-search"](problem, 60, 0)
    assert set(trace.payoffs) == {-7.0, 1.0}
    assert trace.parameters[0] <= 0
    assert problem.true_return(np.array([1.0, 2.2]), 0) == -7.0


@pytest.mark.parametrize("id", PROBLEMS)
def test_parameters_that_are_not_numbers_fail_on_every_task(id: str) -> None:
    problem = PROBLEMS[id]
    for package in problem.needs:
        pytest.importorskip(package)
    points = np.full((2, problem.dimension), 0.3)
    points[1, -1] = np.nan
    payoffs = problem.returns(problem.parameters(points), np.random.default_rng(0))
    assert payoffs[0] > problem.worst == payoffs[1]


def test_a_method_that_runs_off_to_nan_gets_the_worst_return() -> None:
    def lost(start: Array, start_payoff: float, rng: np.random.Generator) -> Search:
        while True:
            yield Play(start * np.nan, start * np.nan)

    trace = Method("lost", "lost", lost)(PROBLEMS["mountain-car"], 5, 0)
    assert (trace.payoffs[1:] == PROBLEMS["mountain-car"].worst).all()
    assert PROBLEMS["mountain-car"].true_return(trace.parameters, 0) == PROBLEMS["mountain-car"].worst


@PARAMETRIZED
def test_equal_returns_leave_finite_parameters(id: str) -> None:
    problem, task = recorded(lambda parameters: 200.0)
    trace = installed(id)(problem, 60, 1, **QUICK.get(id, {}))
    assert np.isfinite(task.played).all()
    assert np.isfinite(trace.parameters).all()


@pytest.mark.parametrize("search", [ars.ars, pgpe.pgpe_clipup])
def test_a_gradient_method_does_not_move_without_a_difference(search: Callable[..., Search]) -> None:
    if search is pgpe.pgpe_clipup:
        pytest.importorskip("evotorch")
    problem, _ = recorded(lambda parameters: 200.0)
    trace = Method("it", "it", search)(problem, 60, 1)
    np.testing.assert_array_equal(trace.parameters, problem.parameters(problem.start(1)))


# The methods written here.


def test_explore_then_commit_explores_reevaluates_and_commits() -> None:
    seen: dict[float, int] = {}
    ranks: dict[float, int] = {}

    def lucky(parameters: Array) -> float:
        """The later a point is tried first, the better it looks; then the sixth of the ten is the best."""
        key = float(parameters[0])
        ranks.setdefault(key, len(ranks))
        seen[key] = seen.get(key, 0) + 1
        return float(ranks[key]) if seen[key] == 1 else float(ranks[key] == 6)

    problem, task = recorded(lucky)
    trace = METHODS["explore-then-commit"](problem, 60, 0)
    keys = [float(parameters[0]) for parameters in task.played]
    assert len(set(keys[:10])) == 10
    again = [ranks[key] for key in keys[10:35]]
    assert again == [rank for rank in (9, 8, 7, 6, 5) for _ in range(5)]
    assert {ranks[key] for key in keys[35:]} == {6}
    assert ranks[float(trace.parameters[0])] == 6


def test_explore_then_commit_takes_its_settings() -> None:
    problem, task = recorded()
    Method("etc", "etc", direct.explore_then_commit)(problem, 50, 0, points=4, keep=2, again=3)
    assert len({tuple(parameters) for parameters in task.played}) == 4
    assert len({tuple(parameters) for parameters in task.played[10:]}) == 1
    assert {tuple(p) for p in task.played[10:]} == {max(map(tuple, task.played), key=lambda p: bowl(np.array(p)))}


def test_augmented_random_search_makes_the_papers_step() -> None:
    problem, task = recorded()
    start = problem.start(2)
    trace = Method("ars", "ars", ars.ars)(problem, 9, 2, step=0.01, noise=0.02, directions=4, top=2)
    deltas = [(row - LOW) / (HIGH - LOW) - start for row in task.played[1:5]]  # noise * delta, upwards
    up, down = trace.payoffs[1:5], trace.payoffs[5:9]
    used = sorted(range(4), key=lambda k: -max(up[k], down[k]))[:2]
    spread = np.std([payoff for k in used for payoff in (up[k], down[k])])
    step = sum((up[k] - down[k]) * deltas[k] / 0.02 for k in used) * 0.01 / (2 * spread)
    np.testing.assert_allclose((trace.parameters - LOW) / (HIGH - LOW), start + step)


# Tables.


def result(payoffs: Array, true_return: float, **job: Any) -> Result:
    made = Job(**({"task": "lqg", "method": "ars", "settings": {}, "episodes": len(payoffs), "seed": 0} | job))
    return Result(made, payoffs, np.array([0.25]), true_return, 1.5)


def test_the_table_shows_averages_over_all_episodes_with_t_intervals() -> None:
    rng = np.random.default_rng(0)
    runs = [result(rng.normal(seed, size=320), 10.0 * seed, seed=seed) for seed in range(4)]
    row = table.summarise("LQG", "ARS", runs, [100, 300, 320, 500])
    for k, mark in enumerate((100, 300, 320)):
        sample = [float(np.mean(run.payoffs[:mark])) for run in runs]
        low, high = stats.t.interval(0.95, 3, np.mean(sample), stats.sem(sample))
        np.testing.assert_allclose((row.mean[k] - row.half[k], row.mean[k] + row.half[k]), (low, high))
    assert np.isnan(row.mean[3])
    assert row.mean[-1] == 15.0


def test_the_columns_end_with_the_largest_budget() -> None:
    assert table.columns([50]) == [50]
    assert table.columns([500]) == [100, 300, 500]
    assert table.columns([300, 2500, 1000]) == [100, 300, 500, 1000, 2500]
    assert table.columns([1200, 40]) == [40, 100, 300, 500, 1000, 1200]


def test_the_best_of_each_column_is_marked_within_its_task() -> None:
    rows = [
        table.Row("A", "one", np.array([1.0, 5.0]), np.array([0.5, 0.0])),
        table.Row("A", "two", np.array([2.0, -5.0]), np.array([0.25, 1.0])),
        table.Row("B", "one", np.array([-30.0, 0.123]), np.array([1.0, 0.1])),
        table.Row("C", "one", np.array([np.nan, 1.0]), np.array([np.nan, 0.1])),
    ]
    lines = table.markdown(rows, [60], {"A": 1, "B": 2, "C": 0}).splitlines()
    assert lines == [
        "| task | method | 60 | recommended |",
        "|---|---|---|---|",
        "| A | one | 1.0 ± 0.5 | **5.0 ± 0.0** |",
        "| A | two | **2.0 ± 0.2** | -5.0 ± 1.0 |",
        "| B | one | **-30.00 ± 1.00** | **0.12 ± 0.10** |",
        "| C | one | – | **1 ± 0** |",
    ]


def test_the_lead_is_over_the_best_of_the_others_paired_by_seed() -> None:
    ours, theirs = np.array([3.0, 5.0, 4.0]), np.array([1.0, 2.0, 4.5])
    runs = {
        "one": [result(np.full(2, y), 0.0) for y in ours],
        "two": [result(np.full(2, y), 0.0) for y in theirs],
        "poor": [result(np.full(2, -1.0), 0.0)] * 3,
    }
    difference = ours - theirs
    half = stats.t.ppf(0.975, 2) * stats.sem(difference)
    lines = table.lead_markdown(table.leads({"A": runs}, "one", [2, 9]), [2, 9], {"A": 2}).splitlines()
    assert lines[2:] == [f"| A | {difference.mean():+.2f} ± {half:.2f} (two) | – |"]


def test_leads_are_tested_at_100_and_500_episodes_or_at_the_last_corrected_for_their_number() -> None:
    noise = np.random.default_rng(0).standard_normal((3, 10))
    tasks = {"clear": (3.0, [100, 300, 500]), "short": (-3.0, [100, 300]), "luck": (0.1, [30])}
    found = [
        table.Lead(task, mark, "two", lead + noise[i])
        for i, (task, (lead, marks)) in enumerate(tasks.items())
        for mark in marks
    ]
    lines = table.significance(found).splitlines()
    p = {lead.task: stats.ttest_1samp(lead.over_seeds, 0).pvalue for lead in found}  # equal in all cells of a task
    less, more = sorted(["clear", "short"], key=p.__getitem__)
    corrected = {less: 5 * p[less], more: max(3 * p[more], 5 * p[less])}  # of five, two of them smaller
    clear, short = (f"(p = {corrected[task]:.2g})" for task in ("clear", "short"))
    assert max(corrected.values()) < 0.05 < p["luck"]
    assert lines == [
        f"ahead by the mean in {2 + (found[-1].mean > 0)} of 5 cells",
        f"significantly ahead in 2: clear at 100 {clear}, clear at 500 {clear}",
        f"significantly behind in 2: short at 100 {short}, short at 300 {short}",
    ]


def test_the_settings_have_a_row_for_each_method_that_has_any() -> None:
    used = {"one": {"A": {"x": 0.1, "y": 2}, "B": {"x": 0.2}}, "two": {"A": {}, "B": {}}}
    assert table.settings_markdown(used).splitlines()[2:] == ["| one | x 0.1, y 2 | x 0.2 |"]


def test_a_single_run_has_no_interval() -> None:
    row = table.summarise("LQG", "ARS", [result(np.arange(4.0), 2.0)], [4])
    assert table.markdown([row], [4], {"LQG": 1}).splitlines()[-1] == "| LQG | ARS | **1.5** | **2.0** |"


# Results on disk.


def test_a_run_survives_the_disk_and_leaves_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    made = result(np.array([0.5, -0.25, 1.0]), 0.75)
    path = made.job.path(tmp_path)
    results.write(made, path)
    again = results.read(made.job, path)
    np.testing.assert_array_equal(again.payoffs, made.payoffs)
    np.testing.assert_array_equal(again.parameters, made.parameters)
    np.testing.assert_allclose(again.average, [0.5, 0.125, 1.25 / 3])
    assert (again.true_return, again.seconds) == (0.75, 1.5)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_write_that_breaks_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("polars")
    made = result(np.array([0.5]), 0.75)

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(results.os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        results.write(made, made.job.path(tmp_path))
    assert list(tmp_path.rglob("*.parquet*")) == []


def test_finished_runs_are_not_done_again_and_changed_settings_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("joblib")
    jobs = [Job("lqg", "explore-then-commit", {"points": 4}, 40, seed) for seed in range(2)]
    first = list(results.run_all(jobs, tmp_path))
    done: list[Job] = []
    monkeypatch.setattr(results, "do", lambda job: done.append(job) or first[0])
    again = list(results.run_all(jobs, tmp_path))
    assert done == []
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.payoffs, other.payoffs)
    changed = [replace(jobs[0], settings={"points": 5}), replace(jobs[0], episodes=41), replace(jobs[0], seed=2)]
    list(results.run_all(changed, tmp_path))
    assert done == changed


# Tuning and the command.


def test_every_method_is_tuned_with_equal_effort() -> None:
    for method in METHODS.values():
        distinct = {tuple(sorted(settings.items())) for settings in method.grid}
        assert len(distinct) == (1 if method.id in ("random-search", "auto") else 6)  # nothing to tune


def test_tuning_uses_no_seed_that_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("joblib")
    seeds: list[int] = []
    monkeypatch.setattr(tuning, "_average", lambda job: seeds.append(job.seed) or job.settings["points"] + job.seed)
    scores = tuning.tune(PROBLEMS["lqg"], METHODS["explore-then-commit"], 300, 3)
    assert set(seeds) == {1000, 1001, 1002}
    assert scores == [1001.0 + settings["points"] for settings in METHODS["explore-then-commit"].grid]
    assert choices.parser("", 10).parse_args([]).seeds < min(seeds)


def test_the_chosen_settings_are_of_the_grid_and_survive_the_file(tmp_path: Path) -> None:
    tuned = choices.chosen()
    for task, entries in tuned.items():
        assert task in PROBLEMS
        for id, entry in entries.items():
            assert entry["settings"] in METHODS[id].grid
            assert (entry["episodes"], entry["seeds"]) == PROBLEMS[task].tuning
    choices.write(tuned, tmp_path / "settings.toml")
    assert choices.chosen(tmp_path / "settings.toml") == tuned
    assert choices.settings_for(PROBLEMS["swimmer"], METHODS["ars"], {}) == (METHODS["ars"].grid[0], False)


def test_the_command_prints_a_table_and_skips_what_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("polars", "joblib", "matplotlib"):
        pytest.importorskip(package)
    monkeypatch.setitem(METHODS, "cma-es", replace(METHODS["cma-es"], needs=("no_such_package",)))
    given = ["--tasks", "lqg", "--methods", "random-search", "ars", "cma-es", "--episodes", "40", "--seeds", "2"]
    command.main([*given, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "skipped method cma-es: not installed: no_such_package" in printed
    assert "| ARS | step " in printed
    lines = [line for line in printed.splitlines() if line.startswith("| LQG")]
    assert [line.split(" | ")[1] for line in lines] == ["random search", "ARS"]
    assert (tmp_path / "peers.png").stat().st_size > 10_000
    assert len(list(tmp_path.rglob("*.parquet"))) == 4
    command.main([*given, "--out", str(tmp_path)])
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("| LQG")] == lines


def test_no_task_gets_more_episodes_than_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = list[Job]()

    def stop(jobs: list[Job], *_: Any) -> None:
        asked.extend(jobs)
        raise SystemExit

    monkeypatch.setattr(command, "run_all", stop)
    given = ["--tasks", "lqg", "--methods", "random-search", "--out", str(tmp_path), "--episodes"]
    for episodes in (500, 999_999):
        with pytest.raises(SystemExit):
            command.main([*given, str(episodes)])
    assert {job.episodes for job in asked} == {500, PROBLEMS["lqg"].episodes}
