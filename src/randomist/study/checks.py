"""What may name things: studies, workers, tickets. Checked at the border: no raw text reaches a path or a page."""

from __future__ import annotations

import math
import os
import re
import socket
from typing import Any

import numpy as np

from randomist._checks import whole_number
from randomist.errors import ParameterError, UnknownTrialError

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
TICKET = r"^[A-Za-z0-9._:-]{1,64}$"
LONGEST_LEASE = 366 * 24 * 3600.0  # a year
REASON = 1000  # characters of a reason that are kept
LARGEST_BATCH = 1000  # trials that are asked, or told, in one transaction
_NAME, _TICKET = re.compile(NAME[1:-1]), re.compile(TICKET[1:-1])


def check_name(name: Any) -> str:
    """A study's name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParameterError(
            f"a study's name has 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first; got "
            f"{_shown(name)}"
        )
    return name


def check_ticket(ticket: Any) -> str:
    """What makes an ask repeatable: one text per ask."""
    if not isinstance(ticket, str) or not _TICKET.fullmatch(ticket):
        raise ParameterError(
            f"a ticket has 1 to 64 letters, digits, dots, dashes, colons and underscores; got {_shown(ticket)}"
        )
    return ticket


def check_worker(worker: Any) -> str:
    """A worker's name: any short printable text; by default this machine and process."""
    if worker is None:
        return f"{socket.gethostname()}:{os.getpid()}"[-64:]
    if not isinstance(worker, str) or not 1 <= len(worker) <= 64 or not worker.isprintable():
        raise ParameterError(f"a worker's name has 1 to 64 printable characters; got {_shown(worker)}")
    return worker


def check_lease(lease: Any) -> float:
    """Seconds until an unanswered trial counts as stale."""
    good = isinstance(lease, int | float) and not isinstance(lease, bool) and math.isfinite(lease)
    if not good or not 0 < lease <= LONGEST_LEASE:
        raise ParameterError(f"lease must be a number of seconds in (0, {LONGEST_LEASE:.0f}], got {_shown(lease)}")
    return float(lease)


def check_id(trial: Any) -> int:
    """A trial's id, as a number that every database can look up."""
    if isinstance(trial, bool) or not isinstance(trial, int | np.integer):
        raise UnknownTrialError(f"a trial is named by the ticket that `ask` gave, or its id, got {_shown(trial)}")
    if not 0 <= trial < 2**62:
        raise UnknownTrialError(f"a trial's id is a whole number >= 0, got {trial}")
    return int(trial)


def clean(reason: Any) -> str:
    """A text that every database keeps: well-formed, without NUL, not too long."""
    text = str(reason)[:REASON].replace("\x00", "\ufffd")
    return text.encode("utf-8", "replace").decode("utf-8")


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


def check_batch(n: int, named: str) -> int:
    """So many trials may be asked at once."""
    n = whole_number(n, named)
    if n > LARGEST_BATCH:
        raise ParameterError(f"{named} must be at most {LARGEST_BATCH}, got {n!r:.80}; ask several times")
    return n
