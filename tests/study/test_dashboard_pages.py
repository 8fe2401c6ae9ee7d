"""The dashboard in a browser: live and exported, in both themes, at any width, by keyboard, and checked with axe."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path

import pytest

import randomist as rd
from randomist.study.dashboard import snapshot, static_page
from tests.problems import GAUSSIANS, LINE, RECTANGLE
from tests.study.helpers import play
from tests.study.serving import READ, WORK, serving
from tests.study.test_resume import fill

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.xdist_group("dashboard"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium"),
]
ARGUMENTS = [f"--{name}" for name in ("no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
             "disable-background-networking", "disable-component-update", "disable-sync")]  # fmt: skip
HOSTILE = "<img src=x onerror=alert(1)>"
SERVO = rd.Parameters(kp=rd.Real(0.1, 100, log=True), taps=rd.Integer(1, 12), mode=rd.Choice("plain", "fast", "safe"))
NAMES = ["the old one", "the new one", HOSTILE]
PAGES = ["", "finite", "named", "likelihoods", "box", "servo", "empty", "grid"]
WIDE = """(width) => [...document.querySelectorAll('body *')].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width > 1 && box.right > width + 1;
}).map((one) => one.outerHTML.slice(0, 80))"""
OVERLAPS = """() => {
    const texts = ['h1', 'h2', 'h3', 'dt', 'dd', 'th', 'td', 'p', 'label', 'button'].map((tag) => 'main ' + tag).join();
    const leaf = (one) => one.textContent.trim() && !one.querySelector('h2, p, button, label, dl');
    const boxes = [...document.querySelectorAll(texts)].filter((one) => one.offsetParent && leaf(one))
        .filter((one) => !one.closest('.unseen, thead'))
        .map((one) => [one, one.getBoundingClientRect()]).filter(([, box]) => box.width > 1);
    const over = [];
    for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < Math.min(i + 40, boxes.length); j++) {
        const [one, a] = boxes[i], [other, b] = boxes[j];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 2 && down > 2 && !one.contains(other)) over.push([one.textContent, other.textContent]);
    }
    return over;
}"""
RANGES = """() => [...document.querySelectorAll('.range')].map((one) => ['i', 'b'].map((part) => {
    const box = one.querySelector(part).getBoundingClientRect();
    return [box.left, box.right];
}))"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('pages')}/study.db"
    finite = rd.create_study("finite", rd.Randomist(GAUSSIANS, seed=0), storage=url, worker=HOSTILE)
    play(finite, 40)
    finite.ask(lease=0.001)
    finite.ask()
    finite.fail(finite.ask(worker="rig"), HOSTILE)
    named = rd.create_study("named", rd.Realist(rd.Finite(rd.Gaussian([0, 1, 3], 1), names=NAMES), seed=0), storage=url)
    play(named, 30)
    ads = rd.create_study("likelihoods", rd.Randomist(rd.Finite.likelihoods(3, names=NAMES), seed=0), storage=url)
    for i in range(20):
        done = {name: math.log(0.2 + 0.1 * ((i + k) % 3)) for k, name in enumerate(NAMES)}
        ads.tell(ads.ask(), float(i % 3 == 0), log_likelihoods=done)
    play(rd.create_study("box", rd.MCMCRandomist(RECTANGLE, seed=0, density="one-step"), storage=url, worker="rig"), 30)
    servo = rd.create_study("servo", rd.Auto(SERVO, seed=1), storage=url, worker="rig")
    for i in range(40):
        trial = servo.ask()
        if i % 9 == 4:
            servo.fail(trial, "RuntimeError: overcurrent on axis 2")
        else:
            servo.tell(trial, -(math.log10(trial.parameters["kp"] / 4) ** 2))
    rd.create_study("empty", rd.PGPE(LINE, seed=0), storage=url)
    play(
        rd.create_study("grid", rd.Randomist(rd.Finite.grid(rd.Gaussian(std=0.15), -1, 1, 25), seed=0), storage=url), 9
    )
    return url


@pytest.fixture(scope="module")
def service(url):
    with serving(url, rate=1e6, burst=1e6) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


