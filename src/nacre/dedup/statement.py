"""A text as a claim: what it is about, what it says of it, what it says has gone, and in what mood."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise

from nacre.dedup.cues import ChangeLanguage, Words, kinds_of_things, language_of, languages, no_names, with_capital
from nacre.dedup.words import Amount, Word, amounts, as_one, is_number_of_a_thing, is_small, labelled, stem, tokens

_PHRASE_WORDS = 5
_REASON = re.compile(
    r"[,;:]?\s(?:because(?: of)?|since (?:the|we|it|they|our|he|she)\b|so that|due to|thanks to|as the|otherwise)\s.*$"
    r"|[，,]?(?:因为|由于).*$",
    re.IGNORECASE | re.DOTALL,
)
_EQUATION = re.compile(r"(?:\b(?:is|are)\b|:)(?: now| currently)? (?:an? |the )?(?P<what>[\w-]+)", re.IGNORECASE)
_VERBS = frozenset(
    """is are was were be been has have had will should must can does do did shall gets got get need needs needed
    require requires required say says go goes come comes take takes make makes put puts want wants
    i'm i've we're we've it's that's : 是 在 用 由""".split()
)

_ASIDE = re.compile(r"[,;](?!\d)|(?<!\d)[,;]|[，；。（]|\s[(（]|[.!]\s|\s[–—-]\s")
"""Where what is said may end and an aside begin."""

_LEAST_SAID = 2
_CASE_WORDS = 1
_DAYS = frozenset({"weekday", "date", "time"})
_DAY_BY_DAY = frozenset({"on", "at", "in", "every", "each", "by"})
_BEFORE_NOUNS = frozenset("the a an our my your of for in on per each every this that all no".split())


@dataclass(frozen=True)
class Statement:
    """What comparison knows of a text; each part is worked out when it is first asked for.

    ``whole`` is the text, ``text`` the same without its reasons; ``every`` are its words, ``own`` the stems of its
    project's name, which say nothing within the project, ``because`` the words of its reasons.
    """

    whole: str
    text: str
    language: ChangeLanguage = field(repr=False)
    every: tuple[Word, ...] = field(repr=False)
    own: frozenset[str]
    because: tuple[Word, ...] = field(default=(), repr=False)

    @cached_property
    def answers(self) -> dict[str, bool]:
        """What comparisons found: whether it has a word. They ask for the same words many times."""
        return {}

    @cached_property
    def _kept(self) -> tuple[Word, ...]:
        return tuple(word for word in self.every if word.stem not in self.own)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The stems of all words as they stand."""
        return tuple(word.stem for word in self._kept)

    @cached_property
    def counted(self) -> frozenset[int]:
        """Where the words of its numbers and amounts begin."""
        return _places(self.every, self.figures)

    @cached_property
    def _topical(self) -> tuple[Word, ...]:
        left = [word for word in self._kept if word.start not in self.counted]
        telling = tuple(word for word in left if _is_topical(word, self.language))
        if len(telling) > 1:
            return telling
        return tuple(word for word in left if word.text.lower() not in self.language.words.stop and len(word.stem) > 1)

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems that tell what it is about and what it says of it."""
        return frozenset(word.stem for word in self._topical)

    @cached_property
    def topic(self) -> frozenset[str]:
        """Those of them that stand before the verb."""
        verb = _verb_at(self.every, self.text, self.language)
        return frozenset(word.stem for word in self._topical if word.start < verb and not word.stem[0].isdigit())

    @cached_property
    def names(self) -> frozenset[str]:
        """Those of them that are names."""
        return frozenset(word.stem for word in self._topical if _is_name(word, self.has_role, self.language))

    @cached_property
    def things(self) -> dict[str, frozenset[str]]:
        """The things it names that are known, with their kinds."""
        return dict(_things(self.every))

    @cached_property
    def figures(self) -> list[Amount]:
        """All its numbers and amounts."""
        return labelled(amounts(list(self.every), self.text, self.language), self.order)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers that tell which one of several is meant."""
        every = list(self.every)
        return frozenset(
            one.value for one in self.figures if is_number_of_a_thing(every, one, self.text, self.language)
        )

    @cached_property
    def amounts(self) -> tuple[Amount, ...]:
        """What it counts, measures or dates."""
        return tuple(one for one in self.figures if one.value not in self.numbers)

    @cached_property
    def _changes(self) -> tuple[tuple[tuple[str, ...], ...], frozenset[str], frozenset[str]]:
        return _changed(self.text, self.language, self.own)

    @cached_property
    def end(self) -> int:
        """Where the first clause that says something ends: asides follow, unless they begin with a case or a "but"."""
        for aside in _ASIDE.finditer(self.text):
            said = sum(word.start < aside.start() for word in self._topical)
            said += sum(one.start < aside.start() for one in self.figures)
            if said >= _LEAST_SAID:
                return len(self.text) if self._goes_on(self.text[aside.end() :].lower().lstrip()) else aside.start()
        return len(self.text)

    def _goes_on(self, rest: str) -> bool:
        case = self.language.words.case
        first = re.split(r"[^\w'-]", rest, maxsplit=1)[0]
        return first in case or any(not word.isascii() and rest.startswith(word) for word in case)

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """The words that tell what it says, and of which one or sort: "motor B", "old backups"."""
        words = self.language.words
        sorts = {one for one, after in pairwise((*self._kept, None)) if one and _is_sort(one, after, words)}
        return tuple(sorted({*self._topical, *sorts}, key=lambda word: word.start))

    @cached_property
    def said(self) -> tuple[Word, ...]:
        """Those of them that stand in its first clause."""
        return tuple(word for word in self.content if word.start < self.end)

    @cached_property
    def uttered(self) -> tuple[Word, ...]:
        """All words of its first clause but its numbers and the smallest: also verbs and properties without a topic."""
        left = (word for word in self._kept if word.start < self.end and word.start not in self.counted)
        return tuple(word for word in left if not is_small(word, self.language))

    @cached_property
    def cased(self) -> frozenset[str]:
        """The words that tell a case: those after "for" and the like."""
        words, found, left = self.language.words, set(), 0
        for word in self.every:
            lower = word.text.lower()
            if lower in words.case:
                left = _CASE_WORDS
            elif left and lower not in words.stop:
                found.add(word.stem)
                left -= 1
        return frozenset(found)

    @cached_property
    def measured(self) -> tuple[Amount, ...]:
        """The amounts of its first clause, but a day since when it holds."""
        since = [match.span() for match in self.language.change.now.finditer(self.text.lower())]
        said = (one for one in self.amounts if one.start < self.end)
        return tuple(one for one in said if not any(begin < one.start < end for begin, end in since))

    @cached_property
    def denies(self) -> bool:
        """Whether its first clause denies or forbids something."""
        return negations(self.text[: self.end]) % 2 > 0

    @property
    def phrases(self) -> tuple[tuple[str, ...], ...]:
        """What it says has gone, each phrase apart, its words in order."""
        return self._changes[0]

    @cached_property
    def gone(self) -> frozenset[str]:
        """All words of what is gone."""
        return frozenset(word for phrase in self.phrases for word in phrase)

    @property
    def come(self) -> frozenset[str]:
        """The words of what came for it."""
        return self._changes[1] - self.gone

    @property
    def told_by(self) -> frozenset[str]:
        """The words that say that something has gone: "retired", "is history"."""
        return self._changes[2]

    @property
    def is_exchange(self) -> bool:
        """Whether it says what went and what came."""
        return bool(self.phrases and self._changes[1])

    @cached_property
    def scopes(self) -> frozenset[tuple[str, str]]:
        """What it is restricted to: (class, word); also the day it begins with ("On Monday …")."""
        said = [word for word in self.every if word.start < self.end]
        found = set(_scopes(self.text[: self.end].lower(), said, self.language))
        first = {
            word.start for word in self.every[: 2 if self.every and self.every[0].text.lower() in _DAY_BY_DAY else 1]
        }
        found |= {("when", one.value) for one in self.figures if one.start in first and one.sort in _DAYS}
        return frozenset(found)

    @cached_property
    def moods(self) -> frozenset[str]:
        """The ways in which it is no plain claim about the present."""
        return frozenset(_moods(self.whole.lower(), self.text.lower(), self.language))

    @cached_property
    def turns(self) -> frozenset[str]:
        """The words of change it has, by sort."""
        return frozenset(_turns(self.whole.lower(), self.language))

    @cached_property
    def joined(self) -> frozenset[str]:
        """Its neighbouring words as one: "back up" is "backup"."""
        pairs = pairwise(self.every)
        return frozenset(as_one(*pair, self.language) for pair in pairs if pair[1].text.isascii())

    @cached_property
    def is_negative(self) -> bool:
        """Whether it denies or forbids something."""
        return negations(self.text) > 0

    @cached_property
    def is_equation(self) -> bool:
        """Whether it only says what something is ("the theme is dark"), and not what is done with it."""
        match = _EQUATION.search(self.text)
        return match is not None and not match["what"].lower().endswith(("ed", "en", "ing"))

    @cached_property
    def has_role(self) -> bool:
        """Whether it may say who does or holds something."""
        return any(_is_role(word, self.language) for word in self.every) or bool(self.joined & self.language.words.role)

    def spell(self, stems: Iterable[str]) -> str:
        """Some of the words as they were written, in order."""
        wanted = set(stems)
        return " ".join({word.stem: word.text for word in self._kept if word.stem in wanted}.values())


