"""Whether a process lives, and whether it is to be sent requests: asked by what starts and balances processes."""

from __future__ import annotations

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nacre.web.operations import served_by


async def get_live(_: Request) -> Response:
    """``GET /health/live``: 200 as long as the process answers."""
    return JSONResponse({"status": "ok"})


async def get_ready(request: Request) -> Response:
    """``GET /health/ready``: 503 where the process is about to end, or the memory is away."""
    served = served_by(request)
    if served.traffic.is_leaving:
        return JSONResponse({"status": "leaving"}, 503)
    is_ready = await anyio.to_thread.run_sync(served.is_ready)
    return JSONResponse({"status": "ok" if is_ready else "no memory"}, 200 if is_ready else 503)
