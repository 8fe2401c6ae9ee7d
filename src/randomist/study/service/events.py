"""Server-sent events under /api/v1: those who watch a study hear of every change."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from randomist.errors import RandomistError
from randomist.study.service.auth import Holder
from randomist.study.service.endpoints import READ, Name, check_again, problems
from randomist.study.storages.base import study_gone

router = APIRouter()
POLL = 0.25  # seconds between looks at the counters, for all who watch
BEAT = 15.0  # seconds between signs of life


@router.get(
    "/studies/{name}/events",
    response_class=StreamingResponse,
    responses=problems(404) | {200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
)
async def events(
    request: Request,
    name: Name,
    most: Annotated[int | None, Query(ge=1, le=1000)] = None,
    holder: Holder = READ,
) -> StreamingResponse:
    """An event `change` with the counters whenever they change; it ends after `most` events if that is given, or with
    the token.
    """
    state = request.app.state
    if name not in await state.counters.get():
        raise study_gone()
    request.state.places.enter_context(state.watchers.taken(holder.name))
    return StreamingResponse(_changes(request, name, most), media_type="text/event-stream")


async def _changes(request: Request, name: str, most: int | None) -> AsyncIterator[str]:
    state, last, sent, beat = request.app.state, None, 0, time.monotonic()
    try:
        while not state.stopping.is_set() and (most is None or sent < most):
            check_again(request)
            now = (await state.counters.get())[name]._replace(checkpointed=0)
            if now != last:
                last, beat, sent = now, time.monotonic(), sent + 1
                counters = {"asked": now.asked, "told": now.told, "failed": now.failed}
                yield f"event: change\ndata: {json.dumps(counters)}\n\n"
            elif time.monotonic() - beat > BEAT:
                beat = time.monotonic()
                yield ": still here\n\n"
            await asyncio.sleep(POLL)
    except (RandomistError, KeyError):
        return  # the watcher comes back
