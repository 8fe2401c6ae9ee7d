"""Pictures by plotly, to explore."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from randomist._types import Array
from randomist.plots.drawing import WIDTH
from randomist.plots.marks import Axis, Band, Bars, Dots, Line, Mark, Panel, Picture, Rule, Spans, Threads
from randomist.plots.style import DASHES, Theme, layout

PIXELS = 96  # per inch, as browsers have it
GAP = 90  # pixels between rows of panels
SYMBOLS = {"circle": "circle", "star": "star", "tick": "line-ns-open"}
HOVER = "%{x:.5~g}, %{y:.5~g}"


def render(picture: Picture, theme: Theme, width: float | None) -> Any:
    """A picture as a figure."""
    count = len(picture.panels)
    rows, columns = picture.grid(width or WIDTH)
    page, height = layout(theme), 1.25 * rows * picture.height * PIXELS
    common, margin = {"xaxis": page.pop("xaxis"), "yaxis": page.pop("yaxis")}, page["margin"]
    if any(isinstance(mark, Threads) for panel in picture.panels for mark in panel.marks):
        figure = go.Figure()  # parallel coordinates have axes of their own
        margin |= {"l": 80, "r": 40, "t": 72}
    else:
        gap = {"horizontal_spacing": 0.15 / columns, "vertical_spacing": min(GAP / height, 0.4 / rows)}
        figure = make_subplots(rows, columns, shared_yaxes=count > 1, **gap)
        for i, panel in enumerate(picture.panels):
            place = {"row": i // columns + 1, "col": i % columns + 1}
            _set_axes(figure, panel, common, place, small=count > 1)
    for i, panel in enumerate(picture.panels):
        place = {"row": i // columns + 1, "col": i % columns + 1}
        for mark in panel.marks:
            figure.add_trace(_trace(mark, panel, theme), **({} if isinstance(mark, Threads) else place))
        margin["r"] = max(margin["r"], *(16 + 8 * len(text) for _, text in panel.beside), 0)
        _write_beside(figure, panel, theme)
    entries = _name_once(figure)
    if picture.title:
        page["title"] = {"text": _plain(picture.title), "font": {"size": 14}}
        margin["t"] += 24
    below = {"x": 0.5, "xref": "paper", "xanchor": "center", "yref": "container", "yanchor": "bottom", "y": 0.01}
    page["legend"] = {"orientation": "h"} | below
    if picture.note:
        text = {"text": _plain(picture.note), "font": {"size": 10, "color": theme.soft}, "showarrow": False}
        figure.add_annotation(x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom", **text)
    side_by_side = (width or WIDTH) * PIXELS / (7 * max(map(len, entries), default=0) + 60)
    margin["b"] += 24 * math.ceil(len(entries) / max(1, int(side_by_side)))
    size = {} if width is None else {"width": round(width * PIXELS)}
    height += margin["t"] + margin["b"] - 60
    return figure.update_layout(height=round(height), template="none", barmode="overlay", **page, **size)


def save(figure: Any, path: Path) -> None:
    page: str = figure.to_html(include_plotlyjs=True)  # all that it needs, without a network
    background = f'<body style="margin: 0; background: {figure.layout.paper_bgcolor}">'
    path.write_text(page.replace("<body>", background, 1), encoding="utf-8")


def _trace(mark: Mark, panel: Panel, theme: Theme) -> Any:
    if isinstance(mark, Threads):
        return _threads(mark, theme)
    colour, named = theme.colour(mark.colour), {"name": _plain(mark.name), "showlegend": bool(mark.name)}
    hover = named | {"hovertemplate": f"{HOVER}<extra>{_plain(mark.name)}</extra>"}
    match mark:
        case Line():
            shape = "hv" if mark.steps else "linear"
            line = {"color": colour, "width": 2, "dash": DASHES[mark.dash % len(DASHES)], "shape": shape}
            return go.Scatter(x=_list(mark.x), y=_list(mark.y), mode="lines", line=line, **hover)
        case Band():
            x, y = _outline(mark)
            fill = {"fill": "toself", "fillcolor": f"{colour}33", "hoverinfo": "skip", "line": {"width": 0}}
            return go.Scatter(x=_list(x), y=_list(y), mode="lines", **fill, **named)
        case Dots():
            size = {"circle": 4 if mark.faint else 8, "star": 14, "tick": 9}[mark.symbol]
            marker = {"color": colour, "size": size, "symbol": SYMBOLS[mark.symbol]}
            marker |= {"opacity": 0.4 if mark.faint else 1.0, "line": {"width": 1.5 if mark.symbol == "tick" else 0}}
            dots = {"mode": "markers", "marker": marker, "cliponaxis": False}
            return go.Scatter(x=_list(mark.x), y=_list(mark.y), **dots, **hover)
        case Spans():
            along = np.stack([mark.low, mark.high, np.full(len(mark.at), np.nan)], axis=1).ravel()
            x, y = (along, np.repeat(mark.at, 3)) if mark.across else (np.repeat(mark.at, 3), along)
            line = {"color": colour, "width": 12 if mark.thick else 1.5}
            return go.Scatter(x=_list(x), y=_list(y), mode="lines", line=line, **hover)
        case Bars():
            bar = {"orientation": "h", "width": mark.height, "marker": {"color": colour, "line": {"width": 0}}}
            return go.Bar(x=_list(mark.length), y=_list(mark.at), **bar, **hover)
        case Rule():
            line = {"color": colour, "width": 1.5, "dash": "dash"}
            return go.Scatter(x=[mark.at] * 2, y=[panel.y.low, panel.y.high], mode="lines", line=line, **hover)


def _threads(mark: Threads, theme: Theme) -> Any:
    dimensions = [
        {"label": _plain(axis.name), "values": _list(values), "range": [axis.low, axis.high]} | _ticks(axis)
        for axis, values in zip(mark.axes, mark.values.T, strict=True)
    ]
    scale = list(zip(np.linspace(0, 1, len(theme.scale)).tolist(), theme.scale, strict=True))
    colours = {"color": _list(mark.colours), "cmin": mark.low, "cmax": mark.high, "colorscale": scale}
    colours |= {"reversescale": mark.best == "low", "showscale": True}
    bar = {"title": {"text": _plain(mark.name), "side": "right"}, "thickness": 14, "outlinewidth": 0}
    return go.Parcoords(dimensions=dimensions, line=colours | {"colorbar": bar}, rangefont={"color": theme.paper})


def _set_axes(figure: Any, panel: Panel, common: dict[str, Any], place: dict[str, int], small: bool) -> None:
    shown: list[tuple[Axis, str]] = [(panel.x, "xaxis"), (panel.y, "yaxis")]
    for axis, way in shown:
        ends = [math.log10(axis.low), math.log10(axis.high)] if axis.log else [axis.low, axis.high]
        settings: dict[str, Any] = common[way] | {"range": ends, "type": "log" if axis.log else "linear"}
        if way == "xaxis" or place["col"] == 1:
            settings["title"] = {"text": _plain(axis.name), "standoff": 6}
        if axis.ticks is not None:
            settings |= _ticks(axis) | {"showgrid": False}
        elif axis.whole and axis.high - axis.low < 10:
            settings["dtick"] = 1
        elif axis.log:
            decades = math.log10(axis.high / axis.low)
            settings |= {"dtick": math.ceil(decades / 5) if decades >= 2 else "D2", "exponentformat": "power"}
        else:
            settings |= {"nticks": 4 if small and way == "xaxis" else 6, "tickangle": 0}
        (figure.update_xaxes if way == "xaxis" else figure.update_yaxes)(**settings, **place)


def _write_beside(figure: Any, panel: Panel, theme: Theme) -> None:
    """Texts to the right of a panel, of which there is then only one."""
    common = {"x": 1.0, "xref": "paper", "xanchor": "left", "showarrow": False, "xshift": 6}
    font = {"size": 11, "color": theme.soft}
    for y, text in panel.beside:
        figure.add_annotation(y=y, yref="y", text=_plain(text), font=font, **common)
    if panel.heading:
        common |= {"xanchor": "right", "xshift": 16 + 7 * max((len(text) for _, text in panel.beside), default=0)}
        figure.add_annotation(y=1, yref="paper", yanchor="bottom", text=_plain(panel.heading), font=font, **common)


def _name_once(figure: Any) -> set[str]:
    """One entry in the legend for all traces of a name, which shows and hides them together; these names."""
    seen: set[str] = set()
    for trace in figure.data:
        if trace.name:
            trace.update(legendgroup=trace.name, showlegend=trace.name not in seen)
            seen.add(trace.name)
    return seen


def _outline(band: Band) -> tuple[Array, Array]:
    """Once around each part of a band between its gaps."""
    there = np.isfinite(band.low) & np.isfinite(band.high)
    parts = [rows for rows in np.split(np.arange(len(there)), np.flatnonzero(np.diff(there)) + 1) if there[rows].all()]
    gap = np.array([np.nan])
    x = [part for rows in parts for part in (band.x[rows], band.x[rows][::-1], gap)]
    y = [part for rows in parts for part in (band.high[rows], band.low[rows][::-1], gap)]
    return np.concatenate([*x, np.empty(0)]), np.concatenate([*y, np.empty(0)])


def _ticks(axis: Axis) -> dict[str, Any]:
    ticks = axis.ticks or ()
    return {"tickvals": [place for place, _ in ticks], "ticktext": [_plain(text) for _, text in ticks]}


def _list(values: Array) -> list[float | None]:
    """Plain numbers, a gap as None: what a browser reads."""
    return [value if math.isfinite(value) else None for value in np.asarray(values).tolist()]


def _plain(text: str) -> str:
    """A text to be read as it is: plotly would read `<b>` as bold."""
    return escape(text, quote=False)
