"""The application: FastAPI over `Study`. Every endpoint is a few lines; errors become statuses in one place."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from randomist import __version__
from randomist.errors import (
    ArchivedStudyError,
    ClosedTrialError,
    NoDataError,
    RandomistError,
    RetractionError,
    ServiceError,
    SpaceError,
    StorageError,
    StudyDataError,
    StudyExistsError,
    TicketError,
    UnknownStudyError,
    UnknownTrialError,
)
from randomist.study.dashboard.curve import Curves
from randomist.study.service import events, keeping, looking, machines, pages, rounds, routes
from randomist.study.service.auth import Tokens
from randomist.study.service.endpoints import said_of
from randomist.study.service.guards import GuardAnswers
from randomist.study.service.limits import LimitRequests, Limits, Places
from randomist.study.service.metrics import MeasureRequests, Metrics
from randomist.study.service.reading import Reads, Tries
from randomist.study.service.records import RecordRequests
from randomist.study.service.shared import Shared
from randomist.study.service.studies import Studies
from randomist.study.service.together import Together
from randomist.study.storages import Storage, open_storage

CREATIONS = 4  # at once, of one token 2: one process tries them all, and threads wait for it
EXPORTS = 8  # at once: each keeps a page, and one process makes them all
THREADS = 8  # for small reads and for what is written seldom: with 40 of them asks wait for the interpreter
HEALTH = 0.25  # seconds for which it is known whether the database is there
STATUSES: dict[type[Exception], int] = {
    UnknownStudyError: 404,
    UnknownTrialError: 404,
    StudyExistsError: 409,
    ArchivedStudyError: 409,
    RetractionError: 409,
    ClosedTrialError: 409,
    NoDataError: 409,
    SpaceError: 409,
    TicketError: 409,
    StudyDataError: 500,
    StorageError: 503,
}


def create_app(storage: str | Storage, tokens: Tokens, *, limits: Limits | None = None) -> FastAPI:
    """The service over one database."""
    app = FastAPI(
        title="randomist studies",
        version=__version__,
        description="Durable ask and tell: create a study, ask for trials, tell their payoffs, see the estimates.",
        docs_url=None,  # their pages come from a CDN; the document itself is at /openapi.json
        redoc_url=None,
        lifespan=_lifespan,
    )
    metrics = Metrics()
    app.state.tokens, app.state.metrics, app.state.stopping = tokens, metrics, threading.Event()
    app.state.limits = limits = limits or Limits()
    app.state.studies = Studies(open_storage(storage))
    app.state.studies.storage.prepare()
    app.state.together = Together(app.state.studies)
    app.state.health = Shared(partial(_health, app.state.studies.storage), HEALTH)
    app.state.counters = Shared(app.state.studies.storage.totals, events.POLL)
    app.state.watchers, app.state.exports = Places(limits.watchers), Places(EXPORTS)
    app.state.creations, app.state.tries = Places(CREATIONS), Tries()
    app.state.reads, app.state.rows = Reads(app.state.studies), Reads(app.state.studies)
    app.state.curves = Curves(app.state.studies.storage)
    app.include_router(rounds.router, prefix="/api/v1")  # the first is found the soonest
    app.include_router(routes.router, prefix="/api/v1")
    app.include_router(keeping.router, prefix="/api/v1")
    app.include_router(looking.router, prefix="/api/v1")
    app.include_router(events.router, prefix="/api/v1")
    app.include_router(machines.router)
    app.include_router(pages.router)
    app.add_middleware(LimitRequests, limits=limits, tokens=tokens)
    app.add_middleware(MeasureRequests, metrics=metrics)
    app.add_middleware(GuardAnswers)
    app.add_middleware(RecordRequests)
    app.add_exception_handler(RandomistError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield
    app.state.reads.close()
    app.state.rows.close()
    app.state.tries.close()


def _health(storage: Storage) -> bool:
    """Whether nothing can be written; raises where nothing can be read."""
    storage.ping()
    return storage.read_only()


def _refused(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, UnknownStudyError) and "name" in request.path_params:  # deleted or renamed elsewhere
        for held in (request.app.state.studies, request.app.state.reads, request.app.state.rows):
            held.forget(request.path_params["name"])
    if isinstance(error, ServiceError):
        status = error.status or 500
    else:
        status = next((code for kind, code in STATUSES.items() if isinstance(error, kind)), 422)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Retry-After": "1"} if status == 503 else {}
    name = {401: "TokenError", 403: "ScopeError"}.get(status, type(error).__name__)
    return JSONResponse({"error": name, "message": said_of(error, request)}, status, headers)


def _invalid(_: Request, error: Exception) -> JSONResponse:
    """Where and why, without repeating what was sent: it may be no JSON at all, NaN for one."""
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(str(part)[:40] for part in one['loc'])}: {one['msg']}" for one in error.errors()[:5]]
    return JSONResponse({"error": "ParameterError", "message": "; ".join(found)[:1000]}, 422)


def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # a body that is no JSON
        return JSONResponse({"error": "ParameterError", "message": str(error.detail)}, 422)
    headers = dict(error.headers or {})
    if error.status_code == 405:  # the router knows the methods of one route only, and a path may have two
        headers["Allow"] = ", ".join(_methods(request)) or headers.get("Allow", "GET")
    return JSONResponse({"error": "HTTPError", "message": str(error.detail)}, error.status_code, headers)


def _methods(request: Request) -> list[str]:
    """What may be done with the path of a request."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    fits = [operations for path, operations in paths.items() if compile_path(path)[0].match(request.url.path)]
    return sorted({method.upper() for operations in fits for method in operations})
