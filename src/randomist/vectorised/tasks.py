"""The paper's tasks in JAX: a mediator and a key become a payoff."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from randomist.errors import ParameterError
from randomist.tasks.base import Task
from randomist.tasks.illustrative import Illustrative
from randomist.tasks.lqg import LQG

Payoff = Callable[[Any, Any], Any]  # mediator, key -> payoff


def payoff_of(task: Task) -> Payoff:
    for kind, make in TASKS.items():
        if type(task) is kind:
            return make(task)
    known = ", ".join(kind.id for kind in TASKS)
    raise ParameterError(f"runs over many seeds at once know the tasks {known}, got {task.id!r}; leave device= out")


def _illustrative(task: Any) -> Payoff:
    return lambda mediator, key: jnp.clip(mediator / 4.0, 0.0, 1.0)


def _lqg(task: Any) -> Payoff:
    """x' = x + u + noise, u = θ x, both clipped; see `tasks.lqg`."""
    weights = task.discount ** jnp.arange(task.horizon)
    worst = (task.state_cost + task.action_cost) * task.limit**2

    def coordinate(gain: Any, key: Any) -> Any:
        start, steps = jax.random.split(key)
        state = jax.random.uniform(start, (), jnp.float64, -task.limit, task.limit)
        noise = task.noise_std * jax.random.normal(steps, (task.horizon,), jnp.float64)

        def step(state: Any, given: Any) -> Any:
            shock, weight = given
            action = jnp.clip(gain * state, -task.limit, task.limit)
            cost = (task.state_cost * state**2 + task.action_cost * action**2) / worst
            return jnp.clip(state + action + shock, -task.limit, task.limit), weight * (1.0 - cost)

        return jax.lax.scan(step, state, (noise, weights))[1].sum() / weights.sum()

    def payoff(gains: Any, key: Any) -> Any:
        """The mean over coordinates, which have nothing to do with each other."""
        keys = jax.random.split(key, task.dimension)
        return jax.vmap(coordinate)(jnp.reshape(gains, (task.dimension,)), keys).mean()

    return payoff


TASKS: dict[Any, Callable[[Any], Payoff]] = {Illustrative: _illustrative, LQG: _lqg}
