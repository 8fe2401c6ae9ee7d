"""Policies over trajectories: likelihoods, per-step divergences and per-decision weights against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import randomist as rd
from randomist.policies.trajectories import Policies
from tests import problems

NOISY = rd.GaussianPolicy(rd.Linear(2, 2, bias=True), (0.5, 0.8))
WIDER = rd.GaussianPolicy(rd.Linear(2, 2, bias=True), (0.6, 0.9))
SOFT = rd.SoftmaxPolicy(rd.Linear(2, 3, discrete=True))
RNG = np.random.default_rng(11)
GAUSSIANS = [(NOISY, RNG.normal(0, 0.3, 6)) for _ in range(3)] + [(WIDER, RNG.normal(0, 0.3, 6))]
SOFTMAXES = [(SOFT, RNG.normal(0, 0.5, 6)) for _ in range(3)]


def episode(policy, rng, steps):
    """States that come from nowhere in particular, and rewards that depend on all actions so far."""
    noisy, theta = policy
    state, seen, did, earned = rng.normal(size=2), [], [], []
    for _ in range(steps):
        seen.append(state)
        did.append(noisy.sample(theta, state, rng))
        state = 0.7 * state + 0.3 * np.resize(np.asarray(did[-1], float), 2) + 0.1 * rng.normal(size=2)
        earned.append(1 / (1 + float(state @ state)))
    return rd.Episode(np.array(seen), np.array(did), np.array(earned))


def played(policies, learner, rounds, seed=0, longest=8):
    rng, told = np.random.default_rng(seed), []
    for _ in range(rounds):
        trial = learner.ask()
        trajectory = episode(policies[trial.decision], rng, int(rng.integers(3, longest + 1)))
        learner.tell_episode(trial, trajectory)
        told.append((trial.decision, trajectory))
    return told


def naive_steps(policies, decision, trajectory):
    """(S, T) log-densities and divergences, one policy, one step at a time."""
    S, T = len(policies), len(trajectory.rewards)
    log_density, divergence = np.empty((S, T)), np.empty((S, T))
    acted, theta = policies[decision]
    for k, (policy, parameters) in enumerate(policies):
        for h in range(T):
            state, action = trajectory.observations[h], trajectory.actions[h]
            log_density[k, h] = policy.log_density(parameters, state, action)
            if policy is SOFT:
                table = [np.exp(p.base.outputs(t, state)) for p, t in ((policy, parameters), (acted, theta))]
                family = rd.Categorical([row / row.sum() for row in table])
            else:
                means = [p.base.outputs(t, state) for p, t in ((policy, parameters), (acted, theta))]
                family = rd.Gaussian(means, [policy.std, acted.std])
            divergence[k, h] = family.log_renyi([0], [1])[0, 0]
    return log_density, divergence


@pytest.mark.parametrize("policies", [GAUSSIANS, SOFTMAXES], ids=["gaussian", "softmax"])
def test_a_trajectory_is_worth_its_likelihoods(policies):
    family, rng = Policies(policies), np.random.default_rng(0)
    for decision in range(len(policies)):
        trajectory = episode(policies[decision], rng, 5)
        payoff, mediator = family.observe_episode(decision, trajectory)
        log_density, divergence = naive_steps(policies, decision, trajectory)
        assert payoff == pytest.approx(trajectory.rewards.sum())
        np.testing.assert_allclose(family.log_densities(mediator), log_density.sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(family.step_divergences(mediator), divergence.sum(axis=1), rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(family.log_density(None, mediator)[:, 0], mediator[: len(policies)])


@pytest.mark.parametrize("policies", [GAUSSIANS, SOFTMAXES], ids=["gaussian", "softmax"])
def test_per_step_divergences_are_averaged_over_the_trajectories_of_each_policy(policies):
    space = rd.Finite.policies(policies)
    learner = rd.Optimist(space, divergence="per-step", payoff_range=(0, 8), seed=0)
    told = played(policies, learner, 30)
    S = len(policies)
    sums, plays = np.zeros((S, S)), np.zeros(S)
    for decision, trajectory in told:
        sums[:, decision] += np.exp(naive_steps(policies, decision, trajectory)[1].sum(axis=1))
        plays[decision] += 1
    with np.errstate(divide="ignore", invalid="ignore"):
        eta = np.nansum(plays / (sums / plays), axis=1)  # Σ_j T_j / d2(x || j)
    np.testing.assert_allclose(learner.estimates().effective_samples, np.maximum(eta, plays), rtol=1e-9)


def test_per_decision_weights_are_what_they_are_called():
    """Σ_h g_h r_h min(M_h, ω_h) with ω_h of the first h + 1 actions; a trajectory that is over keeps its weight."""
    horizon, discount = 8, 0.9
    space = rd.Finite.policies(GAUSSIANS, weights="per-decision", discount=discount, horizon=horizon, average=True)
    low, high = -0.5, 1.5
    learner = rd.Optimist(space, payoff_range=(low, high), seed=3)
    told = played(GAUSSIANS, learner, 25)
    g = discount ** np.arange(horizon) / np.sum(discount ** np.arange(horizon))
    plays = np.bincount([decision for decision, _ in told], minlength=4)
    m, term = len(told), 2 * math.log(len(told) + 1)
    value, width = np.zeros(4), np.zeros(4)
    for h in range(horizon):
        log_density, y = np.empty((4, m)), np.empty(m)
        for i, (decision, trajectory) in enumerate(told):
            log_density[:, i] = naive_steps(GAUSSIANS, decision, trajectory)[0][:, : h + 1].sum(axis=1)
            reward = trajectory.rewards[h] if h < len(trajectory.rewards) else 0.0
            y[i] = g[h] * (reward - low) / (high - low)  # on the [0, 1] scale
        density = np.exp(log_density)
        omega = density / (plays @ density / m)
        missing = np.maximum(1 - omega.mean(axis=1), 0)
        eta = np.maximum(1 / ((omega**2).sum(axis=1) / m**2 + missing**2), plays)
        cut = m / np.sqrt(eta * term)
        value += (np.minimum(omega, cut[:, None]) * y).mean(axis=1)
        width += g[h] * np.sqrt(term / eta)
    estimates = learner.estimates()
    np.testing.assert_allclose(estimates.value, low + (high - low) * value, rtol=1e-9)
    np.testing.assert_allclose(estimates.width, (high - low) * width, rtol=1e-9)
    np.testing.assert_allclose(estimates.effective_samples, term / width**2, rtol=1e-9)


def test_a_policy_by_itself_is_its_own_average():
    for weights in ("trajectory", "per-decision"):
        space = rd.Finite.policies(GAUSSIANS[:1], weights=weights, horizon=8)
        learner = rd.FollowTheLeader(space, payoff_range=(0, 8), estimator="self-normalised")
        told = played(GAUSSIANS, learner, 40)
        mean = np.mean([trajectory.rewards.sum() for _, trajectory in told])
        np.testing.assert_allclose(learner.estimates().value, mean, rtol=1e-10)
        assert learner.estimates().effective_samples[0] == pytest.approx(40)


@pytest.mark.parametrize("weights", ["trajectory", "per-decision"])
@pytest.mark.parametrize("make", [rd.Randomist, rd.Realist])
@pytest.mark.parametrize("divergence", ["empirical", "per-step"])
def test_a_run_can_be_saved(weights, make, divergence):
    space = rd.Finite.policies(GAUSSIANS, weights=weights, horizon=8)
    learner = make(space, payoff_range="running", divergence=divergence, seed=2)
    played(GAUSSIANS, learner, 12)
    resumed = rd.load(learner.state())
    played(GAUSSIANS, learner, 6, seed=1)
    played(GAUSSIANS, resumed, 6, seed=1)
    np.testing.assert_array_equal(learner.record.decisions, resumed.record.decisions)
    for a, b in zip(learner.estimates(), resumed.estimates(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_running_range_is_what_the_known_range_is():
    settings = {"weights": "per-decision", "discount": 0.8, "horizon": 8}
    space = rd.Finite.policies(GAUSSIANS, **settings)
    running, rng = rd.Optimist(space, payoff_range="running", seed=0), np.random.default_rng(0)
    told = []
    for _ in range(20):
        trial = running.ask()
        told.append((trial, episode(GAUSSIANS[trial.decision], rng, 6)))
        running.tell_episode(*told[-1])
    low, high = running.record.payoffs.min(), running.record.payoffs.max()
    known = rd.Optimist(space, payoff_range=(low, high), seed=0)
    for trial, trajectory in told:
        known.adopt(trial)
        known.tell_episode(trial, trajectory)
    np.testing.assert_allclose(running.estimates().value, known.estimates().value, rtol=1e-9)


def test_a_rollout_has_the_actions_of_which_the_likelihood_is_known():
    task = rd.task("lqg", horizon=12)
    policies = [(rd.GaussianPolicy(rd.Linear(1, 1, action_scale=0.25), 0.1), [gain]) for gain in (-0.2, -0.6)]
    trajectory = rd.rollout(task, policies[1], seed=4)
    assert trajectory.observations.shape == (13, 1)
    assert trajectory.actions.shape == (12, 1)
    assert trajectory.payoff == pytest.approx(task.episode_payoff(trajectory.rewards))
    again = rd.rollout(task, policies[1], seed=4)
    np.testing.assert_array_equal(trajectory.actions, again.actions)
    space = rd.Finite.policies(policies, weights="per-decision", discount=task.discount, horizon=12, average=True)
    learner = rd.Optimist(space)
    trial = learner.ask()
    learner.tell_episode(trial, rd.rollout(task, policies[trial.decision], seed=0))
    assert learner.record.payoffs[0] == pytest.approx(rd.rollout(task, policies[trial.decision], seed=0).payoff)
    discrete = rd.task("gym:CartPole-v1")
    soft = (rd.SoftmaxPolicy(rd.Linear(4, 2, discrete=True)), np.zeros(8))
    assert set(rd.rollout(discrete, soft, seed=1).actions.tolist()) == {0, 1}
    with pytest.raises(rd.RandomistError, match="does not fit"):
        rd.rollout(task, soft)
    with pytest.raises(rd.RandomistError, match="no policy to play"):
        rd.rollout("illustrative", soft)


def test_what_is_no_trajectory_is_refused():
    learner = rd.Optimist(rd.Finite.policies(GAUSSIANS, horizon=4), payoff_range=(0, 4), first=0)
    trial, good = learner.ask(), episode(GAUSSIANS[0], np.random.default_rng(0), 4)
    for bad, message in (
        (0.5, "takes an Episode, .*got 0.5"),
        (rd.Episode(good.observations[:2], good.actions, good.rewards), r"observations must have shape \(4, 2\)"),
        (rd.Episode(good.observations, good.actions[:, :1], good.rewards), "actions must be those"),
        (rd.Episode(good.observations, good.actions, np.ones(5)), "T in 1..4"),
        (rd.Episode(good.observations, good.actions * np.nan, good.rewards), "actions must be finite"),
        (rd.Episode(good.observations, good.actions, good.rewards * np.inf), "rewards must be finite"),
    ):
        with pytest.raises(rd.RandomistError, match=message):
            learner.tell_episode(trial, bad)
    for likelihoods in (None, [0, 0, 0, 0]):
        with pytest.raises(
            rd.errors.MediatorError, match=r"tell_episode\(trial, episode\).*no payoff or log_likelihoods"
        ):
            learner.tell(trial, 0.5, log_likelihoods=likelihoods)
    learner.tell_episode(trial, good)
    stepwise = rd.Optimist(rd.Finite.policies(GAUSSIANS, weights="per-decision", horizon=4), payoff_range=(0, 4))
    with pytest.raises(rd.errors.PayoffError, match="sum of discounted rewards"):
        stepwise.tell_episode(stepwise.ask(), rd.Episode(good.observations, good.actions, good.rewards, payoff=3.9))


@pytest.mark.parametrize(
    ("space", "remedy"), [("gaussians", r"tell\(trial, payoff\)$"), ("likelihoods", "log_likelihoods=")]
)
def test_only_policies_are_told_episodes(space, remedy):
    learner = rd.Optimist(problems.FINITE[space])
    trial = learner.ask()
    with pytest.raises(rd.errors.ParameterError, match=f"Finite.policies.*{remedy}"):
        learner.tell_episode(trial, episode(GAUSSIANS[0], np.random.default_rng(0), 4))
    assert learner.pending == [trial]


def test_spaces_of_policies_that_make_no_sense_are_refused():
    for arguments, settings, message in (
        ([], {}, "at least one"),
        ([(rd.Linear(2, 2), np.zeros(4))], {}, "noisy"),
        ([(NOISY, np.zeros(5))], {}, r"shape \(6,\)"),
        ([NOISY], {}, "pair"),
        ([GAUSSIANS[0], SOFTMAXES[0]], {}, "one kind"),
        (GAUSSIANS, {"weights": "both"}, "weights must be"),
        (GAUSSIANS, {"weights": "per-decision"}, "horizon"),
        (GAUSSIANS, {"discount": 0.0}, "discount"),
        (GAUSSIANS, {"average": True}, "horizon"),
    ):
        with pytest.raises(rd.RandomistError, match=message):
            rd.Finite.policies(arguments, **settings)


@pytest.mark.slow
def test_per_decision_weights_vary_less_and_have_no_bias():
    from benchmarks.per_decision import SETTINGS, compare

    found = compare(*SETTINGS["one other policy ran"], repetitions=400, truth_episodes=100_000)
    for bias, error in ((found.stepwise_bias, found.stepwise_error), (found.whole_bias, found.whole_error)):
        assert (np.abs(bias) <= 4 * error).all()
    assert np.median(found.stepwise_error) < 0.01  # so that the line above says something
    assert (found.factor > 1.5).all()
