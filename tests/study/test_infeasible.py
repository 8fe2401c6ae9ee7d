"""Trials that broke a constraint: kept, shown, and heard of by every learner of the study."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ClosedTrialError, ParameterError, PayoffError, StudyDataError, UnknownTrialError
from randomist.study import replay, replica
from randomist.study.client import Client
from randomist.study.dashboard import snapshot
from randomist.study.export import lines
from tests.study.helpers import edit, make, query, same
from tests.study.serving import ADMIN, WORK, serving
from tests.study.test_resume import equal, state

CORNERS = {"low": [-1, 0], "high": [1, 20]}
SPACE = {"kind": "Box", "family": {"kind": "Gaussian", "std": [0.15, 3.0]}, **CORNERS}


def earned(trial: rd.Trial) -> float:
    return 3 - (trial.mediator[0] - 0.3) ** 2 - (trial.mediator[1] / 20 - 0.6) ** 2


def lived(study: rd.Study | rd.Learner, rounds: int) -> list[rd.Trial]:
    """Rounds in which much is infeasible, told late, with a payoff or without; some fail."""
    trials = []
    for i in range(rounds):
        trial, late = study.ask(), study.ask()
        trials += [trial, late]
        if trial.mediator[1] > 11:
            study.tell(trial, earned(trial) if i % 2 else None, feasible=False)
        else:
            study.tell(trial, earned(trial))
        if i % 5 == 3:
            study.fail(late.id, "lost")
        elif i % 5 == 1:
            study.tell(late.id, feasible=False)
        else:
            study.tell(late, earned(late))
    return trials


def test_an_infeasible_trial_is_kept_and_shown(place):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=0), storage=place)
    first, second, third, fourth = study.ask(batch=4)
    study.tell(first, feasible=False)
    study.tell(second.id, 0.1, feasible=False)
    study.tell(third, 0.5)
    study.fail(fourth, "lost")
    there = rd.load_study("car", storage=place)
    shown = [(t.state, t.feasible, t.payoff, t.reason, t.closing) for t in there.trials()]
    assert shown == [
        ("failed", False, None, None, 1),
        ("failed", False, 0.1, None, 2),
        ("told", True, 0.5, None, 3),
        ("failed", None, None, "lost", 4),
    ]
    assert [t.id for t in there.trials("failed")] == [0, 1, 3]
    assert there.trials(limit=1)[0].feasible is False
    assert (there.counters[:3], there.told) == ((4, 4, 1), 1)
    assert list(there.learner.infeasible) == [0, 1]
    assert there.learner.record.ids.tolist() == [2]
    assert there.learner.failures == {3: "lost"}
    assert [t.feasible for t in (there.ask(), there.trials()[-1])[1:]] == [None]
    assert snapshot(there)["counts"]["failed"] == 3


def test_told_again_it_changes_nothing_and_otherwise_it_is_refused(place):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=0), storage=place)
    bare, paid, told, failed = study.ask(batch=4)
    for _ in range(3):
        study.tell(bare, feasible=False)
        rd.load_study("car", storage=place).tell(paid.id, 0.25, feasible=False)
        study.tell(told, 0.5)
        study.fail(failed)
    before, counters = study.trials(), study.counters
    assert counters[:3] == (4, 4, 1)
    for call, said in (
        (lambda: study.tell(bare, 0.5), r'told {"feasible":false} before, and cannot be told 0.5'),
        (lambda: study.tell(bare, 0.5, feasible=False), "told .* before"),
        (lambda: study.tell(paid, feasible=False), r'told {"feasible":false,"payoff":0.25} before'),
        (lambda: study.fail(paid), "cannot be failed now"),
        (lambda: study.tell(told, 0.5, feasible=False), "told 0.5 before"),
        (lambda: study.tell(failed, feasible=False), "was failed before"),
    ):
        with pytest.raises(ClosedTrialError, match=said):
            call()
    assert (study.counters, len(study.trials())) == (counters, len(before))
    assert [t[4:] for t in study.trials()] == [t[4:] for t in before]


def test_what_is_refused_is_not_written(place):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=0), storage=place)
    trial = study.ask()
    for error, call in (
        (PayoffError, lambda: study.tell(trial, np.nan, feasible=False)),
        (PayoffError, lambda: study.tell(trial)),
        (UnknownTrialError, lambda: study.tell(1, feasible=False)),
        (UnknownTrialError, lambda: study.tell(None, feasible=False)),
        (UnknownTrialError, lambda: study.tell(trial._replace(mediator=trial.mediator + 1), feasible=False)),
    ):
        with pytest.raises(error):
            call()
    assert study.counters[:3] == (1, 0, 0)


@pytest.mark.parametrize("name", [name for name in rd.LEARNERS if name != "auto"])
def test_other_learners_refuse_before_anything_is_written(name, memory):
    study = rd.create_study("car", make(name), storage=memory)
    trial = study.ask()
    with pytest.raises(ParameterError, match=f"{type(make(name)).__name__} cannot keep away .* tell trial 0 a payoff"):
        study.tell(trial, feasible=False)
    with pytest.raises(ParameterError, match="cannot keep away"):
        make_asked(name).tell(0, feasible=False)
    assert [t.state for t in study.trials()] == ["asked"]


def make_asked(name: str) -> rd.Learner:
    learner = make(name)
    learner.ask()
    return learner


def test_loading_changes_nothing(place):
    straight = rd.create_study("straight", rd.Auto(**CORNERS, seed=7), storage=place)
    rd.create_study("broken", rd.Auto(**CORNERS, seed=7), storage=place)
    other = rd.load_study("straight", storage=place)  # hears of all of it as news
    other.learner  # noqa: B018 (loaded)
    for _ in range(4):
        broken = rd.load_study("broken", storage=place)
        assert same(lived(straight, 6), lived(broken, 6))
    assert len(straight.learner.infeasible) > 10
    assert all(equal(state(straight), state(s)) for s in (broken, other, rd.load_study("broken", storage=place)))
    assert same(lived(other, 4), lived(rd.load_study("broken", storage=place), 4))


def test_the_search_keeps_away(memory):
    told, failed = (rd.create_study(name, rd.Auto(**CORNERS, seed=7), storage=memory) for name in ("told", "failed"))
    outside = {"told": 0, "failed": 0}
    for study in (told, failed):
        for trial in (study.ask() for _ in range(60)):
            inside = trial.mediator[1] <= 11
            outside[study.name] += not inside and trial.id >= 30
            if inside:
                study.tell(trial, earned(trial))
            elif study is told:
                study.tell(trial, feasible=False)
            else:
                study.fail(trial)
    assert max(outside.values()) < 15, outside  # of 30, and half of the box is outside


def test_another_process_goes_on(sqlite):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=7), storage=sqlite)
    twin = rd.create_study("twin", rd.Auto(**CORNERS, seed=7), storage=sqlite)
    lived(study, 8), lived(twin, 8)
    code = f"import randomist as rd; t = rd.load_study('car', storage={sqlite!r}).ask(); print(t.mediator.tolist())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == twin.ask().mediator.tolist()


def test_a_checkpoint_covers_it(sqlite, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 9)
    straight = rd.create_study("straight", rd.Auto(**CORNERS, seed=7), storage=sqlite)
    rd.create_study("broken", rd.Auto(**CORNERS, seed=7), storage=sqlite)
    for _ in range(3):
        broken = rd.load_study("broken", storage=sqlite)
        assert same(lived(straight, 5), lived(broken, 5))
    assert 9 <= broken.counters.checkpointed < broken.counters.closed
    restored = []
    monkeypatch.setattr(
        replay, "_restored", lambda *a, real=replay._restored: restored.append(real(*a)) or restored[-1]
    )
    assert equal(state(straight), state(rd.load_study("broken", storage=sqlite)))
    assert restored[-1] is not None
    assert same(lived(straight, 3), lived(rd.load_study("broken", storage=sqlite), 3))
    number = next(iter(straight.learner.infeasible))  # by hand, it becomes one that failed
    mine = f"number = {number} and study = {broken.record.id}"
    assert edit(sqlite, f"update randomist_trials set extra = null where {mine}") == 1
    loaded = rd.load_study("broken", storage=sqlite).learner
    assert restored[-1] is None, "the checkpoint is not of these rows"
    assert (number in loaded.infeasible, number in loaded.failures) == (False, True)


def test_digests_of_studies_without_it_are_as_before(memory):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=7), storage=memory)
    for _ in range(9):
        trial = study.ask()
        study.tell(trial, earned(trial))
    saved = replay.checkpoint_of(study.record.learner, study.learner, 9)
    parts = study.record.learner, saved, study.learner.record
    assert saved.digest == replay._digest(*parts, {}, ())
    assert saved.digest != replay._digest(*parts, {"infeasible": {"ids": np.array([9])}}, ())


@pytest.mark.parametrize(
    "extra", ["", "x", "{}", "[]", "null", '{"feasible":true}', '{"feasible":false,"payoff":"x"}', "[" * 5000,
              '{"feasible":false,"payoff":1e999}', '{"feasible":false,"why":1}', '{"feasible":0}', '{"payoff":1}',
              '{"feasible":false,"payoff":1' + "0" * 400 + "}", '{"feasible":false,"payoff":true}']
)  # fmt: skip
def test_an_extra_that_was_changed(extra, sqlite):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=0), storage=sqlite)
    lived(study, 4)
    number = next(iter(study.learner.infeasible))
    running = rd.load_study("car", storage=sqlite)
    edit(sqlite, "update randomist_trials set extra = :extra where number = :n", extra=extra, n=number)
    for call in (rd.load_study("car", storage=sqlite).ask, running.ask, study.trials):
        with pytest.raises(StudyDataError, match=f"trial {number} of study 'car'.*extra must be empty"):
            call()


@pytest.mark.parametrize("state", ["told", "asked"])
def test_an_extra_where_none_belongs(state, sqlite):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=0), storage=sqlite)
    trial = study.ask()
    if state == "told":
        study.tell(trial, 0.5)
    edit(sqlite, "update randomist_trials set extra = :extra", extra='{"feasible":false}')
    for call in (rd.load_study("car", storage=sqlite).ask, study.trials):
        with pytest.raises(StudyDataError, match=r"trial 0 of study 'car'.*extra must be empty"):
            call()


def test_an_extra_of_a_learner_that_takes_none(sqlite, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 3)
    study = rd.create_study("car", make("pgpe"), storage=sqlite)
    for _ in range(5):
        study.fail(study.ask(), "lost")
    edit(sqlite, "update randomist_trials set extra = :extra where number = 1", extra='{"feasible":false}')
    with pytest.raises(StudyDataError, match=r"trial 1 of study 'car'.*PGPE cannot keep away"):
        rd.load_study("car", storage=sqlite).ask()


def test_exports_have_it(memory):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=0), storage=memory)
    one, two, _ = study.ask(batch=3)
    study.tell(one, 0.25, feasible=False)
    study.tell(two, 0.5)
    said = [json.loads(line) for line in "".join(lines(study, "jsonl")).splitlines()]
    assert [(r["state"], r["feasible"], r["payoff"]) for r in said] == [
        ("failed", False, 0.25), ("told", True, 0.5), ("asked", None, None)
    ]  # fmt: skip
    table = list(csv.DictReader(io.StringIO("".join(lines(study, "csv")))))
    assert [row["feasible"] for row in table] == ["False", "True", ""]


def test_over_http(memory):
    with serving(memory) as service, Client(service.address, ADMIN) as client:
        study = client.create("car", "auto", SPACE, seed=3)
        local = rd.create_study("local", rd.Auto(**CORNERS, seed=3), storage=service.url)
        for _ in range(2):
            assert same(lived(study, 5), lived(local, 5)), "the service decides as the library does"
        first, second = study.ask(batch=2)
        for _ in range(2):
            study.tell(first, feasible=False)
        with pytest.raises(ClosedTrialError, match=r"before, and cannot be told 0\.5"):
            study.tell(first, 0.5)
        with pytest.raises(PayoffError):
            study.tell(second)
        path = f"/api/v1/studies/car/trials/{second.id}/tell"
        assert service.request("POST", path, {}, WORK)[0] == 422
        assert service.request("POST", path, {"payoff": None, "feasible": True}, WORK)[0] == 422
        assert service.request("POST", path, {"feasible": "no"}, WORK)[0] == 422
        answer = {"id": second.id, "state": "failed", "feasible": False}
        assert service.request("POST", path, {"payoff": 0.5, "feasible": False}, WORK)[:2] == (200, answer)
        shown = service.request("GET", f"/api/v1/studies/car/trials?first={first.id}")[1]["trials"]
        assert [(t["state"], t["feasible"], t["payoff"]) for t in shown] == [
            ("failed", False, None), ("failed", False, 0.5)
        ]  # fmt: skip
        other = client.create("other", "pgpe", SPACE)
        with pytest.raises(ParameterError, match="PGPE cannot keep away"):
            other.tell(other.ask(), feasible=False)
        assert other.info()[4:7] == (1, 0, 0)


def test_rows_say_it_in_the_database(url):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=0), storage=url)
    one, two, three = study.ask(batch=3)
    study.tell(one, feasible=False)
    study.tell(two, 1, feasible=False)
    study.fail(three, "lost")
    assert query(url, "select state, payoff, extra from randomist_trials order by number") == [
        ("failed", None, '{"feasible":false}'), ("failed", None, '{"feasible":false,"payoff":1.0}'),
        ("failed", None, None),
    ]  # fmt: skip
