"""Has a model compare what was proposed of a session with its evidence alone: one short call a session.

Whoever reads a whole session may take a proposal for a decision, a supposition for a fact, or mix two things up.
Whoever sees only a statement and the turns around it does not. What is not borne out waits as a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from importlib.resources import files

import msgspec

from nacre.extraction.by_model.calls import Caller
from nacre.extraction.by_model.layout import as_data, as_read, calls_of, framed, without_middle
from nacre.extraction.by_model.parts import without
from nacre.extraction.by_model.prompts import room_for
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.speech import before, is_accepted_plan, is_content
from nacre.extraction.rules.reversal import content_words
from nacre.llm.answers import schema_of
from nacre.platform.days import shown_day
from nacre.text.passages import count_tokens, one_line, title_of
from nacre.values.candidate import Candidate, Why
from nacre.values.memory import Confidence
from nacre.values.model_calls import Capabilities, Prompt, Task
from nacre.values.session import Speaker, Trust, Turn

VERSION = "4"
AT_ONCE = 40
"""So many statements stand in one call at most."""

UNCOMPARED = "nobody has compared it with its evidence"

_TURN_CHARACTERS = 8_000
_TOKENS_EACH = 60
_LEAST_TOKENS = 400
_CLOSING = "Answer with a verdict for each."


class Finding(StrEnum):
    """What a model makes of a statement and its evidence."""

    HOLDS = "holds"
    UNSETTLED = "unsettled"
    TAKEN_BACK = "taken_back"
    DIFFERS = "differs"
    NOT_SAID = "not_said"
    ONCE = "once"
    INSTRUCTED = "instructed"


_OF_PARTS = frozenset({Finding.UNSETTLED, Finding.TAKEN_BACK, Finding.DIFFERS, Finding.NOT_SAID})
"""Where the rest of a statement stands without its wrong parts: an instruction or an errand is told of as a whole."""

_DETAILS: Mapping[Finding, str] = {
    Finding.UNSETTLED: "its evidence asks, supposes or proposes it, and nobody settles it",
    Finding.TAKEN_BACK: "it was taken back or turned down",
    Finding.DIFFERS: "its evidence says something else",
    Finding.NOT_SAID: "its evidence does not say it",
    Finding.ONCE: "it was said of the work at hand alone",
    Finding.INSTRUCTED: "it is an instruction of text from outside",
}


class Verdict(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is found of one statement, or of those of its parts that are ``wrong``."""

    number: int
    finding: Finding
    wrong: list[str]


