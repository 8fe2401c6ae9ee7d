"""How figures come about: libraries, themes, files, and that nothing is left behind."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import randomist as rd
from randomist.errors import ParameterError
from randomist.plots import drawing
from randomist.plots.marks import ends, thinned
from randomist.plots.style import STYLE, THEMES, rc
from tests.plots.reading import BOTH, limits, made, named

RUN = made([3.0, -1.0, 4.0, 1.0], failures={4: "x"}, regret=np.arange(4.0))
HEADS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml", ".html": b"<html>"}


def every_picture(**look):
    """One figure of each function."""
    learner = rd.Randomist(rd.Finite(rd.Gaussian(mean=[0.0, 2.0], std=1.0)), seed=0)
    for _ in range(5):
        learner.tell(learner.ask(), 0.5)
    yield from (draw(RUN, **look) for draw in (rd.plot.payoffs, rd.plot.best_so_far, rd.plot.regret))
    yield from (draw(RUN, **look) for draw in (rd.plot.parallel, rd.plot.slices))
    yield from (draw(learner, **look) for draw in (rd.plot.estimates, rd.plot.effective_samples))


@pytest.mark.parametrize("suffix", HEADS)
def test_the_ending_of_a_path_chooses_library_and_format(suffix, tmp_path):
    path = tmp_path / "a folder" / f"picture{suffix.upper() if suffix == '.png' else suffix}"
    figure = rd.plot.payoffs(RUN, path=path)
    assert isinstance(figure, Figure) == (suffix != ".html")
    assert HEADS[suffix] in path.read_bytes()[:100]
    if suffix == ".html":
        text = path.read_text(encoding="utf-8")
        assert "average so far" in text
        assert "<script src" not in text  # it needs no network
        assert 'charset="utf-8"' in text


@pytest.mark.parametrize(
    ("backend", "name", "said"),
    [
        (None, "a.bmp", "path must end in .png or .pdf or .svg or .html, got"),
        (None, "a", "path must end in"),
        ("plotly", "a.png", "path must end in .html with backend='plotly'"),
        ("matplotlib", "a.html", "path must end in .png or .pdf or .svg with backend='matplotlib'"),
    ],
)
def test_other_endings_are_refused(backend, name, said, tmp_path):
    with pytest.raises(ParameterError, match=said):
        rd.plot.payoffs(RUN, backend=backend, path=tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("look", "said"),
    [
        ({"backend": "bokeh"}, "backend must be one of 'matplotlib', 'plotly', got 'bokeh'"),
        ({"theme": "sepia"}, "theme must be one of 'light', 'dark', got 'sepia'"),
        ({"width": 0}, "width must be a finite number >= 1.5"),
        ({"width": "wide"}, "width must be"),
        ({"title": 3}, "title must be a text, got 3"),
    ],
)
def test_wrong_looks_are_refused(look, said):
    with pytest.raises(ParameterError, match=said):
        rd.plot.payoffs(RUN, **look)


@pytest.mark.parametrize("library", BOTH)
def test_a_library_that_is_missing_is_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ParameterError, match=rf"{library} needs the `run` extra .*pip install 'randomist\[run\]'"):
        rd.plot.payoffs(RUN, backend=library)


def test_pyplot_is_not_used_and_settings_stay_as_they_are(tmp_path):
    """In a process of its own: others may have imported pyplot here."""
    program = f"""
import sys
import matplotlib
before = dict(matplotlib.rcParams.copy())
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.plots.test_drawing import every_picture
for figure in every_picture(theme="dark", path={str(tmp_path / "a.png")!r}):
    pass
