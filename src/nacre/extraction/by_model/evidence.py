"""Weighs: which sentences of the evidence bear a memory out, and whether they state it at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from nacre.extraction.by_model.negation import Evidence, is_turned
from nacre.extraction.by_model.stances import (  # fmt: skip
    clauses,
    is_agreement,
    is_asked,
    is_of_another,
    is_supposed,
    is_wish,
    whole,
    words_of,
)
from nacre.extraction.by_model.voices import Voice, Voices, is_in
from nacre.extraction.reading.course import objects
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.sentences import sentences, split_report
from nacre.text.passages import normalise
from nacre.values.memory import Kind
from nacre.values.session import Speaker

ABOUT_AS_MUCH = 0.75
"""A sentence bears a memory out as well as the best one where it has so much of what that one has of its words."""

LEAST_BORNE = 0.5
"""Where no sentence has so much of it, it may as well be the one that was quoted, or the answer to that."""

_WISHES = frozenset({Kind.PREFERENCE, Kind.DECISION})


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of the evidence: its turn, its place in that, its text, and whether the owner typed it.

    ``is_settled`` is a question of a form that the owner answered.
    """

    at: int
    place: int
    text: str
    is_owner: bool
    is_settled: bool = False


def said_in(voices: Voices, evidence: Sequence[int]) -> list[Said]:
    """All sentences of some turns."""
    return [one for at in evidence for one in _said_at(voices, at)]


def _said_at(voices: Voices, at: int) -> Iterator[Said]:
    turn = voices.turns[at]
    if turn.speaker is Speaker.AGENT:
        yield from (Said(at, place, one.text, False) for place, one in enumerate(split_report(turn.text)))
    yield from (Said(at, -1, one.question, False, True) for one in voices.forms(at) if not one.declines)
    yield from (Said(at, place, text, True) for place, text in enumerate(voices.sentences(at)))


def mood_refusal(
    kind: Kind, content: str, parts: Sequence[str], at: int, every: Sequence[Said], voices: Voices
) -> str | None:  # fmt: skip
    """Why the sentences that bear a memory out do not state it, if so: they ask, suppose, or tell what others want.

    ``parts`` of a quote are in the turn ``at``. What the owner agrees to afterwards is stated by that.
    """
    quoted = [one for one in every if one.at == at and any(_holds(one, part) for part in parts)]
    for claim in sentences(content):
        bearing = _bearing(claim, every, quoted)
        reasons = [_reason(kind, claim, one) for one in bearing]
        if all(reasons) and not any(_is_answered(one, every, voices) for one in bearing):
            return next(iter(reasons), None)
    return None


def _holds(one: Said, part: str) -> bool:
    text = normalise(one.text)
    return is_in(part, text) or is_in(text, part)


def _bearing(claim: str, every: Sequence[Said], quoted: Sequence[Said]) -> list[Said]:
    wanted = words_of(claim)
    shares = [len(wanted & words_of(one.text)) / len(wanted) if wanted else 0.0 for one in every]
    best = max(shares, default=0.0)
    near = [one for one, share in zip(every, shares, strict=True) if share >= ABOUT_AS_MUCH * best]
    if best >= LEAST_BORNE:
        return near
    answers = [one for one in every if one.is_owner and quoted and one.at > quoted[-1].at]
    return [*near, *quoted, *answers]


def _reason(kind: Kind, claim: str, one: Said) -> str | None:
    if is_asked(one.text):
        return "asked"
    if kind is not Kind.TODO and (one.is_owner or kind in _WISHES) and is_supposed(one.text, claim):
        return "supposed"
    return "of another" if one.is_owner and kind in _WISHES and is_of_another(one.text, claim) else None


def _is_answered(one: Said, every: Sequence[Said], voices: Voices) -> bool:
    """Whether the owner agreed to a sentence after it, within the evidence; an agent's may have any answer but a no."""
    later = [other for other in every if other.is_owner and (other.at, other.place) > (one.at, one.place)]
    if any(is_agreement(other.text) for other in later):
        return True
    if one.is_settled:
        return True
    if one.is_owner:
        return is_wish(one.text) and voices.is_followed(one.at)
    if voices.of(one.at) is Voice.ACCEPTED:
        return True
    after = voices.next_of_owner(one.at)
    if after is None or after.index not in {other.at for other in later}:
        return False
    return not is_asked(after.statements[0].text) and not objects(after, language_of(after.text))


def is_turned_round(content: str, every: Sequence[Said], known: Set[str]) -> bool:
    """Whether a memory says the opposite of what was said. What only asks denies nothing."""
    stated = [one for one in every if not is_asked(one.text)] or every
    by_owner, by_agent = (
        tuple(clause for one in stated if one.is_owner is is_owner for clause in clauses(one.text))
        for is_owner in (True, False)
    )
    said = Evidence(by_owner, by_agent, tuple(whole(one.text) for one in stated), known)
    return any(is_turned(claim, said) for claim in sentences(content))
