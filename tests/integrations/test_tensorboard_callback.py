"""The callback for TensorBoard, read back record by record, and with TensorBoard's own reader where it is installed."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import randomist as rd
from randomist.errors import ParameterError, TrackingWarning
from tests.integrations.tracked import expected, tracked

pytest.importorskip("tensorboardX")

from tensorboardX.proto.event_pb2 import Event

from randomist.integrations.tensorboard import TensorBoardCallback


def events(folder: Path) -> Iterator[Any]:
    """Records of a length, its checksum, an event, and its checksum."""
    (file,) = folder.glob("events.out.tfevents.*")
    content, at = file.read_bytes(), 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        yield Event.FromString(content[at + 12 : at + 12 + length])
        at += 16 + length


def scalars(folder: Path, name: str) -> dict[int, float]:
    return {e.step: v.simple_value for e in events(folder) for v in e.summary.value if v.tag == name}


def text(folder: Path, name: str) -> str:
    (found,) = (v for e in events(folder) for v in e.summary.value if v.tag == f"{name}/text_summary")
    return str(found.tensor.string_val[0].decode())


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_every_round_is_there(tmp_path, direction):
    callback = TensorBoardCallback(tmp_path / "runs")
    run = tracked(callback, direction=direction, confirm=5)
    assert run.failures
    assert callback.path == tmp_path / "runs" / "pays-Auto-1"
    for name, figures in expected(run).items():
        assert scalars(callback.path, name) == pytest.approx(figures, rel=1e-6), name
    assert "| parameter.mode | Choice(options=('a', 'b&#124;c')) |" in text(callback.path, "run")
    assert f"| best.kp | {run.best['kp']} |" in text(callback.path, "best")
    assert f"| its mean payoff | {run.best_payoff} |" in text(callback.path, "best")
    assert run.summary() in text(callback.path, "summary")


def test_tensorboard_reads_it(tmp_path):
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    callback = TensorBoardCallback(tmp_path)
    run = tracked(callback)
    reader = reading.EventAccumulator(str(callback.path))
    reader.Reload()
    for name, figures in expected(run).items():
        assert {e.step: e.value for e in reader.Scalars(name)} == pytest.approx(figures, rel=1e-6)


def test_runs_have_folders_of_their_own(tmp_path):
    callback = TensorBoardCallback(tmp_path)
    for seeds in ([0, 1], [1]):
        rd.optimize_many("illustrative", rounds=5, seeds=seeds, callbacks=[callback])
    names = ["illustrative-Realist-0", "illustrative-Realist-1", "illustrative-Realist-1-2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert all(len(scalars(tmp_path / name, "payoff")) == 5 for name in names)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError("no")])
def test_interrupts_and_errors_close_the_file(tmp_path, error):
    callback, calls = TensorBoardCallback(tmp_path, name="a b"), []

    def stopped(x: float) -> float:
        calls.append(x)
        if len(calls) == 8:
            raise error
        return x

    settings: dict[str, Any] = {"parameters": {"x": (0, 1)}, "rounds": 20, "catch": (OSError,)}
    if isinstance(error, KeyboardInterrupt):
        rd.optimize(stopped, callbacks=[callback], **settings)
        assert "interrupted after 7 of 20 rounds" in text(tmp_path / "a_b", "summary")
    else:
        with pytest.raises(ZeroDivisionError):
            rd.optimize(stopped, callbacks=[callback], **settings)
        assert "ZeroDivisionError('no')" in text(tmp_path / "a_b", "summary")
    assert len(scalars(tmp_path / "a_b", "payoff")) == 7
    assert callback._writer is None


def test_a_writer_that_breaks_does_not_break_the_run(tmp_path):
    callback, calls = TensorBoardCallback(tmp_path), []

    def breaks(x: float) -> float:
        calls.append(x)
        if len(calls) == 6:
            callback._writer.add_scalar = None
        return x

    with pytest.warns(TrackingWarning, match="TensorBoardCallback could not write") as caught:
        run = rd.optimize(breaks, parameters={"x": (0, 1)}, rounds=12, callbacks=[callback])
    assert (len(caught), len(run.payoffs)) == (1, 12)
    assert len(scalars(callback.path, "payoff")) == 5
    assert run.summary() in text(callback.path, "summary")


def test_what_cannot_be_opened_is_an_error_before_the_first_round(tmp_path):
    (tmp_path / "file").write_text("")
    played: list[float] = []
    callback = TensorBoardCallback(tmp_path / "file")
    with pytest.raises(OSError, match="file"):
        rd.optimize(played.append, low=0, high=1, rounds=3, callbacks=[callback])
    assert not played
    with pytest.raises(ParameterError, match="folder must be the path"):
        TensorBoardCallback(3)


def test_without_tensorboardx_it_says_what_to_install():
    program = (
        "import sys; sys.modules['tensorboardX'] = None\n"
        "try:\n    import randomist.integrations.tensorboard\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'randomist[tensorboard]'" in done.stdout
