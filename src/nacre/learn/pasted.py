"""Separation of pasted text from typed text, with the word lists in ``pasted.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from nacre.base.frozen import frozen
from nacre.base.text import identifiers

Regex = re.Pattern[str]


class Pattern:
    """A case-insensitive :class:`re.Pattern` that is compiled on first use."""

    __slots__ = ("_compiled", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, re.IGNORECASE)
        return getattr(self._compiled, name)


@cache
def words_of(name: str) -> Regex:
    """Return a pattern for the word list ``name`` of ``pasted.toml``."""
    words = _data()[name]
    return re.compile(rf"\b{_any_of(words['words'])}\b|{_any_of(words['anywhere'])}", re.IGNORECASE)


@cache
def forwarded_words() -> Regex:
    """Return a pattern for the start of a forwarded message."""
    words = _data()["forwarded"]
    regex = rf"\W*(?:{_any_of(words['words'])}\b|{_any_of(words['marks'])}\s?[:：])"
    return re.compile(regex, re.IGNORECASE)


@cache
def labelled_words() -> Regex:
    """Return a pattern for labels of another person's text, such as "Issue:"."""
    words = _data()["labels"]
    regex = rf"\W*(?:\w+\W+){{0,2}}(?:{_any_of(words['words'])}\b[^:：.!?]{{0,40}}|{_any_of(words['anywhere'])})[:：]"
    return re.compile(regex, re.IGNORECASE)


@cache
def saying_words() -> Regex:
    """Return a pattern for reported speech."""
    words, people = _data()["pointing"], _any_of(_data()["people"]["anywhere"])
    verbs, texts = _any_of(words["said"]), _any_of(words["texts"])
    return re.compile(rf"\b{verbs}\b|\b{texts}\s+say\b|{people}说(?!明)", re.IGNORECASE)


@cache
def quoting_words() -> Regex:
    """Return a pattern for words that introduce a quotation."""
    words = _data()["pointing"]
    verbs = _any_of([*words["said"], *words["saying"], "say"])
    return re.compile(rf"\b{verbs}(?:\W+\w+){{0,2}}$|(?:说|写道|表示)$", re.IGNORECASE)


@cache
def author_words() -> Regex:
    """Return a pattern for words before an author's name, such as "from"."""
    return re.compile(
        rf"\b{_any_of([*_data()['pointing']['by'], 'per', 'via'])}\s|来自", re.IGNORECASE
    )


@cache
def pointing_words() -> Regex:
    """Return a pattern for references to another author, such as "the reviewer" or "says"."""
    words = _data()["pointing"]
    pointers, texts, by = (_any_of(words[name]) for name in ("pointers", "texts", "by"))
    saying = _any_of([*words["said"], *words["saying"]])
    regex = rf"\b{pointers}\b.{{0,40}}\b{texts}\b|\b{texts}\s+{by}\b|\b{saying}\b|{_any_of(words['anywhere'])}"
    return re.compile(regex, re.IGNORECASE)


def _any_of(words: Sequence[str]) -> str:
    return f"(?:{'|'.join(words)})"


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "pasted.toml").read_text(encoding="utf-8"))


# -- Cues of explicit statements in many languages, from ``cues.toml`` -----------------------------


_CLAUSE = (
    r"(?:^|[,;:.!?—–)-]\s*"
    r"|\b(?:and|but|so|ok(?:ay)?|please|pls|kindly|btw|do|also|just|und|aber|bitte|et|mais|y|e|mas|i|и|ve|en|och)\s+)"
)
"""The start of a clause that can contain an order."""

_BEGINNING = "^"
_APOSTROPHE = re.compile(r"'(?=[a-z])")
_BEFORE = {
    "remember": _CLAUSE,
    "decided": _CLAUSE,
    "changed": _CLAUSE,
    "ordered": _BEGINNING,
}


@frozen
class Cues:
    """Compiled patterns, one per list in ``cues.toml``."""

    remember: Regex
    requested: Regex
    habit: Regex
    kept_words: Regex
    announced: Regex
    mentioned: Regex
    this_way: Regex
    owned: Regex
    own_errand: Regex
    not_remembered: Regex
    rule: Regex
    ordered: Regex
    lasting: Regex
    place: Regex
    standing: Regex
    preferred: Regex
    decided: Regex
    changed: Regex
    practice: Regex
    wished: Regex
    reason: Regex
    elsewhere: Regex
    passing: Regex
    step: Regex
    supposed: Regex
    taken_back: Regex
    irony: Regex
    asking: Regex
    pointing: Regex


