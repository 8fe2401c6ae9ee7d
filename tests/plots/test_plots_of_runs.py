"""Payoffs, the best so far and regret: what is drawn are the numbers of the runs, in both libraries."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy import stats

import randomist as rd
from randomist.errors import NoDataError, ParameterError
from randomist.learners.box.auto.interval import Interval, unsupported
from tests.plots.reading import BOTH, axis_names, limits, made, named, shown

PAID = [3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0]


def naive_average(payoffs):
    return [sum(payoffs[: t + 1]) / (t + 1) for t in range(len(payoffs))]


def naive_band(rows):
    """Student's interval for the mean of some numbers, one round after the other."""
    low, high = [], []
    for column in np.transpose(rows):
        mean, error = np.mean(column), stats.sem(column)
        half = stats.t.ppf(0.975, len(column) - 1) * error
        low.append(mean - half)
        high.append(mean + half)
    return np.array(low), np.array(high)


def band_of(figure, name):
    """Low and high of a band by its rounds."""
    points = shown(figure, name)
    rounds = np.unique(points[:, 0])
    ends = [points[points[:, 0] == t, 1] for t in rounds]
    return rounds, np.array([e.min() for e in ends]), np.array([e.max() for e in ends])


@pytest.mark.parametrize("backend", BOTH)
def test_payoffs_are_dots_and_their_average_a_line(backend):
    figure = rd.plot.payoffs(made(PAID), backend=backend)
    rounds = np.arange(1, 8)
    np.testing.assert_array_equal(shown(figure, "payoff"), np.stack([rounds, PAID], axis=1))
    np.testing.assert_allclose(shown(figure, "average so far"), np.stack([rounds, naive_average(PAID)], axis=1))
    assert named(figure) == ["payoff", "average so far"]
    assert axis_names(figure) == ("round", "payoff")


@pytest.mark.parametrize("backend", BOTH)
def test_failures_are_ticks_on_the_axis_at_their_rounds(backend):
    ids = np.array([0, 2, 3, 5, 6, 8, 9])
    run = made(PAID, ids=ids, failures={1: "a", 7: "b", 4: "c"})
    figure = rd.plot.payoffs(run, backend=backend)
    floor = limits(figure, "y")[0]
    assert floor < min(PAID)
    np.testing.assert_array_equal(shown(figure, "failed (3)"), [(2, floor), (5, floor), (8, floor)])
    np.testing.assert_array_equal(shown(figure, "payoff"), np.stack([ids + 1, PAID], axis=1))


@pytest.mark.parametrize("backend", BOTH)
def test_trials_that_were_told_in_another_order_are_drawn_as_they_were_asked(backend):
    told = np.array([2, 0, 1, 3])
    run = made([30.0, 10.0, 20.0, 40.0], ids=told, regret=np.array([0.3, 0.4, 0.6, 1.0]))
    np.testing.assert_array_equal(
        shown(rd.plot.payoffs(run, backend=backend), "payoff"), [(1, 10), (2, 20), (3, 30), (4, 40)]
    )
    average = shown(rd.plot.payoffs(run, backend=backend), "average so far")
    np.testing.assert_allclose(average[:, 1], [10, 15, 20, 25])
    np.testing.assert_allclose(shown(rd.plot.regret(run, backend=backend), "regret")[:, 1], [0.1, 0.3, 0.6, 1.0])


@pytest.mark.parametrize("backend", BOTH)
def test_several_runs_are_a_mean_with_a_band(backend):
    rng = np.random.default_rng(3)
    runs = [made(rng.normal(size=30) * scale + 10) for scale in (1.0, 2.0, 0.5, 1.5)]
    figure = rd.plot.payoffs(runs, backend=backend)
    rows = np.array([naive_average(run.payoffs.tolist()) for run in runs])
    np.testing.assert_allclose(shown(figure, "average so far, mean of 4 runs")[:, 1], rows.mean(axis=0))
    rounds, low, high = band_of(figure, "95% band")
    least, most = min(run.payoffs.min() for run in runs), max(run.payoffs.max() for run in runs)
    expected = naive_band(rows)
    np.testing.assert_array_equal(rounds, np.arange(1, 31))
    np.testing.assert_allclose(low, np.clip(expected[0], least, most))
    np.testing.assert_allclose(high, np.clip(expected[1], least, most))


