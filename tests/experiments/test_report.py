"""The report: what it says, that nothing in it is read as HTML, and that a browser draws it at any width."""

import html
import json
import re
import shutil
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from randomist.experiments import paper
from randomist.experiments.chains import Chains
from randomist.experiments.claims import Check, Claim
from randomist.experiments.comparison import mean_interval
from randomist.experiments.contenders import Contender
from randomist.experiments.figures import look
from randomist.experiments.report import _command, write_report
from randomist.experiments.report_page import POINTS, kept, measured, visible_in_dark
from randomist.experiments.runner import run_experiment
from randomist.experiments.specs import Experiment, TaskSpec
from randomist.experiments.store import Store

pytestmark = pytest.mark.xdist_group("report")  # the runs are made once
HOSTILE = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(2)>"
CHROMIUM = shutil.which("chromium")
QUIET = ("no-sandbox", "disable-gpu", "disable-quic", "no-first-run")
OFFLINE = ("disable-background-networking", "disable-component-update", "disable-sync")
FINITE = Experiment(
    "finite",
    (TaskSpec("illustrative", {"sigma": 2.0, "lambda_": 0.1}, HOSTILE), TaskSpec("illustrative", title="plain")),
    (Contender("randomist", {"perturbation_scale": 1.1}), Contender("ftl")),
    rounds=700,
    seeds=3,
)
BOX = Experiment(
    "box",
    (TaskSpec("cartpole", title="Cartpole"),),
    (Contender("pgpe"), Contender("grid-optimist", {"kappa": 4.0}), Contender("pgpe", {"step_size": IMAGE})),
    rounds=20,
    seeds=2,
)
CLAIMS = [
    Claim(1, "All is well.", [Check("a is less than b", "1.5 against 2.5", "Welch t-test, p = 0.01", "held")]),
    Claim(2, f"{HOSTILE} & <!-- {IMAGE}", [Check(IMAGE, "</script>", "<b>t</b>", "did not hold")]),
    Claim(3, "Who knows.", [Check("x", "0", "t", "held"), Check("y", "$title", "t", "unclear")]),
]


