"""Endpoints under /api/v1 that keep house: take tells back, archive, rename, delete, and who did what."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from randomist.study.opening import delete_study
from randomist.study.service import models, questions
from randomist.study.service.auth import Holder
from randomist.study.service.endpoints import (
    ADMIN,
    READ,
    WORK,
    Name,
    Number,
    check_study,
    problems,
    reads_of,
    rows_of,
    studies_of,
    study_of,
    who_of,
)
from randomist.study.service.routes import info

router = APIRouter()


@router.post(
    "/studies/{name}/trials/{number}/retract",
    response_model=models.Retracted,
    responses=problems(404, 409),
    dependencies=[WORK],
)
def retract(request: Request, name: Name, number: Number, body: models.Retract) -> Any:
    """Take a tell back: its row stays, marked, and does not count any more. Again changes nothing."""
    study_of(request, name).retract(number, body.reason, worker=who_of(request))
    return {"id": number, "state": "retracted"}


@router.post("/studies/{name}/archive", response_model=models.StudyInfo, responses=problems(404), dependencies=[ADMIN])
def archive(request: Request, name: Name) -> Any:
    """Make a study read-only: asks, tells and changes are refused."""
    study = study_of(request, name)
    study.archive(worker=who_of(request))
    return info(study)


@router.post(
    "/studies/{name}/unarchive", response_model=models.StudyInfo, responses=problems(404), dependencies=[ADMIN]
)
def unarchive(request: Request, name: Name) -> Any:
    """Open an archived study again."""
    study = study_of(request, name)
    study.unarchive(worker=who_of(request))
    return info(study)


@router.post("/studies/{name}/rename", response_model=models.StudyInfo, responses=problems(404, 409))
def rename(request: Request, name: Name, body: models.Rename, holder: Holder = ADMIN) -> Any:
    """Give a study another name; workers need the new one from now on."""
    check_study(holder, body.name)
    study = study_of(request, name)
    study.rename(body.name, worker=who_of(request))
    _forget(request, name)
    return info(study)


@router.delete("/studies/{name}", response_model=models.Deleted, responses=problems(404), dependencies=[ADMIN])
def delete(request: Request, name: Name) -> Any:
    """Forget a study and all of its trials, for good."""
    delete_study(name, storage=studies_of(request).storage, worker=who_of(request))
    _forget(request, name)
    return {"deleted": name}


@router.get("/studies/{name}/audit", response_model=models.Audit, responses=problems(404), dependencies=[READ])
async def audit(request: Request, name: Name) -> Any:
    """Who did what to a study, besides asking and telling, in order."""
    return await rows_of(request).page(name, questions.audit)


def _forget(request: Request, name: str) -> None:
    studies_of(request).forget(name)
    reads_of(request).forget(name)
    rows_of(request).forget(name)