@pytest.mark.parametrize("backend", BOTH)
def test_a_band_of_averages_stays_among_the_payoffs_that_were_seen(backend):
    runs = [made([0.0, 1.0, 1.0]), made([1.0, 1.0, 0.0])]
    _, low, high = band_of(rd.plot.payoffs(runs, backend=backend), "95% band")
    wide = naive_band([naive_average([0.0, 1.0, 1.0]), naive_average([1.0, 1.0, 0.0])])
    assert wide[0].min() < 0
    assert wide[1].max() > 1
    assert (low >= 0).all()
    assert (high <= 1).all()


@pytest.mark.parametrize("backend", BOTH)
def test_a_band_of_regret_is_not_below_zero(backend):
    regrets = np.cumsum([[0.0, 0.0, 0.1], [1.0, 1.0, 1.0], [0.0, 0.1, 0.0]], axis=1)
    runs = [made([1.0, 2.0, 3.0], regret=regret) for regret in regrets]
    assert naive_band(regrets)[0].min() < 0
    figure = rd.plot.regret(runs, backend=backend)
    _, low, high = band_of(figure, "95% band")
    np.testing.assert_allclose(low, np.maximum(naive_band(regrets)[0], 0))
    np.testing.assert_allclose(high, naive_band(regrets)[1])
    np.testing.assert_allclose(shown(figure, "regret, mean of 3 runs")[:, 1], regrets.mean(axis=0))
    assert axis_names(figure) == ("round", "cumulative regret")


@pytest.mark.parametrize("backend", BOTH)
def test_runs_by_name_and_lists_of_several_learners_are_told_apart(backend):
    runs = {"ours": [made([1.0, 2.0]), made([2.0, 3.0])], "theirs": made([5.0, 4.0])}
    figure = rd.plot.payoffs(runs, backend=backend)
    assert named(figure) == ["ours (2 runs)", "theirs"]
    np.testing.assert_allclose(shown(figure, "ours (2 runs)")[:, 1], [1.5, 2.0])
    np.testing.assert_allclose(shown(figure, "theirs")[:, 1], [5.0, 4.5])
    mixed = [made([1.0]), made([2.0], learner="UCB1"), made([3.0])]
    assert named(rd.plot.payoffs(mixed, backend=backend)) == ["Auto (2 runs)", "UCB1"]
    tasks = [made([1.0]), made([2.0], task="other")]
    assert named(rd.plot.payoffs(tasks, backend=backend)) == ["Auto on made", "Auto on other"]


@pytest.mark.parametrize("backend", BOTH)
def test_several_runs_go_as_far_as_the_shortest_and_keep_still_where_a_trial_failed(backend):
    short = made([1.0, 5.0], ids=np.array([0, 2]), failures={1: "x"})
    figure = rd.plot.payoffs([short, made([2.0, 4.0, 6.0, 8.0])], backend=backend)
    line = shown(figure, "average so far, mean of 2 runs")
    np.testing.assert_allclose(line, [(1, 1.5), (2, (1 + 3) / 2), (3, (3 + 4) / 2)])


@pytest.mark.parametrize("backend", BOTH)
@pytest.mark.parametrize(("direction", "better"), [("maximize", max), ("minimize", min)])
def test_the_best_so_far_is_a_staircase(backend, direction, better):
    figure = rd.plot.best_so_far(made(PAID, direction=direction), backend=backend)
    line = shown(figure, "best so far")
    expected = [better(PAID[: t + 1]) for t in range(len(PAID))]
    at = np.searchsorted(line[:, 0], np.arange(1, 8), side="right") - 1
    np.testing.assert_array_equal(line[at, 1], expected)
    assert line[-1, 0] == 7
    assert axis_names(figure)[1] == ("payoff" if direction == "maximize" else "payoff, less is better")
    if backend == "matplotlib":
        assert figure.axes[0].lines[0].get_drawstyle() == "steps-post"
    else:
        assert figure.data[0].line.shape == "hv"


