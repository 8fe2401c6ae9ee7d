"""From a picture to a figure: which library draws it, how it looks, and where it goes."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict

from randomist._checks import choice, number
from randomist.errors import ParameterError
from randomist.plots.marks import Picture
from randomist.plots.style import THEMES

RENDERERS = {"matplotlib": "printed", "plotly": "interactive"}
SUFFIXES = {".png": "matplotlib", ".pdf": "matplotlib", ".svg": "matplotlib", ".html": "plotly"}
WIDTH = 6.8  # inches: two columns of a paper


class Look(TypedDict, total=False):
    """What every function of `rd.plot` takes besides its data.

    backend
        "matplotlib", for a figure to keep, or "plotly", for one to explore. By default what `path` asks for, else
        matplotlib.
    theme
        "light" or "dark".
    width
        Inches: 6.8 by default, 3.4 for one column of a paper. Without it, a plotly figure is as wide as its place.
    title
        A text above, instead of the usual one; "" for none.
    path
        A file to write too: .png, .pdf or .svg with matplotlib, .html with plotly.
    """

    backend: Literal["matplotlib", "plotly"] | None
    theme: Literal["light", "dark"]
    width: float | None
    title: str | None
    path: str | PathLike[str] | None


def draw(
    picture: Picture,
    *,
    backend: str | None = None,
    theme: str = "light",
    width: float | None = None,
    title: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Any:
    """A figure of a library, also written to `path`; `Look` says what the arguments are."""
    file = None if path is None else Path(path)
    library = _backend(backend, file)
    colours = THEMES[choice(theme, THEMES, "theme")]
    inches = None if width is None else number(width, "width", least=1.5, most=40, why=" inches")
    if title is not None:
        if not isinstance(title, str):
            raise ParameterError(f"title must be a text, got {title!r:.80}")
        picture = replace(picture, title=title)
    try:
        import_module(library)
    except ImportError as missing:
        raise ParameterError(
            f"a figure of {library} needs the `run` extra ({missing}); pip install 'randomist[run]'"
        ) from missing
    renderer = import_module(f"randomist.plots.{RENDERERS[library]}")
    figure = renderer.render(picture, colours, inches)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        renderer.save(figure, file)
    return figure


def _backend(backend: Any, file: Path | None) -> str:
    """The library that was asked for, by name or by the file's ending."""
    if backend is not None:
        choice(backend, RENDERERS, "backend")
    if file is None:
        return backend or "matplotlib"
    found = SUFFIXES.get(file.suffix.lower())
    if found is None or backend not in (None, found):
        which = f" with backend={backend!r}" if backend is not None else ""
        known = [suffix for suffix, library in SUFFIXES.items() if backend in (None, library)]
        raise ParameterError(f"path must end in {' or '.join(known)}{which}, got {str(file)!r}")
    return found
