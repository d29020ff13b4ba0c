"""Cue tables of each language, and the statements in the owner's messages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any

from nacre.base import json
from nacre.base.frozen import frozen
from nacre.base.text import normalise, words
from nacre.learn.pasted import (
    Pattern,
    apart,
    author_words,
    cues,
    is_terminal,
    labelled_words,
    matches,
    quoting_words,
    saying_words,
    words_of,
)
from nacre.llm import minilm
from nacre.readers.trust import CHOSEN, TYPED, is_outside_source
from nacre.values.session import Flag, Speaker, Trust, Turn

# -- Cues of a language ----------------------------------------------------------------------------


@frozen
class SummaryCues:
    """Patterns that show how the work in a session continues.

    The first four are for the owner's messages, the others for the agent's. ``idle``: small talk.
    ``onward``: a request to continue. ``ahead``: a heading such as "Next steps".
    """

    idle: Pattern
    onward: Pattern
    look: Pattern
    stop: Pattern
    gave_up: Pattern
    offer: Pattern
    ahead: Pattern
    remaining: Pattern
    nothing: Pattern
    announces: Pattern
    awaits: Pattern


@frozen
class Lean:
    """Patterns for pronouns that refer to an earlier statement.

    ``start``, ``object`` and ``inside`` differ in the pronoun's position. ``named``: a name before
    the pronoun to which it may refer.
    """

    start: Pattern
    object: Pattern
    inside: Pattern
    named: Pattern


@frozen
class Answers:
    """Patterns for questions and answers.

    ``errand``: a question about the next step. ``either``: one with two alternatives. ``which``: a
    request to choose. ``but``: the condition of a choice.
    """

    yes: Pattern
    no: Pattern
    point: Pattern
    option: Pattern
    errand: Pattern
    choice: Pattern
    vague: Pattern
    either: Pattern
    which: Pattern
    but: Pattern
    ordinals: dict[str, str]

    def only_points(self, text: str) -> bool:
        """Return True if a text only selects an option by its letter, number or position."""
        return bool(self.point.fullmatch(text.rstrip(" .!。")))


@frozen
class AcceptedCues:
    """Patterns for agreement with a statement (``yes``) and approval of completed work."""

    yes: Pattern
    finished: Pattern


@frozen
class ConcludedCues:
    """Patterns for reports about completed work (``done``, ``work``).

    ``against``: failures and negations. ``undone``: incomplete work. ``mended``: solved problems.
    ``beside``: names and reasons, which the other patterns ignore. ``objection``: the owner's
    objections.
    """

    done: Pattern
    work: Pattern
    beside: Pattern
    against: Pattern
    mended: Pattern
    undone: Pattern
    objection: Pattern


@frozen
class ReversalCues:
    """Patterns for words that revoke a statement (``undo``) and requests to remove something."""

    undo: Pattern
    removal: Pattern


# -- Cue tables (``cues/*.toml``) ------------------------------------------------------------------


_FALLBACK = "en"
_LOOKBEHIND = re.compile(r"(\(\?<[!=][^)]*\))")
_SPACED_WORD = re.compile(r"[^\W\d_\u2e80-\uffff]+")
_APOSTROPHE = re.compile(r"(?<=n)'(?=t\b)|(?<=let|hat|ere)'(?=s\b)")


@frozen
class Language:
    """The cues of one language."""

    language: str
    detect: Pattern
    joiner: str
    lead: Pattern
    tail: Pattern
    correction: Pattern
    lean: Lean
    answers: Answers
    accepted: AcceptedCues
    concluded: ConcludedCues
    reversal: ReversalCues
    summary: SummaryCues
    reject: dict[str, Pattern]
    stop: frozenset[str]
    mark: dict[str, Pattern]

    def trim(self, text: str) -> str:
        """Return the text without conversational openers and closers."""
        lead = self.lead.match(text)
        bare: str = self.tail.sub("", text[lead.end() :] if lead else text)
        return bare.strip(" \t,;:—–-")


def _pattern(type_: type, value: Any) -> Any:
    if type_ == Pattern:
        parts = _LOOKBEHIND.split(value if isinstance(value, str) else "|".join(value))
        return Pattern(
            "".join(
                part if at % 2 else _APOSTROPHE.sub("['’]?", part) for at, part in enumerate(parts)
            )
        )
    raise NotImplementedError(type_)


@cache
def languages() -> tuple[Language, ...]:
    """Return the languages that have a cue table. English, the fallback, is the last."""
    tables = [
        tomllib.loads(entry.read_text(encoding="utf-8"))
        for entry in (files(__package__) / "cues").iterdir()
        if entry.name.endswith(".toml")
    ]
    return tuple(
        json.convert(table | {"stop": table["stop"].split()}, Language, dec_hook=_pattern)
        for table in sorted(tables, key=lambda table: table["language"] == _FALLBACK)
    )


def language_of(text: str) -> Language:
    """Detect a text's language by its script, with English as the fallback."""
    if text.isascii():
        return languages()[-1]
    flat = text.replace("\n", " ")
    return next(
        (
            language
            for language in languages()
            if language.detect.search(flat) and _is_mostly(language, flat)
        ),
        languages()[-1],
    )


