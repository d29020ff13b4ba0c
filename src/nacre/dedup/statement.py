"""A memory as a claim: what it is about, what it says of it, what it says has gone, and in what mood."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nacre.dedup.cues import ChangeLanguage, kinds_of_things, language_of, languages, plain_names
from nacre.dedup.words import Amount, Word, amounts, is_number_of_a_thing, stem, tokens

_PHRASE_WORDS = 5
_REASON = re.compile(
    r"[,;:]?\s(?:because(?: of)?|since (?:the|we|it|they|our|he|she)\b|so that|due to|thanks to|as the|otherwise)\s.*$"
    r"|[，,]?(?:因为|由于).*$",
    re.IGNORECASE | re.DOTALL,
)
_VERBS = frozenset(
    """is are was were be been has have had will should must can does do did shall gets got get need needs needed
    require requires required say says go goes come comes take takes make makes put puts want wants : 是 在 用 由""".split()
)


@dataclass(frozen=True, slots=True)
class Statement:
    """What comparison knows of a text.

    ``order`` holds the stems of all words as they stand and ``spelled`` the words themselves; ``words`` are the topical
    stems, ``topic`` those before the verb, ``names`` those that are names, ``things`` the known ones with their kinds.
    ``numbers`` tell which one of several is meant. ``phrases`` are what it says has gone, ``come`` for what; ``scopes``
    is what it is restricted to, by class; ``moods`` are the ways in which it is no plain claim about the present, and
    ``turns`` the words of change it has.
    """

    text: str
    order: tuple[str, ...]
    spelled: tuple[str, ...]
    words: frozenset[str]
    topic: frozenset[str]
    names: frozenset[str]
    amounts: tuple[Amount, ...]
    numbers: frozenset[str]
    things: tuple[tuple[str, frozenset[str]], ...]
    phrases: tuple[frozenset[str], ...]
    is_exchange: bool
    come: frozenset[str]
    scopes: frozenset[tuple[str, str]]
    moods: frozenset[str]
    turns: frozenset[str]
    joined: frozenset[str]
    is_negative: bool
    has_role: bool

    @property
    def gone(self) -> frozenset[str]:
        """All words of what is gone."""
        return frozenset().union(*self.phrases)

    def spell(self, stems: Iterable[str]) -> str:
        """Some of the words as they were written, in order."""
        wanted = set(stems)
        found = {stem: text for stem, text in zip(self.order, self.spelled, strict=True) if stem in wanted}
        return " ".join(found.values())


@lru_cache(maxsize=4096)
def read(text: str, project: str | None = None) -> Statement:
    """Read a statement; the words of the project's name say nothing within it."""
    language = language_of(text)
    bare = _without(text, project)
    main = _REASON.sub("", bare).strip() or bare
    every = tokens(main, language)
    own = _project_stems(project, language)
    topical = [word for word in every if _is_topical(word, language) and word.stem not in own]
    verb = _verb_at(every, main, language)
    found = amounts(every, main, language)
    numbers = {amount.value for amount in found if is_number_of_a_thing(every, amount, main, language)}
    counted = tuple(amount for amount in found if amount.value not in numbers)
    phrases, come = _changed(main, language, own)
    has_role = any(_is_role(word, language) for word in every)
    places = _places(every, counted)
    lower = main.lower()
    return Statement(
        text=main,
        order=tuple(word.stem for word in every if word.stem not in own),
        spelled=tuple(word.text for word in every if word.stem not in own),
        words=frozenset(word.stem for word in topical),
        topic=frozenset(word.stem for word in topical if word.start < verb and not word.stem[0].isdigit()),
        names=frozenset(
            word.stem for word in topical if _is_name(word, has_role, language) and word.start not in places
        ),
        things=tuple(_things(every)),
        amounts=counted,
        numbers=frozenset(numbers),
        phrases=phrases,
        is_exchange=bool(phrases and come),
        come=come.difference(*phrases),
        scopes=frozenset(_scopes(lower, every, language)),
        moods=frozenset(_moods(text.lower(), lower, language)),
        turns=frozenset(_turns(lower, language)),
        joined=frozenset(_joined(every, language)),
        is_negative=bool(_NEGATION.search(lower)),
        has_role=has_role,
    )


_NEGATION = re.compile(
    r"\b(?:not|never|no|don't|doesn't|isn't|aren't|won't|cannot|can't|without|avoid|stop)\b|不|别|没|无|禁止"
)


def _without(text: str, project: str | None) -> str:
    """A Chinese project name has no borders of its own."""
    return text.replace(project, " ") if project and not project.isascii() else text


def _project_stems(project: str | None, language: ChangeLanguage) -> frozenset[str]:
    return frozenset(stem(part, language) for part in re.split(r"[^\w]+", project or "") if part) | {
        stem(project or "", language)
    }


def _is_topical(word: Word, language: ChangeLanguage) -> bool:
    lower = word.text.lower()
    if lower in language.words.stop or (lower in language.words.light and not word.is_name):
        return False
    return word.is_name or len(word.stem) > 1