class Parsed(HTMLParser):
    """What a browser would see: elements, addresses, headings, and the text of scripts by their id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.attributes: list[str] = []
        self.scripts: dict[str, str] = {}
        self.words: list[str] = []
        self._script: str | None = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]
        if tag == "script":
            self._script = dict(attrs).get("id") or f"script-{len(self.scripts)}"

    def handle_endtag(self, tag):
        if tag == "script":
            self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data
        else:
            self.words.append(data)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    made = [Store(out, FINITE), Store(out, BOX)]
    failures = [run_experiment(store) for store in made]
    assert [len(entry) for entry in failures] == [0, 2]  # a step size that is no number fails, both times
    return made


@pytest.fixture(scope="module")
def chains():
    rng = np.random.default_rng(3)
    low, high = np.array([-1.0, 0.0]), np.array([1.0, 20.0])
    paths = [low + (high - low) * rng.random((9, 2)) for _ in range(10)]
    return Chains(paths[:5], paths[5:], [2, 3, 4, 5, 6], [501, 502, 503, 504, 505], low, high, np.array([0.15, 3.0]))


@pytest.fixture(scope="module")
def report(tmp_path_factory, stores, chains):
    return write_report(tmp_path_factory.mktemp("report") / "new" / "folder", stores, CLAIMS, chains=chains)


@pytest.fixture(scope="module")
def page(report):
    return report[0].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def parsed(page):
    return Parsed(page)


@pytest.fixture(scope="module")
def figures(parsed):
    return json.loads(parsed.scripts["figures-data"])


def test_verdicts_are_the_same_in_both_files(report, parsed):
    state = json.loads(report[1].read_text(encoding="utf-8"))
    assert [path.name for path in report] == ["report.html", "claims.json"]
    assert state["claims"] == [claim.state() for claim in CLAIMS]
    assert state["verdicts"] == {"held": 1, "did not hold": 1, "unclear": 1}
    assert json.loads(parsed.scripts["claims-data"]) == state
    assert sorted(path.name for path in report[0].parent.iterdir()) == ["claims.json", "report.html"]  # no leftovers


def test_every_claim_shows_its_text_verdict_statistic_and_test(page, parsed):
    words = " ".join(parsed.words)
    for claim in CLAIMS:
        for said in (claim.text, claim.verdict, *(v for c in claim.checks for v in vars(c).values())):
            assert said in words
    assert page.count('<span class="verdict held">') == 2 + 1  # checks, then claims
    assert page.count('<span class="verdict did-not-hold">') == 1 + 1
    assert page.count('<span class="verdict unclear">') == 1 + 1


def test_hostile_text_stays_text(page, parsed):
    assert HOSTILE not in page
    assert IMAGE not in page
    assert html.escape(HOSTILE) in page
    assert "img" not in parsed.tags
    assert not [name for name in parsed.attributes if name.startswith("on")]
    assert parsed.tags.count("script") == 4  # claims, figures, plotly and the page's own
    assert "<" not in parsed.scripts["figures-data"] + parsed.scripts["claims-data"]
    assert parsed.words.count(HOSTILE) >= 2  # the panel's caption and the table's head


def test_nothing_is_loaded(report, parsed):
    assert parsed.addresses
    assert all(address.startswith("#") for address in parsed.addresses)
    assert not {"link", "iframe", "object", "base"} & set(parsed.tags)
    assert report[0].stat().st_size < 7e6


def test_page_is_sound(page, parsed):
    levels = [int(tag[1]) for tag in parsed.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert '<html lang="en">' in page
    assert "<title>Report: finite, box</title>" in page
    assert len(re.findall(r'id="figure-\d+" role="img" aria-label="[^"]{20,}"', page)) == 2 + 1 + 10 + 1


def test_curves_are_means_with_bands_in_the_look_of_the_learner(stores, figures):
    store, (randomist, ftl) = stores[0], FINITE.learners
    for number, task in enumerate(FINITE.tasks, start=1):
        data = figures[f"figure-{number}"]["data"]
        assert [trace["legendgroup"] for trace in data] == ["0", "0", "1", "1"]
        for learner, band, mean in ((randomist, *data[:2]), (ftl, *data[2:])):
            center, half = mean_interval(store.curves(task, learner, "regret"))
            at = np.array(mean["x"]) - 1
            assert len(at) <= POINTS
            assert (at[0], at[-1]) == (0, FINITE.rounds - 1)
            np.testing.assert_allclose(mean["y"], center[at], rtol=1e-4)
            np.testing.assert_allclose(mean["customdata"], half[at], rtol=1e-4)
            np.testing.assert_allclose(band["y"][: len(at)], (center + half)[at], rtol=1e-4)
            np.testing.assert_allclose(band["y"][len(at) :], (center - half)[at][::-1], rtol=1e-4, atol=1e-4)
            assert mean["meta"]["light"] == look(learner)["color"]
    assert data[1]["line"]["dash"] == "solid"
    assert data[3]["line"]["dash"] == "10px,3px"  # FTL's (5, 1.5), in line widths
    assert data[3]["meta"]["dark"] == "#ffffff"  # black would vanish


def test_without_a_regret_the_average_payoff_is_shown(stores, figures, parsed):
    figure = figures["figure-3"]
    assert figure["layout"]["yaxis"]["title"]["text"] == "average payoff"
    curves = stores[1].curves(BOX.tasks[0], BOX.learners[0], "average_payoff")
    np.testing.assert_allclose(figure["data"][1]["y"], curves.mean(axis=0), rtol=1e-4)
    assert figures["figure-1"]["layout"]["yaxis"]["title"]["text"] == "cumulative regret"
    assert len(figure["data"]) == 4  # the learner that failed has no curve


def test_final_means_are_in_the_table(stores, page):
    for task in FINITE.tasks:
        for learner in FINITE.learners:
            mean, half = mean_interval(stores[0].curves(task, learner, "regret")[:, -1])
            assert f'{measured(float(mean), float(half), 3)}</span> <span class="note">n = 3</span>' in page
    assert page.count("no run</td>") == 1


def test_failed_runs_are_listed(page):
    assert "2 of 6 runs are missing" in page
    assert page.count("Failed runs") == 1
    assert page.count("<li><code>cartpole-pgpe-") == 2


def test_every_curve_leads_to_its_settings_command_and_versions(stores, page, tmp_path):
    for store in stores:
        assert html.escape((store.folder / "spec.toml").read_text()) in page
        assert f"randomist experiment {store.folder / 'spec.toml'}" in page  # out is another folder here
        cell = next(cell for cell in store.experiment.cells() if cell not in store.missing())
        manifest = store.manifest(cell)
        assert f"<code>{manifest['versions']['numpy']}</code>" in page
        assert str(manifest["commit"] or "unknown") in page
        seconds = [store.manifest(cell)["seconds"] for cell in set(store.experiment.cells()) - set(store.missing())]
        assert f"Timings: {sum(seconds):,.1f} seconds" in page
    assert _command(stores[0], stores[0].folder.parent) == f"randomist experiment {stores[0].folder.name}/spec.toml"
    for quick, flag in ((False, ""), (True, " --quick")):
        assert _command(Store(tmp_path, paper.lqg(quick)), tmp_path) == f"randomist reproduce lqg{flag}"


def test_chains_and_grid(figures, chains):
    for number, path in enumerate(chains.early + chains.late, start=4):
        data = figures[f"figure-{number}"]["data"]
        np.testing.assert_allclose(data[0]["x"], path[:, 0], rtol=1e-4)
        np.testing.assert_allclose([data[1]["y"][0], data[2]["y"][0]], path[[0, -1], 1], rtol=1e-4)
        assert figures[f"figure-{number}"]["layout"]["yaxis"]["range"] == [0.0, 20.0]
    grid = figures["figure-14"]["data"]
    assert [trace["y"][-1] for trace in grid] == [71**4, 18**4, 9**4]  # ⌈5000^(1/κ)⌉^4
    assert grid[0]["x"][-1] == 5000


def test_empty_and_unfinished_experiments_have_a_report(tmp_path):
    page = write_report(tmp_path, [], [])[0].read_text()
    assert "Grid points of OPTIMIST2" in page
    assert json.loads((tmp_path / "claims.json").read_text())["claims"] == []
    unfinished = Store(tmp_path, FINITE)
    unfinished.create()
    assert "12 of 12 runs are missing" in write_report(tmp_path, [unfinished], [])[0].read_text()


@pytest.mark.parametrize(
    ("mean", "half", "runs", "said"),
    [
        (373.64, 324.1, 6, "374 ± 324"),
        (29.861, 1.74, 6, "29.9 ± 1.7"),
        (12345.6, 0.0123, 2, "12,345.600 ± 0.012"),
        (5.0, 0.0, 3, "5 ± 0"),
        (0.123456, 0.0, 1, "0.12346"),
    ],
)
def test_measured(mean, half, runs, said):
    assert measured(mean, half, runs) == said


def test_kept_points():
    for n in (1, 2, 299, 300, 301, 10_000):
        for logarithmic in (False, True):
            at = kept(n, logarithmic)
            assert len(at) <= min(n, POINTS)
            assert (at[0], at[-1]) == (0, n - 1)
            assert (np.diff(at) > 0).all()
    assert kept(200).tolist() == list(range(200))


def test_dark_colours():
    assert visible_in_dark("#D55E00") == "#D55E00"
    assert visible_in_dark("#333333") == "#cccccc"


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_browser_shows_every_figure(report, tmp_path: Path, width: int, scheme: str):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        arguments = [f"--{name}" for name in (*QUIET, *OFFLINE)]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        view = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        said, asked = [], []
        view.on("console", lambda message: said.append(message.text) if message.type != "log" else None)
        view.on("pageerror", lambda error: said.append(str(error)))
        view.on("dialog", lambda dialog: said.append(dialog.message))
        view.on("request", lambda request: asked.append(request.url))
        view.goto(report[0].as_uri())
        drawn = "Array.from(document.querySelectorAll('.plot'), (plot) => plot.querySelectorAll('svg .trace').length)"
        assert view.evaluate(drawn) == [4, 4, 4] + [3] * 10 + [3]
        assert view.evaluate("document.documentElement.scrollWidth") <= width
        widest = (
            "Math.max(...Array.from(document.querySelectorAll('.plot svg'), (s) => s.getBoundingClientRect().right))"
        )
        assert view.evaluate(widest) <= width
        paper_like = view.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert paper_like == (scheme == "light")

        lines = "(figure) => document.getElementById(figure).data.filter((trace) => trace.visible).length"
        view.locator("section", has_text="finite").get_by_role("button", name="FTL").press("Enter")
        assert view.evaluate(lines, "figure-1") == 2
        view.get_by_label("logarithmic axis").check()
        assert view.evaluate("document.getElementById('figure-2').layout.yaxis.type") == "log"
        check = view.get_by_text("a is less than b")
        assert not check.is_visible()
        view.locator("summary", has_text="All is well.").press("Enter")
        assert check.is_visible()
        view.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)

        opened = "document.querySelectorAll('details[open]').length"
        view.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert view.evaluate(opened) == view.evaluate("document.querySelectorAll('details').length")
        assert view.evaluate("document.getElementById('figure-1').layout.width") == 325
        view.emulate_media(media="print")
        assert not view.get_by_label("logarithmic axis").is_visible()
        view.emulate_media(media="screen", color_scheme=scheme)
        view.evaluate("dispatchEvent(new Event('afterprint'))")
        assert view.evaluate(opened) == 1
        assert said == []
        assert asked == [report[0].as_uri()]
        browser.close()
