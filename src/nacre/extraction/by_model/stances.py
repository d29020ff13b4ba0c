"""Reads: in what way a sentence is said: denied, asked, supposed, told of others. Data in ``stances.toml``.

What the rules of extraction know of questions and suppositions is asked first; here is what they have no words for,
and all that languages without a cue table need.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from nacre.extraction.reading.cues import language_named, language_of
from nacre.extraction.rules.reversal import content_words
from nacre.text.stems import stem

_FEW = 3
"""Words of a piece of a list: what was denied before it may be denied of it, too."""

_LETTERS = 7
"""Of a word's stem tell it from others: in many languages the rest is how it is bent."""

_REMEMBERED = 2048
_TOKEN = re.compile(
    r"[a-z]+n['’]t\b|[^\W\d_\u2e80-\u9fff]{1,5}['’](?=\w)|[\u2e80-\u9fff]|[^\W_\u2e80-\u9fff]+(?:\.\d+)*"
)
_SPLIT = re.compile(
    r"""[;:!?。！？；：，—–()（）]+\s* | ,\s+ | \s-\s | \.\s+
    | \s(?=(?:but|because|whereas|although|though|aber|sondern|weil|denn|obwohl|mais|parce|car|pero|sino|porque
      |aunque)\b)
    | \s(?=(?:as\slong\sas|solange|tant\sque|mientras|siempre\sque)\b)
    | \s(?=(?:and|und|et|y|so)\s(?:we|i|you|they|it|never|always|not|don['’]t|do|wir|ich|nie|immer|on|nous|nosotros|no
      |nunca|siempre)\b)
    | (?=但|因为|只要|所以|而是|而不是|并且)""",
    re.VERBOSE | re.IGNORECASE,
)
_CARRIED_ON = re.compile(r"(?:that|whether|dass|daß|ob|que|qu['’])(?![\w-])", re.IGNORECASE)
"""How a clause begins that is part of what is said before the comma."""

