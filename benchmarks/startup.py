"""How long a start takes, beside `import numpy`: `python -m benchmarks startup`.

Every command runs in a process of its own, in turns, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import json
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
    create = [COMMAND, "study", "create", "a", "--space", json.dumps(SPACE)]
    subprocess.run(create, cwd=folder, check=True, capture_output=True)
    for number in range(TOLD):
        subprocess.run([COMMAND, "study", "ask", "a"], cwd=folder, check=True, capture_output=True)
        subprocess.run([COMMAND, "study", "tell", "a", str(number), "0.5"], cwd=folder, check=True, capture_output=True)
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
            subprocess.run(call, cwd=folder, check=True, capture_output=True)
            seconds[name].append(time.perf_counter() - start)
    return {name: times[1:] for name, times in seconds.items()}


if __name__ == "__main__":
    main()
