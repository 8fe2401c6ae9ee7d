"""The endpoints under /api/v1: create, ask, tell, and look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from randomist._json import for_json
from randomist.errors import ShapeError
from randomist.histories.estimates import Estimates
from randomist.learners.base import Trial
from randomist.study.describe import episode_from, learner_from, member_from
from randomist.study.export import FORMATS, Format, lines, plain
from randomist.study.opening import create_study
from randomist.study.records import STATES, State
from randomist.study.service import models
from randomist.study.service.auth import Holder
from randomist.study.service.endpoints import (
    ADMIN,
    READ,
    WORK,
    Name,
    Number,
    caller_of,
    check_study,
    problems,
    reads_of,
    studies_of,
    study_of,
    who_of,
)
from randomist.study.study import Study

if TYPE_CHECKING:
    from randomist.learners.box.interval import Interval

router = APIRouter()
PAGE = 1000  # trials of a page at most


@router.get("/whoami", response_model=models.Whoami, responses=problems())
def whoami(holder: Holder = READ) -> Any:
    """The scope of the token."""
    return {"scope": holder.scope}


@router.get("/studies", response_model=models.Names, responses=problems())
def list_studies(request: Request, holder: Holder = READ) -> Any:
    """The names of all studies that the token is for, the oldest first."""
    return {"studies": [name for name in studies_of(request).storage.names() if holder.may_see(name)]}


@router.post("/studies", response_model=models.StudyInfo, status_code=201, responses=problems(409))
def create(request: Request, new: models.NewStudy, holder: Holder = ADMIN) -> Any:
    """A new study."""
    check_study(holder, new.name)
    learner = learner_from(new.learner, new.space, new.settings)
    storage = studies_of(request).storage
    study = create_study(new.name, learner, storage=storage, lease=new.lease, by=who_of(request))
    return info(studies_of(request).keep(study))


@router.get("/studies/{name}", response_model=models.StudyInfo, responses=problems(404), dependencies=[READ])
def show(request: Request, name: Name) -> Any:
    """A study's learner and counters."""
    return info(study_of(request, name))


@router.post("/studies/{name}/ask", response_model=models.Asked, responses=problems(404, 409), dependencies=[WORK])
def ask(request: Request, name: Name, body: models.Ask) -> Any:
    """The next trials; on disk when the answer comes."""
    study, worker = study_of(request, name), body.worker or caller_of(request)
    return _asked(study.ask(body.batch, lease=body.lease, ticket=body.ticket, worker=worker))


@router.post("/studies/{name}/confirm", response_model=models.Asked, responses=problems(404, 409), dependencies=[WORK])
def confirm(request: Request, name: Name, body: models.Confirm) -> Any:
    """Trials that play the recommended point itself; on disk when the answer comes. Of Auto."""
    study, worker = study_of(request, name), body.worker or caller_of(request)
    return _asked(study.confirm(body.n, lease=body.lease, ticket=body.ticket, worker=worker))


@router.post(
    "/studies/{name}/trials/{number}/tell",
    response_model=models.Closed,
    response_model_exclude_none=True,
    responses=problems(404, 409),
    dependencies=[WORK],
)
def tell(request: Request, name: Name, number: Number, body: models.Tell) -> Any:
    """The payoff of a trial, or that it broke a constraint; on disk when the answer comes. Again changes nothing."""
    known = body.log_likelihoods
    named = None if known is None else {key: -math.inf if value is None else value for key, value in known.items()}
    study_of(request, name).tell(
        number, body.payoff, feasible=body.feasible, log_likelihoods=named, worker=who_of(request)
    )
    return {"id": number, "state": "told"} if body.feasible else {"id": number, "state": "failed", "feasible": False}


@router.post(
    "/studies/{name}/trials/{number}/episode",
    response_model=models.Closed,
    response_model_exclude_none=True,
    responses=problems(404, 409),
    dependencies=[WORK],
)
def tell_episode(request: Request, name: Name, number: Number, body: models.Episode) -> Any:
    """What the policy of a trial did, in a study of policies over trajectories; on disk when the answer comes."""
    study_of(request, name).tell_episode(number, episode_from(body.model_dump()), worker=who_of(request))
    return {"id": number, "state": "told"}


@router.post(
    "/studies/{name}/trials/{number}/fail",
    response_model=models.Closed,
    response_model_exclude_none=True,
    responses=problems(404, 409),
    dependencies=[WORK],
)
def fail(request: Request, name: Name, number: Number, body: models.Fail) -> Any:
    """A trial that will never be answered."""
    study_of(request, name).fail(number, body.reason, worker=who_of(request))
    return {"id": number, "state": "failed"}


