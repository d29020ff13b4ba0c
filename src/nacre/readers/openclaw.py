"""OpenClaw, pi and oh-my-pi: session files, and OpenClaw's database since 2026."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from nacre.base.frozen import frozen
from nacre.base.lazy import zstd
from nacre.base.plain import JsonObject, Values, mapping, string
from nacre.base.text import answered_by
from nacre.errors import UnavailableError
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Marks,
    Part,
    Places,
    Root,
    Source,
    as_bytes,
    decode,
    has_columns,
    parse_time,
    plain,
    rows_of,
    statement,
    tables_of,
    value_of,
    with_columns,
)
from nacre.readers.conversation import (
    Sender,
    clean,
    ending,
    is_tools,
    new_call,
    outcome,
    read_sender,
    sender_in,
    sender_of,
    tokens_of,
    with_outcome,
    without_tools_lines,
)
from nacre.readers.trust import (
    ABSENT,
    Claims,
    Conversation,
    blocks_of,
    is_external_user,
    names_another,
    text_of,
)
from nacre.values.session import Flag, Session, SessionKind, Speaker, Trust

TOOL = "openclaw"

_METADATA = re.compile(
    r"^(?P<title>[A-Z][^\n]{0,80}?) \(untrusted[^)\n]*\):\s*\n```(?:json)?\n(?P<body>.*?)\n```\s*",
    re.DOTALL | re.MULTILINE,
)
_TIME = r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}"
_ENVELOPE = re.compile(
    rf"^[^\S\n]*\[(?P<head>[^\]\n]{{0,200}}?){_TIME}[^\]\n]{{0,40}}\] ?", re.MULTILINE
)
_WEEKDAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)?\s*\Z")
_HARNESS_LINE = re.compile(
    r"^\[(?:message_id|media attached)\b[^\]\n]*\][^\S\n]*$|^To send an image back,[^\n]*$",
    re.MULTILINE,
)
_RECALLED_SECTION = re.compile(
    rf"^## agenr Memory Context.*?(?=^[A-Z][^\n]{{0,80}}? \(untrusted|^\[[^\]\n]*{_TIME}[^\]\n]*\]|\Z)",
    re.DOTALL | re.MULTILINE,
)
_CURRENT_MESSAGE = "[Current message - respond to this]"
"""Separator between other people's messages and the current one.

If a message contains several, OpenClaw wrote the last one.
"""
_QUOTED_REPLY = re.compile(r"\[Replying to [^\]\n]{0,200}\](?:.*\[/Replying\]|.*\Z)", re.DOTALL)
_FORWARDED = re.compile(r"^\[Forwarded\b[^\]\n]{0,200}\]", re.MULTILINE)
_FORWARDED_BLOCK = "Forwarded message"
_SENDER_BLOCKS = ("Conversation info", "Sender")
"""Titles of the blocks that describe the sender. All others contain external text."""
_OWN_INTERFACES = frozenset("control-ui openclaw-control-ui openclaw-tui webchat tui cli".split())
"""OpenClaw's own interfaces, which only the owner uses."""
_CHAT_FIELDS = ("username", "e164", "tag")
_CRON = re.compile(r"\[cron:[^\]\n]*\]")
_PROMPTS: tuple[tuple[re.Pattern[str], SessionKind | None], ...] = (
    (_CRON, SessionKind.SCHEDULED),
    (
        re.compile(r"Read HEARTBEAT\.md|\[?HEARTBEAT\b|Heartbeat:", re.IGNORECASE),
        SessionKind.HEARTBEAT,
    ),
    (re.compile(r"\[Subagent (?:Context|Task)\]"), SessionKind.SUBAGENT),
    (re.compile(r"A new session was started via /(?:new|reset)|Pre-compaction memory flush"), None),
    (re.compile(r"An async command you ran earlier has completed"), None),
)
_SILENT_REPLIES = frozenset({"HEARTBEAT_OK", "NO_REPLY"})
"""Replies of an agent that has nothing to say."""


@frozen
class Prompt:
    """A user message, split into the typed text, the senders and the text by others.

    ``is_direct``: only the agent is in the chat. ``is_foreign``: the owner wrote none of the
    message. ``harness``: OpenClaw wrote it in a session of this ``kind``.
    """

    words: str
    senders: tuple[Sender, ...] = ()
    is_direct: bool = False
    foreign_texts: tuple[str, ...] = ()
    is_foreign: bool = False
    label: str | None = None
    harness: bool = False
    kind: SessionKind | None = None


