"""What happens to workers: their file is taken away, they may only read, they are forked at a bad moment."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import randomist as rd
from randomist.errors import StorageError
from tests.problems import GAUSSIANS
from tests.study.helpers import play

ROOT = str(Path(__file__).parents[2])


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(replaced, tmp_path):
    path = tmp_path / "study.db"
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=f"sqlite:///{path}")
    play(study, 3)
    trial = study.ask()
    study.close()
    if replaced:
        shutil.copy(path, tmp_path / "backup.db")
    away = path.rename(tmp_path / "away.db")
    if replaced:
        (tmp_path / "backup.db").rename(path)
    for act in (lambda: study.tell(trial, 0.5), lambda: study.fail(trial), study.ask, study.trials):
        with pytest.raises(StorageError, match="was removed or replaced while it was in use"):
            act()
    assert path.exists() == replaced, "no empty file is made in its place"
    away.replace(path)
    study.tell(trial, 0.5)
    assert rd.load_study("car", storage=f"sqlite:///{path}").told == 4


READING = """
import os, sys
sys.path.insert(0, sys.argv[1])
import sqlalchemy.dialects.sqlite, alembic.migration, randomist.study.storages.sql.storage
import randomist as rd
from randomist.study.export import lines
from tests.study.helpers import play
from tests.problems import GAUSSIANS
warm = rd.create_study("warm", rd.Randomist(GAUSSIANS, seed=0), storage="memory://warm")
play(warm, 8)
list(lines(warm)), warm.recommend(), warm.estimates()
rd.load_study("warm", storage="memory://warm").recommend()  # what is imported and compiled on first use
if os.geteuid() == 0:
    os.setuid(65534)
study = rd.load_study("car", storage=sys.argv[2])
assert len(study.trials()) == 8 and study.told == 8
assert study.estimates().plays.sum() == 8
print(study.recommend(), len(list(lines(study))))
try:
    study.ask()
except rd.errors.StorageError as error:
    print(error)
"""


@pytest.mark.parametrize("writable", ["folder", "nothing"])
def test_a_database_that_may_only_be_read(writable):
    """As another user, where this one is root, whom nothing stops."""
    folder = Path(tempfile.mkdtemp(prefix="randomist-reading-"))
    try:
        url = f"sqlite:///{folder}/study.db"
        with rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url) as study:
            play(study, 8)
            best = study.recommend()
        (folder / "study.db").chmod(0o444)
        (folder / "study.db-queue").unlink()
        folder.chmod(0o777 if writable == "folder" else 0o555)
        done = subprocess.run([sys.executable, "-c", READING, ROOT, url], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found, refused = done.stdout.splitlines()
        assert found == f"{best} 1"
        assert "refused" in refused
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


FORKING = """
import os, sys, threading
sys.path.insert(0, sys.argv[1])
from tests.study.helpers import *
study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sys.argv[2], worker="parent", patience=20)
play(study, 3)
inside, go = threading.Event(), threading.Event()
storage, real = study.storage, study.storage.ask_all
def slowly(*arguments):
    inside.set()
    go.wait()
    return real(*arguments)
storage.ask_all = slowly
if sys.argv[3] == "writing":  # in the middle of a transaction
    del storage.ask_all
    database, count = storage.database, storage.database.write
    def within(work):
        def longer(connection, tried):
            inside.set()
            go.wait()
            return work(connection, tried)
        return count(longer)
    database.write = within
thread = threading.Thread(target=study.ask)
thread.start()
inside.wait()
if sys.argv[3] == "writing":
    threading.Timer(0.2, go.set).start()
child = os.fork()
if child == 0:
    try:
        storage.__dict__.pop("ask_all", None)
        getattr(storage, "database", storage).__dict__.pop("write", None)
        assert study.estimates().plays.sum() == 3
        trial = study.ask(worker="child")
        study.tell(trial, 0.5)
        os._exit(0)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
go.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
assert study.told == 4 and len(study.trials()) == 5
play(study, 2)
"""


@pytest.mark.parametrize("moment", ["thinking", "writing"])
def test_a_fork_while_a_thread_asks(moment, url):
    command = [sys.executable, "-c", FORKING, ROOT, url, moment]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
