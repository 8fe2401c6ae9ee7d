"""The column store: every told sample is a column of ratios to all sources, with its payoff and how often it was seen.

The columns lie in parts of one list. A block holds samples one by one, or, where it is keyed, samples with equal
likelihoods as one column with a count. Samples whose ratios leave float64 (one in e^600, if drawn honestly) keep their
column in log space. Every operation is a loop over the parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from randomist._types import Array, Indices
from randomist.importance.passes import backend, layout

BLOCK_ENTRIES = 2**17  # ratios per block: a mebibyte, so that a block's samples stay near the core


@dataclass(slots=True)
class Block:
    """Some samples, in the order in which they were first seen."""

    ratios: Array  # r_k = p_k(z_i) / p_s(z_i), s being what drew the first of them  (S, size)
    mixture: Array  # D_i = Σ_k T_k r_k, and 1/D_i                                   (2, size)
    payoffs: Array  # in [0, 1], summed over the samples of a column                 (size,)
    mixed: Indices  # which of the mixture is up to date (`passes.mix`)
    counts: Array | None = None  # samples of each column, where they are counted
    squares: Array | None = None  # Σ y²
    used: int = 0
    repeats: bool = False  # whether some count is above 1

    @classmethod
    def empty(cls, sources: int, size: int, *, keyed: bool) -> Block:
        block = cls(np.empty((sources, size)), np.empty((2, size)), np.empty(size), np.array([0, -1, 0]))
        if keyed:
            block.counts, block.squares = np.empty(size), np.empty(size)
        return block

    @property
    def full(self) -> bool:
        return bool(self.used == self.ratios.shape[1])

    @property
    def keyed(self) -> bool:
        """Whether its samples are counted."""
        return self.counts is not None

    @property
    def saved(self) -> Array:
        """The ratios that are used, a row a sample."""
        return self.ratios[:, : self.used].T


class Part(NamedTuple):
    """Some samples as estimators see them; weights are ω/m.  (S, n), (n,), (n,)"""

    weights: Array
    payoffs: Array  # summed over the samples of a column
    counts: Array


@dataclass(slots=True)
class Distant:
    """A sample whose ratios leave float64's range."""

    number: int  # which of the recorded samples it is; -1 for one that is counted
    log_ratios: Array  # (S,)
    payoff: float


