"""Linear policies: full or diagonal, with or without a bias."""

from __future__ import annotations

from dataclasses import dataclass, field

from randomist._checks import flag
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.policies.base import Policy, weighted_sums


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
        self._set("bias", flag(self.bias, "bias"))
        self._set("diagonal", flag(self.diagonal, "diagonal"))
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
            product = weighted_sums(parameters, self.action_size, inputs)
        return product + parameters[..., -self.action_size :] if self.bias else product
