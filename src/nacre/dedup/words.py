"""The words of a statement as comparison sees them: stems, names, and amounts with their units."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache

from nacre.dedup.cues import ChangeLanguage, kinds_of_things, languages, with_capital
from nacre.text.stems import singular
from nacre.text.stems import stem as without_endings

_UNIT = "(?:秒|分钟|小时|天|周(?![年期])|个月|年(?!度))"
_SIGNS = "一二两三四五六七八九十百千"
_COUNTED = f"(?<![第周期统唯同单万逐])[{_SIGNS}]+(?={_UNIT})"
"""A Chinese number in words, before what it measures."""

_TOKEN = re.compile(
    rf"""
    (?:https?://|~?/|[A-Za-z.][\w.-]*/)[\w./@~-]*[\w/]     # addresses and paths
    | \d{{4}}-\d\d-\d\d | \d{{1,2}}:\d\d            # days and times
    | \d+(?:\.\d+)?e-?\d+\b                        # numbers with an exponent
    | [vV]?\d+(?:[.,]\d+)+ | [vV]\d+ | \d+          # versions and numbers
    | (?P<counted>{_COUNTED})                      # Chinese numbers in words
    | (?:(?<=[\d{_SIGNS}])|(?<=\d\s)){_UNIT}        # what a number measures
    | (?:(?!{_COUNTED})[\u3400-\u9fff])+            # Chinese
    | [^\W\d\u3400-\u9fff][^\W\u3400-\u9fff]*(?:['’.+\#@&_-]+[^\W\u3400-\u9fff]+)*[+\#]*  # words and names
    | %
    """,
    re.VERBOSE,
)
_IDENTIFIER = re.compile(r"[/_@#]|\w\.\w|[a-z][A-Z]|[A-Z].*[A-Z]|\d")
_VERSION = re.compile(r"[vV]?\d+(?:\.\d+)+|[vV]\d+")
_TIME = re.compile(r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?")
_NOON = 12
_TEN = 10
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e-?\d+)?")
_DURATIONS = {
    "ms": 0.001, "millisecond": 0.001, "second": 1, "sec": 1, "s": 1, "minute": 60, "min": 60, "hour": 3600, "h": 3600,
    "day": 86400, "week": 604800, "fortnight": 1209600, "month": 2592000, "quarter": 7776000, "year": 31536000,
    "秒": 1, "分钟": 60, "小时": 3600, "天": 86400, "周": 604800, "个月": 2592000, "月": 2592000, "年": 31536000,
}  # fmt: skip
_SIZES = {"b": 1, "kb": 1e3, "k": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1e3, "mib": 1e6, "gib": 1e9}
_FREQUENCIES = {"hourly": 3600, "daily": 86400, "nightly": 86400, "weekly": 604800, "monthly": 2592000}
_FREQUENCIES |= {"biweekly": 1209600, "fortnightly": 1209600, "quarterly": 7776000, "yearly": 31536000}
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_PER = frozenset({"a", "an", "per", "each", "every", "/"})
_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTH = {name[:size]: at for at, name in enumerate(_MONTHS, start=1) for size in (3, len(name))}
_LABEL_BEFORE = re.compile(r"[A-Za-z][\w.+#-]*$")


@dataclass(frozen=True, slots=True)
class Word:
    """One word: as written, its stem, where it stands; a name is capitalised inside a sentence or an identifier."""

    text: str
    stem: str
    start: int
    is_name: bool = False
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Amount:
    """Something counted, measured or dated: its sort, its value on one scale, and the word it counts or labels."""

    sort: str
    value: str
    unit: str
    start: int
    span: int = 1
    text: str = ""

    def says(self, other: Amount) -> bool:
        """Whether both are the same."""
        return (self.sort, self.value, self.unit) == (other.sort, other.value, other.unit)

    def conflicts(self, other: Amount) -> bool:
        """Whether both may answer one question, and answer it differently."""
        if self.sort != other.sort or self.value == other.value:
            return False
        return self.unit == other.unit or not self.unit or not other.unit


def is_chinese(sign: str) -> bool:
    """Whether a character is a Chinese one: words have no borders there."""
    return "\u3400" <= sign <= "\u9fff"


def tokens(text: str, language: ChangeLanguage) -> list[Word]:
    """All words in order; runs of Chinese become overlapping pairs of characters."""
    found: list[Word] = []
    begins = True
    for match in _TOKEN.finditer(text):
        raw = match.group().replace("’", "'")
        if is_chinese(raw[0]) and not match["counted"]:
            found += _pairs(raw, match.start(), language)
            continue
        between = text[found[-1].start + len(found[-1].text) : match.start()] if found else ""
        begins = not found or any(sign in between for sign in ".!?:;\n")
        bare = raw.removesuffix("'s").rstrip("'")
        is_name = bool(_IDENTIFIER.search(bare)) or (bare[:1].isupper() and not begins)
        for part in _parts(bare):
            found.append(Word(part, stem(part, language), match.start(), is_name and len(part) > 1, begins))
    return found


def _parts(word: str) -> list[str]:
    """A compound of plain words counts as its words; an identifier stays whole."""
    if "-" in word and not any(sign.isdigit() for sign in word) and "/" not in word and "." not in word:
        return [part for part in word.split("-") if part]
    return [word]


def _pairs(run: str, start: int, language: ChangeLanguage) -> list[Word]:
    words = language.words
    dividers = sorted((*words.stop, *words.light, *language.alike), key=len, reverse=True)
    pieces = re.split(f"({'|'.join(map(re.escape, dividers))})", run) if dividers else [run]
    found: list[Word] = []
    for piece in pieces:
        whole = piece in words.light or piece in language.alike or len(piece) < 2
        for at in range(1 if whole else len(piece) - 1):
            pair = piece if whole else piece[at : at + 2]
            if pair:
                found.append(Word(pair, language.alike.get(pair, pair), start + at))
        start += len(piece)
    return found


def stem(word: str, language: ChangeLanguage) -> str:
    """A word without its endings, and one word for those that mean the same here."""
    return _stem(word, language.language)


@lru_cache(maxsize=50_000)
def _stem(word: str, name: str) -> str:
    language = next(one for one in languages() if one.language == name)
    lower = unicodedata.normalize("NFKC", word).lower()
    if lower in language.alike:
        return language.alike[lower]
    cut = without_endings(lower)
    return language.alike.get(cut, cut)


def amounts(words: list[Word], text: str, language: ChangeLanguage) -> list[Amount]:
    """The amounts among some words, in order; ``span`` is how many words each takes, ``text`` is as written."""
    found: list[Amount] = []
    at = 0
    while at < len(words):
        amount, used = _amount(words, at, text, language)
        if amount:
            end = words[at + used - 1]
            written = text[amount.start : end.start + len(end.text)]
            found.append(replace(amount, span=used, text=written))
        at += max(1, used)
    return found


def _amount(words: list[Word], at: int, text: str, language: ChangeLanguage) -> tuple[Amount | None, int]:
    word = words[at]
    lower = word.text.lower()
    after = [one.text.lower() for one in words[at + 1 : at + 4]]
    if clock := _clock(lower, after[0] if after else ""):
        return Amount("time", clock[0], "", word.start), clock[1]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", lower):
        return Amount("date", lower[5:], "", word.start), 1
    if lower in _MONTH and word.text[:1].isupper() and after and after[0].isdigit():
        return Amount("date", f"{_MONTH[lower]:02}-{int(after[0]):02}", "", word.start), 2
    if singular(lower) in _WEEKDAYS:
        return Amount("weekday", singular(lower), "", word.start), 1
    if lower in _FREQUENCIES:
        return Amount("frequency", f"{_FREQUENCIES[lower]:.15g}", "", word.start), 1
    if _VERSION.fullmatch(word.text):
        return Amount("version", lower.lstrip("v"), _label(words, at, text), word.start), 1
    number = _number_of(lower, language)
    if number is not None:
        return _measure(words, at, number, text, language)
    return None, 1


def _clock(lower: str, after: str) -> tuple[str, int] | None:
    """A time of day as hours and minutes of 24 hours, and how many words tell it: "14:30", "2 pm"."""
    match = _TIME.fullmatch(lower)
    half = after.replace(".", "")
    is_half = half in ("am", "pm") and match is not None and 1 <= int(match["hour"]) <= _NOON
    if match is None or not (match["minute"] or is_half):
        return None
    hour = int(match["hour"]) % _NOON + _NOON * (half == "pm") if is_half else int(match["hour"])
    return f"{hour:02}:{match['minute'] or '00'}", 1 + is_half


def _number_of(lower: str, language: ChangeLanguage) -> float | None:
    if _NUMBER.fullmatch(lower):
        return float(lower.replace(",", ""))
    if lower in _TIMES:
        return _TIMES[lower]
    known = language.words.numbers
    if is_chinese(lower[0]) and all(sign in known for sign in lower):
        return _in_signs([known[sign] for sign in lower])
    value = known.get(lower)
    return float(value) if value is not None and (value > 1 or lower == "one") else None


def _in_signs(signs: list[int]) -> float:
    """The value of a Chinese number in words: 三十五 is three times ten and five."""
    total, digit = 0, 0
    for sign in signs:
        total, digit = (total + (digit or 1) * sign, 0) if sign >= _TEN else (total, digit + sign)
    return float(total + digit)


def _measure(
    words: list[Word], at: int, number: float, text: str, language: ChangeLanguage
) -> tuple[Amount | None, int]:
    """A number with what it counts: a duration, a size, a rate, or so many of something."""
    word = words[at]
    after = [one.text.lower() for one in words[at + 1 : at + 4]]
    unit = singular(after[0]) if after else ""
    if word.text.lower() in _TIMES or unit == "time":
        rest = after if word.text.lower() in _TIMES else after[1:]
        if len(rest) > 1 and rest[0] in _PER and singular(rest[1]) in _DURATIONS:
            return Amount("frequency", f"{_DURATIONS[singular(rest[1])] / number:.15g}", "", word.start), 3
        return (Amount("number", f"{number:.15g}", "time", word.start) if unit == "time" else None), 1
    before = words[at - 1].text.lower() if at else ""
    if unit in _DURATIONS:
        sort = "frequency" if before in ("every", "each", "per") else "duration"
        return Amount(sort, f"{number * _DURATIONS[unit]:.15g}", "", word.start), 2
    if unit in _SIZES:
        return Amount("size", f"{number * _SIZES[unit]:.15g}", "", word.start), 2
    if text[max(0, word.start - 1) : word.start] in ("$", "€", "£", "¥"):
        return Amount("money", f"{number:.15g}", "", word.start), 1
    if unit in ("%", "percent"):
        return Amount("share", f"{number:.15g}", "", word.start), 2
    period = _period(after, text[word.start : word.start + 40])
    if period:
        return Amount("rate", f"{number / period:.15g}", "", word.start), 2
    if word.text.lower() == "one" and not _counts(words, at, language):
        return None, 1
    label = _label(words, at, text)
    silent = language.words.stop | language.words.border
    counted = "" if unit in silent or (after and after[0] in silent) else unit
    return Amount("number", f"{number:.15g}", label or counted, word.start), 1


def _period(after: list[str], text: str) -> float | None:
    """The time that a rate is for: "60 requests a minute", "200/min"."""
    slash = re.match(r"\d+(?: \w+)? ?/ ?(\w+)", text)
    name = slash.group(1) if slash else after[2] if len(after) > 2 and after[1] in _PER else None
    return _DURATIONS.get(singular(name)) if name else None


def _label(words: list[Word], at: int, text: str) -> str:
    """The word right before a number that says what it is the number of: "port 8080", "Python 3.11".

    A name before a number in letters says nothing of it: "in the CLI two commits …".
    """
    if not at:
        return ""
    before = words[at - 1]
    gap = text[before.start + len(before.text) : words[at].start]
    is_named = before.is_name and words[at].text[0].isdigit()
    is_label = gap in (" ", "-", "") and (is_named or before.text.lower() in _LABELS)
    return before.stem if is_label else ""


_LABELS = frozenset(
    "port version node python java go ruby php windows edge chrome firefox safari step phase level".split()
)


def labelled(found: list[Amount], stems: tuple[str, ...]) -> list[Amount]:
    """Amounts with the port they are: "the port of the gate is 8443"."""
    is_port = "port" in stems
    bare = [one for one in found if one.sort == "number" and not one.unit]
    return [replace(one, unit="port") if is_port and bare == [one] else one for one in found]


def is_number_of_a_thing(words: list[Word], amount: Amount, text: str, language: ChangeLanguage) -> bool:
    """Whether a number tells which one is meant ("bridge 3", "rule number 4"), and not how many or which version."""
    at = next(at for at, word in enumerate(words) if word.start == amount.start)
    if amount.sort == "version":
        return words[at].text[0] in "vV" and not amount.unit and _counts(words, at, language)
    if amount.sort != "number" or not at:
        return False
    before, known = words[at - 1], language.words
    lower = before.text.lower()
    if text[before.start + len(before.text) : amount.start] not in (" ", " #") or not lower.isalpha() or before.is_name:
        return False
    says_what = known.stop | known.light | known.attribute | known.border | _LABELS
    return lower not in says_what and lower not in kinds_of_things() and not _counts(words, at, language)


def _counts(words: list[Word], at: int, language: ChangeLanguage) -> bool:
    """Whether a number is followed by what it counts."""
    if at + 1 >= len(words) or words[at + 1].text[0].isdigit():
        return False
    after, known = words[at + 1].text.lower(), language.words
    return after not in known.stop | known.light | known.border


def is_small(word: Word, language: ChangeLanguage) -> bool:
    """Whether a word says nothing of what a statement is about; "Go" with its capital is a name."""
    lower = word.text.lower()
    return lower in language.words.stop and not (word.is_name and lower in with_capital())


def as_one(first: Word, second: Word, language: ChangeLanguage) -> str:
    """Two neighbouring words as one: "back up" is "backup", "auto increment" is "autoincrement"."""
    return language.alike.get(first.stem + second.stem, first.stem + second.stem)
