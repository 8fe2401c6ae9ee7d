"""The callback for MLflow, read back with MLflow's own client."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

import randomist as rd
from randomist.errors import ParameterError, TrackingWarning
from tests.integrations.tracked import PARAMETERS, expected, pays, tracked

mlflow = pytest.importorskip("mlflow")

from randomist.integrations.mlflow import MLflowCallback  # noqa: E402


@pytest.fixture
def uri(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "MLFLOW_ALLOW_FILE_STORE", "true"
    )  # a store without a database, which MLflow 3 wants to be asked for
    return (tmp_path / "store").as_uri()


def history(callback: Any, name: str) -> dict[int, float]:
    client = mlflow.MlflowClient(tracking_uri=callback.tracking_uri)
    return {metric.step: metric.value for metric in client.get_metric_history(callback.run_id, name)}


def found(callback: Any) -> Any:
    return mlflow.MlflowClient(tracking_uri=callback.tracking_uri).get_run(callback.run_id)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_every_round_is_there(uri, direction):
    callback = MLflowCallback("tuning", tracking_uri=uri, tags={"plant": "A"})
    run = tracked(callback, direction=direction)
    assert run.failures
    for name, figures in expected(run).items():
        assert history(callback, name) == pytest.approx(figures, rel=1e-12), name
    stored = found(callback)
    assert stored.info.status == "FINISHED"
    assert stored.data.tags["plant"] == "A"
    params = stored.data.params
    assert (params["task"], params["learner"], params["seed"]) == ("pays", "Auto", "1")
    assert params["direction"] == direction
    assert params["setting.payoff_range"] == "running"
    assert params["parameter.taps"] == "Integer(low=1, high=12, log=False)"
    assert {name: params[f"best.{name}"] for name in run.best} == {name: str(v) for name, v in run.best.items()}


def test_the_interval_of_the_recommendation_is_there(uri):
    callback = MLflowCallback(tracking_uri=uri)
    run = tracked(callback, confirm=20)
    metrics = found(callback).data.metrics
    for name in ("mean", "low", "high"):
        assert metrics[f"best_payoff.{name}"] == pytest.approx(getattr(run.best_payoff, name))
    assert found(callback).data.tags["best_payoff"] == str(run.best_payoff)


def test_runs_of_tasks_and_many_runs(uri):
    callback = MLflowCallback(tracking_uri=uri)
    ids = set()
    for seed in (0, 1):
        run = rd.optimize("illustrative", rounds=20, seed=seed, callbacks=[callback])
        ids.add(callback.run_id)
        assert found(callback).data.params["best"] == str(run.best)
        assert list(history(callback, "payoff").values()) == run.payoffs.tolist()
    assert len(ids) == 2


def test_a_run_that_goes_on_has_its_earlier_rounds(uri, tmp_path):
    callback = MLflowCallback(tracking_uri=uri)
    settings: dict[str, Any] = {"parameters": {"x": (0, 1)}, "save": tmp_path / "run.jsonl", "callbacks": [callback]}
    rd.optimize(lambda x: x, rounds=10, **settings)
    run = rd.optimize(lambda x: x, rounds=25, **settings)
    assert history(callback, "payoff") == dict(enumerate(run.payoffs.tolist(), 1))
    assert history(callback, "average_payoff") == pytest.approx(dict(enumerate(run.average_payoff.tolist(), 1)))


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), "KILLED"), (ZeroDivisionError("no"), "FAILED")])
def test_interrupts_and_errors_close_the_run(uri, error, status):
    callback, calls = MLflowCallback(tracking_uri=uri), []

    def stopped(x: float) -> float:
        calls.append(x)
        if len(calls) == 8:
            raise error
        return x

    settings: dict[str, Any] = {"parameters": {"x": (0, 1)}, "rounds": 20, "catch": (OSError,)}
    if status == "KILLED":
        run = rd.optimize(stopped, callbacks=[callback], **settings)
    else:
        with pytest.raises(ZeroDivisionError) as raised:
            rd.optimize(stopped, callbacks=[callback], **settings)
        run = raised.value.run
        assert found(callback).data.tags["error"] == "ZeroDivisionError('no')"
    assert len(run.payoffs) == 7
    assert found(callback).info.status == status
    assert list(history(callback, "payoff").values()) == run.payoffs.tolist()
    assert found(callback).data.params["best.x"] == str(run.best["x"])


def test_a_store_that_breaks_does_not_break_the_run(uri, monkeypatch):
    callback = MLflowCallback(tracking_uri=uri)
    monkeypatch.setattr("randomist.integrations.mlflow.EVERY", 0.0)
    calls = []

    def refused(*args: Any, **kwargs: Any) -> None:
        calls.append(args)
        raise ConnectionError("gone")

    def breaks(x: float) -> float:
        if x is not None and len(calls) == 0 and callback._waiting == [] and callback._told == 5:
            monkeypatch.setattr(callback._client, "log_batch", refused)
        return x

    with pytest.warns(TrackingWarning, match="MLflowCallback could not write .ConnectionError: gone") as caught:
        run = rd.optimize(breaks, parameters={"x": (0, 1)}, rounds=15, callbacks=[callback])
    assert len(caught) == 1
    assert len(run.payoffs) == 15
    assert len(calls) == 2  # once in the run, once at its end
    assert len(history(callback, "payoff")) == 5
    assert found(callback).info.status == "FINISHED"


def test_what_cannot_be_opened_is_an_error_before_the_first_round(tmp_path):
    played = []
    callback = MLflowCallback(tracking_uri="nowhere://x")
    with pytest.raises(mlflow.exceptions.MlflowException):
        rd.optimize(played.append, low=0, high=1, rounds=3, callbacks=[callback])
    assert not played


def test_misuse_is_refused_and_copies_are_fresh(uri):
    with pytest.raises(ParameterError, match="experiment must be the name"):
        MLflowCallback("")
    with pytest.raises(ParameterError, match="tags must be texts by name"):
        MLflowCallback(tags=["a"])
    callback = pickle.loads(pickle.dumps(MLflowCallback(tracking_uri=uri)))
    assert len(history(callback, "payoff") if callback.run_id else []) == 0
    outcome = rd.simulation.Outcome(1, None, None, 1.0, None)
    with pytest.raises(ParameterError, match="follows a run from its beginning"):
        callback(outcome)
    assert len(rd.optimize(pays, parameters=PARAMETERS, rounds=5, callbacks=[callback]).payoffs)


def test_without_mlflow_it_says_what_to_install():
    program = (
        "import sys; sys.modules['mlflow'] = None\n"
        "try:\n    import randomist.integrations.mlflow\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'randomist[mlflow]'" in done.stdout
