"""Parallel coordinates and slices: the user's names and units, log axes, options, and what the learner says."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection

import randomist as rd
from randomist.errors import NoDataError, ParameterError
from randomist.learners.box.auto.interval import Interval
from randomist.plots.marks import ticks as round_ticks
from tests.plots.reading import BOTH, axis_names, limits, made, named, note, shown, ticks

SPACE = rd.Parameters(
    gain=rd.Real(0.01, 1000, log=True),
    offset=rd.Real(-2, 6),
    taps=rd.Integer(1, 12),
    depth=rd.Integer(1, 1000, log=True),
    mode=rd.Choice("fast", "smooth", None, 3),
)


def searched(n=40, direction="maximize", **others):
    """A run over parameters of all kinds, by hand."""
    rng = np.random.default_rng(5)
    points = rng.random((n, SPACE.dimension))
    paid = rng.normal(size=n) * 3 + 100
    point = points[7]
    return made(
        paid, space=SPACE, mediators=points, decisions=points, recommendation=point, direction=direction, **others
    )


@pytest.fixture(scope="module")
def tuned():
    """A run of Auto in a box of two parameters, and its learner."""
    rng, learner = np.random.default_rng(0), rd.Auto(low=[-1, 0], high=[1, 20], payoff_range=(-8, 3.1), seed=1)

    def simulate(x):
        return float(np.clip(3 - 2 * x[0] ** 2 - 0.03 * (x[1] - 12) ** 2 + 0.1 * rng.standard_normal(), -8, 3.1))

    run = rd.optimize(simulate, lambda *_, **__: learner, rounds=60, low=[-1, 0], high=[1, 20])
    return run, learner


def axes_of(figure):
    """Of parallel coordinates: per axis its name, its values as they are placed from 0 to 1, and its ticks."""
    if isinstance(figure, mpl.figure.Figure):
        (threads,) = [part for part in figure.axes[0].collections if isinstance(part, LineCollection)]
        heights = np.array([segment[:, 1] for segment in threads.get_segments()])
        places = ((text.xy, text.get_text()) for text in figure.axes[0].texts)
        marks = [(int(x), y, text) for (x, y), text in places]
        return [
            (name, heights[:, k], [(y, text) for at, y, text in marks if at == k])
            for k, name in enumerate(ticks(figure, "x"))
        ], np.asarray(threads.get_array())
    (trace,) = figure.data
    found = []
    for part in trace.dimensions:
        low, high = part.range
        placed = [
            ((value - low) / (high - low), text) for value, text in zip(part.tickvals, part.ticktext, strict=True)
        ]
        found.append((part.label, (np.array(part.values) - low) / (high - low), placed))
    return found, np.array(trace.line.color)


@pytest.mark.parametrize("backend", BOTH)
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_parallel_coordinates_are_those_of_the_trials_from_the_worst_to_the_best(backend, direction):
    run = searched(direction=direction)
    found, colours = axes_of(rd.plot.parallel(run, backend=backend))
    assert [name for name, _, _ in found] == list(SPACE.names)
    order = sorted(range(40), key=lambda i: run.payoffs[i] if direction == "maximize" else -run.payoffs[i])
    np.testing.assert_array_equal(colours, run.payoffs[order])
    rows = [run.parameters[i] for i in order]
    options = ("fast", "smooth", None, 3)
    naive = {
        "gain": [math.log(row["gain"] / 0.01) / math.log(1e5) for row in rows],
        "offset": [(row["offset"] + 2) / 8 for row in rows],
        "taps": [(row["taps"] - 1) / 11 for row in rows],
        "depth": [math.log(row["depth"]) / math.log(1000) for row in rows],
        "mode": [options.index(row["mode"]) / 3 for row in rows],
    }
    for name, heights, _ in found:
        np.testing.assert_allclose(heights, naive[name], atol=1e-12, err_msg=name)


@pytest.mark.parametrize("backend", BOTH)
def test_ticks_of_parallel_coordinates_are_in_the_units_of_the_user(backend):
    found, _ = axes_of(rd.plot.parallel(searched(), backend=backend))
    marks = {name: placed for name, _, placed in found}
    for place, text in marks["gain"]:
        assert place == pytest.approx(math.log10(float(text) / 0.01) / 5)
    for place, text in marks["offset"]:
        assert place == pytest.approx((float(text) + 2) / 8)
    for place, text in marks["taps"]:
        assert place == pytest.approx((int(text) - 1) / 11)
    assert [text for _, text in marks["mode"]] == ["fast", "smooth", "None", "3"]
    assert all(len(placed) >= 3 for placed in marks.values())


def test_colours_leave_out_the_worst_payoffs():
    paid = np.append(np.arange(99.0), -1e9)
    (trace,) = rd.plot.parallel(made(paid), backend="plotly").data
    assert (trace.line.cmin, trace.line.cmax) == (24.0, 98.0)
    assert not trace.line.reversescale
    (trace,) = rd.plot.parallel(made(-paid, direction="minimize"), backend="plotly").data
    assert (trace.line.cmin, trace.line.cmax) == (-98.0, -24.0)
    assert trace.line.reversescale


@pytest.mark.parametrize("backend", BOTH)
def test_parameters_without_names_are_numbered_and_can_be_chosen(backend):
    run = made([1.0, 2.0, 3.0])
    found, _ = axes_of(rd.plot.parallel(run, backend=backend))
    assert [name for name, _, _ in found] == ["parameter 0", "parameter 1"]
    figure = rd.plot.slices(run, [1], backend=backend)
    assert axis_names(figure) == ("parameter 1", "payoff")
    np.testing.assert_array_equal(shown(figure, "payoff"), np.stack([run.mediators[:, 1], run.payoffs], axis=1))
    chosen, _ = axes_of(rd.plot.parallel(searched(), ["mode", 0], backend=backend))
    assert [name for name, _, _ in chosen] == ["mode", "gain"]


@pytest.mark.parametrize("backend", BOTH)
def test_slices_have_a_panel_for_each_parameter(backend):
    run = searched(best_payoff=Interval(101.0, 99.0, 102.0, 0.95, "surface"))
    figure = rd.plot.slices(run, backend=backend)
    rows = run.parameters
    for k, name in enumerate(("gain", "offset", "taps", "depth")):
        expected = np.stack([[row[name] for row in rows], run.payoffs], axis=1)
        np.testing.assert_array_equal(shown(figure, "payoff", k), expected)
        assert axis_names(figure, k)[0] == name
        assert shown(figure, "recommended", k)[0, 0] == pytest.approx(run.best[name])
        np.testing.assert_array_equal(shown(figure, "its mean payoff, 95%", k), [(run.best[name], 101.0)])
        low, high = limits(figure, "x", k)
        parameter = SPACE.parameters[name]
        assert low < parameter.low < parameter.high < high
    kinds = (
        [axis.get_xscale() for axis in figure.axes]
        if backend == "matplotlib"
        else [figure.layout[f"xaxis{k or ''}"].type for k in ("", 2, 3, 4, 5)]
    )
    assert kinds == ["log", "linear", "linear", "log", "linear"]


@pytest.mark.parametrize("backend", BOTH)
def test_options_are_labels_and_their_trials_are_spread_around_them(backend):
    run = searched()
    figure = rd.plot.slices(run, ["mode"], backend=backend)
    options = ("fast", "smooth", None, 3)
    dots = shown(figure, "payoff")
    assert dots[:, 0].round().tolist() == [options.index(row["mode"]) for row in run.parameters]
    assert len(np.unique(dots[:, 0])) == len(dots)
    assert ticks(figure, "x") == ["fast", "smooth", "None", "3"]
    assert shown(figure, "recommended")[0, 0] == options.index(run.best["mode"])


@pytest.mark.parametrize("backend", BOTH)
def test_slices_show_what_the_learner_says_through_the_recommended_point(backend, tuned):
    run, learner = tuned
    figure = rd.plot.slices(run, learner=learner, level=0.9, backend=backend)
    for k in range(2):
        line = shown(figure, "estimate and 90% interval", k)
        band = shown(figure, "", k)
        assert len(line) >= 5
        for place, mean in line:
            point = np.array(run.recommendation)
            point[k] = place
            found = learner.interval(point, 0.9)
            assert found.supported
            assert mean == pytest.approx(np.clip(found.mean, -8, 3.1))
            ends = band[np.isclose(band[:, 0], place), 1]
            assert ends.min() == pytest.approx(max(found.low, -8))
            assert ends.max() == pytest.approx(min(found.high, 3.1))
    assert named(figure) == ["payoff", "recommended", "estimate and 90% interval"]


@pytest.mark.parametrize("backend", BOTH)
def test_bands_stay_in_the_range_of_payoffs(backend, tuned):
    """A range that is tight around what was told cuts intervals that would leave it."""
    run, _ = tuned
    top = float(run.payoffs.max())
    learner = rd.Auto(low=[-1, 0], high=[1, 20], payoff_range=(-8, 3.1), seed=0)
    learner.begin(run.mediators, run.payoffs)
    wide = learner.interval(np.array(run.recommendation), 0.9999999)
    assert wide.high > 3.1 >= top
    band = shown(rd.plot.slices(run, learner=learner, level=0.9999999, backend=backend), "", 0)
    assert band[:, 1].max() == 3.1


@pytest.mark.parametrize("backend", BOTH)
def test_gaps_are_where_too_little_is_known(backend, tuned):
    run, learner = tuned
    figure = rd.plot.slices(run, learner=learner, backend=backend)
    line = figure.axes[0].lines[-1] if backend == "matplotlib" else figure.data[3]
    x, y = (line.get_xdata(), line.get_ydata()) if backend == "matplotlib" else (line.x, line.y)
    gaps = [place for place, mean in zip(x, y, strict=True) if mean is None or math.isnan(mean)]
    assert 0 < len(gaps) < len(x)
    for place in gaps:
        point = np.array([place, run.recommendation[1]])
        assert not learner.interval(point).supported
    sparse = rd.Auto(low=[-1, 0], high=[1, 20], seed=0)
    figure = rd.plot.slices(run, learner=sparse, backend=backend)
    assert named(figure) == ["payoff", "recommended"]
    assert note(figure) == "too little is known for an estimate along these axes"


@pytest.mark.parametrize("backend", BOTH)
def test_costs_are_estimated_as_costs(backend):
    space = rd.Parameters(gain=rd.Real(1, 100, log=True), mode=rd.Choice("a", "b"), taps=rd.Integer(1, 4))
    learner = rd.Auto(space, seed=0)
    rng = np.random.default_rng(1)

    def cost(gain, mode, taps):
        return 5 + math.log10(gain / 10) ** 2 + (mode == "b") + 0.1 * taps + 0.1 * rng.standard_normal()

    run = rd.optimize(cost, lambda *_, **__: learner, parameters=space, rounds=120, direction="minimize")
    assert learner.interval().basis == "surface"  # else no line is drawn
    figure = rd.plot.slices(run, learner=learner, backend=backend)
    assert axis_names(figure)[1] == "payoff, less is better"
    for k, name in enumerate(space.names):
        line = shown(figure, "estimate and 95% interval", k)
        here = line[np.argmin(np.abs(line[:, 0] - shown(figure, "recommended", k)[0, 0]))]
        assert here[1] == pytest.approx(-learner.interval().mean), name


@pytest.mark.parametrize("backend", BOTH)
def test_long_options_are_cut(backend):
    space = rd.Parameters(mode=rd.Choice("plain", "a rather long option"))
    points = np.array([[0.1], [0.9]])
    run = made([1.0, 2.0], space=space, mediators=points, decisions=points, recommendation=points[0])
    assert ticks(rd.plot.slices(run, backend=backend), "x") == ["plain", "a rather lo…"]


def test_one_number_as_a_parameter_is_drawn():
    learner = rd.Auto(low=0.0, high=3.0, seed=0)
    run = rd.optimize(lambda x: -((x - 1) ** 2), lambda *_, **__: learner, low=0.0, high=3.0, rounds=25)
    assert axis_names(rd.plot.slices(run, learner=learner)) == ("parameter 0", "payoff")
    with pytest.raises(ParameterError, match=r"two parameters at least.*'parameter 0' only.*slices"):
        rd.plot.parallel(run)


@pytest.mark.parametrize("draw", [rd.plot.parallel, rd.plot.slices])
def test_what_has_no_parameters_is_refused(draw):
    with pytest.raises(ParameterError, match=r"chose among policies.*rd\.plot\.estimates"):
        draw(rd.optimize("illustrative", "ucb1", rounds=10))
    with pytest.raises(NoDataError, match="nothing was told"):
        draw(made([]))
    with pytest.raises(ParameterError, match="draws a Run"):
        draw([made([1.0])])
    for wrong in ("gain", [], 3):
        with pytest.raises(ParameterError, match="list of names or numbers"):
            draw(searched(), wrong)
    for unknown in ("gian", 5, True):
        with pytest.raises(ParameterError, match=r"no parameter .*; this run has gain, offset"):
            draw(searched(), ["taps", unknown])


@pytest.mark.parametrize("draw", [rd.plot.parallel, rd.plot.slices])
def test_an_axis_that_is_too_long_is_refused(draw):
    space = rd.Parameters(far=(-1.7e308, 1.7e308), near=(0, 1))
    points = np.random.default_rng(0).random((3, 2))
    run = made(np.arange(3.0), space=space, mediators=points, decisions=points, recommendation=points[0])
    with pytest.raises(ParameterError, match=r"far goes from -1\.7e\+308 to 1\.7e\+308, which is too far"):
        draw(run)


def test_learners_of_something_else_are_refused(tuned):
    run, _ = tuned
    with pytest.raises(ParameterError, match="must be the Auto of this run"):
        rd.plot.slices(run, learner=rd.UCB1(rd.Finite(rd.Gaussian([0.0, 1.0], 1.0))))
    with pytest.raises(ParameterError, match="searches 3 coordinates, and the run has 2"):
        rd.plot.slices(run, learner=rd.Auto(dimension=3))
    with pytest.raises(ParameterError, match="level"):
        rd.plot.slices(run, level=1.5)


def test_many_parameters_and_trials_are_few_on_a_picture():
    points = np.random.default_rng(0).random((9000, 41))
    run = made(np.arange(9000.0), decisions=points, mediators=points, recommendation=points[0])
    with pytest.raises(ParameterError, match=r"41 parameters are too many .* at most 40"):
        rd.plot.slices(run)
    figure = rd.plot.slices(run, range(3))
    assert len(shown(figure, "payoff")) == 2000
    assert note(figure) == "2,000 of 9,000 trials are drawn"
    assert note(rd.plot.parallel(run, range(3))) == "1,000 of 9,000 trials are drawn"
    (trace,) = rd.plot.parallel(run, backend="plotly").data
    assert len(trace.line.color) == 1000
    assert trace.line.color[-1] == 8999.0  # the best


@pytest.mark.parametrize(
    ("low", "high", "log", "whole", "texts"),
    [
        (0, 10, False, False, ["0", "2", "4", "6", "8", "10"]),
        (-0.3, 0.25, False, False, ["-0.3", "-0.2", "-0.1", "0", "0.1", "0.2"]),
        (1, 3, False, True, ["1", "2", "3"]),
        (1, 12, False, True, ["2", "4", "6", "8", "10", "12"]),
        (0.01, 100, True, False, ["0.01", "0.1", "1", "10", "100"]),
        (1e-12, 1e12, True, False, ["1e-12", "1e-07", "0.01", "1000", "1e+08"]),
        (2, 7, True, False, ["2", "3", "4", "5", "6", "7"]),
        (1e6, 1e6 + 5, False, False, ["1000000", "1000001", "1000002", "1000003", "1000004", "1000005"]),
    ],
)
def test_ticks_are_round(low, high, log, whole, texts):
    found = round_ticks(low, high, log, whole)
    assert [text for _, text in found] == texts
    for place, text in found:
        assert float(text) == pytest.approx(10**place if log else place, abs=1e-12)
