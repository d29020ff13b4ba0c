"""Parse statements: words, names, numbers, negations and things that no longer exist."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence, Set
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any

from nacre.base.frozen import frozen
from nacre.base.text import STOP_WORDS, identifiers, stem

_HAN = "\u3400-\u9fff"
_FIRST_HAN = _HAN[0]
_TOKEN = re.compile(
    rf"\d+(?:[.,:/-]\d+)*|[{_HAN}]+"
    rf"|[^\W{_HAN}](?:(?:(?![{_HAN}])[\w'’.+#@&/_-])*[^\W{_HAN}])?[+#]*|[$€£¥%]"
)
_NAME = re.compile(r"[/_@#\d]|\w\.\w|[a-z][A-Z]|[A-Z].*[A-Z]")
_SIGNS = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*|[<>=~≤≥]=?|!=")
JOINING = frozenset({"and", "und"})
_CONTRACTED = re.compile(r"'(?:s|re|ve|ll|m|d)$")
_PLURAL = re.compile(r"^([A-Z]{2,})s$")
_CLAUSE = re.compile(r"[,;:!?，。；：！？\n]|\.(?!\w)")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[,_](?=\d{3})")
_ASIDE = re.compile(r"[,;(]\s|[，；（。！!]|(?<=\w{3})\.\s|\s(?=because |since |weil )|因为")
_PHRASE = r"(?:[^.,;:!?，。；：！？\n]|\.(?=\w))+"


@frozen
class Token:
    """A word in a statement, or a value: a day, a time, a version, or a number with its unit."""

    text: str
    stem: str
    start: int
    is_name: bool
    value: str = ""


@frozen
class Departure:
    """A mention of something that no longer exists, with its words and values.

    ``context`` contains the stems of the other words in the clause.
    """

    subject: frozenset[str]
    text: str
    values: frozenset[tuple[str, str]]
    context: frozenset[str] = frozenset()


class Cues:
    """The patterns and word lists that ``departures.toml`` defines."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.departures = [_phrases(_expand(text, table)) for text in table["departures"]]
        self.border = frozenset(table["border"].split())
        self.silent = frozenset(
            form for word in table["silent"].split() for form in (word, stem(word))
        )
        lists = ("small", "light", "border", "silent", "months", "changing", "dropping")
        text = " ".join((*(table[name] for name in lists), table["patterns"]["denial"]))
        own = STOP_WORDS.union(re.findall(r"[a-zäöüß]+", text))
        self.plain = own | {stem(word) for word in own}
        self.numbers = {
            word: str(at) for at, words in enumerate(table["numbers"]) for word in words.split()
        }
        self.unspaced = re.compile(
            "|".join(sorted(table["small_unspaced"].split(), key=len, reverse=True))
        )
        self.pattern = {
            name: re.compile(_expand(text, table), re.IGNORECASE)
            for name, text in table["patterns"].items()
        }
        days = "|".join(f"(?P<d{at}>{_word_pattern(day)})" for at, day in enumerate(table["days"]))
        self.calendar = frozenset(
            stem(word) for word in re.findall(r"[a-zäöüß]{3,}", f"{days} {table['months']}".lower())
        )
        units = _word_pattern(table["units"])
        self.slots = re.compile(
            rf"{days}|(?P<date>\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th)\b|\d{{1,2}}月(?:\d{{1,2}}[日号])?"
            rf"|(?:(?<=(?:in|im|to|on) )|(?=\w+ \d))\b(?:{table['months']})\b(?: \d{{1,2}}\b)?)"
            rf"|(?P<time>{table['times']})"
            r"|(?P<path>(?<![\w/])(?:/[\w.-]+)+)"
            rf"|(?P<label>{_word_pattern(table['labels'])})"
            rf" ?(?:{table['equals']})*(?P<labelled>v?\d[\d.]*\d|\d)(?![\d.]*\d| ?{units})"
            r"|(?P<version>(?<![A-UW-Za-uw-z\d.])v?\d+(?:\.\d+)+)"
            r"|(?P<money>[$€£¥] ?\d[\d.,]*)"
            rf"|(?P<number>(?<![A-Za-z\d.])\d+(?:\.\d+)?) ?(?P<unit>{units})",
            re.IGNORECASE,
        )


