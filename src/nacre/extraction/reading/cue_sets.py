"""The sets of cues that a language's file holds."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.extraction.reading.patterns import Pattern
from nacre.values.memory import Kind


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
