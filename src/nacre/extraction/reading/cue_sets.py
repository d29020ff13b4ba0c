"""The sets of cues that a language's file holds."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.extraction.reading.patterns import Pattern


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
