"""Operation reports, and plans for connecting hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any

from nacre.base.frozen import frozen
from nacre.values.memory import Memory
from nacre.values.models import Tokens


@frozen
class Progress:
    """The progress of a long operation.

    ``stage`` is ``reading`` (in bytes), ``learning`` (in sessions) or ``vectors`` (in passages).
    """

    stage: str
    done: int
    total: int
    note: str = ""


OnProgress = Callable[[Progress], None]
"""Callback for the progress of a long operation."""


@frozen
class Problem:
    """A file that was skipped because it could not be read, and why."""

    path: str
    message: str
    hint: str | None = None


@frozen
class ArchiveReport:
    """The result of archiving transcripts.

    ``read``: number of new bytes.
    ``stored``: number of bytes written.
    ``pruned``: number of old transcripts deleted according to the settings.
    """

    files: int = 0
    read: int = 0
    stored: int = 0
    pruned: int = 0
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()


@frozen
class ModelExtraction:
    """Statistics of extraction with a language model.

    ``parts``: number of pieces into which sessions were split.
    ``by_rules``: number of pieces processed without a model.
    ``held``: number of doubtful memories, which wait for review.
    ``dropped``: numbers of useless memories by reason.
    ``problem``: why the model was not used.
    ``elsewhere``: number of sessions that another process is processing.
    """

    model: str = ""
    sessions: int = 0
    parts: int = 0
    by_rules: int = 0
    calls: int = 0
    tokens: Tokens = Tokens()
    held: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    problem: str | None = None
    hint: str | None = None
    elsewhere: int = 0


@frozen
class IngestReport:
    """The result of reading new transcripts.

    ``files``: number of files read.
    ``skipped``: number of files that are unchanged or not transcripts.
    ``left_out``: number of files from which forgotten content was omitted.
    ``excluded``: numbers of excluded files or sessions by tool, project or path.
    ``memories``: ids of new memories.
    ``duplicates``: number of candidates that are already known.
    ``decided``: numbers of a model's decisions (``ADD``, ``UPDATE``, ``SKIP``, ``SUPERSEDE``,
        ``AMEND``).
    ``vectors_left``: number of passages and memories without a vector.
    ``empty``: paths of empty databases, whose sessions are lost, if there were any.
    ``unread``: messages about transcripts that were not understood or need a plugin.
    ``seconds``: total time.
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
    seconds: float = 0.0
    vectors_made: int = 0
    vectors_left: int = 0
    vectors_note: str | None = None
    tools: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    corrupt: int = 0
    oversized: int = 0
    """Number of corrupt lines that exceed the maximum length."""

    excluded: dict[str, int] = field(default_factory=dict)
    archived: ArchiveReport = field(default_factory=ArchiveReport)
    empty: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    """Suggestions, such as a command for a renamed folder."""

    problems: tuple[Problem, ...] = ()
    decided: dict[str, int] = field(default_factory=dict)
    extraction: ModelExtraction | None = None
    candidates: int = 0
    """Number of candidates, which wait for a writer, a repeated statement or a review."""

    doubted: int = 0
    """Number of known memories queued for review, because a writer doubts them."""

    ended: int = 0
    """Number of known memories that the transcripts show to be no longer true."""


