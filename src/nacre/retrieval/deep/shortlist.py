"""The projects that a question may be about, by additive scores (seed facts 3.3), and the one that it is about."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from nacre.retrieval.adviser import Adviser, prompt_of
from nacre.retrieval.confidence import BORDER
from nacre.retrieval.question.question_words import asks
from nacre.text.passages import STOP_WORDS, is_unspaced, one_line, words
from nacre.values.deep_recall import Candidate, Said
from nacre.values.session import Speaker

MOST_PROJECTS = 5
ALIAS = 10.0
"""A name of the project is in the text."""

PART_OF_ALIAS = 3.0
"""The text, of four characters at least, is in a name of the project."""

ALIAS_WORD, DESCRIPTION_WORD, HERE = 2.0, 1.0, 2.0
LEAD = 2.0
"""Odds of the surest answer over those of another project's, below which nobody knows which one was meant (ours)."""

_LEAST_TEXT, _LEAST_ALIAS_WORD, _LEAST_DESCRIPTION_WORD = 4, 3, 4
_RECENT_CHARACTERS = 220
_DESCRIPTION_CHARACTERS = 200
_NAMES_SHOWN = 6


@dataclass(frozen=True, slots=True)
class KnownProject:
    """A project as it may be spoken of: its slug, all of its names, what it is."""

    slug: str
    names: tuple[str, ...]
    description: str = ""


class ProjectAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers to the question for the project."""

    number: int


@dataclass(frozen=True, slots=True)
class _Mention:
    start: int
    end: int
    slug: str
    literal: bool

    def is_part_of(self, other: _Mention) -> bool:
        """Whether it is only a piece of another project's name, written as that is."""
        inside = other.start <= self.start and self.end <= other.end
        return inside and other.literal and self.slug != other.slug and other.end - other.start > self.end - self.start


def named_in(text: str, projects: Sequence[KnownProject]) -> frozenset[str]:
    """The projects that a text names exactly.

    In "billing-api" there is no "billing"; in "billing api" both may be meant.
    """
    folded = _folded(text)
    found = [mention for project in projects for name in project.names for mention in _mentions(folded, name, project)]
    return frozenset(one.slug for one in found if not any(one.is_part_of(other) for other in found))


def shortlist(
    query: str, recent: Sequence[Said], projects: Sequence[KnownProject], here: str | None = None
) -> list[Candidate]:
    """At most five projects that the question, or what its owner said before, speaks of; the likeliest first.

    What the agent said is no evidence. ``projects`` are given the latest first, which goes before where all else is
    even. Exactly named is what the first of these texts names that names any: the question, then the latest message.
    """
    texts = [query, *(one.text for one in reversed(recent) if one.speaker is Speaker.OWNER)]
    named = [named_in(text, projects) for text in texts]
    exact = next((slugs for slugs in named if slugs), frozenset())
    candidates = []
    for project in projects:
        score = sum(_score(text, project, project.slug in slugs) for text, slugs in zip(texts, named, strict=True))
        score += HERE if project.slug == here else 0.0
        if score > 0:
            candidates.append(Candidate(project.slug, score, project.slug in exact))
    return sorted(candidates, key=lambda one: (not one.named, -one.score))[:MOST_PROJECTS]


def leading(candidates: Sequence[Candidate]) -> str | None:
    """The project that is spoken of more than any other; what only its memories tell is less than 1, and no lead."""
    if not candidates or candidates[0].score < DESCRIPTION_WORD:
        return None
    leads = len(candidates) == 1 or candidates[0].score > candidates[1].score
    return candidates[0].slug if leads else None


def surest(sure: Mapping[str, float]) -> str | None:
    """The project whose best answer is sure enough to be shown, and has at least twice the odds of any other's."""
    ranked = sorted(sure, key=lambda slug: (-sure[slug], slug))
    if not ranked or sure[ranked[0]] < BORDER:
        return None
    leads = len(ranked) == 1 or _odds(sure[ranked[0]]) >= LEAD * _odds(sure[ranked[1]])
    return ranked[0] if leads else None


def _odds(sure: float) -> float:
    return sure / max(1.0 - sure, 1e-9)


def chosen_by_model(
    adviser: Adviser,
    query: str,
    recent: Sequence[Said],
    candidates: Sequence[tuple[Candidate, KnownProject]],
    here: str | None,
) -> tuple[bool, str | None]:
    """Whether a model answered, and the project that it chose, if it chose one."""
    shown = [
        {"number": number, "names": list(project.names[:_NAMES_SHOWN]),
         "description": project.description[:_DESCRIPTION_CHARACTERS], "here": project.slug == here}
        for number, (_, project) in enumerate(candidates, start=1)
    ]  # fmt: skip
    said = [one_line(one.text)[:_RECENT_CHARACTERS] for one in recent if one.speaker is Speaker.OWNER]
    text = {"projects": shown, "query": query, "recent": said}
    answer = adviser.ask(prompt_of("deep-project", ProjectAnswer, text=text), ProjectAnswer)
    if answer is None:
        return False, None
    if not 0 <= answer.number <= len(candidates):
        adviser.distrust(f"the model chose project {answer.number} of {len(candidates)}")
        return False, None
    return True, candidates[answer.number - 1][0].slug if answer.number else None


def _score(text: str, project: KnownProject, named: bool) -> float:
    folded, asked = _folded(text), {word for word in words(text) if word not in STOP_WORDS and not asks(word)}
    score = ALIAS if named else 0.0
    if len(folded) >= _LEAST_TEXT and any(folded in _folded(name) for name in project.names):
        score += PART_OF_ALIAS
    own = {word for name in project.names for word in words(name)}
    score += ALIAS_WORD * len(_long(own & asked, _LEAST_ALIAS_WORD))
    return score + DESCRIPTION_WORD * len(
        _long(asked.intersection(words(project.description)), _LEAST_DESCRIPTION_WORD)
    )


def _long(found: set[str], least: int) -> list[str]:
    """Words of so many characters; a pair of characters of a script without spaces is a word."""
    return [word for word in found if len(word) >= least or is_unspaced(word)]


def _mentions(folded: str, name: str, project: KnownProject) -> list[_Mention]:
    pattern = _pattern(name)
    if pattern is None:
        return []
    own = _folded(name)
    return [_Mention(*match.span(), project.slug, match[0] == own) for match in pattern.finditer(folded)]


@lru_cache(4096)
def _pattern(name: str) -> re.Pattern[str] | None:
    """Where a name stands as a word of its own, its parts joined in any way; none for what is said of anything."""
    parts = re.findall(r"[^\W_]+", _folded(name))
    if not parts or all(part in STOP_WORDS or asks(part) for part in parts):
        return None
    body = r"[\W_]{1,3}".join(map(re.escape, parts))
    before = "" if is_unspaced(parts[0]) else r"(?<![^\W_])"
    after = "" if is_unspaced(parts[-1]) else r"(?![^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
    if before:
        before = r"(?<![^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
    return re.compile(before + body + after)


@lru_cache(512)
def _folded(text: str) -> str:
    return one_line(unicodedata.normalize("NFKC", text).lower())
