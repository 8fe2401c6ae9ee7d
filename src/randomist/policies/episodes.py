"""Play a policy: one episode of a task in its Gymnasium environment, as arrays and, on request, as a film."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._checks import real, whole_number
from randomist._types import Array
from randomist.errors import ParameterError, ShapeError, TaskError
from randomist.policies.base import Policy
from randomist.policies.films import Film
from randomist.policies.noisy import GaussianPolicy, SoftmaxPolicy
from randomist.policies.saved import AnyPolicy, SavedPolicy, parameter_vector

if TYPE_CHECKING:
    import gymnasium

    from randomist.tasks import ControlTask, Task


@dataclass(frozen=True, eq=False)
class Episode:
    """What a policy saw, did and earned in one episode of T steps.

    `rollout` returns one, and `tell_episode` takes one, of a simulator or a machine of your own too.

    Parameters
    ----------
    observations
        What the policy saw before each action, flattened, and after the last one, (T + 1, observation_size);
        `tell_episode` also takes the first T.
    actions
        As the environment got them, (T, *shape). Those of a noisy policy are as drawn, before anything is clipped,
        since that is what likelihoods are of: (T, action_size), or (T,) if discrete.
    rewards
        What each action earned, (T,).
    payoff
        What the episode is worth, in the task's units; NaN if something was not finite. None leaves it to
        `tell_episode`: the sum of discounted rewards.
    """

    observations: Array
    actions: NDArray[Any]
    rewards: Array
    payoff: float | None = None


def rollout(
    task: str | Task,
    policy: ArrayLike | SavedPolicy | tuple[AnyPolicy, ArrayLike],
    *,
    seed: int = 0,
    render: str | Path | None = None,
) -> Episode:
    """Play one episode of a control task in its Gymnasium environment.

    Parameters
    ----------
    task
        A control task or its id, such as "mountain-car" or "gym:Pendulum-v1".
    policy
        A parameter vector of the task's policy, such as a mediator or a recommended decision; what `load_policy`
        returned; or a pair of a policy and its parameters. A `GaussianPolicy` or `SoftmaxPolicy` acts with its noise,
        saved or not; the pair `(policy.base, parameters)` acts without.
    seed
        Of the environment's reset, and of the noise.
    render
        The film to write, "car.gif" or "car.mp4". The environment must offer "rgb_array"; GIF needs the `run` extra,
        MP4 also the package imageio-ffmpeg.
    """
    from randomist.tasks import ControlTask  # tasks are made of policies, and of more than a policy needs
    from randomist.tasks import task as find_task

    chosen = find_task(task)
    if not isinstance(chosen, ControlTask):
        raise TaskError(f"task {chosen.id!r} has no policy to play; rollout takes control and gym:<id> tasks")
    seed = whole_number(seed, "seed", least=0)
    acting, parameters = _acting(chosen, policy)
    player = _Player(chosen, acting.base, None if isinstance(acting, Policy) else acting, parameters)
    if render is not None:
        Film(Path(render)).record(chosen, lambda env: player.play(env, seed))
    else:
        with contextlib.closing(chosen.make_env()) as env:
            for _ in player.play(env, seed):
                pass
    return player.episode()


def _acting(task: ControlTask, policy: Any) -> tuple[AnyPolicy, Array]:
    """Who acts, and with which parameters.  (size,)"""
    if isinstance(policy, SavedPolicy):
        policy = (policy.policy, policy.parameters)
    ours = task.policy
    if not _is_pair(policy):
        parameters = ours.check_parameters(policy)  # finite or not: an episode may fail
        if parameters.ndim != 1:
            raise ShapeError(f"rollout plays one parameter vector of shape ({ours.size},), got {parameters.shape}")
        return ours, parameters
    acting, parameters = policy[0], parameter_vector(*policy)
    if _sizes(acting.base) != _sizes(ours):
        raise TaskError(f"the policy {acting.base} does not fit task {task.id!r}, whose policy is {ours}")
    return acting, parameters


def _is_pair(policy: Any) -> bool:
    """Whether this is a policy with its parameters, and not the parameters alone."""
    if isinstance(policy, AnyPolicy):
        raise ParameterError(f"a policy acts with its parameters: give the pair (policy, parameters), got {policy}")
    return isinstance(policy, tuple | list) and len(policy) == 2 and isinstance(policy[0], AnyPolicy)


def _sizes(policy: Policy) -> tuple[int, int, bool]:
    return policy.observation_size, policy.action_size, policy.discrete


@dataclass
class _Player:
    """An episode as it grows."""

    task: ControlTask
    policy: Policy
    noise: GaussianPolicy | SoftmaxPolicy | None
    parameters: Array
    observations: list[Array] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    failed: bool = False  # something was not finite

    def play(self, env: gymnasium.Env[Any, Any], seed: int) -> Iterator[None]:
        """Step to the end, yielding at every state."""
        rng = np.random.default_rng([seed, 1])  # of the noise; the environment has the seed itself
        self._see(env.reset(seed=seed)[0])
        self.failed |= not np.isfinite(self.parameters).all()
        yield
        for _ in range(self.task.horizon):
            outputs = self.policy.outputs(self.parameters, self.observations[-1])
            if self.noise is not None:
                outputs = self.noise.perturb(outputs, rng)
            self.failed |= bool(np.isnan(outputs).any())
            if self.failed:
                return
            action = self.task.to_action(outputs)
            try:
                observation, reward, terminated, truncated, _ = env.step(action)
            except OverflowError:  # Mountain Car squares the action with math.pow
                self.failed = True
                return
            self.actions.append(np.array(action) if self.noise is None else self.policy.choose(outputs))
            self.rewards.append(real(reward, "a reward"))
            self._see(observation)
            self.failed |= not math.isfinite(self.rewards[-1])
            yield
            if terminated or truncated or self.failed:
                return

    def episode(self) -> Episode:
        payoff = math.nan if self.failed else self.task.episode_payoff(self.rewards)
        rewards = np.array(self.rewards, dtype=np.float64)
        return Episode(np.array(self.observations), np.array(self.actions), rewards, payoff)

    def _see(self, observation: Any) -> None:
        row = np.array(observation, dtype=np.float64).reshape(-1)
        if row.size != self.policy.observation_size:
            raise ShapeError(f"an observation has {row.size} numbers, the policy takes {self.policy.observation_size}")
        self.observations.append(row)
        self.failed |= not np.isfinite(row).all()