@lru_cache(maxsize=4096)
def read(text: str, project: str | None = None) -> Statement:
    """Read a statement of a project, or of none."""
    language = language_of(text)
    bare = _without(text, project)
    main = _REASON.sub("", bare).strip() or bare
    lead = language.change.lead.match(main)
    main = main[lead.end() :] if lead else main
    reason = _REASON.search(bare) if bare.find(main) + len(main) < len(bare) else None
    because = (
        tuple(replace(word, start=word.start + len(main)) for word in tokens(reason[0], language)) if reason else ()
    )
    return Statement(text, main, language, tuple(tokens(main, language)), _project_stems(project, language), because)


@lru_cache(maxsize=4096)
def read_whole(text: str) -> Statement:
    """Read a statement with its reasons and with what leads in."""
    language = language_of(text)
    return Statement(text, text, language, tuple(tokens(text, language)), frozenset())


NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|nowhere|neither|nor|\w+n't|cannot|without|avoid)\b|不|别|没|无|禁止"
)


def negations(text: str) -> int:
    """How often a text denies or forbids something."""
    return len(NEGATION.findall(text.lower()))


def _without(text: str, project: str | None) -> str:
    """A Chinese project name has no borders of its own."""
    return text.replace(project, " ") if project and not project.isascii() else text


