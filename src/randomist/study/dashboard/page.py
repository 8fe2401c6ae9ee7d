"""The page: one shell, with the numbers inside (a static export) or fetched as they change (served)."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from string import Template
from typing import Any

from randomist import __version__

SCRIPTS = ("base.js", "chart.js", "panels.js", "study.js", "overview.js", "live.js")  # in the order in which they run
STYLE = "dashboard.css"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
STATIC_CSP = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


@cache
def asset(name: str) -> str:
    """A file that belongs to the page."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def live_page(public: bool = False) -> str:
    """The shell that a service serves; everything else comes from it. `public`: reading needs no token."""
    return Template(asset("page.html")).substitute(
        public="true" if public else "false",
        policy="",
        style=f'<link rel="stylesheet" href="static/{STYLE}?{__version__}">',
        data="null",
        scripts="\n".join(f'<script src="static/{name}?{__version__}" defer></script>' for name in SCRIPTS),
    )


def static_page(snapshot: dict[str, Any]) -> str:
    """One file that needs nothing else."""
    data = json.dumps(snapshot, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Template(asset("page.html")).substitute(
        public="true",
        policy=f'<meta http-equiv="Content-Security-Policy" content="{STATIC_CSP}">',
        style=f"<style>{asset(STYLE)}</style>",
        data=data,
        scripts="\n".join(f"<script>{asset(name)}</script>" for name in SCRIPTS),
    )
