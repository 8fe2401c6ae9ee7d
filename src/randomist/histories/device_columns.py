"""The column store on a device of JAX: every told sample is a column of ratios to all sources, in blocks.

Blocks lie on the device, as long as they fit its memory; the ratios of later ones are made again from the mediators in
each pass, or, where the family cannot do that there, lie in the memory of the CPU. Payoffs, counts and plays stay with
the CPU, and so does what is saved: it is what `Columns` saves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from randomist._types import Array, Indices
from randomist.families.in_jax import Members
from randomist.histories.columns import Columns, Distant, Part
from randomist.importance.passes import jax as passes
from randomist.importance.passes import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRIES = 2**29  # ratios of a block: 2 GiB
SMALLEST, LARGEST = 256, 4096  # columns of a block
BEHIND = 64  # plays that are added one by one to a mixture; after more it is summed anew
ROWS = 2**13  # decisions whose distributions are made at once


@dataclass(slots=True)
class DeviceBlock:
    """Some samples, in the order in which they were first seen."""

    ratios: Any  # on the device, in the memory of the CPU, or what they are made from again  (S, size)
    mixture: Any  # D_i, on the device  (size,)
    payoffs: Array  # summed over the samples of a column  (size,)
    counts: Array  # samples of each column
    squares: Array  # Σ y²
    exact: list[Array] | None = None  # ratios in float64, where samples are counted
    used: int = 0
    behind: list[int] = field(default_factory=list)  # plays that the mixture lacks
    stale: bool = False  # whether it is to be summed anew

    @property
    def full(self) -> bool:
        return self.used == len(self.payoffs)

    @property
    def keyed(self) -> bool:
        return self.exact is not None

    @property
    def saved(self) -> Array:
        return np.array(self.exact)

    @property
    def width(self) -> int:
        """How many columns a sum goes over: those that are used, filled up to one of a few sizes."""
        filled: int = 1 << (self.used - 1).bit_length()
        return min(max(SMALLEST, filled), len(self.payoffs))


class DeviceColumns(Columns):
    """All samples of a history over S sources, on a device."""

    def __init__(self, sources: int, by_payoff: bool, members: Members | None, budget: int, dimension: int) -> None:
        size = int(np.clip(2 ** int(np.log2(max(ENTRIES // sources, 1))), SMALLEST, LARGEST))
        self.members, self.budget, self.dimension = members, budget, dimension
        self.on_device = jnp.zeros(sources)  # plays
        self.blocks: list[DeviceBlock] = []
        self.open: DeviceBlock | None = None  # has room
        self.open_keyed: DeviceBlock | None = None
        super().__init__(sources, size, by_payoff)

    def __post_init__(self) -> None:
        self.plays = np.zeros((3, self.sources), np.int64)
        self.recent = np.zeros(layout.FIRST + layout.ERA, np.int64)

    # Samples come in.

    def play(self, source: int) -> None:
        self.passes.count_play(self.plays, self.recent, source)
        self.on_device = passes.count_play(self.on_device, source, 1.0)
        for block in self.blocks:
            block.behind.append(source)

    def store(self, source: int, log_density: Any, payoff: float, point: Array) -> None:
        """A sample whose play has been counted, by its log-densities on the device.  (S,), (d,)"""
        column, largest = passes.column_of(log_density, source)
        self.recorded += 1
        if float(largest) > passes.MOST:
            log_ratios = np.asarray(log_density - log_density[source])
            self.distant.append(Distant(self.recorded - 1, log_ratios, payoff))
            return
        block = self._room(keyed=False)
        self._write(block, source, column, payoff, point, float(log_density[source]))

    def store_all(self, sources: Indices, points: Array, payoffs: Array) -> None:
        """Many samples at once, whose plays have been counted, of a family that is known on the device."""
        assert self.members is not None
        done, n = 0, len(sources)
        while done < n:
            block = self._room(keyed=False)
            first, last = block.used, min(len(block.payoffs), block.used + n - done)
            some = slice(done, done + last - first)
            at = np.zeros((len(block.payoffs), self.dimension))
            at[first:last] = points[some]
            drawn = np.zeros(len(at), np.int64)
            drawn[first:last] = sources[some]
            own = np.full(len(at), np.inf)
            own[first:last] = np.asarray(own_log_density(self.members, drawn, at))[first:last]
            columns = passes.Recomputed(self.members, jnp.asarray(at), jnp.asarray(own))
            if float(passes.largest(columns)) > passes.MOST:  # one by one: some stay in log space
                for i in range(done, n):
                    log_density = log_densities(self.members, jnp.asarray(points[i]))
                    self.store(int(sources[i]), log_density, float(payoffs[i]), points[i])
                    self.blocks[-1].stale = True
                break
            if isinstance(block.ratios, passes.Recomputed):
                block.ratios.points[first:last], block.ratios.own[first:last] = at[first:last], own[first:last]
            else:
                block.ratios = passes.fill(block.ratios, columns, first, last)
            block.payoffs[first:last], block.counts[first:last] = payoffs[some], 1.0
            block.squares[first:last] = payoffs[some] ** 2
            block.used, done = last, done + last - first
            self.recorded += last - first
        for block in self.blocks:
            block.stale = True

    def count(self, source: int, log_density: Array, payoff: float) -> None:
        key = self._key(log_density, payoff)
        place: Any = self.places.get(key)
        if place is not None:
            block, at = place
            block.payoffs[at] += payoff
            block.counts[at] += 1.0
            block.squares[at] += payoff * payoff
            return
        log_ratio = log_density - log_density[source]
        if log_ratio.max() > passes.MOST:
            self.distant.append(Distant(-1, log_ratio, payoff))
            return
        block = self._room(keyed=True)
        self.places[key] = block, block.used  # type: ignore[assignment]
        assert block.exact is not None
        block.exact.append(np.exp(log_ratio))
        self._write(block, source, jnp.asarray(block.exact[-1], jnp.float32), payoff, None, 0.0)

    def add_plays(self, times: Indices) -> None:
        Columns.add_plays(self, times)
        self.on_device = jnp.asarray(self.plays[layout.NOW], jnp.float64)
        for block in self.blocks:
            block.stale = True

    def _write(
        self, block: DeviceBlock, source: int, column: Any, payoff: float, point: Array | None, own: float
    ) -> None:
        at = block.used
        usual = isinstance(block.ratios, jax.Array) and block.behind == [source] and not block.stale
        if usual:
            block.behind.clear()  # all that is behind is the play of this sample, which one call adds
        else:
            self._follow(block)
        if isinstance(block.ratios, jax.Array):
            block.ratios, block.mixture = passes.write(
                block.ratios, block.mixture, self.on_device, column, source, float(usual), at
            )
        else:
            if isinstance(block.ratios, passes.Recomputed):
                block.ratios.points[at], block.ratios.own[at] = point, own
            else:
                block.ratios[:, at] = np.asarray(column)
            block.mixture = block.mixture.at[at].set(self.on_device @ column.astype(jnp.float64))
        block.payoffs[at], block.counts[at], block.squares[at] = payoff, 1.0, payoff * payoff
        block.used += 1

    def _room(self, *, keyed: bool) -> DeviceBlock:
        """A block with room for one more sample."""
        block = self.open_keyed if keyed else self.open
        if block is None or block.full:
            block = self._new(keyed)
            self.blocks.append(block)
            if keyed:
                self.open_keyed = block
            else:
                self.open = block
        return block

    def _new(self, keyed: bool) -> DeviceBlock:
        size, needed = self.size, passes.BYTES * self.sources * self.size
        ratios: Any
        if needed <= self.budget:
            self.budget -= needed
            ratios = jnp.zeros((self.sources, size), jnp.float32)
        elif self.members is not None and not keyed:
            ratios = passes.Recomputed(self.members, np.zeros((size, self.dimension)), np.full(size, np.inf))
        else:
            ratios = np.zeros((self.sources, size), np.float32)
        exact: list[Array] | None = [] if keyed else None
        none = np.zeros((3, size))
        return DeviceBlock(ratios, jnp.ones(size), none[0], none[1], none[2], exact)

    # Sums.

    def _follow(self, block: DeviceBlock) -> None:
        """Bring a block's mixture up to date."""
        if block.stale or len(block.behind) > BEHIND:
            block.mixture, block.stale = self._mixed_anew(block), False
        elif block.behind:
            sources, times = _padded(block.behind, 8 if len(block.behind) <= 8 else BEHIND)
            block.mixture = passes.follow(block.mixture, block.ratios, sources, times)
        block.behind.clear()

    def _mixed_anew(self, block: DeviceBlock) -> Any:
        if not isinstance(block.ratios, passes.Recomputed):
            return passes.mix(block.ratios, self.on_device)
        played = np.flatnonzero(self.plays[layout.NOW])  # far fewer than there are
        sources = np.zeros(2 ** int(np.ceil(np.log2(len(played)))), np.int64)
        times = np.zeros(len(sources))
        sources[: len(played)], times[: len(played)] = played, self.plays[layout.NOW, played]
        return passes.mix_played(block.ratios, sources, times)

    def _blocks_now(self) -> Iterator[DeviceBlock]:
        for block in self.blocks:
            self._follow(block)
            yield block

    def table(self, eta: Any, term: float, told: float) -> Array:
        eta = jnp.asarray(eta)
        cut, threshold, width = passes.begin_estimate(eta, term, told)
        value = coverage = jnp.zeros(self.sources)
        for block in self._blocks_now():
            gains, covered = passes.sums(block.ratios, block.mixture, block.payoffs, block.counts, cut, block.width)
            value, coverage = value + gains, coverage + covered
        rows = {
            layout.VALUE: value, layout.EFFECTIVE: eta[layout.ETA], layout.THRESHOLD: threshold, layout.WIDTH: width,
            layout.COVERAGE: coverage, layout.LOG_EFFECTIVE: eta[layout.LOG_ETA], layout.CUT: cut,
        }  # fmt: skip
        table = np.array(jnp.stack([rows[i] for i in range(len(rows))]))
        for sample in self.distant:
            weight = np.minimum(self._weights(sample), table[layout.CUT])
            table[layout.COVERAGE] += weight
            table[layout.VALUE] += weight * sample.payoff
        return table

    def coverage(self, cut: Array) -> Array:
        total, limit = jnp.zeros(self.sources), jnp.asarray(cut)
        for block in self._blocks_now():
            total = total + passes.sums(block.ratios, block.mixture, block.payoffs, block.counts, limit, block.width)[1]
        covered = np.array(total)
        for sample in self.distant:
            covered += np.minimum(self._weights(sample), cut)
        return covered

    def moments(self, cut: Array) -> Array:
        total, limit = jnp.zeros((3, self.sources)), jnp.asarray(cut)
        for block in self._blocks_now():
            sides = block.payoffs, block.counts, block.squares
            total = total + passes.moments(block.ratios, block.mixture, *sides, limit)
        moments = np.array(total)
        for sample in self.distant:
            moments += np.minimum(self._weights(sample), cut) ** 2 * sample.payoff ** np.arange(3)[:, None]
        return moments

    def histograms(self, rows: Indices, cut: Array) -> tuple[Array, Array]:
        weight, sums = np.zeros((2, len(rows), layout.BINS))
        limit = jnp.asarray(cut)
        for block in self._blocks_now():
            spread = _spread(block)
            for start in range(0, len(rows), ROWS):
                some = rows[start : start + ROWS]
                filled = np.resize(some, min(ROWS, 2 ** int(np.ceil(np.log2(max(len(some), 8))))))
                found = passes.histograms(block.ratios, block.mixture, spread, filled, limit)
                for total, part in zip((weight, sums), found, strict=True):
                    total[start : start + len(some)] += np.asarray(part)[: len(some)]
        for sample in self.distant:
            w, place = np.minimum(self._weights(sample), cut)[rows], self.passes.payoff_bin(sample.payoff)
            weight[:, place] += w
            sums[:, place] += w * sample.payoff
        return weight, sums

    def parts(self) -> Iterator[Part]:
        for block in self._blocks_now():
            n = block.used
            ratios = np.asarray(passes.ratios_of(block.ratios), np.float64)[:, :n]
            yield Part(ratios / np.asarray(block.mixture)[:n], block.payoffs[:n], block.counts[:n])
        for sample in self.distant:
            yield Part(self._weights(sample)[:, None], np.array([sample.payoff]), np.ones(1))

    def _blocks(self) -> list[Any]:
        return self.blocks

    # Save and load.

    def restore(self, state: dict[str, Any]) -> None:
        same = Columns(self.sources, 1, self.by_payoff)
        same.restore(state)
        self.plays[:], self.recent[:], self.rescaled = same.plays, same.recent, same.rescaled
        self.on_device = jnp.asarray(self.plays[layout.NOW], jnp.float64)
        self.distant = same.distant
        for key, (theirs, i) in same.places.items():
            exact = theirs.ratios[:, i].copy()
            assert theirs.counts is not None
            assert theirs.squares is not None
            if exact.max() > np.exp(passes.MOST):
                with np.errstate(divide="ignore"):
                    log_ratios, times = np.log(exact), float(theirs.counts[i])
                self.distant += [Distant(-1, log_ratios, float(theirs.payoffs[i]) / times)] * int(times)
                continue
            block = self._room(keyed=True)
            at = block.used
            assert block.exact is not None
            block.exact.append(exact)
            self._write(block, 0, jnp.asarray(exact, jnp.float32), 0.0, None, 0.0)
            block.payoffs[at], block.counts[at] = theirs.payoffs[i], theirs.counts[i]
            block.squares[at], block.stale = theirs.squares[i], True
            self.places[key] = block, at  # type: ignore[assignment]


