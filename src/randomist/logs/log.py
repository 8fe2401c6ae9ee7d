"""`rd.Log`: what policies did and earned, checked row by row, read in chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from randomist import _checks
from randomist._types import Flags, Indices
from randomist.errors import BadRowsError, LogError, NoDataError, ParameterError, SelectionError
from randomist.logs import source, sums
from randomist.logs.problems import Problem, Problems, repeated_ids
from randomist.logs.rows import LogArrays, LoggedRows
from randomist.logs.source import ADAPTIVE, ID, LOGGER, MODEL, PAYOFF, PREFIX, PROPENSITY, UNUSUAL, Source
from randomist.logs.trouble import copies_of

if TYPE_CHECKING:
    from randomist.logs.report import Evaluation
    from randomist.logs.risk import Risk

CHUNK_ROWS = 2**14
_ROUNDING = 1e-6  # a log-probability computed in float32 may exceed 0 by as much


class Log:
    """Logged data of several policies, to evaluate candidates that may or may not be among them.

    Parameters
    ----------
    source
        A Parquet or CSV file, a folder of Parquet files, a polars frame, or a mapping of column names to arrays.
        Columns: `payoff`; `log_likelihood:<name>`, the log-likelihood under policy <name> of what was done; and
        `logger`, the name of the policy that acted, or `log_propensity`, its log-likelihood. `id` must not repeat;
        `adaptive` (true or false) flags rows whose policy was chosen by looking at payoffs. Other columns are ignored.
    candidates
        Which policies to evaluate; by default all that have a likelihood column.
    payoff_range
        What a payoff can be; a row whose payoff is outside is bad. Intervals are wrong where the range is.
    weights
        "balance" divides by the mixture of all loggers (the balance heuristic), which needs the likelihood of every
        logger in every row; "own" divides by the likelihood of the policy that acted. By default "balance" where the
        log allows it and is not adaptive.
    adaptive
        True if policies were chosen by looking at earlier payoffs. A file cannot tell that by itself.
    skip_bad_rows
        Leave bad rows out instead of raising `BadRowsError`. Rows whose payoffs are outside `payoff_range`, or clearly
        unlike the others', raise `SelectionError` all the same, because what is left would be biased.
    force
        Leave those out, too.
    chunk_rows
        How many rows are in memory at a time.
    """

    def __init__(
        self,
        source_: Source,
        /,
        *,
        candidates: Sequence[str] | None = None,
        payoff_range: tuple[float, float] = (0.0, 1.0),
        weights: str | None = None,
        adaptive: bool = False,
        skip_bad_rows: bool = False,
        force: bool = False,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._settings: dict[str, Any] = {"candidates": candidates, "payoff_range": payoff_range, "weights": weights}
        self._settings |= {"adaptive": adaptive, "skip_bad_rows": skip_bad_rows, "force": force}
        self.payoff_range = _checks.payoff_range(
            payoff_range, bounded=True, why=", since intervals need bounded payoffs"
        )
        if weights is not None:
            _checks.choice(weights, ("balance", "own"), "weights")
        self.chunk_rows = _checks.whole_number(chunk_rows, "chunk_rows")
        self._query = source.open_source(source_)
        self._by_slices = source.is_one_parquet_file(source_)
        self._types = source.schema(self._query)
        self.candidates = self._candidates(candidates)
        self.adaptive = bool(adaptive) or self._flagged_adaptive()
        acted, all_known = self._acted()
        self.weights = self._weights(weights, all_known)
        # Whether rows say who acted, by name; else by a propensity.
        self.names_loggers = LOGGER in self._types and (self.weights == "balance" or PROPENSITY not in self._types)
        others = sorted(name for name in acted if name not in self.candidates) if self.names_loggers else []
        self.likelihoods = (*self.candidates, *others)  # the policies whose likelihoods are read, candidates first
        self.weight_bounds: dict[str, float] = {}  # what no weight can exceed
        self.early_bounds: dict[str, float] = {}  # what none exceeds in rows that are not unusual: see logs.table
        self.early_distances: dict[tuple[str, str], float] = {}
        self.modelled: tuple[str, ...] = ()  # candidates that a model of payoffs helps
        self._repeated: Indices = np.empty(0, np.int64)
        self._check(skip_bad_rows, force)

    @classmethod
    def from_arrays(
        cls,
        payoffs: ArrayLike,
        log_likelihoods: Mapping[str, ArrayLike],
        *,
        loggers: ArrayLike | None = None,
        log_propensities: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        **settings: Any,
    ) -> Log:
        """A log from arrays of n entries: payoffs, log-likelihoods by name, and who acted or with which propensity."""
        columns: dict[str, Any] = {PAYOFF: payoffs}
        columns |= {PREFIX + name: values for name, values in log_likelihoods.items()}
        given = {LOGGER: loggers, PROPENSITY: log_propensities, ID: ids}
        return cls(columns | {name: values for name, values in given.items() if values is not None}, **settings)

    @classmethod
    def from_table(
        cls,
        source_: Any,
        /,
        *,
        payoff: str = PAYOFF,
        policies: Mapping[str, Any] | None = None,
        action: str | None = None,
        propensity: str | None = None,
        logger: str | None = None,
        logged_by: Any = None,
        context: Sequence[str] | None = None,
        actions: Sequence[Any] | None = None,
        propensity_floor: float | None = None,
        id: str | None = None,
        episode: str | None = None,
        model: Any = None,
        time: str | None = None,
        observed_until: Any = None,
        **settings: Any,
    ) -> Log:
        """A log from a table as it is; it is held in memory.

        Parameters
        ----------
        source
            A frame of pandas, polars, pyarrow or DuckDB, columns by name, or a CSV or Parquet file or folder.
        payoff, action, propensity, logger, id
            Names of columns: what a row earned, what was done, with which probability, by whom, and its id.
        policies
            Candidates by name. Each is a function of the context that returns probabilities (n, actions), a fitted
            classifier, the name of a column of actions, columns of probabilities (a list in the order of `actions`, or
            a mapping from actions to columns), an array of probabilities, a column `log_likelihood:...`, "uniform", or
            "logged": what acted, the status quo.
        logged_by
            The policy that acted, in the same ways, where it is known for all actions: its propensities follow, and
            bounds on weights and on distances between candidates.
        context
            The columns that functions and models see; by default all, or those that a model was fitted on.
        actions
            All actions, in the order of probabilities; by default the sorted distinct ones of the log.
        propensity_floor
            A probability that the logger gave every action at least, always.
        episode
            A column of episodes, if rows are steps: payoffs and log-likelihoods are added up.
        model
            What a payoff is expected to be: "default" (ridge regression), any scikit-learn regressor, or a function of
            the frame that returns (n, actions) and was not made from these rows. It narrows intervals where weights are
            bounded, and makes doubly robust estimates.
        time, observed_until
            A column of times, and the last of them whose payoffs are all in: later rows are left out.
        settings
            Those of `Log`.
        """
        from randomist.logs.table import log_from_table

        asked: dict[str, Any] = {"action": action, "propensity": propensity, "logger": logger, "id": id}
        asked |= {"logged_by": logged_by, "context": context, "actions": actions, "episode": episode}
        asked |= {"propensity_floor": propensity_floor, "policies": policies, "model": model, "settings": settings}
        asked |= {"time": time, "observed_until": observed_until}
        return log_from_table(source_, payoff=payoff, **asked)

    @classmethod
    def from_obp(cls, feedback: Mapping[str, Any], action_dist: Any, **settings: Any) -> Log:
        """A log from the bandit feedback of Open Bandit Pipeline and one or more of its `action_dist`, by name."""
        from randomist.logs.table import log_from_obp

        return log_from_obp(feedback, action_dist, settings)

    def __len__(self) -> int:
        """Rows that are used."""
        return self.rows

    def __repr__(self) -> str:
        return f"Log({self.rows} rows, candidates={list(self.candidates)}, weights={self.weights!r})"

    def batches(self) -> Iterator[LogArrays]:
        """All used rows, in order, some at a time."""
        share = np.array([self.loggers.get(name, 0) for name in self.likelihoods], dtype=np.float64)
        with np.errstate(divide="ignore"):
            log_share = np.log(share / self.rows)
        low, high = self.payoff_range
        for chunk in self.raw_batches():
            if self.names_loggers:
                own = chunk.log_likelihoods[np.arange(len(chunk.loggers)), chunk.loggers]
            else:
                own = chunk.log_propensity
            balanced = self.weights == "balance" and len(self.loggers) > 1
            density = sums.log_mixture(chunk.log_likelihoods, log_share) if balanced else own
            loggers = chunk.loggers if self.names_loggers else np.full(len(density), -1)
            payoffs = np.clip((chunk.payoffs - low) / (high - low), 0.0, 1.0)
            likelihoods = chunk.log_likelihoods[:, : len(self.candidates)]
            yield LogArrays(payoffs, likelihoods, density, own, loggers, chunk.unusual, chunk.expected)

    def raw_batches(self) -> Iterator[LoggedRows]:
        """All used rows as they were logged, in order, some at a time: payoffs in their units, every likelihood."""
        for chunk in self._chunks():
            kept = chunk.kept(self._flags(chunk) == 0) if self.problems else chunk
            if len(kept):
                yield kept

    def arrays(self) -> LogArrays:
        """All used rows in memory."""
        parts = list(self.batches())
        return LogArrays(
            *(
                np.concatenate([getattr(part, field) for part in parts])
                for field in ("payoffs", "log_likelihoods", "log_density", "log_own", "loggers", "unusual", "expected")
            )
        )

    def column(self, name: str) -> Iterator[pl.Series]:
        """Any column of the source, of the rows that are used, some at a time."""
        if name not in self._types:
            raise LogError(f"the log has no column {name!r}; it has {', '.join(self._types)}")
        start = 0
        kept = self._kept() if self.problems else None
        for frame in source.chunks(self._query.select(name), self.chunk_rows, self._by_slices):
            part = frame[name]
            yield part if kept is None else part.filter(pl.Series(kept[start : start + len(part)]))
            start += len(part)

    def where(self, name: str, value: Any) -> Log:
        """The log of the rows that have this value in a column."""
        rows = self._query.filter(pl.col(name).eq_missing(pl.lit(value)))
        part = Log(rows, **self._settings, chunk_rows=self.chunk_rows)
        part.modelled, part.weight_bounds = self.modelled, self.weight_bounds  # early ones are those of other rows
        return part

    def _kept(self) -> Flags:
        return np.concatenate([self._flags(chunk) == 0 for chunk in self._chunks()])

    def sensitivity(self, factors: Sequence[float] = (1.0, 1.1, 1.2, 1.5), **settings: Any) -> dict[float, Evaluation]:
        """Evaluations that hold if propensities are wrong by up to each of the factors, in every row."""
        return {factor: self.evaluate(propensity_factor=factor, **settings) for factor in factors}

    def risk(self, **settings: Any) -> Risk:
        """Bands of the distribution of every candidate's payoff: see `randomist.logs.risk`."""
        from randomist.logs.risk import risk

        return risk(self, **settings)

    def evaluate(self, **settings: Any) -> Evaluation:
        """Estimates and confidence intervals for every candidate: see `randomist.logs.evaluate`."""
        from randomist.logs.evaluation import evaluate

        return evaluate(self, **settings)

    # What the columns say.

    def _candidates(self, chosen: Sequence[str] | None) -> tuple[str, ...]:
        names = [name.removeprefix(PREFIX) for name in self._types if name.startswith(PREFIX)]
        missing = [PAYOFF] if PAYOFF not in self._types else []
        if chosen is not None:
            if isinstance(chosen, str) or not chosen or len(set(chosen)) < len(chosen):
                raise ParameterError(f"candidates must be different names, at least one, got {chosen!r}")
            missing += [PREFIX + name for name in chosen if name not in names]
        elif not names:
            missing.append(f"{PREFIX}<name>, one per candidate")
        if LOGGER not in self._types and PROPENSITY not in self._types:
            missing.append(f"{LOGGER} (or {PROPENSITY})")
        if missing:
            raise LogError(
                f"the log has no column {', no column '.join(missing)}; it has {', '.join(self._types) or 'no columns'}"
            )
        return tuple(chosen or names)

    def _flagged_adaptive(self) -> bool:
        if ADAPTIVE not in self._types:
            return False
        kind = self._types[ADAPTIVE]
        flag = pl.col(ADAPTIVE)
        if kind == pl.String:
            flag = flag.str.to_lowercase().str.strip_chars().is_in(["true", "1", "yes"])
        elif kind.is_integer():
            flag = flag != 0
        elif kind != pl.Boolean:
            raise LogError(f"column {ADAPTIVE!r} holds {kind}, and true or false is needed")
        return bool(source.collect(self._query.select(flag.any())).item())

    def _acted(self) -> tuple[list[str], bool]:
        """The loggers that have a likelihood column, and whether all have one."""
        if LOGGER not in self._types:
            return [], False
        found: set[str | None] = set()
        for chunk in source.chunks(self._query.select(LOGGER), source.SLICE_ROWS, self._by_slices):
            found.update(chunk[LOGGER].unique().cast(pl.String).to_list())
        names = sorted(found, key=str)
        known = [name for name in names if name is not None and PREFIX + name in self._types]
        return known, len(known) == len(names)

    def _weights(self, chosen: str | None, all_known: bool) -> str:
        if chosen == "balance" and LOGGER not in self._types:
            raise LogError(
                f"weights='balance' needs a column {LOGGER!r} that names the policy of each row; "
                f"with {PROPENSITY!r} alone, weights are 'own'"
            )
        if chosen is not None:
            return chosen
        return "balance" if not self.adaptive and (all_known or PROPENSITY not in self._types) else "own"

    # What the rows say.

    def _chunks(self, hashed: bool = False) -> Iterator[LoggedRows]:
        likelihoods = [PREFIX + name for name in self.likelihoods]
        columns = [source.numbers(name, self._types[name]) for name in (PAYOFF, *likelihoods)]
        if self.names_loggers:
            codes = {name: code for code, name in enumerate(self.likelihoods)}
            name = pl.col(LOGGER).cast(pl.String)
            columns.append(name.replace_strict(codes, default=-1, return_dtype=pl.Int64).fill_null(-1).alias(LOGGER))
        elif self.weights == "own":
            columns.append(source.numbers(PROPENSITY, self._types[PROPENSITY]))
        if ID in self._types:
            columns.append(pl.col(ID).is_null().alias(ID))
        if UNUSUAL in self._types:
            columns.append(pl.col(UNUSUAL))
        columns += [pl.col(name) for name in self._model]
        read = [column.meta.root_names()[0] for column in columns]
        start = 0
        query = self._query if hashed else self._query.select(read)
        for raw in source.chunks(query, self.chunk_rows, self._by_slices):
            frame = raw.select(columns)  # chunk by chunk: in the query, some of this would need all rows at once
            hashes = raw.hash_rows(0).to_numpy().view(np.int64) if hashed else np.empty(0, np.int64)
            yield LoggedRows.of(start, frame, likelihoods, hashes, self._model)
            start += frame.height

    @property
    def _model(self) -> list[str]:
        """Columns of what a model expects: of the action taken, then of every candidate; early, then crossed."""
        if MODEL + "early" not in self._types:
            return []
        kinds = (MODEL + "early", MODEL + "crossed")
        return [name for kind in kinds for name in (kind, *(f"{kind}:{candidate}" for candidate in self.candidates))]

    def _flags(self, chunk: LoggedRows) -> Indices:
        """What is wrong with each row of a chunk, as bits."""
        most = math.inf if self.names_loggers else _ROUNDING  # densities have no bound, propensities do
        flags: Indices = sums.flag_rows(
            chunk.payoffs, *self.payoff_range, chunk.log_likelihoods, chunk.loggers, chunk.log_propensity, most
        )
        flags[chunk.nameless] |= sums.ID
        inside = slice(*np.searchsorted(self._repeated, [chunk.start, chunk.start + len(flags)]))
        flags[self._repeated[inside] - chunk.start] |= sums.REPEATED
        return flags

    def _check(self, skip: bool, force: bool) -> None:
        """The first pass: every row is looked at, bad ones are named, and those that are used are counted."""
        if ID in self._types:
            self._repeated = repeated_ids(self._query, self._by_slices)
        found = Problems(self.payoff_range, self.likelihoods)
        counts, rows, hashes = np.zeros(len(self.likelihoods), np.int64), 0, []
        for chunk in self._chunks(hashed=ID not in self._types):
            flags = self._flags(chunk)
            good = flags == 0
            hashes.append(chunk.hashes)
            found.add(chunk.start, flags, chunk.payoffs, chunk.log_likelihoods)
            if self.names_loggers:
                counts += np.bincount(chunk.loggers[good], minlength=len(counts))
            rows += len(flags)
        self.rows_read, self.rows = rows, rows - found.rows
        # How many times every row is there, and how many more rows than by chance equal their neighbour.
        self.copies, self.side_by_side = copies_of(np.concatenate(hashes)) if hashes else (1, 0.0)
        self.problems: tuple[Problem, ...] = found.all()
        self.loggers = {name: int(count) for name, count in zip(self.likelihoods, counts, strict=True) if count}
        if self.problems and not skip:
            raise BadRowsError(found.message(rows), self.problems)
        selected = None if force or not self.rows else found.selected()
        if selected is not None:
            raise SelectionError(f"{self.problems[0]}: {selected}", self.problems)
        if not self.rows:
            words = "; ".join(str(problem) for problem in self.problems)
            raise NoDataError(f"the log has no usable row of {rows}{': ' + words if words else ''}")