def read_prompt(text: str) -> Prompt:
    """Parse the text of a user message."""
    senders, is_group, label = _message_facts(text)
    foreign_texts = [
        match[0]
        for match in _METADATA.finditer(text)
        if not match["title"].startswith(_SENDER_BLOCKS)
    ]
    is_foreign = any(foreign_text.startswith(_FORWARDED_BLOCK) for foreign_text in foreign_texts)
    before, _, body = _METADATA.sub("", text).rpartition(_CURRENT_MESSAGE)
    body = _RECALLED_SECTION.sub("", body)
    foreign_texts += [match[0] for match in _QUOTED_REPLY.finditer(body)]
    words, added = without_tools_lines(TOOL, _QUOTED_REPLY.sub("", body))
    words = _HARNESS_LINE.sub("", words).strip()
    words, envelope_senders, sender = _without_envelope(words)
    forwarded = _FORWARDED.search(words)
    if forwarded:
        foreign_texts.append(words[forwarded.start() :])
        is_foreign, words = (
            is_foreign or not forwarded.start(),
            words[: forwarded.start()].strip() or words,
        )
    prompt = Prompt(
        words, label=label, foreign_texts=(*foreign_texts, *added, *filter(None, [before]))
    )
    for pattern, kind in _PROMPTS:
        if pattern.match(words):
            return replace(prompt, harness=True, kind=kind)
    if not words or is_tools(TOOL, words):
        return replace(
            prompt, words=words or "\n".join(added).strip(), harness=True, is_foreign=True
        )
    senders += [*envelope_senders, *([sender] if sender else [])]
    return replace(
        prompt,
        senders=tuple(senders),
        is_direct=not (is_group or sender),
        is_foreign=is_foreign,
    )


def _without_envelope(words: str) -> tuple[str, list[Sender], Sender | None]:
    heads = [_WEEKDAY.sub("", match["head"]).strip() for match in _ENVELOPE.finditer(words)]
    senders = [sender_in(head) for head in heads if head]
    first = _ENVELOPE.match(words)
    words = words[first.end() :] if first else words
    words, sender = read_sender(words) if not (senders and first) else (words, None)
    return words.strip(), senders, sender


def _message_facts(text: str) -> tuple[list[Sender], bool, str | None]:
    facts: dict[str, Values] = {}
    at = 0
    while match := _METADATA.match(text, at):  # anyone can write later blocks
        facts.setdefault(match["title"].partition(" ")[0], mapping(plain(match["body"])))
        at = match.end()
    chat, sender = facts.get("Conversation", {}), facts.get("Sender", {})
    label = chat.get("conversation_label") or chat.get("group_subject")
    is_group = bool(chat.get("is_group_chat"))
    description = sender or {"id": chat.get("sender_id"), "name": chat.get("sender")}
    is_own = str(description.get("label")).casefold() in _OWN_INTERFACES
    is_in_chat = is_group or not is_own or any(map(description.get, _CHAT_FIELDS))
    chat_sender = sender_of(description) if is_in_chat else None
    if is_group and chat_sender is None:
        chat_sender = sender_of({"name": "somebody"})
    senders = [chat_sender] if chat_sender else []
    return senders, is_group, label if isinstance(label, str) else None


# -- Session files ``agents/<agent>/sessions/<id>.jsonl`` ----------------------
# Files renamed by a reset or a deletion (``.jsonl.reset.<time>``, ``.jsonl.deleted.<time>``) are
# whole sessions.


_NOISE = frozenset(
    "custom custom_message thinking_level_change label context_transform ephemeral leaf "
    "active_tools_change ttsr_injection".split()
)
_NOISE_ROLES = frozenset({"custom", "developer", "fileMention", "hookMessage", "system"})
_SUMMARY_ROLES = frozenset({"branchSummary", "compactionSummary"})
_NAMED_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?=\.jsonl)")
_ABORTED = re.compile(r"(?:Command|Operation) aborted\s*\Z")
"""Matches the end of the output of a tool that was interrupted or failed."""
_FOLDERS = (".openclaw", ".clawdbot", ".moltbot")
_PATTERNS = ("*.jsonl", "*.jsonl.reset.*", "*.jsonl.deleted.*")


