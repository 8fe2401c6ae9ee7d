"""Tables as people have them: pandas, polars, Arrow, DuckDB, CSV, Parquet, folders of Parquet; as one polars frame."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from randomist.errors import LogError
from randomist.logs import source as sources
from randomist.logs.files import Limits


def read_frame(source: Any, limits: Limits) -> pl.DataFrame:
    """All of a table, in memory."""
    if isinstance(source, str | Path | pl.LazyFrame | pl.DataFrame | Mapping):
        return sources.open_source(source, limits, texts=False).collect()
    return _read_foreign(source)


def _read_foreign(source: Any) -> pl.DataFrame:
    """Frames of other libraries: by narwhals, which knows them, or by the Arrow C stream that most of them speak."""
    import narwhals as nw

    try:
        native = nw.from_native(source)
    except TypeError:
        if not hasattr(source, "__arrow_c_stream__"):
            raise LogError(
                f"{type(source).__module__}.{type(source).__qualname__} is no table that can be read; give a frame of "
                "pandas, polars, pyarrow or DuckDB, columns by name, or the path of a CSV or Parquet file"
            ) from None
        return pl.DataFrame(source)
    if isinstance(native, nw.LazyFrame):
        return pl.DataFrame(native.collect("polars").to_native())
    if hasattr(source, "__arrow_c_stream__") and not native.implementation.is_pandas():
        return pl.DataFrame(source)
    return sources.of_arrays({name: native[name].to_numpy() for name in native.columns})


def as_given(source: Any, frame: pl.DataFrame) -> Any:
    """What functions and models of the user's see: the frame that was given, if it was one in memory."""
    import narwhals as nw

    return source if isinstance(nw.from_native(source, eager_only=True, pass_through=True), nw.DataFrame) else frame


def columns_of(frame: pl.DataFrame, names: Iterable[str]) -> list[str]:
    """The names, if all are columns; else an error that says which are near."""
    wanted = list(names)
    for name in wanted:
        if name not in frame.columns:
            near = difflib.get_close_matches(str(name), frame.columns, n=3)
            hint = (
                f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(frame.columns)[:500]}"
            )
            raise LogError(f"the table has no column {name!r}; {hint}")
    return wanted


def as_numbers(frame: pl.DataFrame, name: str) -> pl.Series:
    """A column as float64; null where an entry is not a number."""
    return frame.select(sources.numbers(name, frame.schema[name]))[name]
