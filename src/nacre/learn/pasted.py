"""The data: words by which a message that holds a paste is read. Data in ``pasted.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from nacre.base.text import identifiers


@cache
def words_of(name: str) -> re.Pattern[str]:
    """One of the table's lists of words, in any place of a text."""
    words = _data()[name]
    return re.compile(rf"\b{_one_of(words['words'])}\b|{_one_of(words['anywhere'])}", re.IGNORECASE)


@cache
def forwarded_words() -> re.Pattern[str]:
    """Who forwards says so first."""
    words = _data()["forwarded"]
    found = rf"\W*(?:{_one_of(words['words'])}\b|{_one_of(words['marks'])}\s?[:：])"
    return re.compile(found, re.IGNORECASE)


@cache
def labelled_words() -> re.Pattern[str]:
    """How a text of somebody else's is named before a colon: "Issue: …", "Bug report from a user: …"."""
    words = _data()["labels"]
    found = rf"\W*(?:\w+\W+){{0,2}}(?:{_one_of(words['words'])}\b[^:：.!?]{{0,40}}|{_one_of(words['anywhere'])})[:：]"
    return re.compile(found, re.IGNORECASE)


@cache
def saying_words() -> re.Pattern[str]:
    """Somebody says something."""
    words, people = _data()["pointing"], _one_of(_data()["people"]["anywhere"])
    said, texts = _one_of(words["said"]), _one_of(words["texts"])
    return re.compile(rf"\b{said}\b|\b{texts}\s+say\b|{people}说(?!明)", re.IGNORECASE)


@cache
def quoting_words() -> re.Pattern[str]:
    """Somebody says or writes what follows."""
    words = _data()["pointing"]
    said = _one_of([*words["said"], *words["saying"], "say"])
    return re.compile(rf"\b{said}(?:\W+\w+){{0,2}}$|(?:说|写道|表示)$", re.IGNORECASE)


@cache
def author_words() -> re.Pattern[str]:
    """What stands before who wrote a text: "from", "by"."""
    return re.compile(
        rf"\b{_one_of([*_data()['pointing']['by'], 'per', 'via'])}\s|来自", re.IGNORECASE
    )


@cache
def pointing_words() -> re.Pattern[str]:
    """Words that point at a text of somebody else's: "the reviewer", "comment by", "says"."""
    words = _data()["pointing"]
    pointers, texts, by = (_one_of(words[name]) for name in ("pointers", "texts", "by"))
    saying = _one_of([*words["said"], *words["saying"]])
    found = rf"\b{pointers}\b.{{0,40}}\b{texts}\b|\b{texts}\s+{by}\b|\b{saying}\b|{_one_of(words['anywhere'])}"
    return re.compile(found, re.IGNORECASE)


def _one_of(words: Sequence[str]) -> str:
    return f"(?:{'|'.join(words)})"


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "pasted.toml").read_text(encoding="utf-8"))


# ----------------------------------------------------------------------------
# The words of people who say plainly what is to be kept, in many languages at once. Data in
# ``cues.toml``.


_CLAUSE = (
    r"(?:^|[,;:.!?—–)-]\s*"
    r"|\b(?:and|but|so|ok(?:ay)?|please|pls|kindly|btw|do|also|just|und|aber|bitte|et|mais|y|e|mas|i|и|ve|en|och)\s+)"
)
"""Where an order may begin."""

_BEGINNING = "^"
_BEFORE = {
    "remember": _CLAUSE,
    "decided": _CLAUSE,
    "changed": _CLAUSE,
    "ordered": _BEGINNING,
    "definite": _BEGINNING,
}


