"""The dashboard: its numbers, and the page in a browser, live and exported, in both themes and at any width."""

from __future__ import annotations

import json
import math
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import randomist as rd
from randomist.study.dashboard import snapshot, static_page
from tests.problems import GAUSSIANS, LINE, RECTANGLE
from tests.study.helpers import play
from tests.study.serving import READ, WORK, serving
from tests.study.test_resume import fill

pytestmark = pytest.mark.xdist_group("dashboard")
CHROMIUM = shutil.which("chromium")
ARGUMENTS = [f"--{name}" for name in ("no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
             "disable-background-networking", "disable-component-update", "disable-sync")]  # fmt: skip
HOSTILE = "<img src=x onerror=alert(1)>"
FINITE_PANELS = ["payoffs", "estimates", "effective", "plays", "missing"]
BOX_PANELS = ["payoffs", "estimates-0", "estimates-1", "plane", "effective", "plays", "missing"]
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")


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


def test_numbers_of_a_study_of_auto(memory):
    for low, high in (([-1.0, 0.0], [1.0, 20.0]), (-1.0, 2.0)):
        study = rd.create_study(f"auto{np.size(low)}", rd.Auto(low=low, high=high, seed=0), storage=memory)
        snapshot(study)
        play(study, 20)
        study.tell(study.ask(), feasible=False)
        shown = snapshot(study)
        json.dumps(shown, allow_nan=False)
        assert shown["counts"]["failed"] == 1
        assert shown["best"] == np.asarray(study.recommend()).tolist()
        slices, d = shown["box"], np.size(low)
        assert (slices["dimension"], len(slices["lines"]), len(slices["played"])) == (d, d, d)
        assert (slices["plane"] is None) == (d == 1)
        for line, side in zip(slices["lines"], np.ravel(high), strict=True):
            assert line["x"][-1] == side
        assert [sum(one["plays"]) for one in slices["played"]] == [20] * d


def test_numbers_of_a_finite_study(url):
    study = rd.load_study("finite", storage=url)
    time.sleep(0.01)
    shown = snapshot(study)
    json.dumps(shown, allow_nan=False)
    counts = {"asked": 43, "told": 40, "failed": 1, "retracted": 0, "pending": 2, "stale": 1, "clipped": 0}
    assert shown["counts"] == counts
    payoffs = [t.payoff for t in study.trials("told")]
    assert shown["payoffs"]["average"][-1] == pytest.approx(np.mean(payoffs), rel=1e-5)
    assert shown["payoffs"]["x"] == list(range(1, 41))
    estimates = study.estimates()
    assert shown["finite"]["value"] == pytest.approx(estimates.value, rel=1e-5)
    assert shown["finite"]["plays"] == estimates.plays.tolist()
    assert shown["finite"]["missing"] == pytest.approx(np.clip(1 - estimates.coverage, 0, 1), abs=1e-5)
    assert [t["state"] for t in shown["pending"]] == ["stale", "asked"]
    worker = {"worker": HOSTILE, "told": 40, "failed": 1, "retracted": 0, "pending": 2, "seen": 0}
    assert shown["workers"][0] | {"seen": 0} == worker
    assert shown["best"] == study.recommend()


def test_numbers_of_a_box(url):
    study = rd.load_study("box", storage=url)
    shown = snapshot(study)["box"]
    assert [line["x"][0] for line in shown["lines"]] == [-1.0, 0.0]
    middle = study.estimate([[shown["lines"][0]["x"][7], study.recommend()[1]]])
    assert shown["lines"][0]["value"][7] == pytest.approx(middle.value[0], rel=1e-3)
    assert sum(shown["played"][1]["plays"]) == 30
    plane = shown["plane"]
    at = study.estimate([[plane["x"][3], plane["y"][20]]])
    assert plane["value"][20][3] == pytest.approx(at.value[0], rel=1e-3)
    assert snapshot(study, (1, 0))["box"]["plane"]["dimensions"] == [1, 0]
    assert snapshot(study, (7, 0))["box"]["plane"]["dimensions"] == [0, 1]
    empty = snapshot(rd.load_study("empty", storage=url))
    assert empty["best"] is None
    assert empty["payoffs"]["x"] == []
    json.dumps(empty, allow_nan=False)


def test_payoffs_are_shown_in_their_own_units(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0, payoff_range=(-10, 30)), storage=url)
    for _ in range(5):
        study.tell(study.ask(), 20.0)
    shown = snapshot(study)["finite"]
    assert shown["value"] == [20.0] * 5
    assert shown["width"] == pytest.approx(study.estimates().width, rel=1e-5)


