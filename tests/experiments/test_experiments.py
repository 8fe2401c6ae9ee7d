"""Experiments: specs as data, results that survive anything, claims that can fail."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import randomist as rd
from randomist.errors import ParameterError
from randomist.experiments import claims, paper
from randomist.experiments.comparison import mean_interval
from randomist.experiments.contenders import Contender
from randomist.experiments.runner import run_experiment
from randomist.experiments.specs import Experiment, TaskSpec, experiment_from_state, read_experiment, to_toml
from randomist.experiments.store import Store, write_whole
from tests.command import COMMAND, call

SMALL = Experiment(
    "small",
    (TaskSpec("illustrative", {"sigma": 2.0, "lambda_": 0.1}, "σ = 2 <b>"), TaskSpec("fact-1")),
    (Contender("ucb1"), Contender("randomist", {"perturbation_scale": 8.1, "perturbation": "gaussian"})),
    rounds=60,
    seeds=3,
)


def rows(store):
    """All finished rows, by run."""
    return {cell.key: store.load(cell) for cell in store.experiment.cells()}


def assert_same_results(ours, theirs):
    assert ours.keys() == theirs.keys()
    for key, frame in ours.items():
        assert frame.equals(theirs[key]), key


def test_specs_survive_toml(tmp_path):
    for experiment in (SMALL, *(make(quick) for make in paper.EXPERIMENTS.values() for quick in (True, False))):
        path = tmp_path / "spec.toml"
        path.write_text(to_toml(experiment))
        again = read_experiment(path)
        assert again.state() == experiment.state()
        assert again.digest == experiment.digest


def test_the_digest_knows_what_results_depend_on():
    state = SMALL.state()
    for change in (
        {"rounds": 61},
        {"seeds": 4},
        {"learners": state["learners"][:1]},
        {"tasks": [{"id": "illustrative", "settings": {"sigma": 2.0, "lambda_": 0.2}}]},
    ):
        assert experiment_from_state(state | change).digest != SMALL.digest
    titled = experiment_from_state(state | {"tasks": [t | {"title": "other"} for t in state["tasks"]]})
    assert titled.digest == SMALL.digest
    keys = [cell.key for cell in SMALL.cells()]
    assert len(set(keys)) == len(keys) == 12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = 3", "needs"),
        ("nonsense", "not TOML"),
        ('name="a"\nrounds=0\nseeds=1\ntasks=[{id="lqg"}]\nlearners=[{name="ucb1"}]', "rounds.*>= 1"),
        ('name="a/b"\nrounds=1\nseeds=1\ntasks=[{id="lqg"}]\nlearners=[{name="ucb1"}]', "name of an experiment"),
        ('name="a"\nrounds=1\nseeds=1\ntasks=[{id="lqg"}]\nlearners=[{name="nobody"}]', "unknown learner 'nobody'"),
        ('name=5\nrounds=1\nseeds=1\ntasks=[{id="lqg"}]\nlearners=[{name="ucb1"}]', "name of an experiment"),
        ('name="a"\nrounds=true\nseeds=1\ntasks=[{id="lqg"}]\nlearners=[{name="ucb1"}]', "rounds.*>= 1"),
        ('name="a"\nrounds=1\nseeds=1\ntasks=5\nlearners=[{name="ucb1"}]', "list of tables"),
        ('name="a"\nrounds=1\nseeds=1\ntasks=[{id="lqg"}]\nlearners=[{name=["ucb1"]}]', "needs 'name', a text"),
        ('name="a"\nrounds=1\nseeds=1\ntasks=[{id="lqg", settings=3}]\nlearners=[{name="ucb1"}]', "settings must be"),
        ('name="a"\nrounds=1\nseeds=1\ntasks=[{title="x"}]\nlearners=[{name="ucb1"}]', "needs 'id'"),
        ('name="a"\nrounds=1\nseeds=1\ncolour=1\ntasks=[{id="lqg"}]\nlearners=[{name="ucb1"}]', "no entry colour"),
    ],
)
def test_a_broken_spec_says_where(tmp_path, text, words):
    path = tmp_path / "spec.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=words):
        read_experiment(path)


def test_results_are_the_runs_and_do_not_depend_on_jobs(tmp_path):
    one, two = Store(tmp_path / "one", SMALL), Store(tmp_path / "two", SMALL)
    assert run_experiment(one, jobs=1) == {}
    assert run_experiment(two, jobs=2) == {}
    assert_same_results(rows(one), rows(two))
    cell = SMALL.cells()[4]
    run = rd.optimize(cell.task.make(), cell.learner.name, 60, cell.seed, **cell.learner.settings)
    frame = one.load(cell)
    np.testing.assert_array_equal(frame["payoff"], run.payoffs)
    np.testing.assert_array_equal(frame["regret"], run.regret)
    np.testing.assert_array_equal(frame["decision_0"], run.decisions)
    manifest = one.manifest(cell)
    assert manifest["digest"] == SMALL.digest
    assert manifest["seed"] == cell.seed
    assert {"numpy", "randomist"} <= manifest["versions"].keys()
    assert read_experiment(one.folder / "spec.toml").digest == SMALL.digest


def test_finished_runs_are_kept_and_another_spec_does_not_mix(tmp_path):
    store = Store(tmp_path, SMALL)
    run_experiment(store)
    kept = store._path(SMALL.cells()[0]).stat().st_mtime_ns
    store._path(SMALL.cells()[1]).unlink()
    seen = []
    run_experiment(store, progress=seen.append)
    assert [cell.key for cell in seen] == [SMALL.cells()[1].key]
    assert store._path(SMALL.cells()[0]).stat().st_mtime_ns == kept
    longer = Store(tmp_path, experiment_from_state(SMALL.state() | {"rounds": 70}))
    assert len(longer.missing()) == 12
    assert longer.folder != store.folder


def test_failed_runs_are_listed_and_retried_on_request(tmp_path):
    broken = Experiment(
        "broken",
        (TaskSpec("cartpole"),),
        (Contender("grid-optimist", {"kappa": 2.0, "max_points": 90}), Contender("pgpe")),
        rounds=30,
        seeds=2,
    )
    store = Store(tmp_path, broken)
    failures = run_experiment(store)
    assert len(failures) == 2
    assert all("max_points=90" in reason for reason in failures.values())
    assert len(store.missing(retry=False)) == 0
    assert len(store.missing(retry=True)) == 2
    seen = []
    run_experiment(store, retry=False, progress=seen.append)
    assert seen == []
    run_experiment(store, retry=True, progress=seen.append)
    assert len(seen) == 2


def test_a_run_with_failed_trials_fails_and_the_others_go_on(tmp_path, monkeypatch):
    from randomist.experiments import runner

    def run_one(task, learner, rounds, seed, settings):
        run = rd.optimize(task, learner, rounds, seed, **settings)
        return run if seed != 1 else replace(run, payoffs=run.payoffs[:0], failures={0: "no payoff today"})

    monkeypatch.setattr(runner, "run_one", run_one)
    store = Store(tmp_path, SMALL)
    failures = run_experiment(store)
    assert {cell.seed for cell in failures} == {1}
    assert all("no payoff today" in reason for reason in failures.values())
    assert len(store.missing()) == 4


def test_infinite_settings_survive_toml(tmp_path):
    state = SMALL.state() | {
        "learners": [{"name": "ucb1", "settings": {"payoff_range": [-float("inf"), float("inf")]}}]
    }
    experiment = experiment_from_state(state)
    (tmp_path / "s.toml").write_text(to_toml(experiment))
    assert read_experiment(tmp_path / "s.toml") == experiment
    with pytest.raises(ParameterError, match="None"):
        to_toml(experiment_from_state(state | {"learners": [{"name": "ucb1", "settings": {"first": None}}]}))


def test_an_experiment_of_the_papers_name_has_no_claims_and_a_folder_can_be_reported_from_inside(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text(to_toml(experiment_from_state(SMALL.state() | {"name": "lqg", "rounds": 5, "seeds": 1})))
    assert call("experiment", spec, "--out", tmp_path / "o", "--jobs", 1).returncode == 0
    done = call("report", tmp_path / "o")
    assert done.returncode == 0, done.stderr
    (folder,) = (path for path in (tmp_path / "o").iterdir() if path.is_dir())
    assert call("report", ".", cwd=folder).returncode == 0
    assert (folder / "report.html").read_text().count("UCB1") > 2
    spec_there = folder / "spec.toml"
    spec_there.write_text(spec_there.read_text().replace("rounds = 5", "rounds = 6"))
    done = call("report", tmp_path / "o")
    assert done.returncode == 1
    assert "was changed" in done.stderr


def test_a_failed_run_makes_the_exit_code_non_zero(tmp_path):
    spec = tmp_path / "broken.toml"
    spec.write_text(
        'name = "broken"\nrounds = 20\nseeds = 1\n[[tasks]]\nid = "cartpole"\n'
        '[[learners]]\nname = "grid-optimist"\nsettings = { kappa = 2.0, max_points = 50 }\n'
    )
    done = call("experiment", spec, "--out", tmp_path / "out", "--jobs", 1)
    assert done.returncode == 1
    assert "max_points=50" in done.stderr
    assert "Traceback" not in done.stderr


def uninterrupted(tmp_path, experiment):
    store = Store(tmp_path / "straight", experiment)
    run_experiment(store)
    return rows(store)


def kill_and_resume(tmp_path, kills):
    """Kill the driver and its workers at random moments, resume each time, and compare with a run never stopped."""
    experiment = experiment_from_state(SMALL.state() | {"rounds": 4000, "seeds": 4})
    spec = tmp_path / "spec.toml"
    spec.write_text(to_toml(experiment))
    rng = random.Random(0)
    command = [COMMAND, "experiment", spec, "--out", tmp_path / "out", "--jobs", "2"]
    for _ in range(kills):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(rng.uniform(1.0, 4.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert_same_results(rows(Store(tmp_path / "out", experiment)), uninterrupted(tmp_path, experiment))


def test_a_killed_experiment_continues_where_it_stopped(tmp_path):
    kill_and_resume(tmp_path, 2)


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    kill_and_resume(tmp_path, 20)


def test_a_folder_that_cannot_be_written_is_a_clear_message(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    spec = tmp_path / "spec.toml"
    spec.write_text(to_toml(SMALL))
    done = call("experiment", spec, "--out", blocked, "--jobs", 1)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert str(blocked) in done.stderr


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    """/dev/full cannot be a folder, so the file size limit of the process plays the full disk."""
    import resource

    spec = tmp_path / "spec.toml"
    spec.write_text(to_toml(experiment_from_state(SMALL.state() | {"rounds": 5000})))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    environment = os.environ | {"NUMBA_DISABLE_JIT_CACHE": "1"}
    command = [COMMAND, "experiment", spec, "--out", tmp_path / "out", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, preexec_fn=limit, env=environment)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    for path in (tmp_path / "out").rglob("*.parquet"):
        pl.read_parquet(path)  # what is there is whole


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x"
    write_whole(path, b"one")
    with pytest.raises(TypeError):
        write_whole(path, None)
    assert path.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("runs", [5, 20, 30])
def test_printed_intervals_cover_the_mean_of_normal_data(runs):
    """2,000 repetitions: 93-97% (three standard errors are 1.5%)."""
    rng = np.random.default_rng(runs)
    samples = rng.normal(3.0, 2.0, (runs, 2000))
    mean, half = mean_interval(samples)
    assert 0.93 <= (np.abs(mean - 3.0) <= half).mean() <= 0.97


def test_claims_follow_the_numbers():
    rng = np.random.default_rng(0)
    small, large = rng.normal(10, 1, 20), rng.normal(20, 1, 20)
    assert claims.less("", small, large).verdict == "held"
    assert claims.less("", large, small).verdict == "did not hold"
    assert claims.less("", small, small + 0.01).verdict == "unclear"
    assert claims.less("", small[:1], large[:1]).verdict == "unclear"  # one run each
    assert claims.more("", -small, -large).verdict == "held"
    assert "-" in claims.more("", -small, -large).statistic
    assert claims.growth(np.arange(1.0, 101.0)[None]) == pytest.approx(1.0)
    assert claims.growth(np.minimum(np.arange(1.0, 101.0), 50.0)[None]) == 0.0
    held, failed, unclear = (claims.Check("", "", "", v) for v in ("held", "did not hold", "unclear"))
    assert claims.Claim(1, "", [held, held]).verdict == "held"
    assert claims.Claim(1, "", [held, unclear]).verdict == "unclear"
    assert claims.Claim(1, "", [unclear, failed, held]).verdict == "did not hold"


@pytest.mark.timeout(600)
def test_reproduce_quickly_writes_everything(tmp_path):
    done = call("reproduce", "lqg", "--quick", "--out", tmp_path, "--jobs", 2)
    assert done.returncode == 0, done.stderr
    assert "What the paper claims" in done.stdout
    assert "These are quick runs" in done.stdout
    written = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["number"] for claim in written["claims"]] == [4]
    assert "These are quick runs" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "figures" / "figure-3-lqg.pdf").read_bytes().startswith(b"%PDF")
    assert call("plot", tmp_path).returncode == 0
    assert call("report", tmp_path).returncode == 0
    assert call("report", tmp_path / "figures").returncode == 1
    assert call("reproduce", "nothing", "--out", tmp_path).returncode == 1
