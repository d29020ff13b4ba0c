"""The data: the cue tables: what words tell a decision from a preference, per language. Data in ``cues/*.toml``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from nacre.extraction.reading.patterns import Pattern
from nacre.values.memory import Kind

_SHARED = "shared.toml"
_FALLBACK = "en"
_LOOKBEHIND = re.compile(r"(\(\?<[!=][^)]*\))")
_SPACED_WORD = re.compile(r"[^\W\d_\u2e80-\uffff]+")
_APOSTROPHE = re.compile(r"(?<=[a-z]n)'(?=t\b)|(?<=\blet)'(?=s\b)|(?<=hat)'(?=s\b)|(?<=here)'(?=s\b)")


@dataclass(frozen=True, slots=True)
class Cue:
    """Words that make a statement one of a kind.

    ``with_request`` says that such a statement is read together with the request before it; ``despite`` names
    the reasons for refusal that do not count against it.
    """

    kind: Kind
    weight: float
    pattern: Pattern
    with_request: bool = False
    despite: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Mark:
    """Words that make a statement more, or less, worth keeping."""

    name: str
    weight: float
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class SummaryCues:
    """How sessions begin, go on and end: words of the owner that ask for nothing (``idle``), that ask to go on with
    the same (``onward``), that ask only to have something looked at (``look``) and that end it (``stop``); the agent's
    words that it did not get there (``gave_up``), that ask for nothing in particular (``offer``), that lead into what
    is left (``ahead``), that say so (``left``).
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


@dataclass(frozen=True, slots=True)
class Remember:
    """``strip`` leads into what is to be kept; ``after`` points back at what was just said."""

    strip: Pattern
    after: Pattern


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
    more: Pattern
    order: Pattern
    need: Pattern
    chosen: Pattern
    about: Pattern
    reason: Pattern


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


@dataclass(frozen=True, slots=True)
class AcceptedCues:
    """Words that accept what an agent said (``yes``) or take its work as ``finished``; its words on how things are to
    be (``claim``), or only on what
    it does next (``step``).
    """

    yes: Pattern
    finished: Pattern
    claim: Pattern
    step: Pattern


@dataclass(frozen=True, slots=True)
class LessonCues:
    """Trouble, what it came from, and whether that was confirmed; ``confirmation`` alone tells nothing else.

    ``trouble_asked`` is a question that tells of trouble: "why does the build hang?"; ``announce`` says that the
    cause comes next: "Found it."; ``fix`` what is different now: "the client now retries instead of giving up".
    A request that goes with trouble is in its ``tail``: "…, can you have a look?"; with ``own`` words a person begins
    to tell the cause themselves: "found it myself"; a ``deed`` tells what was or will be done, not why. What sounds
    like trouble may be something ``other``: a wish, an attempt; with a ``doubt`` it is told too vaguely.
    """

    problem: Pattern
    trouble_asked: Pattern
    cause: Pattern
    fix: Pattern
    announce: Pattern
    solved: Pattern
    confirmation: Pattern
    unsolved: Pattern
    hedge: Pattern
    tail: Pattern
    own: Pattern
    deed: Pattern
    other: Pattern
    doubt: Pattern


@dataclass(frozen=True, slots=True)
class ConcludedCues:
    """What an agent reports, after a ``lead``, to a ``hunt``: what it was (``cause``, led in by an ``announce`` or
    under a ``topic``), what mended it (``fix``), that it is ``done``. Not kept is what is not certain (``hedge``), not
    worth telling (``trivial``, ``status``) or only comes next (``step``).

    How the owner goes on: ``onward`` from it, with a word to ``go`` ahead, with an ``objection``; the trouble
    ``persists``; the agent's claim is ``refuted`` by itself, or its ``guess`` is ``confirmed``.
    """

    lead: Pattern
    hunt: Pattern
    announce: Pattern
    topic: Pattern
    cause: Pattern
    fix: Pattern
    hedge: Pattern
    trivial: Pattern
    status: Pattern
    step: Pattern
    done: Pattern
    onward: Pattern
    go: Pattern
    objection: Pattern
    persists: Pattern
    refuted: Pattern
    guess: Pattern
    confirmed: Pattern


