"""Where a log comes from: Parquet, CSV, data frames or arrays, as one lazy query that is read in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from randomist.errors import LogError

Source: TypeAlias = "str | Path | pl.LazyFrame | pl.DataFrame | Mapping[str, Any]"

PREFIX = "log_likelihood:"
SLICE_ROWS = 2**18
_AHEAD = "POLARS_ROW_GROUP_PREFETCH_SIZE"
PAYOFF, LOGGER, PROPENSITY, ID, ADAPTIVE = "payoff", "logger", "log_propensity", "id", "adaptive"
CUTS = 4  # floors that models are cut to: a half, a quarter, ... of what no weight exceeds
UNUSUAL, MODEL = "unusual row", "model expects "  # by `Log.from_table`; spaces keep them apart from others


def is_parquet(source: Source) -> bool:
    """Whether any rows can be found without reading all before them."""
    return isinstance(source, str | Path) and (Path(source).suffix in (".parquet", ".pq") or Path(source).is_dir())


def open_source(source: Source) -> pl.LazyFrame:
    """A lazy query over every row, in order. Nothing is read yet but names and types."""
    if isinstance(source, pl.LazyFrame):
        return source
    if isinstance(source, pl.DataFrame):
        return source.lazy()
    if isinstance(source, Mapping):
        return _of_arrays(source).lazy()
    path = Path(source)
    kind = "".join(path.suffixes[-2:]) if path.suffix in (".gz", ".zst") else path.suffix
    if path.is_dir() or kind in (".parquet", ".pq"):
        if not path.exists() and "*" not in path.name:
            raise FileNotFoundError(f"no such log: {path}")
        return pl.scan_parquet(path)
    if kind in (".csv", ".csv.gz", ".csv.zst"):
        if not path.exists() and "*" not in path.name:
            raise FileNotFoundError(f"no such log: {path}")
        return pl.scan_csv(path, infer_schema=False)  # as text: what is not a number is found, and its row named
    raise LogError(f"{path} is neither Parquet (.parquet, or a folder of such) nor CSV (.csv): convert it")


def _of_arrays(columns: Mapping[str, Any]) -> pl.DataFrame:
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


def schema(query: pl.LazyFrame) -> dict[str, pl.DataType]:
    """Names and types of the columns."""
    try:
        return dict(query.collect_schema())
    except pl.exceptions.PolarsError as error:
        raise LogError(f"the log cannot be read: {_first_line(error)}") from error


def numbers(name: str, kind: pl.DataType) -> pl.Expr:
    """A column as float64; null where an entry is not a number."""
    if not (kind.is_numeric() or kind in (pl.Boolean, pl.String, pl.Null)):
        raise LogError(f"column {name!r} holds {kind}, and numbers are needed; convert it")
    text = kind == pl.String
    column = pl.col(name).str.strip_chars() if text else pl.col(name)
    return column.cast(pl.Float64, strict=not text).alias(name)


def chunks(query: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
    """The rows of a query in order, some at a time, without ever holding all of them."""
    try:
        if not hasattr(query, "collect_batches"):  # before polars 1.34
            yield from _slices(query, rows)
            return
        with _few_row_groups():
            parts = query.collect_batches(chunk_size=rows, maintain_order=True)
            first = next(parts, None)
        if first is not None:
            yield first
            yield from parts
    except pl.exceptions.PolarsError as error:
        raise LogError(f"the log cannot be read: {_first_line(error)}") from error


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


def collect(query: pl.LazyFrame) -> pl.DataFrame:
    """A query with a small result, streamed."""
    try:
        with _few_row_groups():
            return query.collect(engine="streaming")
    except pl.exceptions.PolarsError as error:
        raise LogError(f"the log cannot be read: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
