"""Every storage keeps the contract, ours and one that is defined elsewhere; what is none is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

import randomist as rd
from randomist.errors import ParameterError, StorageError
from randomist.study.client import Client
from randomist.study.records import NewClosing
from randomist.study.storages import STORAGES, open_storage
from randomist.study.storages.base import Storage
from randomist.study.storages.memory import MemoryStorage
from randomist.testing.storage import check_storage
from tests.study.helpers import GAUSSIANS, make, payoff, play, same
from tests.study.serving import ADMIN, serving


class Elsewhere(MemoryStorage):
    """A storage that is not ours: its URL names this class."""

    def __init__(self, url, *, patience=60.0):
        super().__init__(url.replace("tests.study.test_storages:Elsewhere", "memory"), patience=patience)


class Forgetful(MemoryStorage):
    """Loses every third payoff."""

    def close(self, study, number, new, *more):
        return super().close(study, number, NewClosing(reason="forgotten") if number % 3 == 2 else new, *more)


def test_the_contract_in_databases(url):
    check_storage(lambda: open_storage(url))


def test_the_contract_in_memory(memory):
    check_storage(lambda: open_storage(memory), threads=8)


def test_the_contract_can_fail(memory):
    with pytest.raises((AssertionError, rd.RandomistError)):
        check_storage(lambda: Forgetful(memory))


def test_a_storage_that_is_defined_elsewhere(memory):
    place = memory.replace("memory", "tests.study.test_storages:Elsewhere")
    assert type(open_storage(place)) is Elsewhere
    check_storage(lambda: open_storage(place))


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("memory://", StorageError, "has a name"),
        ("redis://x:secret@y", StorageError, "no storage is known for redis"),
        ("no.such.module:Storage://x", ParameterError, "cannot be imported"),
        ("tests.study.test_storages:Nothing://x", ParameterError, "cannot be imported"),
        ("tests.study.test_storages:same://x", ParameterError, "is not a storage"),
    ],
)
def test_urls_of_nothing(url, error, said):
    with pytest.raises(error, match=said) as refused:
        open_storage(url)
    assert "secret" not in str(refused.value)


def test_what_is_open_stays(memory):
    storage = open_storage(memory)
    assert open_storage(storage) is storage
    assert {where.partition(":")[0] for where in STORAGES.values()} == {
        "randomist.study.storages.memory",
        "randomist.study.storages.sql.storage",
    }
    with pytest.raises(TypeError, match="abstract"):
        Storage(memory)


@pytest.mark.parametrize("name", ["randomist", "mcmc-randomist", "auto"])
def test_a_study_in_memory_decides_as_one_in_a_database(name, memory, sqlite):
    ours, theirs = (rd.create_study("car", make(name, seed=3), storage=place) for place in (memory, sqlite))
    assert same(play(ours, 15), play(theirs, 15))
    ours.fail(ours.ask(), "lost")
    theirs.fail(theirs.ask(), "lost")
    ours, theirs = (rd.load_study("car", storage=place) for place in (memory, sqlite))
    assert same(play(ours, 5), play(theirs, 5))
    assert [t.payoff for t in ours.trials("told")] == [payoff(t) for t in theirs.trials("told")]


def test_a_service_over_memory(memory):
    with serving(memory) as service, Client(service.address, ADMIN) as client:
        study = client.create(
            "car", "ucb1", {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1], "std": 1}}
        )
        study.tell(study.ask(), 0.5)
        assert service.request("GET", "/healthz", token=None)[0] == 200
        assert study.info().told == 1
    assert rd.load_study("car", storage=memory).told == 1


def test_memory_needs_no_sqlalchemy():
    code = """
import sys
sys.modules["sqlalchemy"] = None
import randomist as rd
study = rd.create_study("car", rd.UCB1(rd.Finite(rd.Gaussian([0.0, 1.0], 1.0))), storage="memory://car")
study.tell(study.ask(), 0.5)
assert study.told == 1
rd.create_study("car", rd.UCB1(rd.Finite(rd.Gaussian([0.0, 1.0], 1.0))), storage="sqlite:///none.db")
"""
    refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "sqlite:// needs the `study` extra" in refused.stderr
    assert "pip install 'randomist[study]'" in refused.stderr


def test_studies_import_no_database():
    code = "import sys, randomist.study\nassert 'sqlalchemy' not in sys.modules and 'alembic' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_learners_in_memory_are_those_of_the_process(memory):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=memory)
    play(study, 3)
    code = f"import randomist as rd\nprint(rd.study.study_names({memory!r}))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.stdout.strip() == "[]", said.stderr
