"""The whole history as text: one trial a line, as JSON or CSV, page by page, so that length costs no memory."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Literal

from randomist._json import for_json
from randomist.spaces import Finite
from randomist.study.records import StudyTrial
from randomist.study.study import Study

Format = Literal["jsonl", "csv"]
FORMATS: dict[str, str] = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
PAGE = 5000


def lines(study: Study, format_: Format = "jsonl") -> Iterator[str]:
    """Pieces of the text, with the names of decisions where they have some. In CSV, points are JSON lists."""
    space = study.space
    named = isinstance(space, Finite) and bool(space.names)
    if format_ == "csv":
        yield ",".join((*StudyTrial._fields, "name") if named else StudyTrial._fields) + "\r\n"
    first = 0
    while page := study.trials(first=first, limit=PAGE):
        first = page[-1].id + 1
        records = [{name: for_json(value) for name, value in trial._asdict().items()} for trial in page]
        if named:
            names = study.names  # there may be more by now
            records = [record | {"name": names[record["decision"]]} for record in records]
        if format_ == "csv":
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerows([json.dumps(v) if isinstance(v, list) else _cell(v) for v in r.values()] for r in records)
            yield text.getvalue()
        else:
            yield "".join(json.dumps(record) + "\n" for record in records)


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
