"""`rd.Log`: what policies did and earned, checked row by row, read in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from randomist import _checks
from randomist.logs.checked import SPAN, Check
from randomist.logs.columns import Columns, Reading
from randomist.logs.files import MOST_BYTES, MOST_ROWS, TABLE_BYTES, TABLE_ROWS, limits_of
from randomist.logs.pieces import REMOTE, Piece, Weighing, cut, elsewhere, longest
from randomist.logs.problems import Problem
from randomist.logs.rows import LogArrays, LoggedRows
from randomist.logs.source import ID, LOGGER, PAYOFF, PREFIX, PROPENSITY, Source

if TYPE_CHECKING:
    from randomist.logs.best import Contenders
    from randomist.logs.propensities import Fitted
    from randomist.logs.report import Evaluation
    from randomist.logs.risk import Risk

CHUNK_ROWS = 2**16


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
        How many rows are in memory at a time, for each thread.
    jobs
        How many threads look at the rows; by default as many as there are processors.
    max_rows, max_bytes
        The most rows of a file, 2 * 10^8, and the most bytes of a row group of Parquet, 2^30, of which a few are in
        memory at a time. A file may unpack to far more than its size; beyond this it is refused before it is read.
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
        jobs: int | None = None,
        max_rows: int = MOST_ROWS,
        max_bytes: int = MOST_BYTES,
    ) -> None:
        self._settings: dict[str, Any] = {"candidates": candidates, "payoff_range": payoff_range, "weights": weights}
        self._settings |= {"adaptive": adaptive, "skip_bad_rows": skip_bad_rows, "force": force}
        self.payoff_range = _checks.payoff_range(
            payoff_range, bounded=True, why=", since intervals need bounded payoffs"
        )
        if weights is not None:
            _checks.choice(weights, ("balance", "own"), "weights")
        self.chunk_rows = _checks.whole_number(chunk_rows, "chunk_rows")
        if jobs is not None:
            _checks.whole_number(jobs, "jobs")
        limits = limits_of(max_rows, max_bytes)
        self._columns = Columns(source_, limits, candidates, weights, bool(adaptive), self.chunk_rows)
        self.candidates, self.weights = self._columns.candidates, self._columns.weights
        self.adaptive, self.names_loggers = self._columns.adaptive, self._columns.names_loggers
        self.likelihoods = self._columns.likelihoods  # the policies whose likelihoods are read, candidates first
        self.weight_bounds: dict[str, float] = {}  # what no weight can exceed
        self.early_bounds: dict[str, float] = {}  # what none exceeds in rows that are not unusual: see logs.table
        self.early_distances: dict[tuple[str, str], float] = {}
        self.fitted: Fitted | None = None  # how propensities were fitted, if they were not logged
        self.modelled: tuple[str, ...] = ()  # candidates that a model of payoffs helps
        self.cuts: dict[str, list[float]] = {}  # B of what the model adds to their gains and losses: see logs.models
        self._check = Check(self._columns, self.payoff_range, jobs)
        checked = self._check.all(skip_bad_rows, force)
        self.rows_read, self.rows, self.loggers = checked.read, checked.rows, checked.loggers
        self.problems: tuple[Problem, ...] = checked.problems
        self.copies, self.side_by_side = checked.copies, checked.side_by_side

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
        propensity_model: Any = None,
        id: str | None = None,
        episode: str | None = None,
        model: Any = None,
        time: str | None = None,
        observed_until: Any = None,
        max_rows: int = TABLE_ROWS,
        max_bytes: int = TABLE_BYTES,
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
            Candidates by name. Each is a function of the context that returns probabilities (n, actions), or of what
            was done (n,), where actions are too many to list; a fitted classifier, the name of a column of actions,
            columns of probabilities (a list in the order of `actions`, or a mapping from actions to columns, or to
            numbers), an array of probabilities, a column `log_likelihood:...`, "uniform", or "logged": what acted, the
            status quo.
        logged_by
            The policy that acted, in the same ways, where it is known for all actions: its propensities follow, and
            bounds on weights and on distances between candidates.
        context
            The columns that functions and models see; by default all, or those that a model was fitted on.
        actions
            All actions, in the order of probabilities; by default the sorted distinct ones of the log.
        propensity_floor
            A probability that the logger gave every action at least, always.
        propensity_model
            Where no propensities were logged: "default" (logistic regression on the context) or any scikit-learn
            classifier. Intervals then hold if it is right to within `propensity_factor` in every row, 1.2 by default.
        episode
            A column of episodes, if rows are steps: payoffs and log-likelihoods are added up.
        model
            What a payoff is expected to be: "default" (ridge regression), any scikit-learn regressor, or a function of
            the frame that returns (n, actions) and was not made from these rows. It narrows intervals where weights are
            bounded, and makes doubly robust estimates.
        time, observed_until
            A column of times, and the last of them whose payoffs are all in: later rows are left out.
        max_rows, max_bytes
            The most rows of a file, 2 * 10^7, and the most bytes of memory that they take, 2^31: all are held at once.
        settings
            Those of `Log`.
        """
        from randomist.logs.table import log_from_table

        asked: dict[str, Any] = {"action": action, "propensity": propensity, "logger": logger, "id": id}
        asked |= {"logged_by": logged_by, "context": context, "actions": actions, "episode": episode}
        asked |= {"propensity_floor": propensity_floor, "policies": policies, "model": model, "settings": settings}
        asked |= {"time": time, "observed_until": observed_until, "propensity_model": propensity_model}
        return log_from_table(source_, payoff=payoff, limits=limits_of(max_rows, max_bytes, table=True), **asked)

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
        weighing = self.weighing()
        for rows in self.raw_batches():
            yield weighing.arrays(rows)

    def weighing(self) -> Weighing:
        """How rows become weights."""
        share = np.array([self.loggers.get(name, 0) for name in self.likelihoods], dtype=np.float64)
        with np.errstate(divide="ignore"):
            log_share = np.log(share / self.rows)
        balanced = self.weights == "balance" and len(self.loggers) > 1
        reading = self._columns.reading(acted=tuple(self.loggers))
        return Weighing(reading, len(self.candidates), self.names_loggers, log_share, balanced, self.payoff_range)

    def pieces(self, at: Callable[[int], Iterator[int]], remote: bool = False) -> Iterator[Piece]:
        """All used rows in pieces that end `at` fixed row numbers, given how many tiles fit into memory.

        `remote` ones are longer, and read by whoever sums them, if that works.
        """
        reading, span = self._columns.reading(), longest(len(self.likelihoods))
        if remote and self._columns.is_parquet and not self.problems:
            return elsewhere(self._columns.selected(reading), self.rows, at(REMOTE * span))
        return cut(self._kept_frames(reading), at(span))

    def _kept_frames(self, reading: Reading) -> Iterator[pl.DataFrame]:
        start = 0
        for raw in self._columns.frames(reading, SPAN):
            if self.problems:
                yield raw.filter(pl.Series(self._check.flags(reading.rows(start, raw)) == 0))
            else:
                yield raw
            start += raw.height

    def raw_batches(self) -> Iterator[LoggedRows]:
        """All used rows as they were logged, in order, some at a time: payoffs in their units, every likelihood."""
        for chunk in self._columns.rows():
            kept = chunk.kept(self._check.flags(chunk) == 0) if self.problems else chunk
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
        parts, start = self._columns.read(name), 0
        kept = self._check.kept() if self.problems else None
        for part in parts:
            yield part if kept is None else part.filter(pl.Series(kept[start : start + len(part)]))
            start += len(part)

    def where(self, name: str, value: Any) -> Log:
        """The log of the rows that have this value in a column."""
        rows = self._columns.scan.query.filter(pl.col(name).eq_missing(pl.lit(value)))
        part = Log(rows, **self._settings, chunk_rows=self.chunk_rows)
        part.modelled, part.weight_bounds = self.modelled, self.weight_bounds  # early ones are those of other rows
        part.fitted = self.fitted
        part.cuts = self.cuts if not self.early_bounds else {}
        return part

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

    def best(self, **settings: Any) -> Contenders:
        """The candidates that may be best, with what is known of each: a study of them is three lines away.

        `settings` are those of `evaluate`; by default the leader is compared with each of the others.
        """
        from randomist.logs.best import Contenders

        return Contenders.of(self.evaluate(**{"compare": "leader"} | settings))
