"""Files from strangers: whatever a file says of itself, it is read in bounded memory, or refused by name."""

from __future__ import annotations

import gzip
import json
import os
import socket
import struct
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import randomist as rd
from randomist import errors
from randomist.logs import trouble
from randomist.logs.parquet import row_groups

HEAD = b"payoff,log_likelihood:a,log_likelihood:b,logger\n"
ROW = b"0.5,-0.1,-0.2,a\n"
MOST = 900  # MB that reading may take; 250 of them are libraries


def table(rows=40):
    rng = np.random.default_rng(0)
    likelihoods = {f"log_likelihood:{name}": -rng.random(rows) for name in "ab"}
    return {"payoff": rng.random(rows), **likelihoods, "logger": ["a", "b"] * (rows // 2)}


# Parquet by hand: what no writer would write.


def varint(n):
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def thrift(*fields):
    """A struct of the compact protocol: integers, texts, structs as bytes in a tuple, and lists of these."""
    packed, last = b"", 0
    for number, value in fields:
        if isinstance(value, int):
            kind, content = 6, varint(value * 2)
        elif isinstance(value, str):
            kind, content = 8, varint(len(value)) + value.encode()
        elif isinstance(value, tuple):
            kind, content = 12, value[0]
        else:
            inner = {int: 5, str: 8, tuple: 12}[type(value[0])]
            parts = [
                v[0] if inner == 12 else varint(2 * v) if inner == 5 else varint(len(v)) + v.encode() for v in value
            ]
            kind, content = 9, bytes([len(value) << 4 | inner]) + b"".join(parts)
        packed, last = packed + bytes([number - last << 4 | kind]) + content, number
    return packed + b"\0"


def parquet(path, values, rows=None, said=None, names=("payoff", "log_likelihood:a", "log_propensity")):
    """A file of columns that hold one number each, `values` times; it says that these are `rows`, or `said`."""
    rows, said = rows or values, said or rows or values
    body, chunks = b"PAR1", []
    for name in names:
        start = len(body)
        one = struct.pack("<d", 0.5 if name == "payoff" else -0.5)
        body += thrift((1, 2), (2, 8), (3, 8), (7, (thrift((1, 1), (2, 0)),))) + one
        page, run = len(body), b"\1" + varint(values * 2) + b"\0"
        body += thrift((1, 0), (2, len(run)), (3, len(run)), (5, (thrift((1, values), (2, 8), (3, 3), (4, 3)),))) + run
        meta = [(1, 5), (2, [0, 8]), (3, [name]), (4, 0), (5, rows), (6, len(body) - start), (7, len(body) - start)]
        chunks.append((thrift((2, start), (3, (thrift(*meta, (9, page), (11, start)),))),))
    leaves = [(thrift((1, 5), (3, 0), (4, name)),) for name in names]
    group = (thrift((1, chunks), (2, len(body)), (3, rows)),)
    footer = thrift((1, 1), (2, [(thrift((4, "schema"), (5, len(names))),), *leaves]), (3, said), (4, [group]))
    path.write_bytes(body + footer + struct.pack("<I", len(footer)) + b"PAR1")
    return path


def packed(path, *parts, level=6):
    with gzip.open(path, "wb", level) as file:
        for part, times in parts:
            for _ in range(times):
                file.write(part)
    return path


def one_long_text(path):
    with path.open("wb") as file:
        file.write(HEAD + b"0.5,-0.1,-0.2,")
        file.truncate(2**35)  # a sparse file takes no room
    return path


MILLION = (ROW * 2**16, 1)
BOMBS = {  # a file, whether it is refused by `rd.Log` too, and words
    "rows.parquet": (lambda path: parquet(path, 2**31 - 1), True, "max_rows="),
    "values.parquet": (lambda path: parquet(path, 2**31 - 1, 10), True, "max_bytes="),
    "said.parquet": (lambda path: parquet(path, 10, 10, 2**40), True, "max_rows="),
    "group.parquet": (lambda path: parquet(path, 10, 2**40), True, "max_rows="),
    "wide.parquet": (lambda path: parquet(path, 10**8), True, "max_"),
    "text.csv": (one_long_text, True, "a row of more than|max_bytes="),
    "text.csv.gz": (
        lambda path: packed(path, (HEAD + b"0,0,0,", 1), (b"a" * 2**20, 2000)),
        True,
        "a row of more|max_b",
    ),
    "quote.csv.gz": (lambda path: packed(path, (HEAD + b'"', 1), (MILLION[0], 2000)), True, "a row of more|max_bytes="),
    "rows.csv.gz": (lambda path: packed(path, (HEAD, 1), (MILLION[0], 310)), False, "max_rows="),
    "short.csv.gz": (lambda path: packed(path, (b"payoff\n", 1), (b"1\n" * 500_000, 260)), True, "max_rows=|no column"),
    "ragged.csv": (
        lambda path: path.write_bytes(HEAD[:-1] + b",x" * 10_000 + b"\n" * 10**6),
        True,
        "lack fields|max_b",
    ),
}

READ = """
import json, resource, sys, threading
import randomist as rd
from randomist import errors
limit = 6 * 2**30  # what goes wrong ends this process, and nothing else
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
path, door = sys.argv[1:]
try:
    if door == "table":
        rd.Log.from_table(path, policies={"new": "log_likelihood:a"}, propensity="log_propensity")
    else:
        rd.Log(path)
    said = ""
except errors.LogError as error:
    said = str(error)
with open("/proc/self/status") as status:  # of this process; `getrusage` has what the one that forked it had, too
    most = next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([said, most]))
"""


@pytest.mark.parametrize("door", ["log", "table"])
@pytest.mark.parametrize("name", BOMBS)
def test_files_that_unpack_to_all_memory_are_refused_or_read_in_pieces(tmp_path, name, door):
    make, refused, words = BOMBS[name]
    make(tmp_path / name)
    begun = time.monotonic()
    command = [sys.executable, "-c", READ, str(tmp_path / name), door]
    found = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"POLARS_MAX_THREADS": "2"})
    assert found.returncode == 0, found.stderr[-2000:]
    said, most = json.loads(found.stdout)
    print(name, door, most, "MB", round(time.monotonic() - begun, 1), "s", said)
    assert most < MOST
    if refused or door == "table":
        assert any(word in said for word in words.split("|")), said
        assert str(tmp_path / name) in said or "no column" in said


