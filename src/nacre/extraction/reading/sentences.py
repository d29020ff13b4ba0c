"""Reads: what someone typed, split into statements without what they only pasted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from nacre.extraction.reading.leads import is_signed, leads_others, reports
from nacre.extraction.reading.pasted import apart, is_terminal

MAX_STATEMENTS = 30
_FIRST, _LAST = 10, 4
_MAX_TYPED = 30_000
_MAX_STATEMENT = 1_500
_REMEMBERED = 64  # a message is looked at for answers, causes and claims
_WRAP_CHARACTERS = 60

_GAP = re.compile(r"[ \t]{100,}")
"""As wide as any indentation need be: patterns that begin with white space try each place of a wider one."""
_FENCE = re.compile(r"^(```|~~~|\"{3}).*?(?:^.*\1|\Z)", re.DOTALL | re.MULTILINE)
_TAG = re.compile(r"<([a-zA-Z][\w-]*)\b[^>]*>.*?</\1>", re.DOTALL)
_QUOTED = re.compile(
    r"[\"“„«](?:[^\"“”„«»\s]+\s+){3,}[^\"“”„«»\n]+[\"”“»]|(?<!\w)['‘](?:[^'‘’\s]+\s+){3,}[^'‘’\n]+['’](?!\w)|[「『][^「」『』\n]{8,}[」』]|«[^«»\n]{20,}»"
)
_HEADING = re.compile(r"^#{1,6} +\S.*$", re.MULTILINE)
_FOREIGN = re.compile(
    r"""
    ^[ \t>*_]*-*[ \t]*(?:begin\ forwarded\ message|original\ message|forwarded\ message|原始邮件|转发的?邮件).*$  # mail
    | ^[ \t>*_]*(?:from|sent|date|to|subject|发件人|收件人|主题|发送时间|日期)[*_]*[ \t]*[:：].*\n
      (?:.*\n){0,3}?[ \t>*_]*(?:from|sent|date|to|subject|cc|发件人|收件人|主题|发送时间|日期)[*_]*[ \t]*[:：]
    | ^(?:on|am|le|el)\ .{4,100}\ (?:wrote|schrieb|a\ écrit|escribió)\ ?:[ \t]*$ | ^.{4,100}写道[:：][ \t]*$
    | ^---[ \t]*\n(?:[\w-]+:.*\n)+---[ \t]*$                                                   # front matter
    | (?:\b(?:says?|said|reads|wrote|writes|states|replied|answered|quote)|\be-?mail|\bnewsletter|\bannouncement
      |\bcop(?:y|ied)\ from\b.{0,60}|\bpasted?\b.{0,60}|[说写]道?|邮件|原文|公告)[ \t]*[:：][ \t]*\n\s*\S
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""From here on a message is somebody else's: where a pasted mail ends nobody can tell."""
_MESSAGE = re.compile(
    r"""
    ^[ \t]*\S.{0,39}?[ \t,(\[—–-]\d{1,2}:\d\d(?::\d\d)?(?:[ \t]?[ap]m)?[)\]]?[ \t]*\n[ \t]*\S
    | ^[ \t]*\d{1,2}:\d\d(?::\d\d)?[ \t]+<?[\w.-]{1,30}[:>][ \t]+\S
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""One of a chat, below or behind who wrote it and when. Two of them are a chat."""
_OBJECT = re.compile(r"[{\[]\s*\"[^\"\n]{1,80}\"\s*[:,][^\n]*[}\]]")
"""A record in a line: what a server answered, say."""
_RECORD = re.compile(
    r"^[ \t>*_\"'{]*(?:(?:human|user|assistant|system|owner|agent|ai|助手|用户|系统)[*_\"']*[ \t]*[:：][ \t]+\S"
    r"|(?:speaker|trust|role|canonical_key|confidence)[\"']*[ \t]*[:=][ \t]*[\"']?\w+[\"',}]*[ \t]*$)",
    re.MULTILINE | re.IGNORECASE,
)
"""A line of a transcript, or of a record: its paragraph was pasted, whoever it says has said it."""
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_LINK = re.compile(r"https?://\S+")
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_ITEM = re.compile(r"^\s*(?:[-*•+]|(?P<mark>\d{1,2}|[A-Za-z])[.)])\s+(?:\[[ xX]?\]\s*)?(?=\S)")
_PASTED = re.compile(
    r"""
    \s*(?:>|\||//|/\*|\+\+\+|---|@@|diff\ --git|index\ [0-9a-f]{6}|commit\ [0-9a-f]{7})   # quotes, comments, diffs
    | \s*/[\w:-]*\s*$                                                       # slash commands
    | \s*File\ ".*",\ line\ \d+ | \s*at\ \S+.*[:(]\d+ | Traceback | \s*\^+\s*$  # stack traces
    | \s*(?:[\w.]*(?:Error|Exception|Warning)|E|FAILED|FAIL|panic|fatal|error)\b\s*[:(\[]    # error lines
    | \s*(?:FAILED|FAIL|PASSED|PASS)\s+\S*[/:.]\S* | \s*ok\s+\S*[/:.]\S+ | E\s{2,}\S
    | \s*\S+\.\w{1,4}:\d+(?::\d+)?:\s | \s*-{1,2}\w[\w-]*,?\s+--?\w
    | \s*[\w./-]+:\ (?:error|fatal|warning|command\ not\ found)\b | \s*usage:
    | \s*(?:-?bash|zsh|sh|fish|git|npm|node|python\d?):\s
    | \s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d | \s*\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE)\b  # logs
    | \s*\d+\ (?:failed|passed|errors?|warnings?|skipped)\b
    | \s*(?:npm|yarn|pnpm)\ (?:WARN|ERR!|warn|error)\b | [VDIWEF]\ \(\d+\)\s            # tools, devices
    | \s*(?:\$|➜|❯|>>>|✓|✔|✗|⨯|•)\s | \S*\w@[\w~.-]+[:~].*[$#>%]                    # prompts, tool output
    | \s*(?:\(\S+\)\s*)?\S+@\S+:?\S*[$#>%]
    | \s*[{}\[\]()<;] | \s*"[^"]+"\s*:                                     # JSON, code
    | \s*(?:import|from\ \S+\ import|def|func|const|var|public|private|SELECT|CREATE\ TABLE)\s
    """,
    re.VERBOSE,
)
"""How lines of tool output, code, logs, tables begin."""
_PASTED_WITHIN = re.compile(
    r"""
    \b(?:[Ff]ailed|[Uu]nable|cannot|could\ not)\ to\ [^:]{3,60}:\ [^:]{3,60}:\s | No\ such\ file\ or\ directory
    | [─│┌└├╭╰═]{2,} | \t.+\t                                              # boxes, columns
    | [{;]\s*$
    """,
    re.VERBOSE,
)
"""What such lines hold."""
_DIFF = re.compile(r"^\s*[+-]\s*\d+\s|^@@|^diff --git|^(?:\+\+\+|---) \S")
_INDENTED = re.compile(r"^(?: {4,}|\t)\S")
_MOSTLY_SIGNS = 0.35
_SIGN = re.compile(r"[^\w\s]|_")
_BOUNDARY = re.compile(
    r"""
    (?<=[。！？；…])\s*                          # Chinese ends need no space
    | (?<=[.!?…])["')\]”’]*\s+(?=\S)
    """,
    re.VERBOSE,
)
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|vs|cf|approx|incl|dr|mr|mrs|ms|fig|st|etc|z\.\s?b|d\.\s?h|bzw|ca|nr|p\.\s?ej|p\.\s?ex|т\.\s?е)\.$"
    r"|\b(?:am|zum|bis|ab|vom|seit|den|dem)\s\d{1,2}\.(?:\d{1,2}\.)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: its text, the letter or number it was listed under, the line that led into the list; the line of
    what was typed on which it stands, from 0 on, and the first line of that (``opening``). ``marked``: a name, a label
    or an order to edit a text stands before it in its paragraph, or a signature behind the message. ``mixed``: the
    message holds any mark of a paste.
    """

    text: str
    mark: str | None = None
    lead: str | None = None
    line: int = 0
    opening: str = ""
    marked: bool = False
    mixed: bool = False


_CUT = "\ue001"
"""Stands in a message on the line where words of somebody else's were taken out."""


