"""One table, one factory: the same learner from Python, the command line, TOML, studies and the service."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError, StateError, TaskError
from randomist.learners import registry
from tests import command, problems
from tests.command import COMMAND

MINE = """
from dataclasses import dataclass
import numpy as np
import randomist as rd

@dataclass(eq=False)
class Patient(rd.FollowTheLeader):
    "Follows the leader, and has a setting of its own."
    patience: int = 3

@dataclass(frozen=True, eq=False)
class Shifted(rd.Gaussian):
    pass

class Line(rd.Task):
    "A payoff that grows with the mediator."
    id = "line"
    space = rd.Finite(rd.Gaussian([0.0, 1.0, 3.0], 1.0))
    payoff_range = (-5.0, 5.0)
    out_of_range = "clip"

    def payoff(self, mediators, rng):
        return np.asarray(mediators) + 0.1 * rng.standard_normal(len(mediators))

def sloped(slope=1.0):
    line = Line()
    line.payoff = lambda mediators, rng: slope * np.asarray(mediators)
    return line

number = 7
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of the user's, in the current folder."""
    (tmp_path / "bench_mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("bench_mine", None)


class Here(rd.UCB1):
    """A learner that is defined in a test."""


# The table.


def test_the_table_is_what_users_see():
    assert set(rd.LEARNERS) == set(registry.TABLE)
    for name, cls in rd.LEARNERS.items():
        assert registry.find(name) is cls is getattr(rd, cls.__name__)
        assert issubclass(cls, rd.Learner)
        assert cls.__module__.split(".")[2] == registry.TABLE[name].kind
    assert len(rd.LEARNERS) == len({entry.where for entry in registry.TABLE.values()})
    assert "nobody" not in rd.LEARNERS
    with pytest.raises(KeyError):
        rd.LEARNERS["nobody"]


def test_titles_and_looks_are_those_of_the_figures():
    assert [registry.title(name) for name in ("ftl", "thompson", "grid-optimist", "pois", "auto")] == [
        *("FTL", "TS", "OPTIMIST2", "PB-POIS", "Auto")
    ]
    assert registry.title("bench.mine:Patient") == "Patient"
    assert registry.look("ftl") == ("#000000", (0, (5, 1.5)), "x")
    assert registry.look("randomist", {"perturbation_scale": 8.1}) == ("#0072B2", "-", "o")
    assert registry.look("randomist", {"perturbation_scale": 1.1}) == ("#56B4E9", "-", "s")
    assert registry.look("pgpe", {"step_size": 100.0}) == ("#009E73", (0, (5, 1, 1, 1)), "P")
    assert registry.look("auto") == registry.look("realist") == ("#882255", "-", "*")
    assert registry.look("bench.mine:Patient") == ("#333333", "-", ".")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody", "unknown learner 'nobody'; known learners: ftl, optimist.*module:Class"),
        ("", "unknown learner ''"),
        (7, "unknown learner '7'"),
        ("a:b:c", "unknown learner 'a:b:c'"),
        ("no_such_module:Learner", "No module named 'no_such_module'.*PYTHONPATH"),
        ("randomist:Nobody", "no attribute 'Nobody'.*defines at its top"),
        ("randomist:Gaussian", "'randomist:Gaussian' is not a learner; it must be a subclass of randomist.Learner"),
    ],
)
def test_a_name_that_names_nothing_says_what_there_is(name, words):
    with pytest.raises(ParameterError, match=words):
        registry.find(name)


def test_states_name_our_classes_and_places():
    for cls in rd.LEARNERS.values():
        assert registry.name_of(cls) == cls.__name__
        assert registry.class_named(cls.__name__) is cls
    assert registry.name_of(Here) == f"{__name__}:Here"
    assert registry.class_named(f"{__name__}:Here") is Here
    assert registry.class_named("Here") is Here  # as 0.1.0 wrote it, once it has been imported


