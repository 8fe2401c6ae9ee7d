"""A name in data imports nothing and calls nothing, wherever it stands; what a person types may name a module.

`walked` puts foreign names in the place of every entry of a state, a row, a request or a file, one after the other. The
module that they name springs a trap as soon as it is imported or called.
"""

from __future__ import annotations

import json
import math
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import randomist as rd
from randomist import _json, _lookup
from randomist.cli import runs as commands
from randomist.errors import ParameterError, RandomistError, StateError
from randomist.experiments.specs import experiment_from_state
from randomist.families import family_from_state
from randomist.importance.divergences.harmonic import Harmonic
from randomist.importance.estimators import ESTIMATORS, Estimator
from randomist.learners import registry
from randomist.policies import policy_from_state
from randomist.study import open_storage
from randomist.study.describe import learner_from, member_from
from randomist.study.verifying import verify
from tests import problems
from tests.command import COMMAND
from tests.study.helpers import play
from tests.study.serving import BOX, SPACE, STUDIES, WORK

SPRUNG: list[str] = []


def trap(*_: Any, **__: Any) -> None:
    """A function of a module that is there already."""
    SPRUNG.append("called")


class Trap:
    """A class of a module that is there already, and of no kind that data may name."""

    def __init__(self, *_: Any, **__: Any) -> None:
        SPRUNG.append("made")


class Halfway(Estimator):
    """An estimator of the user's own."""

    name = "halfway"
    needs_range = True

    def combine(self, value, coverage):
        return value + (1 - coverage) / 2


FOREIGN = ("sprung_trap:Class", f"{__name__}:trap", f"{__name__}:Trap")


