"""Regular expressions that ignore case and are compiled when they are first used."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any

from nacre.base import json
from nacre.base.text import normalise, words
from nacre.learn.pasted import (
    apart,
    author_words,
    cues,
    is_terminal,
    labelled_words,
    quoting_words,
    saying_words,
    words_of,
)
from nacre.llm import minilm
from nacre.readers.trust import CHOSEN, TYPED, is_outside_source
from nacre.values.session import Flag, Speaker, Trust, Turn


class Pattern:
    """A regular expression, as :class:`re.Pattern` has them."""

    __slots__ = ("_compiled", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        """A method of the expression. Raises re.error where it is none."""
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, re.IGNORECASE)
        return getattr(self._compiled, name)


# ----------------------------------------------------------------------------
# The sets of cues that a language's file holds.


@dataclass(frozen=True, slots=True)
class Mark:
    """Words of one sort."""

    name: str
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class SummaryCues:
    """How sessions begin, go on and end: words of the owner that ask for nothing (``idle``), that ask to go on with
    the same (``onward``), that ask only to have something looked at (``look``) and that end it (``stop``); the agent's
    words that it did not get there (``gave_up``), that ask for nothing in particular (``offer``), that lead into what
    is left (``ahead``), that say so (``left``), that tell what it does next (``announces``) or what it needs of the
    owner first (``awaits``).
    """

    idle: Pattern
    onward: Pattern
    look: Pattern
    stop: Pattern
    gave_up: Pattern
    offer: Pattern
    ahead: Pattern
    left: Pattern
    nothing: Pattern
    announces: Pattern
    awaits: Pattern


@dataclass(frozen=True, slots=True)
class Remember:
    """``strip`` leads into what is to be kept."""

    strip: Pattern


@dataclass(frozen=True, slots=True)
class Lean:
    """Words that stand for something said elsewhere: at the beginning, as an object, or anywhere unless it
    was named before (``named`` is what introduces a name); and beginnings that go on about the statement before
    (``more``), or tell the agent to do something (``order``). What was ``chosen`` says what it is ``about``, before any
    ``reason`` and contrast, or leans on the words before it that say what there is ``need`` of.
    """

    start: Pattern
    object: Pattern
    inside: Pattern
    named: Pattern


@dataclass(frozen=True, slots=True)
class Answers:
    """How an answer points at a question, and which questions are only about what to do next (``errand``).

    ``either`` offers two ways, ``chore`` names what is done once; ``choosing`` asks to choose or recommends, ``which``
    only that; ``but`` goes on about a choice. ``asks`` begins a question; ``unsure`` asks whether it is so;
    ``counting`` words only say that there are options.
    """

    yes: Pattern
    no: Pattern
    point: Pattern
    option: Pattern
    errand: Pattern
    choice: Pattern
    vague: Pattern
    either: Pattern
    chore: Pattern
    choosing: Pattern
    which: Pattern
    but: Pattern
    asks: Pattern
    unsure: Pattern
    counting: frozenset[str]
    ordinals: dict[str, str]

    def only_points(self, text: str) -> bool:
        """Whether a sentence only says which of somebody else's options it takes."""
        return bool(self.point.fullmatch(text.rstrip(" .!。")))


@dataclass(frozen=True, slots=True)
class AcceptedCues:
    """Words that accept what an agent said (``yes``) or take its work as ``finished``; its words on how things are to
    be (``claim``), or only on what
    it does next (``step``).
    """

    yes: Pattern
    finished: Pattern


@dataclass(frozen=True, slots=True)
class ConcludedCues:
    """What an agent reports: that it is ``done``, or what was done (``work``). Words of failure, or that deny the work,
    speak ``against`` it; some say outright that it is ``undone`` in part. Neither counts ``beside`` what is told: in a
    reason, a name, or as the trouble that was ``mended`` as what follows tells.

    How the owner goes on: ``onward`` from it, with a word to ``go`` ahead, with an ``objection``.
    """

    done: Pattern
    work: Pattern
    beside: Pattern
    against: Pattern
    mended: Pattern
    undone: Pattern
    onward: Pattern
    objection: Pattern


@dataclass(frozen=True, slots=True)
class ReversalCues:
    """Taking back what was said (``undo``), and removing it."""

    undo: Pattern
    removal: Pattern


