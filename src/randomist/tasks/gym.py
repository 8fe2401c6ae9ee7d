"""Any Gymnasium environment with Box observations as a task: an episode per parameter vector of a policy.

M. Towers et al., Gymnasium: A Standard Interface for Reinforcement Learning Environments, 2024.
"""

from __future__ import annotations

import copy
import math
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import choice, number, whole_number
from randomist._checks import payoff_range as checked_range
from randomist._types import Array
from randomist.errors import ParameterError, RandomistError, ShapeError, TaskError
from randomist.families import Gaussian
from randomist.policies import Linear, Neural, Policy
from randomist.spaces import Box
from randomist.tasks.base import ControlTask

_ABREAST = 32  # environments that step together, so that one call of the policy serves them all
_CHUNKS = 4  # per worker: the last one to finish then has little left to do
SEEDS = 2**31  # what every environment accepts


class GymnasiumTask(ControlTask):
    """The mediator is the parameter vector of `policy`; the payoff is the (discounted) return of one episode.

    With a Discrete action space the policy takes the action with the largest output; with a Box its outputs are clipped
    to the box and rounded to its dtype. Parameters, rewards or observations that are not finite give a payoff of NaN:
    the episode has failed. An episode's seed comes from the generator given to `payoff`, and nothing of one episode
    reaches the next. Payoffs are therefore the same in a batch or one by one, and with any number of workers.

    Parameters
    ----------
    id
        The environment: an id as `gymnasium.make` takes it, a class, or an instance, of which copies are played.
    policy
        "linear", "linear-bias", "neural" or a `Policy`, which sees the observation as a flat vector.
    horizon
        After how many steps an episode ends, if the environment does not end it before. By default the time limit of
        the registered environment, which is lifted otherwise.
    discount
        γ in (0, 1]: the payoff is Σ_t γ^t r_t.
    low, high, std
        Numbers, or one per parameter: the task then has a `Box` to search, N(ξ, std²). `std` is a tenth of the box by
        default.
    payoff_range
        What a payoff can be. By default (-inf, inf), and `rd.optimize` lets the learner track the range that it sees
        ("running").
    out_of_range
        What learners do with a payoff outside of the range: "refuse" or "clip".
    observation_scale
        What observations are divided by, a number or one per entry.
    workers
        How many processes play episodes; they live until `close()`.
    env_settings
        Further settings go to the environment.
    """

    id = "gym"
    space: Box | None = None

    def __init__(
        self,
        id: str | type[gym.Env[Any, Any]] | gym.Env[Any, Any],
        policy: Literal["linear", "linear-bias", "neural"] | Policy = "linear",
        horizon: int | None = None,
        discount: float = 1.0,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        std: ArrayLike | None = None,
        payoff_range: tuple[float, float] | None = None,
        out_of_range: Literal["refuse", "clip"] = "refuse",
        observation_scale: ArrayLike | None = None,
        workers: int = 1,
        **env_settings: Any,
    ) -> None:
        for name, instead in (("render_mode", "rollout(..., render=...)"), ("max_episode_steps", "horizon=")):
            if name in env_settings:
                raise ParameterError(f"{name} is not a setting of a task; use {instead} instead")
        given: Any = None
        if not isinstance(id, str):
            given = _unregistered(id)
            id = str(given.id)
        self.id, self.env_id, self.env_settings = f"gym:{id}", id, env_settings
        self.discount = number(discount, "discount", above=0, most=1)
        self.workers = whole_number(workers, "workers")
        ours = id.startswith("randomist/")
        self._spec: Any = given or (f"randomist.tasks.environments:{id}" if ours else id)  # until one has been made
        self._envs: list[gym.Env[Any, Any]] = []
        self._pool: ProcessPoolExecutor | None = None
        env = self.make_env()
        self._envs.append(env)
        self._spec = given or gym.registry.get(env.unwrapped.spec.id if env.unwrapped.spec else id, id)
        self.horizon = _horizon(horizon, self._spec, id)
        self.action_space: gym.Space[Any] = env.action_space
        self.policy = fitting_policy(policy, env.observation_space, env.action_space, observation_scale, id)
        self.payoff_range = checked_range((-math.inf, math.inf) if payoff_range is None else payoff_range)
        choice(out_of_range, ("refuse", "clip"), "out_of_range")
        self.out_of_range = out_of_range
        self.space = parameter_box(self.policy.size, low, high, std)
        if self.workers > 1:
            _check_travels(self._spec, env_settings, id)

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        """One episode per parameter vector.  (n, size) -> (n,)"""
        parameters = np.atleast_2d(self.policy.check_parameters(mediators))
        seeds = rng.integers(SEEDS, size=len(parameters)).tolist()
        if self.workers == 1 or len(seeds) < 2:
            return self._episodes(parameters, seeds)
        if self._pool is None:
            context = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
            self._pool = ProcessPoolExecutor(self.workers, context, _begin_worker, (self.with_workers(1),))
        cuts = np.linspace(0, len(seeds), min(len(seeds), _CHUNKS * self.workers) + 1).astype(int)
        try:
            done = self._pool.map(_work, [(parameters[i:j], seeds[i:j]) for i, j in pairwise(cuts)])
            return np.concatenate(list(done))
        except BrokenProcessPool as error:
            self._pool = None
            raise TaskError(
                f"a worker process of {self.id!r} died; try workers=1, and in a script start under "
                'if __name__ == "__main__"'
            ) from error

    def make_env(self, render_mode: str | None = None) -> gym.Env[Any, Any]:
        settings = self.env_settings if render_mode is None else self.env_settings | {"render_mode": render_mode}
        try:
            return gym.make(self._spec, max_episode_steps=-1, disable_env_checker=True, **settings)
        except RandomistError:
            raise
        except (gym.error.UnregisteredEnv, ModuleNotFoundError) as error:
            raise TaskError(
                f"unknown environment {self.env_id!r}: {error} Known ones are the keys of gymnasium.registry; import "
                "the package that registers yours first, or write module:id"
            ) from error
        except gym.error.DependencyNotInstalled as error:
            raise TaskError(f"environment {self.env_id!r} needs a package that is not installed: {error}") from error
        except Exception as error:
            raise TaskError(f"environment {self.env_id!r} cannot be made with {settings}: {error}") from error

    def to_action(self, outputs: Array) -> Any:
        return action_of(outputs, self.policy, self.action_space)

    def episode_payoff(self, rewards: ArrayLike) -> float:
        """Σγ^t r_t"""
        total, weight = 0.0, 1.0
        for reward in np.asarray(rewards, dtype=np.float64).tolist():
            total += weight * reward
            weight *= self.discount
        return total

    def with_workers(self, workers: int) -> GymnasiumTask:
        """The same task on another number of processes."""
        other = copy.copy(self)
        other.workers = whole_number(workers, "workers")
        return other

    def close(self) -> None:
        """End the worker processes and the environments; the next payoff would start new ones."""
        if self._pool is not None:
            self._pool.shutdown()
        for env in self._envs:
            env.close()
        self._pool, self._envs = None, []

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_envs": [], "_pool": None}  # each process has its own

    def _episodes(self, parameters: Array, seeds: list[int]) -> Array:
        """(n, size), n seeds -> (n,)"""
        blocks = [slice(i, i + _ABREAST) for i in range(0, len(seeds), _ABREAST)]
        return np.concatenate([np.empty(0), *(self._abreast(parameters[b], seeds[b]) for b in blocks)])

    def _abreast(self, parameters: Array, seeds: list[int]) -> Array:
        """Episodes that step together, each in its own environment until it ends."""
        while len(self._envs) < len(seeds):
            self._envs.append(self.make_env())
        payoffs = np.where(np.isfinite(parameters).all(axis=1), 0.0, np.nan)
        running = np.flatnonzero(payoffs == 0.0)
        theta = parameters[running]
        seen = self._observed([self._envs[i].reset(seed=seeds[i])[0] for i in running])
        stopped, weight = ~np.isfinite(seen).all(axis=1), 1.0
        payoffs[running[stopped]] = np.nan
        for _ in range(self.horizon):
            if stopped.any():
                running, theta, seen = running[~stopped], theta[~stopped], seen[~stopped]
            if not running.size:
                break
            outputs = self.policy.outputs(theta, seen)
            actions, observations = self.to_action(outputs), list[Any](seen)
            rewards, ended = np.full(running.size, np.nan), np.asarray(np.isnan(outputs).any(axis=1))
            for k, i in enumerate(running.tolist()):
                if not ended[k]:
                    observations[k], rewards[k], terminated, truncated, _ = self._envs[i].step(actions[k])
                    ended[k] = terminated or truncated
            seen = self._observed(observations)
            failed = ~(np.isfinite(rewards) & np.isfinite(seen).all(axis=1))
            payoffs[running] += weight * np.where(failed, np.nan, rewards)
            stopped = ended | failed
            weight *= self.discount
        return payoffs

    def _observed(self, observations: list[Any]) -> Array:
        """Observations as flat rows.  (n, observation_size)"""
        size = self.policy.observation_size
        rows = [np.asarray(observation, dtype=np.float64).reshape(-1) for observation in observations]
        for row in rows:
            if row.size != size:
                raise ShapeError(f"{self.env_id!r} gave an observation of {row.size} numbers, it declares {size}")
        return np.array(rows).reshape(len(rows), size)