class Watched:
    """A page, and what it said and asked for."""

    def __init__(self, browser, width=1280, scheme="light"):
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page.set_default_timeout(20_000)
        self.width = width
        self.said, self.asked = [], []
        self.refusal = None  # what the browser may say, at any time: it logs each answer that is an error
        self.page.on("console", self.hears)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def hears(self, message):
        if message.type != "log" and (self.refusal is None or self.refusal not in message.text):
            self.said.append(message.text)

    def login(self, service, study="", token=READ):
        self.page.goto(f"{service.address}/#{study}")
        self.page.wait_for_selector("#login:not([hidden])")
        self.page.keyboard.type(token)  # the field has the focus
        self.page.keyboard.press("Enter")
        self.shows(study)

    def open(self, study):
        self.page.evaluate("(name) => { location.hash = name; }", study)
        self.shows(study)

    def shows(self, study):
        page = self.page
        if not study:
            page.wait_for_selector("#overview:not([hidden])")
            return
        page.wait_for_selector("#study:not([hidden])")
        page.wait_for_function("(name) => document.getElementById('title').innerText == name", arg=study)
        page.wait_for_selector("#payoffs svg")
        page.wait_for_selector("#trials tbody tr")

    def fits(self):
        """Nothing is wider than the page, and no text is cut off or lies upon another."""
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width
        wide = self.page.evaluate(WIDE, self.width)
        assert wide == []
        overlaps = self.page.evaluate(OVERLAPS)
        assert overlaps == []


@pytest.fixture
def watched(browser, request):
    width, scheme = getattr(request, "param", (1280, "light"))
    one = Watched(browser, width, scheme)
    yield one
    one.page.close()
    assert one.said == []


def test_the_login_says_where_the_token_is(service, watched):
    page = watched.page
    page.goto(f"{service.address}/")
    page.wait_for_selector("#login:not([hidden])")
    said = page.inner_text("#login")
    assert all(word in said for word in ("randomist serve", "token for read:", "--tokens", "RANDOMIST_TOKENS"))
    assert page.evaluate("document.activeElement.id") == "token"
    page.keyboard.type("wrong" * 5)
    watched.refusal = "status of 401"
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.getElementById('status').innerText == 'no access'")
    assert page.is_visible("#login")


