"""Samples that repeat: those with equal likelihoods are counted, not stored, and cost what the distinct ones do.

A column of ratios stands for `counts` samples with payoffs that sum to `payoffs` and whose squares sum to `squares`. A
block without a repeated column takes the same passes as stored samples, bit for bit.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from randomist._types import Array, Indices
from randomist.importance import counts as counted
from randomist.importance import kernels


@dataclass(slots=True)
class _Block:
    """Some distinct samples, in the order in which they were first seen."""

    ratios: Array  # r_k = p_k(z_i) / p_s(z_i), s being what drew the first of them  (S, size)
    mixture: Array  # D_i = Σ_k T_k r_k                                             (size,)
    inverse_mixture: Array
    payoffs: Array  # Σ y
    counts: Array
    squares: Array  # Σ y²
    used: int = 0
    repeats: bool = False  # whether some count is above 1

    @classmethod
    def empty(cls, sources: int, size: int) -> _Block:
        mixture, inverse_mixture, payoffs, counts, squares = np.empty((5, size))
        return cls(np.empty((sources, size)), mixture, inverse_mixture, payoffs, counts, squares)


@dataclass(slots=True)
class Effects:
    """What a play changes besides samples: T, η and log η of every source."""

    plays: Indices  # (S,)
    effective: Array
    log_effective: Array


@dataclass(slots=True)
class Atoms:
    """Distinct samples by their likelihoods, with counts."""

    sources: int
    block_size: int
    places: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # block and column of each key
    blocks: list[_Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.blocks.append(_Block.empty(self.sources, self.block_size))

    def __len__(self) -> int:
        return len(self.places)

    @staticmethod
    def key(log_density: Array) -> bytes:
        """What samples have in common that are counted as one."""
        return hashlib.blake2b(log_density.tobytes(), digest_size=16).digest()

    def add_play(self, source: int, times: float = 1.0) -> None:
        """D_i += r_source for every sample, or several times that: O(n)."""
        for block in self.blocks:
            counted.add_plays(block.ratios, block.mixture, block.inverse_mixture, block.used, source, times)

    def append(
        self, key: bytes, log_density: Array, divergence: Array, source: int, payoff: float, effects: Effects
    ) -> bool:
        """A play of `source`, and its sample; False where the sample's ratios leave float64's range: not stored."""
        last = self.blocks[-1]
        for block in self.blocks[:-1]:
            kernels.add_play(block.ratios, block.mixture, block.inverse_mixture, block.used, source)
        plays, effective, log_effective = effects.plays, effects.effective, effects.log_effective
        place = self.places.get(key)
        if place is not None:
            home = self.blocks[place[0]]
            home.repeats = True
            counted.count_sample(
                last.ratios,
                last.mixture,
                last.inverse_mixture,
                last.used,
                home.payoffs,
                home.counts,
                home.squares,
                place[1],
                plays,
                effective,
                log_effective,
                divergence,
                source,
                payoff,
            )
            return True
        stored: bool = kernels.append(
            last.ratios,
            last.mixture,
            last.inverse_mixture,
            last.payoffs,
            last.used,
            plays,
            effective,
            log_effective,
            divergence,
            log_density,
            source,
            payoff,
        )
        return stored and self._written(key, payoff)

    def write(self, key: bytes, log_density: Array, source: int, payoff: float, plays: Indices) -> bool:
        """A sample whose play has been counted before; False where it is not stored, as in `append`."""
        place = self.places.get(key)
        if place is not None:
            block, column = self.blocks[place[0]], place[1]
            block.repeats = True
            block.payoffs[column] += payoff
            block.counts[column] += 1.0
            block.squares[column] += payoff * payoff
            return True
        last = self.blocks[-1]
        columns = last.ratios, last.mixture, last.inverse_mixture, last.payoffs
        stored: bool = kernels.write_sample(*columns, last.used, log_density, plays, source, payoff)
        return stored and self._written(key, payoff)

    def _written(self, key: bytes, payoff: float) -> bool:
        """A new column was written to the last block."""
        last = self.blocks[-1]
        last.counts[last.used], last.squares[last.used] = 1.0, payoff * payoff
        self.places[key] = len(self.blocks) - 1, last.used
        last.used += 1
        if last.used == self.block_size:
            self.blocks.append(_Block.empty(self.sources, self.block_size))
        return True

    def add_sums(self, table: Array, *, last: bool = True) -> None:
        """The samples' part of COVERAGE and VALUE of a table that has its cuts; without the last block on request."""
        for block in self.blocks if last else self.blocks[:-1]:
            common = block.ratios, block.inverse_mixture, block.payoffs
            if block.repeats:
                counted.add_counted_sums(*common, block.counts, block.used, table)
            else:
                kernels.add_truncated_sums(*common, block.used, table)

    def add_moments(self, cut: Array, moments: Array) -> None:
        """The samples' part of Σ w², Σ w² y and Σ w² y².  (S,), (3, S)"""
        for block in self.blocks:
            common = block.ratios, block.inverse_mixture, block.payoffs
            if block.repeats:
                counted.add_counted_moments(*common, block.counts, block.squares, block.used, cut, moments)
            else:
                kernels.add_moments(*common, block.used, cut, moments)

    def rescale(self, factor: float, shift: float) -> None:
        """Every payoff y becomes factor y + shift; so their sums are known without them."""
        for block in self.blocks:
            n = slice(block.used)
            block.squares[n] = (
                factor**2 * block.squares[n] + 2 * factor * shift * block.payoffs[n] + shift**2 * block.counts[n]
            )
            block.payoffs[n] = factor * block.payoffs[n] + shift * block.counts[n]

    def state(self) -> dict[str, Any]:
        """Everything, as arrays of float64 and int64, one row per distinct sample."""
        columns = {
            name: np.concatenate([getattr(block, name)[: block.used] for block in self.blocks])
            for name in ("mixture", "payoffs", "counts", "squares")
        }
        ratios = np.concatenate([block.ratios[:, : block.used].T for block in self.blocks])
        keys = np.frombuffer(b"".join(self.places), np.int64).reshape(-1, 2).copy()
        return columns | {"ratios": ratios, "keys": keys}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`, bit for bit."""
        ratios, keys = np.asarray(state["ratios"]), np.ascontiguousarray(state["keys"], dtype=np.int64)
        for start in range(0, len(keys), self.block_size):
            rows = slice(start, start + self.block_size)
            block, number = self.blocks[-1], len(self.blocks) - 1
            block.used = len(ratios[rows])
            block.ratios[:, : block.used] = ratios[rows].T
            for name in ("mixture", "payoffs", "counts", "squares"):
                getattr(block, name)[: block.used] = np.asarray(state[name])[rows]
            block.inverse_mixture[: block.used] = 1.0 / block.mixture[: block.used]
            block.repeats = bool((block.counts[: block.used] > 1).any())
            for column, key in enumerate(keys[rows]):
                self.places[key.tobytes()] = number, column
            if block.used == self.block_size:
                self.blocks.append(_Block.empty(self.sources, self.block_size))