@pytest.mark.parametrize("backend", BOTH)
def test_the_recommended_point_has_its_mean_payoff_where_it_is_known(backend):
    found = Interval(2.5, 1.0, 3.5, 0.9, "surface")
    name = "mean payoff of the recommended point, 90%"
    figure = rd.plot.best_so_far(made(PAID, best_payoff=found), backend=backend)
    (point,) = shown(figure, name)
    assert point[1] == 2.5
    assert 7 < point[0] < limits(figure, "x")[1]
    np.testing.assert_array_equal(shown(figure, ""), [(point[0], 1.0), (point[0], 3.5)])
    assert limits(figure, "y")[0] < 1.0
    unknown = rd.plot.best_so_far(made(PAID, best_payoff=unsupported(0.95)), backend=backend)
    assert named(unknown) == ["best so far"]


def test_long_runs_are_thinned_and_it_is_said():
    rng = np.random.default_rng(0)
    paid = rng.normal(size=20_000)
    figure = rd.plot.payoffs(made(paid))
    dots = shown(figure, "payoff (5,000 of 20,000)")
    assert len(dots) == 5000
    np.testing.assert_array_equal(dots[:, 1], paid[dots[:, 0].astype(int) - 1])
    line = shown(figure, "average so far")
    np.testing.assert_allclose(line[:, 1], (np.cumsum(paid) / np.arange(1, 20_001))[line[:, 0].astype(int) - 1])
    assert line[-1, 0] == 20_000


def test_a_staircase_of_very_many_steps_is_thinned():
    line = shown(rd.plot.best_so_far(made(np.arange(5000.0))), "best so far")
    assert len(line) == 1000
    np.testing.assert_array_equal(line[:, 1], line[:, 0] - 1)
    assert line[-1].tolist() == [5000, 4999]


@pytest.mark.parametrize("draw", [rd.plot.payoffs, rd.plot.best_so_far, rd.plot.regret])
def test_what_cannot_be_drawn_is_refused(draw):
    with pytest.raises(NoDataError, match="2 trials failed, the first with 'it broke'"):
        draw(made([], failures={0: "it broke", 1: "again"}))
    with pytest.raises(NoDataError, match="nothing was told"):
        draw({"a": [made([])]})
    for nothing in ([], {}, {"a": []}):
        with pytest.raises(ParameterError, match="there is no run to draw"):
            draw(nothing)
    for other in (3, "run", [1.0, 2.0], {"a": 3}, None):
        with pytest.raises(ParameterError, match="Run"):
            draw(other)
    with pytest.raises(ParameterError, match="draw them apart"):
        draw([made([1.0]), made([1.0], direction="minimize")])


def test_regret_that_is_not_known_is_refused_with_a_remedy():
    with pytest.raises(ParameterError, match=r"regret of Auto on made is not known.*rd\.plot\.payoffs"):
        rd.plot.regret(made([1.0, 2.0]))


def test_runs_without_a_common_round_are_refused():
    late = made([1.0], ids=np.array([8]), failures=dict.fromkeys(range(8), "x"))
    with pytest.raises(ParameterError, match="no round in common: one begins at 9, one ends at 2"):
        rd.plot.payoffs([late, made([1.0, 2.0])])


def test_a_real_run_is_drawn_as_it_is():
    run = rd.optimize("illustrative", "randomist", rounds=40, seed=2)
    np.testing.assert_array_equal(shown(rd.plot.regret(run), "regret")[:, 1], run.regret)
    np.testing.assert_array_equal(shown(rd.plot.payoffs(run), "average so far")[:, 1], run.average_payoff)


@pytest.mark.parametrize("backend", BOTH)
@pytest.mark.parametrize("paid", [[2.0], [0.0, 0.0], [1e150, -1e150], [1e-300, 0.0]])
def test_few_equal_and_extreme_payoffs_are_drawn(backend, paid):
    figure = rd.plot.payoffs(made(paid), backend=backend)
    low, high = limits(figure, "y")
    if backend == "matplotlib":
        figure.savefig(io.BytesIO(), format="png")
    assert low <= min(paid) <= max(paid) <= high
    assert low < high