class Entry(msgspec.Struct, gc=False):
    """One line of a session file."""

    type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    message: msgspec.Raw = ABSENT
    summary: Any = None
    cwd: str | None = None
    model: Any = None
    modelId: str | None = None  # noqa: N815
    provider: str | None = None
    name: Any = None
    title: Any = None
    label: Any = None
    conversation_label: str | None = None
    parentSession: str | None = None  # noqa: N815
    branchedFrom: str | None = None  # noqa: N815


class Message(Claims, gc=False):
    """The ``message`` of an entry, without its ``details``, which repeat output."""

    role: str | None = None
    content: msgspec.Raw = ABSENT
    model: str | None = None
    provider: str | None = None
    toolCallId: str | None = None  # noqa: N815
    isError: bool | None = None  # noqa: N815
    command: str | None = None
    output: Any = None
    exitCode: int | None = None  # noqa: N815
    cancelled: bool | None = None
    stopReason: str | None = None  # noqa: N815
    errorMessage: Any = None  # noqa: N815
    summary: Any = None
    usage: Any = None
    own: Any = msgspec.field(default=None, name="__openclaw")

    @property
    def facts(self) -> JsonObject:
        """The metadata that OpenClaw added to the message."""
        return self.own if isinstance(self.own, dict) else {}


_ENTRY = msgspec.json.Decoder(Entry)
_MESSAGE = msgspec.json.Decoder(Message)