def _project_stems(project: str | None, language: ChangeLanguage) -> frozenset[str]:
    return frozenset(stem(part, language) for part in re.split(r"[^\w]+", project or "") if part) | {
        stem(project or "", language)
    }


def _is_topical(word: Word, language: ChangeLanguage) -> bool:
    if is_small(word, language) or (word.text.lower() in language.words.light and not word.is_name):
        return False
    return word.is_name or len(word.stem) > 1


def _verb_at(every: Sequence[Word], text: str, language: ChangeLanguage) -> int:
    """Where what is said begins: at the first verb or colon, at once in an imperative; at the end without a verb."""
    colon = text.find(": ")
    light = language.words.light | _light_stems(language.language)
    for at, word in enumerate(every):
        lower = word.text.lower()
        is_noun = at > 0 and _is_noun(lower, every[at - 1].text.lower(), every[0].text.lower())
        if lower in _VERBS or (not is_noun and (lower in light or word.stem in light)):
            if not at and colon < 0:
                return 0
            if at:
                return min(word.start, colon) if colon > 0 else word.start
    return colon if colon > 0 else len(text)


def _is_noun(lower: str, before: str, first: str) -> bool:
    """Whether a word that may be a verb is a noun here: after an article, or bare between an article and a singular."""
    is_bare = not lower.endswith(("s", "ed", "ing"))
    return before in _BEFORE_NOUNS or (first in _BEFORE_NOUNS and is_bare and not before.endswith("s"))


