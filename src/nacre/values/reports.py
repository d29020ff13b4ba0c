"""Operation reports, and plans for connecting hosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from datetime import datetime
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.values.memory import Memory
from nacre.values.models import Tokens


@frozen
class Progress:
    """The progress of a long operation.

    ``stage``: ``reading``, counted in bytes; ``learning``, counted in sessions; or ``vectors``,
    counted in texts.
    """

    stage: str
    done: int
    total: int
    note: str = ""


OnProgress = Callable[[Progress], None]
"""Callback for the progress of a long operation."""


@frozen
class Problem:
    """A file that could not be read and was skipped, and the reason."""

    path: str
    message: str
    hint: str | None = None


@frozen
class ArchiveReport:
    """A report about archiving transcripts.

    ``files``: number of archived files. ``read``: number of new bytes. ``stored``: number of bytes
    written. ``pruned``: number of transcripts removed according to the settings.
    """

    files: int = 0
    read: int = 0
    stored: int = 0
    pruned: int = 0
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()


@frozen
class ModelExtraction:
    """Counts from extraction with a language model.

    ``parts``: parts into which sessions were split. ``trivial``: sessions that needed no model
    call. ``found``: memories supported by evidence. ``held``: doubtful memories, which wait for
    review. ``repeated``: duplicates within the answers. ``dropped``: useless memories, counted by
    reason. ``by_rules``: parts processed without a model. ``problem``: reason why the model was not
    used. ``elsewhere``: sessions that another process is processing.
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


@frozen
class IngestReport:
    """The result of an ingest.

    ``files``: number of files read. ``skipped``: number of files that are unchanged or not
    transcripts. ``left_out``: number of files with forgotten content, which was omitted.
    ``excluded``: number of files or sessions that the settings exclude, for each tool, project or
    path. ``memories``: ids of new memories. ``duplicates``: number of candidates that are already
    known. ``decided``: number of a language model's decisions (``ADD``, ``UPDATE``, ``SKIP``,
    ``SUPERSEDE``, ``AMEND``) about new memories. ``vectors_left``: number of texts without a
    vector. ``empty``: paths of empty databases in a tool's session folder. Their sessions are lost,
    or there were none. ``unread``: a line for each tool with transcripts that were not understood,
    or that need a plugin, with the remedy. ``read_seconds``: time until everything could be searched. ``seconds``:
    total time. ``extraction``: None if no language model is used.
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
    """Warning that today's budget was insufficient. It is shown before learning starts."""

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
    """Number of known memories queued for review, because a writer doubts that they still hold."""

    ended: int = 0
    """Number of known memories that the transcripts show to be no longer true."""


@frozen
class IngestPlan:
    """The number of ``files`` that an ingest would read, and their new ``bytes``.

    ``tools`` has the numbers for each tool. See :class:`IngestReport`.
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
    """A superseded memory, and a short reason."""

    memory: Memory
    reason: str


@frozen
class StoreOutcome:
    """The result of storing a memory.

    ``action``: ``stored``, ``known`` (the text repeats a known memory), ``updated`` (the text was
    merged into a known memory), or ``retired`` (a rule retires such memories). ``supersedes``:
    replaced memories. ``superseded_by``: newer memory that contradicts the stored memory.
    ``amended``: memory that was partly superseded, with its new text. ``similar``: possible
    duplicates, most likely first. ``decided_by``: language model that decided, or None if rules
    decided. ``note``: reason why the model did not decide. ``proposed``: True if an agent stored
    the memory and the owner has not confirmed it.
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
        """Describe what storing the memory did to other memories, if anything."""
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
    """One finding of ``nacre admin doctor``. ``state`` is OK, WARNING or FAILURE."""

    name: str
    state: str
    detail: str
    hint: str | None = None


# -- Connecting hosts ----------------------------------------------------------


@frozen
class WiringWish:
    """A request to connect a host, for the user or for one project.

    ``plain``: use the host's settings even if there is a plugin. ``slot``: make nacre the host's
    memory provider. ``tool_hook``: also run a hook before each edit and command. ``isolates``: turn
    off the host's memory and import its content. ``introduces``: write a block about nacre to the
    ``MEMORY.md`` files of the host.
    """

    host: str
    project: Path | None = None
    plain: bool = False
    slot: bool = False
    tool_hook: bool = False
    isolates: bool = False
    introduces: bool = False

    @property
    def scope(self) -> str:
        return "project" if self.project else "user"

    @property
    def place(self) -> tuple[str, str]:
        """The unique key of the connection: the host, and the project or an empty string."""
        return self.host, str(self.project or "")


@frozen
class FileChange:
    """A planned change to a file.

    ``path``: path without symbolic links. ``before``: current content, or None if the file does not
    exist. ``after``: new content, or None to remove the file. ``hosts``: hosts that need the file.
    ``is_pristine``: True if the file had no nacre content.
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
        """The action: ``create``, ``change``, ``remove`` or ``none``."""
        if self.before == self.after:
            return "none"
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"


@frozen
class LeftAlone:
    """A file or part of a file that nacre leaves unchanged, with the reason."""

    path: Path
    host: str
    reason: str
    hint: str


@frozen
class HostSetting:
    """A host setting that nacre changes.

    ``path``: settings file. ``name``: name of the setting. ``before``: previous value as JSON, or
    empty if the setting had no value.
    """

    host: str
    path: Path
    name: str
    before: str = ""


@frozen
class OwnMemory:
    """The state of a host's built-in memory.

    ``on``: the host has notes of its own. ``isolated``: the host does not use the memory.
    ``restored``: nacre has restored the previous settings.
    ``conflict``: someone turned the memory on again, and nacre does not change it.
    """

    host: str
    state: str
    told: str = ""
    hint: str = ""


@frozen
class HostCommand:
    """A command of a host that nacre has to run, and the purpose of the command.

    ``touches``: files that the command might rewrite.
    """

    words: tuple[str, ...]
    what: str
    touches: tuple[Path, ...] = ()


@frozen
class WiringPlan:
    """The planned changes to hosts' files, and the steps that remain for the user.

    ``kept``: servers of the user with names similar to nacre's. ``servers``: nacre's servers after
    the change, each with its file and start command. ``set``: settings to change, so that hosts do
    not use their own memory. ``given_back``: settings to restore.
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
        return not self.commands and all(change.action == "none" for change in self.changes)


@frozen
class WiringDone:
    """The result of connecting: changes, file backups and failures.

    ``old_copies`` are backups of earlier changes that are not needed any more.
    """

    plan: WiringPlan
    backups: tuple[Path, ...]
    left_alone: tuple[LeftAlone, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    """Host commands that failed, with their output."""

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
LINK = "link"
LEDGER_ENTRY = "ledger"
SESSION = "session"
TURN = "turn"
TRAILER = "trailer"


@frozen
class Following:
    """The state of a process that follows transcripts, with counts since its start."""

    started: datetime
    heartbeat: datetime
    why_polling: str | None = None
    folders: int = 0
    transcripts: int = 0
    turns: int = 0
    memories: int = 0
    last_error: str | None = None
    last_error_at: datetime | None = None
