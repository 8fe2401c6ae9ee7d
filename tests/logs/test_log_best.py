"""`log.best()`: from a log to a study of the candidates that may be best."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd

POLICIES = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.15, 0.3, 0.55]])
WORTH = np.array([0.1, 0.3, 0.5])


@pytest.fixture
def log():
    rng = np.random.default_rng(3)
    action = rng.choice(3, size=4000, p=POLICIES[0])
    payoff = (rng.random(4000) < WORTH[action]).astype(float)
    columns = {name: np.log(policy)[action] for name, policy in zip(("old", "new", "close"), POLICIES, strict=True)}
    return rd.Log.from_arrays(payoff, columns, log_propensities=np.log(POLICIES[0])[action])


def test_the_best_are_the_contenders_with_what_is_known_of_them(log):
    found, best = log.evaluate(compare="leader"), log.best()
    assert set(best.names) == set(found.contenders) == {"new", "close"}
    places = [found.candidates.index(name) for name in best.names]
    assert best.values.tolist() == found.self_normalised[places].tolist() == sorted(best.values, reverse=True)
    assert best.plays.tolist() == found.effective_samples[places].tolist()
    assert len(best) == 2
    assert str(best).startswith(f"{best.names[0]} {best.values[0]:.4g} (")
    assert len(log.best(level=0.5, compare=None)) <= 3


def test_a_study_of_the_best_begins_with_what_the_log_knows(log, tmp_path):
    pytest.importorskip("sqlalchemy")
    best = log.best()
    learner = rd.Realist(best.space(), prior=best.prior, payoff_range=log.payoff_range, seed=0)
    study = rd.create_study("shop", learner, storage=f"sqlite:///{tmp_path / 'shop.db'}")
    assert study.names == best.names
    rng, truth = np.random.default_rng(1), POLICIES @ WORTH
    places = {"old": 0, "new": 1, "close": 2}
    for _ in range(50):
        trial = study.ask()
        study.tell(trial, float(rng.random() < truth[places[study.names[trial.decision]]]))
    loaded = rd.load_study("shop", storage=f"sqlite:///{tmp_path / 'shop.db'}")
    estimates = loaded.estimates()
    assert (estimates.effective_samples >= best.plays).all()
    assert estimates.effective_samples.sum() == pytest.approx(best.plays.sum() + 50)