def test_long_texts_in_a_small_parquet_file_count_as_they_are(tmp_path):
    columns = {"payoff": [0.5] * 4, "log_likelihood:a": [-0.5] * 4, "log_propensity": [-0.5] * 4}
    path = tmp_path / "text.parquet"
    pl.DataFrame(columns | {"text": [letter * 2**26 for letter in "abcd"]}).write_parquet(path, compression="zstd")
    assert path.stat().st_size < 2**20
    for read in (rd.Log, rd.Log.from_table):
        with pytest.raises(errors.LogError, match=r"text\.parquet is too large.*max_bytes=200.*--max-bytes"):
            read(path, max_bytes=2 * 10**8)
    assert len(rd.Log(path, max_bytes=3 * 10**8)) == 4


def test_what_parquet_says_is_what_it_takes(tmp_path):
    frame = pl.DataFrame(table(1000) | {"steps": [[1.0, 2.0, 3.0]] * 1000, "flag": [True] * 1000})
    frame.write_parquet(tmp_path / "log.parquet", row_group_size=300)
    groups = row_groups(tmp_path / "log.parquet")
    assert sum(group.rows for group in groups) == 1000
    assert [group.rows for group in groups] == [300, 300, 300, 100]
    assert frame.estimated_size() / 1.5 < sum(group.bytes for group in groups) < 3 * frame.estimated_size()
    by_hand = parquet(tmp_path / "hand.parquet", 5)
    assert pl.read_parquet(by_hand)["payoff"].to_list() == [0.5] * 5  # the writer of these tests writes Parquet


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_limits_are_what_one_says(tmp_path, suffix):
    path = tmp_path / f"log.{suffix}"
    frame = pl.DataFrame(table(1000))
    if suffix == "parquet":
        frame.write_parquet(path)
    else:
        packed(path, (frame.write_csv().encode(), 1)) if suffix == "csv.gz" else frame.write_csv(path)
    asked = {"policies": {"new": "log_likelihood:b"}, "logger": "logger"}
    for read, settings in ((rd.Log, {}), (rd.Log.from_table, asked)):
        assert len(read(path, max_rows=1000, max_bytes=2**20, **settings)) == 1000
        with pytest.raises(errors.LogError, match=r"1,000 rows or more, and at most max_rows=999.*--max-rows"):
            read(path, max_rows=999, **settings)
        for wrong in ({"max_rows": 0}, {"max_bytes": "1 GB"}):
            with pytest.raises(errors.ParameterError, match="must be a whole number"):
                read(path, **wrong, **settings)
    with pytest.raises(errors.LogError, match=r"as a table it takes.*max_bytes=1,000; .*--max-bytes"):
        rd.Log.from_table(path, max_bytes=1000, **asked)


