"""Sphinx settings: MyST pages, furo, and one autodoc page, with `Parameters` sections as NumPy writes them."""

from __future__ import annotations

import os
import re

from sphinx.util import inspect

import randomist

project = "randomist"
author = "The randomist developers"
copyright = "2026, The randomist developers"
release = version = randomist.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
napoleon_google_docstring = False
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "gallery", "_templates"]

html_theme = "furo"
html_title = f"randomist {release}"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_context = {"versions": [one for one in os.environ.get("DOCS_VERSIONS", "").split(",") if one]}  # see .ci/site
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "sidebar/search.html", "sidebar/scroll-start.html", "sidebar/navigation.html"),
        *("sidebar/versions.html", "sidebar/scroll-end.html"),
    ]
}
html_show_sourcelink = False

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Indices", "LearnerLike", "Space")}
if hasattr(inspect, "TypeAliasForwardRef"):  # how Sphinx 9 would write "Array | None"
    inspect.TypeAliasForwardRef.__repr__ = lambda alias: alias.name


def _as_rst(app, what, name, obj, options, lines):
    """Docstrings are written as plain text with `code`: keep stars, bars and underscores as they are."""
    for i, line in enumerate(lines):
        if line.lstrip().startswith(">>>"):
            break  # an example goes to the end of its docstring
        parts = line.split("`")  # odd entries are code
        if len(parts) % 2:
            plain = [re.sub(r"([*|_\\])", r"\\\1", part) for part in parts]
            lines[i] = "".join(f"``{parts[j]}``" if j % 2 else plain[j] for j in range(len(parts)))


def setup(app):
    app.connect("autodoc-process-docstring", _as_rst)
