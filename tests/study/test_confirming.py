"""Studies of Auto: known results that they begin with, intervals, and plays that confirm the recommended point."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist import _json
from randomist.errors import NoDataError, ParameterError, ShapeError, StudyDataError, StudyExistsError, TicketError
from randomist.study import replay, replica
from randomist.study.client import Client
from tests.study.helpers import edit, make, query, same
from tests.study.serving import ADMIN, READ, serving
from tests.study.test_infeasible import CORNERS, SPACE, earned, lived
from tests.study.test_resume import equal, state

POINTS, PAYOFFS = [[0.1, 3.0], [0.2, 14.0], [-0.5, 8.0]], [2.5, 2.9, 1.5]


def begun(seed: int = 5) -> rd.Auto:
    learner = rd.Auto(**CORNERS, seed=seed)
    learner.begin(POINTS, PAYOFFS)
    return learner


def noisy(trial: rd.Trial) -> float:
    return earned(trial) + 0.3 * np.sin(7.0 * trial.id)


def play(study: rd.Study | rd.Learner, rounds: int) -> list[rd.Trial]:
    trials = []
    for _ in range(rounds):
        trials.append(study.ask())
        study.tell(trials[-1], noisy(trials[-1]))
    return trials


# Known results.


def test_a_study_begins_with_known_results(place):
    study = rd.create_study("car", begun(), storage=place)
    assert (study.told, study.learner.told) == (0, 0)
    assert np.array_equal(study.recommend(), begun().recommend())
    rd.create_study("twin", begun(), storage=place)
    for _ in range(3):
        twin = rd.load_study("twin", storage=place)
        assert equal(twin.learner.state()["begun"], {"points": np.array(POINTS), "payoffs": np.array(PAYOFFS)})
        assert same(lived(study, 4), lived(twin, 4))
    assert equal(state(study), state(rd.load_study("twin", storage=place)))
    without = rd.create_study("without", rd.Auto(**CORNERS, seed=5), storage=place)
    lived(without, 12)
    assert not same(study.ask(batch=2), without.ask(batch=2))


def test_known_results_are_part_of_what_a_study_is(memory):
    rd.create_study("car", begun(), storage=memory)
    rd.create_study("car", begun(), storage=memory, exist_ok=True)
    with pytest.raises(StudyExistsError, match="another learner"):
        rd.create_study("car", rd.Auto(**CORNERS, seed=5), storage=memory, exist_ok=True)
    described = _json.loads(replay.describe(rd.Auto(**CORNERS, seed=5)))
    assert list(described) == list(replay.KEPT), "without them, a study's row is as it was"
    assert list(_json.loads(replay.describe(begun()))) == [*replay.KEPT, "begun"]


def test_a_learner_that_was_used_is_not_fresh(memory):
    used = begun()
    used.tell(used.ask(), feasible=False)
    asked = begun()
    asked.confirm(2)
    for learner in (used, asked):
        with pytest.raises(ParameterError, match="a fresh learner"):
            rd.create_study("car", learner, storage=memory)


def test_a_checkpoint_of_a_study_with_known_results(sqlite, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 9)
    straight = rd.create_study("straight", begun(), storage=sqlite)
    rd.create_study("broken", begun(), storage=sqlite)
    restored = []
    monkeypatch.setattr(
        replay, "_restored", lambda *a, real=replay._restored: restored.append(real(*a)) or restored[-1]
    )
    for _ in range(4):
        assert same(lived(straight, 4), lived(rd.load_study("broken", storage=sqlite), 4))
    assert restored
    assert None not in restored
    assert equal(state(straight), state(rd.load_study("broken", storage=sqlite)))


def test_all_of_it_on_a_line(sqlite, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 9)
    restored = []
    monkeypatch.setattr(
        replay, "_restored", lambda *a, real=replay._restored: restored.append(real(*a)) or restored[-1]
    )

    def lived(study: rd.Study) -> list[rd.Trial]:
        trials = [study.ask() for _ in range(5)]
        study.tell(trials.pop(), feasible=False)
        for trial in trials:
            study.tell(trial, 1 - trial.mediator**2)
        plays = study.confirm(2)
        study.tell(plays[0], 0.5)
        return [*trials, *plays]

    learners = [rd.Auto(low=-1, high=2, seed=5) for _ in range(2)]
    for learner in learners:
        learner.begin([0.1, 0.7], [0.9, 0.5])
    straight, _ = (rd.create_study(f"{i}", learner, storage=sqlite) for i, learner in enumerate(learners))
    for _ in range(5):
        assert same(lived(straight), lived(rd.load_study("1", storage=sqlite)))
    assert restored
    assert None not in restored
    assert equal(state(straight), state(rd.load_study("1", storage=sqlite)))
    assert repr(straight.confirmed()) == repr(rd.load_study("1", storage=sqlite).confirmed())


@pytest.mark.parametrize(
    "edited",
    [{"points": np.zeros((1, 2))}, {"points": np.full((1, 2), 99.0), "payoffs": np.ones(1)}, 7, None,
     {"points": np.zeros((1, 2)), "payoffs": np.array([np.nan])}, {"points": np.zeros((2, 2)), "payoffs": np.ones(1)}],
)  # fmt: skip
def test_known_results_that_were_changed(edited, sqlite):
    rd.create_study("car", begun(), storage=sqlite)
    described = _json.loads(query(sqlite, "select learner from randomist_studies")[0][0])
    edit(sqlite, "update randomist_studies set learner = :text", text=_json.dumps(described | {"begun": edited}))
    with pytest.raises(StudyDataError, match="study 'car'"):
        rd.load_study("car", storage=sqlite)


def test_known_results_of_a_learner_that_takes_none(sqlite):
    rd.create_study("car", make("pgpe"), storage=sqlite)
    described = _json.loads(query(sqlite, "select learner from randomist_studies")[0][0])
    results = {"points": np.zeros((1, 2)), "payoffs": np.ones(1)}
    edit(sqlite, "update randomist_studies set learner = :text", text=_json.dumps(described | {"begun": results}))
    with pytest.raises(StudyDataError, match="study 'car'"):
        rd.load_study("car", storage=sqlite)


# Intervals and confirmations.


def test_confirming_survives_a_load(place):
    straight = rd.create_study("straight", rd.Auto(**CORNERS, seed=7), storage=place)
    rd.create_study("broken", rd.Auto(**CORNERS, seed=7), storage=place)
    with pytest.raises(NoDataError):
        straight.confirm(3)
    assert straight.counters.asked == 0
    assert same(play(straight, 20), play(rd.load_study("broken", storage=place), 20))
    best = straight.recommend()
    ours, theirs = (rd.load_study(name, storage=place).confirm(6, worker="w") for name in ("straight", "broken"))
    assert same(ours, theirs)
    assert [t.id for t in ours] == list(range(20, 26))
    assert all(np.array_equal(t.mediator, best) and t.decision[-1] == 0 for t in ours)
    assert {t.worker for t in straight.trials(first=20)} == {"w"}
    with pytest.raises(NoDataError, match="no play of a confirmation"):
        straight.confirmed()
    for name in ("straight", "broken"):  # whoever tells them
        for trial in ours[:-1]:
            rd.load_study(name, storage=place).tell(trial.id, noisy(trial))
        rd.load_study(name, storage=place).fail(ours[-1].id)
    broken = rd.load_study("broken", storage=place)
    assert same(play(straight, 8), play(broken, 8)), "the search goes on after it"
    for study in (straight, broken, rd.load_study("broken", storage=place)):
        found = study.confirmed(0.9)
        assert (found.plays, found.mean.level, found.mean.basis) == (5, 0.9, "asymptotic")
        assert found.mean.mean == np.mean([noisy(trial) for trial in ours[:-1]])
        assert np.array_equal(found.point, best)
    assert equal(state(straight), state(rd.load_study("broken", storage=place)))


def test_a_study_confirms_as_its_learner_would(memory):
    study = rd.create_study("car", rd.Auto(**CORNERS, payoff_range=(0, 4), seed=7), storage=memory)
    play(study, 20)
    twin = rd.load(study.learner.state())
    ours, theirs = study.confirm(12), twin.confirm(12)
    assert same(ours, theirs)
    for trial in ours:
        study.tell(trial, noisy(trial))
        twin.tell(trial.id, noisy(trial))
    for level in (0.5, 0.95):
        assert repr(study.confirmed(level)) == repr(twin.confirmed(level))
        assert study.interval(level=level) == twin.interval(level=level)
        assert repr(study.interval([0.1, 9.0], level)) == repr(twin.interval([0.1, 9.0], level))
    assert study.confirmed().mean.basis == "range"


def test_intervals(memory):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=8), storage=memory)
    assert not study.interval().supported
    play(study, 60)
    found = study.interval()
    assert (found.basis, found.level) == ("surface", 0.95)
    assert found.low < found.mean < found.high
    assert rd.load_study("car", storage=memory).interval() == found
    for error, call in (
        (ParameterError, lambda: study.interval(level=1)),
        (ParameterError, lambda: study.interval([9.0, 9.0])),
        (ShapeError, lambda: study.interval([[0.0, 9.0], [0.1, 9.0]])),
        (ParameterError, lambda: study.confirm(0)),
        (ParameterError, lambda: study.confirm(10**6)),
    ):
        with pytest.raises(error):
            call()
    assert study.counters.asked == 60


@pytest.mark.parametrize("name", ["randomist", "pgpe", "safe"])
def test_other_learners_have_none(name, memory):
    study = rd.create_study("car", make(name), storage=memory)
    study.tell(study.ask(), 0.5)
    for call in (study.interval, study.confirmed, lambda: study.confirm(2)):
        with pytest.raises(ParameterError, match="only Auto"):
            call()
    assert study.counters.asked == 1


def test_a_ticket_gives_the_same_plays_again(place):
    study = rd.create_study("car", rd.Auto(**CORNERS, seed=7), storage=place)
    play(study, 8)
    trials = study.confirm(4, ticket="sunday")
    play(study, 2)
    assert same(rd.load_study("car", storage=place).confirm(4, ticket="sunday"), trials)
    with pytest.raises(TicketError):
        study.confirm(5, ticket="sunday")
    assert study.counters.asked == 14


def test_plays_are_named_by_the_numbers_they_get(sqlite, monkeypatch):
    """Another worker is faster, again and again; and this one draws from streams of its own since."""
    study, other = (rd.create_study("car", rd.Auto(**CORNERS, seed=7), storage=sqlite, exist_ok=True) for _ in "ab")
    play(study, 8)
    ask, before = study.storage.ask_all, []

    def late(*arguments):
        if len(before) < 3:
            before.append(other.ask())
        return ask(*arguments)

    monkeypatch.setattr(study.storage, "ask_all", late)
    trials = study.confirm(4)
    assert [t.id for t in (*before, *trials)] == list(range(8, 15))
    for one in (study, other, rd.load_study("car", storage=sqlite)):
        assert (one.learner.search.confirm, one.learner.search.confirms) == (11, 4)


def test_over_http(memory):
    with serving(memory) as service, Client(service.address, ADMIN) as client:
        study = client.create("car", "auto", SPACE, seed=3)
        local = rd.create_study("local", rd.Auto(**CORNERS, seed=3), storage=service.url)
        assert np.isnan(study.interval().mean)
        assert study.interval().low == -np.inf
        with pytest.raises(NoDataError):
            study.confirm(3)
        play(study, 30), play(local, 30)
        assert repr(study.interval()) == repr(local.interval())
        assert repr(study.interval([0.1, 9.0], 0.5)) == repr(local.interval([0.1, 9.0], 0.5))
        with pytest.raises(NoDataError):
            study.confirmed()
        ours, theirs = study.confirm(4, worker="me", ticket="one"), local.confirm(4)
        assert same(ours, theirs)
        assert same(study.confirm(4, ticket="one"), ours)
        for trial in ours:
            study.tell(trial, noisy(trial))
            local.tell(trial, noisy(trial))
        assert repr(study.confirmed(0.9)) == repr(local.confirmed(0.9))
        assert np.isinf(study.confirmed(0.99).median.low)
        assert service.request("POST", "/api/v1/studies/car/confirm", {"n": 1}, READ)[0] == 403
        assert service.request("POST", "/api/v1/studies/car/confirm", {"n": 0})[0] == 422
        assert service.request("GET", "/api/v1/studies/car/confirmation?level=2")[0] == 422
        other = client.create("other", "pgpe", SPACE)
        for call in (other.interval, other.confirmed, lambda: other.confirm(2)):
            with pytest.raises(ParameterError, match="only Auto"):
                call()