_OTHERS = frozenset({"he", "she", "they", "everyone"})
_FIRST = re.compile(
    r"^\W*(?:and|so|but|then|well|ok(?:ay)?|also|und|also|aber|et|mais|alors|y|pero)\b\W*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause: its ``tokens`` in order, the stems of the ``words`` that mean something, how often it is denied, and
    what it has of words that deny by what they mean. ``is_loose`` is a piece of a list behind something denied.
    """

    text: str
    tokens: tuple[str, ...]
    words: frozenset[str]
    is_denied: bool
    turning: frozenset[str]
    limiting: frozenset[str]
    is_loose: bool = False

    def covers(self, words: frozenset[str]) -> float:
        """The share of some words that it has."""
        return len(words & self.words) / len(words) if words else 0.0


@dataclass(frozen=True, slots=True)
class _Data:
    """What the table holds, ready for use."""

    denials: frozenset[str]
    first_halves: frozenset[str]
    turning: frozenset[str]
    turning_keys: frozenset[str]
    silent: frozenset[str]
    joining: frozenset[str]
    passive: frozenset[str]
    nobody: frozenset[str]
    opposites: frozenset[tuple[str, str]]
    chinese_opposites: tuple[tuple[str, str], ...]
    beginnings: tuple[tuple[str, str], ...]
    patterns: dict[str, re.Pattern[str]]


@cache
def data() -> _Data:
    """The table of stances."""
    table = tomllib.loads((files(__package__) / "stances.toml").read_text(encoding="utf-8"))
    denial, opposites, silent = table["denial"], table["opposites"], table["silent"]
    pairs = [pair.split() for pair in opposites["pairs"].replace("\n", "|").split("|") if pair.strip()]
    return _Data(
        denials=_listed(denial["words"]), first_halves=_listed(denial["first_halves"]),
        turning=frozenset(stem(word) for word in table["turning"]["words"].split()),
        turning_keys=frozenset(key_of(word) for word in table["turning"]["words"].split()),
        silent=_listed(silent["words"]),
        joining=_listed(silent["joining"]) | frozenset(silent["chinese_joining"]),
        passive=_listed(silent["passive"]) | frozenset(silent["chinese_passive"]),
        nobody=_listed(table["reporting"]["nobody"]) | (language_named("en").subject.stop - _OTHERS),
        opposites=frozenset(
            both for pair in pairs for one, other in _compared(*pair) for both in _both(stem(one), stem(other))
        ),
        chinese_opposites=tuple(
            both for pair in opposites["chinese"].replace("\n", "|").split("|") if pair.strip()
            for both in _both(*pair.split())
        ),
        beginnings=tuple(_both_beginnings(opposites["beginnings"])),
        patterns={f"{name} {key}": re.compile(value, re.IGNORECASE) for name, key, value in _expressions(table)},
    )  # fmt: skip


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _both(one: str, other: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (one, other), (other, one)


def _compared(one: str, other: str) -> Iterator[tuple[str, str]]:
    """Two words, and their comparatives and superlatives if they had any: "longest" and "shortest"."""
    yield from ((f"{one.removesuffix('e')}{end}", f"{other.removesuffix('e')}{end}") for end in ("er", "est"))
    yield one, other


def _both_beginnings(listed: str) -> Iterator[tuple[str, str]]:
    for pair in listed.split():
        one, _, other = pair.partition(":")
        yield from _both(one.strip("-"), other.strip("-"))


_PATTERNS = {
    "denial": ("harmless", "chinese"),
    "listing": ("pattern",),
    "limiting": ("pattern", "complaint", "no_need", "permits", "pointing"),
    "supposing": ("may_be", "condition", "kept", "stands_for", "wishes"),
    "asking": ("question", "request", "order", "suggestion", "agreement"),
    "reporting": ("before", "behind", "chinese"),
}


def _expressions(table: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, keys in _PATTERNS.items():
        yield from ((name, key, table[name][key]) for key in keys)


@lru_cache(maxsize=_REMEMBERED)
def clauses(sentence: str) -> tuple[Clause, ...]:
    """The clauses of a sentence, in order."""
    found: list[Clause] = []
    lists = data().patterns["listing pattern"]
    bare = data().patterns["asking suggestion"].sub(" ", unicodedata.normalize("NFKC", sentence))
    for piece in _pieces(bare):
        one = _read(piece)
        if found and one.is_denied and not (one.words or found[-1].turning) and not bare.rstrip().endswith(("?", "？")):
            found[-1] = replace(found[-1], is_denied=True)  # "that we …, we do not"
        if found and (found[-1].is_denied or found[-1].is_loose):
            one = replace(one, is_loose=len(one.tokens) <= _FEW or bool(lists.search(piece)))
        found.append(one)
    return tuple(found)


@lru_cache(maxsize=_REMEMBERED)
def whole(sentence: str) -> Clause:
    """A sentence as one clause, of which only its words are sure: some of it may be denied, and some not."""
    return replace(_read(unicodedata.normalize("NFKC", sentence)), is_loose=True)


def words_of(text: str) -> frozenset[str]:
    """The stems of the words of a text that mean something, without those that only deny."""
    return frozenset[str]().union(*(one.words for one in clauses(text)))


def _pieces(sentence: str) -> list[str]:
    found: list[str] = []
    for piece in _SPLIT.split(sentence):
        if not piece or not piece.strip():
            continue
        if found and _CARRIED_ON.match(piece.strip()):
            found = [f"{' '.join(found)} {piece}"]
        else:
            found.append(piece.strip())
    return found


def _read(text: str) -> Clause:
    known, lowered = data(), text.lower()
    tokens = tuple(one if one.endswith("t") else one.rstrip("'’") for one in _TOKEN.findall(lowered))
    language = language_of(text)
    if not language.joiner:
        bare = known.patterns["denial chinese"].sub("", lowered)
        words = content_words(bare, language)
    else:
        silent = language.subject.stop | known.silent | known.denials
        words = frozenset(key_of(one) for one in tokens if one not in silent and not _is_denial(one) and len(one) > 1)
        words |= frozenset(one for one in tokens if one.isdigit())
    turning = frozenset(map(stem, tokens)) & known.turning
    return Clause(
        text=text, tokens=tokens, words=words - known.turning_keys, is_denied=_is_denied(text, tokens), turning=turning,
        limiting=frozenset(known.patterns["limiting pattern"].findall(lowered)),
    )  # fmt: skip


def key_of(word: str) -> str:
    """What tells a word from others, however it is bent."""
    return stem(word)[:_LETTERS]


def _is_denied(text: str, tokens: tuple[str, ...]) -> bool:
    known = data().patterns
    bare = known["denial harmless"].sub(" ", text.lower())
    if known["denial chinese"].search(bare):
        return True
    left = _TOKEN.findall(bare) if bare != text.lower() else tokens
    return any(_is_denial(one.rstrip("'’")) for one in left)


def _is_denial(token: str) -> bool:
    return token in data().denials or token.endswith(("n't", "n’t"))


def is_asked(sentence: str) -> bool:
    """Whether a sentence asks, and is no wish in the form of a question."""
    known, language = data().patterns, language_of(sentence)
    text = _FIRST.sub("", language.trim(sentence)) or sentence
    if not known["asking question"].search(sentence) and (
        known["asking order"].match(text) or not language.reject["question"].search(text)
    ):
        return False
    return not (known["asking request"].search(sentence) or known["asking suggestion"].search(sentence))


def is_wish(sentence: str) -> bool:
    """Whether a question may be meant as a wish: "can we sort it by date?" """
    language = language_of(sentence)
    return bool(language.wording.polite.match(language.trim(sentence)))


def points_back(text: str) -> bool:
    """Whether a text speaks of what was said elsewhere."""
    return bool(data().patterns["limiting pointing"].search(text))


def is_free(said: str, claim: str) -> bool:
    """Whether what need not be done is told as what may be done otherwise."""
    known = data().patterns
    return bool(known["limiting no_need"].search(said) and known["limiting permits"].search(claim))


def is_complaint(text: str) -> bool:
    """Whether a text says what somebody failed to do."""
    return bool(data().patterns["limiting complaint"].search(text))


def is_agreement(sentence: str) -> bool:
    """Whether a sentence agrees to what was said before it."""
    language = language_of(sentence)
    known = data().patterns
    if known["asking question"].search(sentence) or language.answers.no.match(sentence):
        return False
    cues = (language.accepted.yes, language.answers.yes, language.concluded.confirmed, known["asking agreement"])
    return any(one.match(sentence) for one in cues)


def is_supposed(sentence: str, claim: str) -> bool:
    """Whether a sentence says only what may be or might be done, and a claim has nothing of that left."""
    known = data().patterns
    if is_complaint(sentence) or any(known[f"supposing {name}"].search(claim) for name in ("may_be", "kept")):
        return False
    language = language_of(sentence)
    text = known["supposing wishes"].sub(" ", sentence)
    if language.reject["hypothetical"].search(_FIRST.sub("", language.trim(text)) or text):
        return True
    wanted = words_of(claim)
    condition = known["supposing condition"].search(text)
    if condition and not known["supposing stands_for"].search(claim) and _drops(condition[0], wanted):
        return True
    bearing = [one for one in clauses(text) if one.covers(wanted)]
    best = max((one.covers(wanted) for one in bearing), default=0.0)
    return bool(bearing) and all(
        known["supposing may_be"].search(one.text) for one in bearing if one.covers(wanted) == best
    )


def _drops(condition: str, wanted: frozenset[str]) -> bool:
    """Whether a claim leaves out a condition, or is nothing but what it supposes."""
    said = words_of(condition)
    if len(said) < 2:
        return False
    return not said & wanted or len(said & wanted) == len(wanted)


def is_of_another(sentence: str, claim: str) -> bool:
    """Whether a sentence tells what somebody else says or wants, and a claim does not say who."""
    known, told = data(), frozenset(_TOKEN.findall(claim.lower()))
    wanted = words_of(claim)
    best = max((one.covers(wanted) for one in clauses(sentence)), default=0.0)
    parts = [one.text for one in clauses(sentence)]
    held = [at for at, one in enumerate(clauses(sentence)) if one.covers(wanted) == best]
    for at in held:
        led = parts[at - 1] if at and _TOKEN.findall(parts[at - 1].lower())[2:] == [] else ""
        follows = parts[at + 1] if at + 1 < len(parts) else ""
        who = _who(f"{led} {parts[at]}, {follows}" if led or follows else parts[at], known)
        if not who or who & told or all(one in claim for one in who):
            return False
    return bool(held)


def _who(text: str, known: _Data) -> frozenset[str]:
    name = "chinese" if not language_of(text).joiner else "before"
    for match in (
        *known.patterns[f"reporting {name}"].finditer(text),
        *known.patterns["reporting behind"].finditer(text),
    ):
        who = next(one for one in match.groupdict().values() if one).lower()
        if who not in known.nobody | known.denials and not who.endswith(("我", "我们", "你")):
            return frozenset({who})
    return frozenset()