def test_long_and_wide_studies_are_summed_up(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    wide = rd.Finite.grid(rd.Gaussian(std=0.15), -1, 1, 1000)
    fill(url, "wide", rd.UCB1(wide, seed=0), 3000)
    shown = snapshot(rd.load_study("wide", storage=url))
    assert len(shown["finite"]["decision"]) <= 400
    assert shown["finite"]["of"] == 1000
    p = shown["payoffs"]
    assert len(p["x"]) == 500
    assert p["x"][-1] == 3000
    assert all(low <= mean <= high for low, mean, high in zip(p["least"], p["mean"], p["largest"], strict=True))
    assert len(json.dumps(shown)) < 200_000


def test_an_export_is_one_file_and_inert(url):
    page = static_page(snapshot(rd.load_study("finite", storage=url)))
    assert HOSTILE not in page
    assert "http://" not in page.split("plotly.js v")[0].replace("http://www.w3.org", "")
    assert 'src="' not in page.split("<script>")[0]


class Watched:
    """A page, and what it said and asked for."""

    def __init__(self, browser, width, scheme):
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page.set_default_timeout(20_000)
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text) if message.type != "log" else None)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def drawn(self, panels):
        for panel in panels:
            self.page.wait_for_selector(f"#{panel} svg.main-svg", state="attached")
        assert self.page.evaluate("document.querySelectorAll('.plot').length") == len(panels)

    def fits(self, width):
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_live_in_a_browser(url, browser, tmp_path, width, scheme):
    with serving(url, rate=1e6, burst=1e6) as service:
        watched = Watched(browser, width, scheme)
        page = watched.page
        page.goto(f"{service.address}/#finite")
        page.keyboard.type(READ)  # the field has the focus
        page.keyboard.press("Enter")
        watched.drawn(FINITE_PANELS)
        watched.fits(width)
        assert page.inner_text("#title") == "finite"
        assert page.get_by_role("button", name="Fail").count() == 0, "a token that may read shows no buttons"
        assert HOSTILE in page.inner_text("#workers")
        page.wait_for_selector("#status.live")

        study = rd.load_study("finite", storage=url)
        before = page.inner_text("#counts")
        trial = study.ask()
        study.tell(trial, 0.5)
        started, told = time.monotonic(), f"{study.told}"
        page.wait_for_function("(n) => document.getElementById('counts').innerText.includes(n)", arg=told)
        assert time.monotonic() - started < 2
        assert page.inner_text("#counts") != before
        points = page.evaluate("document.getElementById('payoffs').data[3].x.at(-1)")
        assert str(points) == told

        dark = "document.documentElement.dataset.theme"
        assert page.evaluate(dark) == scheme
        page.get_by_role("button", name="Dark").press("Enter")
        assert page.evaluate(dark) != scheme
        page.screenshot(path=tmp_path / f"finite-{width}-not-{scheme}.png", full_page=True)
        page.select_option("#studies", "box")
        watched.drawn(BOX_PANELS)
        watched.fits(width)
        page.select_option("#studies", "empty")
        page.wait_for_function("() => document.getElementById('title').innerText == 'empty'")
        page.screenshot(path=tmp_path / f"box-{width}.png", full_page=True)
        assert watched.said == []
        assert all(address.startswith((service.address, "data:")) for address in watched.asked)
        page.close()


@needs_browser
def test_a_token_that_may_work_can_fail_a_trial(url, browser):
    with serving(url, rate=1e6, burst=1e6) as service:
        watched = Watched(browser, 1280, "light")
        page = watched.page
        page.goto(f"{service.address}/#finite")
        page.fill("#token", WORK)
        page.press("#token", "Enter")
        study = rd.load_study("finite", storage=url)
        trial = study.ask()
        page.get_by_role("button", name=f"Mark trial {trial.id} as failed").press("Enter")
        page.wait_for_function("(n) => !document.getElementById('pending').innerText.includes(n)", arg=str(trial.id))
        assert study.trials(first=trial.id)[0].state == "failed"
        assert watched.said == []
        page.close()


@needs_browser
def test_the_page_comes_back_when_the_service_does(url, browser):
    with serving(url, public_read=True) as service:
        watched = Watched(browser, 1280, "light")
        watched.page.goto(f"{service.address}/#finite")
        watched.drawn(FINITE_PANELS)
    watched.page.wait_for_selector("#status.away")
    watched.page.close()


@needs_browser
@pytest.mark.parametrize(("name", "panels"), [("finite", FINITE_PANELS), ("box", BOX_PANELS)])
def test_an_export_in_a_browser(url, browser, tmp_path: Path, name, panels):
    file = tmp_path / "study.html"
    file.write_text(static_page(snapshot(rd.load_study(name, storage=url))), encoding="utf-8")
    watched = Watched(browser, 390, "dark")
    watched.page.goto(file.as_uri())
    watched.drawn(panels)
    watched.fits(390)
    assert watched.page.evaluate("document.querySelectorAll('img').length") == 0
    assert watched.said == []
    assert [address for address in watched.asked if not address.startswith("data:")] == [file.as_uri()]
    watched.page.close()


@needs_browser
@pytest.mark.parametrize("n", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_study_is_painted_soon(browser, tmp_path, n):
    url = f"sqlite:///{tmp_path}/study.db"
    fill(url, "long", rd.Randomist(rd.Finite.grid(rd.Gaussian(std=0.15), -1, 1, 20), seed=0), n)
    with serving(url, public_read=True, rate=1e6, burst=1e6) as service:
        watched = Watched(browser, 1280, "light")
        page = watched.page
        page.set_default_timeout(120_000)
        page.goto(f"{service.address}/")  # the service loads the study once
        watched.drawn(FINITE_PANELS)
        started = time.monotonic()
        page.reload()
        page.wait_for_selector("#payoffs .trace")
        seconds = time.monotonic() - started
        assert page.inner_text("#counts dd >> nth=1").replace(",", "") == str(n)
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"{n} trials: first paint {paint:.0f} ms, first chart {1000 * seconds:.0f} ms")
        assert paint < 3000
        assert math.isfinite(seconds)
        assert seconds < 10
        assert watched.said == []
        page.close()
