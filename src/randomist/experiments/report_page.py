"""The pieces of the report's page: escaped text, tables, figures, and the file that holds them (`report_page.html`)."""

from __future__ import annotations

import colorsys
import html
import json
import math
from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from randomist._types import Array
from randomist.experiments.comparison import mean_interval
from randomist.experiments.contenders import Contender
from randomist.experiments.figures import look

POINTS = 300  # of a curve; the file stays small and the eye sees no difference
WIDTH = 2.0  # of a line, in pixels
DASHES: dict[str, list[float]] = {
    "-": [],
    "--": [4, 2],
    ":": [1, 1.5],
    "-.": [4, 1.5, 1, 1.5],
}  # matplotlib's, in line widths
MARKERS = {  # matplotlib's: plotly's symbol, and the glyph of the legend
    "o": ("circle", "●"),
    "s": ("square", "■"),
    "^": ("triangle-up", "▲"),
    "v": ("triangle-down", "▼"),
    "D": ("diamond", "◆"),
    "P": ("cross", "✚"),
    "x": ("x-thin", "×"),
    "X": ("x", "✖"),
    "*": ("star", "★"),
    ".": ("circle", "•"),
}


def text(value: object) -> str:
    """Anything as text of the page."""
    return html.escape(str(value))


def embedded(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or open a comment."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], label: str, numbers: bool = True) -> str:
    """A table that scrolls in its own box. Cells are HTML; the first of a row is its header, the others are numbers."""
    kind = ' class="number"' if numbers else ""
    lines = [f'<div class="scroll plain" tabindex="0" role="region" aria-label="{text(label)}"><table>', "<thead><tr>"]
    lines += [f'<th scope="col"{kind if i else ""}>{cell}</th>' for i, cell in enumerate(head)]
    lines.append("</tr></thead><tbody>")
    for first, *others in rows:
        cells = "".join(f"<td{kind}>{cell}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def details(summary: str, content: str) -> str:
    """A part that opens on request, and on paper."""
    return f'<details class="part"><summary>{text(summary)}</summary>\n{content}\n</details>'


def kept(n: int, logarithmic: bool = False) -> np.typing.NDArray[np.intp]:
    """Which of n points a curve keeps: the first, the last, and at most `POINTS`."""
    spaced = np.geomspace(1, n, POINTS) - 1 if logarithmic else np.linspace(0, n - 1, POINTS)
    return np.unique(spaced.round().astype(np.intp))


def measured(mean: float, half: float, runs: int) -> str:
    """A mean with its interval, both to the second digit of the half-width."""
    if runs < 2 or not math.isfinite(half) or half == 0:
        return f"{mean:,.5g}" if runs < 2 else f"{mean:,.5g} ± {half:.2g}"
    digits = max(0, 1 - math.floor(math.log10(half)))
    return f"{mean:,.{digits}f} ± {half:,.{digits}f}"


def numbers(values: Array) -> list[float | None]:
    """Five digits are enough to draw; what is not finite is a gap."""
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.tolist()]


class Look:
    """How a learner is drawn: as in the printed figures, with a lighter colour where that would vanish in the dark."""

    def __init__(self, colour: str, line: Any, marker: str) -> None:
        self.light, self.dark = colour, visible_in_dark(colour)
        self.dashes = [WIDTH * part for part in (DASHES.get(line, []) if isinstance(line, str) else line[1])]
        self.symbol, self.glyph = MARKERS.get(marker, MARKERS["."])

    @classmethod
    def of(cls, learner: Contender) -> Look:
        kind = look(learner)
        return cls(kind["color"], kind["linestyle"], kind["marker"])

    @property
    def meta(self) -> dict[str, str]:
        return {"light": self.light, "dark": self.dark}

    def line(self, **more: Any) -> dict[str, Any]:
        dash = ",".join(f"{part:g}px" for part in self.dashes) or "solid"
        return {"width": WIDTH, "dash": dash, "color": self.light, **more}

    def swatch(self) -> str:
        """A piece of the line for the legend."""
        dash = f' stroke-dasharray="{" ".join(f"{part:g}" for part in self.dashes)}"' if self.dashes else ""
        return (
            f'<svg width="34" height="14" aria-hidden="true" style="--light:{self.light};--dark:{self.dark}">'
            f'<line x1="1" y1="7" x2="33" y2="7" stroke-width="{WIDTH:g}"{dash}/>'
            f'<text x="17" y="11" font-size="11" text-anchor="middle" stroke="none">{self.glyph}</text></svg>'
        )


def visible_in_dark(colour: str) -> str:
    """The colour, with its lightness turned around where it is too dark for a dark page."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.1:  # relative luminance
        return colour
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    turned = colorsys.hls_to_rgb(hue, 1 - lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in turned)


def band_and_mean(key: str, name: str, kind: Look, curves: Array) -> list[dict[str, Any]]:
    """Plotly's traces for one learner: the 95% band where there are several runs, and the mean over it.

    `curves` is (runs, rounds).
    """
    mean, half = mean_interval(curves)
    at = kept(len(mean))
    rounds, mean, half = (at + 1).tolist(), mean[at], half[at]
    shared = {"type": "scatter", "legendgroup": key, "meta": kind.meta}
    traces: list[dict[str, Any]] = []
    if len(curves) > 1:
        outline = numbers(np.concatenate([mean + half, (mean - half)[::-1]]))
        band = {"fill": "toself", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        traces.append({**shared, **band, "x": rounds + rounds[::-1], "y": outline})
    traces.append(
        {
            **shared,
            "x": rounds,
            "y": numbers(mean),
            "customdata": numbers(half),
            "name": text(name),  # plotly reads a kind of HTML, too
            "mode": "lines+markers",
            "line": kind.line(),
            "marker": {"symbol": kind.symbol, "size": 7, "maxdisplayed": 7},
            "hovertemplate": "round %{x}<br>%{y:.5~g}" + (" ± %{customdata:.2~g}" if len(curves) > 1 else ""),
        }
    )
    return traces


class Page:
    """The report while it is written: parts of the body, and figures that the script draws."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.sections: list[tuple[str, str]] = []  # id, heading
        self.body: list[str] = []
        self.figures: dict[str, dict[str, Any]] = {}

    def section(self, name: str, heading: str, *content: str) -> None:
        self.sections.append((name, heading))
        opening = f'<section id="{text(name)}" aria-labelledby="{text(name)}-title">'
        self.body += [opening, f'<h2 id="{text(name)}-title">{text(heading)}</h2>', *content, "</section>"]

    def figure(self, caption: str, label: str, data: list[dict[str, Any]], layout: dict[str, Any]) -> str:
        """One set of axes; `label` is what a reader hears who does not see it."""
        name = f"figure-{len(self.figures) + 1}"
        self.figures[name] = {"data": data, "layout": {"margin": {"l": 58, "r": 12, "t": 12, "b": 44}, **layout}}
        plot = f'<div class="plot" id="{name}" role="img" aria-label="{text(label)}"></div>'
        return f"<figure><figcaption>{text(caption)}</figcaption>{plot}</figure>"

    def written(self, lead: str, claims: Any) -> str:
        """The whole file. Texts are put into the template in one pass, so that none is read as part of it."""
        links = "".join(f'<li><a href="#{text(name)}">{text(heading)}</a></li>' for name, heading in self.sections)
        head = (
            f'<header><h1>{text(self.title)}</h1>\n{lead}\n<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
        )
        template = Template(resources.files(__package__).joinpath("report_page.html").read_text(encoding="utf-8"))
        return template.substitute(
            title=text(self.title),
            body="\n".join([head, "<main>", *self.body, "</main>"]),
            claims=embedded(claims),
            figures=embedded(self.figures),
            plotly=get_plotlyjs(),
        )


def panels(figures: Sequence[str], kind: str = "") -> str:
    """Figures beside each other as far as the screen is wide."""
    kind = kind or ("single" if len(figures) == 1 else "")
    return "\n".join([f'<div class="{f"panels {kind}".strip()}">', *figures, "</div>"])


def legend(entries: Iterable[tuple[str, str, Look]], logarithmic: bool) -> str:
    """Buttons that show and hide (key, name, look) in all panels of a section."""
    keys = "".join(
        f'<button type="button" aria-pressed="true" data-key="{text(key)}">{kind.swatch()}{text(name)}</button>'
        for key, name, kind in entries
    )
    option = '<label class="option"><input type="checkbox" data-log> logarithmic axis</label>' if logarithmic else ""
    return f'<div class="legend" role="group" aria-label="Show or hide curves">{keys}{option}</div>'
