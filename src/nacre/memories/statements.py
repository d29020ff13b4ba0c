"""What a statement is made of as far as code can tell: words, names, numbers with their slots, denials, departures."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any

from nacre.base.text import STOP_WORDS, identifiers, stem

_HAN = "\u3400-\u9fff"
_TOKEN = re.compile(
    rf"\d+(?:[.,:/-]\d+)*|[{_HAN}]+"
    rf"|[^\W{_HAN}](?:(?:(?![{_HAN}])[\w'’.+#@&/_-])*[^\W{_HAN}])?[+#]*|[$€£¥%]"
)
_NAME = re.compile(r"[/_@#\d]|\w\.\w|[a-z][A-Z]|[A-Z].*[A-Z]")
_SIGNS = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*|[<>=~≤≥]=?|!=")
_CONTRACTED = re.compile(r"'(?:s|re|ve|ll|m|d)$")
_CASE = re.compile(r"\b(?:for|in|on|at|für|im|in|beim?|auf) ((?:\S+ ?){1,3})", re.IGNORECASE)
_PLURAL = re.compile(r"^([A-Z]{2,})s$")
_CLAUSE = re.compile(r"[,;:!?，。；：！？\n]|\.(?!\w)")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[,_](?=\d{3})")
_PHRASE = r"(?:[^.,;:!?，。；：！？\n]|\.(?=\w))+"


@dataclass(frozen=True, slots=True)
class Token:
    """A word or number: as written, its stem, and whether it is a name."""

    text: str
    stem: str
    start: int
    is_name: bool


@dataclass(frozen=True, slots=True)
class Slot:
    """A day, a time, a version, or a number with its unit or label."""

    sort: str
    value: str
    text: str


@dataclass(frozen=True, slots=True)
class Departure:
    """What a statement says to be gone, as stems and as written, what else it says up to there, and of which case."""

    gone: frozenset[str]
    text: str
    beside: frozenset[str] = frozenset()
    case: frozenset[str] = frozenset()


class Cues:
    """The table ``departures.toml``."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.departures = [_phrases(one) for one in table["departures"]]
        self.border = frozenset(table["border"].split())
        self.silent = frozenset(
            form for word in table["silent"].split() for form in (word, stem(word))
        )
        own = frozenset(f"{table['small']} {table['light']}".split())
        self.plain = own | STOP_WORDS | {stem(word) for word in own}
        self.numbers = {
            word: str(at) for at, words in enumerate(table["numbers"]) for word in words.split()
        }
        self.unspaced = re.compile(
            "|".join(sorted(table["small_unspaced"].split(), key=len, reverse=True))
        )
        named = (
            "ended",
            "again",
            "now",
            "unsure",
            "done",
            "undone",
            "denial",
            "firm",
            "equation",
            "lead",
            "condition",
        )
        self.pattern = {name: re.compile(table[name], re.IGNORECASE) for name in named}
        days = "|".join(f"(?P<d{at}>{_bounded(day)})" for at, day in enumerate(table["days"]))
        self.calendar = frozenset(
            stem(word) for word in re.findall(r"[a-zäöüß]{3,}", f"{days} {table['months']}".lower())
        ) | frozenset(stem(word[:-1]) for word in re.findall(r"[a-zäöüß]+s(?=\?)", days))
        self.slots = re.compile(
            rf"{days}|(?P<date>\d{{4}}-\d\d-\d\d|\b(?:{table['months']}) \d{{1,2}}\b)"
            r"|(?P<time>\b\d{1,2}:\d\d(?: ?[ap]m)?|\b\d{1,2} ?[ap]m\b)"
            r"|(?P<path>(?<![\w/])(?:/[\w.-]+)+)"
            rf"|(?P<label>{_bounded(table['labels'])}) ?(?:is |to |of |: ?)?(?P<labelled>v?\d[\d.]*\d|\d)"
            r"|(?P<version>\bv?\d+(?:\.\d+)+)"
            rf"|(?P<money>[$€£¥] ?\d[\d.,]*)|(?P<number>\b\d+(?:\.\d+)?) ?(?P<unit>{_bounded(table['units'])})",
            re.IGNORECASE,
        )


def _bounded(words: str) -> str:
    """Words as one pattern that ends at borders of words in scripts with spaces."""
    return rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])"