# Whatever cannot be read is a LogError that names the file.


def pipe(path):
    os.mkfifo(path)


def bound(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def good(path):
    pl.DataFrame(table(2000)).write_parquet(path)
    return path.read_bytes()


def flipped(path):
    content = bytearray(good(path))
    content[20:400] = bytes(380)
    path.write_bytes(content)


def csv(path):
    return pl.DataFrame(table(2000)).write_csv().encode()


UNREADABLE = {
    "pipe.csv": pipe,
    "pipe.parquet": pipe,
    "pipe.csv.gz": pipe,
    "socket.csv": bound,
    "device.csv": lambda path: path.symlink_to("/dev/zero"),
    "loop.csv": lambda path: path.symlink_to(path),
    "folder.csv": lambda path: path.mkdir(),
    "folder": lambda path: path.mkdir(),
    "nested": lambda path: (path.mkdir(), pipe(path / "log.parquet")),
    "empty.csv": lambda path: path.touch(),
    "empty.parquet": lambda path: path.touch(),
    "empty.csv.gz": lambda path: path.write_bytes(gzip.compress(b"")),
    "cut.parquet": lambda path: path.write_bytes(good(path)[:-300]),
    "middle.parquet": lambda path: path.write_bytes(good(path)[:700] + good(path)[-700:]),
    "magic.parquet": lambda path: path.write_bytes(b"PAR1" * 100),
    "csv.parquet": lambda path: path.write_bytes(csv(path)),
    "flipped.parquet": flipped,
    "latin.csv": lambda path: path.write_bytes(csv(path) + "0.5,-1,-1,é\n".encode("latin-1")),
    "utf-16.csv": lambda path: path.write_bytes(csv(path).decode().encode("utf-16")),
    "ragged.csv": lambda path: path.write_bytes(csv(path) + b"0.5,-1,-1,a,and more\n"),
    "plain.csv.gz": lambda path: path.write_bytes(csv(path)),
    "packed.csv": lambda path: path.write_bytes(gzip.compress(csv(path))),
    "zstd.csv": lambda path: path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100)),
    "cut.csv.gz": lambda path: path.write_bytes(gzip.compress(csv(path))[:-2000]),
    "flipped.csv.gz": lambda path: path.write_bytes(gzip.compress(csv(path))[:500] + b"x" * 500),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path, name):
    UNREADABLE[name](tmp_path / name)
    asked = {"policies": {"new": "log_likelihood:b"}, "logger": "logger"}
    for read, settings in ((rd.Log, {}), (rd.Log.from_table, asked)):
        with pytest.raises(errors.LogError) as caught:
            read(tmp_path / name, **settings)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_a_file_that_one_may_not_read_is_an_error_that_names_it(tmp_path):
    good(tmp_path / "log.parquet")
    (tmp_path / "log.parquet").chmod(0)
    with pytest.raises(errors.LogError, match="permission denied"):
        rd.Log(tmp_path / "log.parquet")


def test_a_missing_file_is_a_log_error_and_a_missing_file(tmp_path):
    for name in ("none.csv", "none.parquet", "none[1].csv", "none-*.parquet", "none/none.csv"):
        with pytest.raises(errors.NoSuchLogError, match=r"no such log: .*none"):
            rd.Log(tmp_path / name)
        with pytest.raises(FileNotFoundError):
            rd.Log.from_table(tmp_path / name)


