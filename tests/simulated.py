"""Functions to optimize, at the top of a module: other processes can import them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time


def bowl(kp, taps=3, mode="a"):
    """Best, 1, at kp=3, taps=4 and mode "b"."""
    return 1.0 - abs(kp - 3) / 10 - 0.05 * abs(taps - 4) - 0.2 * (mode == "a")


def slow(x):
    """Small ones take longer."""
    time.sleep(0.02 * (1 - x))
    return x


def unreliable(x):
    """Raises in 20% of the calls, hangs in 5%, returns NaN in 5%, ends its process in 2%."""
    luck = random.Random(x).random()
    if luck < 0.2:
        raise ValueError(f"{x} is unlucky")
    if luck < 0.25:
        time.sleep(600)
    if luck < 0.3:
        return float("nan")
    if luck < 0.32:
        os._exit(3)
    return 1 - (x - 0.3) ** 2


def at_once(x, way):
    """Fails in the way that it is told to."""
    if way == "raise":
        raise ValueError(f"{x} is unlucky")
    if way == "hang":
        time.sleep(600)
    if way == "die":
        os._exit(3)
    return float("nan") if way == "nan" else x


def with_a_child(x, file):
    """Starts a process that would write a file later, and hangs."""
    program = f"import time; time.sleep(1.5); open({file!r}, 'w').close()"
    subprocess.run([sys.executable, "-c", program], check=True)
    time.sleep(600)


class OddError(Exception):
    """Cannot be unpickled: it takes two arguments, and passes on one."""

    def __init__(self, what, why):
        super().__init__(what)


def odd(x):
    raise OddError("this", "that")


def off(x: float) -> float:
    raise ZeroDivisionError("the plant is off")
