"""The tables: a row per learner and setting, with what it does by default written out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any

import numpy as np

from randomist.experiments.comparison import mean_interval
from randomist.experiments.contenders import Contender
from randomist.experiments.specs import Experiment
from randomist.experiments.store import Store
from randomist.learners import registry

COLUMNS = {"estimator": "estimator", "divergence": "divergence", "bias_correction": "b"}
NO_BIAS = ("ftl", "realist")  # their index has none


@dataclass(frozen=True)
class Row:
    """One learner with its settings on every task: the measure at the last round, run by run."""

    learner: Contender
    finals: list[np.ndarray]  # (seeds,) each, one entry per task
    regret: bool  # else the average payoff

    @classmethod
    def read(cls, store: Store) -> Row:
        learner = store.experiment.learners[0]
        first = store.load(store.experiment.cells()[0])
        column = "regret" if "regret" in first.columns else "average_payoff"
        finals = [store.curves(task, learner, column)[:, -1] for task in store.experiment.tasks]
        return cls(learner, finals, column == "regret")

    @property
    def title(self) -> str:
        return registry.title(self.learner.name)

    @property
    def words(self) -> list[str]:
        """Estimator, divergence and bias correction, as they are for this learner."""
        settings = self.learner.settings
        known = {field.name: field for field in fields(registry.find(self.learner.name))}
        words = []
        for name in COLUMNS:
            if name not in known or (name == "bias_correction" and self.learner.name in NO_BIAS):
                words.append("–")
            else:
                words.append(str(settings.get(name, known[name].default)))
        return words

    @property
    def others(self) -> str:
        """Any further settings."""
        further: dict[str, Any] = {key: value for key, value in self.learner.settings.items() if key not in COLUMNS}
        return ", ".join(f"{key}={value}" for key, value in further.items())

    @property
    def label(self) -> str:
        words = [word for word in self.words if word != "–"]
        if self.words[2] != "–":
            words[-1] = f"b={words[-1]}"
        return ", ".join([" ".join([self.title, *words]), *([self.others] if self.others else [])])


def markdown(experiment: Experiment, rows: list[Row]) -> str:
    """One table per learner, in the order of the file; the best mean of each column over all tables is bold."""
    sign = 1 if rows[0].regret else -1
    means = np.array([[final.mean() for final in row.finals] for row in rows])
    best = np.argmin(sign * means, axis=0)
    lines: list[str] = []
    heads = ["learner", *COLUMNS.values(), *(task.name for task in experiment.tasks)]
    for _, group in groupby(
        enumerate(rows), key=lambda entry: entry[1].learner.name in ("ucb1", "phe", "thompson") or entry[1].title
    ):
        lines += ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for number, row in group:
            cells = [f"{row.title} {row.others}".strip(), *row.words]
            for j, final in enumerate(row.finals):
                mean, half = mean_interval(final)
                text = f"{mean:,.1f} ± {half:,.1f}"
                cells.append(f"**{text}**" if best[j] == number else text)
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines).rstrip()
