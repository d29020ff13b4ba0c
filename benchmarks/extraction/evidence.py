"""Quotations from the evidence for labels, shown with missed labels."""

from __future__ import annotations

import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from nacre.base.text import shorten
from nacre.home.home import Home
from nacre.values.memory import SessionFilter
from nacre.values.session import Speaker, Turn

_CHARACTERS = 400
_LINE = re.compile(r"(?:line:)?(\d+)")
_OWNER = re.compile(r"owner:(\d+)")
_TIME = re.compile(r"(?:queued )?(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)")


class Quoting:
    """Finds text in a transcript by turn id, line number, time, or number of the user's turn."""

    def __init__(self, context: Home, file: Path) -> None:
        self._context = context
        self._file = file

    def words_at(self, place: str) -> str | None:
        """Return the redacted, shortened text at a place, or ``None``."""
        words = self._turn(place) or self._line(place)
        return shorten(" ".join(words.split()), _CHARACTERS) if words else None

    def _turn(self, place: str) -> str | None:
        if owner := _OWNER.fullmatch(place):
            # a command run by the user is a turn with a call
            texts = [
                turn.text
                for turn in self._turns
                if turn.speaker is Speaker.OWNER and not turn.tool_calls
            ]
            return texts[int(owner[1]) - 1] if 0 < int(owner[1]) <= len(texts) else None
        if time := _TIME.match(place):
            return next((turn.text for turn in self._turns if _is_at(turn, time[1])), None)
        return next((turn.text for turn in self._turns if turn.id == place), None)

    def _line(self, place: str) -> str | None:
        if line := _LINE.fullmatch(place):
            number = int(line[1]) - 1
            text = self._lines[number] if 0 <= number < len(self._lines) else None
        else:
            text = next((text for text in self._lines if f'"{place}"' in text), None)
        return self._context.redactor.clean(_longest(text)) if text else None

    @cached_property
    def _lines(self) -> list[str]:
        return self._file.read_text(encoding="utf-8", errors="replace").splitlines()

    @cached_property
    def _turns(self) -> list[Turn]:
        sessions = self._context.sessions
        stored = [
            item
            for item in sessions.newest(SessionFilter(subagents=True), limit=-1)
            if item.file == str(self._file)
        ]
        return [stored_turn.turn for item in stored for stored_turn in sessions.turns_of(item.row)]


def _is_at(turn: Turn, time: str) -> bool:
    return bool(turn.text) and turn.time is not None and turn.time.isoformat().startswith(time)


def _longest(line: str) -> str:
    try:
        return max(_texts(json.loads(line)), key=len, default="")
    except ValueError:
        return line


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _texts(item)]