def reads_as_rule(text: str) -> bool:
    """Return True if a text contains words of a standing rule, such as "always"."""
    return matches(text, cues().rule, cues().lasting, cues().place)


def matches(text: str, *patterns: Regex | Pattern) -> bool:
    """Return True if a text contains any of the patterns."""
    return any(pattern.search(text) for pattern in patterns)


@cache
def cues() -> Cues:
    """Return the compiled patterns of ``cues.toml``."""
    table = tomllib.loads((files(__package__) / "cues.toml").read_text(encoding="utf-8"))
    table["lasting"] = table["ordered"]
    return Cues(
        **{name: _pattern(lists, before=_BEFORE.get(name, "")) for name, lists in table.items()}
    )


def _pattern(lists: Mapping[str, str], before: str = "") -> Regex:
    spaced, unspaced = (
        "|".join(lists.get(name, "").split("\n")[:-1]) for name in ("spaced", "unspaced")
    )
    spaced = _APOSTROPHE.sub("['’]?", spaced)
    parts = [rf"{before}(?<![\w-])(?:{spaced})(?![\w])"] if spaced else []
    parts += [rf"{before if before == _BEGINNING else ''}(?:{unspaced})"] if unspaced else []
    return re.compile("|".join(parts), re.IGNORECASE)


# -- Lines by other authors, by position, marks and style ------------------------------------------
#
# Owners type a few words in their own style before or after a paste. The paste is recognised by marks
# that people rarely type to an agent (a speaker and time, a severity, a file and line, fields of a form,
# a headline, a frame), or by an announcement such as "the reviewer says:". It ends with text in the
# owner's style, which is personal, asking or less polished.


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
"""Terminal and REPL prompts with a typed command, whose output follows."""
_GLYPH = re.compile(
    r"\s*[\u2300-\u23ff\u2500-\u25ff\u2713-\u2718\u2722-\u274b\u2768-\u2775\u2794-\u27bf›·∙]\s*\S"
)
"""Symbols at the start of an agent host's output."""
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
"""A signature, which, like a greeting, shows that a text is a letter."""
_ENDS = re.compile(r"[.!?。！？…][\"'”’)*`]*\s*$")
_QUESTION_MARK = re.compile(r"[?？]")
_LEADS = re.compile(r"[:：]\s*$")
_LONG = 7
"""Minimum number of words in a line that counts as carefully written."""

_NEAR = 2
_PAGE_WORDS = 25
"""Minimum number of carefully written words in a text by another author."""

_FINDING_WORDS = 25
_INTERJECTION = re.compile(r"\w+(?:\s\w+)?[.!,。！，]\s*\S")
"""One or two words at the start of typed text, such as "Good." or "Right, …"."""
_GAP = re.compile(r"\n[ \t]*\n")


@frozen
class _Line:
    text: str
    paragraph: int
    is_marked: bool  # in another author's format
    is_form: bool  # formatted like a document
    is_own: bool  # probably typed by the owner
    speaks: bool  # contains a word such as "I"
    words: int  # 0 unless the line is carefully written


def is_terminal(text: str) -> bool:
    """Return True if a text starts with a terminal command."""
    return bool(_PROMPT.match(text))


def without_pasted(text: str) -> str:
    """Return a message without its pasted text."""
    return "\n\n".join(part for is_pasted, part in apart(text) if not is_pasted)


def apart(text: str) -> list[tuple[bool, str]]:
    """Split a message into typed (False) and pasted (True) passages."""
    first, _, body = text.strip().partition("\n")
    if body.strip() and forwarded_words().match(first):
        return [(False, first), (True, body.strip("\n"))]
    return [
        part
        for is_pasted, piece in _split_by_lines(text)
        for part in ([(True, piece)] if is_pasted else _split_findings(piece))
    ]


def _split_findings(text: str) -> list[tuple[bool, str]]:
    paragraphs = _GAP.split(text)
    parts = [(_is_finding(paragraph), paragraph) for paragraph in paragraphs]
    return parts if any(is_pasted for is_pasted, _ in parts) else [(False, text)]