def _phrases(pattern: str) -> tuple[re.Pattern[str], bool]:
    """A pattern of a departure, and whether it begins with what is gone."""
    text = pattern
    for name in ("GONE", "COME"):
        end = "" if text.endswith(name) else "?"
        text = text.replace(name, rf"(?P<{name.lower()}>{_PHRASE}{end})")
    return re.compile(text, re.IGNORECASE), pattern.startswith("GONE")


@cache
def cues() -> Cues:
    """The table."""
    return Cues(tomllib.loads((files(__package__) / "departures.toml").read_text(encoding="utf-8")))


class Statement:
    """A text and its parts, each found when it is asked for. Words of the project it belongs to say nothing."""

    def __init__(self, text: str, project: str | None = None) -> None:
        self.text = text.replace("’", "'")
        self._project = frozenset(stem(one) for one in re.split(r"\W+", (project or "").lower()))

    @cached_property
    def tokens(self) -> list[Token]:
        """All words and numbers in order."""
        return list(_tokens(self.text))

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of the words that tell what it is about."""
        return self._telling(self.text)

    @cached_property
    def order(self) -> list[str]:
        """The same in order, each as often as it stands there."""
        return [one.stem for one in self.tokens if one.stem in self.words]

    @property
    def names(self) -> list[str]:
        """Names and numbers in order, in lower case."""
        return [one.text.lower() for one in self.tokens if one.is_name]

    @property
    def signs(self) -> list[str]:
        """Options, and signs that compare, in order: one in other letters is something else."""
        return _SIGNS.findall(self.text)

    @cached_property
    def slots(self) -> list[Slot]:
        """Days, times, versions and measures in order."""
        return [_slot(one) for one in cues().slots.finditer(self.text)]

    @cached_property
    def frame(self) -> list[Token]:
        """All words but those that may be left out, with one for each slot, the stem of which is its sort."""
        text = cues().pattern["lead"].sub(" ", self.text)
        found: list[Token] = []
        at = 0
        for match in cues().slots.finditer(text):
            slot = _slot(match)
            found += (
                *_tokens(text[at : match.start()]),
                Token(slot.text, f"\x00{slot.sort}", at, is_name=True),
            )
            at = match.end()
        return [one for one in (*found, *_tokens(text[at:])) if one.stem not in cues().silent]

    @property
    def negations(self) -> int:
        """How often it denies or forbids something."""
        return len(cues().pattern["denial"].findall(self.text))

    def has(self, sort: str) -> bool:
        """Whether a cue of the table is there."""
        return cues().pattern[sort].search(self.text) is not None

    def cues(self, sort: str) -> frozenset[str]:
        """The cues of a sort that are there, in lower case."""
        return frozenset(one.group().lower() for one in cues().pattern[sort].finditer(self.text))

    @cached_property
    def departures(self) -> list[Departure]:
        """What it says to be gone."""
        if self.has("condition"):
            return []
        found = [self._departure(one, leads=leads) for one, leads in cues().departures]
        for clause in _CLAUSE.split(self.text):
            if cues().pattern["unsure"].search(clause):
                break
            if not cues().pattern["ended"].search(clause):
                continue
            gone = self._telling(clause) - cues().calendar
            told = " ".join(one.text for one in _tokens(clause) if one.stem in gone)
            found.append(Departure(gone, told))
        return [one for one in found if one and one.gone]

    def _departure(self, pattern: re.Pattern[str], *, leads: bool) -> Departure | None:
        match = pattern.search(self.text)
        if match is None:
            return None
        phrase, come = match["gone"].strip(), match.groupdict().get("come") or ""
        places = [one for one in _tokens(phrase) if one.text.lower() in cues().border]
        if places:
            last = places[-1]
            phrase = phrase[last.start + len(last.text) :] if leads else phrase[: places[0].start]
        gone = self._telling(phrase) - cues().calendar
        end = match.end() + len(_CLAUSE.split(self.text[match.end() :], maxsplit=1)[0])
        around = match.group().replace(phrase, "")
        if cues().pattern["unsure"].search(self.text[:end]) or read(around).negations:
            return None
        began = max((one.end() for one in _CLAUSE.finditer(self.text[: match.start()])), default=0)
        said = self.text[began:end]
        beside = self._telling(said) - gone - self._telling(come) - cues().calendar
        case = beside & self._telling(" ".join(_CASE.findall(said)))
        return Departure(gone, phrase.strip(" ."), beside, case)

    def _telling(self, text: str) -> frozenset[str]:
        small = cues().plain
        told = (
            one for one in _tokens(text) if one.is_name or not {one.text.lower(), one.stem} & small
        )
        telling = (
            one.stem
            for one in told
            if one.is_name or (len(one.text) > 1 and not one.text.endswith("n't"))
        )
        return frozenset(telling) - self._project


@lru_cache(maxsize=4096)
def read(text: str, project: str | None = None) -> Statement:
    """A statement of a project."""
    return Statement(text, project)


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        word = match.group()
        if "\u3400" <= word[0] <= "\u9fff":
            yield from _pairs(word, match.start())
            continue
        bare = _PLURAL.sub(r"\1", _CONTRACTED.sub("", word).rstrip("'."))
        before = text[: match.start()].rstrip()
        is_name = bool(_NAME.search(bare)) or (
            bare[:1].isupper() and before[-1:] not in ".!?:;" and len(bare) > 1
        )
        for part in bare.split("-") if bare.replace("-", "").isalpha() else [bare]:
            number = cues().numbers.get(part.lower())
            yield Token(
                part, number or stem(part.lower()), match.start(), is_name or number is not None
            )


def _pairs(run: str, start: int) -> Iterator[Token]:
    """A run of Chinese as overlapping pairs of characters between words without a topic."""
    at = 0
    for border in [*cues().unspaced.finditer(run), None]:
        piece = run[at : border.start() if border else len(run)]
        for place in range(max(1, len(piece) - 1) if piece else 0):
            yield Token(
                piece[place : place + 2],
                piece[place : place + 2],
                start + at + place,
                is_name=False,
            )
        at = border.end() if border else at


def _slot(match: re.Match[str]) -> Slot:
    kind = match.lastgroup or ""
    if kind[1:].isdigit():
        return Slot("weekday", kind[1:], match.group())
    if kind == "labelled":
        return Slot(
            match["label"].lower(), match["labelled"].lower().lstrip("v"), match["labelled"]
        )
    if kind == "unit":
        return Slot(stem(match["unit"].lower()), match["number"], match.group())
    value = re.sub(r"[\s,v]", "", match.group().lower())
    if kind == "time":
        hour, _, minute = value.rstrip("apm").partition(":")
        value = f"{int(hour) % 12 + 12 * value.endswith('pm') if value.endswith('m') else int(hour)}:{minute or '00'}"
    return Slot(kind, value, match.group())


def negations(text: str) -> int:
    """How often a text denies or forbids something."""
    return read(text).negations


def firm_words(text: str) -> frozenset[str]:
    """The words by which a text denies, forbids, or says that there is no other case."""
    return read(text).cues("denial") | read(text).cues("firm")


def binds(text: str, firm: Set[str], about: str) -> bool:
    """Whether a sentence has one of some firm words, and right behind it a word of another text: "no worries, commit
    it" denies no commit.
    """
    known = {token.stem for token in read(about).tokens}
    for sort in ("denial", "firm"):
        for one in cues().pattern[sort].finditer(text):
            following = next(_tokens(_CLAUSE.split(text[one.end() :], maxsplit=1)[0]), None)
            if one.group().lower() in firm and following and following.stem in known:
                return True
    return False


def whole_numbers(text: str) -> str:
    """A text with its long numbers in one piece."""
    return _BETWEEN_DIGITS.sub("", text)


# ----------------------------------------------------------------------------
# Whether one text keeps what others say: numbers, names, denials and words, as they are spelt.


MOST_LEFT_OUT = 0.5
"""A text that leaves out more of another's topical words than this share does not stand for it."""