gymnasium = GymnasiumTask  # rd.tasks.gymnasium("Pendulum-v1", policy="linear")


# Worker processes.

_task: GymnasiumTask  # of this worker


def _begin_worker(task: GymnasiumTask) -> None:
    global _task
    _task = task


def _work(job: tuple[Array, list[int]]) -> Array:
    return _task._episodes(*job)


# Environments that nobody has registered.


def _unregistered(env: Any) -> Any:
    """What `gymnasium.make` takes instead of an id: for a class it makes, for an instance it copies."""
    make: Any = env
    limit = None
    if isinstance(env, gym.Env):
        make, limit = partial(_copied, env), getattr(env.spec, "max_episode_steps", None)
        env = type(env.unwrapped)
    if isinstance(env, type) and issubclass(env, gym.Env):
        return gym.envs.registration.EnvSpec(env.__name__, entry_point=make, max_episode_steps=limit)
    raise TaskError(f"an environment is an id, a class or an instance of gymnasium.Env, got {env!r:.80}")


def _copied(env: gym.Env[Any, Any], **settings: Any) -> gym.Env[Any, Any]:
    if settings:
        raise TaskError(
            f"an environment that is made already takes no settings, got {', '.join(settings)}; give its class"
        )
    return copy.deepcopy(env)