@dataclass(frozen=True, slots=True)
class Cues:
    """Expressions, each of which stands for a list of the table."""

    remember: re.Pattern[str]
    requested: re.Pattern[str]
    habit: re.Pattern[str]
    kept_words: re.Pattern[str]
    announced: re.Pattern[str]
    mentioned: re.Pattern[str]
    this_way: re.Pattern[str]
    owned: re.Pattern[str]
    own_errand: re.Pattern[str]
    not_remembered: re.Pattern[str]
    rule: re.Pattern[str]
    ordered: re.Pattern[str]
    lasting: re.Pattern[str]
    place: re.Pattern[str]
    standing: re.Pattern[str]
    preferred: re.Pattern[str]
    decided: re.Pattern[str]
    changed: re.Pattern[str]
    practice: re.Pattern[str]
    definite: re.Pattern[str]
    passing: re.Pattern[str]
    step: re.Pattern[str]
    supposed: re.Pattern[str]
    taken_back: re.Pattern[str]
    irony: re.Pattern[str]
    asking: re.Pattern[str]
    pointing: re.Pattern[str]


def reads_as_rule(text: str) -> bool:
    """Whether a text says anywhere, in the words of a standing rule, that it is to hold, of whatever kind it is told to
    be.
    """
    known = cues()
    return any(one.search(text) for one in (known.rule, known.lasting, known.place))


@cache
def cues() -> Cues:
    """The table."""
    table = tomllib.loads((files(__package__) / "cues.toml").read_text(encoding="utf-8"))
    table["lasting"] = table["ordered"]
    return Cues(
        **{name: _pattern(lists, before=_BEFORE.get(name, "")) for name, lists in table.items()}
    )


def _pattern(lists: Mapping[str, str], before: str = "") -> re.Pattern[str]:
    spaced, unspaced = (
        "|".join(lists.get(name, "").split("\n")[:-1]) for name in ("spaced", "unspaced")
    )
    parts = [rf"{before}(?<![\w-])(?:{spaced})(?![\w])"] if spaced else []
    parts += [rf"{before if before == _BEGINNING else ''}(?:{unspaced})"] if unspaced else []
    return re.compile("|".join(parts), re.IGNORECASE)


# ----------------------------------------------------------------------------
# Reads: which lines of a message somebody else wrote, by where they stand, how they are marked, and
# their style.
#
# Who pastes says a few words before it or after it, in their own way. So a message falls into what is
# typed at its
# beginning, what is pasted, and what is typed at its end. The paste is told by marks that nobody
# types to an agent in
# passing (who said it and when, a severity, a file and line, fields of a form, a headline, a frame),
# or by words that
# point at it ("the reviewer says:"); its end by the owner's manner: of themselves, asking, or less
# polished.