@frozen
class IngestPlan:
    """The number of files that would be read, and the size of their new content in bytes.

    See also :class:`IngestReport`.
    """

    files: int = 0
    bytes: int = 0
    tools: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    unrecognised: int = 0
    excluded: dict[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


@frozen
class Replaced:
    """A memory that was superseded, and why."""

    memory: Memory
    reason: str


@frozen
class StoreOutcome:
    """The result of storing a memory.

    ``action``: ``stored``, ``known`` (already known), ``updated`` (merged into a known memory) or
        ``retired`` (by a standing rule).
    ``supersedes``: memories that it replaces.
    ``superseded_by``: newer memory that contradicts it.
    ``amended``: memory of which a part was superseded, with its new text.
    ``similar``: possible duplicates, most likely first.
    ``decided_by``, ``note``: language model that decided, or why none did.
    ``proposed``: whether an agent stored it without the owner's confirmation.
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
        """Describe the effect on other memories, or return None if there is none."""
        replaced = "; ".join(item.memory.subject for item in self.supersedes)
        effect = {"known": "said again", "updated": "made one with it"}.get(self.action)
        effect = effect or (f"replaces {replaced}" if replaced else None)
        effect = effect or (f"ends a part of {self.amended.subject}" if self.amended else None)
        return (
            f"{effect} ({self.decided_by}: {self.reason})" if effect and self.decided_by else effect
        )


OK, WARNING, FAILURE = "ok", "warning", "failure"


@frozen
class Check:
    """One result of ``nacre admin doctor``. ``state`` is OK, WARNING or FAILURE."""

    name: str
    state: str
    detail: str
    hint: str | None = None


# -- Connecting hosts ----------------------------------------------------------


@frozen
class WiringWish:
    """A request to connect a host, for the user or for one project.

    ``slot``: whether nacre becomes the host's memory provider.
    ``tool_hook``: whether a hook also runs before each edit and command.
    ``isolates``: whether to turn off the host's own memory and import its content.
    ``introduces``: whether to add a block about nacre to the host's ``MEMORY.md`` files.
    """

    host: str
    project: Path | None = None
    slot: bool = False
    tool_hook: bool = False
    isolates: bool = False
    introduces: bool = False

    @property
    def scope(self) -> str:
        return "project" if self.project else "user"

    @property
    def place(self) -> tuple[str, str]:
        """The host and the project (or an empty string), which identify the connection."""
        return self.host, str(self.project or "")


@frozen
class FileChange:
    """A planned change to a file.

    ``path``: path without symbolic links.
    ``before``: current content, or None if the file does not exist.
    ``after``: new content, or None to remove the file.
    ``is_pristine``: whether the file contains nothing that nacre wrote.
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
        """The kind of change: ``create``, ``change``, ``remove`` or ``none``."""
        if self.before == self.after:
            return "none"
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"


@frozen
class LeftAlone:
    """A file that nacre leaves at least partly unchanged, and why."""

    path: Path
    host: str
    reason: str
    hint: str


@frozen
class OwnMemory:
    """The state of a host's built-in memory.

    ``on``: it contains notes.
    ``isolated``: the host does not use it.
    ``restored``: nacre has restored the user's settings.
    ``conflict``: someone turned it on again, and nacre leaves it on.
    """

    host: str
    state: str
    told: str = ""
    hint: str = ""


@frozen
class WiringPlan:
    """The planned changes to hosts' files, and the steps that remain for the user.

    ``kept``: the user's own servers with names similar to nacre's.
    ``servers``: command lines of nacre's servers after the change, by file.
    ``settings``: old values of the settings that nacre changed, by file and name.
    """

    wishes: tuple[WiringWish, ...]
    changes: tuple[FileChange, ...]
    left_alone: tuple[LeftAlone, ...] = ()
    kept: tuple[LeftAlone, ...] = ()
    servers: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    notes: tuple[tuple[str, str], ...] = ()
    is_removal: bool = False
    own_memories: tuple[OwnMemory, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_nothing(self) -> bool:
        return all(change.action == "none" for change in self.changes)


@frozen
class WiringDone:
    """The result of connecting or disconnecting hosts.

    ``old_copies`` are backups of earlier changes that are no longer needed.
    """

    plan: WiringPlan
    backups: tuple[Path, ...]
    left_alone: tuple[LeftAlone, ...] = ()
    old_copies: tuple[Path, ...] = ()
    trusted: bool = False
    """True if nacre told Codex to trust the hooks, and Codex trusts them."""


# -- Line types of the portable file -------------------------------------------
# The first line is the header, the last line the trailer. Each line in between is one JSON object
# with a ``type``.


FORMAT = "nacre-export"
VERSION = 1

HEADER = "header"
PAGE = "page"
MEMORY = "memory"
LEDGER_ENTRY = "ledger"
SESSION = "session"
TURN = "turn"
TRAILER = "trailer"


@frozen
class Following:
    """The state of the process that follows transcripts, with counts since its start."""

    started: datetime
    heartbeat: datetime
    why_polling: str | None = None
    folders: int = 0
    transcripts: int = 0
    turns: int = 0
    memories: int = 0
    last_error: str | None = None
    last_error_at: datetime | None = None