def _expand(text: str, table: dict[str, Any]) -> str:
    for name in ("changing", "dropping", "present", "was"):
        text = text.replace(name.upper(), table[name])
    return text


def _word_pattern(words: str) -> str:
    return rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])"


def _phrases(pattern: str) -> tuple[re.Pattern[str], bool]:
    text = pattern
    for name in ("GONE", "COME"):
        end = "" if text.endswith(name) else "?"
        text = text.replace(name, rf"(?P<{name.lower()}>{_PHRASE}{end})")
    return re.compile(text, re.IGNORECASE), pattern.startswith("GONE")


@cache
def cues() -> Cues:
    """Read the patterns and word lists in ``departures.toml``."""
    return Cues(tomllib.loads((files(__package__) / "departures.toml").read_text(encoding="utf-8")))


class Statement:
    """A statement to compare with others. Words in the project's name are ignored."""

    def __init__(self, text: str, project: str | None = None) -> None:
        self.text = text.replace("’", "'")
        self._project = frozenset(stem(word) for word in re.split(r"\W+", (project or "").lower()))

    @cached_property
    def tokens(self) -> list[Token]:
        """All words and numbers in the statement."""
        return list(_tokens(self.text))

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of all topical words."""
        return self._topical_stems(self.text)

    @cached_property
    def order(self) -> list[str]:
        """The stems of topical words in order, with repetitions."""
        return [token.stem for token in self.tokens if token.stem in self.words]

    @property
    def names(self) -> list[str]:
        """Names and numbers in the statement, in lower case."""
        return [token.text.lower() for token in self.tokens if token.is_name]

    @property
    def signs(self) -> list[str]:
        """Command-line options and comparison operators in the statement."""
        return _SIGNS.findall(self.text)

    @cached_property
    def slots(self) -> list[Token]:
        """Days, times, versions and measures in the statement."""
        return [_slot(match) for match in cues().slots.finditer(self.text)]

    @property
    def values(self) -> frozenset[tuple[str, str]]:
        """The types and values of the ``slots``."""
        return frozenset((slot.stem, slot.value) for slot in self.slots)

    @property
    def is_change(self) -> bool:
        """True if the statement says that something has changed."""
        return self.has("now") or self.has("moved")

    @cached_property
    def claim(self) -> str:
        """The main clause, without ``departures`` and words such as "now"."""
        text = self.text
        for departure in self.departures:
            text = text.replace(departure.text, " ", 1)
        text = " ".join(cues().pattern["lead"].sub("", text).split())
        return _ASIDE.split(text.strip(" ,，"), maxsplit=1)[0]

    @cached_property
    def frame(self) -> list[Token]:
        """The claim without optional words. Placeholders stand for days, times and measures."""
        tokens: list[Token] = []
        at = 0
        for match in cues().slots.finditer(self.claim):
            tokens += (*_tokens(self.claim[: match.start()], at, 1), _slot(match))
            at = match.end()
        tokens += _tokens(self.claim, at, 1)
        return [token for token in tokens if token.stem not in cues().silent]

    @cached_property
    def content(self) -> list[Token]:
        """The names, values and topical words in the frame, without labels such as "date"."""
        labels = {token.stem[1:] for token in self.frame if token.value}
        return [
            token
            for token in self.frame
            if token.value or (_is_topical(token) and token.text.lower() not in labels)
        ]

    @property
    def negations(self) -> int:
        """The number of negations and prohibitions in the statement."""
        return len(cues().pattern["denial"].findall(self.text))

    def has(self, sort: str) -> bool:
        """Return True if the statement matches the pattern named ``sort`` in ``departures.toml``."""
        return cues().pattern[sort].search(self.text) is not None

    def cues(self, sort: str) -> frozenset[str]:
        """Return all matches of the pattern named ``sort`` in ``departures.toml``, in lower case."""
        matches = cues().pattern[sort].finditer(self.text)
        return frozenset(match.group().lower() for match in matches)

    @cached_property
    def departures(self) -> list[Departure]:
        """Mentions of things that no longer exist."""
        if self.has("condition"):
            return []
        departures = [self._departure(pattern, leads=leads) for pattern, leads in cues().departures]
        for clause in _CLAUSE.split(self.text):
            if cues().pattern["unsure"].search(clause):
                break
            if not cues().pattern["ended"].search(clause):
                continue
            subject = self._topical_stems(clause) - cues().calendar
            words = " ".join(token.text for token in _tokens(clause) if token.stem in subject)
            departures.append(Departure(subject, words, read(clause).values))
        return [
            departure
            for departure in departures
            if departure and (departure.subject or departure.values)
        ]

    def _departure(self, pattern: re.Pattern[str], *, leads: bool) -> Departure | None:
        match = pattern.search(self.text)
        if match is None:
            return None
        phrase, verb = match["gone"].strip(), match.groupdict().get("come") or ""
        end = match.end() + len(_CLAUSE.split(self.text[match.end() :], maxsplit=1)[0])
        scope = next(
            (token for token in _tokens(verb) if token.text.lower() in cues().border), None
        )
        verb = verb[: scope.start] if scope else verb  # "SQLite in tests"
        if f" for {verb}" in self.text and not any(token.is_name for token in _tokens(verb)):
            verb = ""  # "dropped Redis for sessions" names a purpose
        borders = [token for token in _tokens(phrase) if token.text.lower() in cues().border]
        if borders and leads:
            phrase = phrase[borders[-1].start + len(borders[-1].text) :]
        elif borders:
            phrase = phrase[: borders[0].start]
            if borders[0].text.lower() in JOINING:
                end = match.start("gone") + borders[0].start
        subject = self._topical_stems(phrase) - cues().calendar
        around = match.group().replace(phrase, "")
        if cues().pattern["unsure"].search(self.text[:end]) or read(around).negations:
            return None
        ends = (border.end() for border in _CLAUSE.finditer(self.text[: match.start()]))
        clause = self.text[max(ends, default=0) : end]
        rest = clause.replace(phrase, " ", 1).replace(verb, " ", 1)
        context = self._topical_stems(rest) - subject - cues().calendar
        return Departure(subject, phrase.strip(" ."), read(phrase).values, context)

    def _topical_stems(self, text: str) -> frozenset[str]:
        topical = (token.stem for token in _tokens(text) if _is_topical(token))
        return frozenset(topical) - self._project


@lru_cache(maxsize=4096)
def read(text: str, project: str | None = None) -> Statement:
    """Parse text as a statement, with a cache."""
    return Statement(text, project)


def _is_topical(token: Token) -> bool:
    forms = {token.text.lower()} if token.is_name else {token.text.lower(), token.stem}
    if forms & cues().plain and not token.text.isupper():
        return False
    is_long = len(token.text) > 1 or token.text > _FIRST_HAN
    return token.is_name or (is_long and not token.text.endswith("n't"))


def _tokens(text: str, start: int = 0, width: int = 2) -> Iterator[Token]:
    """Yield words from ``start``, and overlapping parts of ``width`` Chinese characters."""
    for match in _TOKEN.finditer(text, start):
        word = match.group()
        if "\u3400" <= word[0] <= "\u9fff":
            yield from _parts(word, match.start(), width)
            continue
        bare = _PLURAL.sub(r"\1", _CONTRACTED.sub("", word).rstrip("'."))
        before = text[: match.start()].rstrip()
        is_name = bool(_NAME.search(bare)) or (
            bare[:1].isupper() and before[-1:] not in ".!?:;" and bare != "I"
        )
        for part in bare.split("-") if bare.replace("-", "").isalpha() else [bare]:
            number = cues().numbers.get(part.lower())
            yield Token(
                part, number or stem(part.lower()), match.start(), is_name or number is not None
            )


def _parts(run: str, start: int, width: int) -> Iterator[Token]:
    # Chinese has no spaces between words.
    at = 0
    for border in [*cues().unspaced.finditer(run), None]:
        piece = run[at : border.start() if border else len(run)]
        for place in range(max(1, len(piece) - width + 1) if piece else 0):
            part = piece[place : place + width]
            yield Token(part, part, start + at + place, is_name=False)
        at = border.end() if border else at


def _slot(match: re.Match[str]) -> Token:
    sort, text = match.lastgroup or "", match.group()
    value = re.sub(r"[\s,v]", "", text.lower())
    hour, _, minute = value.rstrip("apmuhr").partition(":")
    if sort[1:].isdigit():
        sort, value = "weekday", sort
    elif sort == "labelled":
        sort, text = match["label"].lower(), match["labelled"]
        value = text.lower().lstrip("v")
    elif sort == "unit":
        sort, value = stem(match["unit"].lower()), match["number"]
    elif sort == "time" and hour.isdecimal():
        value = f"{int(hour) % 12 + 12 * value.endswith('pm') if value.endswith('m') else int(hour)}:{minute or '00'}"
    return Token(text, f"\x00{sort}", match.end() - len(text), is_name=True, value=value)


def negations(text: str) -> int:
    """Return the number of negations and prohibitions in a text."""
    return read(text).negations


def firm_words(text: str) -> frozenset[str]:
    """Return the words in a text that negate, forbid or exclude something."""
    return read(text).cues("denial") | read(text).cues("firm")


def binds(text: str, firm: Set[str], about: str) -> bool:
    """Return True if a word in ``firm`` directly precedes a word in ``about``.

    In "no worries, commit it", for example, "no" does not directly precede "commit".
    """
    stems = {token.stem for token in read(about).tokens}
    for sort in ("denial", "firm"):
        for match in cues().pattern[sort].finditer(text):
            following = next(_tokens(_CLAUSE.split(text[match.end() :], maxsplit=1)[0]), None)
            if match.group().lower() in firm and following and following.stem in stems:
                return True
    return False


def whole_numbers(text: str) -> str:
    """Remove separators between groups of digits, such as the comma in "1,000"."""
    return _BETWEEN_DIGITS.sub("", text)


# -- Comparing texts by spelling: numbers, names, negations and words -------------


MOST_LEFT_OUT = 0.5
"""Maximum share of a text's topical words that a replacement may lack."""

