"""What operations report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nacre.values.memory import Memory
from nacre.values.model_calls import Tokens


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long operation is.

    ``stage`` is ``reading`` (bytes), ``learning`` (sessions) or ``vectors`` (texts).
    """

    stage: str
    done: int
    total: int
    note: str = ""


OnProgress = Callable[[Progress], None]
"""Is called now and then with how far a long operation is."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read, and why; the rest went on without it."""

    path: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What was archived: so many ``files``, of which ``read`` bytes were new, which take ``stored`` bytes.

    ``pruned`` transcripts were given up, as the settings say.
    """

    files: int = 0
    read: int = 0
    stored: int = 0
    pruned: int = 0
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelExtraction:
    """What a language model did for extraction: so many ``sessions`` were asked about in ``parts``; ``trivial`` ones
    had nothing to ask about.

    It ``found`` memories that their sessions bear out; ``held`` ones wait, as that is doubtful; ``repeated`` ones it
    said twice, ``dropped`` ones, by reason, were of no use. ``by_rules`` parts were left to the deterministic
    extractor, and ``problem`` says why. ``elsewhere`` sessions were left to another process, which has them read.
    """

    model: str = ""
    sessions: int = 0
    trivial: int = 0
    parts: int = 0
    by_rules: int = 0
    calls: int = 0
    tokens: Tokens = Tokens()
    found: int = 0
    held: int = 0
    repeated: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    problem: str | None = None
    hint: str | None = None
    elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest read and learned.

    ``files`` were read; ``skipped`` were unchanged or are no transcripts. ``left_out`` files hold what was
    forgotten, which was left out. ``memories`` are the ids of new ones; ``duplicates`` counts candidates that were
    known, ``vectors_left`` texts that have no vector yet. ``excluded`` says how many files (by tool) or sessions (by
    project or path) the settings left out. ``empty`` are the paths of databases without a byte where a tool keeps its
    sessions: there are none yet, or they are lost. ``decided`` counts what a language model decided about new memories
    (``ADD``, ``UPDATE``, ``SKIP``, ``SUPERSEDE``, ``AMEND``). ``read_seconds`` passed until everything was searchable,
    ``seconds`` in all. ``extraction`` is ``None`` where no language model is to be asked.
    """

    files: int = 0
    sessions: int = 0
    turns: int = 0
    memories: tuple[str, ...] = ()
    skipped: int = 0
    unrecognised: int = 0
    left_out: int = 0
    duplicates: int = 0
    bytes_read: int = 0
    read_seconds: float = 0.0
    seconds: float = 0.0
    foreseen: str | None = None
    """What was said before it learned, where today's budget did not hold all of it."""

    vectors_made: int = 0
    vectors_left: int = 0
    vectors_note: str | None = None
    tools: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    corrupt: int = 0
    oversized: int = 0
    """How many of the corrupt lines were too long to be read."""

    excluded: dict[str, int] = field(default_factory=dict)
    archived: ArchiveReport = field(default_factory=ArchiveReport)
    empty: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    decided: dict[str, int] = field(default_factory=dict)
    extraction: ModelExtraction | None = None
    candidates: int = 0
    """How many more may matter, and wait for a writer, for the owner to say them again, or for review."""

    changed: int = 0
    """Known memories that a writer brought up to date."""

    doubted: int = 0
    """Known memories that may be out of date, as a writer found: they wait in review."""

    ended: int = 0
    """Known memories that are over, as what was read shows."""


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """What an ingest would read: ``files`` with so many ``bytes`` that are new, by tool; as :class:`IngestReport`."""

    files: int = 0
    bytes: int = 0
    tools: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    unrecognised: int = 0
    excluded: dict[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Replaced:
    """A memory that another one superseded, and why in a few words."""

    memory: Memory
    reason: str


@dataclass(frozen=True, slots=True)
class StoreOutcome:
    """What became of a memory that was to be stored: ``stored``, or ``known`` (the id says which one it repeats), or
    ``updated`` (it became one with that memory), or ``retired`` at once, because a standing retirement says so.

    ``supersedes`` are the memories it took the place of; ``superseded_by`` is a newer memory that says otherwise, where
    what was stored is older. ``similar`` are memories that may say the same, the likeliest first. ``decided_by`` is the
    language model that decided; the rules did where it is ``None``. ``amended`` is a memory of which it ended a part,
    as that reads now. ``note`` says why one that was to decide did not.
    ``proposed``: an agent stored it, and the owner neither said nor kept it.
    """

    action: str
    memory_id: str
    reason: str | None = None
    supersedes: tuple[Replaced, ...] = ()
    superseded_by: Replaced | None = None
    similar: tuple[Memory, ...] = ()
    decided_by: str | None = None
    note: str | None = None
    proposed: bool = False
    amended: Memory | None = None

    def in_words(self) -> str | None:
        """Why a store touched other memories."""
        replaced = "; ".join(one.memory.subject for one in self.supersedes)
        did = {"known": "said again", "updated": "made one with it"}.get(self.action)
        did = did or (f"replaces {replaced}" if replaced else None)
        did = did or (f"ends a part of {self.amended.subject}" if self.amended else None)
        return f"{did} ({self.decided_by}: {self.reason})" if did and self.decided_by else did


OK, WARNING, FAILURE = "ok", "warning", "failure"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of ``nacre doctor`` or ``nacre doctor``; ``state`` is OK, WARNING or FAILURE."""

    name: str
    state: str
    detail: str
    hint: str | None = None