@dataclass(frozen=True, slots=True)
class SubjectWords:
    """What a subject is cut out of a statement with.

    ``generic`` and ``weak`` words cannot be all of it; ``stop`` words and ``verbs`` are no nouns; ``links`` and
    ``determiners`` tie and introduce nouns, ``articles`` among them cannot end a phrase. An ``opener`` says what kind
    a statement is, ``front`` what it is said for, ``predicate`` begins what is said; ``noise`` and ``ending`` are
    dropped; at a ``border`` a clause ends, at a ``joint`` a long one may be cut. ``asked`` is a question about a
    ``topic``; a clause with a ``stray`` word in front says only where, when or of whom, one that
    is a ``condition`` only when, one with a ``carried`` object goes on about that; ``making`` comes before a thing that
    is to be.
    """

    generic: frozenset[str]
    stop: frozenset[str]


# ----------------------------------------------------------------------------
# The data: the cue tables: what words tell a decision from a preference, per language. Data in
# ``cues/*.toml``.


_FALLBACK = "en"
_LOOKBEHIND = re.compile(r"(\(\?<[!=][^)]*\))")
_SPACED_WORD = re.compile(r"[^\W\d_\u2e80-\uffff]+")
_APOSTROPHE = re.compile(
    r"(?<=[a-z]n)'(?=t\b)|(?<=\blet)'(?=s\b)|(?<=hat)'(?=s\b)|(?<=here)'(?=s\b)"
)


@dataclass(frozen=True, slots=True)
class Language:
    """Everything nacre knows about how people say durable things in one language."""

    language: str
    detect: Pattern
    joiner: str
    lead: Pattern
    tail: Pattern
    correction: Pattern
    remember: Remember
    lean: Lean
    answers: Answers
    accepted: AcceptedCues
    concluded: ConcludedCues
    reversal: ReversalCues
    summary: SummaryCues
    reject: dict[str, Pattern]
    subject: SubjectWords
    mark: tuple[Mark, ...]

    def trim(self, text: str) -> str:
        """The text without conversational beginning and end."""
        lead = self.lead.match(text)
        bare: str = self.tail.sub("", text[lead.end() :] if lead else text)
        return bare.strip(" \t,;:—–-")

    def mark_named(self, name: str) -> Pattern:
        """The words of a mark."""
        return next(one.pattern for one in self.mark if one.name == name)


def _pattern(wanted: type, value: Any) -> Any:
    if wanted == Pattern:
        return Pattern(_typed(value if isinstance(value, str) else "|".join(value)))
    raise NotImplementedError(wanted)


def _typed(pattern: str) -> str:
    """A pattern that also takes "dont", "lets" and curved apostrophes; lookbehinds stay as they are."""
    parts = _LOOKBEHIND.split(pattern)
    return "".join(
        part if at % 2 else _APOSTROPHE.sub("['’]?", part) for at, part in enumerate(parts)
    )


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "cues" / name).read_text(encoding="utf-8"))


@cache
def languages() -> tuple[Language, ...]:
    """All languages that have a cue table; the one that any text falls back to comes last."""
    names = sorted(
        entry.name
        for entry in (files(__package__) / "cues").iterdir()
        if entry.name.endswith(".toml")
    )
    found = [json.convert(_table(name), Language, dec_hook=_pattern) for name in names]
    return tuple(sorted(found, key=lambda language: language.language == _FALLBACK))


@cache
def _fallback() -> Language:
    return languages()[-1]


def language_of(text: str) -> Language:
    """The cue table for a text: the first whose script it is written in."""
    if text.isascii():
        return _fallback()
    flat = text.replace("\n", " ")
    return next(
        (one for one in languages() if one.detect.search(flat) and _is_mostly(one, flat)),
        _fallback(),
    )


def _is_mostly(language: Language, text: str) -> bool:
    """Whether a text is in a language's script and does not only quote it: each sign of it counts as half a word."""
    if language.joiner:
        return True
    words = _SPACED_WORD.findall(text)
    signs = sum(character.isalpha() for character in _SPACED_WORD.sub("", text))
    return 2 * len(words) <= 3 * signs


# ----------------------------------------------------------------------------
# Decide whether the beginning or the end of a text says that somebody else wrote it.