class Reader:
    """A reader of one session's entries.

    Prompts change the kind of ``session`` only if it is ``MAIN``. ``trust`` is the trust of the
    prompts.
    """

    def __init__(
        self, source: Source, session: Session | None = None, trust: Trust = Trust.TRUSTED
    ) -> None:
        self.source = source
        name = _NAMED_ID.search(source.path.name)
        fallback = name[1] if name else source.path.name.split(".")[0]
        self.talk = Conversation(source, session or Session(TOOL, fallback))
        self.fixed = session.kind if session and session.kind is not SessionKind.MAIN else None
        self.trust = trust

    def __iter__(self) -> Items:
        return self.talk.read(_ENTRY, self.take)

    def take(self, offset: int, entry: Entry) -> Items:
        match entry.type:
            case "message":
                message = decode(_MESSAGE, entry.message)
                if message is None:
                    self.source.corrupt()
                else:
                    yield from self.message(offset, entry, message)
            case "session":
                self.begin(entry)
            case "compaction" | "branch_summary":
                yield from self.say(entry, Speaker.SYSTEM, str(entry.summary or ""), Flag.SUMMARY)
            case "model_change":
                self.talk.learn(model=answered_by(_model_of(entry), entry.provider))
            case "session_info" | "title" | "title_change":
                title = entry.name or entry.title
                self.talk.learn(title=title if isinstance(title, str) else None)
            case "reset":  # ``/new`` and ``/reset``: the same session with an empty context
                yield from self.talk.close()
            case _ if entry.type not in _NOISE:
                self.source.unknown(entry.type or "no type")

    # The session

    def begin(self, entry: Entry) -> None:
        if self.source.carry.get("named"):
            return
        self.source.carry["named"] = True
        parent = entry.parentSession or entry.branchedFrom
        session = self.talk.session
        title = session.title or entry.title
        self.talk.session = replace(
            session,
            native_id=entry.id or session.native_id,
            title=title if isinstance(title, str) else None,
            cwd=entry.cwd,
            model=answered_by(_model_of(entry), entry.provider) or session.model,
            label=entry.conversation_label or session.label,
            started=parse_time(entry.timestamp),
            # pi puts a time before the id in a file's name.
            parent=parent.replace("\\", "/")
            .rsplit("/", 1)[-1]
            .split(".jsonl")[0]
            .rsplit("_", 1)[-1]
            if parent
            else session.parent,
        )

    # Messages

    def message(self, offset: int, entry: Entry, message: Message) -> Items:
        if message.role == "toolResult":
            self.result(message)
        elif message.role == "assistant":
            yield from self.assistant(offset, entry, message)
        elif message.role == "user":
            yield from self.user(entry, message)
        elif message.role == "bashExecution":
            yield from self.bash(entry, message)
        elif message.role in _SUMMARY_ROLES:
            yield from self.say(entry, Speaker.SYSTEM, str(message.summary or ""), Flag.SUMMARY)
        elif message.role not in _NOISE_ROLES:
            self.source.unknown(f"message/{message.role}")

    def user(self, entry: Entry, message: Message) -> Items:
        cleaned = self.talk.clean(text_of(message.content))
        prompt = read_prompt(cleaned.text)
        self.talk.learn(label=prompt.label)
        for foreign_text in prompt.foreign_texts:
            self.talk.exchange.record_outside(foreign_text)
        has_human = self.source.carry.get("human")
        if self.fixed:
            yield from self.task(entry, self.fixed, prompt)
        elif not prompt.harness:
            if not has_human:
                self.source.carry["human"] = True
                self.talk.learn(kind=SessionKind.MAIN)
            speaker, trust = self.speaker(message, prompt)
            author = None
            if trust is Trust.UNTRUSTED:
                author = next((sender.author for sender in prompt.senders), None)
                self.talk.exchange.record_outside(prompt.words)
            yield from self.say(
                entry, speaker, prompt.words, cleaned.flags, trust=trust, author=author
            )
        elif prompt.words:
            if not has_human:
                self.talk.learn(kind=prompt.kind)
            yield from self.task(entry, prompt.kind, prompt)

    def speaker(self, message: Message, prompt: Prompt) -> tuple[Speaker, Trust]:
        """Return the speaker and the trust of a message.

        If no identities are configured, everyone in a direct chat counts as the owner, but is not
        trusted.
        """
        identities = self.source.identities
        is_known = message.facts.get("senderIsOwner") is True or (
            bool(prompt.senders) and all(sender.is_one_of(identities) for sender in prompt.senders)
        )
        is_foreign = not is_known if is_external_user(message) else names_another(message)
        is_foreign = (
            is_foreign
            or names_another(message.facts, *blocks_of(message.content))
            or prompt.is_foreign
        )
        if is_foreign or self.trust is Trust.UNTRUSTED:
            return Speaker.SYSTEM, Trust.UNTRUSTED
        if is_known or not prompt.senders:
            return Speaker.OWNER, Trust.TRUSTED
        may_be_owner = prompt.is_direct and not identities
        return Speaker.OWNER if may_be_owner else Speaker.SYSTEM, Trust.UNTRUSTED

    def task(self, entry: Entry, kind: SessionKind | None, prompt: Prompt) -> Items:
        """Yield a prompt that another agent or OpenClaw wrote."""
        is_task = kind is SessionKind.SUBAGENT
        speaker = Speaker.AGENT if is_task else Speaker.SYSTEM
        if prompt.is_foreign:
            self.talk.exchange.record_outside(prompt.words)
        trust = Trust.UNTRUSTED if prompt.is_foreign else Trust.TRUSTED
        yield from self.say(
            entry, speaker, prompt.words, Flag.NONE if is_task else Flag.META, trust=trust
        )

    def assistant(self, offset: int, entry: Entry, message: Message) -> Items:
        self.talk.learn(model=answered_by(message.model, message.provider))
        blocks = blocks_of(message.content)
        text = "\n\n".join(block.text for block in blocks if block.text and block.is_text)
        calls = [block for block in blocks if block.type == "toolCall" and block.name]
        before = self.talk.place(offset)
        self.talk.spend(tokens_of(mapping(message.usage)))
        stamp = entry.timestamp
        if text.strip() or calls:
            seed = clean(text or " ".join(str(call.id) for call in calls)).text
            yield from self.talk.open(
                entry.id, parse_time(stamp), stamp=stamp, seed=seed, before=before
            )
            self.talk.add_text(text)
            if self.talk.opened and text.strip(" .*`\n") in _SILENT_REPLIES:
                self.talk.opened.flags |= Flag.META
            for call in calls:
                arguments = plain(call.arguments)
                parameters = arguments if isinstance(arguments, dict) else ""
                self.talk.add_call(call.id or "", call.name or "", parameters)
        identity = f"{entry.id}-end" if entry.id else self.talk.new_id(Speaker.SYSTEM, stamp, "end")
        if message.stopReason == "aborted":
            yield from self.talk.interrupted(identity, parse_time(stamp))
        elif message.stopReason == "error":
            error = str(message.errorMessage or "")
            yield from self.talk.failed(identity, error, parse_time(stamp))

    def result(self, message: Message) -> None:
        output = text_of(message.content, separator="\n")
        words = output if message.isError else ""
        if any(block.type == "image" for block in blocks_of(message.content)):
            self.talk.exchange.record_unseen()  # the transcript lacks the image's text
        self.talk.result(
            message.toolCallId or "",
            "rejected" if _ABORTED.search(words) else ending(words, is_error=bool(message.isError)),
            output,
        )

    def bash(self, entry: Entry, message: Message) -> Items:
        """Yield a command that the owner ran."""
        command = message.command or ""
        output = str(message.output)
        self.talk.exchange.record_output("bash", command, output)
        result = "rejected" if message.cancelled else outcome(exit_code=message.exitCode or 0)
        call = with_outcome(new_call("bash", {"command": command}), result, output)
        yield from self.say(entry, Speaker.OWNER, f"! {command}", Flag.META, tool_calls=(call,))

    def say(
        self,
        entry: Entry,
        speaker: Speaker,
        text: str,
        flags: Flag = Flag.NONE,
        **facts: Any,
    ) -> Items:
        yield from self.talk.write(
            speaker,
            text,
            parse_time(entry.timestamp),
            identity=entry.id,
            stamp=entry.timestamp,
            flags=flags,
            **facts,
        )