def test_a_class_inside_of_a_function_is_known_by_its_bare_name():
    class Inside(rd.UCB1):
        pass

    assert registry.name_of(Inside) == "Inside"
    assert registry.class_named("Inside") is Inside


@pytest.mark.parametrize("name", ["Nobody", "nowhere:Nobody", None, "randomist:Gaussian"])
def test_a_state_that_names_nothing_is_refused(name):
    with pytest.raises(StateError):
        registry.class_named(name)


# The factory.


def test_make_takes_names_classes_and_functions():
    space = problems.GAUSSIANS
    for learner in ("optimist", rd.Optimist, "randomist:Optimist", partial(rd.Optimist, confidence=3.0)):
        made = rd.make(learner, space, seed=4, payoff_range=[0, 2])
        assert type(made) is rd.Optimist
        assert made.space is space
        assert (made.seed, made.payoff_range) == (4, (0, 2))


def test_make_takes_what_a_task_says_unless_told_otherwise():
    task = rd.task("mountain-car")
    made = rd.make("mcmc-randomist", task)
    assert made.space is task.space
    assert made.payoff_range == task.payoff_range
    assert made.out_of_range == task.out_of_range == "clip"
    np.testing.assert_array_equal(made.first, task.first)
    other = rd.Box(rd.Gaussian(std=[0.2, 2.0]), [-1, 0], [1, 20])
    made = rd.make("mcmc-randomist", task, space=other, payoff_range=(0, 1))
    assert made.space is other
    assert made.payoff_range == (0, 1)
    assert made.first is None  # of the task's own space only


def test_a_task_without_a_space():
    task = rd.task("gym:Pendulum-v1")
    with pytest.raises(TaskError, match="space="):
        rd.make("mcmc-randomist", task)
    assert rd.make("auto", task).space.low.shape == (4,)  # three parameters and the scale
    assert rd.make("pgpe", task, space=rd.Box(rd.Gaussian(std=np.ones(3)), -np.ones(3), np.ones(3))).payoff_range == (
        "running"
    )


def test_a_learner_may_need_no_place_at_all():
    np.testing.assert_array_equal(rd.make("auto", low=[0, 0], high=[1, 2]).space.high[:2], [1, 2])


def test_settings_that_do_not_exist_or_do_not_fit_are_named():
    with pytest.raises(ParameterError, match=r"UCB1 has no setting colour; it has .*confidence.*payoff_range"):
        rd.make("ucb1", problems.GAUSSIANS, colour="red")
    with pytest.raises(ParameterError, match="Optimist cannot be made of these settings"):
        rd.make("optimist", problems.GAUSSIANS, confidence="much")
    with pytest.raises(ParameterError, match="payoff_range"):
        rd.make("ucb1", problems.GAUSSIANS, payoff_range=(1, 0))


def settings(learner):
    return {name: str(value) for name, value in learner.state()["settings"].items()}


@pytest.mark.parametrize("name", ["auto", "mcmc-randomist"])
def test_optimize_and_a_study_of_the_same_task_make_the_same_learner(name, tmp_path, monkeypatch):
    """0.1.0 gave Auto the range "running" in `rd.optimize`, and (-5, 95) with clipping in `study create --task`."""
    made = []
    monkeypatch.setattr(rd.simulation.loop, "make", lambda *args, **kw: made.append(rd.make(*args, **kw)) or made[-1])
    rd.optimize("mountain-car", name, rounds=1)
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    create = ["study", "create", "car", "--task", "mountain-car", "--learner", name, "--storage", storage]
    done = command.call(*create)
    assert done.returncode == 0, done.stderr
    assert settings(rd.load_study("car", storage=storage).learner) == settings(made[0])


# Names of one's own.


