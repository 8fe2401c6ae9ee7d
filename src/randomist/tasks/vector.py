"""Gymnasium's vector environments as tasks: a payoff is the mean return of one episode in each sub-environment."""

from __future__ import annotations

import copy
import math
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import choice, number, whole_number
from randomist._checks import payoff_range as checked_range
from randomist._types import Array
from randomist.errors import ParameterError, RandomistError, TaskError
from randomist.policies import Policy
from randomist.tasks.base import ControlTask
from randomist.tasks.gym import SEEDS, action_of, fitting_policy, parameter_box

_OF_VECTORS = ("num_envs", "vectorization_mode", "max_episode_steps")  # settings that a single environment lacks


class VectorTask(ControlTask):
    """The mediator is the parameter vector of `policy`; all sub-environments play one episode with it, side by side.

    The payoff is the mean of their (discounted) returns: with n of them, noise that is as if n episodes had been
    averaged. What a sub-environment does after its episode has ended is ignored. Everything else is as in
    `GymnasiumTask`, of which 32 episodes step together already; take a vector environment to average, or where it
    brings processes or compiled steps of its own.

    Parameters
    ----------
    env
        A vector environment, which is played itself and not copied; a class of them; or an id, for which
        `gymnasium.make_vec` makes one: `rd.task("gym-vector:CartPole-v1", num_envs=8)`.
    num_envs
        How many sub-environments there are, where they are still to be made.
    policy, discount, low, high, std, payoff_range, out_of_range, observation_scale
        As in `GymnasiumTask`.
    horizon
        After how many steps an episode ends, if its sub-environment does not end it before. By default the time limit
        of the registered environment.
    env_settings
        Further settings go to the environment, where it is still to be made.
    """

    id = "gym-vector"

    def __init__(
        self,
        env: str | gym.vector.VectorEnv[Any, Any, Any] | type[gym.vector.VectorEnv[Any, Any, Any]],
        num_envs: int | None = None,
        policy: Literal["linear", "linear-bias", "neural"] | Policy = "linear",
        horizon: int | None = None,
        discount: float = 1.0,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        std: ArrayLike | None = None,
        payoff_range: tuple[float, float] | None = None,
        out_of_range: Literal["refuse", "clip"] = "refuse",
        observation_scale: ArrayLike | None = None,
        **env_settings: Any,
    ) -> None:
        self.env = _made(env, num_envs, env_settings)
        name = self.env.spec.id if self.env.spec is not None else type(self.env.unwrapped).__name__
        self.id = f"gym-vector:{name}"
        _check_resets(self.env, name)
        self.horizon = _horizon(horizon, self.env, name)
        self.discount = number(discount, "discount", above=0, most=1)
        self.action_space: gym.Space[Any] = self.env.single_action_space
        seen = self.env.single_observation_space
        self.policy = fitting_policy(policy, seen, self.action_space, observation_scale, name)
        self.payoff_range = checked_range((-math.inf, math.inf) if payoff_range is None else payoff_range)
        choice(out_of_range, ("refuse", "clip"), "out_of_range")
        self.out_of_range = out_of_range
        self.space = parameter_box(self.policy.size, low, high, std)

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        """The mean return of one episode in each sub-environment, per parameter vector.  (n, size) -> (n,)"""
        parameters = np.atleast_2d(self.policy.check_parameters(mediators))
        seeds = rng.integers(SEEDS - self.env.num_envs, size=len(parameters)).tolist()
        return np.array([self._returns(theta, seed).mean() for theta, seed in zip(parameters, seeds, strict=True)])

    def make_env(self, render_mode: str | None = None) -> gym.Env[Any, Any]:
        """One of the sub-environments, to roll a policy out."""
        spec = self.env.spec
        if spec is not None:
            settings = {name: value for name, value in spec.kwargs.items() if name not in _OF_VECTORS}
            return gym.make(
                spec.id, max_episode_steps=-1, disable_env_checker=True, render_mode=render_mode, **settings
            )
        envs = getattr(self.env.unwrapped, "envs", None)
        if envs is None or render_mode is not None:
            raise TaskError(
                f"{self.id!r} has no single environment to play or to film; make the task of one: rd.task(env)"
            )
        found: gym.Env[Any, Any] = copy.deepcopy(envs[0])
        return found

    def to_action(self, outputs: Array) -> Any:
        return action_of(outputs, self.policy, self.action_space)

    def episode_payoff(self, rewards: ArrayLike) -> float:
        """Σγ^t r_t"""
        earned = np.asarray(rewards, dtype=np.float64)
        return float(sum((self.discount ** np.arange(len(earned)) * earned).tolist()))

    def close(self) -> None:
        """Close the vector environment."""
        self.env.close()

    def _returns(self, theta: Array, seed: int) -> Array:
        """What each sub-environment pays; NaN where something is not finite.  (num_envs,)"""
        n = self.env.num_envs
        if not np.isfinite(theta).all():
            return np.full(n, np.nan)
        observations, _ = self.env.reset(seed=seed)
        returns, running, weight = np.zeros(n), np.ones(n, dtype=bool), 1.0
        for _ in range(self.horizon):
            seen = np.asarray(observations, dtype=np.float64).reshape(n, -1)
            outputs = self.policy.outputs(
                np.broadcast_to(theta, (n, theta.size)), np.where(running[:, None], seen, 0.0)
            )
            if not (np.isfinite(seen[running]).all() and np.isfinite(outputs[running]).all()):
                return np.full(n, np.nan)
            observations, rewards, terminated, truncated, _ = self.env.step(self.to_action(outputs))
            returns[running] += weight * np.asarray(rewards, dtype=np.float64)[running]
            running &= ~(np.asarray(terminated, dtype=bool) | np.asarray(truncated, dtype=bool))
            if not running.any():
                break
            weight *= self.discount
        return np.where(np.isfinite(returns), returns, np.nan)


