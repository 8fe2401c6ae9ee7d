"""Scouts: whether a play far from the best may pay for itself, and where; and strides, the way that the best goes."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from randomist._types import Array
from randomist.learners.box.landscape import Landscape
from randomist.learners.box.samples import Samples, mean_excess

PLACES = 64  # that are looked at
TURN = 0.25  # of the last step of the best point in its heading, beside those before
AHEAD = 16  # rounds by which an early stride is ahead
PARTS = 1.0, 0.5, 0.25  # of the way that the best point came, which a later one goes
RISK = 2.0  # times what there is to find, that a stride may lose


def scout(found: Landscape, best: Array, samples: Samples, rounds: int, rng: np.random.Generator) -> Array | None:
    """A place where one play may pay for itself; None where there is none.  (d,)

    If the mean there becomes known as well as one payoff lets it, it exceeds the best by st (u Φ(u) + φ(u)) on average
    (Frazier et al. 2009, the knowledge gradient), in each of as many rounds as there were. Nothing is found above a
    ceiling: where the best payoffs are equal, no scout goes.
    """
    surface = found.payoffs
    top = surface.means(best[None])[0]
    most = excess(samples, top)
    if most == 0:
        return None
    places = rng.random((PLACES, best.size))
    mean, taught = surface.taught(places)
    learned = np.maximum(taught, 1e-12)
    u = (mean - top) / learned
    gain = learned * (u * ndtr(u) + np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi))
    worth = rounds * np.minimum(gain, most) - (top - np.minimum(mean, surface.ceiling))
    worth[~found.allowed(places)] = -math.inf
    k = int(np.argmax(worth))
    return places[k] if worth[k] > 0 else None


def steered(heading: Array | float, step: Array) -> Array:
    """Where the best point goes in a round, by how it went of late and a step more.  (d,)"""
    return (1 - TURN) * heading + TURN * step


def onward(found: Landscape, before: Array, best: Array) -> Array:
    """As far again as the best point came, or half as far, or a quarter; nowhere if that led up no farther than doubt.

    (d,), (d,) -> (n, d)
    """
    mean, deviation = found.payoffs.posterior(np.stack([before, best]))
    if mean[1] - mean[0] <= deviation[1]:
        return np.empty((0, best.size))
    return np.multiply.outer(PARTS, best - before)


def stride(found: Landscape, best: Array, ways: Array, scale: float) -> Array | None:
    """The best point and the first of some ways that is worth a play; None where none is.  (d,)

    On a narrow ridge a surface knows little of what is ahead, and clouds are small: a search creeps. A stride goes
    beyond the cloud, whatever the surface hopes for there, if it does not fear to lose much: no more than a few times
    what there is to find, which is nothing at a ceiling.
    """
    for way in ways:
        ahead: Array = np.clip(best + way, 0.0, 1.0)
        if np.linalg.norm(ahead - best) <= scale * math.sqrt(best.size) or not found.allowed(ahead[None])[0]:
            continue
        here, there = found.payoffs.means(np.stack([best, ahead]))
        if here - there <= RISK * found.room:
            return ahead
    return None


def excess(samples: Samples, top: float) -> float:
    """By how much one more draw may exceed the best of all so far, as the upper tail of the payoffs says.

    The best of n + 1 draws exceeds that of n by θ/(n + 1) on average, if the tail is exponential with mean θ. It is
    measured among the points that were played to see and among all, since a ceiling shows in the latter first.
    """
    seen = samples.units[samples.seen]
    return math.sqrt(samples.tail * mean_excess(np.append(seen, top))) / (len(seen) + 1)


def fruitless(before: int, payoffs: Array, better: float) -> int:
    """How many found nothing lately: one that is better than `better` halves their number."""
    for payoff in payoffs:
        before = before // 2 if payoff > better else before + 1
    return before