@dataclass(slots=True)
class Columns:
    """All samples of a history over S sources, and how often each source was played."""

    sources: int
    size: int  # columns of a block
    by_payoff: bool = False  # whether samples are counted as one only where their payoffs are equal, too
    plays: Indices = field(init=False)  # (3, S), see `passes`
    recent: Indices = field(init=False)
    stored: Block = field(init=False)  # has room for at least one more sample
    keyed: Block | None = field(init=False, default=None)
    earlier: list[Block] = field(init=False, default_factory=list)  # full
    distant: list[Distant] = field(init=False, default_factory=list)
    places: dict[bytes, tuple[Block, int]] = field(init=False, default_factory=dict)
    recorded: int = field(init=False, default=0)  # samples that are not counted
    rescaled: int = field(init=False, default=0)  # how often: a payoff of before is not that of the same number now

    def __post_init__(self) -> None:
        self.plays = np.zeros((3, self.sources), np.int64)
        self.recent = np.zeros(layout.FIRST + layout.ERA, np.int64)
        self.stored = Block.empty(self.sources, self.size, keyed=False)

    @property
    def passes(self) -> Any:
        """The compiled loops; not a field, since a module can be neither copied nor pickled."""
        return backend()

    # Samples come in.

    def append(
        self, source: int, log_density: Array, payoff: float, log_divergence: Array, eta: Array, *, counted: bool
    ) -> None:
        """A play of `source`, what it adds to η, and its sample: O(S)."""
        if counted:
            self.passes.count_play(self.plays, self.recent, source)
            self.passes.add_effective(eta, log_divergence, 1.0)
            self.count(source, log_density, payoff)
            return
        block = self.stored
        fits = self.passes.append(
            block.ratios,
            block.payoffs,
            block.used,
            self.plays,
            self.recent,
            eta,
            log_divergence,
            log_density,
            source,
            payoff,
        )
        self._store(fits, source, log_density, payoff)

    def extend(self, sources: Indices, log_density: Array, payoffs: Array) -> None:
        """Many samples that are not counted, their plays included: the same as one by one.  (n,), (n, S), (n,)"""
        self.passes.count_plays(self.plays, self.recent, sources)
        self.write(sources, log_density, payoffs)

    def write(self, sources: Indices, log_density: Array, payoffs: Array) -> None:
        """Many samples that are not counted, whose plays have been.  (n,), (n, S), (n,)"""
        done, n = 0, len(sources)
        while done < n:
            block = self.stored
            reached, used = self.passes.write_all(
                block.ratios, block.payoffs, block.used, log_density, sources, payoffs, done
            )
            self.recorded += used - block.used
            block.used = used
            if block.full:
                self._turn_over()
            elif reached < n:
                self._store(False, int(sources[reached]), log_density[reached], float(payoffs[reached]))
                reached += 1
            done = reached

    def add_plays(self, times: Indices) -> None:
        """So many more plays of every source, whose samples follow; sums are made anew from the counts.  (S,)"""
        self.plays += times
        self.plays[layout.LAST_EPOCH] = self.plays[layout.LAST_ERA] = self.plays[layout.NOW]
        self.recent[layout.SINCE] = 0
        self.recent[layout.ERAS] += 1

    def count(self, source: int, log_density: Array, payoff: float) -> None:
        """A sample whose play has been counted: one more of its kind, or a new column."""
        key = self._key(log_density, payoff)
        place = self.places.get(key)
        if place is not None:
            block, column = place
            assert block.counts is not None
            assert block.squares is not None
            block.repeats = True
            block.payoffs[column] += payoff
            block.counts[column] += 1.0
            block.squares[column] += payoff * payoff
            return
        block = self._open_keyed()
        if not self.passes.write(block.ratios, block.payoffs, block.used, log_density, source, payoff):
            self.distant.append(Distant(-1, log_density - log_density[source], payoff))
            return
        assert block.counts is not None
        assert block.squares is not None
        block.counts[block.used], block.squares[block.used] = 1.0, payoff * payoff
        self.places[key] = block, block.used
        block.used += 1

    def _open_keyed(self) -> Block:
        if self.keyed is None or self.keyed.full:
            if self.keyed is not None:
                self.earlier.append(self.keyed)
            self.keyed = Block.empty(self.sources, self.size, keyed=True)
        return self.keyed

    def _store(self, fits: bool, source: int, log_density: Array, payoff: float) -> None:
        """A sample was written to the block, or does not fit into float64."""
        self.recorded += 1
        if not fits:
            self.distant.append(Distant(self.recorded - 1, log_density - log_density[source], payoff))
            return
        self.stored.used += 1
        if self.stored.full:
            self._turn_over()

    def _turn_over(self) -> None:
        self.earlier.append(self.stored)
        self.stored = Block.empty(self.sources, self.size, keyed=False)

    def _key(self, log_density: Array, payoff: float) -> bytes:
        """What samples have in common that are counted as one."""
        told = log_density.tobytes()
        if self.by_payoff:
            told += np.array([payoff, self.rescaled]).tobytes()
        return hashlib.blake2b(told, digest_size=16).digest()

    # Sums.

    def settle(self) -> None:
        """Bring the plays up to date, where they are not counted as they come."""

    def table(self, eta: Array, term: float, told: float) -> Array:
        """Everything that an estimate is made of, by one pass over (S, t): the rows of `passes`.  (7, S)"""
        first = self.stored if self.keyed is None or self.keyed.repeats or self.stored.used else self.keyed
        table: Array = self.passes.estimate(
            first.ratios,
            first.mixture,
            first.payoffs,
            first.used,
            first.mixed,
            self.plays,
            self.recent,
            eta,
            term,
            told,
        )
        if self.earlier or self.distant or self.keyed is not None:
            self._add_sums(table, besides=first)
        return table

    def moments(self, cut: Array) -> Array:
        """Σ_i w², Σ_i w² y and Σ_i w² y² with w = min(M, ω)/m; `cut` is M/m, at most 1e150.  (S,) -> (3, S)"""
        moments = np.zeros((3, self.sources))
        for block in self._mixed():
            common = block.ratios, block.mixture[1], block.payoffs
            if block.repeats and block.counts is not None and block.squares is not None:
                self.passes.add_counted_moments(*common, block.counts, block.squares, block.used, cut, moments)
            else:
                self.passes.add_moments(*common, block.used, cut, moments)
        for sample in self.distant:
            moments += np.minimum(self._weights(sample), cut) ** 2 * sample.payoff ** np.arange(3)[:, None]
        return moments

    def histograms(self, rows: Indices, cut: Array) -> tuple[Array, Array]:
        """Σ_i w and Σ_i w y by bins of y, w = min(M, ω)/m, of some sources.  (n,), (S,) -> (n, BINS) each"""
        weight, sums = np.zeros((2, len(rows), layout.BINS))
        for block in self._mixed():
            common = block.ratios, block.mixture[1], block.payoffs
            if block.repeats and block.counts is not None and block.squares is not None:
                self.passes.add_counted_histogram(
                    *common, block.counts, block.squares, block.used, rows, cut, weight, sums
                )
            else:
                self.passes.add_histogram(*common, block.used, rows, cut, weight, sums)
        for sample in self.distant:
            w, place = np.minimum(self._weights(sample), cut)[rows], self.passes.payoff_bin(sample.payoff)
            weight[:, place] += w
            sums[:, place] += w * sample.payoff
        return weight, sums

    def coverage(self, cut: Array) -> Array:
        """Σ_i min(M, ω)/m.  (S,) -> (S,)"""
        table = np.zeros((7, self.sources))
        table[layout.CUT] = cut
        self._add_sums(table)
        covered: Array = table[layout.COVERAGE]
        return covered

    def parts(self) -> Iterator[Part]:
        """All samples with their weights, some at a time."""
        for block in self._mixed():
            n = block.used
            counts = np.ones(n) if block.counts is None else block.counts[:n]
            yield Part(block.ratios[:, :n] * block.mixture[1, :n], block.payoffs[:n], counts)
        for sample in self.distant:
            yield Part(self._weights(sample)[:, None], np.array([sample.payoff]), np.ones(1))

    def _add_sums(self, table: Array, besides: Block | None = None) -> None:
        for block in self._blocks():
            if block is besides:
                continue
            mixing = block.mixed, self.plays, self.recent
            if block.repeats and block.counts is not None:
                self.passes.mix(block.ratios, block.mixture, block.used, *mixing)
                self.passes.add_counted_sums(
                    block.ratios, block.mixture[1], block.payoffs, block.counts, block.used, table
                )
            else:
                self.passes.add_block(block.ratios, block.mixture, block.payoffs, block.used, *mixing, table)
        for sample in self.distant:
            weight = np.minimum(self._weights(sample), table[layout.CUT])
            table[layout.COVERAGE] += weight
            table[layout.VALUE] += weight * sample.payoff

    def _blocks(self) -> list[Block]:
        return [*self.earlier, self.stored, *([] if self.keyed is None else [self.keyed])]

    def _mixed(self) -> Iterator[Block]:
        """The blocks, their mixtures up to date."""
        for block in self._blocks():
            self.passes.mix(block.ratios, block.mixture, block.used, block.mixed, self.plays, self.recent)
            yield block

    def _weights(self, sample: Distant) -> Array:
        """ω/m of a distant sample, capped at what float64 holds.  (S,)"""
        plays = self.plays[layout.NOW]
        log_mixture = np.logaddexp.reduce(np.log(plays[plays > 0]) + sample.log_ratios[plays > 0])
        weight: Array = np.exp(np.minimum(sample.log_ratios - log_mixture, layout.LOG_HUGE))
        return weight

    # Payoffs change when the range of payoffs does.

    def replace_payoffs(self, payoffs: Array) -> None:
        """Other payoffs in [0, 1] for the samples that are not counted, in the order in which they were told."""
        apart = [sample for sample in self.distant if sample.number >= 0]
        for sample in apart:
            sample.payoff = float(payoffs[sample.number])
        start, others = 0, np.delete(payoffs, [sample.number for sample in apart])
        for block in self._blocks():
            if not block.keyed:
                block.payoffs[: block.used] = others[start : start + block.used]
                if block.squares is not None:
                    block.squares[: block.used] = block.payoffs[: block.used] ** 2
                start += block.used

    def rescale(self, factor: float, shift: float) -> None:
        """Payoffs y of the counted samples become factor y + shift; so their sums are known without them."""
        self.rescaled += 1
        for block in self._blocks():
            if block.keyed and block.counts is not None and block.squares is not None:
                n = slice(block.used)
                squares = factor**2 * block.squares[n] + 2 * factor * shift * block.payoffs[n]
                block.squares[n] = squares + shift**2 * block.counts[n]
                block.payoffs[n] = factor * block.payoffs[n] + shift * block.counts[n]
        for sample in self.distant:
            if sample.number < 0:
                sample.payoff = factor * sample.payoff + shift

    # Save and load.

    def state(self) -> dict[str, Any]:
        """Plays and counted samples; the others follow from the record."""
        recent = self.recent
        played = recent[layout.FIRST : layout.FIRST + recent[layout.SINCE]]
        state: dict[str, Any] = {"plays": self.plays.copy(), "eras": int(recent[layout.ERAS]), "recent": played.copy()}
        blocks = [block for block in self._blocks() if block.keyed]
        apart = [sample for sample in self.distant if sample.number < 0]
        if blocks or apart:
            state["counted"] = {
                "rescaled": self.rescaled,
                "keys": np.frombuffer(b"".join(self.places), np.int64).reshape(-1, 2).copy(),
                "ratios": _joined([block.saved for block in blocks], self.sources),
                "payoffs": _joined([block.payoffs[: block.used] for block in blocks]),
                "counts": _joined([block.counts[: block.used] for block in blocks if block.counts is not None]),
                "squares": _joined([block.squares[: block.used] for block in blocks if block.squares is not None]),
                "distant_log_ratios": _joined([sample.log_ratios[None] for sample in apart], self.sources),
                "distant_payoffs": np.array([sample.payoff for sample in apart]),
            }
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`, bit for bit; `write` brings back the samples that are not counted."""
        self.plays[:] = state["plays"]
        played = np.asarray(state["recent"], np.int64)
        self.recent[layout.SINCE], self.recent[layout.ERAS] = len(played), state["eras"]
        self.recent[layout.FIRST : layout.FIRST + len(played)] = played
        counted = state.get("counted")
        if counted is None:
            return
        self.rescaled = int(counted.get("rescaled", 0))  # 0.1.0 did not tell payoffs apart
        for i, key in enumerate(np.ascontiguousarray(counted["keys"], np.int64)):
            block = self._open_keyed()
            assert block.counts is not None
            assert block.squares is not None
            at = block.used
            block.ratios[:, at], block.payoffs[at] = counted["ratios"][i], counted["payoffs"][i]
            block.counts[at], block.squares[at] = counted["counts"][i], counted["squares"][i]
            block.repeats |= bool(block.counts[at] > 1)
            self.places[key.tobytes()] = block, at
            block.used += 1
        for log_ratios, payoff in zip(counted["distant_log_ratios"], counted["distant_payoffs"], strict=True):
            self.distant.append(Distant(-1, np.array(log_ratios), float(payoff)))


def block_size(sources: int) -> int:
    return int(np.clip(BLOCK_ENTRIES // sources, 64, 4096))


def _joined(pieces: list[Array], *shape: int) -> Array:
    joined: Array = np.concatenate(pieces) if pieces else np.empty((0, *shape))
    return joined
