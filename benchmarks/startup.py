"""How long a start takes, beside `import numpy`: `python -m benchmarks startup`.

Every command runs in a process of its own, in turns, so that a busy machine slows all of them alike. Caches are warm,
also Python's own of bytecode.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TURNS = 9
COMMAND = str(Path(sys.executable).with_name("randomist"))
NUMPY, PACKAGE, HELP, ASK = "import numpy", "import randomist", "randomist --help", "randomist study ask"
SPACE = {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1, 2, 2.95, 3], "std": 2}}
VARIABLES = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
TOLD = 5  # trials that the study has before it is asked


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(Path(folder))
    numpy = statistics.median(seconds[NUMPY])
    for name, bound in ((PACKAGE, 2.5), (HELP, 4.0)):
        median = statistics.median(seconds[name])
        print(f"{name:20} {median:6.3f} s   {median / numpy:5.2f} times {NUMPY} ({numpy:.3f} s), at most {bound:g}")
    print(f"{ASK:20} {statistics.median(seconds[ASK]):6.3f} s   at most 2 s")


def measure(folder: Path) -> dict[str, list[float]]:
    """Seconds of each command, in every turn; the turn that fills the caches does not count."""
    _call(folder, COMMAND, "study", "create", "a", "--space", json.dumps(SPACE))
    for number in range(TOLD):
        _call(folder, COMMAND, "study", "ask", "a")
        _call(folder, COMMAND, "study", "tell", "a", number, 0.5)
    calls = {
        NUMPY: [sys.executable, "-c", NUMPY],
        PACKAGE: [sys.executable, "-c", PACKAGE],
        HELP: [COMMAND, "--help"],
        ASK: [COMMAND, "study", "ask", "a"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(TURNS + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            _call(folder, *call)
            seconds[name].append(time.perf_counter() - start)
    return {name: times[1:] for name, times in seconds.items()}


def _call(folder: Path, *words: object) -> None:
    subprocess.run([str(word) for word in words], cwd=folder, env=VARIABLES, check=True, capture_output=True)


if __name__ == "__main__":
    main()
