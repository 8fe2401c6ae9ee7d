"""The page: one shell, with the numbers inside (a static export) or fetched again and again (served)."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from string import Template
from typing import Any

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STATIC_CSP = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


@cache
def asset(name: str) -> str:
    """A file that belongs to the page; `plotly.js` is the one of the installed package."""
    if name == "plotly.js":
        from plotly.offline import get_plotlyjs

        return str(get_plotlyjs())
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def live_page(public: bool = False) -> str:
    """The shell that a service serves; everything else comes from it. `public`: reading needs no token."""
    return Template(asset("page.html")).substitute(
        public="true" if public else "false",
        policy="",
        style='<link rel="stylesheet" href="static/dashboard.css">',
        data="null",
        scripts='<script src="static/dashboard.js" defer></script>\n<script src="static/plotly.js" defer></script>',
    )


def static_page(snapshot: dict[str, Any]) -> str:
    """One file that needs nothing else."""
    data = json.dumps(snapshot, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Template(asset("page.html")).substitute(
        public="true",
        policy=f'<meta http-equiv="Content-Security-Policy" content="{STATIC_CSP}">',
        style=f"<style>{asset('dashboard.css')}</style>",
        data=data,
        scripts=f"<script>{asset('dashboard.js')}</script>\n<script>{asset('plotly.js')}</script>",
    )