_VALUE = re.compile(r"[a-z]*[A-Z0-9](?:[\w.,:%/-]*\w)?")
_KIN = 5
"""Minimum number of initial letters that two forms of a word share. Their lengths differ by less than that."""


def lost(text: str, replacements: Sequence[str]) -> str | None:
    """Return the first name, number or negation in ``text`` that no replacement contains.

    A paraphrase may count as missing.
    """
    statement = read(whole_numbers(text))
    new_statements = [read(whole_numbers(replacement)) for replacement in replacements]
    all_text = " ".join(new_statement.text for new_statement in new_statements).lower()
    stems = {token.stem for new_statement in new_statements for token in new_statement.tokens}
    for name in identifiers(statement.text):
        if not any(name.lower().replace("-", by) in all_text for by in ("-", " ", "")):
            return name
    new_values = {value for new_statement in new_statements for value in new_statement.values}
    value_stems = {
        token.stem
        for slot in statement.slots
        if (slot.stem, slot.value) in new_values
        for token in read(slot.text).tokens
    }
    for token in statement.tokens:
        if token.stem in stems | value_stems or any(sign in token.text for sign in "-/_."):
            continue
        is_first = (
            token.text[:1].isupper()
            and token.stem in statement.words
            and not has_word(stems, token.stem)
        )
        if token.is_name or is_first:
            return token.text
    for slot in statement.slots:
        if (slot.stem, slot.value) not in new_values:
            return slot.text
    new_negations = sum(new_statement.negations for new_statement in new_statements)
    return "a negation" if statement.negations > new_negations else None


