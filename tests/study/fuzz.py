"""Databases that were edited by hand or hit by a flipped bit: what becomes of their studies."""

from __future__ import annotations

import random
import shutil
import sqlite3
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import randomist as rd
from randomist.errors import RandomistError
from randomist.study import open_storage, replica
from randomist.study.verifying import verify
from tests.problems import GAUSSIANS, RECTANGLE
from tests.study.helpers import play
from tests.study.test_likelihoods import SPACE, four, live

TABLES = ("schema", "studies", "trials", "trials", "changes", "audit", "checkpoints")
STUDIES = ("finite", "box", "auto", "ads")
VALUES = (None, "", "x", "[]", "{}", "null", "NaN", "1e999", "1" * 400, "[" * 3000, b"\xff\xfe", 0, -1, 1, 7, 10**18,
          2**63 - 1, 0.5, 1e308, -1e308, float("inf"), 5e-324, "CAST")  # fmt: skip


def make_database(path: Path) -> None:
    """A small study of each kind: trials of every kind, changes, a checkpoint, a search, results known before."""
    url, every = f"sqlite:///{path}", replica.CHECKPOINT
    replica.CHECKPOINT = 9
    try:
        finite = rd.create_study("finite", rd.Randomist(GAUSSIANS, seed=1), storage=url, worker="w")
        box = rd.create_study("box", rd.MCMCRandomist(RECTANGLE, seed=1, density="one-step"), storage=url, worker="w")
        learner = rd.Auto(low=[-1, 0], high=[1, 20], seed=1)
        learner.begin([[0.5, 3.0]], [0.25])
        auto = rd.create_study("auto", learner, storage=url, worker="w")
        play(auto, 4)
        auto.tell(auto.ask(), feasible=False)
        auto.tell(auto.confirm(2)[0], 0.5, feasible=False)
        play(finite, 6)
        finite.add(rd.Gaussian([1.4], [0.7]), name="wide")
        play(finite, 8)
        finite.retire(0)
        ads = rd.create_study("ads", rd.Randomist(SPACE, seed=1), storage=url, worker="w")
        live(ads, 6)
        ads.add(name="calm")
        live(ads, 6, *four())
        ads.retract(2, "wrong")
        ads.fail(ads.ask(), "lost")
        for study in (finite, box, auto):
            play(study, 5)
            study.retract(3, "wrong")
            study.fail(study.ask(), "lost")
            study.ask(lease=0.001)
            play(study, 6)
            study.close()
        ads.close()
    finally:
        replica.CHECKPOINT = every
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def edit_a_cell(path: Path, rng: random.Random) -> str | None:
    """Another value in one cell; None where the tables refuse it."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        table = f"randomist_{rng.choice(TABLES)}"
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column = rng.choice(columns)
        rows = connection.execute(f"select rowid, {column} from {table}").fetchall()
        row, old = rng.choice(rows)
        new = rng.choice(VALUES) if rng.random() < 0.6 else _near(old, rng)
        place = "CAST(x'ff31' AS TEXT)" if new == "CAST" else "?"
        try:
            connection.execute(f"update {table} set {column} = {place} where rowid = {row}", [new] * (place == "?"))
        except (sqlite3.IntegrityError, OverflowError):
            return None
    return f"{table}.{column} of row {row}: {str(old)[:60]!r} -> {str(new)[:60]!r}"


def _near(old: Any, rng: random.Random) -> Any:
    """A value that is almost the old one."""
    if isinstance(old, int | float):
        return rng.choice([old + 1, old - 1, -old, old * 2, old + 0.5, str(old), 10 * old])
    if not isinstance(old, str) or not old:
        return rng.choice(VALUES)
    at = rng.randrange(len(old))
    return rng.choice(
        [old[:at], old[at:], old[:at] + rng.choice('0129.-"[]{},eAz') + old[at + 1 :], f" {old}", old * 2]
    )


def flip_a_bit(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    at, bit = rng.randrange(len(content)), rng.randrange(8)
    content[at] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {at}"


def use(path: Path) -> Any:
    """What a worker does with the studies, on a copy: what it sees, or the typed error that it gets."""
    storage, seen = open_storage(f"sqlite:///{path}", 0.5), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in STUDIES:
            try:
                study = rd.load_study(name, storage=storage)
                seen += [(t.id, t.state, t.payoff, t.feasible, np.asarray(t.mediator).tolist()) for t in study.trials()]
                seen += [np.asarray(study.recommend()).tolist(), study.workers(), study.counters, study.archived]
                seen += [entry[1:] for entry in study.audit()]
                if name in ("finite", "ads"):
                    seen.append(len(study.log(payoff_range=(0, 1))))
                trial = study.ask()
                seen.append((trial.id, np.asarray(trial.decision).tolist(), np.asarray(trial.mediator).tolist()))
                study.tell(trial, 0.5, **({"log_likelihoods": [-1.0] * 4} if name == "ads" else {}))
                study.retract(trial, "no")
            except RandomistError as error:
                seen.append(type(error).__name__)
        try:
            seen += [len(verify(storage, name).problems) for name in STUDIES]  # which never raises what is typed
            seen.append(storage.names())
        except RandomistError as error:
            seen.append(type(error).__name__)
        try:
            seen.append(storage.upgrade())
        except RandomistError as error:
            seen.append(type(error).__name__)
    storage.disconnect()
    return seen


def attack(folder: Path, how: Any, times: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often nothing changed, a typed error came, something else was seen; and what was no typed error."""
    source, target, rng = folder / "source.db", folder / "target.db", random.Random(seed)
    make_database(source)
    shutil.copy(source, target)
    usual, found, untyped = use(target), Counter[str](), []
    while found.total() < times:
        for rest in folder.glob("target.db*"):
            rest.unlink()
        shutil.copy(source, target)
        if (what := how(target, rng)) is None:
            continue
        try:
            seen = use(target)
        except Exception as error:
            untyped.append(f"{what}: {error!r}")
            found["untyped"] += 1
        else:
            names = [name for name in seen if isinstance(name, str)]
            found["typed" if names else "same" if repr(seen) == repr(usual) else "different"] += 1
    return found, untyped
