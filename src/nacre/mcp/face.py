"""One server as its clients see it: which tools, about which home, from which folder; and every call made safe."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from nacre.errors import InvalidInput, NacreError
from nacre.mcp.answers import Answer, in_json, refusal
from nacre.mcp.calling import Call
from nacre.mcp.desk import Desk
from nacre.mcp.offers import Offer, by_name, described, offered
from nacre.platform import json_values

_LOG = logging.getLogger("nacre.mcp")
_MOST_NAMED = 400

Tell = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Face:
    """What a server offers, and what its tools work with.

    ``everything`` offers all tools, not the core alone. ``structured`` answers with records beside the text, which
    programs like and which most hosts show a model twice, or instead of the text. ``note`` is given a line on each call
    of a tool, without a word of what was asked or answered.
    """

    call: Call
    everything: bool = False
    structured: bool = False
    folder: str | None = None
    session: str | None = None
    note: Callable[[str], None] | None = None

    @cached_property
    def tools(self) -> list[dict[str, Any]]:
        """The tools as ``tools/list`` tells them."""
        return described(offered(everything=self.everything), structured=self.structured)

    @cached_property
    def named(self) -> Mapping[str, Offer]:
        """The tools by their names."""
        return by_name(everything=self.everything)

    def desk(self, tell: Tell, call: Call | None = None) -> Desk:
        """What one call works with."""
        return Desk(call or self.call, self.folder, self.session, tell)

    def answer(self, offer: Offer, given: Mapping[str, Any], desk: Desk) -> dict[str, Any]:
        """The result of a tool as the wire has it; one that failed says why, and what to do."""
        began = time.perf_counter()
        told = kept(lambda: _function(offer)(desk, _checked(offer, given)))
        if self.note:
            came_to = "ok" if isinstance(told, Answer) else told["error"]["code"]
            self.note(
                f"{desk.clock():%Y-%m-%d %H:%M:%S} {offer.name} {1000 * (time.perf_counter() - began):.0f} ms {came_to}"
            )
        if not isinstance(told, Answer):
            return _failed(told, structured=self.structured)
        result: dict[str, Any] = {"content": [{"type": "text", "text": told.text}], "isError": False}
        if self.structured:
            result["structuredContent"] = {"text": told.text, "records": msgspec.to_builtins(told.records)}
        return result


def kept(work: Callable[[], T]) -> T | dict[str, Any]:
    """What work gives, else what a client is told of why it does not: nothing of the inside."""
    try:
        return work()
    except NacreError as error:
        return refusal(error)
    except Exception as error:  # noqa: BLE001 - the face's boundary
        return _unexpected(error)


def _unexpected(error: Exception) -> dict[str, Any]:
    """What a client is told of an error that nobody foresaw; the log on standard error has where it happened."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    _LOG.error("%s\n%s", type(error).__name__, frames)
    hint = "try again, or go on without it; nacre doctor tells the person what is wrong"
    return {"error": {"code": "unexpected", "message": "it failed for a reason of its own", "hint": hint}}


def _failed(told: dict[str, Any], *, structured: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": in_json(told)}], "isError": True}
    if structured:
        result["structuredContent"] = {"text": in_json(told), "error": told["error"]}
    return result


def _function(offer: Offer) -> Callable[[Desk, Any], Answer]:
    module, _, name = offer.place.partition(":")
    function: Callable[[Desk, Any], Answer] = getattr(import_module(f"nacre.mcp.tools.{module}"), name)
    return function


def _checked(offer: Offer, given: Mapping[str, Any]) -> msgspec.Struct:
    """The arguments of a tool. Raises InvalidInput, which tells what it takes."""
    try:
        return json_values.convert(dict(given), offer.arguments, strict=True)
    except msgspec.ValidationError as error:
        message = str(error)[:_MOST_NAMED].replace("`$.", "`").replace(" - at `$`", "")
        taken = ", ".join(offer.arguments.__struct_fields__)
        raise InvalidInput(f"{offer.name}: {message}", hint=f"it takes {taken}") from None
