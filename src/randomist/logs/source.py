"""Where a log comes from: Parquet, CSV, data frames or arrays, as one lazy query that is read in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from randomist.errors import LogError
from randomist.logs import files
from randomist.logs.files import Limits

Source: TypeAlias = "str | Path | pl.LazyFrame | pl.DataFrame | Mapping[str, Any]"

PREFIX = "log_likelihood:"
SLICE_ROWS = 2**18
_AHEAD = "POLARS_ROW_GROUP_PREFETCH_SIZE"
PAYOFF, LOGGER, PROPENSITY, ID, ADAPTIVE = "payoff", "logger", "log_propensity", "id", "adaptive"
CUTS = 4  # floors that models are cut to: a half, a quarter, ... of what no weight exceeds
UNUSUAL, MODEL = "unusual row", "model expects "  # by `Log.from_table`; spaces keep them apart from others


@dataclass(frozen=True, eq=False)
class Scan:
    """A lazy query, and where its rows are, which errors name."""

    query: pl.LazyFrame
    place: str = "the log"

    def select(self, *columns: Any) -> Scan:
        return Scan(self.query.select(*columns), self.place)

    def schema(self) -> dict[str, pl.DataType]:
        """Names and types of the columns."""
        with self._reading():
            return dict(self.query.collect_schema())

    def collect(self) -> pl.DataFrame:
        """All rows, where these are few, streamed."""
        with self._reading(), _few_row_groups():
            return self.query.collect(engine="streaming")

    def part(self, start: int, rows: int) -> pl.DataFrame:
        """Some consecutive rows."""
        with self._reading():
            return self.query.slice(start, rows).collect()

    def chunks(self, rows: int) -> Iterator[pl.DataFrame]:
        """The rows in order, some at a time, without ever holding all of them."""
        with self._reading():
            if not hasattr(self.query, "collect_batches"):  # before polars 1.34
                yield from _slices(self.query, rows)
                return
            with _few_row_groups():
                parts = self.query.collect_batches(chunk_size=rows, maintain_order=True)
                first = next(parts, None)
            if first is not None:
                yield first
                yield from parts

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise LogError(f"{self.place} cannot be read: {said}") from error


def is_parquet(source: Source) -> bool:
    """Whether any rows can be found without reading all before them."""
    return isinstance(source, str | Path) and files.is_folder_or_parquet(Path(source))


def open_source(source: Source, limits: Limits, texts: bool = True) -> Scan:
    """Every row, in order: of a file no more than the limits. Nothing is held but names and types.

    All columns of a CSV are `texts`, so that what is not a number is found and its row named; or types are guessed.
    """
    if isinstance(source, pl.LazyFrame):
        return Scan(source)
    if isinstance(source, pl.DataFrame):
        return Scan(source.lazy())
    if isinstance(source, Mapping):
        return Scan(of_arrays(source).lazy())
    path = Path(source)
    found = files.found(path, limits)
    if found[0].suffix not in files.PARQUET:
        guessed = 0 if texts else 10_000
        query = pl.scan_csv(found, infer_schema=not texts, infer_schema_length=guessed, glob=False)
        return Scan(query, str(path))
    if len(found) > 1:
        _check_schemas(found)
    return Scan(pl.scan_parquet(found, glob=False, hive_partitioning=_is_hive(path, found)), str(path))


def _is_hive(path: Path, found: list[Path]) -> bool:
    """Whether folders below the path say what a column holds, as in year=2025."""
    return path.is_dir() and any("=" in name for name in found[0].relative_to(path.absolute()).parts[:-1])


def _check_schemas(found: list[Path]) -> None:
    first, *others = (Scan(pl.scan_parquet(file, glob=False), str(file)).schema() for file in found)
    for file, schema in zip(found[1:], others, strict=True):
        if schema != first:
            unlike = sorted(name for name in {*schema, *first} if schema.get(name) != first.get(name))
            raise LogError(
                f"{file.name} has other columns than {found[0].name} ({', '.join(unlike)}); a folder must have one "
                "schema: convert the files, or give them one by one"
            )


def of_arrays(columns: Mapping[str, Any]) -> pl.DataFrame:
    """A frame of arrays by name."""
    arrays = {name: value if isinstance(value, pl.Series) else np.asarray(value) for name, value in columns.items()}
    for name, array in arrays.items():
        if len(array.shape) != 1:
            raise LogError(f"column {name!r} must have shape (n,), got {array.shape}; give one array per column")
    lengths = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise LogError(f"columns must have as many entries as each other, got {lengths}")
    return pl.DataFrame([_series(name, array) for name, array in arrays.items()])


def _series(name: str, array: Any) -> pl.Series:
    objects = isinstance(array, np.ndarray) and array.dtype.kind == "O"  # None among strings or numbers
    return pl.Series(name, array.tolist() if objects else array, strict=False)


def numbers(name: str, kind: pl.DataType) -> pl.Expr:
    """A column as float64; null where an entry is not a number."""
    if not (kind.is_numeric() or kind in (pl.Boolean, pl.String, pl.Null)):
        raise LogError(f"column {name!r} holds {kind}, and numbers are needed; convert it")
    text = kind == pl.String
    column = pl.col(name).str.strip_chars() if text else pl.col(name)
    return column.cast(pl.Float64, strict=not text).alias(name)


@contextmanager
def _few_row_groups() -> Iterator[None]:
    """Of a Parquet file, polars reads many row groups ahead, which may be most of it: let it read two."""
    given = os.environ.get(_AHEAD)
    os.environ[_AHEAD] = given or "2"
    try:
        yield
    finally:
        if given is None:
            os.environ.pop(_AHEAD, None)


def _slices(query: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
    start, length = 0, max(rows, SLICE_ROWS)
    while (part := query.slice(start, length).collect()).height:
        start += length
        yield from part.iter_slices(rows)
