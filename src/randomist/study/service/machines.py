"""What machines look at: /healthz and /metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from randomist import __version__
from randomist.errors import StorageError
from randomist.study.service import models
from randomist.study.service.auth import Holder
from randomist.study.service.endpoints import READ, problems, studies_of

router = APIRouter()


@router.get(
    "/healthz",
    response_model=models.Health,
    responses={503: {"model": models.Health, "description": "The database is away."}},
)
async def healthz(request: Request) -> Any:
    """Whether the service and its database are there, and can be written; needs no token."""
    try:
        read_only = await request.app.state.health.get()
    except StorageError:
        return JSONResponse({"status": "away", "version": __version__}, 503)
    return {"status": "read-only" if read_only else "ok", "version": __version__}


@router.get(
    "/metrics",
    response_class=Response,
    responses=problems() | {200: {"content": {"text/plain": {}}, "description": "Prometheus' text format."}},
)
def metrics(request: Request, holder: Holder = READ) -> Response:
    """Counters and latencies in Prometheus' text format; of studies that the token is for."""
    found = studies_of(request).storage.totals()
    studies = {name: counters for name, counters in found.items() if holder.may_see(name)}
    counted = {name: {"asked": n.asked, "told": n.told, "failed": n.failed} for name, n in studies.items()}
    text = request.app.state.metrics.text(counted)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")
