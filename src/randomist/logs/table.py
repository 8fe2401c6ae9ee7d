"""`Log.from_table` and `Log.from_obp`: from a table of contexts, actions, propensities and payoffs to a log.

A logged propensity says nothing about actions that were not taken, so it bounds no weight; `propensity_floor` does, and
so does the full distribution of the logger, `logged_by`. Given that, W(x) = max_a π(a|x) / π₀(a|x) is known in every
row before its action is drawn. The largest of the first `FIRST` rows, with some room, is the bound that is used, and no
stake is limited by it in those rows. A later row that exceeds it is unusual: there E[ω | x] = 1 takes the place of ω
where ω is subtracted, which leaves every mean as it is, and the floor too. The same goes for distances between weights.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from randomist import _checks
from randomist._types import Array
from randomist.errors import BadRowsError, LogError, ParameterError
from randomist.importance.intervals.plugin import FIRST
from randomist.logs.candidates import codes, is_function, likelihoods_taken, probabilities, selected
from randomist.logs.files import Limits
from randomist.logs.frames import as_given, as_numbers, columns_of, read_frame
from randomist.logs.models import cut_columns, cuts, expected_payoffs, model_columns
from randomist.logs.problems import SHOWN, Problem
from randomist.logs.propensities import Fitted, fitted_propensities
from randomist.logs.source import ID, LOGGER, MODEL, PAYOFF, PREFIX, PROPENSITY, UNUSUAL

if TYPE_CHECKING:
    from randomist.logs.log import Log

UNIFORM, LOGGED = "uniform", "logged"  # policies that need no column
_ROOM = 1.25  # above what the first rows show
_PAIRS = 20  # candidates for whose pairs distances are computed


def log_from_table(
    source: Any,
    *,
    payoff: str,
    limits: Limits,
    policies: Mapping[str, Any] | None,
    action: str | None,
    propensity: str | None,
    logger: str | None,
    logged_by: Any,
    context: Sequence[str] | None,
    actions: Sequence[Any] | None,
    propensity_floor: float | None,
    id: str | None,
    episode: str | None,
    model: Any,
    time: str | None,
    observed_until: Any,
    propensity_model: Any,
    settings: Mapping[str, Any],
) -> Log:
    """See `Log.from_table`."""
    from randomist.logs.log import Log

    known = (propensity, logger, logged_by, propensity_floor)
    if propensity_model is not None and any(given is not None for given in known):
        raise ParameterError(
            "propensity_model is for tables without propensities: it does not go with propensity, logger, logged_by or "
            "propensity_floor"
        )
    frame = read_frame(source, limits)
    native = as_given(source, frame)
    columns_of(frame, [name for name in (payoff, action, propensity, logger, id, episode, time) if name is not None])
    columns_of(frame, context or ())
    made = _Made(frame, native, context, action, actions)
    columns = {PAYOFF: as_numbers(frame, payoff)}
    for name, policy in (policies or {}).items():
        if not _is_word(policy, LOGGED, frame):
            columns[PREFIX + name] = made.log_likelihood(name, policy)
    bounds: dict[str, float] = {}
    distances: dict[tuple[str, str], float] = {}
    if logged_by is not None:
        drawn = made.distribution("logged_by", logged_by)
        columns[PROPENSITY] = made.taken(drawn)
        if episode is None:
            bounds, distances, columns[UNUSUAL] = _bounds(made, drawn)
    fitted = None
    if propensity_model is not None:
        columns[PROPENSITY], fitted = made.fitted(propensity_model)
    if propensity is not None:
        columns[PROPENSITY] = _log_propensity(frame, propensity, settings)
    for name in [name for name, policy in (policies or {}).items() if _is_word(policy, LOGGED, frame)]:
        if PROPENSITY not in columns:
            raise ParameterError(f"policy {name!r} is what was logged, which needs its propensities: propensity=")
        columns[PREFIX + name] = columns[PROPENSITY]
    if logger is not None:
        columns[LOGGER] = frame[logger]
    if propensity_floor is not None:
        _check_floor(propensity_floor, columns, propensity or "logged_by")
    if id is not None:
        columns[ID] = frame[id]
    most = dict(bounds)
    if propensity_floor is not None and episode is None:
        most = {name: min(bounds.get(name, math.inf), 1.0 / propensity_floor) for name in policies or ()}
    if model is not None:
        likely = drawn if logged_by is not None else propensity_floor
        columns |= made.expected(model, columns, settings, list(policies or ()), episode, likely, most)
    kept = (name for name in frame.columns if name not in (PAYOFF, LOGGER, PROPENSITY, *columns))
    whole = pl.DataFrame([frame[name] for name in kept] + [pl.Series(name, given) for name, given in columns.items()])
    if observed_until is not None:
        whole = whole.filter(_observed(frame, time, observed_until))
    if episode is not None:
        whole = _by_episode(whole, episode)
    log = Log(whole, **settings)
    log.early_bounds, log.early_distances, log.fitted = bounds, distances, fitted
    log.modelled = tuple(name for name in log.candidates if model is not None and name in made.known)
    if f"{MODEL}cut 0 gain:{log.candidates[0]}" in columns:
        log.cuts = {name: cuts(most[name]) for name in log.modelled}
    if propensity_floor is not None and episode is None:
        log.weight_bounds = dict.fromkeys(policies or (), 1.0 / propensity_floor)
    return log


def _observed(frame: pl.DataFrame, time: str | None, until: Any) -> pl.Series:
    """Rows whose payoff is in: not by their payoff, so that nothing is selected."""
    if time is None:
        raise ParameterError("observed_until= needs the column of times: name it with time=")
    column = frame[time]
    try:
        if isinstance(until, str) and column.dtype != pl.String:
            until = pl.Series([until]).str.to_datetime().item() if column.dtype.is_temporal() else float(until)
        kept = pl.Series((column <= until).fill_null(False))
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise ParameterError(
            f"observed_until={until!r} cannot be compared with column {time!r}, which holds {column.dtype}"
        ) from None
    if not kept.any():
        raise LogError(
            f"no row of column {time!r} is at or before observed_until={until!r}; it begins at {column.min()!r}"
        )
    return kept


def _is_word(policy: Any, word: str, frame: pl.DataFrame) -> bool:
    return isinstance(policy, str) and policy == word and word not in frame.columns


class _Made:
    """Policies made to probabilities; those of all actions are kept for bounds where they are known."""

    def __init__(
        self, frame: pl.DataFrame, native: Any, context: Sequence[str] | None, action: str | None, actions: Any
    ) -> None:
        self.frame, self._native, self._context, self._action = frame, native, context, action
        self.known: dict[str, Array] = {}
        if action is not None:
            listed = frame[action].drop_nulls().unique().sort().to_list() if actions is None else list(actions)
            if len(set(listed)) < len(listed) or not listed:
                raise ParameterError(f"actions must be different, at least one, got {listed}")
            self.actions = listed
            self._codes = codes(frame[action], listed, f"column {action!r} has")

    def distribution(self, name: str, policy: Any) -> Array:
        """(n, A)"""
        if self._action is None:
            raise ParameterError(f"policy {name!r} gives probabilities of actions: name the column of actions, action=")
        return probabilities(name, policy, self.frame, self._native, self._context, self.actions)

    def log_likelihood(self, name: str, policy: Any) -> pl.Series:
        """The log-probability of the action that was taken; a column of log-likelihoods as it is."""
        if isinstance(policy, str) and policy.startswith(PREFIX):
            return as_numbers(self.frame, *columns_of(self.frame, [policy]))
        if is_function(policy):
            found = np.asarray(policy(selected(self._native, self._context)), dtype=np.float64)
            if found.shape == (self.frame.height,):  # of what was done, not of all actions
                with np.errstate(divide="ignore"):
                    return pl.Series(np.log(likelihoods_taken(name, found)))
            policy = found if found.ndim == 2 else np.atleast_2d(found)
        if _is_word(policy, UNIFORM, self.frame) and self._action is not None:
            policy = np.full(len(self.actions), 1.0 / len(self.actions))
        self.known[name] = self.distribution(name, policy)
        return self.taken(self.known[name])

    def expected(
        self,
        model: Any,
        columns: Mapping[str, Any],
        settings: Mapping[str, Any],
        names: list[str],
        episode: str | None,
        drawn: Array | float | None,
        most: Mapping[str, float],
    ) -> dict[str, Any]:
        """What a model expects, as columns of the log; cut to floors where probabilities of the logger are known."""
        if self._action is None or episode is not None:
            raise ParameterError("a model expects payoffs of actions: it needs action=, and rows that are no steps")
        low, high = _checks.payoff_range(settings.get("payoff_range", (0.0, 1.0)), bounded=True)
        y = (columns[PAYOFF].cast(pl.Float64).fill_null(np.nan).to_numpy() - low) / (high - low)
        y = np.where((y >= 0) & (y <= 1), y, np.nan)
        found = expected_payoffs(model, self.frame, self._native, self._context, len(self.actions), self._codes, y)
        made = model_columns(found, self._codes, self.known, names)
        if drawn is None or PROPENSITY not in columns or not all(name in self.known for name in names):
            return made
        own = np.exp(columns[PROPENSITY].to_numpy())
        for name in names:
            policy = self.known[name]
            with np.errstate(divide="ignore", invalid="ignore"):
                weights = np.where(policy > 0, policy / drawn, 0.0)  # (n, A)
                taken = policy[np.arange(len(own)), self._codes] / own
            taken = np.where(np.isfinite(taken), taken, 0.0)  # of rows that are refused
            made |= cut_columns(found[0], self._codes, policy, weights, taken, most[name], name)
        return made

    def fitted(self, model: Any) -> tuple[pl.Series, Fitted]:
        """Log-propensities of what was done, by a classifier."""
        if self._action is None:
            raise ParameterError("propensities are those of actions: name the column of actions, action=")
        found, how = fitted_propensities(model, self.frame, self._context, self._codes, len(self.actions))
        return self.taken(found), how

    def taken(self, distribution: Array) -> pl.Series:
        with np.errstate(divide="ignore"):
            return pl.Series(np.log(distribution[np.arange(len(distribution)), self._codes]))


def _bounds(made: _Made, drawn: Array) -> tuple[dict[str, float], dict[tuple[str, str], float], pl.Series]:
    """Bounds of weights and of their distances from the first rows, and which rows exceed one of them."""
    unusual = np.zeros(len(drawn), np.bool_)
    bounds, distances = {}, {}

    def bound(difference: Array) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = np.where(difference > 0, difference / drawn, 0.0).max(axis=1)  # (n,)
        constant = float(np.ptp(largest)) <= 1e-9 * float(largest.max()) if np.isfinite(largest).all() else False
        most = float(largest[:FIRST].max()) * (1.0 if constant else _ROOM)
        np.logical_or(unusual, largest > most * (1 + 1e-9), out=unusual)
        return max(most * (1 + 1e-9), 1e-12)

    for name, policy in made.known.items():
        bounds[name] = max(bound(policy), 1.0)
    if len(made.known) <= _PAIRS:
        for a, b in itertools.combinations(made.known, 2):
            distances[a, b] = bound(np.abs(made.known[a] - made.known[b]))
    return bounds, distances, pl.Series(unusual)


def _log_propensity(frame: pl.DataFrame, name: str, settings: Mapping[str, Any]) -> pl.Series:
    values = as_numbers(frame, name).fill_null(np.nan).to_numpy()
    wrong = np.flatnonzero(~((values > 0.0) & (values <= 1.0 + 1e-6)))
    if len(wrong) and not settings.get("skip_bad_rows"):
        problem = Problem(f"column {name!r} is not a probability in (0, 1]", len(wrong), tuple(wrong[:SHOWN].tolist()))
        raise BadRowsError(
            f"{problem}: a logged action had a positive probability; correct them, or leave them out with "
            "skip_bad_rows=True (--skip-bad-rows)",
            (problem,),
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        return pl.Series(np.log(values))


def _check_floor(floor: float, columns: Mapping[str, Any], name: str) -> None:
    _checks.probability(floor, "propensity_floor")
    if PROPENSITY not in columns:
        raise ParameterError("propensity_floor needs a propensity: name its column with propensity=")
    least = float(np.nanmin(np.exp(columns[PROPENSITY].to_numpy())))
    if 0.0 < least < floor * (1 - 1e-9):
        raise LogError(
            f"a propensity of {name!r} is {least:.6g}, below propensity_floor={floor:g}; lower the floor to what no "
            "action's probability can ever be below"
        )


def _by_episode(frame: pl.DataFrame, episode: str) -> pl.DataFrame:
    """Steps to episodes: payoffs and logarithms are added up, of everything else the first is kept."""
    added = [name for name in frame.columns if name in (PAYOFF, PROPENSITY) or name.startswith(PREFIX)]
    rest = [name for name in frame.columns if name not in added and name != episode]
    return frame.group_by(episode, maintain_order=True).agg(
        *(pl.col(name).sum() for name in added), *(pl.col(name).first() for name in rest)
    )


def log_from_obp(feedback: Mapping[str, Any], action_dist: Any, settings: Mapping[str, Any]) -> Log:
    """See `Log.from_obp`."""
    from randomist.logs.log import Log

    needed = [key for key in ("action", "reward") if key not in feedback]
    if needed or ("pscore" not in feedback and feedback.get("pi_b") is None):
        raise LogError(f"bandit feedback needs action, reward and pscore, and has {', '.join(feedback)}")
    action = np.asarray(feedback["action"])
    rows = np.arange(len(action))
    position = feedback.get("position")
    place = np.zeros(len(action), np.int64) if position is None else np.asarray(position, np.int64)
    candidates = action_dist if isinstance(action_dist, Mapping) else {"candidate": action_dist}
    likelihoods = {}
    for name, values in candidates.items():
        table = np.asarray(values, dtype=np.float64)
        table = table[:, :, None] if table.ndim == 2 else table
        if table.ndim != 3 or len(table) != len(action):
            raise LogError(
                f"action_dist of {name!r} must have shape (n, actions, positions) with n = {len(action)}, got "
                f"{np.shape(values)}"
            )
        sums = table.sum(axis=1)[rows, place]
        wrong = np.flatnonzero(~(np.abs(sums - 1.0) <= 1e-4))
        if len(wrong):
            raise LogError(
                f"action_dist of {name!r} does not sum to 1 over actions in {len(wrong)} rows "
                f"({', '.join(map(str, wrong[:SHOWN]))}); correct the policy"
            )
        with np.errstate(divide="ignore"):
            likelihoods[name] = np.log(table[rows, action, place])
    pscore = feedback.get("pscore")
    if pscore is None:
        pscore = np.asarray(feedback["pi_b"])[rows, action, place]
    with np.errstate(divide="ignore", invalid="ignore"):
        return Log.from_arrays(
            feedback["reward"], likelihoods, log_propensities=np.log(np.asarray(pscore, np.float64)), **settings
        )