def _verb_at(every: Sequence[Word], text: str, language: ChangeLanguage) -> int:
    """Where what is said begins: at the first verb or colon, at once in an imperative; at the end without a verb."""
    colon = text.find(": ")
    light = language.words.light | _light_stems(language.language)
    for at, word in enumerate(every):
        lower = word.text.lower()
        if lower in _VERBS or lower in light or word.stem in light:
            if not at and colon < 0:
                return 0
            if at:
                return min(word.start, colon) if colon > 0 else word.start
    return colon if colon > 0 else len(text)


@lru_cache(maxsize=8)
def _light_stems(name: str) -> frozenset[str]:
    language = next(one for one in languages() if one.language == name)
    return frozenset(stem(word, language) for word in language.words.light)


def _places(every: Sequence[Word], counted: Sequence[Amount]) -> frozenset[int]:
    """Where the words of amounts begin."""
    begins = [word.start for word in every]
    return frozenset(start for amount in counted for start in begins[begins.index(amount.start) :][: amount.span])


def _is_role(word: Word, language: ChangeLanguage) -> bool:
    return word.text.lower() in language.words.role


def _is_name(word: Word, has_role: bool, language: ChangeLanguage) -> bool:
    """Whether a word is a name; at the beginning, where all words have a capital, only of someone who holds a role."""
    lower = word.text.lower()
    if word.is_name or (lower in kinds_of_things() and lower not in plain_names()):
        return True
    return has_role and word.begins and word.text[:1].isupper() and not _is_role(word, language)


def _things(every: Sequence[Word]) -> Iterator[tuple[str, frozenset[str]]]:
    known = kinds_of_things()
    for at, word in enumerate(every):
        lower = word.text.lower()
        pair = f"{lower}-{every[at + 1].text.lower()}" if at + 1 < len(every) else ""
        kinds = known.get(pair) or known.get(lower)
        if kinds:
            yield word.stem, kinds


def _changed(
    text: str, language: ChangeLanguage, own: frozenset[str]
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    gone: list[frozenset[str]] = []
    come: set[str] = set()
    for pattern in language.change.pair:
        for match in pattern.finditer(text):
            found = match.groupdict()
            gone.append(frozenset(_phrase(found.get("gone") or "", language)))
            come.update(_phrase(found.get("come") or "", language))
    for pattern in language.change.before:
        gone += [frozenset(_phrase_before(text[: match.start()], language)) for match in pattern.finditer(text)]
    return tuple(phrase - own for phrase in gone if phrase - own), frozenset(come - own)


def _phrase(text: str, language: ChangeLanguage) -> Iterator[str]:
    """The stems of a few words, up to where a phrase ends; a verb of trouble has none."""
    trouble = language.change.trouble
    taken = 0
    last = 0
    for word in tokens(text, language):
        lower = word.text.lower()
        if lower in language.words.border or (taken and "," in text[last : word.start]):
            return
        if not taken and trouble.search(lower):
            return
        last = word.start + len(word.text)
        if lower in language.words.stop:
            continue
        taken += 1
        if lower not in language.words.light or word.is_name:
            yield word.stem
        if taken == _PHRASE_WORDS:
            return


def _phrase_before(text: str, language: ChangeLanguage) -> Iterator[str]:
    clause = re.split(r"[.;:!?。；：！？]|, ", text)[-1]
    words = [word for word in tokens(clause, language) if word.text.lower() not in language.words.stop]
    yield from (word.stem for word in words[-_PHRASE_WORDS:] if word.text.lower() not in language.words.light)


def _scopes(lower: str, every: Sequence[Word], language: ChangeLanguage) -> Iterator[tuple[str, str]]:
    stems = {word.text.lower() for word in every} | {word.stem for word in every}
    for name, words in language.scope.items():
        for word in words:
            held = word in lower if " " in word or not word.isascii() else word in stems
            if held:
                yield name, stem(word, language)


def _moods(whole: str, main: str, language: ChangeLanguage) -> Iterator[str]:
    mood = language.mood
    for name, pattern in (
        ("asks", mood.asks), ("supposes", mood.supposes), ("recounts", mood.recounts), ("adds", mood.adds),
        ("narrows", mood.narrows), ("chats", mood.chats),
    ):  # fmt: skip
        if pattern.search(whole if name == "asks" else main):
            yield name


def _turns(lower: str, language: ChangeLanguage) -> Iterator[str]:
    change = language.change
    for name, pattern in (("now", change.now), ("moved", change.moved), ("retracts", change.retracts)):
        if pattern.search(lower):
            yield name


def _joined(every: Iterable[Word], language: ChangeLanguage) -> Iterator[str]:
    """Neighbouring words as one: "back up" is "backup", "auto increment" is "autoincrement"."""
    previous: Word | None = None
    for word in every:
        if previous and word.text.isascii():
            yield language.alike.get(previous.stem + word.stem, previous.stem + word.stem)
        previous = word
