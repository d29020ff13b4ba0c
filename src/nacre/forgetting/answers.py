"""What is answered to requests to forget; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.forgetting import forget as forgetting
from nacre.forgetting.requests import AllowAgainRequest, ForgetRequest
from nacre.home.home import Home
from nacre.values.forgetting import ForgetReport, Forgotten


def forget(home: Home, request: ForgetRequest) -> ForgetReport:
    """Delete for good; the report says what could not be reached. Raises QueryInvalid, NotFound, Conflict."""
    return forgetting.forget(home, forgetting.plan(home, request))


def allow_again(home: Home, request: AllowAgainRequest) -> Forgotten:
    """Let what was forgotten be read again, where a transcript still has it. Raises NotFound, Conflict."""
    return forgetting.allow_again(home, request.reference)
