"""A run on disk as it goes: a line of JSON for what it is, and one for each ask, tell and failure.

    {"run": {"task": "simulate", "learner": "Auto", "seed": 0, ...}}
    {"ask": 0, "decision": [...], "mediator": [...], "parameters": {"kp": 3.2}}
    {"tell": 0, "payoff": 0.75}
    {"fail": 1, "reason": "ValueError: ..."}
    {"confirm": 50}

A line is on disk before the run goes on. What was being written when the process was killed is cut off.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from randomist._files import check_regular
from randomist._json import for_json
from randomist.errors import SavedRunError

if TYPE_CHECKING:
    from randomist.learners.trial import Trial


class Journal:
    """The file of one run, of which no other process writes as long as it is open."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            check_regular(self.path, SavedRunError)
        self._file = self.path.open("a+b")
        try:
            self._lock()
            self.header, self.events = self._read()
        except BlockingIOError:
            self._file.close()
            raise SavedRunError(
                f"{self.path} is in use by another process; wait for it, or give another path"
            ) from None
        except BaseException:
            self._file.close()
            raise

    def begin(self, header: dict[str, Any]) -> None:
        """Write what this run is, or check that the file is of the same one."""
        plain = json.loads(json.dumps(header))
        if self.header is None:
            self._write({"run": plain})
            return
        differing = [key for key in plain if key != "version" and self.header.get(key) != plain[key]]
        if differing:
            said = "; ".join(
                f"{key} is {_brief(self.header.get(key))} there and {_brief(plain[key])} here" for key in differing
            )
            raise SavedRunError(f"{self.path} is of another run: {said}; give another path, or delete the file")

    def ask(self, trial: Trial, parameters: dict[str, Any] | None) -> None:
        line = {"ask": trial.id, "decision": for_json(trial.decision), "mediator": for_json(trial.mediator)}
        self._write(line if parameters is None else line | {"parameters": parameters}, sure=False)

    def confirm(self, plays: int) -> None:
        """The next so many asks play the recommended point."""
        self._write({"confirm": plays}, sure=False)

    def close_trial(self, trial: Trial, payoff: float | None, reason: str, draws: dict[str, Any] | None) -> None:
        """A tell or a failure; `draws` is the state of what the task draws from."""
        line: dict[str, Any] = (
            {"fail": trial.id, "reason": reason} if payoff is None else {"tell": trial.id, "payoff": payoff}
        )
        self._write(line if draws is None else line | {"draws": draws})

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _lock(self) -> None:
        with suppress(ImportError):  # not on this system: nothing keeps two runs from one file
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _write(self, line: dict[str, Any], sure: bool = True) -> None:
        self._file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        self._file.flush()
        if sure:  # an ask that is lost is asked again
            os.fsync(self._file.fileno())

    def _read(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        self._file.seek(0)
        start = self._file.read(9)
        if not start == b'{"run": {'[: len(start)]:
            raise SavedRunError(f"{self.path} exists and is not the file of a run; give another path")
        content = start + self._file.read()
        whole = content.rfind(b"\n") + 1
        lines = []
        for number, text in enumerate(content[:whole].splitlines(), 1):
            try:
                lines.append(json.loads(text))
            except (ValueError, RecursionError) as error:
                raise SavedRunError(
                    f"{self.path} is damaged in line {number}: {error}; mend or delete that line, or give another path"
                ) from error
        if whole < len(content):
            self._file.truncate(whole)
        return (lines[0]["run"], lines[1:]) if lines else (None, [])


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
