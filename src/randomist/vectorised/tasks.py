"""The paper's tasks in JAX: a mediator and a key become a payoff."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from randomist.errors import ParameterError
from randomist.tasks import cartpole, mountain_car
from randomist.tasks.base import Task
from randomist.tasks.cartpole import Cartpole
from randomist.tasks.illustrative import Illustrative
from randomist.tasks.lqg import LQG
from randomist.tasks.mountain_car import MountainCar

Payoff = Callable[[Any, Any], Any]  # mediator, key -> payoff


def payoff_of(task: Task) -> Payoff:
    """The payoff of one of the paper's tasks, or of one that has it: `payoff_on_device(mediator, key)`, in JAX."""
    for kind, make in TASKS.items():
        if type(task) is kind:
            return make(task)
    own: Payoff | None = getattr(task, "payoff_on_device", None)
    if own is not None:
        return own
    known = ", ".join(kind.id for kind in TASKS)
    raise ParameterError(
        f"runs over many seeds at once know the tasks {known}, and those with a payoff_on_device(mediator, key), got "
        f"{task.id!r}; leave device= out"
    )


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


def _mountain_car(task: Any) -> Payoff:
    def payoff(parameters: Any, key: Any) -> Any:
        low, high = mountain_car.START_LOW, mountain_car.START_HIGH
        return mountain_car_return(parameters, jax.random.uniform(key, (), jnp.float64, low, high), task.horizon)

    return payoff


def mountain_car_return(parameters: Any, start: Any, horizon: int) -> Any:
    """The return of an episode that begins at rest; `tasks.mountain_car` says what is rounded where, and why."""
    power, gravity, fastest = mountain_car.POWER, mountain_car.GRAVITY, mountain_car.MAX_SPEED

    def go_on(state: Any) -> Any:
        t, _, _, _, reached = state
        return (t < horizon) & ~reached

    def step(state: Any) -> Any:
        t, position, velocity, total, _ = state
        action = parameters[0] * _rounded(position) + parameters[1] * _rounded(velocity)
        single, weak = t > 0, jnp.abs(action) > 1.0
        angle = jnp.where(single, _rounded(3.0 * position), 3.0 * position)
        change = jnp.clip(action, -1.0, 1.0) * power - gravity * jnp.cos(angle)
        narrow = single & weak
        velocity = jnp.where(narrow, _rounded(velocity + _rounded(change)), velocity + change)
        limit = jnp.where(narrow, _rounded(jnp.asarray(fastest)), fastest)
        clipped = jnp.abs(velocity) > limit
        velocity = jnp.where(clipped, jnp.sign(velocity) * fastest, velocity)
        narrow = single & (weak | clipped)
        position = jnp.where(narrow, _rounded(position + _rounded(velocity)), position + velocity)
        ends = mountain_car.MIN_POSITION, mountain_car.MAX_POSITION, mountain_car.GOAL_POSITION
        lowest, highest, goal = (jnp.where(narrow, _rounded(jnp.asarray(end)), end) for end in ends)
        position = jnp.clip(position, lowest, highest)
        velocity = jnp.where((position == lowest) & (velocity < 0.0), 0.0, velocity)
        reached = (position >= goal) & (velocity >= mountain_car.GOAL_VELOCITY)
        reward = jnp.where(reached, 100.0, 0.0) - action * action * 0.1
        return t + 1, _rounded(position), _rounded(velocity), total + reward, reached

    begin = jnp.asarray(0), jnp.asarray(start), jnp.asarray(0.0), jnp.asarray(0.0), jnp.asarray(False)
    return jax.lax.while_loop(go_on, step, begin)[3]


def _rounded(x: Any) -> Any:
    """The nearest float32, as float64."""
    return x.astype(jnp.float32).astype(jnp.float64)


def _cartpole(task: Any) -> Payoff:
    def payoff(parameters: Any, key: Any) -> Any:
        limit = cartpole.START_LIMIT
        return cartpole_return(parameters, jax.random.uniform(key, (4,), jnp.float64, -limit, limit), task.horizon)

    return payoff


def cartpole_return(parameters: Any, start: Any, horizon: int) -> Any:
    """How many steps the pole stays up, the one that fails included; see `tasks.cartpole`."""

    def go_on(state: Any) -> Any:
        t, _, upright = state
        return (t < horizon) & upright

    def step(state: Any) -> Any:
        t, (x, v, angle, spin), _ = state
        action = parameters[0] * x + parameters[1] * v + parameters[2] * angle + parameters[3] * spin
        push = jnp.clip(action, -cartpole.MAX_FORCE, cartpole.MAX_FORCE)
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        drive = (push + cartpole.POLE_MOMENT * (spin * spin) * sine) / cartpole.TOTAL_MASS
        inertia = 4.0 / 3.0 - cartpole.POLE_MASS * (cosine * cosine) / cartpole.TOTAL_MASS
        spin_rate = (cartpole.GRAVITY * sine - cosine * drive) / (cartpole.HALF_LENGTH * inertia)
        acceleration = drive - cartpole.POLE_MOMENT * spin_rate * cosine / cartpole.TOTAL_MASS
        x, v = x + cartpole.TIME_STEP * v, v + cartpole.TIME_STEP * acceleration
        angle, spin = angle + cartpole.TIME_STEP * spin, spin + cartpole.TIME_STEP * spin_rate
        upright = (jnp.abs(x) <= cartpole.MAX_POSITION) & (jnp.abs(angle) <= cartpole.MAX_ANGLE)
        return t + 1.0, (x, v, angle, spin), upright

    begin = jnp.asarray(0.0), tuple(start[i] for i in range(4)), jnp.asarray(True)
    return jax.lax.while_loop(go_on, step, begin)[0]


TASKS: dict[Any, Callable[[Any], Payoff]] = {
    Illustrative: _illustrative,
    LQG: _lqg,
    MountainCar: _mountain_car,
    Cartpole: _cartpole,
}
