"""Parameters become behaviour: linear and small neural policies, their noisy versions, and how they are kept on disk.

A policy is a frozen record of shapes; the parameters, which learners search, are arrays beside it. All arithmetic goes
row by row, in a fixed order: what a row gives does not depend, to the last bit, on the batch that it is in.
"""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from randomist._checks import finite_array
from randomist._types import Array, Indices
from randomist.errors import ParameterError, ShapeError, StateError

FORMAT = 1  # of the saved policy


@dataclass(frozen=True)
class Policy(ABC):
    """A deterministic map from observations to actions with `size` parameters.

    Observations are divided by `observation_scale` (a number, or one per entry), and what comes out is multiplied by
    `action_scale`. With `discrete` the actions are 0..action_size-1, and the one with the largest output is taken (the
    first of several).
    """

    observation_size: int
    action_size: int
    _: KW_ONLY
    discrete: bool = False
    observation_scale: float | tuple[float, ...] | None = None
    action_scale: float = 1.0

    def __post_init__(self) -> None:
        for flag in (f.name for f in fields(self) if f.type == "bool"):
            if not isinstance(getattr(self, flag), bool):
                raise ParameterError(f"{flag} must be True or False, got {getattr(self, flag)!r}")
        for name in ("observation_size", "action_size"):
            object.__setattr__(self, name, whole_number(getattr(self, name), name))
        for name in ("observation_scale", "action_scale"):
            if getattr(self, name) is not None:
                length = self.observation_size if name == "observation_scale" else None
                object.__setattr__(self, name, _positive(getattr(self, name), name, length))

    @property
    @abstractmethod
    def size(self) -> int:
        """How many parameters there are."""

    @abstractmethod
    def _forward(self, parameters: Array, inputs: Array) -> Array:
        """(..., size), (..., observation_size) -> (..., action_size)"""

    def act(self, parameters: ArrayLike, observations: ArrayLike) -> NDArray[Any]:
        """The actions: (..., action_size), or whole numbers (...) if `discrete`.

        One parameter vector (size,) takes one observation (o,) or many (m, o); n of them (n, size) take n, one each.
        """
        return self.choose(self.outputs(parameters, observations))

    def outputs(self, parameters: ArrayLike, observations: ArrayLike) -> Array:
        """What `choose` reads the action off; NaN where the parameters overflow.  (..., action_size)"""
        theta = self.check_parameters(parameters)
        inputs = np.ascontiguousarray(observations, dtype=np.float64)
        if inputs.ndim not in (1, 2) or inputs.shape[-1] != self.observation_size:
            raise ShapeError(f"observations must have shape (n, {self.observation_size}), got {inputs.shape}")
        if theta.ndim == inputs.ndim == 2 and len(theta) != len(inputs):
            raise ShapeError(f"{len(theta)} parameter vectors take as many observations, one each; got {len(inputs)}")
        with np.errstate(over="ignore", invalid="ignore"):
            if self.observation_scale is not None:
                inputs = inputs / self.observation_scale
            return self.action_scale * self._forward(theta, inputs)

    def choose(self, outputs: Array) -> NDArray[Any]:
        """The action for these outputs: the outputs themselves, or the place of the largest if `discrete`."""
        return outputs.argmax(axis=-1) if self.discrete else outputs

    def check_parameters(self, parameters: ArrayLike) -> Array:
        """The parameters as (size,) or (n, size), finite or not; a number will do where there is one."""
        theta = np.ascontiguousarray(parameters, dtype=np.float64)
        if theta.ndim not in (1, 2) or theta.shape[-1] != self.size:
            shape = np.shape(parameters)
            raise ShapeError(f"parameters of {self} must have shape ({self.size},) or (n, {self.size}), got {shape}")
        return theta

    def state(self) -> dict[str, Any]:
        """The constructor's arguments as plain data, under the policy's name."""
        return {"kind": type(self).__name__} | {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Linear(Policy):
    """a = W s, or W s + b with `bias`; the parameters are the rows of W, then b.

    With `diagonal` each action sees one entry of the observation, a_i = θ_i s_i: the parameters are the diagonal of W.

    >>> Linear(3, 2, bias=True).size
    8
    """

    bias: bool = False
    diagonal: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.diagonal and self.observation_size != self.action_size:
            raise ParameterError(
                f"a diagonal policy has as many actions as observations, got {self.action_size} and "
                f"{self.observation_size}; leave out diagonal=True for a full matrix"
            )

    @property
    def size(self) -> int:
        weights = self.action_size if self.diagonal else self.observation_size * self.action_size
        return weights + (self.action_size if self.bias else 0)

    def _forward(self, parameters: Array, inputs: Array) -> Array:
        if self.diagonal:
            product = parameters[..., : self.action_size] * inputs
        else:
            product = _product(parameters, self.action_size, inputs)
        return product + parameters[..., -self.action_size :] if self.bias else product


@dataclass(frozen=True)
class Neural(Policy):
    """A small network: `hidden` layers of units with an activation, then a linear layer; all have biases.

    The parameters are, layer by layer, the rows of the weights, then the biases.

    >>> Neural(3, 1, hidden=(16,)).size
    81
    """

    hidden: tuple[int, ...] = (16,)
    activation: Literal["tanh", "relu"] = "tanh"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.hidden, str) or not isinstance(self.hidden, list | tuple | np.ndarray):
            raise ParameterError(f"hidden must list the units of each layer, such as (16,), got {self.hidden!r}")
        object.__setattr__(self, "hidden", tuple(whole_number(units, "hidden") for units in self.hidden))
        if self.activation not in ("tanh", "relu"):
            raise ParameterError(f'activation must be "tanh" or "relu", got {self.activation!r}')

    @property
    def size(self) -> int:
        return sum((inputs + 1) * units for inputs, units in self._layers)

    @property
    def _layers(self) -> list[tuple[int, int]]:
        return list(pairwise((self.observation_size, *self.hidden, self.action_size)))

    def _forward(self, parameters: Array, inputs: Array) -> Array:
        begin, values = 0, inputs
        for layer, (wide, units) in enumerate(self._layers):
            if layer:
                values = np.tanh(values) if self.activation == "tanh" else np.maximum(values, 0.0)
            bias = begin + wide * units
            values = _product(parameters[..., begin:], units, values) + parameters[..., bias : bias + units]
            begin = bias + units
        return values


