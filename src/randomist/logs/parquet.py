"""What a Parquet file unpacks to, by its own account: nothing is unpacked, and only headers are read.

The footer tells of row groups and of where their pages are; each page begins with a header that says how many values
it holds and how many bytes. Readers allocate by these numbers, so a file of a kilobyte may ask for all memory: a run
of 2^31 equal values takes ten bytes. Headers are Thrift's compact protocol
(https://github.com/apache/parquet-format).
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, NamedTuple

from randomist.errors import LogError

_MAGIC = b"PAR1"
_LARGEST_FOOTER = 2**26  # bytes; 10^8 rows in groups of 2^18 have one of 2^20
_FIXED = 7  # the type of arrays of bytes that are all of one length
_WIDTHS = {0: 1, 6: 16, _FIXED: 16}  # bytes of a value in memory, where these are not 8: flags, texts


class Group(NamedTuple):
    """A row group: how many rows it has, and how many bytes they take in memory."""

    rows: int
    bytes: int


def row_groups(path: Path) -> list[Group]:
    """The row groups of a file; a LogError where its headers make no sense."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _groups(data, path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise LogError(
            f"{path} cannot be read: it is no Parquet file, or a damaged one ({error}); write it anew"
        ) from error


def _groups(data: mmap.mmap, path: Path) -> list[Group]:
    if len(data) < 12 or data[:4] != _MAGIC or data[-4:] != _MAGIC:
        raise ValueError(f"it does not begin and end with {_MAGIC.decode()}")
    length = int.from_bytes(data[-8:-4], "little")
    if length > min(_LARGEST_FOOTER, len(data) - 12):
        raise ValueError(f"its footer has {length:,} bytes, and at most {_LARGEST_FOOTER:,} are read")
    footer = _Thrift(data[-8 - length : -8]).struct()
    leaves = [element for element in footer[2] if not element.get(5)]
    widths = [max(_WIDTHS.get(leaf[1], 8), leaf.get(2, 0) if leaf[1] == _FIXED else 0) for leaf in leaves]
    groups = [(_natural(group[3]), [chunk[3] for chunk in group[1]]) for group in footer[4]]
    if sum(_natural(chunk[7]) for _, chunks in groups for chunk in chunks) > len(data):
        raise ValueError("its columns are longer than the file")
    found = [
        Group(rows, sum(_unpacked(data, chunk, rows, width) for chunk, width in zip(chunks, widths, strict=True)))
        for rows, chunks in groups
    ]
    more = _natural(footer[3]) - sum(group.rows for group in found)
    return [*found, Group(more, 0)] if more > 0 else found


def _unpacked(data: mmap.mmap, chunk: dict[int, Any], rows: int, width: int) -> int:
    """Bytes of a column in a row group: those of its pages, or those of its values, if these are more."""
    start = chunk[11] if chunk.get(11, 0) > 0 else chunk[9]
    end, page_bytes, values = _natural(start) + chunk[7], 0, 0
    headers = _Thrift(data, start)
    while headers.at < end:
        header = headers.struct()
        headers.at += _natural(header[3])
        page_bytes += _natural(header[2])
        values += sum(_natural(header[kind][1]) for kind in (5, 7, 8) if kind in header)
    return max(page_bytes, max(values, rows, _natural(chunk[5])) * width)


def _natural(value: int) -> int:
    if value < 0:
        raise ValueError(f"it has a size of {value}")
    return value


class _Thrift:
    """Structs of Thrift's compact protocol, as dictionaries by the numbers of fields; texts are left out."""

    def __init__(self, data: bytes | mmap.mmap, at: int = 0) -> None:
        self._data, self.at = data, at

    def struct(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        number = 0
        while byte := self._byte():
            number = number + (byte >> 4) if byte >> 4 else self._signed()
            kind = byte & 15
            found[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return found

    def _value(self, kind: int) -> Any:
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (7, 8, 13):
            size = self._varint() if kind == 8 else 8 if kind == 7 else 16
            self.at += size
            self._data[self.at - 1]  # an IndexError where that is beyond the end
            return None
        if kind in (9, 10):
            byte = self._byte()
            size = byte >> 4 if byte >> 4 < 15 else self._varint()
            return [self._value(byte & 15) for _ in range(size)]
        if kind == 11:
            size = self._varint()
            kinds = self._byte() if size else 0
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(size)]
        if kind == 12:
            return self.struct()
        raise ValueError(f"a field of type {kind}")

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number of more than 64 bits")

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