@jax.jit
def log_densities(members: Any, point: Any) -> Any:
    """(d,) -> (K,)"""
    return members.log_density(point[None])[:, 0]


@jax.jit
def own_log_density(members: Any, sources: Any, points: Any) -> Any:
    """log p_x(z) of each pair.  (n,), (n, d) -> (n,)"""
    return jax.vmap(lambda x, z: members.some(x[None]).log_density(z[None])[0, 0])(sources, points)


def _padded(plays: list[int], size: int) -> tuple[Indices, Array]:
    sources, times = np.zeros(size, np.int64), np.zeros(size)
    sources[: len(plays)], times[: len(plays)] = plays, 1.0
    return sources, times


def _spread(block: DeviceBlock) -> passes.Spread:
    """Of a column with a mean m and a variance v, what leaves most room for a larger mean; see `numba`."""
    counts = np.maximum(block.counts, 1.0)
    mean = block.payoffs / counts
    room = np.maximum(1.0 - mean, 0.0)
    variance = np.minimum(np.maximum(block.squares / counts - mean * mean, 0.0), mean * room)
    varies = (block.counts > 1) & (variance > 1e-12 * room * room) & (room > 0.0)
    share = np.where(varies, variance / np.where(varies, variance + room * room, 1.0), 0.0)
    low = np.where(varies, np.maximum(mean - variance / np.where(varies, room, 1.0), 0.0), mean)
    place = np.where(low <= 0.0, 0, np.where(low >= 1.0, layout.BINS - 1, 1 + (low * (layout.BINS - 2)).astype(int)))
    return passes.Spread(place, low, block.counts * (1.0 - share), block.counts * share)