@lru_cache(maxsize=8)
def _light_stems(name: str) -> frozenset[str]:
    language = next(one for one in languages() if one.language == name)
    return frozenset(stem(word, language) for word in language.words.light)


def _places(every: Sequence[Word], counted: Sequence[Amount]) -> frozenset[int]:
    """Where the words of amounts begin."""
    begins = [word.start for word in every]
    return frozenset(start for amount in counted for start in begins[begins.index(amount.start) :][: amount.span])


def _is_sort(word: Word, after: Word | None, known: Words) -> bool:
    """Whether a word tells of which one or of which sort it is said; a new value of a property is none."""
    is_letter = len(word.text) == 1 and word.text.isascii() and word.text.isupper()
    if is_letter:
        return word.text != "I" and not (word.begins and word.text == "A" and "a" in known.stop)
    is_before_a_thing = after is not None and after.text.lower() not in known.attribute | known.stop
    return is_before_a_thing and word.text.lower() in known.sort


def _is_role(word: Word, language: ChangeLanguage) -> bool:
    return word.text.lower() in language.words.role


def _is_name(word: Word, has_role: bool, language: ChangeLanguage) -> bool:
    """Whether a word is a name; at the beginning, where all words have a capital, only of someone who holds a role."""
    lower = word.text.lower()
    if word.is_name or (lower in kinds_of_things() and lower not in with_capital() | no_names()):
        return True
    return has_role and word.begins and word.text[:1].isupper() and not _is_role(word, language)


def _things(every: Sequence[Word]) -> Iterator[tuple[str, frozenset[str]]]:
    known = kinds_of_things()
    for at, word in enumerate(every):
        lower = word.text.lower()
        pair = f"{lower}-{every[at + 1].text.lower()}" if at + 1 < len(every) else ""
        kinds = known.get(pair) or known.get(lower)
        if kinds and (lower not in with_capital() or word.text[:1].isupper()):
            yield word.stem, kinds


def _changed(
    text: str, language: ChangeLanguage, own: frozenset[str]
) -> tuple[tuple[tuple[str, ...], ...], frozenset[str], frozenset[str]]:
    gone: list[list[str]] = []
    come: set[str] = set()
    cues: set[str] = set()
    for pattern in language.change.pair:
        for match in pattern.finditer(text):
            if _is_talked_of(match, language):
                continue
            found = match.groupdict()
            gone.append(list(_phrase(found.get("gone") or "", language)))
            come.update(_phrase(found.get("come") or "", language))
            cues.update(word.stem for word in tokens(match[0], language)[:1])
    for pattern in language.change.before:
        for match in pattern.finditer(text):
            gone.append(list(_phrase_before(text[: match.start()], language)))
            cues.update(word.stem for word in tokens(match[0], language))
    kept = (tuple(word for word in phrase if word not in own) for phrase in gone)
    return tuple(phrase for phrase in kept if phrase), frozenset(come - own), frozenset(cues)


def _is_talked_of(match: re.Match[str], language: ChangeLanguage) -> bool:
    """Whether a change is only spoken of: "we looked at moving from X to Y"."""
    verb = re.match(r"\W*(\w+ing)\b", match[0])
    before = tokens(match.string[: match.start()], language)[-1:]
    return verb is not None and bool(before) and before[0].text.lower() in language.words.case


def _phrase(text: str, language: ChangeLanguage) -> Iterator[str]:
    """The stems of a few words, up to where a phrase ends; a verb of trouble has none."""
    trouble = language.change.trouble
    taken = last = 0
    for word in tokens(text, language):
        lower = word.text.lower()
        if lower in language.words.border or (taken and "," in text[last : word.start]):
            return
        if not taken and trouble.search(lower):
            return
        last = word.start + len(word.text)
        if is_small(word, language):
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
            if word in (lower if " " in word or not word.isascii() else stems):
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
