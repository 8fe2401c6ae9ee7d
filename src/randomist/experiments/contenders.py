"""Learners as data: a name of the table, settings, and how it is written and drawn."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from randomist.errors import ParameterError
from randomist.learners import registry

LETTERS = {"perturbation_scale": "a", "bias_correction": "b", "kappa": "κ", "step_size": "step", "density": ""}


@dataclass(frozen=True)
class Contender:
    """One entry of a comparison: `Contender.parse("randomist:perturbation_scale=8.1")`, or "module:Class:key=value"."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def parse(cls, text: str) -> Contender:
        name, _, rest = text.partition(":")
        if name not in registry.TABLE and rest:  # module:Class, and then its settings
            second, _, rest = rest.partition(":")
            name = f"{name}:{second}"
        pairs = re.split(r",(?=\s*[\w-]+=)", rest) if rest else []  # not at the comma of (0,1)
        return cls(registry.check(name), parse_settings(pairs))

    @property
    def title(self) -> str:
        letters = [f"{LETTERS.get(key, key)}={value}".lstrip("=") for key, value in self.settings.items()]
        return " ".join([registry.title(self.name), *letters])


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """`["a=1.5", "b=paper"]` as keyword arguments: Python literals where they are, text otherwise."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key.strip().replace("-", "_").isidentifier():
            raise ParameterError(f"a setting is written key=value, got {pair!r}")
        name = key.strip().replace("-", "_")
        settings[f"{name}_" if keyword.iskeyword(name) else name] = literal(text)
    return settings


def literal(text: str) -> Any:
    """What Python reads in a text; the text itself where that is nothing."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


PAPER_CONTENDERS = (
    Contender("randomist", {"perturbation_scale": 8.1}),
    Contender("randomist", {"perturbation_scale": 1.1}),
    Contender("optimist"),
    Contender("ftl"),
    Contender("ucb1"),
    Contender("phe"),
    Contender("thompson"),
)

FINITE_CONTENDERS = (Contender("realist"), *PAPER_CONTENDERS)  # the default first, then the paper's

BOX_CONTENDERS = (
    Contender("auto"),
    Contender("mcmc-randomist", {"density": "one-step"}),
    Contender("grid-optimist", {"kappa": 4.0}),
    Contender("pgpe"),
    Contender("pois"),
)
