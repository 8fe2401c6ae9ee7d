"""Files of logs, as strangers send them: which they are and what they unpack to, before anything is read.

A path that exists is that file, never a pattern. Text is looked through once in pieces, unpacked on the way: readers
hold a record as a whole, so one that does not end takes all memory. Parquet says what it unpacks to: see `parquet`.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import IO, NamedTuple, cast

from randomist._checks import whole_number
from randomist._files import check_regular
from randomist.errors import LogError, NoSuchLogError
from randomist.logs.parquet import row_groups

PARQUET = (".parquet", ".pq")
MOST_ROWS = 2 * 10**8  # of a log, which is read in chunks
MOST_BYTES = 2**30  # in memory at a time
TABLE_ROWS, TABLE_BYTES = 2 * 10**7, 2**31  # of a table, which is held in memory, with columns that are made of it

_PIECE = 2**20  # bytes
_RECORD = 2**24  # bytes of a row of text; it is found to be longer within a few pieces
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PACKED = (b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")  # zstd, zlib: polars unpacks them


class Limits(NamedTuple):
    """What a file may unpack to: rows in all, and bytes in memory at a time, which is all of a table."""

    rows: int
    bytes: int
    table: bool = False


def limits_of(max_rows: int, max_bytes: int, table: bool = False) -> Limits:
    """The limits that a user gave, checked."""
    return Limits(whole_number(max_rows, "max_rows"), whole_number(max_bytes, "max_bytes"), table)


def is_folder_or_parquet(path: Path) -> bool:
    return path.suffix in PARQUET or path.is_dir()


def found(path: Path, limits: Limits) -> list[Path]:
    """The files of a path, all Parquet or all CSV, which unpack to no more than the limits."""
    files = [file.absolute() for file in _named(path)]  # where no reader finds a pattern, a scheme or a home
    if all(file.suffix in PARQUET for file in files):
        _check_parquet(path, files, limits)
    elif all("".join(file.suffixes).endswith((".csv", ".csv.gz")) for file in files):
        _check_text(path, files, limits)
    else:
        raise LogError(f"{path} is neither Parquet (.parquet, or a folder of such) nor CSV (.csv, .csv.gz): convert it")
    return files


def _named(path: Path) -> list[Path]:
    matched = [] if os.path.lexists(path) else sorted(map(Path, glob(str(path), recursive=True)))
    return [file for one in matched or [path] for file in (_inside(one) if one.is_dir() else [one])]


def _inside(folder: Path) -> list[Path]:
    """All Parquet files in a folder, but for what is hidden, or still being written."""

    def refuse(error: OSError) -> None:
        raise LogError(f"{folder} cannot be read: {error}") from error

    files = []
    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if name[0] not in "._"]
        files += [Path(place, name) for name in names if Path(name).suffix in PARQUET and name[0] not in "._"]
    if not files:
        raise LogError(f"{folder} has no .parquet file; give a folder of Parquet files, or one file")
    return sorted(files)


def _check_parquet(path: Path, files: list[Path], limits: Limits) -> None:
    for file in files:
        _check_file(file)
    groups = [group for file in files for group in row_groups(file)]
    sizes = [group.bytes for group in groups]
    _check_rows(path, sum(group.rows for group in groups), limits)
    _check_bytes(path, sum(sizes) if limits.table else max(sizes, default=0), limits, "write smaller row groups")


def _check_text(path: Path, files: list[Path], limits: Limits) -> None:
    rows = size = 0
    for file in files:
        _check_file(file)
        lines = characters = columns = 0
        for piece, lines_ in _pieces(file):
            if not characters:
                columns = piece.partition(b"\n")[0].count(b",") + 1
            characters, lines = characters + len(piece), lines + lines_
            _check_rows(path, rows + lines - 1, limits)
            if limits.table:  # numbers take eight bytes, and texts are as long as they are
                _check_bytes(path, size + characters + 8 * columns * lines, limits, "write Parquet")
        if lines * columns > characters + columns:  # a field has a comma or the end of a line behind it
            raise LogError(
                f"{file} cannot be read: {lines:,} rows of {columns:,} columns do not fit in {characters:,} "
                "characters, so most lack fields; write as many fields in each row as there are columns"
            )
        rows, size = rows + lines - 1, size + characters + 8 * columns * lines


def _pieces(file: Path) -> Iterator[tuple[bytes, int]]:
    """A file of text piece by piece, with the number of lines in each."""
    open_bytes, quoted, ended = 0, False, True
    try:
        with _opened(file) as stream:
            while piece := stream.read(_PIECE):
                parts = piece.split(b'"')  # ends of lines count between quotes, not within
                ends = any(b"\n" in part for part in parts[int(quoted) :: 2])
                quoted ^= len(parts) % 2 == 0
                open_bytes = 0 if ends else open_bytes + len(piece)
                if open_bytes > _RECORD:
                    raise LogError(
                        f"{file} cannot be read: it has a row of more than {_RECORD:,} characters, as a quotation mark "
                        "without a second one makes; mend that row"
                    )
                ended = piece.endswith(b"\n")
                yield piece, piece.count(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"{file} cannot be read: {error}; it is damaged: pack or copy it anew") from error
    if not ended:
        yield b"", 1  # the last line


def _opened(file: Path) -> IO[bytes]:
    with file.open("rb") as start:
        magic = start.read(4)
    if magic.startswith(_PACKED):
        raise LogError(f"{file} is packed in a way that is not read; unpack it, or pack it with gzip (.csv.gz)")
    if magic.startswith(_UTF_16):
        raise LogError(f"{file} cannot be read: it is text in UTF-16; save it in UTF-8")
    packed = magic.startswith(_GZIP)
    if packed != (file.suffix == ".gz"):
        said = "is gzip, and its name does not say so" if packed else "is not gzip, as its name says"
        raise LogError(f"{file} cannot be read: it {said}; rename it")
    return cast("IO[bytes]", gzip.open(file)) if packed else file.open("rb")


def _check_file(file: Path) -> None:
    try:
        size = check_regular(file, LogError).st_size
    except FileNotFoundError:
        raise NoSuchLogError(f"no such log: {file}") from None
    if not size:
        raise LogError(f"{file} cannot be read: it is empty; write it anew")


def _check_rows(path: Path, rows: int, limits: Limits) -> None:
    if rows > limits.rows:
        raise LogError(
            f"{path} has {rows:,} rows or more, and at most max_rows={limits.rows:,} are read; raise it (--max-rows) "
            "if the file is to be trusted"
        )


def _check_bytes(path: Path, size: int, limits: Limits, instead: str) -> None:
    if size > limits.bytes:
        what = "as a table it takes" if limits.table else "its largest row group takes"
        raise LogError(
            f"{path} is too large: {what} {size:,} bytes of memory or more, and max_bytes={limits.bytes:,}; raise it "
            f"(--max-bytes) if there is as much memory, or {instead}"
        )
