"""The endpoints under /api/v1 that ask and tell: those of one study that come at once are written together."""

from __future__ import annotations

import math
from typing import Any

from fastapi import APIRouter, Request

from randomist._json import for_json
from randomist.study.describe import episode_from
from randomist.study.service import models
from randomist.study.service.endpoints import WORK, Name, Number, caller_of, problems, said_of, together_of, who_of
from randomist.study.study import Study
from randomist.study.telling import Tell

router = APIRouter()
ASKS: Any = {"response_model": models.Asked, "responses": problems(404, 409), "dependencies": [WORK]}
CLOSES: Any = ASKS | {"response_model": models.Closed, "response_model_exclude_none": True}


@router.post("/studies/{name}/ask", **ASKS)
async def ask(request: Request, name: Name, body: models.Ask) -> Any:
    """The next trials; on disk when the answer comes."""
    how: Any = {"lease": body.lease, "ticket": body.ticket, "worker": body.worker or caller_of(request)}
    return await _asked(request, name, lambda study: study.as_wish(body.batch, **how))


@router.post("/studies/{name}/confirm", **ASKS)
async def confirm(request: Request, name: Name, body: models.Confirm) -> Any:
    """Trials that play the recommended point itself; on disk when the answer comes. Of Auto."""
    how: Any = {"lease": body.lease, "ticket": body.ticket, "worker": body.worker or caller_of(request)}
    return await _asked(request, name, lambda study: study.as_wish(body.n, "n", confirm=True, **how))


@router.post("/studies/{name}/trials/{number}/tell", **CLOSES)
async def tell(request: Request, name: Name, number: Number, body: models.Tell) -> Any:
    """The payoff of a trial, or that it broke a constraint; on disk when the answer comes. Again changes nothing."""
    known, who = _likelihoods(body.log_likelihoods), who_of(request)

    def said(study: Study) -> list[Tell]:
        return [study.as_tell(number, body.payoff, feasible=body.feasible, log_likelihoods=known, worker=who)]

    await _closed(request, name, said)
    return {"id": number, "state": "told"} if body.feasible else {"id": number, "state": "failed", "feasible": False}


@router.post("/studies/{name}/tells", response_model=models.Told, responses=problems(404, 409), dependencies=[WORK])
async def tell_all(request: Request, name: Name, body: models.Tells) -> Any:
    """The payoffs of several trials; on disk when the answer comes. Again changes nothing.

    Nothing is written where a payoff cannot be one. A trial refuses that has another payoff, or whose policies cannot
    have done what is said; the others are told.
    """
    trials, payoffs = [one.id for one in body.tells], [one.payoff for one in body.tells]
    known, who = [_likelihoods(one.log_likelihoods) for one in body.tells], who_of(request)
    errors = await _told(request, name, lambda study: study.as_tells(trials, payoffs, known, who))
    refused = [
        {"id": id_, "error": type(error).__name__, "message": said_of(error, request)}
        for id_, error in zip(trials, errors, strict=True)
        if error is not None
    ]
    return {"told": len(trials) - len(refused), "refused": refused}


@router.post("/studies/{name}/trials/{number}/episode", **CLOSES)
async def tell_episode(request: Request, name: Name, number: Number, body: models.Episode) -> Any:
    """What the policy of a trial did, in a study of policies over trajectories; on disk when the answer comes."""
    who = who_of(request)
    await _closed(request, name, lambda study: [study.as_episode(number, episode_from(body.model_dump()), who)])
    return {"id": number, "state": "told"}


@router.post("/studies/{name}/trials/{number}/fail", **CLOSES)
async def fail(request: Request, name: Name, number: Number, body: models.Fail) -> Any:
    """A trial that will never be answered."""
    who = who_of(request)
    await _closed(request, name, lambda study: [study.as_failure(number, body.reason, who)])
    return {"id": number, "state": "failed"}


async def _closed(request: Request, name: str, said: Any) -> None:
    for error in await _told(request, name, said):
        if error is not None:
            raise error


async def _asked(request: Request, name: str, wish: Any) -> dict[str, Any]:
    trials = await together_of(request).ask(name, wish, request.state.holder.name)
    return {"trials": [{key: for_json(value) for key, value in trial._asdict().items()} for trial in trials]}


async def _told(request: Request, name: str, tells: Any) -> list[Exception | None]:
    return await together_of(request).tell(name, tells, request.state.holder.name)


def _likelihoods(known: dict[str, float | None] | None) -> dict[str, float] | None:
    return None if known is None else {key: -math.inf if value is None else value for key, value in known.items()}