# What a vector of environments needs too.


def action_of(outputs: Array, policy: Policy, space: gym.Space[Any]) -> Any:
    """What an environment is given where its policy puts out this.  (..., action_size) -> (..., *shape)"""
    if isinstance(space, gym.spaces.Discrete):
        return policy.choose(outputs) + space.start
    assert isinstance(space, gym.spaces.Box)
    clipped = np.minimum(np.maximum(outputs.reshape(*outputs.shape[:-1], *space.shape), space.low), space.high)
    with np.errstate(over="ignore"):
        return clipped.astype(space.dtype)


# Checks.


def fitting_policy(policy: Any, seen: gym.Space[Any], acted: gym.Space[Any], observation_scale: Any, id: str) -> Policy:
    """The policy, of its class or name where that was given, checked against the spaces of the environment."""
    if not isinstance(seen, gym.spaces.Box):
        raise TaskError(f"a policy needs Box observations, {id!r} has {seen}; register it in a FlattenObservation")
    if isinstance(acted, gym.spaces.Discrete):
        discrete, actions = True, int(acted.n)
    elif isinstance(acted, gym.spaces.Box) and np.issubdtype(acted.dtype, np.floating):
        discrete, actions = False, math.prod(acted.shape)
    else:
        raise TaskError(f"a policy takes actions of a Discrete or a real Box space, {id!r} has {acted}")
    observations = math.prod(seen.shape)
    if isinstance(policy, type) and issubclass(policy, Policy):
        made: Any = policy(observations, actions, discrete=discrete)
    else:
        made = _named_policy(policy, observations, actions, discrete) if isinstance(policy, str) else policy
    if not isinstance(made, Policy):
        raise ParameterError(f"policy must be a deterministic Policy such as Linear, or its name, got {policy!r}")
    if made.discrete != discrete:
        kind = "discrete" if discrete else "continuous"
        raise TaskError(f"{id!r} has {kind} actions, {acted}; give it a policy with discrete={discrete}, not {made}")
    if (made.observation_size, made.action_size) != (observations, actions):
        raise ShapeError(f"{id!r} has {observations} observations and {actions} actions, which do not fit {made}")
    if observation_scale is None:
        return made
    if made.observation_scale is not None:
        raise ParameterError("observation_scale is given to the policy and to the task; give it once")
    return replace(made, observation_scale=observation_scale)


def _named_policy(name: str, observations: int, actions: int, discrete: bool) -> Policy:
    match name:
        case "linear" | "linear-bias":
            return Linear(observations, actions, bias=name == "linear-bias", discrete=discrete)
        case "neural":
            return Neural(observations, actions, discrete=discrete)
    raise ParameterError(f"policy must be a Policy, or one of linear, linear-bias and neural, got {name!r}")


def _horizon(horizon: int | None, spec: Any, id: str) -> int:
    registered = getattr(spec, "max_episode_steps", None)
    if horizon is None and registered is None:
        raise ParameterError(f"{id!r} comes without a time limit; pass horizon=, the number of steps")
    return whole_number(registered if horizon is None else horizon, "horizon")


def parameter_box(size: int, low: Any, high: Any, std: Any) -> Box | None:
    missing = [name for name, value in (("low", low), ("high", high)) if value is None]
    if len(missing) == 2 and std is None:
        return None
    if missing:
        raise ParameterError(f"a box needs low and high, {' and '.join(missing)} missing; give both or none")
    if std is None:
        std = 0.1 * (np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64))
    if np.shape(std) not in ((), (size,)):
        raise ShapeError(f"std must be a number or have shape ({size},), got {np.shape(std)}")
    return Box(Gaussian(std=np.broadcast_to(np.asarray(std, dtype=np.float64), (size,))), low, high)


def _check_travels(spec: Any, env_settings: dict[str, Any], id: str) -> None:
    try:
        pickle.dumps((spec, env_settings))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TaskError(
            f"{id!r} cannot be made in worker processes: {error}; register it with an entry point "
            '"module:Class" and plain settings, or take workers=1'
        ) from error
