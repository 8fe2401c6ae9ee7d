"""Policies on disk: JSON, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._checks import finite_array
from randomist._files import read_text
from randomist._lookup import REMEDY, known
from randomist._types import Array
from randomist.errors import ParameterError, ShapeError, StateError
from randomist.policies.base import Policy
from randomist.policies.linear import Linear
from randomist.policies.neural import Neural
from randomist.policies.noisy import GaussianPolicy, SoftmaxPolicy

FORMAT = 1  # of the saved policy

AnyPolicy: TypeAlias = Policy | GaussianPolicy | SoftmaxPolicy
KINDS: dict[str, type[AnyPolicy]] = {kind.__name__: kind for kind in (Linear, Neural, GaussianPolicy, SoftmaxPolicy)}


@dataclass(frozen=True, eq=False)
class SavedPolicy:
    """A policy with its parameters, and where they were found: the id and the settings of a task."""

    policy: AnyPolicy
    parameters: Array  # (size,)
    task: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def act(self, observations: ArrayLike) -> NDArray[Any]:
        """The actions of `Policy.act`; of a noisy policy, those without noise (`rollout` acts with it)."""
        return self.policy.base.act(self.parameters, observations)


def save_policy(
    path: str | Path,
    policy: AnyPolicy,
    parameters: ArrayLike,
    *,
    task: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write a policy and its parameters as JSON; a `task` (or its id) and `settings` say what makes it again."""
    content = {
        "format": FORMAT,
        "policy": policy.state(),
        "parameters": parameter_vector(policy, parameters).tolist(),
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
        content = json.loads(read_text(path, StateError))
    except (OSError, ValueError, RecursionError) as error:
        raise StateError(f"{path} cannot be read as a policy: {error}; it must be a file of save_policy") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else content
        raise StateError(
            f"{path} is not a policy of format {FORMAT}, the one that this version reads: it says {found!r:.80}"
        )
    try:
        policy = policy_from_state(content["policy"])
        parameters = parameter_vector(policy, content["parameters"])
        task, settings = content["task"], content["settings"]
        if not (task is None or isinstance(task, str)) or not isinstance(settings, dict):
            raise ParameterError(f"task must be a string and settings a table, got {task!r} and {settings!r}")
    except KeyError as error:
        raise StateError(f"{path} lacks the entry {error}; save the policy again with save_policy") from error
    except (ParameterError, ShapeError, StateError, OverflowError, RecursionError) as error:
        raise StateError(f"{path} does not describe a policy: {error}") from error
    return SavedPolicy(policy, parameters, task, settings)


def parameter_vector(policy: AnyPolicy, parameters: ArrayLike) -> Array:
    """The parameters of one policy, finite and read-only; a number will do where there is one.  (size,)"""
    vector = np.atleast_1d(finite_array(parameters, "parameters"))
    if vector.shape != (policy.size,):
        raise ShapeError(f"parameters of {policy} must have shape ({policy.size},), got {vector.shape}")
    return vector


def policy_from_state(state: Any) -> AnyPolicy:
    """Undo `state()` of any policy."""
    kind = state.get("kind") if isinstance(state, dict) else None
    cls = KINDS.get(str(kind)) or known(kind, Policy)
    if cls is None:
        raise StateError(f"a policy's kind is one of {', '.join(KINDS)}; got {state!r:.80}; if it is yours, {REMEDY}")
    settings = {name: value for name, value in state.items() if name != "kind"}
    if "base" in settings:
        settings["base"] = policy_from_state(settings["base"])
    try:
        return cls(**settings)
    except TypeError as error:
        raise StateError(f"{kind} does not take these settings: {error}") from None
