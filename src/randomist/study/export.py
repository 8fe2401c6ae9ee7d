"""The whole history as text: one trial a line, as JSON or CSV, page by page, so that length costs no memory."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from randomist._json import for_json
from randomist.spaces import Finite
from randomist.study.records import StudyTrial
from randomist.study.study import Study

Format = Literal["jsonl", "csv"]
FORMATS: dict[str, str] = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
PAGE = 5000


def lines(study: Study, format_: Format = "jsonl") -> Iterator[str]:
    """Pieces of the text, with the names of decisions where they have some. In CSV, points are JSON lists, and each
    parameter with a name has a column; log-likelihoods are a JSON object by the policies' names.
    """
    space = study.space
    named = isinstance(space, Finite) and bool(space.names)
    meaning = None if isinstance(space, Finite) else space.meaning
    columns = tuple(field for field in StudyTrial._fields if field != "parameters")
    if format_ == "csv":
        heads = (*columns, *(["name"] if named else []), *([] if meaning is None else meaning.names))
        yield _row([_cell(head) for head in heads])
    first = 0
    while page := study.trials(first=first, limit=PAGE):
        first = page[-1].id + 1
        records = [plain(trial) for trial in page]
        if named:
            names = study.names  # there may be more by now
            records = [record | {"name": names[record["decision"]]} for record in records]
        if format_ == "csv":
            flat = [{k: v for k, v in r.items() if k != "parameters"} | (r["parameters"] or {}) for r in records]
            dumped = (list, dict)
            cells = ([json.dumps(v) if isinstance(v, dumped) else _cell(v) for v in r.values()] for r in flat)
            yield "".join(map(_row, cells))
        else:
            yield "".join(json.dumps(record) + "\n" for record in records)


def plain(trial: StudyTrial) -> dict[str, Any]:
    """A trial as JSON: a log-likelihood of -inf is null."""
    record = {name: for_json(value) for name, value in trial._asdict().items()}
    if trial.log_likelihoods is not None:
        known = trial.log_likelihoods.items()
        record["log_likelihoods"] = {name: value if math.isfinite(value) else None for name, value in known}
    return record


def _row(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
