"""What an installed package must do: `python tests/smoke.py core`, or `extras`, anywhere but in the repository.

`.ci/release` runs it in empty environments. It is no test of pytest's, which is not installed there.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import randomist as rd


def square(x: float) -> float:
    return -((x - 0.3) ** 2)


def core() -> None:
    """Numbers and learners, with nothing but numpy, scipy, numba and gymnasium."""
    assert "site-packages" in rd.__file__, f"this is not the installed package: {rd.__file__}"
    run = rd.optimize(square, low=0, high=1, rounds=30)
    assert abs(run.best - 0.3) < 0.1, run
    run = rd.optimize("illustrative", rounds=200)
    assert run.regret is not None
    assert run.regret[-1] < 20
    learner = rd.Realist(rd.Finite(rd.Gaussian([0.0, 1.0], 1.0)), payoff_range=(0, 1))
    learner.tell(learner.ask(), 0.5)
    assert rd.load(learner.state()).ask() == learner.ask()
    for name in rd.__all__:
        try:
            getattr(rd, name)
        except ImportError as error:
            if "pip install" not in str(error):
                raise
    if find_spec("typer") is None:
        done = subprocess.run([Path(sys.executable).with_name("randomist")], capture_output=True, text=True)
        assert "pip install 'randomist[run]'" in done.stderr, done.stderr


def extras() -> None:
    """The command line, a study on disk, a figure."""
    core()
    command = Path(sys.executable).with_name("randomist")
    done = subprocess.run([command, "doctor"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    study = rd.create_study("smoke", rd.Auto(low=0, high=1), storage="sqlite:///smoke.db", exist_ok=True)
    study.optimize(square, 10)
    again = rd.load_study("smoke", storage="sqlite:///smoke.db")
    assert again.told == study.told
    rd.plot.payoffs(rd.optimize(square, low=0, high=1, rounds=10), path="smoke.png")
    assert Path("smoke.png").stat().st_size > 1000


if __name__ == "__main__":
    {"core": core, "extras": extras}[sys.argv[1]]()
    print(f"{sys.argv[1]}: works")
