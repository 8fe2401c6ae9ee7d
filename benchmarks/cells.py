"""The cells of a table on disk, a line of JSON each: what is finished is not run again, and a kill loses one cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Cell = tuple[Any, ...]  # text and numbers that name it
Row = dict[str, Any]  # what was measured


def finished(path: Path) -> dict[Cell, Row]:
    """The cells of a file; a line that a kill left incomplete is passed over."""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        rows[tuple(row.pop("cell"))] = row
    return rows


def run(
    cells: Sequence[Cell], do: Callable[[Cell], Row], path: Path, jobs: int = 1, again: Iterable[Cell] = ()
) -> dict[Cell, Row]:
    """The rows of all cells: those of the file but for `again`, the others by `do`, written as they come."""
    from joblib import Parallel, delayed

    rows, repeated = finished(path), set(again)
    missing = [cell for cell in cells if cell not in rows or cell in repeated]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        if file.tell() and not path.read_text(encoding="utf-8").endswith("\n"):
            file.write("\n")
        results = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(_named)(do, cell) for cell in missing)
        for cell, row in results:
            rows[cell] = row
            file.write(json.dumps({"cell": cell, **row}) + "\n")
            file.flush()
    return {cell: rows[cell] for cell in cells}


def _named(do: Callable[[Cell], Row], cell: Cell) -> tuple[Cell, Row]:
    """On one thread: threads that wait for each other would count as CPU time."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return cell, do(cell)
