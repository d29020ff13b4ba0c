"""The one door for JSON that lies in files and may be damaged: lines of the ledger, spools, exports, what is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MOST_LEVELS = 100
"""What is nested deeper is no value of nacre's, and would end whoever goes through it later by its recursion."""


def parse(data: bytes | str) -> Any:
    """The value in a text. Raises ValueError, and nothing else, for what is no JSON or nests too deeply.

    Bytes that are no UTF-8 are replaced. NaN and infinities are refused: what reads a line elsewhere stops at them.
    """
    text = data.decode("utf-8", errors="replace") if isinstance(data, bytes) else data
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if text.count("[") + text.count("{") > MOST_LEVELS and _levels(value) > MOST_LEVELS:
        raise ValueError("it is nested too deeply")
    return value


def quoted(told: Mapping[str, object]) -> str:
    """A value on one line for a prompt: nothing that it holds can end the quotation it stands in."""
    return json.dumps(told, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _levels(value: Any) -> int:
    """How deeply a value is nested, at most one more than is allowed."""
    level, held = 0, [value]
    while held and level <= MOST_LEVELS:
        level += 1
        held = [
            inner
            for one in held
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return level


def _refuse(constant: str) -> None:
    raise ValueError(constant)