def _made(env: Any, num_envs: int | None, settings: dict[str, Any]) -> gym.vector.VectorEnv[Any, Any, Any]:
    if isinstance(env, gym.vector.VectorEnv):
        given = ([] if num_envs is None else ["num_envs"]) + list(settings)
        if given:
            raise TaskError(
                f"an environment that is made already takes no settings, got {', '.join(given)}; give its id"
            )
        return env
    if "render_mode" in settings:
        raise ParameterError("render_mode is not a setting of a task; use rollout(..., render=...) instead")
    if num_envs is None:
        raise ParameterError("a vector environment needs num_envs=, how many episodes are played side by side")
    whole_number(num_envs, "num_envs")
    try:
        if isinstance(env, str):
            return gym.make_vec(env, num_envs, **settings)
        if isinstance(env, type) and issubclass(env, gym.vector.VectorEnv):
            make: Any = env
            found: gym.vector.VectorEnv[Any, Any, Any] = make(num_envs=num_envs, **settings)
            return found
    except RandomistError:
        raise
    except Exception as error:
        raise TaskError(f"{env!r:.80} cannot be made with num_envs={num_envs}, {settings}: {error}") from error
    raise TaskError(f"a vector environment is an id, a class or an instance of VectorEnv, got {env!r:.80}")


def _check_resets(env: gym.vector.VectorEnv[Any, Any, Any], name: str) -> None:
    if str(getattr(env.metadata.get("autoreset_mode"), "name", "")) == "DISABLED":
        raise TaskError(
            f"{name!r} does not reset sub-environments whose episode has ended (AutoresetMode.DISABLED), so it cannot "
            "step until the last one ends; make it with AutoresetMode.NEXT_STEP"
        )


def _horizon(horizon: int | None, env: gym.vector.VectorEnv[Any, Any, Any], name: str) -> int:
    envs = getattr(env.unwrapped, "envs", None) or [None]
    limits = [getattr(getattr(one, "spec", None), "max_episode_steps", None) for one in (env, *envs)]
    limit = next((found for found in limits if found is not None), None)
    if horizon is None and limit is None:
        raise ParameterError(f"{name!r} comes without a time limit; pass horizon=, the number of steps")
    return whole_number(limit if horizon is None else horizon, "horizon")
