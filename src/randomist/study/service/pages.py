"""The dashboard's page and what it is made of. It holds no data: that comes from the API, to those with a token."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from randomist import __version__
from randomist.study.dashboard.page import CSP, SCRIPTS, STYLE, asset, live_page

router = APIRouter(include_in_schema=False)
KINDS = dict.fromkeys(SCRIPTS, "text/javascript") | {STYLE: "text/css"}
POLICY = {"Content-Security-Policy": CSP}


@router.get("/")
async def page(request: Request) -> HTMLResponse:
    return HTMLResponse(live_page(request.app.state.tokens.public_read), headers=POLICY | {"Cache-Control": "no-cache"})


@router.get("/static/{name}")
async def static(name: str) -> Response:
    if name not in KINDS:
        return Response(status_code=404)
    headers = POLICY | {"Cache-Control": "max-age=3600", "ETag": f'"{__version__}-{name}"'}
    return Response(asset(name), media_type=KINDS[name], headers=headers)
