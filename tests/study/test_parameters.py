"""Studies of parameters with names: what a trial stands for, everywhere that it is seen; and `study.optimize`."""

from __future__ import annotations

import csv
import io
import json

import pytest

import randomist as rd
from randomist.errors import NoDataError, ParameterError, TaskError
from randomist.study.client import Client
from randomist.study.dashboard.data import snapshot
from randomist.study.describe import learner_from
from randomist.study.export import lines
from tests import simulated
from tests.study.helpers import same
from tests.study.serving import ADMIN, serving

SPACE = rd.Parameters(kp=rd.Real(0.1, 100, log=True), taps=rd.Integer(1, 12), mode=rd.Choice("a", "b"))


def auto(seed=0):
    return rd.Auto(SPACE, seed=seed)


def test_a_trial_has_its_parameters_wherever_it_comes_from(place):
    study = rd.create_study("car", auto(), storage=place)
    asked = study.ask(batch=3)
    for trial in asked:
        assert trial.parameters == SPACE.named(trial.mediator)
        assert simulated.bowl(**trial.parameters) <= 1
    study.tell(asked[0], 0.5)
    again = rd.load_study("car", storage=place)
    assert same(again.pending(), asked[1:])
    assert [trial.parameters for trial in again.trials()] == [trial.parameters for trial in asked]
    assert again.space.named(again.recommend()) == asked[0].parameters
    learner = rd.load(auto().state())
    assert learner.ask().parameters == auto().ask().parameters
    learner.ask()
    assert [t.parameters for t in rd.load(learner.state()).pending] == [t.parameters for t in learner.pending]


def test_spaces_without_names_have_no_parameters():
    trial = rd.Auto(low=0, high=1).ask()
    assert trial.parameters is None
    assert "parameters" not in repr(trial)
    with pytest.raises(ParameterError, match="no names"):
        rd.Auto(low=0, high=1).space.named([0.5])


def test_over_the_wire_and_in_tables(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    with serving(url) as service, Client(service.address, ADMIN) as client:
        description = {"kind": "Parameters", "parameters": json.loads(json.dumps(SPACE.meaning.state()))}
        remote = client.create("car", "auto", description, seed=0)
        trial = remote.ask()
        assert trial.parameters == auto().ask().parameters
        remote.tell(trial, 1.5)
    study = rd.load_study("car", storage=url)
    rows = list(csv.DictReader(io.StringIO("".join(lines(study, "csv")))))
    assert {name: rows[0][name] for name in SPACE.names} == {k: str(v) for k, v in trial.parameters.items()}
    assert json.loads(next(lines(study)))["parameters"] == trial.parameters
    shown = snapshot(study)
    assert shown["box"]["names"] == ["kp", "taps", "mode"]
    assert shown["box"]["lines"][0]["x"][0] == pytest.approx(0.1)
    assert shown["box"]["lines"][0]["x"][-1] == pytest.approx(100)
    assert shown["box"]["log"] == [True, False, False]
    assert shown["best"]["parameters"] == trial.parameters


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "no parameters"),
        ([{"name": "kp", "kind": "Odd"}], "Real"),
        ([{"name": "kp", "kind": "Real", "low": 2, "high": 1}], "low must be below high"),
        ([{"name": "kp", "kind": "Real", "low": 0, "high": 1}] * 2, "must differ"),
        ([{"kind": "Real", "low": 0, "high": 1}], "is missing"),
        ([3], "cannot be made"),
        ("kp", "cannot be made"),
    ],
)
def test_descriptions_that_are_no_parameters(entries, words):
    with pytest.raises(rd.RandomistError, match=words):
        learner_from("auto", {"kind": "Parameters", "parameters": entries})


# A worker in one line.


def test_a_study_calls_a_function(place):
    study = rd.create_study("car", auto(), storage=place)
    run = study.optimize(simulated.bowl, 40)
    twin, payoffs = rd.create_study("twin", auto(), storage=place), []
    for _ in range(40):
        trial = twin.ask()
        payoffs.append(simulated.bowl(**trial.parameters))
        twin.tell(trial, payoffs[-1])
    assert run.payoffs.tolist() == payoffs
    assert run.parameters == [trial.parameters for trial in twin.trials()]
    assert run.best == twin.space.named(twin.recommend())
    assert run.best_payoff == twin.interval()
    more = study.optimize(simulated.bowl, 5, confirm=4)
    assert more.ids.tolist() == list(range(40, 49))
    assert study.told == 49
    assert (more.best_payoff.basis, study.confirmed().plays) == ("asymptotic", 4)


def test_failures_are_failed_trials_of_the_study(memory):
    study = rd.create_study("car", rd.Auto(low=0, high=1, seed=0), storage=memory)
    seen = []

    def choosy(x):
        if x > 0.5:
            raise ValueError(f"{x} is large")
        return x

    run = study.optimize(choosy, 20, callbacks=[seen.append])
    assert len(run.payoffs) + len(run.failures) == 20 == len(seen)
    assert {t.id: t.reason for t in study.trials("failed")} == run.failures
    assert all("is large" in reason for reason in run.failures.values())
    with pytest.raises(ValueError, match="is large") as caught:
        study.optimize(choosy, 20, catch=())
    assert not study.pending()
    assert study.trials("failed")[-1].reason == "its worker was stopped"
    assert len(caught.value.run.payoffs) + len(caught.value.run.failures) < 20
    with pytest.raises(NoDataError, match="all 3 trials"):
        study.optimize(simulated.at_once, 3, catch=(Exception,))


def test_workers_of_one_call_and_of_several(tmp_path):
    study = rd.create_study("car", rd.Auto(low=0, high=1, seed=0), storage=f"sqlite:///{tmp_path / 'study.db'}")
    run = study.optimize(simulated.slow, 12, jobs=2, timeout=60)
    assert len(run.payoffs) == 12 == study.told
    by_id = {t.id: t for t in study.trials()}
    assert all(by_id[i].payoff == payoff for i, payoff in zip(run.ids.tolist(), run.payoffs.tolist(), strict=True))


def test_finite_sets_until_sure_and_patience(memory):
    space = rd.Finite(rd.Categorical([[0.95, 0.05], [0.05, 0.95]]))
    study = rd.create_study("ads", rd.Realist(space, payoff_range=(0, 1), seed=0), storage=memory)
    run = study.optimize(lambda action: float(action), 2000, until="sure")
    assert run.surviving == (1,)
    assert len(run.payoffs) < 2000
    assert "one decision is left" in run.notes[0]
    flat = study.optimize(lambda action: 0.5, 200, patience=10)
    assert len(flat.payoffs) == 20
    with pytest.raises(ParameterError, match="confirm= is for Auto"):
        study.optimize(lambda action: 0.5, 3, confirm=3)
    with pytest.raises(TaskError, match="unknown task"):
        study.optimize("no-such-task", 3)
    with pytest.raises(ParameterError, match="rounds"):
        study.optimize(lambda action: 0.5, 0)


def test_names_of_arguments_are_checked(memory):
    study = rd.create_study("car", auto(), storage=memory)
    with pytest.raises(ParameterError, match=r"\(kp, taps, mode\), and other takes \(kp, gain\)"):
        study.optimize(other, 3)
    assert study.counters.asked == 0


def other(kp, gain):
    return 0.0
