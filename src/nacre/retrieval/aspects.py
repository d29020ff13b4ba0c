"""What a turn is about, beside its words: errors, plans, settings, files, decisions, the use of tools."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from importlib.resources import files

from nacre.text.excerpt import excerpt
from nacre.text.passages import one_line, shorten
from nacre.values.recall import TurnHit
from nacre.values.session import Action, Trust, Turn

_SAID_CHARACTERS = 120


class Aspect(StrEnum):
    """One aspect of turns that a search may be limited to."""

    ERRORS = "errors"
    PLANS = "plans"
    CONFIGS = "configs"
    TOOLS = "tools"
    FILES = "files"
    DECISIONS = "decisions"


def shows(turn: Turn, aspect: Aspect) -> bool:
    """Whether a turn is about it: by what was done where that tells, else by the words said."""
    calls = turn.tool_calls
    match aspect:
        case Aspect.TOOLS:
            return bool(calls)
        case Aspect.ERRORS if any(call.failed for call in calls):
            return True
        case Aspect.PLANS if any(call.action is Action.PLAN for call in calls):
            return True
        case Aspect.FILES if any(call.paths for call in calls):
            return True
    pattern = _patterns().get(aspect)
    return bool(pattern and pattern.search(turn.text))


def admission(aspect: str, role: str) -> Callable[[Turn], bool] | None:
    """What a search admits that is limited to an aspect and to what somebody said; ``None`` where both are ``all``."""
    if aspect == role == "all":
        return None

    def admits(turn: Turn) -> bool:
        return (role in ("all", turn.speaker)) and (aspect == "all" or shows(turn, Aspect(aspect)))

    return admits


def with_error(hit: TurnHit, terms: Sequence[str]) -> TurnHit:
    """Return a hit with the error for which its turn was admitted. The output of a tool is untrusted."""
    turn = hit.turn
    errors = [f"{call.name}: {call.error or call.outcome}" for call in turn.tool_calls if call.failed]
    if errors:
        error = max(errors, key=lambda text: sum(term in text.lower() for term in terms))
        shown = f"{shorten(hit.excerpt, _SAID_CHARACTERS)} — {excerpt(error, terms)}"
        return replace(hit, excerpt=shown, turn=replace(turn, trust=Trust.UNTRUSTED))
    found = _patterns()[Aspect.ERRORS].search(turn.text)
    is_hidden = found is not None and one_line(found[0]) not in hit.excerpt
    return replace(hit, excerpt=excerpt(turn.text, terms, wanted=found[0])) if found and is_hidden else hit


@cache
def _patterns() -> dict[Aspect, re.Pattern[str]]:
    table = tomllib.loads(files("nacre.retrieval").joinpath("aspects.toml").read_text(encoding="utf-8"))
    return {Aspect(name): _compiled(kinds) for name, kinds in table.items() if any(kinds.values())}


def _compiled(kinds: dict[str, list[str]]) -> re.Pattern[str]:
    words = rf"\b(?:{'|'.join(kinds['words'])})\b"
    return re.compile("|".join([words, *kinds["signs"]]), re.IGNORECASE)
