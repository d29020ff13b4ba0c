"""Requests about what models cost."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class CostRequest(Request, frozen=True, kw_only=True):
    """What models cost in the last days, including today."""

    days: Annotated[int, Meta(description="Days, including today.", ge=1, le=3650)] = 30