_WORD = re.compile(r"\w+")
_ITEM = re.compile(r"\s*(?:[-*•+–]|\d{1,2}[.)]|[a-z][.)])\s+\S")
_NAMED = re.compile(
    r"\s*(?:[\[(<]?\d{1,2}:\d\d[^\s\w]*\s+)?[<@]?[^\W\d_][\w .'’-]{0,24}>?(?:[,\s]+\d{1,2}:\d\d)?\s?[:：>]\s+\S"
)
_STAMPED = re.compile(
    r"\s*\[?\(?\d{1,2}:\d\d(?::\d\d)?\b|.{1,30}\b\d{1,2}:\d\d[:)\]]|.{0,40}\b\d{1,2}:\d\d\s*$|.{0,40}\b\d+ \w+ ago$"
)
_FIELD = re.compile(r"\s*[\w][\w .'’/-]{1,24}\s?[:：]\s*\S.{0,80}$")
_PLACED = re.compile(
    r"[\w-]+\.[a-z]{1,5}(?::\d+|#L\d+|[\`)]*,?\s+(?:L|around lines?|lines?|Zeile|línea|ligne|riga|linha|строка|regel)"
    r"\s?\d+)"
    r"|\d+\s?行目"
)
_GRADED = re.compile(
    r"""
    \s*(?:\d+[.)]\s*)?[*_\[(【🔴🟠🟡🟢🔵⚠⛔❌❗💡🛠📍✅🤖️\s-]*(?:severity|priority|critical|high|medium|low|nit(?:pick)?
      |major|minor|blocker|suggestion|potential\ issue|P[0-3]|bloqueante|sugestão|crítico|重大|軽微|建议|严重)\b
      \s*(?:[\])】:*_—–-]|$)
    | .{0,80}\((?:critical|major|minor|low|medium|high)\)
    | .{0,60}\b(?:priority|severity|priorität|prioridad|priorité|prioriteit)\s?:
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BOLD = re.compile(
    r"\s*(?:\*\*[^*]+\*\*|_[^_]+_)\s*(?:[|:：.].*)?$|\s*\d+[.)]\s+\*\*|\s*[-*]\s+\*\*"
)
_FRAMED = re.compile(
    r"\s*(?:</?[a-z-]+[^>]*>|\[/?[A-Z][\w -]*(?:[:\]]| from | to )|<<<|={3,}|-{3,}\s?\w|【.{2,40}】"
    r"|\*\*[^*]+\*\*\s+[`—–])"
)
_HEADING = re.compile(r"\s*#{1,6}\s+\S|\s*(?:Issue )?#\d+\b.{0,30}(?:opened|—|–)|[A-Z]{2,8}-\d+\b")
_COMMENT = re.compile(r"\s*(?://|/\*)")
_PROMPT = re.compile(
    r"\s*(?:\([\w.-]+\)\s*)?(?:[$%❯➜]|[\w.-]+@[\w.-]+[:~ ][^\n$#%>]{0,80}[$#%>]|PS [A-Z]:\\[^\n>]{0,80}>)\s+[A-Za-z./~]"
    r"|\s*(?:>>>|In \[\d+\]:|irb\([\w. -]{0,30}\)[:\d]*>|\w{1,30}=#"
    r"|(?:mysql|mariadb|sqlite|redis|mongo|julia|scala|ghci|iex)>)\s+\S"
)
"""How a terminal, or what runs a line of code at a time, shows what was typed: below it stands what that put out."""
_GLYPH = re.compile(
    r"\s*[\u2300-\u23ff\u2500-\u25ff\u2713-\u2718\u2722-\u274b\u2768-\u2775\u2794-\u27bf›·∙]\s*\S"
)
"""How an agent's host begins what it shows."""
_GREETING = re.compile(
    r"""
    ^[ \t]*(?:(?:dear|hi|hello|hey|good\ (?:morning|afternoon|evening|day)|greetings|sehr\ geehrte\w*|liebe[rs]?|hallo
      |guten\ tag|bonjour|ch(?:er|ère)s?|hola|buenos\ d[ií]as|estimad[oa]s?)\b|尊敬的|亲爱的|[您你]好)[^.?\n]{0,60}$
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_CLOSING = re.compile(
    r"""
    ^[ \t]*(?:(?:(?:kind(?:est)?|best|warm(?:est)?|many)\ )?regards|(?:all\ the\ )?best|yours\b.{0,20}|sincerely|cheers
      |(?:many\ )?thanks|thank\ you|(?:mit\ )?(?:freundlichen?|besten?|vielen?|lieben?)\ gr[uü](?:ß|ss)en?
      |cordialement|saludos|此致|敬礼|祝好)[,，.!！]?[ \t]*\n{1,2}[ \t]*\S.{0,60}$
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""How a letter begins and how it is signed: below words of one's own it is another's."""
_ENDS = re.compile(r"[.!?。！？…][\"'”’)*`]*\s*$")
_ASKS = re.compile(r"[?？]")
_LEADS = re.compile(r"[:：]\s*$")
_LONG = 7
"""Words of a polished line, at least."""

_NEAR = 2
_PAGE_WORDS = 25
"""Polished words, beside others that are not, that are taken for a page of somebody's."""

_FINDING_WORDS = 25
_INTERJECTION = re.compile(r"\w+(?:\s\w+)?[.!,。！，]\s*\S")
"""Who types begins with a word or two: "Good.", "Right, …"."""
_GAP = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that holds something.

    ``is_marked``: as only others' texts are; ``is_form``: as documents are, one's own, too. ``is_own``: in the manner
    of who types: of themselves (``speaks``), asking, or in small letters. ``words`` are those of a polished line.
    """

    text: str
    paragraph: int
    is_marked: bool
    is_form: bool
    is_own: bool
    speaks: bool
    words: int


def is_terminal(text: str) -> bool:
    """Return True if a text begins with a command in a terminal."""
    return bool(_PROMPT.match(text))


def without_pasted(text: str) -> str:
    """A message without what stands in it as pasted; the whole where nothing does."""
    return "\n\n".join(part for is_pasted, part in apart(text) if not is_pasted)


def apart(text: str) -> list[tuple[bool, str]]:
    """The parts of a message in order, each with whether it is pasted; the whole where nothing is."""
    first, _, rest = text.strip().partition("\n")
    if rest.strip() and forwarded_words().match(first):
        return [(False, first), (True, rest.strip("\n"))]
    return [
        part
        for is_pasted, piece in _by_lines(text)
        for part in ([(True, piece)] if is_pasted else _findings(piece))
    ]


def _findings(text: str) -> list[tuple[bool, str]]:
    """What is typed by its lines, with the paragraphs apart that read like somebody's finding."""
    paragraphs = _GAP.split(text)
    found = [(_is_finding(one), one) for one in paragraphs]
    return found if any(is_pasted for is_pasted, _ in found) else [(False, text)]


def _is_finding(paragraph: str) -> bool:
    """Whether a paragraph is long, begins like a printed one, names something out of code, and has no voice: nobody in
    it answers, speaks of themselves or to the agent, asks or says please (figures: ``docs/extraction.md``)."""
    text = paragraph.strip()
    if len(_WORD.findall(text)) < _FINDING_WORDS:
        return False
    if (
        cues().remember.match(text)
        or _INTERJECTION.match(text)
        or _ASKS.search(text)
        or any(words_of(name).search(text) for name in ("self", "polite", "shared", "kept"))
    ):
        return False
    names = identifiers(text)
    return bool(names) and (text[0].isupper() or text.startswith(names[0], text[0] == "`"))


def _by_lines(text: str) -> list[tuple[bool, str]]:
    lines = _read(text)
    in_terminal = len(lines) > 1 and is_terminal(lines[0].text)
    begin = 0 if in_terminal else _begin(lines) if len(lines) > 1 or _GLYPH.match(text) else None
    if begin is None:
        return [(False, text)]
    end = _end(lines, begin)
    if in_terminal:
        end = max(end, sum(one.paragraph == lines[0].paragraph for one in lines))
    paste = lines[begin:end]
    is_pointed_at = any(pointing_words().search(one.text) for one in (*lines[:begin], *lines[end:]))
    if not (in_terminal or is_pointed_at or any(one.is_marked for one in paste)) and any(
        one.speaks for one in paste
    ):
        return [(False, text)]
    parts = ((False, lines[:begin]), (True, paste), (False, lines[end:]))
    return [(is_pasted, "\n".join(one.text for one in part)) for is_pasted, part in parts if part]


def _read(text: str) -> list[_Line]:
    lines: list[_Line] = []
    paragraph = at = 0
    begin, end = _letter(text)
    for line in text.split("\n"):
        if line.strip():
            lines.append(
                _line(
                    line,
                    paragraph,
                    is_marked=begin <= at < end
                    or any(mark.match(line) for mark in (_GRADED, _FRAMED, _COMMENT, _GLYPH)),
                )
            )
        else:
            paragraph += 1
        at += len(line) + 1
    return _with_runs(lines)


def _letter(text: str) -> tuple[int, int]:
    """Where a letter begins and where it is signed; the same place twice where there is none."""
    signed = max((one.end() for one in _CLOSING.finditer(text)), default=0)
    return next(((one.start(), signed) for one in _GREETING.finditer(text, 0, signed)), (0, 0))


def _line(line: str, paragraph: int, *, is_marked: bool) -> _Line:
    first = line.lstrip()[:1]
    has_ended = bool(_ENDS.search(line))
    has_no_case = first.isalpha() and first.lower() == first.upper()
    begins_low = first.islower() or (has_no_case and not has_ended)
    speaks = bool(words_of("self").search(line))
    is_own = begins_low or speaks or bool(_ASKS.search(line) or words_of("polite").search(line))
    count = len(_WORD.findall(line))
    words = count if has_ended and not begins_low and count >= _LONG else 0
    return _Line(
        line,
        paragraph,
        is_marked,
        bool(_HEADING.match(line) or _BOLD.match(line) or _PLACED.search(line)),
        is_own,
        speaks,
        words,
    )


def _with_runs(lines: list[_Line]) -> list[_Line]:
    """Names before words, times and fields tell something where several lines near each other have them; orders to
    keep something ("Remember: …") by themselves do not."""
    found = list(lines)
    for pattern in (_NAMED, _STAMPED, _FIELD):
        places = [
            at
            for at, one in enumerate(lines)
            if pattern.match(one.text) and not _ITEM.match(one.text)
        ]
        for at in places:
            near = [
                other
                for other in places
                if other != at and (abs(other - at) <= _NEAR or pattern is _STAMPED)
            ]
            if near and not all(
                words_of("kept").match(lines[one].text.lstrip()) for one in (at, *near)
            ):
                is_marked = found[at].is_marked or pattern is _STAMPED
                found[at] = replace(found[at], is_form=True, is_marked=is_marked)
    return found


def _begin(lines: Sequence[_Line]) -> int | None:
    """Where a paste begins: at the first mark, below words that point at it, or where another manner begins."""
    for at, one in enumerate(lines):
        if one.is_marked or one.is_form:
            return at
        if at + 1 < len(lines) and _leads_into(one, lines[at + 1]):
            return at + 1
    return _other_manner(lines)


def _leads_into(one: _Line, following: _Line) -> bool:
    """Whether a line points at what stands below it, in another paragraph, below a colon, or in another manner.

    A list is the owner's where the line speaks of themselves ("for the page I want:").
    """
    if _ITEM.match(one.text) or (one.speaks and _ITEM.match(following.text)):
        return False
    is_apart = (
        one.paragraph != following.paragraph
        or bool(_LEADS.search(one.text))
        or not following.is_own
    )
    return is_apart and bool(pointing_words().search(one.text))


def _other_manner(lines: Sequence[_Line]) -> int | None:
    """Where polished paragraphs begin beside one that is not, or that points at them."""
    if len({one.paragraph for one in lines}) < 2:
        return None
    formal = [at for at, one in enumerate(lines) if not one.is_own]
    edges = (lines[0], lines[-1])
    if formal and any(pointing_words().search(one.text) and one.is_own for one in edges):
        return formal[0]
    is_beside = any(one.is_own and not one.words for one in edges)
    return formal[0] if is_beside and sum(lines[at].words for at in formal) >= _PAGE_WORDS else None


def _end(lines: Sequence[_Line], begin: int) -> int:
    """Where the owner goes on: the last lines that are in their own manner, in paragraphs without a mark."""
    end = len(lines)
    while (
        end > begin
        and _goes_on(lines[end - 1])
        and (end == len(lines) or not _is_broken(lines, end))
    ):
        end -= 1
    return end


def _goes_on(line: _Line) -> bool:
    return line.is_own and not (
        line.is_marked or line.is_form or line.text.rstrip().endswith((";", "{", "}"))
    )


def _is_broken(lines: Sequence[_Line], at: int) -> bool:
    """Whether another paragraph, with something of the paste in it, ends above a line."""
    above = lines[at - 1].paragraph
    return above != lines[at].paragraph and not all(
        _goes_on(one) for one in lines if one.paragraph == above
    )