_VALUE = re.compile(r"[a-z]*[A-Z0-9](?:[\w.,:%/-]*\w)?")
_KIN = 5
"""Letters that two forms of a word begin with, at least, and more than which their endings do not differ."""


def lost(text: str, kept: Sequence[str]) -> str | None:
    """The first thing of a text that none of those ``kept`` has: a name, an identifier, a number, a denial.

    Spellings count, meanings do not: what is said in other words may be called lost.
    """
    mine, there = read(whole_numbers(text)), [read(whole_numbers(one)) for one in kept]
    whole = " ".join(one.text for one in there).lower()
    stems = {token.stem for one in there for token in one.tokens}
    for name in identifiers(mine.text):
        if not any(name.lower().replace("-", by) in whole for by in ("-", " ", "")):
            return name
    given = {(slot.sort, slot.value) for one in there for slot in one.slots}
    told = {
        token.stem
        for slot in mine.slots
        if (slot.sort, slot.value) in given
        for token in read(slot.text).tokens
    }
    for token in mine.tokens:
        if token.stem in stems | told or any(sign in token.text for sign in "-/_."):
            continue
        is_first = (
            token.text[:1].isupper()
            and token.stem in mine.words
            and not has_word(stems, token.stem)
        )
        if token.is_name or is_first:
            return token.text
    for slot in mine.slots:
        if (slot.sort, slot.value) not in given:
            return slot.text
    return "a denial" if mine.negations > sum(one.negations for one in there) else None


