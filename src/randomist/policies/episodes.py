"""Run a noisy policy: one episode of a task in its Gymnasium environment, with the actions as they were drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from randomist._types import Array
from randomist.errors import ParameterError, TaskError
from randomist.policies import SoftmaxPolicy
from randomist.policies.trajectories import PolicyLike, Trajectory, _pair
from randomist.tasks import ControlTask, Task
from randomist.tasks import task as find_task


def play(task: str | Task, policy: PolicyLike, *, seed: int = 0) -> Trajectory:
    """One episode from the environment's reset with `seed`, for a learner on `Finite.policies`.

    `policy` is a pair of a `GaussianPolicy` or `SoftmaxPolicy` and its parameters, or what `load_policy` returned. The
    environment gets actions as the task hands them on, clipped where it clips; the trajectory has those that were
    drawn, which is what likelihoods are of.
    """
    chosen = find_task(task)
    if not isinstance(chosen, ControlTask):
        raise TaskError(f"task {chosen.id!r} has no episodes to play; play takes control and gym:<id> tasks")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError(f"seed must be a whole number >= 0, got {seed!r}")
    noisy, parameters = _pair(policy)
    sizes = (noisy.base.observation_size, noisy.base.action_size, noisy.base.discrete)
    if sizes != (chosen.policy.observation_size, chosen.policy.action_size, chosen.policy.discrete):
        raise TaskError(f"the policy {noisy.base} does not fit task {chosen.id!r}, whose policy is {chosen.policy}")
    rng, env = np.random.default_rng([int(seed), 1]), chosen.make_env()
    observations: list[Array] = []
    actions: list[Any] = []
    rewards: list[float] = []
    try:
        seen = env.reset(seed=int(seed))[0]
        for _ in range(chosen.horizon):
            observations.append(np.asarray(seen, dtype=np.float64).reshape(-1))
            drawn = noisy.sample(parameters, observations[-1], rng)
            actions.append(drawn)
            seen, reward, terminated, truncated, _ = env.step(_handed_on(chosen, noisy, drawn))
            rewards.append(float(reward))
            if terminated or truncated:
                break
    finally:
        env.close()
    earned = np.array(rewards)
    return Trajectory(np.array(observations), np.array(actions), earned, chosen.episode_payoff(earned))


def _handed_on(task: ControlTask, policy: Any, drawn: Any) -> Any:
    """A drawn action as the environment takes it: of several, the chosen one has the largest output."""
    if isinstance(policy, SoftmaxPolicy):
        return task.to_action(np.eye(policy.base.action_size)[drawn])
    return task.to_action(drawn)