def split(text: str) -> list[Statement]:
    """The statements of a message, in order, without code, quotes, logs, traces, diffs and documents."""
    return list(_split(_without_fences(text)))


def split_typed(text: str) -> list[Statement]:
    """The statements that who sends a message typed; not those of whom they quote or paste.

    The message is ``mixed`` where a statement is marked, or where any of its words are in no statement.
    """
    parts = apart(_without_fences(text))
    cut = (_CUT if is_pasted and not is_terminal(part) else "" if is_pasted else part for is_pasted, part in parts)
    found = _split("\n\n".join(cut), is_typed=True)
    is_mixed = any(one.marked for one in found) or leaves_out(text, found)
    return [replace(one, mixed=is_mixed) for one in found]


def leaves_out(text: str, statements: Sequence[Statement]) -> bool:
    """Return True if a message has words, other than links, that none of its statements has."""
    said = sum(_length(one.text) + len(one.mark or "") for one in statements)
    return said < _length(text)


def _length(text: str) -> int:
    return sum(map(str.isalnum, _LINK.sub("", text)))


@lru_cache(maxsize=_REMEMBERED)
def _split(text: str, *, is_typed: bool = False) -> tuple[Statement, ...]:
    statements: list[Statement] = []
    lead: str | None = None
    text = _strip(text)
    lines = _lines(text)
    signed = marked = is_typed and is_signed(text)
    for number, line in enumerate(lines):
        marked = (marked if line else signed) or (line.lstrip().startswith("•") and not lead)
        item = _ITEM.match(line)
        body = (line[item.end() :] if item else line).strip()
        if not item and line:
            lead = None
        for part in sentences(body):
            if len(part) > _MAX_STATEMENT or _LINK.fullmatch(part) or part == _CUT:
                continue
            marked = marked or (is_typed and leads_others(part))
            is_marked = marked or (is_typed and reports(part))
            statements.append(Statement(part, item["mark"] if item else None, lead, number, lines[0], is_marked))
        if not item and body.endswith((":", "：")):
            lead = body
    if len(statements) > MAX_STATEMENTS:
        # Nobody types that much in one go: what is long is pasted, what is said about it frames it.
        return (*statements[:_FIRST], *statements[-_LAST:])
    return tuple(statements)