_REMEMBERED = 256
_LONGEST = 100
_COLON = re.compile(r"[:：](?=\s|$|[^\x00-\x7f])|(?<=\w)>(?=\s+\S)|(?<=\w)\s[—–](?=\s)")
_STAMP = re.compile(r"[\[(<]?\b\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m\b)?[\])>]?,?", re.IGNORECASE)
_ASIDE = re.compile(r"[(（\[].*?(?:[)）\]]|$)")
_TOKEN = re.compile(r"[@#\w](?:[\w.'’#/-]*\w)?")
_SOURCE = re.compile(
    r"@|.*\bbot$|[A-Z][A-Z0-9]{1,9}-\d+$|#\d+$|.*\.(?:md|txt|rst|pdf|docx?|eml|html?)$",
    re.IGNORECASE,
)
"""A handle, a ticket, a document."""
_POINTS = re.compile(r"(?:this|that|these|those)\b", re.IGNORECASE)
_OF = re.compile(r"(?:from|of|at|in|on|von|aus|de|da|di|van)$")
_HEADER = re.compile(
    r"from|to|cc|bcc|subject|sent|betreff|von|an|objet|asunto|发件人|收件人|主题", re.IGNORECASE
)
"""A header of a mail."""
_FIRST_PERSON = re.compile(
    r"\b(?:i|we|you|ich|wir|je|nous|yo|io|eu|ik|wij|ja|я|мы)(?:['’]\w+)?(?:\s[\w'’]+){0,3}\s*$|[我咱你]们?$",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|has|have|goes?|stays?|needs?|must|should|will|can|may|(?:that|this|it|there|here)['’]s)\b",
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
"""What may stand before an order."""
_NOUN_ENDINGS = ("ing", "ion", "ment", "ity", "ness", "age")
_WIDE, _LONGEST_WIDE_NAME = "\u2e7f", 6
_PLURAL = 3
"""How many times the rank of its plural may be that of a common noun's singular."""
_MOST_NAMED, _MOST_CITING, _MOST_SIGNING, _NEAR = 3, 7, 5, 4
_END = 300
"""Characters at the end of a message in which a signature is searched."""


@lru_cache(maxsize=_REMEMBERED)
def leads_others(text: str) -> bool:
    """Return True if a sentence begins with somebody else's name, a label, or an order to edit or explain a text.

    Such a lead holds for the whole paragraph. One that names a topic ("Branch names: …") or announces the owner's own
    words ("Reminder: …") does not count.
    """
    if labelled_words().match(text) and not _ADDRESSED.search(text):
        return True
    bare = _without_address(text)
    colon = _COLON.search(bare)
    if not colon:
        return _edits(bare) and bool(_DEICTIC.search(bare))
    before = bare[: colon.start()]
    lead = _ASIDE.sub("", _STAMP.sub("", before)).strip(" *_`<>")
    is_short = 0 < len(_TOKEN.findall(lead)) <= _MOST_NAMED
    if _STAMP.search(before) and is_short:
        return True
    if colon[0].strip() in _DASHES:
        return is_short and not _is_own(lead) and _names(lead)
    return _edits(lead) or _is_cited(lead) or (is_short and not _is_own(lead) and _names(lead))


def reports(text: str) -> bool:
    """Return True if a sentence tells what somebody says: "my boss says …", "according to the docs …"."""
    bare = _without_address(text)
    if words_of("according").match(bare):
        return True
    said = saying_words().search(" ".join(bare.split()[: _NEAR + 2]))
    return said is not None and said.start() > 0 and not _FIRST_PERSON.search(bare[: said.start()])


def _without_address(text: str) -> str:
    """The beginning of a text behind "ok, so" and the like."""
    polite = language_of(text).lead.match(text)
    return text[polite.end() : polite.end() + _LONGEST] if polite else text[:_LONGEST]


def behind_own_lead(text: str) -> str:
    """Return the words behind a short lead that announces the owner's own ("Reminder: …"), or an empty text."""
    colon = _COLON.search(text[:_LONGEST])
    if colon is None:
        return ""
    lead = text[: colon.start()]
    is_own = (
        0 < len(_TOKEN.findall(lead)) <= _MOST_NAMED and _is_own(lead) and not leads_others(text)
    )
    return text[colon.end() :].strip() if is_own else ""


def is_signed(text: str) -> bool:
    """Return True if a name stands below or behind a text, as below a quotation or a letter."""
    signed = _SIGNED.search(text[-_END:])
    if signed is None or len(signed["name"].split()) > _MOST_SIGNING:
        return False
    return signed["name"][:1].isupper() or _names(signed["name"])


def _edits(text: str) -> bool:
    """Whether a text begins with an order to edit, translate or explain."""
    order = words_of("editing").search(text)
    return order is not None and not _POLITE.sub("", text[: order.start()]).strip(" ,:*_")


def _is_cited(lead: str) -> bool:
    """Whether a lead says of whom or from where the text behind it is: "note from Otto", "the vendor wrote"."""
    said = saying_words().search(lead) or quoting_words().search(lead)
    if said is not None and not _FIRST_PERSON.search(lead[: said.start()]):
        return True
    owner = _POSSESSIVE.search(lead)
    if owner and _names(owner[1]):
        return True
    by = author_words().search(lead)
    author = lead[by.end() :].strip() if by and len(_TOKEN.findall(lead)) <= _MOST_CITING else ""
    return bool(author) and _names(author)


def _is_own(lead: str) -> bool:
    """Whether a lead announces a rule or a note, or speaks of the owner and not of their people."""
    text, known = f"{lead}:", cues()
    own = (
        known.remember,
        known.rule,
        known.place,
        known.decided,
        words_of("announcing"),
        words_of("kept"),
    )
    if any(one.search(text) for one in own) or language_of(text).remember.strip.match(f"{text} x"):
        return True
    return words_of("self").search(lead) is not None and words_of("people").search(lead) is None


def _names(lead: str) -> bool:
    """Whether a short lead is a person, a role, a place where people write, or a text of somebody else's."""
    tokens = _TOKEN.findall(lead)
    if not 0 < len(tokens) <= _MOST_NAMED or _VERB.search(lead):
        return False
    if _HEADER.fullmatch(lead) or any(
        _SOURCE.match(one) or is_outside_source(one) for one in tokens[:2]
    ):
        return True
    if words_of("people").search(lead):
        return True
    strange = [
        one for one in tokens if (_NAME.match(one) or len(tokens) == 1) and not _is_common(one)
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
    return bool(strange) and (
        any(one[0].isupper() for one in strange) or len(strange) == len(tokens)
    )


def _is_common(word: str) -> bool:
    """Return True if a word is a topic or a common noun rather than a name.

    The plural of a common noun is hardly rarer than its singular; that of a name is rare or unknown.
    """
    lower, ranks, language = word.lower(), minilm.vocabulary(), language_of(word)
    if not language.subject.stop.isdisjoint((lower, f"{lower}'s")):
        return True
    if lower > _WIDE:
        return len(lower) > _LONGEST_WIDE_NAME
    singular = lower.removesuffix("s")
    if lower not in ranks:
        return singular in ranks
    return lower.endswith(_NOUN_ENDINGS) or ranks.get(
        f"{singular}s", len(ranks)
    ) < _PLURAL * ranks.get(singular, 0)


# ----------------------------------------------------------------------------
# Reads: what someone typed, split into statements without what they only pasted.


MAX_STATEMENTS = 30
_FIRST, _LAST = 10, 4
_MAX_TYPED = 30_000
_MAX_STATEMENT = 1_500
_REMEMBERED_SENTENCES = 64  # a message is looked at for answers, causes and claims
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
    cut = (
        _CUT if is_pasted and not is_terminal(part) else "" if is_pasted else part
        for is_pasted, part in parts
    )
    found = _split("\n\n".join(cut), is_typed=True)
    is_mixed = any(one.marked for one in found) or leaves_out(text, found)
    return [replace(one, mixed=is_mixed) for one in found]


def leaves_out(text: str, statements: Sequence[Statement]) -> bool:
    """Return True if a message has words, other than links, that none of its statements has."""
    said = sum(_length(one.text) + len(one.mark or "") for one in statements)
    return said < _length(text)


def _length(text: str) -> int:
    return sum(map(str.isalnum, _LINK.sub("", text)))


@lru_cache(maxsize=_REMEMBERED_SENTENCES)
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
            statements.append(
                Statement(part, item["mark"] if item else None, lead, number, lines[0], is_marked)
            )
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


# ----------------------------------------------------------------------------
# Reads: what the owner said in a session, turn by turn.


_UNSPOKEN = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN
_COMMAND = re.compile(r"^/\S+\s*")
_REJECTED = "rejected"
_ECHO_TURNS = 40
_TITLE = re.compile(r"[A-Z][^\n.!?:;,`]{2,60}\n[ \t]*\n(?=[ \t]*\S)")
_READER = re.compile(r"\byour?\b", re.IGNORECASE)
_FORM = re.compile(rf"^(?P<question>.+[?？:：]) [{CHOSEN}{TYPED}] (?P<answer>\S.*)$", re.MULTILINE)
_ARROW = f"{CHOSEN} "
_CHOSE = re.compile(rf"[?？:：] {CHOSEN}")
_MOST_OF_A_NOD = 3
_SELF = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Ww]e|us|[Oo]urs?|[Ll]et['’]?s|[Pp]lease)\b")
_ADDRESSED_SPEECH = 2
"""How often a page says "you" or "your", at least."""
_MIN_ECHO = 25
_HEAD = 3


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message of the owner: where it is, its words and statements, and where it stands again: a message that was
    typed while the agent worked may be written down twice.

    ``correcting`` says that it declined a tool call; ``troubles`` are the statements, trimmed, that sound like trouble.
    """

    index: int
    text: str
    statements: tuple[Statement, ...]
    correcting: bool = False
    copies: tuple[int, ...] = ()
    troubles: frozenset[str] = frozenset()


def is_content(turn: Turn) -> bool:
    """Whether a turn's words were said by its speaker at all; what an agent says of nacre's own context is nacre's."""
    unspoken = _UNSPOKEN | Flag.INJECTED if turn.speaker is Speaker.AGENT else _UNSPOKEN
    return not turn.flags & unspoken and bool(turn.text.strip())


def utterances(turns: Sequence[Turn]) -> list[Utterance]:
    """The owner's words in order: messages, arguments of slash commands, words that declined a tool call."""
    found: list[Utterance] = []
    for index, turn in enumerate(turns):
        for text, correcting in _words(turns, index, turn):
            typed = [] if _is_page(text) else split_typed(_FORM.sub(_answering, text))
            statements = tuple(
                one for one in _in_one_language(typed) if not _echoes(one.text, turns, index)
            )
            if len(statements) < len(typed):
                statements = tuple(replace(one, mixed=True) for one in statements)
            if statements and found and found[-1].text == text:
                found[-1] = replace(found[-1], copies=(*found[-1].copies, index))
            elif statements:
                found.append(Utterance(index, text, statements, correcting))
    return found


@dataclass(frozen=True, slots=True)
class Answered:
    """A question of a form, in the agent's words, and what the owner answered: yes or no and no more (``nods``), or
    words; ``typed`` if these are none of its options.
    """

    question: str
    answer: str
    nods: bool
    typed: bool


def forms(text: str) -> list[Answered]:
    """The questions of forms that a message answers, in order."""
    return [_answered(form) for form in _FORM.finditer(text)]


def is_chosen(utterance: Utterance, statement: Statement) -> bool:
    """Whether a statement is an answer that a form had among its options: its words are the agent's."""
    said = statement.text.rpartition(_ARROW)[2]
    return any(said in one.answer for one in forms(utterance.text) if not one.typed)


def without_chosen(text: str) -> str:
    """A message without the agent's words in a form: what was chosen goes, and of what was typed the question."""
    return _FORM.sub(lambda form: form["answer"] if _answered(form).typed else "", text).strip()


def _answered(form: re.Match[str]) -> Answered:
    answer = form["answer"]
    cues = language_of(answer).answers
    nods = len(words(answer)) <= _MOST_OF_A_NOD and bool(
        cues.no.match(answer) or cues.yes.match(answer)
    )
    return Answered(form["question"], answer, nods, typed=not _CHOSE.search(form[0]))


def _answering(form: re.Match[str]) -> str:
    """What the owner said by an answer: the answer with its question, unless it is a nod or was typed; what the agent
    stated before it asked is the agent's.
    """
    answered = _answered(form)
    asking = [] if answered.nods or answered.typed else split(form["question"])
    return f"{asking[-1].text} → {form['answer']}" if asking else form["answer"]


def _is_page(text: str) -> bool:
    """Whether a message is a page of somebody's, copied as it stands: under a bare title it speaks to its reader, and
    nobody in it speaks of themselves, asks or says please. A role that is given to an agent looks alike, and states
    nothing of its owner either."""
    title = _TITLE.match(text.lstrip())
    if not title or "?" in text or _SELF.search(text):
        return False
    return len(_READER.findall(text)) >= _ADDRESSED_SPEECH


def _in_one_language(statements: list[Statement]) -> list[Statement]:
    """Without the sentences in English of a message that is in another language: those are pasted."""
    spoken = {language_of(one.text).joiner for one in statements}
    return (
        [one for one in statements if not language_of(one.text).joiner]
        if spoken == {"", " "}
        else statements
    )


def _echoes(statement: str, turns: Sequence[Turn], index: int) -> bool:
    """Whether the owner pasted what an agent had written: a task from its list, a line of its report."""
    wanted = normalise(statement)
    if len(wanted) < _MIN_ECHO:
        return False
    recent = turns[max(0, index - _ECHO_TURNS) : index]
    return any(one.speaker is Speaker.AGENT and wanted in _plain(one.text) for one in recent)


@lru_cache(maxsize=2 * _ECHO_TURNS)
def _plain(text: str) -> str:
    return normalise(text)


def _words(turns: Sequence[Turn], index: int, turn: Turn) -> list[tuple[str, bool]]:
    if turn.flags & _UNSPOKEN:
        return []
    if turn.speaker is Speaker.AGENT:
        return [(said, True) for said in _declined(turn)]
    if turn.speaker is not Speaker.OWNER or turn.trust is Trust.UNTRUSTED:
        return []
    text = _COMMAND.sub("", turn.text) if turn.flags & Flag.COMMAND else turn.text
    previous = before(turns, index, Speaker.AGENT)
    calls = turns[previous].tool_calls if previous is not None and previous == index - 1 else ()
    return [(text, bool(calls and calls[-1].outcome == _REJECTED))] if text.strip() else []


def _declined(turn: Turn) -> list[str]:
    prefix = f"{_REJECTED}: "
    return [
        call.outcome.removeprefix(prefix)
        for call in turn.tool_calls
        if call.outcome and call.outcome.startswith(prefix) and len(call.outcome) > len(prefix)
    ]


def before(turns: Sequence[Turn], index: int, speaker: Speaker) -> int | None:
    """The index of the last turn with words, of a speaker, before another turn."""
    for at in range(index - 1, -1, -1):
        turn = turns[at]
        if turn.speaker is Speaker.OWNER and is_content(turn) and speaker is not Speaker.OWNER:
            return None
        if turn.speaker is speaker and is_content(turn):
            return at
    return None


def acceptance(utterance: Utterance, language: Language) -> list[str] | None:
    """What the owner adds to words that accept what an agent said; ``None`` where they accept nothing.

    "Ha. Yes, that's it." accepts with its second sentence.
    """
    head = [one.text for one in utterance.statements[:_HEAD]]
    yes = language.accepted.yes.match(" ".join(head))
    if not yes:
        return None
    rest = yes.end()
    while head and rest >= len(head[0]):
        rest -= len(head.pop(0)) + 1
    return (
        [text for text in (head[0][max(rest, 0) :].strip(" ,;:—–-"), *head[1:]) if text]
        if head
        else []
    )


def is_taken_back(utterance: Utterance, place: int) -> bool:
    """Whether a later statement of the same message takes a statement back: "use Redis. no wait, forget it"."""
    later = utterance.statements[place + 1 :]
    return any(language_of(one.text).reversal.undo.match(one.text) for one in later)


def is_accepted_plan(turns: Sequence[Turn], index: int) -> bool:
    """Whether a turn is a plan that an agent had written and that the owner accepts next, by its title."""
    turn, following = turns[index], turns[index + 1 : index + 2]
    if not turn.flags & Flag.SUMMARY or not following or following[0].speaker is not Speaker.OWNER:
        return False
    title = following[0].text.rstrip().rpartition("\n")[2]
    return bool(title) and turn.text.startswith(title)


def trusted_agent(turns: Sequence[Turn], index: int) -> int | None:
    """The index of the agent's last words before a turn, unless they draw on text from outside."""
    at = before(turns, index, Speaker.AGENT)
    return at if at is not None and turns[at].trust is Trust.TRUSTED else None