def _is_mostly(language: Language, text: str) -> bool:
    if language.joiner:
        return True
    spaced_words = _SPACED_WORD.findall(text)
    characters = sum(character.isalpha() for character in _SPACED_WORD.sub("", text))
    return 2 * len(spaced_words) <= 3 * characters


# -- Signs of another author at the start or end of a text -----------------------------------------


_CACHED_LEADS = 256
_LEAD_CHARACTERS = 100
_COLON = re.compile(r"[:：](?=\s|$|[^\x00-\x7f])|(?<=\w)>(?=\s+\S)|(?<=\w)\s[—–](?=\s)")
_STAMP = re.compile(r"[\[(<]?\b\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m\b)?[\])>]?,?", re.IGNORECASE)
_ASIDE = re.compile(r"[(（\[].*?(?:[)）\]]|$)")
_TOKEN = re.compile(r"[@#\w](?:[\w.'’#/-]*\w)?")
_SOURCE = re.compile(
    r"@|.*\bbot$|[A-Z][A-Z0-9]{1,9}-\d+$|#\d+$|.*\.(?:md|txt|rst|pdf|docx?|eml|html?)$",
    re.IGNORECASE,
)
"""Handles, bots, tickets and file names."""
_POINTS = re.compile(r"(?:this|that|these|those)\b", re.IGNORECASE)
_OF = re.compile(r"(?:from|of|at|in|on|von|aus|de|da|di|van)$")
_HEADER = re.compile(
    r"from|to|cc|bcc|subject|sent|betreff|von|an|objet|asunto|发件人|收件人|主题", re.IGNORECASE
)
"""Names of mail headers."""
_FIRST_PERSON = re.compile(
    r"\b(?:i|we|you|ich|wir|je|nous|yo|io|eu|ik|wij|ja|я|мы)(?:['’]\w+)?(?:\s[\w'’]+){0,3}\s*$|[我咱你]们?$",
    re.IGNORECASE,
)
VERB = re.compile(
    r"\b(?:is|are|was|has|have|goes?|stays?|needs?|must|should|will|can|may|all|each|every|no|only|(?:that|this|it|there|here)['’]s)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"[^\W\d_][^\W\d_A-Z]*(?:['’-][^\W\d_]+)*$")
_SIGNED = re.compile(
    r"""
    (?:(?:^|[.!?…。！？"”’)\]]|\n)[ \t]*(?:[—–~]{1,2}|--|(?<=[.!?…"”’)][ ])-(?=[ ][A-Z]))\s*
      (?=@|[^\W\d_])
      | [^\W\d_][ ]+[—–][ \t]*(?=[A-Z][\w'’-]+(?:[ ][A-Z][\w'’-]+){0,2}\s*$)
      | (?i:\b(?:regards|best(?:\ wishes)?|cheers|sincerely|thanks|gr(?:u[sß]+|ü[sß]+e)|lg|mfg|cordialement|saludos
        |saluti)[,!]?)[ \t\n]+(?=[A-Z]))
    (?P<name>[^\n.!?。！？:：]{1,40})\.?(?:\n[^\n]{1,60}){0,2}\s*$
    """,
    re.VERBOSE,
)
_DASHES = ("—", "–")
_POSSESSIVE = re.compile(r"([^\W\d_]+)['’]s\b")
_ADDRESSED = re.compile(r"^[^:：]*\b(?:i|your?)\b", re.IGNORECASE)
_DEICTIC = re.compile(
    r"\b(?:this|that|these|following|below|das|dies\w*|folgend\w*|ça|ceci|esto|questo|isto|dit|это)\b|[这此]|以下|下面|これ"
    r"|\b(?:in|to|into|ins|auf|en|al|na|på)\s+(?-i:[A-Z])",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:please|pls|can|could|would|will|you|kindly|just|help|me|my|bitte|kannst|könntest|du|mir|peux|tu|puedes"
    r"|por favor|puoi|kun|je|[请帮我麻烦把你能可以将]+)\b|[请帮我麻烦把你能可以将这段句话文]+",
    re.IGNORECASE,
)
"""Polite words before an order."""
_NOUN_ENDINGS = ("ing", "ion", "ment", "ity", "ness", "age")
_WIDE, _MAX_WIDE_NAME = "\u2e7f", 6
_PLURAL_RANK_FACTOR = 3
"""Maximum ratio between the frequency ranks of a common noun's plural and singular."""
_MAX_LEAD_TOKENS, _MAX_CITING_TOKENS, _MAX_SIGNATURE_WORDS, _REPORT_WORDS = 3, 7, 5, 4
_SIGNATURE_CHARACTERS = 300
"""Number of characters at a message's end in which a signature is expected."""


@lru_cache(maxsize=_CACHED_LEADS)
def leads_others(text: str) -> bool:
    """Return True if a paragraph starts like another person's words.

    Signs are a name, a label or a request to edit the text, but not a topic such as "Branch
    names:".
    """
    if labelled_words().match(text) and not _ADDRESSED.search(text):
        return True
    bare = _without_address(text)
    colon = _COLON.search(bare)
    if not colon:
        return _is_edit_order(bare) and bool(_DEICTIC.search(bare))
    before = bare[: colon.start()]
    lead = _ASIDE.sub("", _STAMP.sub("", before)).strip(" *_`<>")
    is_short = 0 < len(_TOKEN.findall(lead)) <= _MAX_LEAD_TOKENS
    if _STAMP.search(before) and is_short:
        return True
    if colon[0].strip() in _DASHES:
        return is_short and not _is_own(lead) and _is_other_source(lead)
    return (
        _is_edit_order(lead)
        or _is_cited(lead)
        or (is_short and not _is_own(lead) and _is_other_source(lead))
    )


def reports(text: str) -> bool:
    """Return True if a sentence reports another person's words, as in "according to the docs …"."""
    bare = _without_address(text)
    if words_of("according").match(bare):
        return True
    verb = saying_words().search(" ".join(bare.split()[: _REPORT_WORDS + 2]))
    return verb is not None and verb.start() > 0 and not _FIRST_PERSON.search(bare[: verb.start()])


def _without_address(text: str) -> str:
    polite = language_of(text).lead.match(text)
    return (
        text[polite.end() : polite.end() + _LEAD_CHARACTERS] if polite else text[:_LEAD_CHARACTERS]
    )


def behind_own_lead(text: str) -> str:
    """Return the text after a lead-in such as "Reminder:", or an empty string if there is none."""
    colon = _COLON.search(text[:_LEAD_CHARACTERS])
    if colon is None:
        return ""
    lead = text[: colon.start()]
    is_own = (
        0 < len(_TOKEN.findall(lead)) <= _MAX_LEAD_TOKENS
        and _is_own(lead)
        and not leads_others(text)
    )
    return text[colon.end() :].strip() if is_own else ""


def is_signed(text: str) -> bool:
    """Return True if a text ends with a person's name as its signature."""
    signature = _SIGNED.search(text[-_SIGNATURE_CHARACTERS:])
    if signature is None or len(signature["name"].split()) > _MAX_SIGNATURE_WORDS:
        return False
    return signature["name"][:1].isupper() or _is_other_source(signature["name"])


def _is_edit_order(text: str) -> bool:
    order = words_of("editing").search(text)
    return order is not None and not _POLITE.sub("", text[: order.start()]).strip(" ,:*_")


def _is_cited(lead: str) -> bool:
    verb = saying_words().search(lead) or quoting_words().search(lead)
    if verb is not None and not _FIRST_PERSON.search(lead[: verb.start()]):
        return True
    owner = _POSSESSIVE.search(lead)
    if owner and _is_other_source(owner[1]):
        return True
    by = author_words().search(lead)
    author = (
        lead[by.end() :].strip() if by and len(_TOKEN.findall(lead)) <= _MAX_CITING_TOKENS else ""
    )
    return bool(author) and _is_other_source(author)


def _is_own(lead: str) -> bool:
    text, owner_cues = f"{lead}:", cues()
    own = (
        owner_cues.remember,
        owner_cues.rule,
        owner_cues.place,
        owner_cues.decided,
        words_of("announcing"),
        words_of("kept"),
    )
    if matches(text, *own):
        return True
    return words_of("self").search(lead) is not None and words_of("people").search(lead) is None


def _is_other_source(lead: str) -> bool:
    tokens = _TOKEN.findall(lead)
    if not 0 < len(tokens) <= _MAX_LEAD_TOKENS or VERB.search(lead):
        return False
    if _HEADER.fullmatch(lead) or any(
        _SOURCE.match(token) or is_outside_source(token) for token in tokens[:2]
    ):
        return True
    if words_of("people").search(lead):
        return True
    uncommon = [
        token
        for token in tokens
        if (_NAME.match(token) or len(tokens) == 1) and not _is_common(token)
    ]
    if words_of("others").match(lead):
        return len(tokens) == 2 or not _POINTS.match(lead)
    if (
        len(tokens) > 1
        and tokens[-1].islower()
        and _is_common(tokens[-1])
        and not _OF.match(tokens[-2])
    ):
        return False
    return bool(uncommon) and (
        any(token[0].isupper() for token in uncommon) or len(uncommon) == len(tokens)
    )


def _is_common(word: str) -> bool:
    lower, ranks, language = word.lower(), minilm.vocabulary(), language_of(word)
    if not language.stop.isdisjoint((lower, f"{lower}'s")):
        return True
    if lower > _WIDE:
        return len(lower) > _MAX_WIDE_NAME
    singular = lower.removesuffix("s")
    if lower not in ranks:
        return singular in ranks
    # The plural of a common noun is about as frequent as the singular, unlike that of a name.
    return lower.endswith(_NOUN_ENDINGS) or ranks.get(
        f"{singular}s", len(ranks)
    ) < _PLURAL_RANK_FACTOR * ranks.get(singular, 0)


# -- Statements in a message -----------------------------------------------------------------------


MAX_STATEMENTS = 30
_HEAD_STATEMENTS, _TAIL_STATEMENTS = 10, 4
_MAX_TYPED_CHARACTERS = 30_000
_MAX_STATEMENT_CHARACTERS = 1_500
_CACHED_MESSAGES = 64  # each message is searched for answers, causes and claims
_WRAP_CHARACTERS = 60

_GAP = re.compile(r"[ \t]{100,}")
"""Long white space, which is shortened because it slows other patterns."""
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
"""Start of a pasted mail. The rest of the message is ignored, because the mail's end is unknown."""
_MESSAGE = re.compile(
    r"""
    ^[ \t]*\S.{0,39}?[ \t,(\[—–-]\d{1,2}:\d\d(?::\d\d)?(?:[ \t]?[ap]m)?[)\]]?[ \t]*\n[ \t]*\S
    | ^[ \t]*\d{1,2}:\d\d(?::\d\d)?[ \t]+<?[\w.-]{1,30}[:>][ \t]+\S
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""A message in a pasted chat. A text with two matches counts as a chat."""
_OBJECT = re.compile(r"[{\[]\s*\"[^\"\n]{1,80}\"\s*[:,][^\n]*[}\]]")
"""JSON on a single line, such as a server's response."""
_RECORD = re.compile(
    r"^[ \t>*_\"'{]*(?:(?:human|user|assistant|system|owner|agent|ai|助手|用户|系统)[*_\"']*[ \t]*[:：][ \t]+\S"
    r"|(?:speaker|trust|role|canonical_key|confidence)[\"']*[ \t]*[:=][ \t]*[\"']?\w+[\"',}]*[ \t]*$)",
    re.MULTILINE | re.IGNORECASE,
)
"""A line of a transcript or record, whose whole paragraph counts as pasted."""
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
"""Starts of lines in tool output, code, logs and tables."""
_PASTED_WITHIN = re.compile(
    r"""
    \b(?:[Ff]ailed|[Uu]nable|cannot|could\ not)\ to\ [^:]{3,60}:\ [^:]{3,60}:\s | No\ such\ file\ or\ directory
    | [─│┌└├╭╰═]{2,} | \t.+\t                                              # boxes, columns
    | [{;]\s*$
    """,
    re.VERBOSE,
)
"""Text within lines of tool output, code, logs and tables."""
_DIFF = re.compile(r"^\s*[+-]\s*\d+\s|^@@|^diff --git|^(?:\+\+\+|---) \S")
_INDENTED = re.compile(r"^(?: {4,}|\t)\S")
_MAX_SIGN_SHARE = 0.35
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


@frozen
class Statement:
    """A statement in a message.

    ``mark``: the letter or number of a list item. ``lead``: the line above the list. ``line``: the
    index of its line. ``opening``: the message's first line. ``marked``: whether a label, name or
    signature suggests another author. ``mixed``: whether the message might contain pasted text.
    """

    text: str
    mark: str | None = None
    lead: str | None = None
    line: int = 0
    opening: str = ""
    marked: bool = False
    mixed: bool = False


_CUT = "\ue001"
"""Placeholder for words of another author."""


def split(text: str) -> list[Statement]:
    """Return the statements in a message, without code, quotes, logs, traces, diffs and documents."""
    return list(_split(_without_fences(text)))


def split_typed(text: str) -> list[Statement]:
    """Return the statements that the owner typed, without quoted or pasted text.

    Each is ``mixed`` if pasted text might remain.
    """
    parts = apart(_without_fences(text))
    cut = (
        _CUT if is_pasted and not is_terminal(part) else "" if is_pasted else part
        for is_pasted, part in parts
    )
    statements = _split("\n\n".join(cut), is_typed=True)
    is_mixed = any(statement.marked for statement in statements) or leaves_out(text, statements)
    return [replace(statement, mixed=is_mixed) for statement in statements]


def leaves_out(text: str, statements: Sequence[Statement]) -> bool:
    """Return True if a message contains more than the given statements and links."""
    covered = sum(_length(statement.text) + len(statement.mark or "") for statement in statements)
    return covered < _length(text)


def _length(text: str) -> int:
    return sum(map(str.isalnum, _LINK.sub("", text)))


@lru_cache(maxsize=_CACHED_MESSAGES)
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
            if len(part) > _MAX_STATEMENT_CHARACTERS or _LINK.fullmatch(part) or part == _CUT:
                continue
            marked = marked or (is_typed and leads_others(part))
            is_marked = marked or (is_typed and reports(part))
            statements.append(
                Statement(part, item["mark"] if item else None, lead, number, lines[0], is_marked)
            )
        if not item and body.endswith((":", "：")):
            lead = body
    if len(statements) > MAX_STATEMENTS:
        # A long message is mostly pasted. The typed words surround the paste.
        return (*statements[:_HEAD_STATEMENTS], *statements[-_TAIL_STATEMENTS:])
    return tuple(statements)


def _without_fences(text: str) -> str:
    if len(text) > _MAX_TYPED_CHARACTERS:
        text = f"{text[: _MAX_TYPED_CHARACTERS // 2]}\n{text[-_MAX_TYPED_CHARACTERS // 2 :]}"
    return _FENCE.sub("\n", _GAP.sub(" " * 8, text))


def _strip(text: str) -> str:
    if "</" in text:
        text = _TAG.sub("\n", text)
    text = _HEADING.sub("", text)
    text = _without_pasted_messages(text)
    return _EMPHASIS.sub(r"\2", _QUOTED.sub("", _OBJECT.sub("", text)))


def _without_pasted_messages(text: str) -> str:
    foreign = _FOREIGN.search(text)
    text = text[: foreign.start()] if foreign else text
    messages = list(islice(_MESSAGE.finditer(text), 2))
    text = text[: messages[0].start()] if len(messages) > 1 else text
    if not _RECORD.search(text):
        return text
    return "\n\n".join(_CUT if _RECORD.search(part) else part for part in _PARAGRAPH.split(text))


def _lines(text: str) -> list[str]:
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
    """Return True if a line looks like tool output, code, a log or a table."""
    if _PASTED.match(line) or _PASTED_WITHIN.search(line):
        return not _ITEM.match(line) or line.rstrip().endswith(("{", ";"))
    if _INDENTED.match(line) and not _ITEM.match(line):
        return True
    return len(line) > 20 and len(_SIGN.findall(line)) > _MAX_SIGN_SHARE * len(line)


def sentences(line: str) -> list[str]:
    """Split a line into sentences."""
    parts: list[str] = []
    for part in _BOUNDARY.split(line):
        if parts and (
            _ABBREVIATION.search(parts[-1])
            or (parts[-1].count("(") > parts[-1].count(")") and len(parts[-1]) < 300)
        ):
            parts[-1] = f"{parts[-1]} {part}"
        elif part.strip():
            parts.append(part.strip())
    return parts


# -- The owner's messages --------------------------------------------------------------------------


_UNSPOKEN = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN
_COMMAND = re.compile(r"^/\S+\s*")
_REJECTED = "rejected"
_ECHO_TURNS = 40
_TITLE = re.compile(r"[A-Z][^\n.!?:;,`]{2,60}\n[ \t]*\n(?=[ \t]*\S)")
_READER = re.compile(r"\byour?\b", re.IGNORECASE)
_FORM = re.compile(rf"^(?P<question>.+[?？:：]) [{CHOSEN}{TYPED}] (?P<answer>\S.*)$", re.MULTILINE)
_ARROW = f"{CHOSEN} "
_CHOSE = re.compile(rf"[?？:：] {CHOSEN}")
_MAX_NOD_WORDS = 3
_SELF = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Ww]e|us|[Oo]urs?|[Ll]et['’]?s|[Pp]lease)\b")
_MIN_READER_WORDS = 2
"""Minimum number of words that address the reader in a copied page."""
_MIN_ECHO_CHARACTERS = 25
_ACCEPTING_STATEMENTS = 3


@frozen
class Utterance:
    """A message by the owner.

    ``index``: its turn. ``copies``: turns that repeat it, because some hosts record a message
    twice. ``correcting``: whether it declined a tool call.
    """

    index: int
    text: str
    statements: tuple[Statement, ...]
    correcting: bool = False
    copies: tuple[int, ...] = ()


def is_content(turn: Turn) -> bool:
    """Return True if a turn has text by its speaker.

    An agent's comments on nacre's context do not count.
    """
    unspoken = _UNSPOKEN | Flag.INJECTED if turn.speaker is Speaker.AGENT else _UNSPOKEN
    return not turn.flags & unspoken and bool(turn.text.strip())


def utterances(turns: Sequence[Turn]) -> list[Utterance]:
    """Return the owner's messages.

    They include arguments of slash commands and reasons for declining tool calls.
    """
    spoken: list[Utterance] = []
    for index, turn in enumerate(turns):
        for text, correcting in _words(turns, index, turn):
            typed = [] if _is_page(text) else split_typed(_FORM.sub(_answer_text, text))
            statements = tuple(
                statement for statement in typed if not _repeats_agent(statement.text, turns, index)
            )
            if len(statements) < len(typed):
                statements = tuple(replace(statement, mixed=True) for statement in statements)
            if statements and spoken and spoken[-1].text == text:
                spoken[-1] = replace(spoken[-1], copies=(*spoken[-1].copies, index))
            elif statements:
                spoken.append(Utterance(index, text, statements, correcting))
    return spoken


@frozen
class FormAnswer:
    """An agent's question in a form, and the owner's answer.

    ``nods``: whether the answer is only yes or no. ``typed``: whether it is not one of the options.
    """

    question: str
    answer: str
    nods: bool
    typed: bool


def forms(text: str) -> list[FormAnswer]:
    """Return the questions of forms in a message, with the owner's answers."""
    return [_parse_answer(form) for form in _FORM.finditer(text)]


def is_chosen(utterance: Utterance, statement: Statement) -> bool:
    """Return True if a statement is the text of an option that the owner selected in a form."""
    choice = statement.text.rpartition(_ARROW)[2]
    return any(choice in form.answer for form in forms(utterance.text) if not form.typed)


def without_chosen(text: str) -> str:
    """Remove the questions and selected options of forms from a message, but keep typed answers."""
    return _FORM.sub(lambda form: form["answer"] if _parse_answer(form).typed else "", text).strip()


def _parse_answer(form: re.Match[str]) -> FormAnswer:
    answer = form["answer"]
    cues = language_of(answer).answers
    nods = len(words(answer)) <= _MAX_NOD_WORDS and bool(
        cues.no.match(answer) or cues.yes.match(answer)
    )
    return FormAnswer(form["question"], answer, nods, typed=not _CHOSE.search(form[0]))


def _answer_text(form: re.Match[str]) -> str:
    result = _parse_answer(form)
    question = [] if result.nods or result.typed else split(form["question"])
    return f"{question[-1].text} → {form['answer']}" if question else form["answer"]


def _is_page(text: str) -> bool:
    """Return True for copied pages and role descriptions, which address a reader and lack an "I"."""
    title = _TITLE.match(text.lstrip())
    if not title or "?" in text or _SELF.search(text):
        return False
    return len(_READER.findall(text)) >= _MIN_READER_WORDS


def _repeats_agent(statement: str, turns: Sequence[Turn], index: int) -> bool:
    text = normalise(statement)
    if len(text) < _MIN_ECHO_CHARACTERS:
        return False
    recent = turns[max(0, index - _ECHO_TURNS) : index]
    return any(turn.speaker is Speaker.AGENT and text in _normalise(turn.text) for turn in recent)


_normalise = lru_cache(maxsize=2 * _ECHO_TURNS)(normalise)


def _words(turns: Sequence[Turn], index: int, turn: Turn) -> list[tuple[str, bool]]:
    if turn.flags & _UNSPOKEN:
        return []
    if turn.speaker is Speaker.AGENT:
        return [(words, True) for words in _declining_words(turn)]
    if turn.speaker is not Speaker.OWNER or turn.trust is Trust.UNTRUSTED:
        return []
    text = _COMMAND.sub("", turn.text) if turn.flags & Flag.COMMAND else turn.text
    previous = before(turns, index, Speaker.AGENT)
    calls = turns[previous].tool_calls if previous is not None and previous == index - 1 else ()
    return [(text, bool(calls and calls[-1].outcome == _REJECTED))] if text.strip() else []


def _declining_words(turn: Turn) -> list[str]:
    prefix = f"{_REJECTED}: "
    return [
        call.outcome.removeprefix(prefix)
        for call in turn.tool_calls
        if call.outcome and call.outcome.startswith(prefix) and len(call.outcome) > len(prefix)
    ]


def before(turns: Sequence[Turn], index: int, speaker: Speaker) -> int | None:
    """Return the index of a speaker's last turn with text before ``index``.

    Return ``None`` if there is none or the owner has spoken since.
    """
    for at in range(index - 1, -1, -1):
        turn = turns[at]
        if turn.speaker is Speaker.OWNER and is_content(turn) and speaker is not Speaker.OWNER:
            return None
        if turn.speaker is speaker and is_content(turn):
            return at
    return None


def acceptance(utterance: Utterance, language: Language) -> list[str] | None:
    """Return the sentences that follow the owner's acceptance of the agent's statement.

    Return ``None`` if there is none. A short sentence may come first: "Ha. Yes, that's it."
    """
    head = [statement.text for statement in utterance.statements[:_ACCEPTING_STATEMENTS]]
    yes = language.accepted.yes.match(" ".join(head))
    if not yes:
        return None
    offset = yes.end()
    while head and offset >= len(head[0]):
        offset -= len(head.pop(0)) + 1
    return (
        [text for text in (head[0][max(offset, 0) :].strip(" ,;:—–-"), *head[1:]) if text]
        if head
        else []
    )


def is_accepted_plan(turns: Sequence[Turn], index: int) -> bool:
    """Return True if a turn is a plan that the owner accepted in the next message.

    That message ends with the plan's title.
    """
    turn, following = turns[index], turns[index + 1 : index + 2]
    if not turn.flags & Flag.SUMMARY or not following or following[0].speaker is not Speaker.OWNER:
        return False
    title = following[0].text.rstrip().rpartition("\n")[2]
    return bool(title) and turn.text.startswith(title)


def trusted_agent(turns: Sequence[Turn], index: int) -> int | None:
    """Return the index of the agent's last message before a turn, if it is trusted."""
    at = before(turns, index, Speaker.AGENT)
    return at if at is not None and turns[at].trust is Trust.TRUSTED else None
