"""Small neural policies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from randomist._checks import choice, whole_number
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.policies.base import Policy, weighted_sums


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
        self._set("hidden", tuple(whole_number(units, "hidden") for units in self.hidden))
        choice(self.activation, ("tanh", "relu"), "activation")

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
            values = weighted_sums(parameters[..., begin:], units, values) + parameters[..., bias : bias + units]
            begin = bias + units
        return values
