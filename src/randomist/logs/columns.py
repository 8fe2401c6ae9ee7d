"""What the columns of a log say: who is evaluated, who acted, by which weights; and the rows, read through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from randomist.errors import LogError, ParameterError
from randomist.logs import source
from randomist.logs.files import Limits
from randomist.logs.rows import LoggedRows
from randomist.logs.source import ADAPTIVE, CUTS, ID, LOGGER, MODEL, PAYOFF, PREFIX, PROPENSITY, UNUSUAL, Scan, Source

_FEW = 8  # policies


@dataclass(frozen=True, eq=False)
class Reading:
    """How rows of a frame become arrays; it can be sent to other machines."""

    columns: list[pl.Expr]
    likelihoods: list[str]
    expected: list[str]
    hashed: bool

    def rows(self, start: int, raw: pl.DataFrame) -> LoggedRows:
        """Rows of which `start` is the number of the first; hashed where one asks whether rows repeat."""
        frame = raw.select(self.columns)  # chunk by chunk: in the query, some of this would need all rows at once
        hashes = raw.hash_rows(0).to_numpy().view(np.int64) if self.hashed else np.empty(0, np.int64)
        return LoggedRows.of(start, frame, self.likelihoods, hashes, self.expected)


class Columns:
    """The columns of a source, as the settings of a log choose among them: see `Log`."""

    def __init__(
        self,
        source_: Source,
        limits: Limits,
        candidates: Sequence[str] | None,
        weights: str | None,
        adaptive: bool,
        chunk_rows: int,
    ) -> None:
        self.scan = source.open_source(source_, limits)
        self.is_parquet = source.is_parquet(source_)
        self.types = self.scan.schema()
        self.chunk_rows = chunk_rows
        self.candidates = self._candidates(candidates)
        self.adaptive = adaptive or self._flagged_adaptive()
        acted, all_known = self._acted(candidates is not None or PROPENSITY in self)
        self.weights = self._weights(weights, all_known)
        # Whether rows say who acted, by name; else by a propensity.
        self.names_loggers = LOGGER in self.types and (self.weights == "balance" or PROPENSITY not in self.types)
        others = sorted(name for name in acted if name not in self.candidates) if self.names_loggers else []
        self.likelihoods = (*self.candidates, *others)  # the policies whose likelihoods are read, candidates first

    def __contains__(self, name: str) -> bool:
        return name in self.types

    def reading(self, hashed: bool = False, acted: tuple[str, ...] | None = None) -> Reading:
        """What is read of every row; few policies that `acted` are found faster by their names than by a table."""
        likelihoods = [PREFIX + name for name in self.likelihoods]
        columns = [source.numbers(name, self.types[name]) for name in (PAYOFF, *likelihoods)]
        if self.names_loggers:
            columns.append(self._code(acted).alias(LOGGER))
        elif self.weights == "own":
            columns.append(source.numbers(PROPENSITY, self.types[PROPENSITY]))
        if ID in self:
            columns.append(pl.col(ID).is_null().alias(ID))
        if UNUSUAL in self:
            columns.append(pl.col(UNUSUAL))
        expected = self._expected()
        return Reading([*columns, *(pl.col(name) for name in expected)], likelihoods, expected, hashed)

    def _code(self, acted: tuple[str, ...] | None) -> pl.Expr:
        """Who acted, as an index into `likelihoods`; -1 where it is none of them."""
        name = pl.col(LOGGER).cast(pl.String)
        if acted is None or len(acted) > _FEW:
            known = name.cast(pl.Enum(list(self.likelihoods)), strict=False).to_physical()
            return known.cast(pl.Int64).fill_null(-1)
        code = pl.lit(-1, pl.Int64)
        for policy in acted:
            code = pl.when(name == policy).then(pl.lit(self.likelihoods.index(policy), pl.Int64)).otherwise(code)
        return code

    def selected(self, reading: Reading) -> Scan:
        """The query for what is read."""
        read = {column.meta.root_names()[0] for column in reading.columns}
        if reading.hashed or len(read) == len(self.types):
            return self.scan
        return self.scan.select([name for name in self.types if name in read])  # another order would need more memory

    def frames(self, reading: Reading, rows: int) -> Iterator[pl.DataFrame]:
        """What the source has for that, some rows at a time."""
        return self.selected(reading).chunks(rows)

    def rows(self, hashed: bool = False) -> Iterator[LoggedRows]:
        """All rows of the source, good and bad, some at a time."""
        reading, start = self.reading(hashed), 0
        for raw in self.frames(reading, self.chunk_rows):
            yield reading.rows(start, raw)
            start += raw.height

    def read(self, name: str) -> Iterator[pl.Series]:
        """Any column of the source, some rows at a time."""
        if name not in self:
            raise LogError(f"{self.scan.place} has no column {name!r}; it has {', '.join(self.types)}")
        return (frame[name] for frame in self.scan.select(name).chunks(self.chunk_rows))

    def _expected(self) -> list[str]:
        """Columns of what a model expects: of the action taken, then of every candidate; early, then crossed.

        Then, if weights are known well enough, what is to be added to each candidate's gain and loss, by cuts.
        """
        if MODEL + "early" not in self:
            return []
        kinds = (MODEL + "early", MODEL + "crossed")
        found = [name for kind in kinds for name in (kind, *(f"{kind}:{candidate}" for candidate in self.candidates))]
        cut = [
            f"{MODEL}cut {j} {side}:{candidate}"
            for candidate in self.candidates
            for j in range(CUTS)
            for side in ("gain", "loss")
        ]
        return found + (cut if cut[0] in self else [])

    def _candidates(self, chosen: Sequence[str] | None) -> tuple[str, ...]:
        names = [name.removeprefix(PREFIX) for name in self.types if name.startswith(PREFIX)]
        missing = [PAYOFF] if PAYOFF not in self else []
        if chosen is not None:
            if isinstance(chosen, str) or not chosen or len(set(chosen)) < len(chosen):
                raise ParameterError(f"candidates must be different names, at least one, got {chosen!r}")
            missing += [PREFIX + name for name in chosen if name not in names]
        elif not names:
            missing.append(f"{PREFIX}<name>, one per candidate")
        if LOGGER not in self and PROPENSITY not in self:
            missing.append(f"{LOGGER} (or {PROPENSITY})")
        if missing:
            raise LogError(
                f"{self.scan.place} has no column {', no column '.join(missing)}; "
                f"it has {', '.join(self.types) or 'no columns'}"
            )
        return tuple(chosen or names)

    def _flagged_adaptive(self) -> bool:
        if ADAPTIVE not in self:
            return False
        kind = self.types[ADAPTIVE]
        flag = pl.col(ADAPTIVE)
        if kind == pl.String:
            flag = flag.str.to_lowercase().str.strip_chars().is_in(["true", "1", "yes"])
        elif kind.is_integer():
            flag = flag != 0
        elif kind != pl.Boolean:
            raise LogError(f"column {ADAPTIVE!r} holds {kind}, and true or false is needed")
        return bool(self.scan.select(flag.any()).collect().item())

    def _acted(self, asked: bool) -> tuple[list[str], bool]:
        """The loggers that have a likelihood column, and whether all have one; not looked at if that changes nothing.

        It changes nothing if every policy with likelihoods is a candidate and no propensity could take their place.
        """
        if LOGGER not in self:
            return [], False
        if not asked:
            return list(self.candidates), True
        found: set[str | None] = set()
        for chunk in self.scan.select(LOGGER).chunks(source.SLICE_ROWS):
            found.update(chunk[LOGGER].unique().cast(pl.String).to_list())
        names = sorted(found, key=str)
        known = [name for name in names if name is not None and PREFIX + name in self]
        return known, len(known) == len(names)

    def _weights(self, chosen: str | None, all_known: bool) -> str:
        if chosen == "balance" and LOGGER not in self:
            raise LogError(
                f"weights='balance' needs a column {LOGGER!r} that names the policy of each row; "
                f"with {PROPENSITY!r} alone, weights are 'own'"
            )
        if chosen is not None:
            return chosen
        return "balance" if not self.adaptive and (all_known or PROPENSITY not in self) else "own"