assert "matplotlib.pyplot" not in sys.modules
assert dict(matplotlib.rcParams.copy()) == before
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_room_is_entered_without_a_plotting_library():
    program = (
        "import sys, randomist as rd; rd.plot.payoffs, rd.plot.parallel; "
        "assert not {'matplotlib', 'plotly'} & sys.modules.keys(), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [None, 3.4])
def test_every_picture_is_drawn_by_both_libraries_alike(theme, width):
    pairs = zip(*(every_picture(backend=backend, theme=theme, width=width) for backend in BOTH), strict=True)
    for printed, interactive in pairs:
        printed.savefig(io.BytesIO(), format="png", dpi=50)
        assert named(printed) == named(interactive)
        assert printed.get_figwidth() == (width or 6.8)
        assert interactive.layout.width == (None if width is None else 326)
        assert interactive.layout.paper_bgcolor == THEMES[theme].paper
        assert mpl.colors.to_hex(printed.get_facecolor()).upper() == THEMES[theme].paper
        if interactive.layout.xaxis.range:
            assert limits(printed, "x") == pytest.approx(limits(interactive, "x"))
            assert limits(printed, "y") == pytest.approx(limits(interactive, "y"))
        assert interactive.to_dict()


def test_a_figure_keeps_its_look_whatever_the_settings_are():
    def pixels():
        with io.BytesIO() as file:
            figure.savefig(file, format="png")
            return file.getvalue()

    figure = rd.plot.slices(RUN, theme="dark")
    before = pixels()
    with mpl.rc_context({"font.size": 30, "xtick.color": "red", "savefig.dpi": 20, "axes.grid": False}):
        assert pixels() == before


def test_notebooks_show_a_figure():
    assert rd.plot.payoffs(RUN)._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("backend", BOTH)
def test_titles_are_the_usual_one_another_or_none(backend):
    def title(**look):
        figure = rd.plot.payoffs(RUN, backend=backend, **look)
        return figure.get_suptitle() if backend == "matplotlib" else figure.layout.title.text or ""

    assert title() == "Auto on made"
    assert title(title="Mine") == "Mine"
    assert title(title="") == ""


@pytest.mark.parametrize("name", ["$a$", r"$\nonsense{$", "_hidden", "<b>bold</b> & <script>", "50%"])
def test_names_are_read_as_they_are(name):
    space = rd.Parameters({name: rd.Real(0, 1), "y": rd.Choice(name, "other")})
    points = np.random.default_rng(0).random((6, 2))
    run = made(np.arange(6.0), space=space, mediators=points, decisions=points, recommendation=points[0])
    for draw in (rd.plot.parallel, rd.plot.slices):
        draw(run, title=name).savefig(io.BytesIO(), format="png")
        page = draw(run, title=name, backend="plotly").to_html(include_plotlyjs=False)
        assert "<b>" not in page
        assert "<script>" not in page.split("<script", 2)[-1].partition(">")[2]
    by_name = {name: [RUN, RUN], "other": RUN}
    figure = rd.plot.payoffs(by_name)
    figure.savefig(io.BytesIO(), format="png")
    assert named(figure)[0].replace(r"\$", "$") == f"{name} (2 runs)"


@pytest.mark.slow
def test_the_pictures_of_the_page_and_of_the_readme_are_drawn_by_one_command(tmp_path):
    script = Path(__file__).parents[2] / "docs" / "pictures.py"
    subprocess.run([sys.executable, "-W", "error", script, tmp_path], check=True)
    pages = (script.parent / "plots.md").read_text("utf-8") + (script.parents[1] / "README.md").read_text("utf-8")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == set(re.findall(r"_static/plots/([a-z-]+\.png)", pages))
    assert names == {path.name for path in (script.parent / "_static" / "plots").iterdir()}


def test_the_look_for_papers_is_part_of_every_theme():
    for theme in THEMES.values():
        assert STYLE.items() - {("grid.color", STYLE["grid.color"])} <= rc(theme).items()


@pytest.mark.parametrize("count", [1, 2, 10, 999, 1000, 1001, 12345])
def test_thinned_rows_are_even_and_have_both_ends(count):
    rows = thinned(count, 1000)
    assert len(rows) == min(count, 1000)
    assert (rows[0], rows[-1]) == (0, count - 1)
    assert len(rows) < 2 or np.ptp(np.diff(rows)) <= 1


def test_ends_leave_out_what_is_not_finite():
    assert ends([1.0, np.nan], 3.0, np.inf, pad=0.0) == (1.0, 3.0)
    assert ends(np.empty(0)) == (-0.04, 1.04)
    low, high = ends(5.0)
    assert low < 5.0 < high


def test_the_documented_look_is_what_draw_takes():
    taken = drawing.draw.__annotations__.keys() - {"picture", "return"}
    assert drawing.Look.__annotations__.keys() == taken
    assert all(f"\n    {name}\n" in (drawing.Look.__doc__ or "") for name in taken)
