"""A run of `rd.optimize` as a run of MLflow: `rd.optimize(..., callbacks=[MLflowCallback("my experiment")])`."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from typing import Any

try:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag
except ImportError as missing:
    raise ImportError(
        f"randomist.integrations.mlflow needs the `mlflow` extra ({missing}); pip install 'randomist[mlflow]'"
    ) from missing

from randomist.errors import ParameterError
from randomist.integrations.tracking import Round, Tracker, described, recommended
from randomist.learners.base import Learner
from randomist.simulation import Run

EVERY = 1.0  # seconds between two writes: a server may be far away
MOST_METRICS, MOST_PARAMS = 1000, 100  # of one write, as MLflow's servers take them
LONGEST = 500  # characters of a value that every server takes
UNNAMED = re.compile(r"[^\w\-./ :]")  # what names must not contain


class MLflowCallback(Tracker):
    """Write a run to MLflow as it goes; each run of `rd.optimize` is a run there.

    Its params are the task, the learner, its settings and parameters, and at the end `best.*`. Its metrics are
    `payoff`, `average_payoff`, `best_so_far` and `failures` at every round, and at the end `best_payoff.mean`, `.low`
    and `.high`, the interval of `run.best_payoff`, where there is one. It ends as FINISHED, as KILLED after Ctrl-C, or
    as FAILED, with the error as a tag.

    Parameters
    ----------
    experiment
        The name of the experiment, which is made if there is none.
    run_name
        The name of the run; by default that of the task, the learner and the seed.
    tracking_uri
        Where to write, such as "sqlite:///mlflow.db" or the address of a server. By default as MLflow is set up.
    tags
        Further tags, texts by name.
    """

    def __init__(
        self,
        experiment: str = "randomist",
        *,
        run_name: str | None = None,
        tracking_uri: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(experiment, str) or not experiment:
            raise ParameterError(f"experiment must be the name of an experiment, got {experiment!r:.80}")
        if tags is not None and not isinstance(tags, Mapping):
            raise ParameterError(f"tags must be texts by name, got {tags!r:.80}")
        self.experiment, self.run_name, self.tracking_uri = experiment, run_name, tracking_uri
        self.tags = dict(tags or {})
        self.run_id: str | None = None  # of MLflow, of the last run
        self._client: Any = None

    def _open(self, learner: Learner, run: Run) -> None:
        self._client = MlflowClient(tracking_uri=self.tracking_uri)
        self._waiting: list[Any] = []
        self._written = time.monotonic()
        known = self._client.get_experiment_by_name(self.experiment)
        experiment = self._client.create_experiment(self.experiment) if known is None else known.experiment_id
        name = self.run_name or f"{run.task}-{run.learner}-{run.seed}"
        self.run_id = self._client.create_run(experiment, tags=self.tags, run_name=name).info.run_id
        self._params(described(learner, run))

    def _write(self, rounds: list[Round]) -> None:
        now = round(1000 * time.time())
        for one in rounds:
            figures = {name: value for name, value in one._asdict().items() if name != "number" and value is not None}
            self._waiting += [Metric(name, value, now, one.number) for name, value in figures.items()]
        if time.monotonic() >= self._written + EVERY:
            self._flush()

    def _close(self, run: Run, error: BaseException | None) -> None:
        status = "FAILED" if error is not None else "KILLED" if run.interrupted else "FINISHED"
        try:
            now, last = round(1000 * time.time()), len(run.payoffs) + len(run.failures)
            sure = run.best_payoff
            if sure is not None and math.isfinite(sure.mean):
                ends = {"mean": sure.mean, "low": sure.low, "high": sure.high}
                self._waiting += [Metric(f"best_payoff.{name}", end, now, last) for name, end in ends.items()]
            self._flush()
            self._params(recommended(run))
            said = {"error": "" if error is None else repr(error), "notes": "; ".join(run.notes)}
            said["best_payoff"] = "" if sure is None else str(sure)
            tags = [RunTag(name, text[:LONGEST]) for name, text in said.items() if text]
            self._client.log_batch(self.run_id, tags=tags)
        finally:
            self._client.set_terminated(self.run_id, status)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for i in range(0, len(waiting), MOST_METRICS):
            self._client.log_batch(self.run_id, metrics=waiting[i : i + MOST_METRICS])
        self._written = time.monotonic()

    def _params(self, values: Mapping[str, Any]) -> None:
        params = [Param(UNNAMED.sub("_", name), str(value)[:LONGEST]) for name, value in values.items()]
        for i in range(0, len(params), MOST_PARAMS):
            self._client.log_batch(self.run_id, params=params[i : i + MOST_PARAMS])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_client": None, "_learner": None}  # a copy follows runs of its own
