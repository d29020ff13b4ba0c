"""Answers that are errors: ``application/problem+json`` (RFC 9457), with code and hint."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from nacre import errors
from nacre.serving.guard import PROBLEM, problem


class Unprocessable(errors.InvalidInput):
    """What was asked can be read, and cannot be."""

    code = "unprocessable"


class TooLarge(errors.InvalidInput):
    """A request has a body that is too large."""

    code = "too_large"


class OtherKind(errors.InvalidInput):
    """A request has a body of another kind."""

    code = "unsupported_media_type"


_STATUS: tuple[tuple[type[errors.NacreError], int], ...] = (
    (TooLarge, 413),
    (OtherKind, 415),
    (Unprocessable, 422),
    (errors.InvalidInput, 400),
    (errors.OwnerOnly, 403),
    (errors.NotAllowed, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.SecretFound, 422),
    (errors.Fault, 500),
    (errors.ModelRefused, 502),
    (errors.AnswerUnusable, 502),
    (errors.RemoteRefused, 502),
    (errors.QuotaSpent, 429),
    (errors.SpaceFull, 507),
)
"""The rest is 503: the home, or something that it needs, cannot be used now."""

_COOKIE_HINT = "open the dashboard by nacre open, in a terminal of your own, and do it there"
_HINT = "/api/docs lists the routes, and what may be given"
_RETRY_SECONDS = 1


def problem_response(
    status: int, code: str, message: str, hint: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:  # fmt: skip
    """An answer that says what is wrong, and what to do."""
    return Response(problem(status, code, message, hint), status, headers, PROBLEM)


def of_error(error: errors.NacreError) -> Response:
    """The answer for an error of nacre's."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 503)
    wait = error.seconds if isinstance(error, errors.QuotaSpent) else _RETRY_SECONDS if status == 503 else None
    headers = {"Retry-After": str(wait)} if wait is not None else None
    hint = _COOKIE_HINT if isinstance(error, errors.OwnerOnly) else error.hint or _HINT
    return problem_response(status, error.code, error.message, hint, headers)


async def of_nacre(_: Request, error: Exception) -> Response:
    """As Starlette has errors handled: those of nacre's."""
    assert isinstance(error, errors.NacreError)  # noqa: S101 - the table of handlers says so
    return of_error(error)


async def of_http(_: Request, error: Exception) -> Response:
    """As Starlette has errors handled: no such route, another method."""
    assert isinstance(error, HTTPException)  # noqa: S101 - the table of handlers says so
    code = HTTPStatus(error.status_code).name.lower()
    return problem_response(error.status_code, code, error.detail, "docs/rest.md lists the routes", error.headers)


async def of_fault(request: Request, error: Exception) -> Response:
    """As Starlette has errors handled: what nobody foresaw."""
    request.app.state.served.tell("".join(traceback.format_exception(error)).rstrip())
    message = f"{type(error).__name__} in the daemon"
    return problem_response(500, "internal", message, "logs/daemon.log tells more")