# Noisy versions, for those who search over actions and need the density of each.


@dataclass(frozen=True)
class GaussianPolicy:
    """N(base's action, diag(std²)): `std` is a number, or one per action."""

    base: Policy
    std: float | tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.base, Policy) or self.base.discrete:
            raise ParameterError(f"a GaussianPolicy needs a base with continuous actions, got {self.base}")
        object.__setattr__(self, "std", _positive(self.std, "std", self.base.action_size))

    @property
    def size(self) -> int:
        return self.base.size

    def sample(self, parameters: ArrayLike, observations: ArrayLike, rng: np.random.Generator) -> Array:
        """One action per observation, with the shapes of `Policy.act`.  (..., action_size)"""
        mean = self.base.outputs(parameters, observations)
        return mean + self.std * rng.standard_normal(mean.shape)

    def log_density(self, parameters: ArrayLike, observations: ArrayLike, actions: ArrayLike) -> Array:
        """(..., action_size) -> (...)"""
        mean, std = self.base.outputs(parameters, observations), np.broadcast_to(self.std, self.base.action_size)
        taken = np.asarray(actions, dtype=np.float64)
        if taken.shape != mean.shape:
            raise ShapeError(f"actions must have shape {mean.shape}, one per observation, got {taken.shape}")
        exponent = -0.5 * np.sum(((taken - mean) / std) ** 2, axis=-1)
        return np.asarray(exponent - np.log(std).sum() - 0.5 * math.log(2 * math.pi) * self.base.action_size)

    def state(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "base": self.base.state(), "std": self.std}


@dataclass(frozen=True)
class SoftmaxPolicy:
    """Action k with probability proportional to exp(output k) of a discrete base."""

    base: Policy

    def __post_init__(self) -> None:
        if not isinstance(self.base, Policy) or not self.base.discrete:
            raise ParameterError(f"a SoftmaxPolicy needs a base with discrete=True, got {self.base}")

    @property
    def size(self) -> int:
        return self.base.size

    def sample(self, parameters: ArrayLike, observations: ArrayLike, rng: np.random.Generator) -> Indices:
        """One action per observation, with the shapes of `Policy.act`.  (...)"""
        outputs = self.base.outputs(parameters, observations)
        return np.asarray((outputs + rng.gumbel(size=outputs.shape)).argmax(axis=-1))  # the Gumbel trick

    def log_density(self, parameters: ArrayLike, observations: ArrayLike, actions: ArrayLike) -> Array:
        """(...) -> (...)"""
        log_probability = log_softmax(self.base.outputs(parameters, observations), axis=-1)
        taken = np.asarray(actions)
        if taken.shape != log_probability.shape[:-1]:
            raise ShapeError(f"actions must have shape {log_probability.shape[:-1]}, got {taken.shape}")
        if taken.dtype.kind not in "iu" or not ((taken >= 0) & (taken < self.base.action_size)).all():
            raise ParameterError(f"actions must be whole numbers in 0..{self.base.action_size - 1}, got {actions!r}")
        return np.asarray(np.take_along_axis(log_probability, taken[..., None], axis=-1)[..., 0])

    def state(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "base": self.base.state()}