@pytest.mark.parametrize(
    "watched",
    [
        (390, "dark"),
        (1280, "light"),
        pytest.param((390, "light"), marks=pytest.mark.slow),  # each width and each theme was seen by then
        pytest.param((1280, "dark"), marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_every_page_passes_axe_and_fits(service, watched):
    pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python: pip install it")
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()

    def check(name):
        watched.fits()
        wrong = [
            one for one in axe.run(watched.page).response["violations"] if one["impact"] in ("serious", "critical")
        ]
        assert [(name, one["id"], one["nodes"][0]["html"][:200]) for one in wrong] == []

    watched.page.goto(f"{service.address}/")
    watched.page.wait_for_selector("#login:not([hidden])")
    check("login")
    watched.login(service, "", WORK)
    for name in PAGES:
        watched.open(name)
        for details in watched.page.query_selector_all("summary")[:2]:
            details.click()
        check(name)


def test_all_studies(url, service, watched):
    watched.login(service)
    page = watched.page
    assert page.locator("#studies > li").count() == len(PAGES) - 1
    line = page.locator("#studies > li", has_text="servo")
    assert line.locator("svg.spark path").get_attribute("d").count("L") > 10
    said = line.inner_text()
    assert "Auto" in said
    assert "36" in said.split("told")[1][:6]
    assert line.locator("dd.bad").inner_text() == "4"
    empty = page.locator("#studies > li", has_text="empty")
    assert "nothing told yet" in empty.inner_text()

    watched.asked.clear()
    study = rd.load_study("empty", storage=url)
    study.tell(study.ask(), 0.25)  # comes in by itself, alone, and goes to the top
    page.wait_for_function("() => document.querySelector('#studies > li').innerText.includes('empty')", timeout=15_000)
    assert "0.25" in page.inner_text("#studies > li >> nth=0")
    assert any("after=1" in address for address in watched.asked)

    page.keyboard.press("Tab")  # from the top of the page: skip, theme, the first study
    for _ in range(6):
        if page.evaluate("document.activeElement.closest('#studies') !== null"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    watched.shows("empty")
    page.get_by_role("link", name="All studies").press("Enter")
    watched.shows("")


def test_finding_a_study(service, watched):
    watched.login(service)
    page = watched.page
    page.evaluate("counted = 8; overview()")  # as if there were more
    page.fill("#find", "SER")
    assert page.locator("#studies > li").count() == 1


@pytest.mark.parametrize("watched", [(390, "dark"), (1280, "light")], indirect=True)
def test_live(url, service, watched):
    page = watched.page
    watched.login(service, "finite")
    assert page.get_by_role("button", name="Fail").count() == 0, "a token that may read shows no buttons"
    assert HOSTILE in page.inner_text("#workers")
    page.wait_for_selector("#status.live")
    study = rd.load_study("finite", storage=url)
    before = page.inner_text("#counts")
    watched.asked.clear()
    trial = study.ask(worker="late")
    study.tell(trial, 0.5)
    started, told = time.monotonic(), f"{study.told}"
    page.wait_for_function("(n) => document.querySelector('#counts dd').innerText == n", arg=told)
    assert time.monotonic() - started < 2
    assert page.inner_text("#counts") != before
    assert str(page.evaluate("shown.payoffs.x.at(-1)")) == told
    page.wait_for_function("(id) => document.querySelector('#trials tbody th').innerText == id", arg=str(trial.id))
    known = {"arg": study.counters.closed, "timeout": 60_000}  # a niced process has them, and 60 s for it
    page.wait_for_function("(n) => shown.known == n", **known)
    assert "late" in page.inner_text("#workers")
    whole = [address for address in watched.asked if address.split("?")[0].endswith("/dashboard")]
    assert whole == [], "all of it is fetched once"
    assert any("first=" in address for address in watched.asked)

    dark = "document.documentElement.dataset.theme"
    scheme = page.evaluate(dark)
    page.get_by_role("button", name="Dark").press("Enter")
    assert page.evaluate(dark) != scheme
    assert all(address.startswith((service.address, "data:")) for address in watched.asked)


def test_an_update_is_small(url, service, watched):
    """However long a study is."""
    fill(url, "long", rd.Randomist(GAUSSIANS, seed=0), 5000)
    watched.login(service, "long")
    page, sizes = watched.page, {}

    def heard(answer):
        if "/news" in answer.url:
            sizes[answer.url] = len(answer.body())

    page.on("response", heard)
    study = rd.load_study("long", storage=url)
    study.tell(study.ask(), 0.5)
    page.wait_for_function("() => document.querySelector('#counts dd').innerText == '5,001'")
    page.wait_for_timeout(200)
    assert sizes
    assert max(sizes.values()) < 1000, sizes
    assert page.evaluate("shown.payoffs.x.length") > 256


def test_what_changed_since_the_last_look(url, service, browser):
    context = browser.new_context()
    page = context.new_page()
    watched = Watched.__new__(Watched)
    watched.page, watched.said, watched.asked, watched.width = page, [], [], 1280
    page.set_default_timeout(20_000)
    watched.login(service, "named")
    assert page.is_hidden("#since"), "it is the first look"
    watched.open("")
    study = rd.load_study("named", storage=url)
    best = study.estimates().value.max()
    play(study, 3)
    study.tell(study.ask(), 1.0)
    study.fail(study.ask(), "no")
    page.reload()
    watched.shows("")
    assert "+4 since your last look" in page.locator("#studies > li", has_text="named").inner_text()
    watched.open("named")
    said = page.inner_text("#since")
    assert "4 told; 1 failed" in said
    assert math.isfinite(best)
    watched.open("")
    watched.open("named")
    assert "nothing new" in page.inner_text("#since")
    context.close()


def test_the_table_of_trials(url, service, watched):
    watched.login(service, "servo")
    page = watched.page
    heads = page.locator("#trials thead th").all_inner_texts()
    assert heads[:6] == ["trial", "state", "payoff", "kp", "taps", "mode"]
    numbers = page.locator("#trials tbody th")
    assert numbers.all_inner_texts() == [str(i) for i in range(39, 24, -1)]
    page.get_by_role("button", name="Older").press("Enter")
    page.wait_for_function("() => document.querySelector('#trials tbody th').innerText == '24'")
    page.get_by_role("button", name="Older").press("Enter")
    page.wait_for_function("() => document.querySelector('#trials tbody th').innerText == '9'")
    assert page.is_disabled("#older")
    page.get_by_role("button", name="Newer").press("Enter")
    page.wait_for_function("() => document.querySelector('#trials tbody th').innerText == '24'")
    page.select_option("#state", "failed")
    page.wait_for_function("() => document.querySelectorAll('#trials tbody th').length == 4")
    assert "RuntimeError: overcurrent on axis 2" in page.inner_text("#trials")
    page.select_option("#worker", "rig")
    page.select_option("#state", "retracted")
    page.wait_for_function("() => document.getElementById('trials').innerText.includes('No trial is like this')")
    watched.open("finite")
    assert page.locator("#state").input_value() == "", "another study begins anew"
    page.select_option("#state", "stale")
    page.wait_for_function("() => document.querySelectorAll('#trials tbody th').length == 1")
    page.select_option("#state", "")
    page.select_option("#worker", "rig")
    page.wait_for_function("() => document.querySelectorAll('#trials tbody th').length == 1")
    assert HOSTILE in page.inner_text("#trials")


LATE = """(part) => {
    const plain = window.fetch;
    window.late = 0;
    window.fetch = async (address, options) => {
        const answer = await plain(address, options);
        if (!address.includes(part)) return answer;
        await new Promise((done) => setTimeout(done, 1000));
        setTimeout(() => { window.late += 1; }, 100);
        return answer;
    };
}"""


def test_a_late_answer_does_not_replace_what_was_wished_for_since(service, watched):
    """Whoever changes a filter, or the plane, again before an answer came sees what was chosen last."""
    watched.login(service, "servo")
    page = watched.page
    page.evaluate(LATE, "state=failed")
    page.select_option("#state", "failed")  # its answer comes last
    page.select_option("#state", "retracted")
    page.wait_for_function("() => window.late == 1")
    assert "No trial is like this" in page.inner_text("#trials")
    page.evaluate(LATE, "dimensions=0,2")
    page.select_option("#choose-plane", "0,2")
    page.select_option("#choose-plane", "1,2")
    page.wait_for_function("() => window.late == 1")
    assert page.evaluate("shown.box.plane.dimensions") == [1, 2]
    assert watched.said == []


def test_policies_with_their_names_and_intervals(url, service, watched):
    watched.login(service, "likelihoods")
    page, study = watched.page, rd.load_study("likelihoods", storage=url)
    rows = page.locator("#policies tbody tr")
    assert rows.count() == 3
    best = study.recommend()
    assert rows.nth(0).locator("th").inner_text().startswith(NAMES[best])
    assert page.inner_text("#best .choice") == NAMES[best]
    low, high = (float(end[best]) for end in study.intervals())
    assert f"between {low:.4g} and {high:.4g} (95%)" in page.inner_text("#best")
    places = page.evaluate(RANGES)
    for (left, right), (dot, end) in places:
        assert left - 5 <= dot <= end <= right + 5, "an estimate lies in its interval"
    watched.open("grid")
    assert page.locator("#policies tbody tr").count() == 15
    page.get_by_role("button", name="Show all 25").press("Enter")
    assert page.locator("#policies tbody tr").count() == 25
    page.wait_for_selector("#grid svg")


def test_slices_and_a_heat_map(url, service, watched):
    watched.login(service, "servo")
    page = watched.page
    assert page.locator("#slices h3").all_inner_texts() == ["kp (log scale)", "taps", "mode"]
    labels = page.locator("#slice-0 text").all_text_contents()
    assert {"0.1", "1", "10", "100"} <= set(labels)
    plane = page.evaluate("shown.box.plane.value.flat()")
    cells = page.locator("#plane .cell").count()
    assert cells == sum(value is not None for value in plane)
    assert 0 < cells < len(plane), "what was not seen is grey"
    page.focus("#plane")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert page.inner_text("#plane + .readout").startswith("kp = ")
    watched.asked.clear()
    page.select_option("#choose-plane", "0,2")
    page.wait_for_function("() => shown.box.plane.dimensions[1] == 2")
    assert "mode (up)" in page.inner_text("#plane-hint")
    assert not any("/dashboard?" in address for address in watched.asked)
    watched.open("box")
    page.wait_for_function("() => shown.box.dimension == 2")
    assert page.locator("#choose-plane").count() == 0
    assert "This learner gives no interval" in page.inner_text("#best")


def test_charts_are_read_by_keyboard_and_as_tables(service, watched):
    watched.login(service, "finite")
    page = watched.page
    page.focus("#payoffs")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    first = page.inner_text("#payoffs + .readout")
    assert first.startswith("after 1 tells")
    assert page.get_attribute("#payoffs + .readout", "aria-live") == "polite"
    assert "Payoffs of 4" in page.get_attribute("#payoffs", "aria-label")
    page.hover("#payoffs")
    assert page.inner_text("#payoffs + .readout") != first
    page.click("#payoffs-numbers summary")
    page.wait_for_selector("#payoffs-numbers tbody tr")
    assert page.locator("#payoffs-numbers tbody tr").count() >= 20
    page.select_option("#against", "time")
    page.wait_for_selector("#payoffs svg")
    page.keyboard.press("Tab")


def test_a_token_that_may_work_can_fail_a_trial(url, service, watched):
    watched.login(service, "finite", WORK)
    page, study = watched.page, rd.load_study("finite", storage=url)
    trial = study.ask()
    page.get_by_role("button", name=f"Mark trial {trial.id} as failed").press("Enter")
    page.wait_for_function("() => document.querySelector('#trials tbody td').innerText == 'failed'")
    assert study.trials(first=trial.id)[0].state == "failed"
    assert page.get_by_role("button", name=f"Mark trial {trial.id} as failed").count() == 0


def test_a_study_that_is_not_there(service, watched):
    watched.login(service)
    watched.refusal = "status of 404"
    watched.page.evaluate("location.hash = 'nobody'")
    watched.page.wait_for_selector("#problem:not([hidden])")
    assert "no study 'nobody'" in watched.page.inner_text("#problem")
    watched.open("finite")
    assert watched.page.is_hidden("#problem")


def test_the_page_comes_back_when_the_service_does(url, browser):
    with serving(url, public_read=True) as service:
        watched = Watched(browser)
        watched.page.goto(f"{service.address}/#finite")
        watched.shows("finite")
    watched.page.wait_for_selector("#status.away")
    watched.page.close()


@pytest.mark.parametrize("name", ["finite", "box", "servo", "empty"])
def test_an_export_in_a_browser(url, browser, tmp_path: Path, name):
    file = tmp_path / "study.html"
    file.write_text(static_page(snapshot(rd.load_study(name, storage=url))), encoding="utf-8")
    watched = Watched(browser, 390, "dark")
    watched.page.goto(file.as_uri())
    watched.shows(name)
    watched.fits()
    watched.page.select_option("#state", "failed")
    assert watched.page.locator("#trials tbody tr").count() >= 1
    assert watched.page.evaluate("document.querySelectorAll('img').length") == 0
    assert watched.said == []
    assert [address for address in watched.asked if not address.startswith("data:")] == [file.as_uri()]
    watched.page.close()


@pytest.mark.parametrize("n", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_study_is_painted_soon(browser, tmp_path, n):
    url = f"sqlite:///{tmp_path}/study.db"
    fill(url, "long", rd.Randomist(rd.Finite.grid(rd.Gaussian(std=0.15), -1, 1, 20), seed=0), n)
    with serving(url, public_read=True, rate=1e6, burst=1e6) as service:
        watched = Watched(browser)
        page = watched.page
        page.set_default_timeout(120_000)
        page.goto(f"{service.address}/#long")  # the service loads the study once
        watched.shows("long")
        started = time.monotonic()
        page.reload()
        watched.shows("long")
        seconds = time.monotonic() - started
        assert page.inner_text("#counts dd >> nth=0").replace(",", "") == str(n)
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"{n} trials: first paint {paint:.0f} ms, all of it {1000 * seconds:.0f} ms")
        assert paint < 3000
        assert seconds < 10
        assert watched.said == []
        page.close()
