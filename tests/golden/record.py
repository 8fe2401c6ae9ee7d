"""Record what every learner does on every kind of space: `python -m tests.golden.record`, run with version 0.1.0.

`python -m tests.golden.record realist` was run with 0.2.0, which renewed that learner. `Auto` has no golden runs.

Decisions are kept as they are; of the mediators, one number for every 50 rounds, which all of them enter.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests import problems

FOLDER = Path(__file__).parent
ROUNDS, SEEDS, EVERY = 300, (0, 1, 2), 50
FIELDS = ("value", "effective_samples", "threshold", "width", "plays", "coverage")


def run(name: str, space: str, seed: int) -> dict[str, Any]:
    """300 rounds, alone and in batches; what was asked, and the estimates in the end."""
    learner = problems.make(name, space, seed=seed, **problems.settings(space))
    decisions, mediators = played(learner, space)
    return {"decisions": decisions, "mediators": mediators, "estimates": estimates(learner, space)}


def played(learner: Any, space: str) -> tuple[list[Any], list[float]]:
    """All decisions, and every 50 rounds a sum of all mediators so far, each entry with a weight of its own."""
    decisions, sums, entered, total = list[Any](), list[float](), 0, 0.0
    alone = space in problems.TOLD or space == "logged"  # 0.1.0 cannot ask a space with loggers ahead
    for number in range(ROUNDS):
        trials = learner.ask(batch=4) if number % 20 == 19 and not alone else [learner.ask()]
        for trial in trials:
            decisions.append(plain(trial.decision))
            entries = np.ravel(trial.mediator if trial.mediator is not None else 0.0).astype(float)
            total += float(np.sum(np.cos(entered + np.arange(entries.size)) * entries))
            entered += entries.size
            problems.tell(learner, trial, space)
        if (number + 1) % EVERY == 0:
            sums.append(total)
    return decisions, sums


def estimates(learner: Any, space: str) -> dict[str, Any]:
    found = learner.estimates() if space in problems.FINITE else learner.estimate(points(learner.space))
    return {field: plain(getattr(found, field)) for field in FIELDS} | {"recommend": plain(learner.recommend())}


def points(box: Any) -> Any:
    """Five points of a box, without scales."""
    low, high = (np.reshape(side, box.family.shape) for side in box.corners)
    return low + np.random.default_rng(5).random((5, *box.family.shape)) * (high - low)


def plain(value: Any) -> Any:
    """JSON has no infinity, so it is written as a word."""
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return plain(np.asarray(value).tolist()) if isinstance(value, np.ndarray | np.generic) else value


def save(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, separators=(",", ":")).replace('},"', '},\n"') + "\n")


def main(names: list[str]) -> None:
    """All learners, or those that are named: those renewed in 0.2.0 were recorded anew, in the user's units."""
    for name in names or dict.fromkeys(name for name, _ in problems.FINITE_CASES + problems.BOX_CASES):
        spaces = [s for n, s in problems.FINITE_CASES + problems.BOX_CASES if n == name]
        runs = {space: {str(seed): run(name, space, seed) for seed in SEEDS} for space in spaces}
        save(FOLDER / f"{name.replace(' ', '-')}.json", runs)
        print(name, ", ".join(spaces))


if __name__ == "__main__":
    main(sys.argv[1:])
