"""The numbers behind the dashboard: true, and small however long a study is."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError, StudyDataError
from randomist.study.dashboard import slices as _slices
from randomist.study.dashboard import snapshot, static_page
from randomist.study.dashboard.curve import MOST, Curve, Curves
from randomist.study.dashboard.data import estimates, news, overview, trials
from randomist.study.storages import looking
from randomist.study.storages.base import Storage
from tests.problems import GAUSSIANS, LINE, RECTANGLE, payoff
from tests.study.helpers import edit, play
from tests.study.serving import ADMIN, CAR, READ, TOKENS, serving
from tests.study.test_resume import fill

HOSTILE = "<img src=x onerror=alert(1)>"
NAMED = rd.Finite(rd.Gaussian([0, 1, 3], [2, 0.5, 2]), names=["calm", "steady", "bold"])
SERVO = rd.Parameters(kp=rd.Real(0.1, 100, log=True), taps=rd.Integer(1, 12), mode=rd.Choice("a", "b", "c"))


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('dashboard')}/study.db"
    finite = rd.create_study("finite", rd.Randomist(GAUSSIANS, seed=0), storage=url, worker=HOSTILE)
    play(finite, 40)
    finite.ask(lease=0.001)
    finite.ask()
    finite.fail(finite.ask(), HOSTILE)
    play(rd.create_study("box", rd.MCMCRandomist(RECTANGLE, seed=0, density="one-step"), storage=url, worker="rig"), 30)
    rd.create_study("empty", rd.PGPE(LINE, seed=0), storage=url)
    return url


def smooth(study, rounds):
    """Payoffs of which a surface can be sure."""
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, -float((np.ravel(trial.mediator)[0] - 0.3) ** 2) + 0.1 * rng.standard_normal())


# A study's page.


def test_numbers_of_a_finite_study(url):
    study = rd.load_study("finite", storage=url)
    time.sleep(0.01)
    shown = snapshot(study)
    json.dumps(shown, allow_nan=False)
    counts = {"asked": 43, "told": 40, "failed": 1, "retracted": 0, "pending": 2, "stale": 1}
    assert shown["counts"] == counts
    payoffs = [t.payoff for t in study.trials("told")]
    assert shown["payoffs"]["average"][-1] == pytest.approx(np.mean(payoffs), rel=1e-5)
    assert shown["payoffs"]["best"][-1] == pytest.approx(max(payoffs), rel=1e-5)
    assert shown["payoffs"]["x"] == [*range(1, 41), 40]  # the last one failed
    estimates = study.estimates()
    assert shown["finite"]["value"] == pytest.approx(estimates.value, rel=1e-5)
    assert shown["finite"]["plays"] == estimates.plays.tolist()
    assert shown["finite"]["missing"] == pytest.approx(np.clip(1 - estimates.coverage, 0, 1), abs=1e-5)
    worker = {"worker": HOSTILE, "told": 40, "failed": 1, "retracted": 0, "pending": 2, "seen": 0}
    assert shown["workers"][0] | {"seen": 0} == worker
    assert shown["best"]["decision"] == study.recommend()
    assert [t["id"] for t in shown["trials"]] == [*range(42, -1, -1)]
    assert [t["state"] for t in shown["trials"][:4]] == ["failed", "asked", "stale", "told"]
    assert shown["trials"][0]["reason"] == HOSTILE


def test_intervals_are_those_of_the_learner(memory):
    study = rd.create_study("car", rd.Randomist(NAMED, seed=0, payoff_range=(-2, 3)), storage=memory)
    for _ in range(150):
        trial = study.ask()
        study.tell(trial, [-1.5, 0.5, 2.5][trial.decision])
    shown = snapshot(study)
    low, high = study.intervals(0.95)
    assert shown["finite"]["low"] == pytest.approx(low, rel=1e-5)
    assert shown["finite"]["high"] == pytest.approx(high, rel=1e-5)
    assert shown["finite"]["name"] == ["calm", "steady", "bold"]
    assert shown["best"]["name"] == "bold"
    assert (shown["best"]["low"], shown["best"]["high"]) == (shown["finite"]["low"][2], shown["finite"]["high"][2])
    assert shown["finite"]["possible"] == (high >= low.max()).tolist()
    assert shown["finite"]["possible"] != [True] * 3, "one of them is out by now"
    study.retire("bold")
    again = snapshot(study)["finite"]
    assert (again["active"], again["name"][2]) == ([True, True, False], "bold (retired)")
    assert again["possible"][2] is False


def test_a_range_that_is_not_known_gives_no_intervals(memory):
    study = rd.create_study("car", rd.Randomist(NAMED, seed=0, payoff_range="running"), storage=memory)
    play(study, 20)
    shown = snapshot(study)["finite"]
    assert shown["low"] == shown["high"] == [None] * 3
    assert "payoff_range" in shown["without"]
    assert None not in shown["value"]


def test_numbers_of_a_box(url):
    study = rd.load_study("box", storage=url)
    shown = snapshot(study)["box"]
    assert [line["x"][0] for line in shown["lines"]] == [-1.0, 0.0]
    middle = study.estimate([[shown["lines"][0]["x"][7], study.recommend()[1]]])
    assert shown["lines"][0]["value"][7] == pytest.approx(middle.value[0], rel=1e-3)
    assert sum(shown["lines"][1]["plays"]) == 30
    assert shown["lines"][0]["low"] == [None] * len(shown["lines"][0]["x"]), "importance weights give no interval here"
    plane = shown["plane"]
    found = study.estimate([[x, y] for y in plane["y"] for x in plane["x"]])
    seen = (found.coverage >= 0.5) & (found.effective_samples >= 1)
    cells = np.array(plane["value"], float).ravel()
    assert (np.isfinite(cells) == seen).mean() > 0.99, "points have six digits"
    assert 0 < seen.sum() < seen.size
    assert cells[seen & np.isfinite(cells)] == pytest.approx(found.value[seen & np.isfinite(cells)], rel=1e-3)
    assert snapshot(study, (1, 0))["box"]["plane"]["dimensions"] == [1, 0]
    assert snapshot(study, (7, 0))["box"]["plane"]["dimensions"] == [0, 1]
    empty = snapshot(rd.load_study("empty", storage=url))
    assert empty["best"]["decision"] is None
    assert empty["payoffs"]["x"] == []
    json.dumps(empty, allow_nan=False)


def test_numbers_of_a_study_of_auto(memory):
    for low, high in (([-1.0, 0.0], [1.0, 20.0]), (-1.0, 2.0)):
        study = rd.create_study(f"auto{np.size(low)}", rd.Auto(low=low, high=high, seed=1), storage=memory)
        snapshot(study)
        smooth(study, 60)
        study.tell(study.ask(), feasible=False)
        shown = snapshot(study)
        json.dumps(shown, allow_nan=False)
        assert shown["counts"]["failed"] == 1
        assert shown["best"]["decision"] == np.asarray(study.recommend()).tolist()
        slices, d = shown["box"], np.size(low)
        assert (slices["dimension"], len(slices["lines"])) == (d, d)
        assert (slices["plane"] is None) == (d == 1)
        for line, side in zip(slices["lines"], np.ravel(high), strict=True):
            assert line["x"][-1] == side
        assert [sum(one["plays"]) for one in slices["lines"]] == [60] * d
        interval = study.interval()
        assert interval.supported
        shown = [shown["best"][key] for key in ("value", "low", "high")]
        assert shown == pytest.approx([interval.mean, interval.low, interval.high], rel=1e-5)


def test_a_surface_without_noise_is_seen():
    learner = rd.Auto(low=[0.0, 0.0], high=1.0, seed=1)
    for _ in range(40):
        trial = learner.ask()
        learner.tell(trial, -float((trial.mediator[0] - 0.3) ** 2))
    points = np.array([[0.2, 0.8], [0.5, 0.5]])
    assert (learner.estimate(points).effective_samples < 0.01).all()  # between samples, known by these alone
    assert _slices._looks(learner, points, [2])[0]["seen"] == [True, True]


def test_intervals_along_slices_are_those_of_single_points(memory):
    learner = rd.Auto(low=[-1.0, 0.0], high=[1.0, 20.0], seed=1)
    smooth(learner, 60)
    points = np.array([learner.recommend(), [0.1, 9.0], [-1.0, 20.0]])
    estimates, low, high = learner.bands(points)
    assert estimates.value == pytest.approx(learner.estimate(points).value)
    first = learner.interval(points[0])
    assert (low[0], high[0]) == pytest.approx((first.low, first.high), rel=1e-12)
    assert np.isnan(low[2])
    assert np.isnan(high[2])
    assert not learner.interval(points[2]).supported
    few = rd.Auto(low=[-1.0, 0.0], high=[1.0, 20.0], seed=0)
    for told in (0, 1):
        play(few, told)
        assert np.isnan(few.bands(points)[1]).all()


def test_parameters_have_their_own_axes(memory):
    study = rd.create_study("servo", rd.Auto(SERVO, seed=0), storage=memory)
    for _ in range(40):
        trial = study.ask()
        p = trial.parameters
        study.tell(trial, -(math.log10(p["kp"] / 4) ** 2) + (p["mode"] == "b") - 0.1 * abs(p["taps"] - 5))
    shown = snapshot(study)["box"]
    kp, taps, mode = shown["lines"]
    assert shown["log"] == [True, False, False]
    assert kp["x"] == sorted(kp["x"])
    assert (kp["x"][0], kp["x"][-1]) == (0.1, 100)
    assert taps["x"] == [*range(1, 13)]
    assert mode["x"] == ["a", "b", "c"]
    assert [sum(line["plays"]) for line in shown["lines"]] == [40] * 3
    chosen = [SERVO.named(d[:-1])["mode"] for d in study.learner.record.decisions]
    assert mode["plays"] == [chosen.count(option) for option in "abc"]
    counts = [SERVO.named(d[:-1])["taps"] for d in study.learner.record.decisions]
    assert taps["plays"] == [counts.count(k) for k in range(1, 13)]
    other = snapshot(study, (0, 2))["box"]["plane"]
    assert (other["dimensions"], other["y"]) == ([0, 2], ["a", "b", "c"])
    rows = trials(study.latest(limit=3)[0], study.space)
    assert rows[0]["parameters"] == study.trials(first=39)[0].parameters


def test_rows_of_the_table_are_named(memory):
    study = rd.create_study("car", rd.Randomist(NAMED, seed=0), storage=memory)
    play(study, 5)
    for row, trial in zip(snapshot(study)["trials"], study.trials()[::-1], strict=True):
        assert row["name"] == NAMED.names[trial.decision]
        assert (row["id"], row["payoff"], row["state"]) == (trial.id, trial.payoff, "told")


def test_payoffs_are_shown_in_their_own_units(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0, payoff_range=(-10, 30)), storage=url)
    for _ in range(5):
        study.tell(study.ask(), 20.0)
    shown = snapshot(study)["finite"]
    assert shown["value"] == [20.0] * 5
    assert shown["high"] == pytest.approx(study.intervals().high, rel=1e-5)
    assert max(shown["high"]) > 20


def test_long_and_wide_studies_are_summed_up(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    wide = rd.Finite.grid(rd.Gaussian(std=0.15), -1, 1, 1000)
    fill(url, "wide", rd.UCB1(wide, seed=0), 3000)
    shown = snapshot(rd.load_study("wide", storage=url))
    assert len(shown["finite"]["decision"]) <= 400
    assert shown["finite"]["of"] == 1000
    p = shown["payoffs"]
    assert 256 < len(p["x"]) <= MOST
    assert p["x"][-1] == 3000
    assert all(low <= mean <= high for low, mean, high in zip(p["least"], p["mean"], p["largest"], strict=True))
    assert len(json.dumps(shown)) < 250_000


def test_an_export_is_one_file_and_inert(url):
    page = static_page(snapshot(rd.load_study("finite", storage=url)))
    assert HOSTILE not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert 'src="' not in page
    assert len(page) < 200_000


# Payoffs over time.


def checked(curve, study):
    """The curve of a study, which is what its rows say."""
    counters = study.counters
    shown = curve.columns(counters)
    rows = sorted((t for t in study.trials() if t.closing is not None), key=lambda t: t.closing)
    size, told = shown["size"], [t.payoff if t.state == "told" else None for t in rows]
    parts = [told[i : i + size] for i in range(0, len(told), size)]
    sums = [[x for x in part if x is not None] for part in parts]
    so_far = [[x for part in sums[: i + 1] for x in part] for i in range(len(sums))]
    assert shown["x"] == [len(part) for part in so_far]
    for name, of in (("mean", np.mean), ("least", min), ("largest", max)):
        assert shown[name] == [None if not part else pytest.approx(of(part), rel=1e-5) for part in sums], name
    assert shown["average"] == [None if not part else pytest.approx(np.mean(part), rel=1e-5) for part in so_far]
    assert shown["best"] == [None if not part else pytest.approx(max(part), rel=1e-5) for part in so_far]
    ends = [max(t.closed_at for t in rows[i : i + size]) for i in range(0, len(rows), size)]
    assert shown["at"] == pytest.approx(ends, abs=2e-3)
    return shown


def test_a_curve_follows_what_is_told_failed_and_taken_back(place, monkeypatch):
    monkeypatch.setattr("randomist.study.dashboard.curve.MOST", 8)
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=place)
    kept, rng = Curve(study.storage, study.record.id), np.random.default_rng(0)
    assert kept.columns(study.counters)["x"] == []
    study.fail(study.ask(), "first of all")
    assert checked(kept, study)["mean"] == [None]
    for _ in range(12):
        for trial in study.ask(3)[::-1]:
            if rng.random() < 0.2:
                study.fail(trial, "no")
            else:
                study.tell(trial, payoff(trial))
        fresh = checked(Curve(study.storage, study.record.id), study)
        assert checked(kept, study) == fresh
    assert fresh["size"] == 8
    study.retract(next(t for t in study.trials("told")), "wrong units")
    assert checked(kept, study) == checked(Curve(study.storage, study.record.id), study)


def test_a_curve_that_is_known_sends_its_end_only(sqlite):
    fill(sqlite, "long", rd.Randomist(GAUSSIANS, seed=0), 3000)
    study = rd.load_study("long", storage=sqlite)
    curve = Curve(study.storage, study.record.id)
    before = curve.columns(study.counters)
    study.storage.buckets = lambda *a: pytest.fail("nothing happened")  # type: ignore[method-assign]
    assert curve.columns(study.counters) == before
    del study.storage.buckets
    study.tell(study.ask(), 0.5)
    last = len(before["x"]) - 1
    tail = curve.columns(study.counters, before["size"], last)
    assert tail["first"] == last
    assert len(tail["x"]) <= 2
    assert {key: before[key][:last] + tail[key] for key in before if key not in ("size", "first")} == {
        key: value for key, value in curve.columns(study.counters).items() if key not in ("size", "first")
    }
    assert curve.columns(study.counters, 1, last)["first"] == 0, "of another size, all of it"


def test_news_are_small_and_ask_no_learner(sqlite, monkeypatch):
    fill(sqlite, "long", rd.Randomist(GAUSSIANS, seed=0), 3000)
    study = rd.load_study("long", storage=sqlite)
    curve = Curve(study.storage, study.record.id)
    first = news(study, curve)["payoffs"]
    monkeypatch.setattr(rd.Study, "look", lambda *_: pytest.fail("a learner was asked"))
    found = news(study, curve, first["size"], len(first["x"]) - 1)
    assert found["counts"]["told"] == 3000
    assert len(json.dumps(found)) < 600


@pytest.mark.parametrize("kind", ["finite", "auto"])
def test_what_a_page_costs_is_bounded(sqlite, kind):
    """See `python -m benchmarks.studies dashboard` for 10^5 trials."""
    from benchmarks.studies import fill_ours

    learner = rd.Randomist(GAUSSIANS, seed=0) if kind == "finite" else rd.Auto(low=[-1, 0], high=[1, 20], seed=0)
    fill_ours(sqlite, 20_000, learner)
    study = rd.load_study("bench", storage=sqlite)
    snapshot(study)  # compiled
    again = rd.load_study("bench", storage=sqlite)
    again.learner  # noqa: B018 (loads it)
    started = time.process_time()
    shown = snapshot(again)
    assert time.process_time() - started < 1.0
    assert len(json.dumps(shown)) < 150_000


# Tables from the end.


def test_the_last_trials_page_by_page(place):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=place)
    rng = np.random.default_rng(1)
    for i in range(30):
        trial = study.ask(worker=f"w{i % 3}")
        if i % 4 == 1:
            study.fail(trial, f"reason {i}")
        elif rng.random() < 0.8:
            study.tell(trial, 0.5)
    study.retract(study.trials("told")[2], "no")
    every = study.trials()
    for states in (("told",), ("failed",), ("asked", "stale"), ("retracted",), ("told", "failed")):
        for worker in (None, "w1", "nobody"):
            expected = [t.id for t in every[::-1] if t.state in states and worker in (None, t.worker)]
            found, before = [], 10**6
            while before is not None:
                page, before = study.latest(states, before=before, limit=4, worker=worker)
                assert len(page) <= 4
                found += [t.id for t in page]
            assert found == expected, (states, worker)
    assert study.latest(limit=100) == (every[::-1], None)
    for wrong in ({"states": ("lost",)}, {"limit": 0}, {"before": -1}):
        with pytest.raises(ParameterError):
            study.latest(**wrong)


def test_a_look_goes_through_so_many_trials(sqlite, monkeypatch):
    monkeypatch.setattr("randomist.study.looking.WINDOW", 10)
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    study.fail(study.ask(), "the first one")
    play(study, 40)
    pages, before = [], None
    while not pages or before is not None:
        page, before = study.latest("failed", before=before, limit=5)
        pages.append([t.id for t in page])
    assert pages == [[], [], [], [], [0]]


def test_any_storage_can_be_looked_at(memory, place):
    """What a storage does by itself is what its rows say."""
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=place)
    other = rd.create_study("bus", rd.Randomist(GAUSSIANS, seed=0), storage=place)
    other.archive()
    play(study, 9)
    study.fail(study.ask(worker="w1"), "no")
    study.retract(3, "no")
    study.ask(3)
    storage, id_ = study.storage, study.record.id
    assert storage.lines() == looking.lines(storage)
    assert [line.archived_at is None for line in storage.lines()] == [True, False]
    for size, first in ((1, 0), (1, 7), (4, 0), (4, 1), (100, 0)):
        ours, plain = storage.buckets(id_, size, first), looking.buckets(storage, id_, size, first)
        assert [b[:3] for b in ours] == [b[:3] for b in plain]
        for one, two in zip(ours, plain, strict=True):
            assert one[3:] == pytest.approx(two[3:])
    for first in (0, 5, 12, 99):
        assert storage.workers_since(id_, first) == looking.workers_since(storage, id_, first)
    assert storage.workers_since(id_, 0) == storage.workers(id_)
    page = {"first": 2, "before": 11, "limit": 4, "states": ("told", "failed"), "worker": None}
    assert storage.latest(id_, **page).rows == looking.latest(storage, id_, *page.values()).rows
    assert isinstance(storage, Storage)


# All studies.


def test_all_studies_the_latest_first(place):
    studies = {name: rd.create_study(name, rd.UCB1(NAMED, seed=0), storage=place) for name in ("a", "b", "c")}
    for name in ("b", "a"):
        play(studies[name], 3)
        time.sleep(0.01)
    studies["b"].fail(studies["b"].ask(), "no")
    studies["c"].archive()
    storage = studies["a"].storage
    curves = Curves(storage)
    found = overview(storage, curves, lambda name: True)
    assert [line["name"] for line in found["studies"]] == ["b", "a", "c"]
    b, _, c = found["studies"]
    payoffs = [t.payoff for t in studies["b"].trials("told")]
    assert b["spark"] == pytest.approx(payoffs, rel=1e-5)
    assert (b["best"], b["average"]) == pytest.approx((max(payoffs), np.mean(payoffs)), rel=1e-5)
    assert b["counts"] == {"asked": 4, "told": 3, "failed": 1, "retracted": 0, "pending": 0}
    assert (b["learner"], b["archived"], c["archived"]) == ("UCB1", False, True)
    assert (c["spark"], c["best"], c["average"]) == ([], None, None)
    assert b["active_at"] == studies["b"].trials("failed")[0].closed_at
    assert [line["name"] for line in overview(storage, curves, lambda name: name != "b")["studies"]] == ["a", "c"]
    page = overview(storage, curves, lambda name: True, first=1, limit=1)
    assert ([line["name"] for line in page["studies"]], page["next"], page["of"]) == (["a"], 2, 3)
    play(studies["c"].unarchive() or studies["c"], 1)
    news = overview(storage, curves, lambda name: True, after=b["active_at"] + 1e-4)
    assert [line["name"] for line in news["studies"]] == ["c"]
    assert json.dumps(news, allow_nan=False)


def test_a_spark_line_is_short(sqlite):
    fill(sqlite, "long", rd.Randomist(GAUSSIANS, seed=0), 3000)
    study = rd.load_study("long", storage=sqlite)
    line = overview(study.storage, Curves(study.storage), lambda name: True)["studies"][0]
    assert len(line["spark"]) == 48
    payoffs = [t.payoff for t in study.trials()]
    assert line["average"] == pytest.approx(np.mean(payoffs), rel=1e-5)
    assert min(payoffs) < min(line["spark"]) < max(line["spark"]) < max(payoffs)


def test_one_bad_row_does_not_hide_the_other_studies(sqlite):
    play(rd.create_study("good", rd.UCB1(NAMED, seed=0), storage=sqlite), 3)
    bad = rd.create_study("bad", rd.UCB1(NAMED, seed=0), storage=sqlite)
    play(bad, 3)
    edit(sqlite, "update randomist_trials set payoff = 'lots' where study = 2 and number = 1")
    lines = {line["name"]: line for line in overview(bad.storage, Curves(bad.storage), lambda name: True)["studies"]}
    assert "were changed" in lines["bad"]["problem"]
    assert (lines["good"]["problem"], len(lines["good"]["spark"])) == (None, 3)
    with pytest.raises(StudyDataError):
        snapshot(bad)


# Over HTTP.


def test_endpoints(sqlite, monkeypatch):
    bound = "b" * 20
    monkeypatch.setattr("tests.study.serving.TOKENS", TOKENS | {bound: "read studies=bus"})
    study = rd.create_study("car", rd.Randomist(NAMED, seed=0), storage=sqlite)
    play(study, 20)
    study.fail(study.ask(worker="w1"), "broke")
    rd.create_study("bus", rd.UCB1(NAMED, seed=0), storage=sqlite)
    with serving(sqlite) as service:

        def get(path, token=READ):
            return service.request("GET", f"/api/v1/{path}", token=token)[:2]

        status, found = get("overview")
        assert (status, [line["name"] for line in found["studies"]]) == (200, ["bus", "car"])
        assert [line["name"] for line in get("overview", bound)[1]["studies"]] == ["bus"]
        assert get("overview", bound)[1]["of"] == 1, "how many others there are is not said"
        for path in ("overview", "studies/car/dashboard/news"):
            assert get(path, None)[0] == 401
        for path in ("news", "estimates", "trials"):
            assert get(f"studies/car/dashboard/{path}", bound)[0] == 403
        whole = get("studies/car/dashboard")[1]
        assert {*whole} >= {*get("studies/car/dashboard/news")[1], *get("studies/car/dashboard/estimates")[1]}
        page = get("studies/car/dashboard/trials?state=failed&worker=w1")[1]
        assert [(t["id"], t["reason"], t["name"] in NAMED.names) for t in page["trials"]] == [(20, "broke", True)]
        assert page["next"] is None
        first = get("studies/car/dashboard/trials?limit=15")[1]
        rest = get(f"studies/car/dashboard/trials?limit=15&before={first['next']}")[1]
        assert [t["id"] for t in first["trials"] + rest["trials"]] == [*range(20, -1, -1)]
        for wrong in (
            "trials?state=lost",
            "trials?limit=0",
            "trials?before=-1",
            "news?size=x",
            "estimates?dimensions=0",
        ):
            assert get(f"studies/car/dashboard/{wrong}")[0] == 422, wrong
        assert get("studies/nobody/dashboard/news", ADMIN)[0] == 404
        assert service.request("POST", f"{CAR}/dashboard/news", {}, ADMIN)[0] == 405


def test_estimates_are_of_the_moment(memory):
    study = rd.create_study("car", rd.Randomist(NAMED, seed=0), storage=memory)
    play(study, 5)
    assert estimates(study)["known"] == 5
    play(study, 2)
    assert estimates(study)["known"] == 7
