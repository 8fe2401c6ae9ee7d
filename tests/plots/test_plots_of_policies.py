"""Values of policies with their intervals, from learners and from logs; plays beside effective samples."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import randomist as rd
from randomist.errors import NoDataError, ParameterError
from randomist.logs.figure import draw, draw_sequence
from tests.plots.reading import BOTH, axis_names, limits, named, note, shown, ticks

NAMES = ["cautious", "slow", "as it is", "fast", "eager"]


def told(rounds=150, names=None, scale=10.0):
    """A learner that was told payoffs of five policies, between 0 and 10."""
    space = rd.Finite(rd.Gaussian(mean=[0, 1, 2, 2.95, 3], std=[2, 2, 2, 0.1, 2]), names=names)
    learner = rd.Randomist(space, payoff_range=(0, scale), seed=0)
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, scale * float(np.clip(trial.mediator / 4, 0, 1)))
    return learner


@pytest.fixture(scope="module")
def learner():
    return told(names=NAMES)


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    n = 400
    first = rng.random(n) < 0.5
    table = {"payoff": np.where(first, rng.random(n), 0.3 * rng.random(n)), "log_propensity": np.full(n, np.log(0.5))}
    policies = {"old": 0.5, "new": 0.9, "odd": 0.1}
    return rd.Log(table | {f"log_likelihood:{name}": np.log(np.where(first, p, 1 - p)) for name, p in policies.items()})


def beside(figure):
    """The texts to the right, from the top to the bottom."""
    if isinstance(figure, Figure):
        rows = [(text.get_position()[1], text.get_text()) for text in figure.axes[0].texts if text.get_fontsize() == 7]
    else:
        rows = [(note.y, note.text) for note in figure.layout.annotations if note.yref == "y"]
    return [text for _, text in sorted(rows, reverse=True)]


def ends_of(figure, name, count):
    """Low and high of lying intervals, by row from the top."""
    points = shown(figure, name)
    return {count - 1 - round(y): (low, high) for (low, y), (high, _) in zip(points[::2], points[1::2], strict=True)}


@pytest.mark.parametrize("backend", BOTH)
def test_every_policy_has_its_value_and_its_interval(backend, learner):
    figure = rd.plot.estimates(learner, 0.9, backend=backend)
    found, intervals = learner.estimates(), learner.intervals(0.9)
    survivors = learner.surviving(0.9).tolist()
    dots = shown(figure, "estimate")
    np.testing.assert_allclose(dots[:, 0], np.clip(found.value, 0, 10))
    np.testing.assert_array_equal(dots[:, 1], [4, 3, 2, 1, 0])
    may, not_ = (ends_of(figure, f"90% interval, {words}", 5) for words in ("may be the best", "not the best"))
    assert sorted(may) == survivors
    assert sorted(not_) == [k for k in range(5) if k not in survivors]
    assert not_, "the test needs a policy that is ruled out"
    for k, (low, high) in (may | not_).items():
        assert (low, high) == pytest.approx((intervals.low[k], intervals.high[k]))
    assert sorted(ticks(figure, "y")) == sorted(NAMES)
    assert axis_names(figure)[0] == "expected payoff"
    worth = [f"{plays} · {samples:.1f}" for plays, samples in zip(found.plays, found.effective_samples, strict=True)]
    assert beside(figure) == worth


@pytest.mark.parametrize("backend", BOTH)
@pytest.mark.parametrize("baseline", [2, "as it is", np.int64(2)])
def test_the_status_quo_is_a_line(backend, baseline, learner):
    figure = rd.plot.estimates(learner, baseline=baseline, backend=backend)
    assert shown(figure, "as it is (status quo)")[0, 0] == pytest.approx(learner.estimates().value[2])
    assert "estimate" in named(figure)


@pytest.mark.parametrize("backend", BOTH)
def test_policies_without_names_are_numbered_and_what_is_not_known_has_no_dot(backend):
    space = rd.Finite([rd.Uniform(low=0, high=1), rd.Uniform(low=5, high=6)])
    unseen = rd.FollowTheLeader(space, first=0, seed=0)
    unseen.tell(unseen.ask(), 0.5)
    figure = rd.plot.estimates(unseen, baseline=1, backend=backend)
    np.testing.assert_allclose(shown(figure, "estimate"), [(unseen.estimates().value[0], 1.0)])
    assert sorted(ticks(figure, "y")) == ["policy 0", "policy 1"]
    assert "policy 1 (status quo)" not in named(figure)
    assert beside(figure) == ["1 · 1.0", "0 · 0.0"]


@pytest.mark.parametrize("backend", BOTH)
def test_effective_samples_are_beside_plays(backend, learner):
    figure = rd.plot.effective_samples(learner, backend=backend)
    found = learner.estimates()
    np.testing.assert_array_equal(shown(figure, "plays")[:, 0], found.plays)
    np.testing.assert_allclose(shown(figure, "effective samples")[:, 0], found.effective_samples)
    assert (shown(figure, "plays")[:, 1].round() == [4, 3, 2, 1, 0]).all()
    assert limits(figure, "x")[0] == 0
    assert named(figure) == ["plays", "effective samples"]


@pytest.mark.parametrize("backend", BOTH)
def test_an_evaluation_of_logs_is_drawn_likewise(backend, log):
    found = log.evaluate(baseline="old")
    figure = rd.plot.estimates(found, truth={"new": 0.4, "other": 9.0}, backend=backend)
    np.testing.assert_allclose(shown(figure, "estimate")[:, 0], found.self_normalised)
    words = {name: "may be the best" if name in found.contenders else "not the best" for name in found.candidates}
    for k, name in enumerate(found.candidates):
        ends = ends_of(figure, f"95% interval, {words[name]}", 3)[k]
        assert ends == pytest.approx((found.low[k], found.high[k]))
    naive = shown(figure, "naive interval")
    np.testing.assert_allclose(naive[::2, 0], np.clip(found.naive_low, 0, 1))
    np.testing.assert_allclose(naive[1::2, 0], np.clip(found.naive_high, 0, 1))
    assert shown(figure, "old (status quo)")[0, 0] == pytest.approx(found.self_normalised[0])
    np.testing.assert_array_equal(shown(figure, "truth"), [(0.4, 1.0)])
    assert beside(figure) == [f"{samples:.1f}" for samples in found.effective_samples]


def test_figures_of_logs_are_written(log, tmp_path):
    found = log.evaluate(anytime=True)
    draw(found, tmp_path / "new" / "a.png", {"new": 0.4})
    draw_sequence(found.anytime, found.candidates, found.level, tmp_path / "b.svg")
    assert (tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "every row at once" in (tmp_path / "b.svg").read_text()


@pytest.mark.parametrize("backend", BOTH)
def test_of_many_policies_the_best_and_the_baseline_are_drawn(backend):
    space = rd.Finite(rd.Gaussian(mean=np.linspace(0, 4, 300), std=1.0))
    learner = rd.Randomist(space, seed=0)
    for _ in range(60):
        trial = learner.ask()
        learner.tell(trial, float(np.clip(trial.mediator / 4, 0, 1)))
    figure = rd.plot.estimates(learner, baseline=3, backend=backend)
    value = learner.estimates().value
    best = sorted({3, *np.argsort(-value, kind="stable")[:39].tolist()})
    assert [int(text.removeprefix("policy ")) for text in reversed(sorted_by_row(figure))] == best[::-1]
    np.testing.assert_allclose(shown(figure, "estimate")[:, 0], np.clip(value[best], 0, 1))
    assert note(figure) == "40 of 300 policies are drawn, those with the largest estimates"
    samples = rd.plot.effective_samples(learner, backend=backend)
    np.testing.assert_array_equal(
        shown(samples, "plays")[:, 0], learner.estimates().plays[np.sort(np.argsort(-value)[:40])]
    )


def sorted_by_row(figure):
    """The names on the y axis, from the top to the bottom."""
    if isinstance(figure, Figure):
        rows = [(text.get_position()[1], text.get_text()) for text in figure.axes[0].get_yticklabels()]
    else:
        rows = list(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    return [text for _, text in sorted(rows, reverse=True)]


def test_what_cannot_be_drawn_is_refused(learner, log):
    fresh = rd.Randomist(rd.Finite(rd.Gaussian([0.0, 1.0], 1.0)))
    for draw_it in (rd.plot.estimates, rd.plot.effective_samples):
        with pytest.raises(NoDataError, match="nothing has been told"):
            draw_it(fresh)
        for other in (3, None, rd.Auto(dimension=2)):
            with pytest.raises(ParameterError, match="finite set"):
                draw_it(other)
    for baseline in (5, -1, "nobody", True, 2.0):
        with pytest.raises(ParameterError, match=r"baseline must be the number or the name.*cautious"):
            rd.plot.estimates(learner, baseline=baseline)
    with pytest.raises(ParameterError, match="level"):
        rd.plot.estimates(learner, 95)
    with pytest.raises(ParameterError, match="evaluate it anew"):
        rd.plot.estimates(log.evaluate(), 0.9)
    running = rd.Randomist(rd.Finite(rd.Gaussian([0.0, 1.0], 1.0)), payoff_range="running")
    running.tell(running.ask(), 3.0)
    with pytest.raises(ParameterError, match=r"payoff_range=\(low, high\)"):
        rd.plot.estimates(running)
