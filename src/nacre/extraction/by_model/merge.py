"""Settles: what several parts of a session said alike is one memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nacre.extraction.reading.cues import language_of
from nacre.extraction.rules.importance import MAX_STRONG, STRONG
from nacre.extraction.rules.reversal import content_words
from nacre.text.passages import normalise
from nacre.values.candidate import Candidate
from nacre.values.session import Speaker

ALIKE = 0.7
"""From this share of common runs of three characters on, two contents may say the same (Jaccard)."""

_RUN = 3
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _Kept:
    candidate: Candidate
    words: str
    runs: frozenset[str]
    says: frozenset[str]


def merged(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates without those that others repeat, in order; each with the turns of all that said it."""
    kept: list[_Kept] = []
    for candidate in candidates:
        one = _read(candidate)
        at = next((at for at, other in enumerate(kept) if _says_the_same(one, other)), None)
        if at is None:
            kept.append(one)
        else:
            kept[at] = _fuller(kept[at], one)
    return [one.candidate for one in kept]


def _read(candidate: Candidate) -> _Kept:
    words = normalise(candidate.content)
    runs = frozenset(words[at : at + _RUN] for at in range(max(1, len(words) - _RUN + 1)))
    says = content_words(candidate.content, language_of(candidate.content))
    return _Kept(candidate, words, runs, says | frozenset(_NUMBER.findall(words)))


def tempered(candidates: Sequence[Candidate]) -> list[Candidate]:
    """At most two memories of a session may change what every other session does (seed facts 1.5)."""
    strong = sorted(
        (at for at, one in enumerate(candidates) if one.importance >= STRONG), key=lambda at: -candidates[at].importance
    )
    too_many = set(strong[MAX_STRONG:])
    return [replace(one, importance=STRONG - 1) if at in too_many else one for at, one in enumerate(candidates)]


def _says_the_same(one: _Kept, other: _Kept) -> bool:
    """The same words, or nearly the same of one kind where not both have words or numbers that the other one lacks."""
    if one.words == other.words:
        return True
    if one.candidate.kind is not other.candidate.kind or not (one.says <= other.says or other.says <= one.says):
        return False
    few, many = sorted((len(one.runs), len(other.runs)))
    return few >= ALIKE * many and len(one.runs & other.runs) >= ALIKE * len(one.runs | other.runs)


def _fuller(known: _Kept, again: _Kept) -> _Kept:
    """The one that weighs more, with the evidence of both where both are a model's."""
    first, second = known.candidate, again.candidate
    best = again if _weight(second) > _weight(first) else known
    if first.speaker is not second.speaker or first.confidence is not second.confidence:
        return best
    return replace(best, candidate=replace(best.candidate, turns=tuple(dict.fromkeys((*first.turns, *second.turns)))))


def _weight(one: Candidate) -> tuple[bool, bool, int, int]:
    return not one.held, one.speaker is Speaker.OWNER, one.importance, len(one.content)