class Verdicts(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is found of each statement."""

    verdicts: list[Verdict]


Asked = tuple[Candidate, Sequence[Turn]]
"""A candidate, and the turns of its session."""

Group = tuple[Sequence[Candidate], Sequence[Turn]]
"""Candidates of one session, and its turns."""


def verified(caller: Caller, groups: Sequence[Group], seconds: float) -> list[list[Candidate]]:
    """The same candidates, group by group; those of a model that their evidence does not bear out, or that nobody could
    judge, wait.
    """
    asked = [(one, turns) for candidates, turns in groups for one in candidates if _is_to_be_judged(one)]
    found: dict[int, Candidate] = {}
    caller.try_smaller()
    for batch in _batches(asked, caller.capabilities):
        answer = caller.ask(prompt_for(batch, caller.capabilities, seconds), Verdicts)
        told = {one.number: one for one in answer.verdicts} if answer else {}
        found |= {id(one): _judged(one, told.get(number)) for number, (one, _) in enumerate(batch, 1)}
    return [[found.get(id(one), one) for one in candidates] for candidates, _ in groups]


def _batches(asked: Sequence[Asked], able: Capabilities) -> Iterator[Sequence[Asked]]:
    """What is asked, in so many calls that each has room in the window."""
    half = len(asked) // 2
    if len(asked) > AT_ONCE or (half and not _has_room(prompt_for(asked, able, 0.0), able)):
        yield from _batches(asked[:half], able)
        yield from _batches(asked[half:], able)
    elif asked:
        yield asked


def _has_room(prompt: Prompt, able: Capabilities) -> bool:
    return count_tokens(prompt.text) <= room_for(able, prompt.output_tokens)


def _is_to_be_judged(candidate: Candidate) -> bool:
    return not candidate.held and candidate.confidence is Confidence.EXTRACTED


def _judged(candidate: Candidate, verdict: Verdict | None) -> Candidate:
    if verdict is None:
        return replace(candidate, held=Why.UNPROVEN, detail=UNCOMPARED)
    if verdict.finding is Finding.HOLDS:
        return candidate
    rest = without(candidate.content, verdict.wrong) if verdict.finding in _OF_PARTS else None
    if rest:
        return replace(candidate, content=rest, subject=_subject(candidate, rest))
    why = Why.UNTRUSTED if verdict.finding is Finding.INSTRUCTED else Why.UNPROVEN
    return replace(candidate, held=why, detail=_DETAILS[verdict.finding])


def _subject(candidate: Candidate, rest: str) -> str:
    """Its own, where nothing of what was taken out is in it."""
    gone, subject = _words_of(candidate.content) - _words_of(rest), candidate.subject
    return title_of(rest) if gone & _words_of(subject) else subject


def _words_of(text: str) -> frozenset[str]:
    return content_words(text, language_of(text))


def prompt_for(asked: Sequence[Asked], able: Capabilities, seconds: float) -> Prompt:
    """What asks for the verdicts on candidates of some sessions: the evidence of all, each turn once, then the
    statements.
    """
    shown: list[str] = []
    listed: list[str] = []
    for turns in {id(turns): turns for _, turns in asked}.values():
        mine = [one for one, said in asked if said is turns]
        place = {turn.id: at for at, turn in enumerate(turns)}
        evidence = [sorted(place[turn] for turn in one.turns if turn in place) for one in mine]
        numbers = {at: len(shown) + number for number, at in enumerate(_beside(turns, evidence), 1)}
        shown += _lines(turns, numbers)
        for one, cited in zip(mine, evidence, strict=True):
            named = ", ".join(f"m{numbers[at]}" for at in cited)
            listed.append(f"{len(listed) + 1}. [{one.kind.value}] {as_data(one_line(one.content))} (evidence: {named})")
    text = (framed("transcript", "\n".join(shown)), framed("memories", "\n".join(listed)), _CLOSING)
    room = min(able.output, able.window // 4, max(_LEAST_TOKENS, _TOKENS_EACH * len(asked)))
    return Prompt(
        task=Task.EXTRACTION, system=_words(), text="\n\n".join(text), answer=schema_of(Verdicts), name="verdicts",
        version=f"verify/{VERSION}", output_tokens=room, timeout_seconds=seconds,
    )  # fmt: skip


def _beside(turns: Sequence[Turn], evidence: Sequence[Sequence[int]]) -> list[int]:
    """The turns that are cited, what the owner's among them answer and what the agent made of them, and the owner's
    next words.
    """
    cited = {at for some in evidence for at in some}
    beside = {at for one in cited for at in (_led_to(turns, one), _made_of(turns, one), _answer_to(turns, one))}
    return sorted(at for at in cited | beside if at is not None)


def _led_to(turns: Sequence[Turn], at: int) -> int | None:
    """What the agent said before a turn of the owner's: what that answers, or the plan that it accepts."""
    if turns[at].speaker is not Speaker.OWNER:
        return None
    return at - 1 if at and is_accepted_plan(turns, at - 1) else before(turns, at, Speaker.AGENT)


def _made_of(turns: Sequence[Turn], at: int) -> int | None:
    """What the agent says last before the owner speaks again, after a turn of the owner's: what it did about it."""
    if turns[at].speaker is not Speaker.OWNER:
        return None
    following = _answer_to(turns, at)
    said = before(turns, len(turns) if following is None else following, Speaker.AGENT)
    return said if said is not None and said > at else None


def _answer_to(turns: Sequence[Turn], at: int) -> int | None:
    """The owner's next turn after another one: what they made of it."""
    later = (one for one in range(at + 1, len(turns)) if turns[one].speaker is Speaker.OWNER and is_content(turns[one]))
    return next(later, None)


def _lines(turns: Sequence[Turn], numbers: Mapping[int, int]) -> Iterator[str]:
    """Turns under their numbers."""
    day, calls = "", list(calls_of(turns))
    for at, number in numbers.items():
        turn = turns[at]
        date = shown_day(turn.time) if turn.time else day
        who = "agent, plan" if is_accepted_plan(turns, at) else turn.speaker.value
        who += ", untrusted" if turn.trust is Trust.UNTRUSTED else ""
        text = "\n  ".join(without_middle(as_read(turn), _TURN_CHARACTERS).splitlines())
        yield f"{f'({date}){chr(10)}' if date != day else ''}[m{number}][{who}] {text}{calls[at]}"
        day = date


@cache
def _words() -> str:
    return (files(__package__) / "prompts" / f"verify-{VERSION}.md").read_text(encoding="utf-8")