@pytest.mark.parametrize("odd", ["odd[1]", "odd*", "odd?", "odd%31", "~", "{1}", "a:b", "\u00e9 \n\t"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ""])
def test_a_path_that_exists_is_that_file(tmp_path, odd, suffix, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name, payoff):
        frame = pl.DataFrame(table() | {"payoff": [payoff] * 40})
        path = tmp_path / (name + suffix)
        if suffix:
            frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
        else:
            path.mkdir()
            frame.write_parquet(path / "part.parquet")

    write(odd, 0.25)
    for other in ("odd1", "oddly", "1"):
        write(other, 0.75)
    asked = {"policies": {"new": "log_likelihood:b"}, "logger": "logger"}
    for path in (odd + suffix, tmp_path / (odd + suffix)):
        assert set(rd.Log(path).arrays().payoffs) == {0.25}
        assert set(rd.Log.from_table(path, **asked).arrays().payoffs) == {0.25}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_patterns_and_folders_are_all_their_files_in_order(tmp_path, suffix):
    frame = pl.DataFrame(table() | {"id": np.arange(40)})
    for i in range(4):
        path = tmp_path / "days" / f"day={i}" / f"part-{i}{suffix}"
        path.parent.mkdir(parents=True)
        part = frame[10 * i : 10 * i + 10]
        part.write_parquet(path) if suffix == ".parquet" else path.write_bytes(
            gzip.compress(part.write_csv().encode()) if suffix == ".csv.gz" else part.write_csv().encode()
        )
    sources = [tmp_path / "days" / "*" / f"part-*{suffix}", tmp_path / "days" / "**" / f"*{suffix}"]
    asked = {"policies": {"new": "log_likelihood:b"}, "logger": "logger"}
    for source in [*sources, tmp_path / "days"] if suffix == ".parquet" else sources:
        assert rd.Log(source).arrays().payoffs.tolist() == frame["payoff"].to_list()
        assert rd.Log.from_table(source, **asked).arrays().payoffs.tolist() == frame["payoff"].to_list()
        with pytest.raises(errors.LogError, match="max_rows=39"):
            rd.Log(source, max_rows=39)
    if suffix == ".parquet":
        log = rd.Log(tmp_path / "days")
        assert [part.to_list() for part in log.column("day")] == [[i for i in range(4) for _ in range(10)]]
        (tmp_path / "days" / "_temporary").mkdir()
        (tmp_path / "days" / "_temporary" / "half.parquet").write_bytes(b"PAR1")
        assert len(rd.Log(tmp_path / "days")) == 40


def test_a_gzip_file_of_two_members_is_both(tmp_path):
    content = pl.DataFrame(table()).write_csv().encode()
    half = content.index(b"\n", 700) + 1
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]))
    assert len(rd.Log(tmp_path / "log.csv.gz")) == 40


def test_quoted_texts_with_ends_of_lines_are_read(tmp_path):
    frame = pl.DataFrame(table(2000) | {"said": ['one "word"\n' * 50] * 2000})
    frame.write_csv(tmp_path / "log.csv")
    assert len(rd.Log(tmp_path / "log.csv")) == 2000


def test_a_table_may_have_nothing_but_what_the_log_has():
    columns = {name: values for name, values in table().items() if name != "log_likelihood:b"}
    log = rd.Log.from_table(columns, policies={"a": "log_likelihood:a"}, logger="logger", skip_bad_rows=True)
    assert log.arrays().payoffs.tolist() == [
        y for y, name in zip(columns["payoff"], columns["logger"], strict=True) if name == "a"
    ]


def test_copies_of_long_logs_are_counted_in_bounded_memory(monkeypatch):
    rng = np.random.default_rng(0)
    hashes = rng.integers(-(2**63), 2**63 - 1, 40_000)
    for times in (1, 3):
        all_, few = trouble.Hashes(), trouble.Hashes()
        for part in np.array_split(np.tile(hashes, times), 13):
            all_.add(part)
        monkeypatch.setattr(trouble, "_HASHES", 2**11)
        for part in np.array_split(np.tile(hashes, times), 13):
            few.add(part)
            assert few._kept <= 2**12
        monkeypatch.undo()
        assert all_.copies() == few.copies() == (times, 0.0)
