"""The endpoints under /api/v1 that create studies, change their decisions, and look at them."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from randomist.errors import ShapeError
from randomist.study.describe import member_from
from randomist.study.export import FORMATS, Format, page
from randomist.study.opening import create_study
from randomist.study.records import STATES, State
from randomist.study.service import models, questions
from randomist.study.service.auth import Holder
from randomist.study.service.endpoints import (
    ADMIN,
    READ,
    WORK,
    Name,
    check_again,
    check_study,
    problems,
    reads_of,
    rows_of,
    studies_of,
    study_of,
    who_of,
)
from randomist.study.study import Study

router = APIRouter()
PAGE = 1000  # trials of a page at most


@router.get("/whoami", response_model=models.Whoami, responses=problems())
async def whoami(holder: Holder = READ) -> Any:
    """The scope of the token."""
    return {"scope": holder.scope}


@router.get("/studies", response_model=models.Names, responses=problems())
def list_studies(request: Request, holder: Holder = READ) -> Any:
    """The names of all studies that the token is for, the oldest first."""
    return {"studies": [name for name in studies_of(request).storage.names() if holder.may_see(name)]}


@router.post("/studies", response_model=models.StudyInfo, status_code=201, responses=problems(409))
def create(request: Request, new: models.NewStudy, holder: Holder = ADMIN) -> Any:
    """A new study. Its learner is tried first, within 20 s and 1 GiB."""
    check_study(holder, new.name)
    request.state.places.enter_context(request.app.state.creations.taken(holder.name))
    learner = request.app.state.tries.learner(new.learner, new.space, new.settings)
    storage = studies_of(request).storage
    study = create_study(new.name, learner, storage=storage, lease=new.lease, by=who_of(request))
    return info(studies_of(request).keep(study))


@router.get("/studies/{name}", response_model=models.StudyInfo, responses=problems(404), dependencies=[READ])
def show(request: Request, name: Name) -> Any:
    """A study's learner and counters."""
    return info(study_of(request, name))


@router.get(
    "/studies/{name}/decisions", response_model=models.DecisionList, responses=problems(404, 409), dependencies=[READ]
)
async def decisions(request: Request, name: Name) -> Any:
    """The decisions of a finite set, with those that were added and retired."""
    return await reads_of(request).get(name, questions.decisions)


@router.post(
    "/studies/{name}/decisions",
    response_model=models.Decision,
    status_code=201,
    responses=problems(404, 409),
    dependencies=[WORK],
)
def add(request: Request, name: Name, body: models.NewDecision) -> Any:
    """One more decision from now on; on disk when the answer comes. What was told so far informs it."""
    study = study_of(request, name)
    known = body.log_likelihoods
    told = None if known is None else {int(id_): -math.inf if x is None else x for id_, x in known.items()}
    member = member_from(body.member, study.space)
    number = study.add(member, body.name, log_likelihoods=told, worker=who_of(request))
    return {"decision": number, "name": study.names[number], "active": True}


@router.post(
    "/studies/{name}/decisions/retire",
    response_model=models.Decision,
    responses=problems(404, 409),
    dependencies=[WORK],
)
def retire(request: Request, name: Name, body: models.Retire) -> Any:
    """A decision is not played any more; its pending trials can still be told."""
    study = study_of(request, name)
    study.retire(body.decision, worker=who_of(request))
    names = study.names
    number = names.index(body.decision) if isinstance(body.decision, str) else body.decision
    return {"decision": number, "name": names[number], "active": False}


@router.get(
    "/studies/{name}/estimates", response_model=models.EstimateList, responses=problems(404, 409), dependencies=[READ]
)
async def estimates(request: Request, name: Name) -> Any:
    """What the history says about every decision of a finite set; values and widths are in the payoffs' units."""
    return await reads_of(request).get(name, questions.estimates)


@router.post(
    "/studies/{name}/estimates", response_model=models.EstimateList, responses=problems(404, 409), dependencies=[READ]
)
async def estimate(request: Request, name: Name, body: models.Decisions) -> Any:
    """What the history says about any decisions of a box."""
    points = body.decisions
    if len({len(point) if isinstance(point, list) else 0 for point in points}) > 1:
        raise ShapeError("decisions must all have the same length")
    return await reads_of(request).get(name, partial(questions.estimate, points=points))


@router.get(
    "/studies/{name}/recommendation",
    response_model=models.Recommendation,
    responses=problems(404, 409),
    dependencies=[READ],
)
async def recommendation(request: Request, name: Name) -> Any:
    """The decision with the best estimated value."""
    return await reads_of(request).get(name, questions.recommendation)


@router.post(
    "/studies/{name}/interval", response_model=models.Interval, responses=problems(404, 409), dependencies=[READ]
)
async def interval(request: Request, name: Name, body: models.Where) -> Any:
    """An interval for the mean payoff at a point. Of Auto."""
    return await reads_of(request).get(name, partial(questions.interval, point=body.point, level=body.level))


@router.get(
    "/studies/{name}/confirmation",
    response_model=models.Confirmation,
    responses=problems(404, 409),
    dependencies=[READ],
)
async def confirmation(request: Request, name: Name, level: Annotated[float, Query(gt=0, lt=1)] = 0.95) -> Any:
    """What the plays of the last confirmation say about their point. Of Auto."""
    return await reads_of(request).get(name, partial(questions.confirmation, level=level))


@router.get("/studies/{name}/trials", response_model=models.Trials, responses=problems(404), dependencies=[READ])
async def trials(
    request: Request,
    name: Name,
    first: Annotated[int, Query(ge=0, lt=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = 100,
    state: Annotated[list[State] | None, Query(max_length=len(STATES))] = None,
) -> Any:
    """A page of trials, by id."""
    found = partial(questions.trials, first=first, limit=limit, states=tuple(state or STATES))
    return await rows_of(request).page(name, found)


@router.get(
    "/studies/{name}/export",
    response_class=StreamingResponse,
    responses=problems(404) | {200: {"content": {kind: {} for kind in FORMATS.values()}, "description": "All trials."}},
)
async def export(request: Request, name: Name, format: Format = "jsonl", holder: Holder = READ) -> StreamingResponse:
    """The whole history, one trial a line. An export that is cut short ends without HTTP's mark of its end."""
    request.state.places.enter_context(request.app.state.exports.taken(holder.name))
    began = await _page(request, name, format, 0)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
    return StreamingResponse(_pages(request, name, format, *began), media_type=FORMATS[format], headers=headers)


async def _pages(request: Request, name: str, format_: Format, text: str, after: int | None) -> AsyncIterator[str]:
    yield text
    while after is not None:
        check_again(request)
        text, after = await _page(request, name, format_, after)
        yield text


async def _page(request: Request, name: str, format_: Format, first: int) -> tuple[str, int | None]:
    text, after = json.loads(await rows_of(request).once(name, partial(page, format_=format_, first=first)))
    return text, after


def info(study: Study) -> dict[str, Any]:
    """What is said of a study as a whole."""
    counters = study.counters
    return {
        "name": study.name,
        "learner": study.learner_name,
        "lease": study.lease,
        "created_at": study.created_at,
        "asked": counters.asked,
        "told": counters.told,
        "failed": counters.failed,
        "retracted": counters.retracted,
        "archived": study.archived,
    }
