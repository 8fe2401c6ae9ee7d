"""Pictures by matplotlib, to keep. Nothing goes through pyplot: no figure stays open, no setting changes."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter

from randomist.plots.drawing import WIDTH
from randomist.plots.marks import Axis, Band, Bars, Dots, Line, Mark, Panel, Picture, Rule, Spans, Threads
from randomist.plots.style import Theme, rc

DASHES = "-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1, 1))  # as `style.DASHES`
SYMBOLS = {"circle": "o", "star": "*", "tick": "|"}
THREADS = 0.75  # of a figure's width, beside the scale of colours
LETTER = 0.062  # inches: about the width of a letter


class Printed(Figure):
    """A figure that keeps its look whatever matplotlib's settings are when it is drawn, and that notebooks show."""

    def __init__(self, look: Any, **settings: Any) -> None:
        self.look = look
        super().__init__(**settings)

    def draw(self, renderer: Any) -> None:
        with rc_context(self.look):
            super().draw(renderer)

    def savefig(self, fname: Any, **settings: Any) -> None:
        with rc_context(self.look):
            super().savefig(fname, **settings)

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png")
            return file.getvalue()


def render(picture: Picture, theme: Theme, width: float | None) -> Printed:
    """A picture as a figure."""
    wide, count = width or WIDTH, len(picture.panels)
    look: Any = rc(theme)
    rows, columns = picture.grid(wide)
    named = {m.name for panel in picture.panels for m in panel.marks if m.name and not isinstance(m, Threads)}
    entries = _columns([*named], wide)
    extra = 0.17 * math.ceil(len(named) / entries) + 0.15 * bool(picture.note) + 0.2 * bool(picture.title)
    with rc_context(look):
        figure = Printed(look, figsize=(wide, rows * picture.height + extra), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharey=count > 1)
        legend: dict[str, Any] = {}
        for i, (axis, panel) in enumerate(zip(grid.flat, picture.panels, strict=False)):
            _draw_panel(figure, axis, panel, theme, legend, wide / columns - 0.4)
            if i % columns:
                axis.set_ylabel("")
        for axis in grid.flat[count:]:
            axis.remove()
        if picture.title:
            figure.suptitle(_plain(picture.title), fontsize=look["axes.titlesize"])
        if legend:
            figure.legend(
                *(legend.values(), [f" {_plain(name)}" for name in legend]),
                loc="outside lower center",
                ncols=entries,
                columnspacing=1.4,
                handletextpad=0.4,
                title=_plain(picture.note) or None,
                title_fontproperties={"size": 6.5},
            )
        elif picture.note:
            figure.supxlabel(_plain(picture.note), fontsize=6.5, color=theme.soft)
    return figure


def save(figure: Printed, path: Path) -> None:
    figure.savefig(path)


def _draw_panel(figure: Printed, axis: Any, panel: Panel, theme: Theme, legend: dict[str, Any], room: float) -> None:
    """Draw a panel that is about so many inches wide; what it shows by name goes to the legend."""
    if any(isinstance(mark, Threads) for mark in panel.marks):
        room *= THREADS
    for mark in panel.marks:
        handle = _draw_mark(figure, axis, mark, theme)
        if mark.name and handle is not None:
            handle.set_label(mark.name)
            legend.setdefault(mark.name, handle)
    _set_axis(axis, "x", panel.x, room)
    _set_axis(axis, "y", panel.y, 2.0)
    for y, text in panel.beside:
        axis.text(1.015, y, text, transform=axis.get_yaxis_transform(), va="center", fontsize=7, color=theme.soft)
    if panel.heading:
        over = 3.9 * max(len(text) for _, text in panel.beside)  # points: about as far as the texts go
        place = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "bottom"}
        axis.annotate(panel.heading, (1.015, 1.0), (over, 2.0), fontsize=6.5, color=theme.soft, **place)


