"""The whole history as text: one trial a line, as JSON or CSV, page by page, so that length costs no memory."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any, Literal

from randomist._json import for_json
from randomist.spaces import Finite
from randomist.study.records import StudyTrial
from randomist.study.study import Study

Format = Literal["jsonl", "csv"]
FORMATS: dict[str, str] = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
PAGE = 1000


def lines(study: Study, format_: Format = "jsonl") -> Iterator[str]:
    """Pieces of the text, with the names of decisions where they have some. In CSV, points are JSON lists, and each
    parameter with a name has a column; log-likelihoods are a JSON object by the policies' names.
    """
    first: int | None = 0
    while first is not None:
        text, first = page(study, format_, first)
        yield text


def page(study: Study, format_: Format, first: int) -> tuple[str, int | None]:
    """The lines of the trials from `first` on, and where the next page begins; None where this is the last one."""
    space = study.space
    named = isinstance(space, Finite) and bool(space.names)
    meaning = None if isinstance(space, Finite) else space.meaning
    trials = study.trials(first=first, limit=PAGE)
    records = [plain(trial) for trial in trials]
    if named:
        names = study.names  # there may be more by now
        records = [record | {"name": names[record["decision"]]} for record in records]
    after = trials[-1].id + 1 if len(trials) == PAGE else None
    if format_ == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records), after
    text = io.StringIO()
    table = csv.writer(text)
    if first == 0:
        columns = [field for field in StudyTrial._fields if field != "parameters"]
        heads = (*columns, *(["name"] if named else []), *([] if meaning is None else meaning.names))
        table.writerow([_cell(head) for head in heads])
    for record in records:
        flat = {key: value for key, value in record.items() if key != "parameters"} | (record["parameters"] or {})
        table.writerow([_cell(value) for value in flat.values()])
    return text.getvalue(), after


def plain(trial: StudyTrial) -> dict[str, Any]:
    """A trial as JSON: a log-likelihood of -inf is null."""
    record = {name: for_json(value) for name, value in trial._asdict().items()}
    if trial.log_likelihoods is not None:
        known = trial.log_likelihoods.items()
        record["log_likelihoods"] = {name: value if math.isfinite(value) else None for name, value in known}
    return record


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets an apostrophe; points and likelihoods are JSON."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
