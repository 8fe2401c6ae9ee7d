"""Endpoints under /api/v1 that the dashboard's pages are drawn from: all of a study, what is new, all studies."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from randomist.study.dashboard import data
from randomist.study.dashboard.curve import Curves
from randomist.study.records import STATES, State
from randomist.study.service import models, questions
from randomist.study.service.auth import Holder
from randomist.study.service.endpoints import READ, Name, problems, reads_of, rows_of, study_of

router = APIRouter()
KEPT = 5.0  # seconds for which an answer is kept where nothing happens: leases end all the same
Dimensions = Annotated[str, Query(pattern=r"^\d{1,3},\d{1,3}$", description="Of the heat map, in a box.")]


@router.get("/overview", response_model=models.Overview, responses=problems())
def overview(
    request: Request,
    first: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    after: Annotated[float, Query(ge=0, le=1e12, description="Only studies where something happened since.")] = 0.0,
    holder: Holder = READ,
) -> Any:
    """All studies that the token is for: counts, a spark line of payoffs, the best one."""
    curves: Curves = request.app.state.curves
    return data.overview(curves.storage, curves, holder.may_see, first, limit, after)


@router.get("/studies/{name}/dashboard", response_model=models.Snapshot, responses=problems(404), dependencies=[READ])
async def dashboard(request: Request, name: Name, dimensions: Dimensions = "0,1") -> Any:
    """All that the page of a study shows."""
    i, j = map(int, dimensions.split(","))
    return await reads_of(request).get(name, partial(data.snapshot, dimensions=(i, j)), KEPT)


@router.get(
    "/studies/{name}/dashboard/news", response_model=models.Snapshot, responses=problems(404), dependencies=[READ]
)
def news(
    request: Request,
    name: Name,
    size: Annotated[int, Query(ge=0, lt=2**31, description="Of the buckets that are known.")] = 0,
    first: Annotated[int, Query(ge=0, lt=2**31, description="The bucket to begin with.")] = 0,
) -> Any:
    """Counts, and the payoffs from a bucket on: what a page needs that knows the rest. No learner is asked."""
    curves: Curves = request.app.state.curves
    study = study_of(request, name)
    return data.news(study, curves.of(study.record.id), size, first)


@router.get(
    "/studies/{name}/dashboard/estimates", response_model=models.Snapshot, responses=problems(404), dependencies=[READ]
)
async def estimates(request: Request, name: Name, dimensions: Dimensions = "0,1") -> Any:
    """What the learner says by now, and who works."""
    i, j = map(int, dimensions.split(","))
    return await reads_of(request).get(name, partial(data.estimates, dimensions=(i, j)))


@router.get(
    "/studies/{name}/dashboard/trials", response_model=models.Rows, responses=problems(404), dependencies=[READ]
)
async def trials(
    request: Request,
    name: Name,
    before: Annotated[int | None, Query(ge=0, lt=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    state: Annotated[list[State] | None, Query(max_length=len(STATES))] = None,
    worker: Annotated[str | None, Query(max_length=64)] = None,
) -> Any:
    """The last trials, the newest first. A page may be shorter than `limit` although there are more: see `next`."""
    states = tuple(state or STATES)
    found = partial(questions.latest, before=before, limit=limit, states=states, worker=worker)
    return await rows_of(request).page(name, found)