@dataclass(frozen=True, slots=True)
class BehaviourCues:
    """A ``wish`` for how the product is to behave, not a ``chore``, and what a report says of that.

    How it behaves ``now``, with its ``contrast``, ``condition`` and ``reason``; an ``aside`` is about code, tests,
    documents; ``more`` goes on. ``label`` names the change before the words themselves, ``topic`` heads what tells of
    behaviour, ``whenever`` begins a rule, ``pronoun`` is its subject when that was named before.
    """

    wish: Pattern
    chore: Pattern
    now: Pattern
    contrast: Pattern
    condition: Pattern
    reason: Pattern
    aside: Pattern
    more: Pattern
    label: Pattern
    topic: Pattern
    whenever: Pattern
    pronoun: Pattern


@dataclass(frozen=True, slots=True)
class PlanCues:
    """A plan by its ``opening``; what stands before its ``title``; headings of its ``steps``, of its ``solution``, and
    all that only name a ``section``; sentences with a ``reason``, best of all one of ``design``; a ``step``, and what
    is no more the case ``before`` long.
    """

    opening: Pattern
    title: Pattern
    steps: Pattern
    solution: Pattern
    section: Pattern
    reason: Pattern
    design: Pattern
    step: Pattern
    before: Pattern


@dataclass(frozen=True, slots=True)
class FeedbackCues:
    """A review's remark that is ``handed`` over: the ``harm`` it sees and its ``remedy``."""

    handed: Pattern
    harm: Pattern
    remedy: Pattern


@dataclass(frozen=True, slots=True)
class OpeningCues:
    """A request for a ``whole`` thing with what it is made of or for; a ``part`` is only a piece of one. What is
    ``asking`` in it is told as what it ``says`` of the project.
    """

    whole: Pattern
    asking: Pattern
    says: str
    part: Pattern


@dataclass(frozen=True, slots=True)
class ReversalCues:
    """Taking back what was said, removing it, giving up ``what`` it names (``scrap``), asking for it to be done,
    changing one's mind.
    """

    undo: Pattern
    removal: Pattern
    scrap: Pattern
    request: Pattern
    change: Pattern


@dataclass(frozen=True, slots=True)
class RepeatedCues:
    """Ways of doing a thing that a person asks for again when they are not followed, and their verbs."""

    manner: Pattern
    verb: Pattern


@dataclass(frozen=True, slots=True)
class AloneCues:
    """What meaning alone does not speak for; trouble only ``because`` of something."""

    refuse: Pattern
    trouble: Pattern
    because: Pattern


@dataclass(frozen=True, slots=True)
class ExpiryCues:
    """What will pass."""

    temporary: Pattern


@dataclass(frozen=True, slots=True)
class ImportanceCues:
    """How much a statement weighs."""

    remember: int
    strong: Pattern
    by_kind: dict[Kind, int]


@dataclass(frozen=True, slots=True)
class Wording:
    """What is put differently in a memory: ``acronyms`` in capitals; no ``label`` in front; an ``item`` of a list (its
    ``name``, and what is said of it), a ``choice`` of options (its ``topic``), what is ``wished`` of a ``topic`` and a
    ``polite`` question (its ``wish``) as plain sentences; a wish says not ``here``.
    """

    acronyms: frozenset[str]
    label: Pattern
    item: Pattern
    choice: Pattern
    wished: Pattern
    here: Pattern
    polite: Pattern


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A turn of phrase, and the shorter one a title has for it."""

    pattern: Pattern
    by: str


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
    weak: frozenset[str]
    verbs: frozenset[str]
    links: frozenset[str]
    determiners: frozenset[str]
    articles: frozenset[str]
    opener: Pattern
    front: Pattern
    asked: Pattern
    stray: Pattern
    condition: Pattern
    carried: Pattern
    making: Pattern
    predicate: Pattern
    noise: Pattern
    ending: Pattern
    border: Pattern
    joint: Pattern
    rewrite: tuple[Rewrite, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Extra weight: for a known topic, for words said when declining a tool call, and (negative) for the
    details that follow when a message begins with a request.
    """

    topical: float
    rejected: float
    specification: float


