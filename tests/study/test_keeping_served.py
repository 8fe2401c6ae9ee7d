"""Taking back, archiving, renaming and deleting over HTTP, by the client and from the shell; and who did it."""

from __future__ import annotations

import json

import pytest

import randomist as rd
from randomist.errors import ArchivedStudyError, RetractionError, UnknownStudyError
from randomist.study.client import Client
from tests.problems import GAUSSIANS
from tests.study.helpers import play
from tests.study.serving import ADMIN, CAR, READ, SPACE, STUDIES, WORK, serving
from tests.study.test_cli_studies import call


@pytest.fixture
def service(sqlite):
    with serving(sqlite, rate=1e6, burst=1e6) as running:
        play(rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite), 4)
        yield running


def test_who_may_do_what(service):
    for path, body, least in (
        (f"{CAR}/trials/0/retract", {"reason": "no"}, WORK),
        (f"{CAR}/archive", None, ADMIN),
        (f"{CAR}/unarchive", None, ADMIN),
        (f"{CAR}/rename", {"name": "truck"}, ADMIN),
    ):
        for token in (None, READ, WORK, ADMIN):
            status = service.request("POST", path, body, token)[0]
            if token is None:
                assert status == 401
            elif token == READ or (token == WORK and least == ADMIN):
                assert status == 403
            else:
                assert status == 200
    assert service.request("DELETE", f"{STUDIES}/truck", token=WORK)[0] == 403
    assert service.request("GET", f"{STUDIES}/truck/audit", token=READ)[0] == 200
    assert service.request("DELETE", f"{STUDIES}/truck")[1] == {"deleted": "truck"}
    assert service.request("DELETE", f"{STUDIES}/truck")[0] == 404
    assert service.request("GET", STUDIES)[1] == {"studies": []}


def test_taken_back_over_http(service):
    before = service.request("GET", f"{CAR}/estimates")[1]["plays"]
    assert service.request("POST", f"{CAR}/trials/2/retract", {"reason": "no"}, WORK)[1] == {
        "id": 2,
        "state": "retracted",
    }
    assert service.request("POST", f"{CAR}/trials/2/retract", {}, WORK)[0] == 200
    after = service.request("GET", f"{CAR}/estimates")[1]["plays"]
    assert sum(after) == sum(before) - 1
    shown = service.request("GET", CAR)[1]
    assert (shown["told"], shown["failed"], shown["retracted"], shown["archived"]) == (3, 0, 1, False)
    page = service.request("GET", f"{CAR}/trials?state=retracted")[1]["trials"]
    assert [(t["id"], t["state"], t["reason"]) for t in page] == [(2, "retracted", "no")]
    status, said, _ = service.request("POST", f"{CAR}/trials/9/retract", {}, WORK)
    assert (status, said["error"]) == (404, "UnknownTrialError")
    service.request("POST", f"{CAR}/ask", {}, WORK)
    status, said, _ = service.request("POST", f"{CAR}/trials/4/retract", {}, WORK)
    assert (status, said["error"]) == (409, "RetractionError")
    assert service.request("GET", f"{CAR}/dashboard")[1]["counts"]["retracted"] == 1
    exported = [json.loads(line) for line in service.request("GET", f"{CAR}/export")[1].splitlines()]
    assert [line["state"] for line in exported] == ["told", "told", "retracted", "told", "asked"]
    (entry,) = [e for e in service.request("GET", f"{CAR}/audit")[1]["entries"] if e["what"] == "retract"]
    assert entry["who"].startswith("token ")
    assert entry["who"].endswith(" at 127.0.0.1")
    assert entry["detail"] == {"trial": 2, "reason": "no"}
    service.request("POST", f"{CAR}/trials/4/tell", {"payoff": 0.5}, WORK)
    assert service.request("GET", f"{CAR}/trials?first=4")[1]["trials"][0]["closed_by"] == entry["who"]


def test_archived_over_http(service):
    assert service.request("POST", f"{CAR}/archive")[1]["archived"] is True
    for path, body in (
        (f"{CAR}/ask", {}),
        (f"{CAR}/trials/0/retract", {}),
        (f"{CAR}/decisions/retire", {"decision": 0}),
    ):
        status, said, _ = service.request("POST", path, body)
        assert (status, said["error"]) == (409, "ArchivedStudyError")
    assert service.request("GET", f"{CAR}/estimates")[0] == 200
    assert service.request("POST", f"{CAR}/unarchive")[1]["archived"] is False
    assert service.request("POST", f"{CAR}/ask", {})[0] == 200


def test_the_client_keeps_house(service):
    with Client(service.address, token=ADMIN) as client:
        study = client.study("car")
        study.retract(1, "no")
        with pytest.raises(RetractionError):
            study.retract(study.ask(), "no")
        assert (study.info().told, study.info().retracted) == (3, 1)
        study.archive()
        assert study.archived
        with pytest.raises(ArchivedStudyError):
            study.ask()
        study.unarchive()
        study.rename("truck")
        assert client.studies() == ["truck"]
        study.ask()
        assert [entry.what for entry in study.audit()] == ["create", "retract", "archive", "unarchive", "rename"]
        client.delete("truck")
        with pytest.raises(UnknownStudyError):
            study.ask()
        client.create("truck", "randomist", SPACE, seed=1)
        assert study.ask().id == 0
        assert study.audit()[0].who.startswith("token ")


def test_a_study_that_others_replace(service):
    """Deleted and made anew in the database, behind the service's back: it notices."""
    assert service.request("POST", f"{CAR}/ask", {})[1]["trials"][0]["id"] == 4
    rd.delete_study("car", storage=service.url)
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=service.url)
    assert service.request("POST", f"{CAR}/ask", {})[0] == 404
    assert service.request("POST", f"{CAR}/ask", {})[1]["trials"][0]["id"] == 0


def test_from_the_shell(tmp_path):
    where = {"RANDOMIST_STORAGE": f"sqlite:///{tmp_path}/mine.db"}
    play(rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=where["RANDOMIST_STORAGE"]), 3)

    def run(*words):
        return call(*words, cwd=tmp_path, env=where)

    assert run("retract", "car", 1, "--reason", "no", "--worker", "ann") == {"id": 1, "state": "retracted"}
    shown = run("show", "car")
    assert (shown["told"], shown["failed"], shown["retracted"], shown["archived"]) == (2, 0, 1, False)
    assert run("archive", "car") == {"name": "car", "archived": True}
    assert call("ask", "car", cwd=tmp_path, env=where, check=False).returncode == 1
    run("unarchive", "car")
    run("rename", "car", "truck")
    assert [entry["what"] for entry in run("audit", "truck")] == ["create", "retract", "archive", "unarchive", "rename"]
    assert run("audit", "truck")[1]["who"] == "ann"
    refused = call("delete", "truck", cwd=tmp_path, env=where, check=False)
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    assert run("delete", "truck", "--yes") == {"deleted": "truck"}
    assert run("show") == {"studies": []}