def leaves_out(text: str, replacement: str) -> float:
    """Return the share (0 to 1) of a text's topical words that are missing from ``replacement``."""
    words, new_stems = read(text).words, {token.stem for token in read(replacement).tokens}
    return sum(not has_word(new_stems, word) for word in words) / len(words) if words else 0.0


def lost_denial(text: str, remainder: str) -> str | None:
    """Return a message if ``text`` contains a negation and ``remainder`` does not."""
    return "a negation is lost" if read(text).negations and not read(remainder).negations else None


def adds(text: str, both: Sequence[str]) -> str | None:
    """Describe the first thing that ``text`` adds to the originals, if there is one."""
    if new := new_word(text, both) or swaps(text, both) or lost(text, both):
        return new
    statement, statements = read(text), [read(other) for other in both]
    for sort, addition in (
        ("firm", "that nothing else applies"),
        ("unsure", "a guess"),
        ("now", "a change"),
        ("moved", "a change"),
    ):
        if statement.cues(sort).difference(*(other.cues(sort) for other in statements)):
            return addition
    if statement.departures and not any(other.departures for other in statements):
        return "that something ended"
    return None


def new_word(text: str, both: Sequence[str]) -> str | None:
    """Return the first topical word in ``text`` that is in none of the originals."""
    statement = read(text)
    stems = {token.stem for other in both for token in read(other).tokens}
    for token in statement.tokens:
        if token.stem in statement.words and not has_word(stems, token.stem):
            return token.text
    return None