@router.get(
    "/studies/{name}/decisions", response_model=models.DecisionList, responses=problems(404, 409), dependencies=[READ]
)
async def decisions(request: Request, name: Name) -> Any:
    """The decisions of a finite set, with those that were added and retired."""
    return {"decisions": await reads_of(request).get(name, "decisions", _decisions)}


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
    return await reads_of(request).get(name, "estimates", lambda study: _estimates(study.estimates()))


@router.post(
    "/studies/{name}/estimates", response_model=models.EstimateList, responses=problems(404, 409), dependencies=[READ]
)
async def estimate(request: Request, name: Name, body: models.Decisions) -> Any:
    """What the history says about any decisions of a box."""
    try:
        decisions = np.array(body.decisions, float)
    except ValueError:
        raise ShapeError("decisions must all have the same length") from None
    question = f"estimate {body.model_dump_json()}"
    return await reads_of(request).get(name, question, lambda study: _estimates(study.estimate(decisions)))


@router.get(
    "/studies/{name}/recommendation",
    response_model=models.Recommendation,
    responses=problems(404, 409),
    dependencies=[READ],
)
async def recommendation(request: Request, name: Name) -> Any:
    """The decision with the best estimated value."""

    def best(study: Study) -> Any:
        return {"decision": for_json(study.recommend()), "told": study.told}

    return await reads_of(request).get(name, "recommendation", best)


@router.post(
    "/studies/{name}/interval", response_model=models.Interval, responses=problems(404, 409), dependencies=[READ]
)
async def interval(request: Request, name: Name, body: models.Where) -> Any:
    """An interval for the mean payoff at a point. Of Auto."""
    question = f"interval {body.model_dump_json()}"
    return await reads_of(request).get(name, question, lambda study: _interval(study.interval(body.point, body.level)))


@router.get(
    "/studies/{name}/confirmation",
    response_model=models.Confirmation,
    responses=problems(404, 409),
    dependencies=[READ],
)
async def confirmation(request: Request, name: Name, level: Annotated[float, Query(gt=0, lt=1)] = 0.95) -> Any:
    """What the plays of the last confirmation say about their point. Of Auto."""

    def answer(study: Study) -> Any:
        found = study.confirmed(level)
        both = {"mean": _interval(found.mean), "median": _interval(found.median)}
        return {"point": for_json(found.point), "plays": found.plays} | both

    return await reads_of(request).get(name, f"confirmation {level}", answer)


@router.get("/studies/{name}/trials", response_model=models.Trials, responses=problems(404), dependencies=[READ])
def trials(
    request: Request,
    name: Name,
    first: Annotated[int, Query(ge=0, lt=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = 100,
    state: Annotated[list[State] | None, Query(max_length=len(STATES))] = None,
) -> Any:
    """A page of trials, by id."""
    found = study_of(request, name).trials(tuple(state or STATES), first=first, limit=limit)
    return {"trials": [plain(t) for t in found], "next": found[-1].id + 1 if len(found) == limit else None}


@router.get(
    "/studies/{name}/export",
    response_class=StreamingResponse,
    responses=problems(404) | {200: {"content": {kind: {} for kind in FORMATS.values()}, "description": "All trials."}},
    dependencies=[READ],
)
def export(request: Request, name: Name, format: Format = "jsonl") -> StreamingResponse:
    """The whole history, one trial a line."""
    study = study_of(request, name)
    return StreamingResponse(lines(study, format), media_type=FORMATS[format])


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


def _decisions(study: Study) -> list[dict[str, Any]]:
    found = enumerate(zip(study.names, study.active.tolist(), strict=False))  # one may come in between
    return [{"decision": k, "name": name, "active": active} for k, (name, active) in found]


def _asked(trials: Sequence[Trial]) -> dict[str, Any]:
    return {"trials": [{key: for_json(value) for key, value in trial._asdict().items()} for trial in trials]}


def _interval(found: Interval) -> dict[str, Any]:
    return {key: None if isinstance(x, float) and not np.isfinite(x) else x for key, x in found._asdict().items()}


def _estimates(found: Estimates) -> dict[str, Any]:
    names = ("value", "effective_samples", "threshold", "width", "plays", "coverage")
    columns = {name: np.asarray(getattr(found, name)) for name in names}
    return {name: [x if np.isfinite(x) else None for x in column.tolist()] for name, column in columns.items()}
