"""Read figures back: what each mark shows, by its name, in either library; and runs made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

import randomist as rd

BOTH = ("matplotlib", "plotly")


def made(payoffs: Any, **others: Any) -> rd.Run:
    """A run in a box of two parameters, or what else is given."""
    n = len(payoffs)
    points = np.stack([np.linspace(-1, 2, n), np.linspace(5, 3, n) ** 2], axis=1)
    usual: dict[str, Any] = {
        "task": "made",
        "learner": "Auto",
        "seed": 0,
        "decisions": points,
        "mediators": points,
        "regret": None,
        "recommendation": np.array([0.5, 16.0]),
    }
    return rd.Run(**(usual | {"payoffs": np.array(payoffs, dtype=np.float64)} | others))


def shown(figure: Any, name: str, panel: int = 0) -> np.ndarray:
    """The points of the marks with this name, or without one, in one panel, without gaps, in their order.  (n, 2)"""
    points = _printed(figure, name, panel) if isinstance(figure, Figure) else _interactive(figure, name, panel)
    rows = np.array(points, dtype=np.float64).reshape(-1, 2)
    return rows[np.isfinite(rows).all(axis=1)]


def named(figure: Any) -> list[str]:
    """The entries of the legend."""
    if isinstance(figure, Figure):
        return [text.get_text().removeprefix(" ") for legend in figure.legends for text in legend.get_texts()]
    return [trace.name for trace in figure.data if trace.type != "parcoords" and trace.showlegend]


def note(figure: Any) -> str:
    """What is said in small type."""
    if not isinstance(figure, Figure):
        return next((text.text for text in figure.layout.annotations if text.x == 0), "")
    legend = next(iter(figure.legends), None)
    return figure.get_supxlabel() or (legend.get_title().get_text() if legend else "")


def axis_names(figure: Any, panel: int = 0) -> tuple[str, str]:
    if isinstance(figure, Figure):
        axis = figure.axes[panel]
        return axis.get_xlabel(), axis.get_ylabel()
    axes = (figure.layout[f"{way}axis{panel + 1 if panel else ''}"] for way in "xy")
    x, y = (axis.title.text or "" for axis in axes)
    return x, y


def limits(figure: Any, way: str, panel: int = 0) -> tuple[float, float]:
    """Where an axis begins and ends, in its own units."""
    if isinstance(figure, Figure):
        low, high = getattr(figure.axes[panel], f"get_{way}lim")()
        return low, high
    axis = figure.layout[f"{way}axis{panel + 1 if panel else ''}"]
    low, high = (10**end if axis.type == "log" else end for end in axis.range)
    return low, high


def ticks(figure: Any, way: str, panel: int = 0) -> list[str]:
    if isinstance(figure, Figure):
        return [text.get_text() for text in getattr(figure.axes[panel], f"get_{way}ticklabels")()]
    return list(figure.layout[f"{way}axis{panel + 1 if panel else ''}"].ticktext)


def _printed(figure: Figure, name: str, panel: int) -> list[Any]:
    axis, points = figure.axes[panel], []
    for artist in [*axis.lines, *axis.collections, *axis.containers]:
        label = artist.get_label()
        if ("" if label.startswith("_") else label) != name:
            continue
        if isinstance(artist, LineCollection):
            points += [point for segment in artist.get_segments() for point in segment]
        elif isinstance(artist, PolyCollection):
            points += [point for path in artist.get_paths() for point in path.vertices]
        elif hasattr(artist, "patches"):
            points += [(bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in artist.patches]
        else:
            points += list(zip(artist.get_xdata(), artist.get_ydata(), strict=True))
    return points


def _interactive(figure: Any, name: str, panel: int) -> list[Any]:
    place = f"x{panel + 1 if panel else ''}"
    traces = [trace for trace in figure.data if trace.name == name and trace.xaxis in (place, None)]
    return [
        (np.nan if x is None else x, np.nan if y is None else y)
        for trace in traces
        for x, y in zip(trace.x, trace.y, strict=True)
    ]