def has_word(words: Set[str], word: str) -> bool:
    """Return True if ``words`` contains a word or a related form, like "expire" for "expiry"."""
    return word in words or (
        len(word) >= _KIN and word.isalpha() and any(_is_kin(word, other) for other in words)
    )


def _is_kin(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    is_long = len(shorter) >= _KIN and len(longer) - len(shorter) < _KIN
    return is_long and longer.startswith(shorter[: max(_KIN, len(shorter) - 1)])


def swaps(text: str, originals: Sequence[str]) -> str | None:
    """Return a message if ``text`` swaps two words of an original.

    For example, "the hub asks the door" swaps the nouns in "the door asks the hub".
    """
    original_triples = {triple for other in originals for triple in _triples(read(other))}
    for first, verb, last in _triples(read(text)):
        if (last, verb, first) in original_triples and (first, verb, last) not in original_triples:
            return f"{first} and {last} swapped"
    return None


def _triples(statement: Statement) -> list[tuple[str, str, str]]:
    triples: list[tuple[str, str, str]] = []
    run: list[str] = []
    for token in statement.tokens:
        if token.text.lower() in cues().border:
            run = []
        elif token.stem in statement.words:
            run = [*run, token.stem]
        if token.stem in run[-1:] and len(run) > 2 and run[-1] != run[-3]:
            triples.append((run[-3], run[-2], run[-1]))
    return triples


def exchanges(text: str, other: str) -> str | None:
    """Return a message if two texts contain the same values in a different order."""
    values, other_values = _values(text), _values(other)
    for now, before in zip(
        (value for value in values if value in other_values),
        (value for value in other_values if value in values),
        strict=True,
    ):
        if now != before:
            return f"{values[now]} in place of {other_values[before]}"
    return None


def _values(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for match in _VALUE.finditer(text):
        values.setdefault(match.group().lower(), match.group())
    return values
