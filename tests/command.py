"""`randomist` with its arguments, each time in a process of its own, forked from one that has imported what it needs.

A fresh interpreter takes a second to import the packages behind a command, which was most of what many tests took.
`tests/test_command.py` compares the two, and `tests/test_startup.py` is about what a fresh one imports.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path

COMMAND = Path(sys.executable).with_name("randomist")
ROOT = Path(__file__).parents[1]
SPACE = '{"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1], "std": 2}}'
TRIED = (["create", "a", "--space", SPACE], ["ask", "a"], ["tell", "a", "0", "0.5"], ["show", "a"])


class Forks:
    """A process that has imported the command line, and forks whenever a line asks for it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.command"]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what was said can be waited for
        )
        self.lock = threading.Lock()
        atexit.register(self.close)

    def ask(self, wanted: dict[str, object], timeout: float) -> int:
        assert self.process.stdin is not None
        with self.lock:
            self.process.stdin.write(json.dumps(wanted).encode() + b"\n")
            child = self._said(60)
            try:
                return self._said(timeout)
            except BaseException:  # the time limit of the test is one, too
                os.killpg(child, signal.SIGKILL)
                self._said(60)
                raise

    def _said(self, timeout: float) -> int:
        """The next line, a number."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("randomist", timeout)
        return int(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


_forks: dict[int, Forks] = {}  # by process: a fork of this one starts its own


def call(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run([COMMAND, *arguments], capture_output=True, text=True)` would return; `env` is added."""
    forks = _forks.get(os.getpid()) or _forks.setdefault(os.getpid(), Forks())
    words = [str(COMMAND), *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        wanted = {
            "argv": words,
            "cwd": str(cwd or Path.cwd()),
            "env": {**os.environ, **(env or {})},
            "files": [os.devnull, str(out), str(err)],
        }
        code = forks.ask(wanted, timeout)
        return subprocess.CompletedProcess(words, code, out.read_text("utf-8"), err.read_text("utf-8"))


def _become(argv: list[str], cwd: str, env: dict[str, str], files: list[str]) -> None:
    """What a process has that was started with these."""
    os.setpgid(0, 0)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for number, file in enumerate(files):
        opened = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv, sys.path[0] = argv, str(COMMAND.parent)


def _ended() -> int:
    """Run the console script to its end; its exit code. What follows in an interpreter frees memory, which costs more
    than most commands do."""
    from randomist.cli import main

    code: object = 0
    try:
        main()
    except SystemExit as said:
        code = said.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # as an interpreter does, in this order: pools of processes end with it
    atexit._run_exitfuncs()
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code or 0


def _warm() -> None:
    """Call the command line a few times here, so that the packages are imported and compiled functions are loaded."""
    importlib.import_module("matplotlib.figure")  # but not polars, which has threads
    from randomist.cli import main

    path, folder = list(sys.path), Path.cwd()
    with tempfile.TemporaryDirectory() as elsewhere, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(elsewhere)
        for words in TRIED:
            sys.argv = ["randomist", "study", *words]
            with contextlib.suppress(SystemExit):
                main()
        os.chdir(folder)
    sys.path[:] = path


def _serve() -> None:
    _warm()
    gc.freeze()  # what is there is not looked through, and so not copied, in each fork
    for line in sys.stdin:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads: BLAS has some
            child = os.fork()
        if child == 0:
            _become(**json.loads(line))
            os._exit(_ended())
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()
