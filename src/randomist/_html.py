"""Tables for notebooks: everything is escaped, and long ones are cut."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

MOST = 40  # rows that are shown


def table(caption: str, rows: Sequence[Sequence[Any]], heads: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """A table whose first column names its rows; notes stand below."""
    head = f"<thead><tr>{''.join(f'<th>{escape(word)}</th>' for word in heads)}</tr></thead>" if heads else ""
    body = "".join(_row(row, "right" if heads else "left") for row in rows[:MOST])
    more = [f"and {len(rows) - MOST:,} more"] if len(rows) > MOST else []
    below = "".join(f"<div>{escape(note)}</div>" for note in (*more, *notes))
    return f"<table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table>{below}"


def _row(cells: Sequence[Any], align: str) -> str:
    name, *rest = (escape(f"{cell:.4g}" if isinstance(cell, float) else str(cell)) for cell in cells)
    values = "".join(f'<td style="text-align:{align}">{cell}</td>' for cell in rest)
    return f'<tr><th style="text-align:left">{name}</th>{values}</tr>'