def leaves_out(text: str, kept: str) -> float:
    """The share of a text's topical words that another one has not: 0 to 1."""
    mine, there = read(text).words, {token.stem for token in read(kept).tokens}
    return sum(not has_word(there, word) for word in mine) / len(mine) if mine else 0.0


def lost_denial(text: str, left: str) -> str | None:
    """That a text denies something and what is left of it nothing; ``None`` where that is not so."""
    return "a denial is lost" if read(text).negations and not read(left).negations else None


def adds(text: str, both: Sequence[str]) -> str | None:
    """The first thing that a text says and none of the others does; ``None`` where it only says what they say."""
    if new := new_word(text, both) or swaps(text, both) or lost(text, both):
        return new
    said, others = read(text), [read(one) for one in both]
    for sort, told in (
        ("firm", "that it has no other case"),
        ("unsure", "a guess"),
        ("now", "a change"),
    ):
        if said.cues(sort).difference(*(one.cues(sort) for one in others)):
            return told
    return (
        "that something has gone"
        if said.departures and not any(one.departures for one in others)
        else None
    )


def new_word(text: str, both: Sequence[str]) -> str | None:
    """The first topical word of a text that none of the others has."""
    said, there = read(text), {token.stem for one in both for token in read(one).tokens}
    return next(
        (
            one.text
            for one in said.tokens
            if one.stem in said.words and not has_word(there, one.stem)
        ),
        None,
    )


def has_word(there: Set[str], word: str) -> bool:
    """Whether a word is among some, be it with another ending: "expire" and "expiry"."""
    return word in there or (
        len(word) >= _KIN and word.isalpha() and any(_is_kin(word, one) for one in there)
    )


def _is_kin(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    is_long = len(shorter) >= _KIN and len(longer) - len(shorter) < _KIN
    return is_long and longer.startswith(shorter[: max(_KIN, len(shorter) - 1)])


def swaps(text: str, others: Sequence[str]) -> str | None:
    """Two things that a text has in each other's place: it says "the hub asks the door" where another says "the door
    asks the hub". ``None`` where it does so nowhere, or says both, as another one does.
    """
    told = {deed for one in others for deed in _deeds(read(one))}
    for first, verb, last in _deeds(read(text)):
        if (last, verb, first) in told and (first, verb, last) not in told:
            return f"{first} and {last} swapped"
    return None


def _deeds(one: Statement) -> list[tuple[str, str, str]]:
    """What does what to what: three words that follow each other in a phrase."""
    found: list[tuple[str, str, str]] = []
    run: list[str] = []
    for token in one.tokens:
        run = (
            []
            if token.text.lower() in cues().border
            else [*run, token.stem]
            if token.stem in one.words
            else run
        )
        if token.stem in run[-1:] and len(run) > 2 and run[-1] != run[-3]:
            found.append((run[-3], run[-2], run[-1]))
    return found


def exchanges(text: str, other: str) -> str | None:
    """A number or name that stands in a text where another one of both stood in the other text: "7 days in staging, 30
    in production" where it was the other way round. ``None`` where what both have of them stands in one order.
    """
    mine, theirs = _values(text), _values(other)
    for now, before in zip(
        (one for one in mine if one in theirs), (one for one in theirs if one in mine), strict=True
    ):
        if now != before:
            return f"{mine[now]} in place of {theirs[before]}"
    return None


def _values(text: str) -> dict[str, str]:
    """Numbers and words with a capital, in the order in which they come first, as they are spelt."""
    found: dict[str, str] = {}
    for match in _VALUE.finditer(text):
        found.setdefault(match.group().lower(), match.group())
    return found
