"""Experiments as data: tasks × learners × seeds, readable from and written to TOML."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from randomist._checks import whole_number
from randomist._files import read_text
from randomist._lookup import check_known, reading
from randomist.errors import ParameterError, StateError, TaskError
from randomist.experiments.contenders import Contender
from randomist.learners import registry

if TYPE_CHECKING:
    from randomist.tasks.base import Task


@dataclass(frozen=True)
class TaskSpec:
    """A task by id and settings, under the title that figures show."""

    id: str
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    title: str = ""

    def make(self) -> Task:
        from randomist.tasks.base import task as find_task

        return find_task(self.id, **self.settings)

    @property
    def name(self) -> str:
        return self.title or " ".join([self.id, *(f"{key}={value}" for key, value in self.settings.items())])


@dataclass(frozen=True)
class Experiment:
    """Every learner on every task, once per seed 0..seeds-1."""

    name: str
    tasks: tuple[TaskSpec, ...]
    learners: tuple[Contender, ...]
    rounds: int
    seeds: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.replace("-", "").replace("_", "").isalnum():
            raise ParameterError(f"the name of an experiment has letters, digits, - and _ only, got {self.name!r}")
        for count, what in ((self.rounds, "rounds"), (self.seeds, "seeds")):
            whole_number(count, what)
        if not self.tasks or not self.learners:
            raise ParameterError(f"experiment {self.name!r} needs at least one task and one learner")

    def cells(self) -> list[Cell]:
        """Every run to be made, in order."""
        return [
            Cell(task, learner, self.rounds, seed)
            for task in self.tasks
            for learner in self.learners
            for seed in range(self.seeds)
        ]

    def state(self) -> dict[str, Any]:
        """Plain data: what TOML says."""
        return {
            "name": self.name,
            "rounds": self.rounds,
            "seeds": self.seeds,
            "tasks": [_drop_empty({"id": t.id, "title": t.title, "settings": t.settings}) for t in self.tasks],
            "learners": [_drop_empty({"name": c.name, "settings": c.settings}) for c in self.learners],
        }

    @property
    def digest(self) -> str:
        """A short hash of everything that results depend on; titles do not count."""
        state = self.state()
        for entry in state["tasks"]:
            entry.pop("title", None)
        return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Cell:
    """One run of an experiment."""

    task: TaskSpec
    learner: Contender
    rounds: int
    seed: int

    @property
    def key(self) -> str:
        """A file name that says which run this is, and differs for every other one."""
        state = json.dumps([self.task.id, self.task.settings, self.learner.name, self.learner.settings], sort_keys=True)
        code = hashlib.sha256(state.encode()).hexdigest()[:8]
        return f"{self.task.id}-{self.learner.name}-{code}-seed{self.seed}".replace(":", "_").replace("/", "_")


def read_experiment(path: Path) -> Experiment:
    """An experiment from a TOML file, with errors that name the entry."""
    try:
        return experiment_from_state(tomllib.loads(read_text(path, ParameterError)))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ParameterError(f"{path} is not TOML: {error}") from error
    except (ParameterError, StateError, TaskError) as error:
        raise ParameterError(f"{path}: {error}") from error


@reading()
def experiment_from_state(state: dict[str, Any]) -> Experiment:
    """An experiment of plain data, which names known classes only: nothing is imported for it."""
    from randomist.tasks.base import named as task_named

    known = {"name", "rounds", "seeds", "tasks", "learners"}
    if missing := known - state.keys():
        raise ParameterError(
            f"an experiment needs {', '.join(sorted(missing))}; see `docs/experiments.md` for an example"
        )
    if unknown := state.keys() - known:
        raise ParameterError(f"an experiment has no entry {', '.join(sorted(unknown))}")
    for table in ("tasks", "learners"):
        if not isinstance(state[table], list):
            raise ParameterError(f"{table} must be a list of tables, [[{table}]], got {state[table]!r}")
    tasks, learners = [], []
    for entry in state["tasks"]:
        _check_entry(entry, {"id", "title", "settings"}, "id", "tasks")
        task_named(entry["id"])
        tasks.append(TaskSpec(entry["id"], entry.get("settings", {}), entry.get("title", "")))
    for entry in state["learners"]:
        _check_entry(entry, {"name", "settings"}, "name", "learners")
        check_known(settings := entry.get("settings", {}))
        learners.append(Contender(registry.check(entry["name"]), settings))
    return Experiment(state["name"], tuple(tasks), tuple(learners), state["rounds"], state["seeds"])


def to_toml(experiment: Experiment) -> str:
    """The TOML that `read_experiment` reads back as this experiment."""
    state = experiment.state()
    lines = [f"{key} = {_literal(state[key])}" for key in ("name", "rounds", "seeds")]
    for table in ("tasks", "learners"):
        for entry in state[table]:
            lines += ["", f"[[{table}]]", *(f"{key} = {_literal(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_literal(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf, -inf and nan
    if value is None:
        raise ParameterError("TOML has no word for None; leave the setting out")
    return json.dumps(value, ensure_ascii=False)  # numbers, texts and booleans are written alike in both


def _check_entry(entry: Any, known: set[str], needed: str, table: str) -> None:
    if not isinstance(entry, dict) or not isinstance(entry.get(needed), str):
        raise ParameterError(f"every entry of {table} needs {needed!r}, a text, got {entry!r}")
    if not isinstance(entry.get("settings", {}), dict):
        raise ParameterError(f"settings must be a table {{ key = value }}, got {entry['settings']!r}")
    if unknown := entry.keys() - known:
        raise ParameterError(
            f"an entry of {table} has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}"
        )


def _drop_empty(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value not in ("", {})}
