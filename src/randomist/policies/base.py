"""What every deterministic policy has: checked shapes, scales, and outputs that become actions.

A policy is a frozen record of shapes; the parameters, which learners search, are arrays beside it. All arithmetic goes
row by row, in a fixed order: what a row gives does not depend, to the last bit, on the batch that it is in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._checks import finite_array, flag, number, whole_number
from randomist._lookup import Named, name_of
from randomist._types import Array
from randomist.errors import ParameterError, ShapeError


@dataclass(frozen=True)
class Policy(Named, ABC):
    """A deterministic map from observations to actions with `size` parameters.

    Observations are divided by `observation_scale` (a number, or one per entry), and what comes out is multiplied by
    `action_scale`. With `discrete` the actions are 0..action_size-1, and the one with the largest output is taken (the
    first of several).
    """

    _ours: ClassVar[str] = "randomist.policies.saved:KINDS"

    observation_size: int
    action_size: int
    _: KW_ONLY
    discrete: bool = False
    observation_scale: float | tuple[float, ...] | None = None
    action_scale: float = 1.0

    def __post_init__(self) -> None:
        self._set("observation_size", whole_number(self.observation_size, "observation_size"))
        self._set("action_size", whole_number(self.action_size, "action_size"))
        self._set("discrete", flag(self.discrete, "discrete"))
        if self.observation_scale is not None:
            scale = positive(self.observation_scale, "observation_scale", self.observation_size)
            self._set("observation_scale", scale)
        self._set("action_scale", number(self.action_scale, "action_scale", above=0))

    @property
    def base(self) -> Policy:
        """The policy without noise: itself."""
        return self

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
        return {"kind": name_of(type(self))} | {f.name: getattr(self, f.name) for f in fields(self)}

    def _set(self, name: str, value: Any) -> None:
        """A setting as it was checked: the record is frozen for everybody else."""
        object.__setattr__(self, name, value)


def weighted_sums(parameters: Array, rows: int, inputs: Array) -> Array:
    """W x with W the first rows of the parameters, added from left to right whatever the batch.  (..., rows)"""
    weights = parameters[..., : rows * inputs.shape[-1]].reshape(*parameters.shape[:-1], rows, inputs.shape[-1])
    terms = weights * inputs[..., None, :]
    return np.ascontiguousarray(np.add.accumulate(terms, axis=-1, out=terms)[..., -1])


def positive(value: Any, name: str, length: int) -> float | tuple[float, ...]:
    """A number > 0, or `length` of them."""
    array = finite_array(value, name)
    if array.shape not in ((), (length,)):
        raise ShapeError(f"{name} must be a number or {length} of them, got {array.shape}")
    if not (array > 0).all():
        raise ParameterError(f"{name} must be > 0, got {value}")
    return float(array) if array.ndim == 0 else tuple(array.tolist())
