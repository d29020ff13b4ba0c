"""What code can know of what a writer proposes: everything else is for a second look to judge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from nacre.dedup.coverage import new_word, swaps
from nacre.dedup.statement import negations, read, whole_numbers
from nacre.dream.clusters import may_be_one
from nacre.dream.repetitions import is_owners
from nacre.dream.values import DreamAction, Step
from nacre.platform.ids import content_hash
from nacre.text.passages import identifiers
from nacre.values.memory import Kind, Memory

_NUMBER = re.compile(r"\d+")
_WHOLE_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:[.,:/-]\d+)*")
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_OF_CODE = re.compile(r"[/._\\@=()]|::")
_MOST_ADDED = 100
_DENIAL = r"not|never|cannot|\w+n['’]t|nicht|nie|niemals|kein\w*|pas|jamais|nunca|jamás|não"
_DENIES = re.compile(rf"\b(?:{_DENIAL})\b|不|别|没|禁止", re.IGNORECASE)
_NARROWS = re.compile(
    rf"\b(?:{_DENIAL}|no|none|nobody|nothing|nowhere|neither|nor|without|avoid|leave out|only|except|lack\w*|ohne|nur"
    r"|sans|sin|sem)\b|不|别|没|无|禁止|只|仅",
    re.IGNORECASE,
)
"""What denies something, and all that may stand for a denial in a line that sums up."""


def mark(memories: Iterable[Memory]) -> str:
    """What a step rests on: it is void when this is another."""
    parts = [f"{one.id}\0{one.kind}\0{one.content}\0{one.speaker}\0{one.trust}" for one in memories]
    return content_hash("\0".join(parts)).hex()[:16]


def unfit(step: Step, memories: Mapping[str, Memory]) -> str | None:
    """What speaks against a writer's step; ``None`` where nothing does that code can know."""
    named = [memories[one] for one in (step.into or "", *step.ends)]
    if step.mark != mark(named):
        return "they have changed since"
    if not all(may_be_one(named[0], one) for one in named[1:]):
        return "they are not of one place, trust and time"
    if any(is_owners(one) and not is_owners(named[0]) for one in named[1:]):
        return "an agent's words would stand for the owner's"
    return _unlike_a_merge(step, named) if step.action is DreamAction.MERGE else _unlike_an_end(named)


def _unlike_an_end(named: Sequence[Memory]) -> str | None:
    """What ends others was said after them. What happened stays true."""
    later, *earlier = named
    if any(one.kind in (Kind.EVENT, Kind.TODO) for one in named):
        return "what happened stays true, and a todo ends when it is done"
    if not all((said(one), one.id) < (said(later), later.id) for one in earlier):
        return "it was said later"
    return None


def said(memory: Memory) -> datetime:
    """When a memory was said last; that it was edited since says nothing."""
    return max((memory.created, *(one.at for one in memory.confirmed)))


def _unlike_a_merge(step: Step, named: Sequence[Memory]) -> str | None:
    """No number, option, path or name of code of any may be missing."""
    if step.words and len({one.speaker for one in named}) > 1:
        return "the owner and an agent said them"
    words, sources = step.words or named[0].content, [one.content for one in named]
    if len(words) > sum(map(len, sources)) + _MOST_ADDED:
        return "the words are more than all of theirs"
    for one in sources:
        if missing := _missing(one, words):
            return f"the words leave out {missing}"
    return _unlike_in_new_words(words, sources) if step.words else None


def unlike_sources(words: str, sources: Sequence[str]) -> str | None:
    """What a line says that sums up others has no number, option, path, name and no denial of its own; ``None`` where
    that is so. It loses no denial that all of them have."""
    there = "\n".join(sources)
    if added := _new_number(words, there) or _missing(words, there) or _new_name(words, there) or swaps(words, sources):
        return f"the line adds {added}"
    if _DENIES.search(words) and not _NARROWS.search(there):
        return "the line adds a denial"
    is_denied = all(map(_DENIES.search, sources))
    return "the line loses a denial" if is_denied and not _NARROWS.search(words) else None


def _new_name(words: str, there: str) -> str | None:
    """A name within a sentence that the sources do not have in any form."""
    known = {word.stem for word in read(there).tokens}
    names = (one for one in read(words).tokens if one.is_name)
    return next((one.text for one in names if one.stem not in known and one.text.lower() not in there.lower()), None)


def _new_number(words: str, there: str) -> str | None:
    numbers = set(_WHOLE_NUMBER.findall(whole_numbers(there)))
    return next((one for one in _WHOLE_NUMBER.findall(whole_numbers(words)) if one not in numbers), None)


def _unlike_in_new_words(words: str, sources: Sequence[str]) -> str | None:
    """What is written anew has no word with a topic, no number as a whole, no denial and no order of things of its
    own."""
    there = "\n".join(sources)
    new = _new_number(words, there)
    added = new or _missing(words, there) or new_word(words, sources) or swaps(words, sources)
    if added:
        return f"the words add {added}"
    return "the words lose or add a denial" if bool(negations(words)) != bool(negations(there)) else None


def _missing(text: str, there: str) -> str | None:
    """What stands in a text to the letter and in another one not: a number, an option of a command, a path or a name of
    code. Whether other words say the same is for who reads."""
    text, there = whole_numbers(text), whole_numbers(there)
    numbers = {one.lstrip("0") for one in _NUMBER.findall(there)}
    options = set(_OPTION.findall(there))
    names = (one.rstrip(".") for one in identifiers(text) if _OF_CODE.search(one.rstrip(".")))
    absent = (
        *(one for one in _NUMBER.findall(text) if one.lstrip("0") not in numbers),
        *(one for one in _OPTION.findall(text) if one not in options),
        *(one for one in names if one.lower() not in there.lower()),
    )
    return next(iter(absent), None)
