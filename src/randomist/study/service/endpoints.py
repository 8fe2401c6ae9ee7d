"""What endpoints share: who may call them, what they may answer, and the studies of a request."""

from __future__ import annotations

import logging
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from randomist.errors import (
    ReadOnlyStorageError,
    ServiceError,
    StorageError,
    StudyDataError,
    StudyExistsError,
    UnknownStudyError,
)
from randomist.study.checks import NAME
from randomist.study.service.auth import NEEDED, Holder, Scope
from randomist.study.service.models import Problem
from randomist.study.service.reading import Reads
from randomist.study.service.records import LOGGER
from randomist.study.service.studies import Studies
from randomist.study.service.together import Together
from randomist.study.study import Study

Name = Annotated[str, Path(pattern=NAME, examples=["car"])]
Number = Annotated[int, Path(ge=0, lt=2**62, examples=[0])]
WORDS = {
    401: "No token, or an unknown one.",
    403: "The token's scope does not allow this.",
    404: "No such study or trial.",
    405: "No such method here.",
    408: "The body did not come in time.",
    409: "Not in this state: a trial that is closed, a name that is taken, nothing told yet, a box that is none.",
    413: "The body is too large.",
    422: "The request does not say what it must.",
    429: "Too many requests.",
    503: "The database is away, or too many requests are under way.",
}
_bearer = HTTPBearer(auto_error=False, description="A token of the service: scope read, work or admin.")
_CREDENTIALS = Depends(_bearer)

# Errors that say where the studies lie, which others there are, or what rows hold: that is for the log.
WORDS_OF_ERRORS: dict[type[Exception], str] = {
    UnknownStudyError: "no study {name!r} is here; GET /api/v1/studies has those that your token is for",
    StudyExistsError: "a study of that name exists; take another name",
    StudyDataError: "rows of the study are not what was written; its keeper finds them by `randomist study verify`",
    ReadOnlyStorageError: "nothing can be written: the database is read-only, or its disk is full; reading goes on",
    StorageError: "the database is away, or refuses this; try again. The log of the service says more",
}


def said_of(error: Exception, request: Request) -> str:
    """What a client is told of an error."""
    words = next((words for kind, words in WORDS_OF_ERRORS.items() if isinstance(error, kind)), None)
    if words is None:
        return str(error)
    if isinstance(error, StorageError | StudyDataError):
        logging.getLogger(LOGGER).error("%s: %s", type(error).__name__, error)
    return words.format(name=request.path_params.get("name"))


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What an endpoint may answer beside success."""
    every = (401, 403, 408, 413, 422, 429, 503)
    return {status: {"model": Problem, "description": WORDS[status]} for status in (*every, *statuses)}


def needs(scope: Scope) -> Any:
    """A dependency: the request's token must have this scope."""

    async def check(request: Request, _: HTTPAuthorizationCredentials | None = _CREDENTIALS) -> Holder:
        return _check(request, scope)

    return Depends(check)


def check_again(request: Request) -> None:
    """Refuse the rest of a stream to a token that was taken back, or has ended, meanwhile."""
    request.state.holder = request.app.state.tokens.holder(request.headers.get("authorization"))
    _check(request, "read")


def _check(request: Request, scope: Scope) -> Holder:
    holder: Holder | None = request.state.holder
    if holder is None:
        raise ServiceError(NEEDED, 401)
    if not holder.may(scope):
        raise ServiceError(f"this needs a token with scope {scope}, yours has {holder.scope}", 403)
    if "name" in request.path_params:
        check_study(holder, request.path_params["name"])
    return holder


READ, WORK, ADMIN = needs("read"), needs("work"), needs("admin")


def check_study(holder: Holder, name: str) -> None:
    """Refuse a token that is for other studies."""
    if not holder.may_see(name):
        raise ServiceError(
            f"your token is for the studies {', '.join(holder.studies)[:200]}, and not for {name!r}", 403
        )


def studies_of(request: Request) -> Studies:
    """The studies that are asked and told."""
    studies: Studies = request.app.state.studies
    return studies


def study_of(request: Request, name: str) -> Study:
    return studies_of(request).get(name)


def together_of(request: Request) -> Together:
    """The asks and tells that are written together."""
    together: Together = request.app.state.together
    return together


def reads_of(request: Request) -> Reads:
    """What learners say."""
    reads: Reads = request.app.state.reads
    return reads


def rows_of(request: Request) -> Reads:
    """Pages of rows, which wait for no learner."""
    rows: Reads = request.app.state.rows
    return rows


def who_of(request: Request) -> str:
    """Who does something, for the record: which token, from where."""
    holder: Holder | None = request.state.holder
    called = "?" if holder is None else holder.label or holder.name
    return f"token {called} at {request.client.host if request.client else '?'}"[:64]


def caller_of(request: Request) -> str:
    """Under which name a worker is known that gave none."""
    return f"http {request.client.host if request.client else '?'}"
