"""One look for every picture, as data: colours that the colour-blind tell apart, small type, thin lines, a light grid.

`STYLE` is what matplotlib's figures for papers share. A `Theme` adds colours, for a light or a dark page; `rc` and
`layout` say it in the words of matplotlib and of plotly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}
FONT = "Inter, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
DASHES = "solid", "dash", "dot", "dashdot"  # lines are told apart without colour, too


class Theme(NamedTuple):
    """The colours of a page. `cycle` are Okabe and Ito's; a mark names one of them by its number."""

    paper: str
    ink: str
    soft: str  # of text and marks that matter less
    grid: str
    span: str  # of intervals that still matter
    off: str  # of those that do not
    cycle: tuple[str, ...]
    scale: tuple[str, ...]  # of numbers, from the worst to the best

    def colour(self, key: int | str) -> str:
        """A number counts through the cycle; a word names a colour of the theme."""
        found: str = self.cycle[key % len(self.cycle)] if isinstance(key, int) else getattr(self, key)
        return found


THEMES = {
    "light": Theme(
        *("#FFFFFF", "#1B1F24", "#5F6770", "#E6E6E6", "#56B4E9", "#B8B8B8"),
        ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"),
        ("#DCE1E6", "#8CC8EC", "#0072B2", "#0A2540"),
    ),
    "dark": Theme(
        *("#14171B", "#E4E8ED", "#9AA4AF", "#2C323A", "#0072B2", "#4A525C"),
        ("#56B4E9", "#E8743B", "#2DBE94", "#CC79A7", "#E69F00", "#F0E442", "#FFFFFF"),
        ("#39424D", "#0072B2", "#56B4E9", "#F4F1C1"),
    ),
}


def rc(theme: Theme) -> dict[str, Any]:
    """Settings of matplotlib."""
    inks = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
    lines = ("axes.edgecolor", "xtick.color", "ytick.color")
    papers = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    colours = dict.fromkeys(inks, theme.ink) | dict.fromkeys(lines, theme.soft) | dict.fromkeys(papers, theme.paper)
    return {**STYLE, **colours, "grid.color": theme.grid, "axes.axisbelow": True, "svg.hashsalt": "randomist"}


def layout(theme: Theme) -> dict[str, Any]:
    """The layout of a plotly figure."""
    axis = {"gridcolor": theme.grid, "linecolor": theme.soft, "tickcolor": theme.soft, "zeroline": False}
    axis |= {"showline": True, "ticks": "outside", "ticklen": 4, "automargin": True}
    return {
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": 12, "color": theme.ink},
        "colorway": list(theme.cycle),
        "margin": {"l": 60, "r": 24, "t": 28, "b": 56},
        "xaxis": axis,
        "yaxis": axis,
    }
