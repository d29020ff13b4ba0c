"""The dashboard's files, and the door through which ``nacre open`` sends a browser."""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from nacre.web.browsers import COOKIE_SECONDS
from nacre.web.operations import served_by

STATIC = Path(__file__).parent / "static"
POLICY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""What every answer says to browsers."""

API = ("/api/", "/clawxmemory/api/")
_FOREVER = "public, max-age=31536000, immutable"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>nacre</title><h1>nacre</h1><p>{}</p></html>
"""


class Assets(StaticFiles):
    """Files that have a hash of what they hold in their names: they never change."""

    def file_response(self, *given: object, **named: object) -> Response:
        """See StaticFiles."""
        answer = super().file_response(*given, **named)  # type: ignore[arg-type]
        answer.headers["Cache-Control"] = _FOREVER
        return answer

    async def check_config(self) -> None:
        """See StaticFiles: they may not have been built."""


async def get_page(request: Request) -> Response:
    """The dashboard, which finds out by itself which page of it was asked for."""
    if request.url.path.startswith(API):
        raise HTTPException(404)
    index = STATIC / "index.html"
    if not index.is_file():
        return HTMLResponse(_PAGE.format("The dashboard was not built here: <code>make web</code> builds it."))
    return FileResponse(index, headers={"Cache-Control": "no-cache"})


async def get_open(request: Request) -> Response:
    """``GET /open?code=…``: the browser's cookie for a code of ``nacre open``."""
    served = served_by(request)
    entry = served.browsers.redeem(request.query_params.get("code", ""), request.scope["server"][1])
    if entry is None:
        told = "This address was used, or is older than a minute. Run <code>nacre open</code> again."
        return HTMLResponse(_PAGE.format(told), 403)
    answer = RedirectResponse(f"/#key={entry.key}", 303)  # what stands after # is sent to no server
    answer.set_cookie(
        served.browsers.cookie,
        entry.cookie,
        COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=served.names.is_tls,
    )
    return answer
