"""What operations report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nacre.values.memory import Memory
from nacre.values.models import Tokens


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


# ----------------------------------------------------------------------------
# What wiring a host means: what is asked, what would change, what was done.


@dataclass(frozen=True, slots=True)
class WiringWish:
    """A host to wire, for all of the user's, or for one project.

    ``plain``: by its settings alone, where there would be a plugin. ``slot``: the host's own place
    for memory becomes that of nacre. ``tool_hook``: a hook also runs before each edit and command. ``isolates``: the
    host's own memory is turned off, and what it holds is imported.
    """

    host: str
    project: Path | None = None
    plain: bool = False
    slot: bool = False
    tool_hook: bool = False
    isolates: bool = False

    @property
    def scope(self) -> str:
        """``user`` or ``project``."""
        return "project" if self.project else "user"

    @property
    def place(self) -> tuple[str, str]:
        """What there is one wiring of: a host, in a project or for the user."""
        return self.host, str(self.project or "")


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file as it is and as it is to be; ``None`` is no file. ``path`` is where it really lies.

    ``hosts`` are those that it is for; ``what`` tells what goes in or out. ``is_pristine``: nothing of nacre's is in it
    before.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    hosts: tuple[str, ...]
    what: str
    mode: int = 0o600
    is_pristine: bool = True

    @property
    def action(self) -> str:
        """``create``, ``change``, ``remove`` or ``none``."""
        if self.before == self.after:
            return "none"
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A file that is not touched, or something in it, and why."""

    path: Path
    host: str
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class HostSetting:
    """A setting of a host's own that nacre changes: where it stands, its keys, and what it was, as JSON; empty where it
    was not there."""

    host: str
    path: Path
    name: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class OwnMemory:
    """How it stands with a host's own memory: ``isolated`` (the host neither loads nor writes it), ``restored`` (it
    does again, as before nacre) or ``conflict`` (somebody turned it on again, and nacre leaves that alone)."""

    host: str
    state: str
    told: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class HostCommand:
    """A command of a host's own that is run, and what for; ``touches`` are files that it may write anew."""

    words: tuple[str, ...]
    what: str
    touches: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class WiringPlan:
    """All that would be done, and what a person has to do afterwards (by host).

    ``kept`` are servers of nacre's name that the owner wrote. ``servers`` are those that are nacre's when it is done:
    the file, and the words that start it. ``set`` and ``given_back`` are settings of hosts that change: those of
    their own memories.
    """

    wishes: tuple[WiringWish, ...]
    changes: tuple[FileChange, ...]
    left_alone: tuple[LeftAlone, ...] = ()
    kept: tuple[LeftAlone, ...] = ()
    servers: tuple[tuple[Path, tuple[str, ...]], ...] = ()
    commands: tuple[HostCommand, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    is_removal: bool = False
    own_memories: tuple[OwnMemory, ...] = ()
    set: tuple[HostSetting, ...] = ()
    given_back: tuple[HostSetting, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether all is as it should be already."""
        return not self.commands and all(change.action == "none" for change in self.changes)


@dataclass(frozen=True, slots=True)
class WiringDone:
    """What was done: the changes, the copies of files as they were before, and what went wrong.

    ``old_copies`` are those of earlier changes that nothing needs any more.
    """

    plan: WiringPlan
    backups: tuple[Path, ...]
    left_alone: tuple[LeftAlone, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    """Commands of hosts that failed, with what they said."""

    old_copies: tuple[Path, ...] = ()
    trusted: bool = False
    """Whether Codex was told to trust the hooks, and does."""


# ----------------------------------------------------------------------------
# The portable file: what its lines are called. Who writes and who reads it share these names.
#
# The first line is the header, the last one the trailer. Between them one JSON object a line, each
# with its ``type``.


FORMAT = "nacre-export"
VERSION = 1

HEADER = "header"
PAGE = "page"
MEMORY = "memory"
LINK = "link"
LEDGER_ENTRY = "ledger"
SESSION = "session"
TURN = "turn"
TRAILER = "trailer"