def test_a_learner_a_task_and_a_family_of_ones_own(mine):
    learner = rd.make("bench_mine:Patient", rd.task("bench_mine:Line"), patience=5)
    assert (learner.patience, learner.payoff_range, learner.out_of_range) == (5, (-5.0, 5.0), "clip")
    state = learner.state()
    assert state["learner"] == "bench_mine:Patient"
    assert type(rd.load(state)) is type(learner)
    assert rd.task("bench_mine:sloped", slope=2.0).payoff([1.0], None) == 2.0
    import bench_mine

    space = rd.Finite(bench_mine.Shifted([0, 1], 1.0))
    assert space.state()["family"]["kind"] == "bench_mine:Shifted"
    assert type(rd.spaces.space_from_state(space.state()).family) is bench_mine.Shifted
    for id, words in (
        ("bench_mine:Nothing", "Nothing"),
        ("bench_mine:number", "not callable"),
        ("bench_mine:Patient", "bench_mine:Patient"),
    ):
        with pytest.raises((TaskError, ParameterError), match=words):
            rd.task(id)


def test_a_state_of_ones_own_learner_loads_in_another_process(mine):
    state = rd.make("bench_mine:Patient", rd.task("bench_mine:Line")).state()
    from randomist import _json

    (mine / "state.json").write_text(_json.dumps(state))
    load = "import randomist as rd, randomist._json as j; print(rd.load(j.loads(open('state.json').read())).patience)"
    call = {"cwd": mine, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", f"import bench_mine; {load}"], **call)
    assert done.stdout == "3\n", done.stderr
    done = subprocess.run([sys.executable, "-c", load], **call)
    assert "StateError: unknown learner 'bench_mine:Patient'" in done.stderr
    assert "import the module that defines it first" in done.stderr


def test_ones_own_in_the_command_line_with_two_jobs(mine):
    call = [COMMAND, "run", "bench_mine:Line", "--learner", "bench_mine:Patient", "--set", "patience=4"]
    printed = []
    for jobs in ("1", "2"):
        done = subprocess.run(
            [*call, "--rounds", "12", "--seeds", "3", "--jobs", jobs, "--json"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        printed.append(json.loads(done.stdout))
    assert printed[0] == printed[1]
    assert printed[0]["learner"] == "bench_mine:Patient"


def test_ones_own_in_an_experiment_with_two_jobs(mine):
    (mine / "mine.toml").write_text(
        'name = "mine"\nrounds = 8\nseeds = 2\n[[tasks]]\nid = "bench_mine:Line"\n'
        '[[learners]]\nname = "bench_mine:Patient"\nsettings = { patience = 2, payoff_range = [-20, 20] }\n'
    )
    call = [COMMAND, "experiment", "mine.toml", "--jobs", "2"]
    done = subprocess.run([*call, "--with", "bench_mine"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "report:" in done.stdout
    done = subprocess.run(call, capture_output=True, text=True)
    assert (done.returncode, "--with module" in done.stderr) == (1, True)


def test_ones_own_in_a_study_from_the_shell(mine):
    space = {"kind": "Finite", "family": {"kind": "bench_mine:Shifted", "mean": [0, 1], "std": 1}}
    for words in (
        ["create", "a", "--task", "bench_mine:Line", "--learner", "bench_mine:Patient"],
        ["create", "b", "--space", json.dumps(space), "--learner", "bench_mine:Patient", "--set", "patience=9"],
        ["ask", "b"],
    ):
        done = command.call("study", *words, "--with", "bench_mine")
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"] == 0


def test_a_description_from_elsewhere_imports_nothing(mine):
    from randomist.study.describe import learner_from

    (mine / "bench_other.py").write_text(MINE)
    space = {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1], "std": 1}}
    for name, where in (
        ("bench_other:Patient", space),
        ("ucb1", space | {"family": {"kind": "bench_other:Shifted", "mean": [0, 1]}}),
        ("ucb1", {"kind": "Finite", "families": [{"kind": "Mixed", "parts": [{"kind": "bench_other:Shifted"}]}]}),
    ):
        with pytest.raises(ParameterError, match=r"unknown .*bench_other.*import the module that defines it first"):
            learner_from(name, where)
    assert "bench_other" not in sys.modules
