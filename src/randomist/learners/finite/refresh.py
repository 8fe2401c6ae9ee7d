"""When estimates are computed anew: after every told sample, or at times on a grid that grows with the history.

Batched bandits decide with what was known at the last batch and lose little (Perchet et al. 2016). The times are a
fixed function of how many samples were told, so that a run is the same after a resume, in a study, and told in batches.
"""

from __future__ import annotations

import math
from typing import Any

from randomist._checks import number, whole_number
from randomist.errors import ParameterError

AUTO = 1.05  # what "auto" stands for
FROM = 10_000


class Refresh:
    """t_0 = `start`, t_{i+1} = t_i + the growth of a history of t_i samples, of which at most `span` are remembered.

    Up to t_0, and always where `growth` is 1, every time is on the grid.
    """

    def __init__(self, refresh: Any, start: Any, span: int | None = None) -> None:
        self.growth = _growth(refresh)
        self.start, self.span = whole_number(start, "refresh_from"), span
        always = self.growth == 1.0 or (span is not None and span <= self.start)
        self.exact_below = math.inf if always else self.start  # with fewer samples estimates follow every one
        self._passed, self._next = 0, self.start  # two neighbours on the grid

    def exact(self, told: int) -> bool:
        """Whether estimates follow every sample up to here."""
        return told < self.exact_below

    def last(self, told: int) -> int:
        """The largest time on the grid that is not after `told`."""
        if self.exact(told):
            return told
        if not self._passed <= told:
            self._passed, self._next = 0, self.start
        while self._next <= told:
            self._passed, self._next = self._next, self._after(self._next)
        return self._passed

    def _after(self, time: int) -> int:
        remembered = time if self.span is None else min(time, self.span)
        return time + max(1, math.ceil(self.growth * remembered) - remembered)


def _growth(refresh: Any) -> float:
    if refresh is None:
        return 1.0
    if isinstance(refresh, str):
        if refresh != "auto":
            raise ParameterError(
                f'refresh must be "auto", a number >= 1 by which the history grows between estimates, or None for an '
                f"estimate after every sample, got {refresh!r:.80}"
            )
        return AUTO
    return number(refresh, "refresh", least=1, why=", the factor by which the history grows between two estimates")