def _model_of(entry: Entry) -> str | None:
    return entry.modelId or (entry.model if isinstance(entry.model, str) else None)


def _inner(path: Path) -> Session | None:
    folder = path.parent  # oh-my-pi names it after the parent's file
    if not folder.with_name(f"{folder.name}.jsonl").is_file():
        return None
    parent = folder.name.rsplit("_", 1)[-1]
    return Session(TOOL, path.stem, kind=SessionKind.SUBAGENT, parent=parent)


def _sniff(head: Head) -> bool:
    if head.path.name == "sessions.json" or head.path.name.endswith(".lock"):
        return False
    first = next((record for record in head.objects if record.get("type") != "title"), {})
    return (
        first.get("type") == "session"
        and "id" in first
        and "timestamp" in first
        and "key" not in first
    )


def state_folders(places: Places) -> list[Path]:
    """Return OpenClaw's state folders, including those under its earlier names."""
    home = places.folder("OPENCLAW_HOME")
    state = places.environ.get("OPENCLAW_STATE_DIR")
    return [Path(state).expanduser()] if state else [home / name for name in _FOLDERS]


def _roots(places: Places) -> Sequence[Root]:
    pi = places.folder("PI_CODING_AGENT_DIR", ".pi", "agent")
    omp = places.folder("XDG_DATA_HOME", ".local", "share") / "omp"
    return [
        *(
            Root(folder, tuple(f"agents/*/sessions/{name}" for name in _PATTERNS))
            for folder in state_folders(places)
        ),
        Root(pi / "sessions", ("**/*.jsonl",)),
        Root(places.home / ".omp" / "agent" / "sessions", ("**/*.jsonl",)),
        Root(places.home / ".omp" / "profiles", ("*/agent/sessions/**/*.jsonl",)),
        Root(omp, ("sessions/**/*.jsonl", "profiles/*/sessions/**/*.jsonl")),
    ]


_OTHER_FIELDS = (
    "agent,content,customType,data,details,display,firstKeptEntryId,firstKeptEntryIndex,"
    "fromHook,fromId,note,parentId,targetId,thinkingLevel,tokensBefore,version"
)


ADAPTER = Adapter(
    tool=TOOL,
    label="OpenClaw and pi",
    roots=_roots,
    sniff=_sniff,
    parse=lambda source: Reader(source, _inner(source.path)),
    versions="3; pi 1; oh-my-pi 17*",
    reads="group; heartbeats; scheduled runs; summaries; interruptions; errors",
    leaves_out="custom entries",
    fields=frozenset({*Entry.__struct_encode_fields__, *_OTHER_FIELDS.split(",")}),
)


# -- The store of 2026: ``agents/<agent>/agent/openclaw-agent.sqlite`` ---------
# Its events have the format of the older files' entries. Large events and reset or deleted sessions
# are compressed with zstd. Data that cannot be decompressed is counted. The database also contains
# OpenClaw's accounts and memories, which are never read.


