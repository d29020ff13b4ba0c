"""Requests to configure hosts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request
from nacre.values.wiring import WiringWish


class WireRequest(Request, frozen=True, kw_only=True):
    """Configure hosts to use nacre, or no longer."""

    wishes: Annotated[tuple[WiringWish, ...], Meta(description="The hosts, each for the user or a project.")]
    uninstall: Annotated[bool, Meta(description="Remove what was configured.")] = False
