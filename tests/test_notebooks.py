"""What a notebook shows: short texts, and tables in which everything is escaped."""

from __future__ import annotations

import re

import numpy as np

import randomist as rd
from randomist import _html
from tests.problems import GAUSSIANS

NAMES = ["a<b", "two", "three"]


def cells(html: str) -> list[list[str]]:
    """The rows of a table, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_learners_are_short_and_show_what_they_know():
    space = rd.Finite(rd.Gaussian([0.0, 1.0, 2.0], 1.0), names=NAMES)
    learner = rd.Realist(space, payoff_range=(0, 1), seed=0)
    for _ in range(5):
        trial = learner.ask()
        learner.tell(trial, min(max(trial.mediator / 3, 0), 1))
    learner.ask()
    assert repr(learner) == "<Realist on a Finite of 3 decisions: 5 told, 1 pending>"
    shown, estimates = cells(learner._repr_html_()), learner.estimates()
    assert shown[0] == ["decision", "value", "effective samples", "plays"]
    for k, row in enumerate(shown[1:]):
        assert row[0] == ("a&lt;b" if k == 0 else NAMES[k])
        assert row[1:] == [
            f"{estimates.value[k]:.4g}",
            f"{estimates.effective_samples[k]:.4g}",
            str(estimates.plays[k]),
        ]
    assert [row[1:] for row in cells(estimates._repr_html_())] == [row[1:] for row in shown]
    learner.retire(2)
    assert cells(learner._repr_html_())[3][0] == "three (retired)"
    auto = rd.Auto(rd.Parameters(kp=(0, 1), taps=rd.Integer(1, 3)))
    assert repr(auto) == "<Auto on a Parameters of 2 coordinates: 0 told>"
    assert ["seed", "0"] in cells(auto._repr_html_())


def test_a_learner_of_the_users_own_is_short_too():
    class Mine(rd.Optimist):
        pass

    assert repr(Mine(GAUSSIANS)).startswith("<Mine on a Finite of 5 decisions")


def test_studies_and_evaluations():
    study = rd.create_study("ads", rd.Realist(GAUSSIANS), storage="memory://notebook")
    study.tell(study.ask(), 0.5)
    study.ask()
    assert ["told", "1"] in cells(study._repr_html_())
    assert ["pending", "1"] in cells(study._repr_html_())
    rng = np.random.default_rng(0)
    actions = rng.integers(2, size=500)
    table = {"action": actions, "chance": np.full(500, 0.5), "payoff": rng.random(500) * (1 + actions) / 2}
    policies = {"<one>": {1: 1.0}, "uniform": "uniform"}
    log = rd.Log.from_table(table, action="action", propensity="chance", policies=policies, payoff_range=(0, 1))
    result = log.evaluate()
    shown = cells(result._repr_html_())
    assert shown[1][0] == "&lt;one&gt;"
    assert shown[1][2:4] == [f"{result.low[0]:.4g}", f"{result.high[0]:.4g}"]
    assert "rows" in result._repr_html_()


def test_long_tables_are_cut():
    html = _html.table("many", [(i, float(i)) for i in range(1000)], ("i", "value"))
    assert len(cells(html)) == _html.MOST + 1
    assert f"and {1000 - _html.MOST} more" in html
