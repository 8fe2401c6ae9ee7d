"""Saved states and databases of version 0.1.0, with what came next: `python -m tests.golden.record_saved`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import randomist as rd
from randomist._json import dumps
from tests import problems
from tests.golden.record import FOLDER, plain, save

STATES = FOLDER / "states"
BEFORE, AFTER = 120, 60
CASES = [  # one space of each kind, and every learner
    *((name, "gaussians") for name in (*problems.SHARING, *problems.BANDITS)),
    *(("optimist", space) for space in problems.FINITE if space != "gaussians"),
    *((name, "rectangle") for name in problems.BOX_LEARNERS),
    *(("realist", "categories"), ("optimist per-step", "per-decision"), ("realist", "likelihoods")),
]


def saved(name: str, space: str) -> dict[str, Any]:
    """A state with trials that are pending and one that failed, and the decisions that followed."""
    running = {"payoff_range": "running"} if name in ("realist", "ucb1", "prospector") else {}
    learner = problems.make(name, space, seed=11, **problems.settings(space) | running)
    for _ in range(BEFORE):
        problems.tell(learner, learner.ask(), space)
    alone = space == "logged"  # 0.1.0 cannot ask a space with loggers ahead
    late = [learner.ask()] if alone else learner.ask(batch=3)
    learner.fail(late[0], "lost")
    state = json.loads(dumps(learner.state()))
    return {"state": state, "late": [t.id for t in late[1:]], "next": going_on(learner, late[1:], space)}


def absorbed() -> dict[str, Any]:
    """A learner that began with a log."""
    rng = np.random.default_rng(4)
    columns = {name: np.log(rng.dirichlet(np.ones(4), 40).max(axis=1)) for name in "abcd"}
    log = rd.Log.from_arrays(rng.random(40), columns, loggers=np.array(list("abcd"))[rng.integers(4, size=40)])
    learner = rd.Randomist(problems.LIKELIHOODS_KNOWN, seed=11)
    learner.absorb(log)
    for _ in range(BEFORE):
        problems.tell(learner, learner.ask(), "likelihoods-known")
    state = json.loads(dumps(learner.state()))
    return {"state": state, "late": [], "next": going_on(learner, [], "likelihoods-known")}


def forgotten() -> dict[str, Any]:
    """A learner that keeps counts only."""
    learner = rd.Optimist(problems.CATEGORIES, seed=11, keep_record=False)
    for _ in range(BEFORE):
        problems.tell(learner, learner.ask(), "categories")
    state = json.loads(dumps(learner.state()))
    return {"state": state, "late": [], "next": going_on(learner, [], "categories")}


def going_on(learner: Any, late: list[Any], space: str) -> list[Any]:
    """The decisions after a state was saved, the pending trials answered first."""
    for trial in late:
        problems.tell(learner, trial, space)
    decisions = []
    for _ in range(AFTER):
        trial = learner.ask()
        decisions.append(plain(trial.decision))
        problems.tell(learner, trial, space)
    return decisions


STUDIES = {  # learner, space and how many trials are told in the database
    "randomist": ("randomist 1.1", "gaussians", 40),
    "realist": ("realist", "categories", 40),
    "mixed": ("optimist", "mixed", 30),
    "ucb1": ("ucb1", "gaussians", 30),
    "mcmc": ("mcmc full", "rectangle", 30),
    "prospector": ("prospector", "line", 30),
    "auto": ("auto", "rectangle", 40),
    "pgpe": ("pgpe", "rectangle", 25),
    "checkpointed": ("optimist", "gaussians", 2105),
    "checkpointed-auto": ("auto", "line", 2105),
}


def fill(url: str) -> dict[str, Any]:
    """Studies with told, failed and pending trials; the decisions of each, and of copies that went on."""
    known = {}
    for study_name, (name, space, told) in STUDIES.items():
        makers = [rd.create_study(n, problems.make(name, space, seed=5), storage=url, worker="golden")
                  for n in (study_name, f"{study_name}-copy")]  # fmt: skip
        for study in makers:
            for _ in range(told):
                problems.tell(study, study.ask(), space)
            study.fail(study.ask(), "a failure")
            study.ask(lease=0.001)
        study, copy = makers
        following = [copy.ask() for _ in range(1)]
        for _ in range(20):
            problems.tell(copy, following[-1], space)
            following.append(copy.ask())
        known[study_name] = {
            "decisions": [plain(t.decision) for t in study.trials()][-50:],
            "next": [plain(t.decision) for t in following],
        }
        delete(url, f"{study_name}-copy")
        for each in makers:
            each.close()
    return known


def delete(url: str, name: str) -> None:
    from tests.study.helpers import edit

    mine = f"(select id from randomist_studies where name = '{name}')"
    for table in ("randomist_trials", "randomist_checkpoints"):
        edit(url, f"delete from {table} where study = {mine}")
    edit(url, f"delete from randomist_studies where name = '{name}'")


def main() -> None:
    STATES.mkdir(exist_ok=True)
    cases = {f"{name} on {space}": saved(name, space) for name, space in CASES}
    cases |= {"absorbed": absorbed(), "forgotten": forgotten()}
    for title, case in cases.items():
        save(STATES / f"{title.replace(' ', '-')}.json", case)

    from tests.study.conftest import POSTGRES, Server
    from tests.study.helpers import edit

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/study.db"
        save(FOLDER / "studies.json", fill(url))
        edit(url, "PRAGMA journal_mode=DELETE")
        edit(url, "VACUUM")
        (FOLDER / "studies-0.1.0.db").write_bytes(Path(f"{folder}/study.db").read_bytes())
    server = Server()
    try:
        url = server.database()
        STUDIES.pop("checkpointed"), STUDIES.pop("checkpointed-auto")  # the dump stays small
        fill(url)
        dump = subprocess.run(
            [str(POSTGRES / "pg_dump"), "--no-owner", "--inserts", url], capture_output=True, text=True, check=True
        ).stdout
        kept = [line for line in dump.splitlines() if line and not line.startswith(("--", "\\", "SET ", "SELECT pg_"))]
        (FOLDER / "studies-0.1.0.sql").write_text("\n".join(kept) + "\n")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