# On disk: JSON, written whole or not at all.


AnyPolicy = Policy | GaussianPolicy | SoftmaxPolicy


@dataclass(frozen=True, eq=False)
class SavedPolicy:
    """A policy with its parameters, and where they were found: the id and the settings of a task."""

    policy: AnyPolicy
    parameters: Array  # (size,)
    task: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def act(self, observations: ArrayLike) -> NDArray[Any]:
        """The actions of `Policy.act`; those of its base if the policy is noisy."""
        policy = self.policy if isinstance(self.policy, Policy) else self.policy.base
        return policy.act(self.parameters, observations)


def save_policy(
    path: str | Path,
    policy: AnyPolicy,
    parameters: ArrayLike,
    *,
    task: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write a policy and its parameters as JSON; a `task` (or its id) and `settings` say what makes it again."""
    values = finite_array(np.atleast_1d(np.asarray(parameters, dtype=np.float64)), "parameters")
    if values.shape != (policy.size,):
        raise ShapeError(f"parameters of {policy} must have shape ({policy.size},), got {values.shape}")
    content = {
        "format": FORMAT,
        "policy": policy.state(),
        "parameters": values.tolist(),
        "task": getattr(task, "id", task),
        "settings": dict(settings or {}),
    }
    try:
        text = json.dumps(content, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"task must have an id and settings be plain data, got {task!r}, {settings}: {error}"
        ) from None
    path = Path(path)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text + "\n", encoding="utf-8")
    os.replace(unfinished, path)


def load_policy(path: str | Path) -> SavedPolicy:
    """What `save_policy` wrote, bit for bit."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StateError(f"{path} cannot be read as a policy: {error}; it must be a file of save_policy") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else content
        raise StateError(f"{path} is no policy of format {FORMAT}, which this version reads: it says {found!r:.80}")
    try:
        policy = policy_from_state(content["policy"])
        parameters = finite_array(content["parameters"], "parameters")
        task, settings = content["task"], content["settings"]
        if parameters.shape != (policy.size,):
            raise ShapeError(f"parameters of {policy} must have shape ({policy.size},), got {parameters.shape}")
        if not (task is None or isinstance(task, str)) or not isinstance(settings, dict):
            raise ParameterError(f"task must be a string and settings a table, got {task!r} and {settings!r}")
    except KeyError as error:
        raise StateError(f"{path} lacks the entry {error}; save the policy again with save_policy") from error
    except (ParameterError, ShapeError, StateError, OverflowError, RecursionError) as error:
        raise StateError(f"{path} does not describe a policy: {error}") from error
    return SavedPolicy(policy, parameters, task, settings)


def policy_from_state(state: Any) -> AnyPolicy:
    """Undo `state()` of any policy."""
    kinds: dict[str, type[AnyPolicy]] = {c.__name__: c for c in (Linear, Neural, GaussianPolicy, SoftmaxPolicy)}
    if not isinstance(state, dict) or str(state.get("kind")) not in kinds:
        raise StateError(f"a policy's kind is one of {', '.join(kinds)}; got {state!r:.80}")
    settings = {name: value for name, value in state.items() if name != "kind"}
    if "base" in settings:
        settings["base"] = policy_from_state(settings["base"])
    try:
        return kinds[str(state["kind"])](**settings)
    except TypeError as error:
        raise StateError(f"{state['kind']} does not take these settings: {error}") from None


# Arithmetic and checks.


def _product(parameters: Array, rows: int, inputs: Array) -> Array:
    """W x with W the first rows of the parameters, added from left to right whatever the batch.  (..., rows)"""
    weights = parameters[..., : rows * inputs.shape[-1]].reshape(*parameters.shape[:-1], rows, inputs.shape[-1])
    terms = weights * inputs[..., None, :]
    return np.ascontiguousarray(np.add.accumulate(terms, axis=-1, out=terms)[..., -1])


def whole_number(value: Any, name: str) -> int:
    """An integer >= 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(value)


def _positive(value: Any, name: str, length: int | None) -> float | tuple[float, ...]:
    """A number > 0, or `length` of them."""
    array = finite_array(value, name)
    if array.shape not in (((), (length,)) if length is not None else ((),)):
        raise ShapeError(f"{name} must be a number{f' or {length} of them' if length else ''}, got {array.shape}")
    if not (array > 0).all():
        raise ParameterError(f"{name} must be > 0, got {value}")
    return float(array) if array.ndim == 0 else tuple(array.tolist())