_EVENTS = {"transcript_events": {"session_id", "seq", "event_json"}}
_WINDOWS = {"session_windows": {"session_id", "session_key"}}
_ARCHIVES = {
    "session_transcript_archives": {
        "session_id",
        "generation",
        "encoding",
        "archive_blob",
        "created_at",
    }
}
_KINDS = (
    (re.compile(r":subagent:|:acp:"), SessionKind.SUBAGENT),
    (re.compile(r":cron:|:hook:"), SessionKind.SCHEDULED),
    (re.compile(r":heartbeat(?::|\Z)"), SessionKind.HEARTBEAT),
)
_MAX_UNPACKED_BYTES = 256 * 1024 * 1024


class _Store:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables = tables_of(source)
        self.packs = "event_zstd" in self.tables.columns("transcript_events")

    def __iter__(self) -> Items:
        marks = Marks(self.source)
        if has_columns(self.tables, _ARCHIVES):
            for session, generation, encoding, size in self.tables.all(
                statement("openclaw_archives")
            ):
                if marks.is_new(session, generation, size):
                    yield from self.session(session, self.archived(session, generation, encoding))
        if self.tables.columns("session_transcript_cold_archives"):
            for session, generation in self.tables.all(statement("openclaw_cold_archives")):
                if marks.is_new(session, "cold", generation):
                    self.source.unknown("cold archive")
        for session, last, row in self.tables.all(statement("openclaw_sessions")):
            if marks.is_new(session, last, row):
                yield from self.session(session, self.events(session))
        marks.save()

    def session(self, name: str, events: Iterator[bytes]) -> Items:
        facts = self.facts(name)
        key = str(facts.get("session_key") or "")
        kind = next((kind for pattern, kind in _KINDS if pattern.search(key)), SessionKind.MAIN)
        parent_key = facts.get("spawned_by") or facts.get("parent_session_key")
        parent = None  # the latest session with the key of a sub-agent's parent
        if kind is SessionKind.SUBAGENT and parent_key:
            query = statement("openclaw_session_of_key")
            parent = next((str(row[0]) for row in self.tables.all(query, key=parent_key)), None)
        session = Session(
            TOOL,
            name,
            kind=kind,
            label=string(facts, "display_name"),
            parent=parent,
        )
        trust = Trust.UNTRUSTED if facts.get("hook_external_content_source") else Trust.TRUSTED
        yield from Reader(Part(self.source, events), session, trust)

    def facts(self, name: str) -> JsonObject:
        if not has_columns(self.tables, _WINDOWS):
            return {}
        query = statement("openclaw_window")
        return next(iter(rows_of(self.source, "session_windows", query, session=name)), {})

    def events(self, name: str) -> Iterator[bytes]:
        query = statement("openclaw_packed_events" if self.packs else "openclaw_events")
        last = -1
        while rows := self.tables.all(query, session=name, seq=last):
            last = rows[-1][0]
            for _, text, *packed in rows:
                event = as_bytes(text) or unpack(packed[0] if packed else None)
                if event is None:
                    self.source.unknown("compressed event")
                else:
                    yield event

    def archived(self, name: str, generation: str, encoding: str) -> Iterator[bytes]:
        query = statement("openclaw_archive")
        blob = value_of(self.tables, query, session=name, generation=generation)
        data = blob if encoding == "identity" else unpack(blob)
        if data is None:
            self.source.unknown("compressed session")
        else:
            yield from (line for line in bytes(data).split(b"\n") if line.strip())


def unpack(data: object) -> bytes | None:
    """Decompress zstd data.

    Return None if no zstd library is installed, or if the data is damaged or too large.
    """
    if not isinstance(data, bytes) or not data:
        return None
    try:
        library = zstd()
    except UnavailableError:
        return None
    try:
        unpacked: bytes = library.open(BytesIO(data)).read(_MAX_UNPACKED_BYTES + 1)
    except (EOFError, library.ZstdError):
        return None
    return unpacked if len(unpacked) <= _MAX_UNPACKED_BYTES else None


ADAPTER_STORE = Adapter(
    tool=TOOL,
    label="OpenClaw and pi",
    roots=lambda places: [
        Root(folder / "agents", ("*/agent/openclaw-agent.sqlite",))
        for folder in state_folders(places)
    ],
    sniff=with_columns(_EVENTS),
    parse=_Store,
    versions="2026.9",
    reads="kinds of sessions; reset and deleted sessions; summaries",
    leaves_out="cold archives; its memories and accounts",
)
