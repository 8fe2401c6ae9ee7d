"""What the columns of a log say: who is evaluated, who acted, by which weights; and the rows, read through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from randomist.errors import LogError, ParameterError
from randomist.logs import source
from randomist.logs.rows import LoggedRows
from randomist.logs.source import ADAPTIVE, ID, LOGGER, MODEL, PAYOFF, PREFIX, PROPENSITY, UNUSUAL, Source


class Columns:
    """The columns of a source, as the settings of a log choose among them: see `Log`."""

    def __init__(
        self, source_: Source, candidates: Sequence[str] | None, weights: str | None, adaptive: bool, chunk_rows: int
    ) -> None:
        self.query = source.open_source(source_)
        self.by_slices = source.is_one_parquet_file(source_)
        self.types = source.schema(self.query)
        self.chunk_rows = chunk_rows
        self.candidates = self._candidates(candidates)
        self.adaptive = adaptive or self._flagged_adaptive()
        acted, all_known = self._acted()
        self.weights = self._weights(weights, all_known)
        # Whether rows say who acted, by name; else by a propensity.
        self.names_loggers = LOGGER in self.types and (self.weights == "balance" or PROPENSITY not in self.types)
        others = sorted(name for name in acted if name not in self.candidates) if self.names_loggers else []
        self.likelihoods = (*self.candidates, *others)  # the policies whose likelihoods are read, candidates first

    def __contains__(self, name: str) -> bool:
        return name in self.types

    def rows(self, hashed: bool = False) -> Iterator[LoggedRows]:
        """All rows of the source, good and bad, some at a time; hashed where one asks whether rows repeat."""
        likelihoods = [PREFIX + name for name in self.likelihoods]
        columns = [source.numbers(name, self.types[name]) for name in (PAYOFF, *likelihoods)]
        if self.names_loggers:
            codes = {name: code for code, name in enumerate(self.likelihoods)}
            name = pl.col(LOGGER).cast(pl.String)
            columns.append(name.replace_strict(codes, default=-1, return_dtype=pl.Int64).fill_null(-1).alias(LOGGER))
        elif self.weights == "own":
            columns.append(source.numbers(PROPENSITY, self.types[PROPENSITY]))
        if ID in self:
            columns.append(pl.col(ID).is_null().alias(ID))
        if UNUSUAL in self:
            columns.append(pl.col(UNUSUAL))
        expected = self._expected()
        columns += [pl.col(name) for name in expected]
        read = [column.meta.root_names()[0] for column in columns]
        start = 0
        query = self.query if hashed else self.query.select(read)
        for raw in source.chunks(query, self.chunk_rows, self.by_slices):
            frame = raw.select(columns)  # chunk by chunk: in the query, some of this would need all rows at once
            hashes = raw.hash_rows(0).to_numpy().view(np.int64) if hashed else np.empty(0, np.int64)
            yield LoggedRows.of(start, frame, likelihoods, hashes, expected)
            start += frame.height

    def read(self, name: str) -> Iterator[pl.Series]:
        """Any column of the source, some rows at a time."""
        if name not in self:
            raise LogError(f"the log has no column {name!r}; it has {', '.join(self.types)}")
        return (frame[name] for frame in source.chunks(self.query.select(name), self.chunk_rows, self.by_slices))

    def _expected(self) -> list[str]:
        """Columns of what a model expects: of the action taken, then of every candidate; early, then crossed."""
        if MODEL + "early" not in self:
            return []
        kinds = (MODEL + "early", MODEL + "crossed")
        return [name for kind in kinds for name in (kind, *(f"{kind}:{candidate}" for candidate in self.candidates))]

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
                f"the log has no column {', no column '.join(missing)}; it has {', '.join(self.types) or 'no columns'}"
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
        return bool(source.collect(self.query.select(flag.any())).item())

    def _acted(self) -> tuple[list[str], bool]:
        """The loggers that have a likelihood column, and whether all have one."""
        if LOGGER not in self:
            return [], False
        found: set[str | None] = set()
        for chunk in source.chunks(self.query.select(LOGGER), source.SLICE_ROWS, self.by_slices):
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
