"""Decisions that cannot come or go: the error is typed, and nothing has changed."""

from __future__ import annotations

import pytest

import randomist as rd
from randomist.errors import MediatorError, ParameterError, ShapeError, SpaceError
from tests.problems import CATEGORIES, GAUSSIANS, RECTANGLE
from tests.study.helpers import SIXTH, play
from tests.study.test_resume import equal, state

BAD = {
    "a member that is none": (lambda s: s.add(0.5), ParameterError, "a family of one member"),
    "two members": (lambda s: s.add(rd.Gaussian([0.0, 1.0], 1.0)), ParameterError, "one member"),
    "another shape": (lambda s: s.add(rd.Gaussian([[0.0, 1.0]], 1.0)), ShapeError, "shape"),
    "likelihoods": (lambda s: s.add(rd.Finite.likelihoods(1).family), ParameterError, "drawn"),
    "a name that is taken": (lambda s: s.add(SIXTH, name="2"), ParameterError, "'2' is there twice"),
    "a name that is a number": (lambda s: s.add(SIXTH, name=2), ParameterError, "name is a text"),
    "an unknown decision": (lambda s: s.retire(5), ParameterError, "0..4"),
    "an unknown name": (lambda s: s.retire("five"), ParameterError, "no decision is called 'five'"),
    "a truth value": (lambda s: s.retire(True), ParameterError, "0..4"),
    "twice": (lambda s: s.retire(1), ParameterError, "was retired before"),
    "an atom where a trial is open": (lambda s: s.add(rd.Dirac(s.pending()[0].mediator)), MediatorError, "point mass"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused_changes_nothing(case, memory):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=memory)
    play(study, 5)
    study.retire(1)
    study.ask()
    before = state(study)
    call, error, said = BAD[case]
    with pytest.raises(error, match=said):
        call(study)
    assert equal(state(study), before)
    assert study.counters.changes == 1
    assert equal(state(rd.load_study("car", storage=memory)), before)


def test_mediators_stay_whole_numbers(memory):
    study = rd.create_study("car", rd.Randomist(CATEGORIES, seed=0), storage=memory)
    with pytest.raises(ParameterError, match="whole numbers"):
        study.add(rd.Dirac(2.0))
    assert study.add(rd.Categorical([[0.25] * 4])) == 3
    play(study, 5)
    assert equal(state(study), state(rd.load_study("car", storage=memory)))


def test_a_box_has_no_decisions(memory):
    study = rd.create_study("car", rd.PGPE(RECTANGLE, seed=0), storage=memory)
    for call in (lambda: study.add(SIXTH), lambda: study.retire(0), lambda: study.names, lambda: study.active):
        with pytest.raises(SpaceError, match="searches a box"):
            call()
    assert isinstance(study.space, rd.Box)