@pytest.fixture(autouse=True)
def trapped(tmp_path, monkeypatch):
    """The module of the names, which cannot be imported unseen."""
    (tmp_path / "sprung_trap.py").write_text("import randomist as rd\nclass Class(rd.Randomist): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_lookup, "_registered", {})
    SPRUNG.clear()
    yield
    assert SPRUNG == []
    assert "sprung_trap" not in sys.modules


def walked(data: Any) -> Iterator[Any]:
    """The data with a foreign name in the place of each of its entries; of long lists, of the first two."""
    yield from FOREIGN
    yield {"kind": FOREIGN[0]}
    if isinstance(data, dict):
        for key, entry in data.items():
            yield from (data | {key: other} for other in walked(entry))
    elif isinstance(data, list | tuple):
        for i, entry in enumerate(data[:2]):
            yield from (type(data)([*data[:i], other, *data[i + 1 :]]) for other in walked(entry))


def test_the_walk_reaches_every_entry():
    found = [entry for entry in walked({"a": [1, {"b": 2}], "c": (3,)}) if isinstance(entry, dict)]
    assert {"a": [1, {"b": FOREIGN[0]}], "c": (3,)} in found
    assert {"a": [1, {"b": 2}], "c": ({"kind": FOREIGN[0]},)} in found


# States.

STATES = {name: ("gaussians", cls) for name, cls in (problems.SHARING | problems.BANDITS | problems.RIVALS).items()}
STATES |= {f"randomist on {space}": (space, rd.Randomist) for space in problems.FINITE}
STATES |= {name: ("rectangle", cls) for name, cls in problems.BOX_LEARNERS.items()}
STATES |= {"safe of settings": ("gaussians", lambda space, **given: rd.Safe(space, learner="optimist", **given))}


@pytest.mark.parametrize("case", STATES)
def test_states(case):
    space, make = STATES[case]
    learner = make((problems.FINITE | problems.BOXED)[space], seed=0, **problems.settings(space))
    for _ in range(3):
        problems.tell(learner, learner.ask(), space)
    learner.ask()
    tried = 0
    for state in walked(learner.state()):
        with suppress(RandomistError):
            rd.load(state)
        tried += 1
    assert tried > 200


@pytest.mark.parametrize("space", problems.FINITE | problems.BOXED)
def test_spaces_and_families(space):
    state = (problems.FINITE | problems.BOXED)[space].state()
    for read, whole in ((rd.spaces.space_from_state, state), (family_from_state, state["family"])):
        for data in walked(whole):
            with suppress(RandomistError, TypeError, AttributeError, ValueError):
                read(data)


def test_a_space_of_named_parameters():
    space = rd.Parameters(kp=rd.Real(0.1, 10, log=True), taps=rd.Integer(1, 9), mode=rd.Choice("a", "b"))
    for state in walked(rd.Auto(space).state()):
        with suppress(RandomistError):
            rd.load(state)


# Rows.


@pytest.mark.parametrize("kind", ["drawn", "likelihoods"])
def test_rows(kind, tmp_path):
    whole, edited = tmp_path / "whole.db", tmp_path / "edited.db"
    space = problems.GAUSSIANS if kind == "drawn" else rd.Finite.likelihoods(2, names=["old", "new"])
    study = rd.create_study("car", rd.Optimist(space, seed=0), storage=f"sqlite:///{whole}")
    if kind == "drawn":
        play(study, 4)
        study.add(rd.Gaussian([0.5], 1.0), "between")
    else:
        for _ in range(3):
            study.tell(study.ask(), 0.5, log_likelihoods={"old": -0.5, "new": -1.0})
        study.add(None, "newer")
    study.ask()
    study.storage.disconnect()
    tried = 0
    for table, column, row, text in texts(whole):
        others = [*FOREIGN]
        with suppress(ValueError):
            others = [json.dumps(data) for data in walked(json.loads(text))]
        for other in others:
            shutil.copy(whole, edited)
            with closing(sqlite3.connect(edited)) as connection, connection:
                connection.execute("pragma ignore_check_constraints=on")
                connection.execute(f"update {table} set {column} = ? where rowid = ?", (other, row))
            with suppress(RandomistError):
                rd.load_study("car", storage=f"sqlite:///{edited}").ask()
            verify(open_storage(f"sqlite:///{edited}"), "car")
            tried += 1
    assert tried > 200


def texts(database: Path) -> Iterator[tuple[str, str, int, str]]:
    """Every text of a database: table, column, row, and what it says; of each column the last row's."""
    with closing(sqlite3.connect(database)) as connection:
        for (table,) in connection.execute("select name from sqlite_master where name like 'randomist_%'").fetchall():
            for _, column, *_ in connection.execute(f"pragma table_info({table})").fetchall():
                found = f"select rowid, {column} from {table} where typeof({column}) = 'text' order by rowid desc"
                yield from ((table, column, *row) for row in connection.execute(found).fetchmany(1))


# Requests.


def test_requests(service):
    spaces = [
        {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1], "std": 2}, "names": ["a", "b"]},
        {"kind": "Finite", "families": [{"kind": "Mixed", "parts": [{"kind": "Dirac", "at": 0.5}]}]},
        {"kind": "Parameters", "parameters": [{"name": "kp", "kind": "Real", "low": 0, "high": 1, "log": False}]},
    ]
    settings = {"estimator": "paper", "divergence": "harmonic", "prior": [[0, 0], [1, 1]]}
    safe = {"learner": "optimist", "settings": {"estimator": "paper"}}
    bodies = [
        {"name": "new", "learner": "randomist", "space": spaces[0], "settings": settings, "lease": 60.0},
        {"name": "new", "learner": "safe", "space": spaces[0], "settings": safe},
        {"name": "new", "learner": "ucb1", "space": spaces[1]},
        {"name": "new", "learner": "auto", "space": spaces[2]},
    ]
    for body in bodies:
        for data in walked(body):
            status = service.request("POST", STUDIES, data)[0]
            assert status in (201, 413, 422), data
            if status == 201:
                assert service.request("DELETE", f"{STUDIES}/{data['name']}")[0] == 200
    rd.create_study("bus", rd.Optimist(problems.GAUSSIANS, seed=0), storage=service.url)
    asks = {"ask": {"batch": 1, "worker": "w", "lease": 9.0, "ticket": "t"},
            "confirm": {"n": 1}, "retire": {"decision": 1},
            "decisions": {"member": {"kind": "Gaussian", "mean": [0.5], "std": 1.0}, "name": "new"},
            "trials/0/tell": {"payoff": 0.5, "feasible": True}, "tells": {"tells": [{"id": 0, "payoff": 0.5}]},
            "estimates": {"decisions": [[0.5]]}, "interval": {"point": [0.5], "level": 0.9}}  # fmt: skip
    for path, body in asks.items():
        for data in walked(body):
            assert service.request("POST", f"{STUDIES}/bus/{path}", data)[0] < 500


