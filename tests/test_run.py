"""A Run to look at: what it says of itself, as text, in a notebook and as a table."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import randomist as rd
from tests.simulated import bowl

SPACE = rd.Parameters(kp=rd.Real(0.1, 100, log=True), taps=rd.Integer(1, 12), payoff=rd.Choice("a", "<b>"))


def moody(kp, taps, payoff):
    if taps == 7:
        raise ValueError("seven <b>\nand more")
    return bowl(kp, taps)


@pytest.fixture(scope="module")
def run():
    return rd.optimize(moody, parameters=SPACE, rounds=25, seed=4)


def test_the_best_is_what_the_learner_recommends(run):
    assert run.best == SPACE.named(run.recommendation)
    assert rd.optimize("illustrative", rd.UCB1, 20).best in range(5)


def test_it_is_short_in_a_terminal(run):
    assert repr(run).startswith("<Run: Auto on moody, ")
    assert "\n" not in repr(run)
    assert len(repr(run)) < 200
    assert f"{len(run.failures)} failed" in repr(run)


def test_the_summary_says_what_matters(run):
    lines = run.summary().splitlines()
    assert lines[0] == f"Auto on moody, {len(run.payoffs)} rounds, seed 4"
    text = "\n".join(lines)
    assert f"taps={run.best['taps']}" in text
    assert f"{run.payoffs.mean():.4g}; of the last 2: {run.payoffs[-2:].mean():.4g}" in text
    assert f"largest payoff  {run.payoffs.max():.4g}" in text
    many = f"{len(run.failures)} trials; the first, " if len(run.failures) > 1 else "1 trial; "
    assert f"{many}trial {next(iter(run.failures))}: ValueError: seven <b>" in text
    assert "and more" not in text
    cost = rd.optimize(bowl, parameters={"kp": (0, 9)}, rounds=5, direction="minimize")
    assert f"smallest payoff  {cost.payoffs.min():.4g}" in cost.summary()
    paper = rd.optimize("illustrative", rd.UCB1, 20).summary()
    assert "regret" in paper


def test_in_a_notebook_it_is_a_table_without_surprises(run):
    page = run._repr_html_()
    assert page.startswith("<table>")
    assert "seven &lt;b&gt;" in page
    assert "<b>" not in page


@pytest.mark.parametrize("library", ["polars", "pandas", None])
def test_every_trial_is_a_row(run, library):
    if library is not None:
        pytest.importorskip(library)
    frame = run.to_frame(library)
    assert type(frame).__module__.startswith(library or "polars")
    assert list(frame.columns) == ["trial", "kp", "taps", "payoff_", "payoff", "failure"]
    assert frame["trial"].to_list() == list(range(25))
    assert [float(x) for x in frame["payoff"].to_list() if x is not None and x == x] == run.payoffs.tolist()
    failed = [i for i, reason in enumerate(frame["failure"].to_list()) if isinstance(reason, str)]
    assert failed == sorted(run.failures)
    assert {frame["taps"].to_list()[i] for i in failed} == {7}


def test_decisions_and_mediators_are_columns_where_nothing_has_a_name():
    plain = rd.optimize("illustrative", rd.UCB1, 5).to_frame()
    assert plain.columns == ["trial", "decision", "mediator", "payoff", "failure"]
    vector = rd.optimize(lambda x: float(x.sum()), "pgpe", low=[0, 0], high=[1, 1], rounds=5).to_frame()
    assert vector.columns == ["trial", "decision_0", "decision_1", "mediator_0", "mediator_1", "payoff", "failure"]


def test_frames_that_are_not_installed_or_not_known(run, monkeypatch):
    with pytest.raises(rd.errors.ParameterError, match="'polars', 'pandas', got 'excel'"):
        run.to_frame("excel")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(rd.errors.ParameterError, match="pip install polars"):
        run.to_frame("polars")


def test_a_run_without_a_round_has_no_best():
    nothing = rd.simulation.Run("a", "B", 0, np.empty(0), np.empty(0), np.empty(0), None, None)
    assert nothing.best is None
    assert "0 rounds" in repr(nothing)
    assert nothing.summary()