def _is_finding(paragraph: str) -> bool:
    """Return True for a paragraph of a pasted report (see ``docs/extraction.md``)."""
    text = paragraph.strip()
    if len(_WORD.findall(text)) < _FINDING_WORDS:
        return False
    if (
        cues().remember.match(text)
        or _INTERJECTION.match(text)
        or _QUESTION_MARK.search(text)
        or matches(text, *map(words_of, ("self", "polite", "shared", "kept")))
    ):
        return False
    names = identifiers(text)
    return bool(names) and (text[0].isupper() or text.startswith(names[0], text[0] == "`"))


def _split_by_lines(text: str) -> list[tuple[bool, str]]:
    lines = _parse_lines(text)
    in_terminal = len(lines) > 1 and is_terminal(lines[0].text)
    begin = (
        0 if in_terminal else _paste_begin(lines) if len(lines) > 1 or _GLYPH.match(text) else None
    )
    if begin is None:
        return [(False, text)]
    end = _paste_end(lines, begin)
    if in_terminal:
        end = max(end, sum(line.paragraph == lines[0].paragraph for line in lines))
    paste = lines[begin:end]
    is_pointed_at = any(
        pointing_words().search(line.text) for line in (*lines[:begin], *lines[end:])
    )
    if not (in_terminal or is_pointed_at or any(line.is_marked for line in paste)) and any(
        line.speaks for line in paste
    ):
        return [(False, text)]
    parts = ((False, lines[:begin]), (True, paste), (False, lines[end:]))
    return [(is_pasted, "\n".join(line.text for line in part)) for is_pasted, part in parts if part]


def _parse_lines(text: str) -> list[_Line]:
    lines: list[_Line] = []
    paragraph = at = 0
    signed = max((match.end() for match in _CLOSING.finditer(text)), default=0)
    begin, end = next(
        ((match.start(), signed) for match in _GREETING.finditer(text, 0, signed)), (0, 0)
    )
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
    return _mark_runs(lines)


def _line(line: str, paragraph: int, *, is_marked: bool) -> _Line:
    first = line.lstrip()[:1]
    has_ended = bool(_ENDS.search(line))
    has_no_case = first.isalpha() and first.lower() == first.upper()
    begins_low = first.islower() or (has_no_case and not has_ended)
    speaks = bool(words_of("self").search(line))
    is_own = (
        begins_low or speaks or bool(_QUESTION_MARK.search(line) or words_of("polite").search(line))
    )
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


def _mark_runs(lines: list[_Line]) -> list[_Line]:
    marked = list(lines)
    for pattern in (_NAMED, _STAMPED, _FIELD):
        places = [
            at
            for at, line in enumerate(lines)
            if pattern.match(line.text) and not _ITEM.match(line.text)
        ]
        for at in places:
            near = [
                neighbour
                for neighbour in places
                if neighbour != at and (abs(neighbour - at) <= _NEAR or pattern is _STAMPED)
            ]
            # Lines such as "Remember: …" do not count.
            if near and not words_of("kept").match(lines[at].text.lstrip()):
                is_marked = marked[at].is_marked or pattern is _STAMPED
                marked[at] = replace(marked[at], is_form=True, is_marked=is_marked)
    return marked


def _paste_begin(lines: Sequence[_Line]) -> int | None:
    for at, line in enumerate(lines):
        if line.is_marked or line.is_form:
            return at
        if at + 1 < len(lines) and _leads_into(line, lines[at + 1]):
            return at + 1
    if len({line.paragraph for line in lines}) < 2:
        return None
    formal = [at for at, line in enumerate(lines) if not line.is_own]
    edges = (lines[0], lines[-1])
    if formal and any(pointing_words().search(line.text) and line.is_own for line in edges):
        return formal[0]
    has_unpolished_edge = any(line.is_own and not line.words for line in edges)
    return (
        formal[0]
        if has_unpolished_edge and sum(lines[at].words for at in formal) >= _PAGE_WORDS
        else None
    )


def _leads_into(line: _Line, following: _Line) -> bool:
    # "For the page I want:" introduces the owner's own list.
    if _ITEM.match(line.text) or (line.speaks and _ITEM.match(following.text)):
        return False
    is_apart = (
        line.paragraph != following.paragraph
        or bool(_LEADS.search(line.text))
        or not following.is_own
    )
    return is_apart and bool(pointing_words().search(line.text))


def _paste_end(lines: Sequence[_Line], begin: int) -> int:
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
    above = lines[at - 1].paragraph
    return above != lines[at].paragraph and not all(
        _goes_on(line) for line in lines if line.paragraph == above
    )