ODD = [None, True, -1, 1e308, 10**30, 10**9, "x", [[1, 2], [3]], {"kind": {}}, "gpu"]


def test_no_creation_is_an_error_of_the_service(service):
    """Safe around any learner; settings called like arguments of ours; whatever values settings have."""
    safe = [
        ("safe", {"learner": inner, "settings": odd}) for inner in [*rd.LEARNERS, *ODD] for odd in ({}, {"seed": 1})
    ]
    words = ("learner", "place", "space", "settings", "self", "name", "kind", "seed", "first", "payoff_range", "prior")
    named = [("randomist", {word: odd}) for word in words for odd in ODD]
    nested: dict[str, Any] = {}
    for _ in range(900):
        nested = {"learner": "safe", "settings": nested}
    for learner, settings in [*safe, *named, ("safe", nested)]:
        body = {"name": "new", "learner": learner, "space": SPACE, "settings": settings}
        status, said, _ = service.request("POST", STUDIES, body)
        assert status in (201, 422), (learner, settings, said)
        if status == 201:
            assert service.request("POST", f"{STUDIES}/new/ask", {}, WORK)[0] == 200
            assert service.request("DELETE", f"{STUDIES}/new")[0] == 200


GREEDY = {
    "steps": ("mcmc-randomist", BOX, {"steps": 10**9}),
    "decisions": ("ucb1", {"kind": "Finite", "family": {"kind": "Likelihoods", "count": 10**7}}, {}),
    "pairs of decisions": ("gp-ucb", {"kind": "Grid", "family": {"kind": "Gaussian", "std": 0.1}, "low": -1, "high": 1,
                                      "points": 20_000}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", GREEDY)
def test_a_creation_takes_neither_all_time_nor_all_memory(case, service, monkeypatch):
    """It is tried in a process of its own, and refused where that has to be ended."""
    monkeypatch.setattr(service.app.state.tries._apart, "_seconds", 8.0)
    learner, space, settings = GREEDY[case]
    body = {"name": "new", "learner": learner, "space": space, "settings": settings}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status, said, _ = service.request("POST", STUDIES, body)
    assert (status, said["error"]) == (422, "ParameterError")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    good = {"name": "new", "learner": "realist", "space": SPACE}
    assert service.request("POST", STUDIES, good)[0] == 201, "the next one is tried by a new process"
    assert service.request("DELETE", f"{STUDIES}/new")[0] == 200


@pytest.mark.parametrize("settings", [{"device": "jax-cpu"}, {"learner": "optimist", "settings": {"device": "gpu"}}])
def test_a_request_chooses_no_device(settings):
    with pytest.raises(ParameterError, match='device must be "cpu" here'):
        learner_from("safe" if "learner" in settings else "optimist", SPACE, settings)


def test_a_service_that_knows_a_class_takes_its_name(service):
    body = {"name": "mine", "learner": "randomist", "space": SPACE, "settings": {"estimator": f"{__name__}:Halfway"}}
    assert service.request("POST", STUDIES, body)[0] == 201
    assert service.request("POST", f"{STUDIES}/mine/ask", {}, WORK)[0] == 200
    assert service.request("GET", f"{STUDIES}/mine/estimates")[0] == 200


# Files.


def test_policies():
    noisy = rd.GaussianPolicy(rd.Linear(2, 1), 0.5)
    for state in walked(noisy.state()):
        with suppress(RandomistError, TypeError):
            policy_from_state(state)


def test_files_of_policies_and_experiments(tmp_path, capsys):
    path, task = tmp_path / "policy.json", rd.task("mountain-car")
    rd.save_policy(path, task.policy, np.zeros(task.policy.size), task=task)
    for data in walked({**json.loads(path.read_text()), "settings": {"policy": "linear"}}):
        path.write_text(json.dumps(data))
        with suppress(RandomistError):
            commands.play(path)
    experiment = {"name": "mine", "rounds": 1, "seeds": 1,
                  "tasks": [{"id": "illustrative", "settings": {"sigma": 1.0}}],
                  "learners": [{"name": "randomist", "settings": {"estimator": "paper"}}]}  # fmt: skip
    for data in walked(experiment):
        with suppress(RandomistError, TypeError, AttributeError):
            experiment_from_state(data)
    for id_ in ("gym:sprung_trap:Car-v0", "gym-vector:sprung_trap:Car-v0"):
        with pytest.raises(StateError, match="--with"):
            experiment_from_state(experiment | {"tasks": [{"id": id_}]})


# What a person types.


def test_names_are_imported_where_a_person_types_them(tmp_path, monkeypatch):
    (tmp_path / "typed_mine.py").write_text(
        "import randomist as rd\nfrom randomist.importance.estimators.paper import Paper\n"
        "class Same(Paper): pass\nclass Mine(rd.Optimist): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    learner = rd.make("typed_mine:Mine", problems.GAUSSIANS, estimator="typed_mine:Same")
    assert learner.state()["settings"]["estimator"] == "typed_mine:Same"
    assert type(rd.load(learner.state())) is type(learner)


@pytest.mark.parametrize("given", [Halfway, Halfway(), f"{__name__}:Halfway", "Halfway"])
def test_a_class_or_an_object_goes_where_a_name_goes(given):
    for make, space in ((rd.Randomist, "gaussians"), (rd.GridOptimist, "rectangle")):
        learner = make((problems.FINITE | problems.BOXED)[space], estimator=given, seed=0)
        problems.tell(learner, learner.ask(), space)
        state = _json.loads(_json.dumps(learner.state()))
        assert state["settings"]["estimator"] in (f"{__name__}:Halfway", "Halfway")
        loaded = rd.load(state)
        assert type(loaded._estimator) is Halfway
        assert loaded.ask() == learner.ask()


def test_ours_as_classes_and_objects_are_named_as_before():
    learner = rd.Optimist(problems.GAUSSIANS, estimator=ESTIMATORS["optimistic"], divergence=Harmonic)
    settings = learner.state()["settings"]
    assert (settings["estimator"], settings["divergence"]) == ("optimistic", "harmonic")
    assert rd.Safe(problems.GAUSSIANS, learner=rd.Optimist).state()["settings"]["learner"] == "optimist"


def test_an_object_with_settings_is_saved_with_them():
    @dataclass(frozen=True)
    class Partly(Halfway):
        share: float = 0.5

        def combine(self, value, coverage):
            return value + self.share * (1 - coverage)

    learner = rd.Randomist(problems.GAUSSIANS, estimator=Partly(share=0.25))
    assert learner.state()["settings"]["estimator"] == {"kind": "Partly", "share": 0.25}
    assert rd.load(learner.state())._estimator == Partly(0.25)
    study = rd.create_study("car", learner, storage="memory://names")
    assert study.learner._estimator == Partly(0.25)

    class Loose(Halfway):
        def __init__(self):
            self.share = 0.3

    with pytest.raises(ParameterError, match="make Loose a dataclass"):
        rd.Randomist(problems.GAUSSIANS, estimator=Loose()).state()


def test_of_a_class_that_is_defined_again_the_newer_one_counts():
    def cell(worth):
        class Rerun(Halfway):
            value = worth

        return Rerun

    first, second = cell(1), cell(2)
    assert _lookup.known("Rerun", Estimator) is second
    for cls in (first, second):
        rd.register(cls, "again")
    assert rd.Randomist(problems.GAUSSIANS, estimator="again")._estimator.value == 2


def test_the_newer_one_counts_whatever_it_derives_from():
    def cell(base):
        class Goo(base):
            pass

        return Goo

    for bases in ((rd.FollowTheLeader, rd.Optimist), (rd.Optimist, rd.FollowTheLeader)):
        classes = [cell(base) for base in bases]
        assert type(rd.load(classes[1](problems.GAUSSIANS).state())) is classes[1]

    class Other(rd.UCB1):
        pass

    rd.register(classes[1], "goo")
    with pytest.raises(ParameterError, match="'goo' is the name of"):
        rd.register(Other, "goo")


def test_names_of_ours_are_refused():
    class Optimist(rd.UCB1):
        pass

    with pytest.raises(ParameterError, match=r"called like one of ours.*register"):
        Optimist(problems.GAUSSIANS).state()
    for name in ("Optimist", "optimist"):
        with pytest.raises(ParameterError, match="one of ours"):
            rd.register(Optimist, name)
    rd.register(Optimist, "my-optimist")
    state = Optimist(problems.GAUSSIANS).state()
    assert state["learner"] == "my-optimist"
    assert type(rd.load(state)) is Optimist is registry.find("my-optimist")
    for cls, name in ((Halfway, "paper"), (rd.Task, "lqg"), (rd.Family, "Gaussian")):
        with pytest.raises(ParameterError, match="one of ours"):
            rd.register(cls, name)


@pytest.mark.parametrize("thing", [trap, Trap, 7, "Halfway", int])
def test_what_cannot_be_registered(thing):
    with pytest.raises(ParameterError, match="Learner, Estimator"):
        rd.register(thing)
    with pytest.raises(ParameterError, match="letters"):
        rd.register(Halfway, "a:b")


def test_a_registered_task_goes_by_its_id():
    @rd.register
    class Line(rd.Task):
        id = "a-line"
        space = problems.GAUSSIANS

        def payoff(self, mediators, rng):
            return np.asarray(mediators)

    assert type(rd.task("a-line")) is Line
    assert "a-line" in rd.task_ids()


def test_states_that_make_no_sense_are_typed_errors():
    deep: dict[str, Any] = {"kind": "Gaussian", "mean": [0.0], "std": 1.0}
    for _ in range(900):
        deep = {"kind": "Mixed", "parts": (deep,)}
    state = rd.Auto(low=0, high=1).state()
    wrong = [state | {key: value} for key in ("entropy", "next_id", "clipped") for value in (-1, math.inf, "1", None)]
    wrong += [state | {"running_range": value} for value in ("ab", 7, [{}], {"a": 1})] + [state | {"format": True}]
    finite = rd.Optimist(problems.GAUSSIANS).state()
    wrong += [finite | {"space": {"kind": "Finite", "family": deep}}]
    nested: Any = "paper"
    for _ in range(5000):
        nested = {"kind": nested}
    wrong += [finite | {"settings": finite["settings"] | {"estimator": nested}}]
    for one in wrong:
        with pytest.raises(RandomistError):
            rd.load(one)


def test_abstract_classes_and_ours_beside_the_table_are_not_known():
    for name in ("Learner", "BoxLearner", "randomist.learners.finite.optimist:Optimist"):
        assert _lookup.known(name, rd.Learner) is None
        with pytest.raises(StateError, match="import the module that defines it first"):
            registry.class_named(f"x:{name}")


def test_names_with_colons_are_names_where_nothing_is_named():
    space = {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1], "std": 2}, "names": ["os:abort", "b"]}
    assert learner_from("randomist", space).names == ("os:abort", "b")
    with pytest.raises(ParameterError, match="sprung_trap"):
        member_from({"kind": "sprung_trap:Class"}, problems.GAUSSIANS)


def test_the_command_line_imports_what_is_typed_and_nothing_else(tmp_path):
    """A study of a class of one's own: the file names it, and `--with` defines it."""
    (tmp_path / "mine.py").write_text("import randomist as rd\nclass Mine(rd.Optimist): pass\n")
    space = json.dumps({"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1], "std": 2}})

    def call(*words):
        return subprocess.run([COMMAND, *words], cwd=tmp_path, capture_output=True, text=True)

    made = call("study", "create", "a", "--learner", "mine:Mine", "--space", space)
    assert made.returncode == 0, made.stderr
    refused = call("study", "ask", "a")
    assert (refused.returncode, "--with" in refused.stderr, "mine:Mine" in refused.stderr) == (1, True, True)
    for words in (["--with", "mine", "study", "ask", "a"], ["study", "ask", "a", "--with=mine.py"]):
        assert call(*words).returncode == 0
    nowhere = call("study", "ask", "a", "--with", "nowhere")
    assert (nowhere.returncode, "nowhere" in nowhere.stderr) == (1, True)