@dataclass(frozen=True, slots=True)
class Language:
    """Everything nacre knows about how people say durable things in one language. ``topical`` is any topic's name."""

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
    lesson: LessonCues
    concluded: ConcludedCues
    behaviour: BehaviourCues
    plan: PlanCues
    feedback: FeedbackCues
    opening: OpeningCues
    reversal: ReversalCues
    repeated: RepeatedCues
    expiry: ExpiryCues
    importance: ImportanceCues
    summary: SummaryCues
    reject: dict[str, Pattern]
    alone: AloneCues
    wording: Wording
    subject: SubjectWords
    score: Score
    cue: tuple[Cue, ...]
    mark: tuple[Mark, ...]
    topics: dict[str, Pattern]
    topical: Pattern
    names: Pattern
    things: dict[str, Pattern] = field(default_factory=dict)

    def trim(self, text: str) -> str:
        """The text without conversational beginning and end."""
        lead = self.lead.match(text)
        bare: str = self.tail.sub("", text[lead.end() :] if lead else text)
        return bare.strip(" \t,;:—–-")

    def told(self, text: str) -> str:
        """The text without conversational beginning and end, nor a request that goes with what it tells."""
        trimmed = self.trim(text)
        return self.lesson.tail.sub("", trimmed).strip(" \t,;:—–-") or trimmed


def _pattern(wanted: type, value: Any) -> Any:
    if wanted == Pattern:
        return Pattern(_typed(value if isinstance(value, str) else "|".join(value)))
    raise NotImplementedError(wanted)


def _typed(pattern: str) -> str:
    """A pattern that also takes "dont", "lets" and curved apostrophes; lookbehinds stay as they are."""
    parts = _LOOKBEHIND.split(pattern)
    return "".join(part if at % 2 else _APOSTROPHE.sub("['’]?", part) for at, part in enumerate(parts))


def _words(words: list[str]) -> str:
    """One pattern for a list of names; only names in a script with spaces end at a word boundary.

    Names with the same first letter stand together: a word is compared with the letters first, not with all names.
    """
    by_letter: dict[str, list[str]] = {}
    for word in words:
        if word.isascii():
            by_letter.setdefault(word[:1].lower(), []).append(re.escape(word[1:]))
    spaced = "|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in by_letter.items())
    parts = [rf"(?<![\w.-])(?:{spaced})(?![\w-])"] if spaced else []
    return "|".join([*parts, *(re.escape(word) for word in words if not word.isascii())])


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "cues" / name).read_text(encoding="utf-8"))


def _load(name: str, shared: dict[str, Any]) -> Language:
    table = _table(name)
    for section in ("topics", "things"):
        own, common = table.get(section, {}), shared.get(section, {})
        topics = {topic: own.get(topic, []) + common.get(topic, []) for topic in (*own, *common)}
        if section == "topics":
            table["topical"] = _words([word for words in topics.values() for word in words])
        table[section] = {topic: _words(words) for topic, words in topics.items()}
    named = {word for words in shared["topics"].values() for word in words}
    table["names"] = _words(sorted(named - set(shared["plain"])))
    return msgspec.convert(table, Language, dec_hook=_pattern)


@cache
def languages() -> tuple[Language, ...]:
    """All languages that have a cue table; the one that any text falls back to comes last."""
    shared = _table(_SHARED)
    names = sorted(entry.name for entry in (files(__package__) / "cues").iterdir())
    found = [_load(name, shared) for name in names if name.endswith(".toml") and name != _SHARED]
    return tuple(sorted(found, key=lambda language: language.language == _FALLBACK))


@cache
def _fallback() -> Language:
    return languages()[-1]


@cache
def language_named(name: str) -> Language:
    """The cue table of a language, by what the table calls itself."""
    return next(one for one in languages() if one.language == name)


def language_of(text: str) -> Language:
    """The cue table for a text: the first whose script it is written in."""
    if text.isascii():
        return _fallback()
    flat = text.replace("\n", " ")
    return next((one for one in languages() if one.detect.search(flat) and _is_mostly(one, flat)), _fallback())


def _is_mostly(language: Language, text: str) -> bool:
    """Whether a text is in a language's script and does not only quote it: each sign of it counts as half a word."""
    if language.joiner:
        return True
    words = _SPACED_WORD.findall(text)
    signs = sum(character.isalpha() for character in _SPACED_WORD.sub("", text))
    return 2 * len(words) <= 3 * signs