def _draw_mark(figure: Printed, axis: Any, mark: Mark, theme: Theme) -> Any:
    """Draw one mark; what stands for it in the legend."""
    if isinstance(mark, Threads):
        return _draw_threads(figure, axis, mark, theme)
    colour = theme.colour(mark.colour)
    match mark:
        case Line():
            style = "steps-post" if mark.steps else "default"
            dash = DASHES[mark.dash % len(DASHES)]
            return axis.plot(mark.x, mark.y, color=colour, linestyle=dash, drawstyle=style)[0]
        case Band():
            return axis.fill_between(mark.x, mark.low, mark.high, color=colour, alpha=0.2, linewidth=0)
        case Dots():
            size = {"circle": 2.2 if mark.faint else 4.0, "star": 9.0, "tick": 5.0}[mark.symbol]
            look = {"alpha": 0.35 if mark.faint else 1.0, "markeredgewidth": 0.0 if mark.symbol != "tick" else 0.8}
            return axis.plot(
                *(mark.x, mark.y), SYMBOLS[mark.symbol], color=colour, markersize=size, clip_on=False, zorder=3, **look
            )[0]
        case Spans():
            draw = axis.hlines if mark.across else axis.vlines
            width, order = (7.0, 1.5) if mark.thick else (0.9, 2.0)
            return draw(mark.at, mark.low, mark.high, color=colour, linewidth=width, zorder=order)
        case Bars():
            return axis.barh(mark.at, mark.length, mark.height, color=colour, linewidth=0)
        case Rule():
            return axis.axvline(mark.at, color=colour, linewidth=1.0, linestyle="--")


def _draw_threads(figure: Printed, axis: Any, mark: Threads, theme: Theme) -> None:
    low, high = (np.array([getattr(one, end) for one in mark.axes]) for end in ("low", "high"))
    heights = (mark.values - low) / (high - low)  # (n, d)
    places = np.arange(len(mark.axes))
    colours = LinearSegmentedColormap.from_list("payoff", theme.scale[:: 1 if mark.best == "high" else -1])
    threads = LineCollection(
        list(np.stack([np.broadcast_to(places, heights.shape), heights], axis=2)),
        cmap=colours,
        norm=Normalize(mark.low, mark.high),
        linewidths=0.8 if len(heights) <= 200 else 0.5,
        alpha=0.7,
    )
    threads.set_array(mark.colours)
    axis.add_collection(threads)
    crowded = THREADS * figure.get_figwidth() < 0.6 * len(places)  # then the ends have to do
    outlined = [withStroke(linewidth=2.0, foreground=theme.paper)]
    for place, one in enumerate(mark.axes):
        axis.axvline(place, color=theme.soft, linewidth=0.8, zorder=2.5)
        for value, text in (one.ticks or ())[:: max(1, len(one.ticks or ()) - 1) if crowded else 1]:
            height = (value - one.low) / (one.high - one.low)
            axis.plot([place - 0.015, place + 0.015], [height, height], color=theme.soft, linewidth=0.8, zorder=2.5)
            axis.annotate(
                *(_plain(text), (place, height), (3.5, 0.0)),
                textcoords="offset points",
                va="center",
                fontsize=6.5,
                zorder=3,
                path_effects=outlined,
            )
    settings: Any = {"pad": 0.06, "fraction": 0.06, "aspect": 30, "extend": "min" if mark.best == "high" else "max"}
    bar: Any = figure.colorbar(threads, ax=axis, label=_plain(mark.name), **settings)
    bar.outline.set_visible(False)
    bar.solids.set_alpha(1.0)
    axis.grid(False)
    axis.set_frame_on(False)
    axis.tick_params(length=0)


def _set_axis(axis: Any, way: str, along: Axis, room: float) -> None:
    """Name, ends, scale and ticks of one axis that has so many inches."""
    axis.set(**{f"{way}label": _plain(along.name)})
    if along.log:
        axis.set(**{f"{way}scale": "log"})
    this = axis.xaxis if way == "x" else axis.yaxis
    if along.ticks is not None:
        this.set_ticks([place for place, _ in along.ticks], [_plain(text) for _, text in along.ticks])
        this.grid(False)
        if way == "x" and LETTER * sum(len(text) + 2 for _, text in along.ticks) > room:
            this.set_tick_params(rotation=30)
            for label in this.get_ticklabels():
                label.set(ha="right", rotation_mode="anchor")
    elif along.log:
        narrow = along.high < 100 * along.low
        this.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=4 if room < 2 else 6))
        this.set_minor_formatter(NullFormatter())
        this.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        count = 4 if way == "x" and room < 2 else 6
        this.set_major_locator(MaxNLocator(count, steps=[1, 2, 2.5, 5, 10], integer=along.whole))
        if 1e4 <= max(abs(along.low), abs(along.high)) < 1e15:
            this.set_major_formatter(EngFormatter(sep=""))  # 20k
    axis.set(**{f"{way}lim": (along.low, along.high)})


def _columns(names: list[str], width: float) -> int:
    """How many entries of the legend fit side by side."""
    longest = max((len(name) for name in names), default=1)
    return max(1, min(len(names), int(width / (LETTER * longest + 0.45))))


def _plain(text: str) -> str:
    """A text to be read as it is: a dollar sign begins no formula."""
    return text.replace("$", r"\$")
