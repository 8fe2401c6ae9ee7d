"""Files that users name, besides logs: what is no file, too large or not what it should be is a typed error at once."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import randomist as rd
from randomist import errors
from randomist.cli.studies import _json
from randomist.experiments.specs import read_experiment
from randomist.logs import RunningEvaluation


def go_on(path):
    return rd.optimize(lambda x: x, parameters={"x": (0, 1)}, rounds=3, save=path, seed=0)


READERS = {
    "policy": (rd.load_policy, errors.StateError),
    "sums": (RunningEvaluation.load, errors.StateError),
    "experiment": (read_experiment, errors.ParameterError),
    "json": (lambda path: _json(str(path), "--space"), errors.ParameterError),
    "run": (go_on, errors.SavedRunError),
}


def archive(name, claimed, zeros):
    """An array of NumPy's with a few numbers that claims to have many, in an archive."""
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": (claimed,)})

    def write(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(name, array.getvalue() + bytes(zeros))

    return write


STRANGE = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
    "folder": lambda path: path.mkdir(),
    "sparse": lambda path: (path.touch(), os.truncate(path, 2**36)),
    "latin": lambda path: path.write_bytes("[é]".encode("latin-1")),
    "deep": lambda path: path.write_text('{"run": {"a":' + "[" * 10**5 + "\n"),
    "deep list": lambda path: path.write_text("a = " + "[" * 10**5),
    "a number": lambda path: path.write_text('{"run": 5}\n'),
    "no events": lambda path: path.write_text('{"run": {}}\n5\n[]\n'),
    "archive": lambda path: path.write_bytes(b"PK\3\4" + bytes(50)),
    "claims": archive("table.npy", 2**45, 80),
    "bomb": archive("table.npy", 2**27, 2**29),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", STRANGE)
def test_strange_files_are_typed_errors_that_name_them(tmp_path, kind, reader):
    path = Path(tmp_path, "strange")
    STRANGE[kind](path)
    read, error = READERS[reader]
    if (reader, kind) == ("json", "a number"):  # which is JSON
        assert read(path) == {"run": 5}
        return
    with pytest.raises(error) as caught:
        read(path)
    assert str(path) in str(caught.value) or reader == "json"