def _without_fences(text: str) -> str:
    if len(text) > _MAX_TYPED:
        text = f"{text[: _MAX_TYPED // 2]}\n{text[-_MAX_TYPED // 2 :]}"
    return _FENCE.sub("\n", _GAP.sub(" " * 8, text))


def _strip(text: str) -> str:
    if "</" in text:
        text = _TAG.sub("\n", text)
    text = _HEADING.sub("", text)
    text = _own(text)
    return _EMPHASIS.sub(r"\2", _QUOTED.sub("", _OBJECT.sub("", text)))


def _own(text: str) -> str:
    """A message without mails, chats, transcripts and records that were pasted into it."""
    foreign = _FOREIGN.search(text)
    text = text[: foreign.start()] if foreign else text
    messages = list(islice(_MESSAGE.finditer(text), 2))
    text = text[: messages[0].start()] if len(messages) > 1 else text
    if not _RECORD.search(text):
        return text
    return "\n\n".join(_CUT if _RECORD.search(part) else part for part in _PARAGRAPH.split(text))


def _lines(text: str) -> list[str]:
    """Lines that people typed; lines that were only wrapped are joined."""
    joined: list[str] = []
    open_line = in_diff = False
    for line in text.split("\n"):
        in_diff = bool(line.strip()) and (in_diff or bool(_DIFF.match(line)))
        if in_diff or not line.strip() or is_pasted(line):
            open_line = False
            joined += [""] if joined and joined[-1] and not line.strip() else []
            continue
        starts_low = line.lstrip()[:1].islower() and not _ITEM.match(line)
        if open_line and starts_low:
            joined[-1] = f"{joined[-1].rstrip()} {line.strip()}"
        else:
            joined.append(line)
        open_line = len(line) >= _WRAP_CHARACTERS and line.rstrip()[-1:] not in ".!?:。！？："
    return joined


def is_pasted(line: str) -> bool:
    """Whether a line looks like tool output, code, a log or a table rather than like something typed."""
    if _PASTED.match(line) or _PASTED_WITHIN.search(line):
        return not _ITEM.match(line) or line.rstrip().endswith(("{", ";"))
    if _INDENTED.match(line) and not _ITEM.match(line):
        return True
    return len(line) > 20 and len(_SIGN.findall(line)) > _MOSTLY_SIGNS * len(line)


def sentences(line: str) -> list[str]:
    """The sentences of a line."""
    parts: list[str] = []
    for part in _BOUNDARY.split(line):
        if parts and (_ABBREVIATION.search(parts[-1]) or _open(parts[-1])):
            parts[-1] = f"{parts[-1]} {part}"
        elif part.strip():
            parts.append(part.strip())
    return parts


def _open(text: str) -> bool:
    """Whether a bracket is still open: "(like this. or that)" is one statement."""
    return text.count("(") > text.count(")") and len(text) < 300
