"""What OpenClaw wraps around a person's words, and the prompts that it writes itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from nacre.base.text import answered_by
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
    log_of,
    parse_time,
    records,
    statement,
    tables_of,
)
from nacre.readers.conversation import (
    Sender,
    answered,
    asked,
    clean,
    is_tools,
    outcome,
    read_sender,
    sender_in,
    sender_of,
    without_tools_lines,
)
from nacre.readers.trust import (
    ABSENT,
    Before,
    Block,
    Claims,
    Conversation,
    OpenTurn,
    blocks_of,
    is_external_user,
    is_outside,
    is_own,
    is_precise,
    names_another,
    text_of,
)
from nacre.readers.trust import plain as trust_plain
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, ToolCall, Trust, Turn

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
_NOW = "[Current message - respond to this]"
"""What others said in the chat stands before it, the message after it; the last one is OpenClaw's."""
_REPLIED = re.compile(r"\[Replying to [^\]\n]{0,200}\](?:.*\[/Replying\]|.*\Z)", re.DOTALL)
_FORWARDED = re.compile(r"^\[Forwarded\b[^\]\n]{0,200}\]", re.MULTILINE)
_FORWARDED_BLOCK = "Forwarded message"
_ABOUT = ("Conversation info", "Sender")
"""Blocks that say who wrote; all others hold what somebody wrote elsewhere."""
_OWN_FACES = frozenset(
    {"control-ui", "openclaw-control-ui", "openclaw-tui", "webchat", "tui", "cli"}
)
"""OpenClaw's own faces: who writes there is the owner."""
_ELSEWHERE = ("username", "e164", "tag")
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


@dataclass(frozen=True, slots=True)
class Prompt:
    """A user message taken apart.

    ``senders`` are those whom it names, as chats do; ``is_direct`` where they wrote to the agent alone. ``others``
    is what others wrote: what was answered or quoted, and what OpenClaw added. ``is_anothers`` says that somebody else
    wrote it all. ``harness`` says that OpenClaw wrote the message; ``kind`` is what a session of such messages is.
    """

    words: str
    senders: tuple[Sender, ...] = ()
    is_direct: bool = False
    others: tuple[str, ...] = ()
    is_anothers: bool = False
    label: str | None = None
    harness: bool = False
    kind: SessionKind | None = None

    @property
    def author(self) -> str | None:
        """The first whom it names."""
        return self.senders[0].author if self.senders else None


def read_prompt(text: str) -> Prompt:
    """Take a user message apart."""
    about = _about(text)
    others = [
        match[0] for match in _METADATA.finditer(text) if not match["title"].startswith(_ABOUT)
    ]
    is_anothers = any(other.startswith(_FORWARDED_BLOCK) for other in others)
    before, _, rest = _METADATA.sub("", text).rpartition(_NOW)
    rest = _cut(_REPLIED, _RECALLED_SECTION.sub("", rest), others)
    words, added = without_tools_lines(TOOL, rest)
    words = _HARNESS_LINE.sub("", words).strip()
    words, named, sender = _addressed(words)
    forwarded = _FORWARDED.search(words)
    if forwarded:
        others.append(words[forwarded.start() :])
        is_anothers, words = (
            is_anothers or not forwarded.start(),
            words[: forwarded.start()].strip() or words,
        )
    found = Prompt(words, (), label=about.label, others=(*others, *added, *filter(None, [before])))
    for pattern, kind in _PROMPTS:
        if pattern.match(words):
            return replace(found, harness=True, kind=kind)
    if not words or is_tools(TOOL, words):
        return replace(
            found, words=words or "\n".join(added).strip(), harness=True, is_anothers=True
        )
    senders = (*about.senders, *named, *([sender] if sender else []))
    return replace(
        found, senders=senders, is_direct=not (about.is_group or sender), is_anothers=is_anothers
    )


def _cut(pattern: re.Pattern[str], text: str, cut: list[str]) -> str:
    """A text without what a pattern finds in it, which is added to what was cut."""
    cut += [match[0] for match in pattern.finditer(text)]
    return pattern.sub("", text)


def _addressed(words: str) -> tuple[str, list[Sender], Sender | None]:
    """A message without its envelope, whom the envelopes in it name (several, where messages waited for the agent), and
    whom the message names itself, as bridges do.

    An envelope with a time alone comes from a face of OpenClaw's.
    """
    heads = [_WEEKDAY.sub("", match["head"]).strip() for match in _ENVELOPE.finditer(words)]
    named = [sender_in(head) for head in heads if head]
    first = _ENVELOPE.match(words)
    words = words[first.end() :] if first else words
    words, sender = read_sender(words) if not (named and first) else (words, None)
    return words.strip(), named, sender


@dataclass(frozen=True, slots=True)
class _About:
    """What OpenClaw says of a message."""

    senders: tuple[Sender, ...] = ()
    is_group: bool = False
    label: str | None = None


def _about(text: str) -> _About:
    """What the blocks before a message say of it; those that come later may be anybody's."""
    facts: dict[str, dict[str, Any]] = {}
    at = 0
    while match := _METADATA.match(text, at):
        facts.setdefault(match["title"].partition(" ")[0], _object(match["body"]))
        at = match.end()
    talk, sender = facts.get("Conversation", {}), facts.get("Sender", {})
    label = talk.get("conversation_label") or talk.get("group_subject")
    is_group = bool(talk.get("is_group_chat"))
    told = sender or {"id": talk.get("sender_id"), "name": talk.get("sender")}
    named = sender_of(told) if _is_in_chat(told, is_group=is_group) else None
    if is_group and named is None:
        named = sender_of({"name": "somebody"})
    return _About((named,) if named else (), is_group, label if isinstance(label, str) else None)


def _is_in_chat(sender: Mapping[str, Any], *, is_group: bool) -> bool:
    """Whether a sender writes in a chat, not at a face of OpenClaw's."""
    is_own = str(sender.get("label")).casefold() in _OWN_FACES and not any(
        map(sender.get, _ELSEWHERE)
    )
    return is_group or not is_own


def is_silent(reply: str) -> bool:
    """Whether the agent only said that it has nothing to say."""
    return reply.strip(" .*`\n") in _SILENT_REPLIES


def _object(body: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body.encode("utf-8", errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# ----------------------------------------------------------------------------
# OpenClaw, and pi, whose session format it uses: ``agents/<agent>/sessions/<id>.jsonl``.
#
# Files that a reset or a deletion renamed (``.jsonl.reset.<time>``, ``.jsonl.deleted.<time>``) are
# whole
# sessions.


_NOISE = frozenset(
    {
        "custom",
        "custom_message",
        "thinking_level_change",
        "label",
        "context_transform",
        "ephemeral",
        "leaf",
        "active_tools_change",
    }
)
_NOISE_ROLES = frozenset({"custom", "hookMessage", "system"})
_SUMMARY_ROLES = frozenset({"branchSummary", "compactionSummary"})
_NAMED_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?=\.jsonl)")
_EXITED = re.compile(r"Command exited with code (-?\d{1,9})\s*\Z")
_ABORTED = re.compile(r"(?:Command|Operation) aborted\s*\Z")
"""Both stand at the end of what a tool put out, when the owner stopped it or it failed."""
_FOLDERS = (".openclaw", ".clawdbot", ".moltbot")
_PATTERNS = ("*.jsonl", "*.jsonl.reset.*", "*.jsonl.deleted.*")


class Entry(msgspec.Struct, gc=False):
    """One line."""

    type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    message: msgspec.Raw = ABSENT
    summary: Any = None
    cwd: str | None = None
    modelId: str | None = None  # noqa: N815
    provider: str | None = None
    name: Any = None
    label: Any = None
    conversation_label: str | None = None
    parentSession: str | None = None  # noqa: N815
    branchedFrom: str | None = None  # noqa: N815


class Usage(msgspec.Struct, gc=False):
    """What an answer cost."""

    input: int | None = None
    output: int | None = None
    cacheRead: int | None = None  # noqa: N815
    cacheWrite: int | None = None  # noqa: N815

    @property
    def tokens(self) -> Tokens:
        """The same in nacre's words."""
        return Tokens(
            (self.input or 0) + (self.cacheWrite or 0), self.cacheRead or 0, self.output or 0
        )


class Message(Claims, gc=False):
    """The ``message`` of an entry. ``details`` repeats a tool's output and is left alone."""

    role: str | None = None
    content: msgspec.Raw = ABSENT
    model: str | None = None
    provider: str | None = None
    toolCallId: str | None = None  # noqa: N815
    toolName: str | None = None  # noqa: N815
    isError: bool | None = None  # noqa: N815
    command: str | None = None
    output: msgspec.Raw = ABSENT
    exitCode: int | None = None  # noqa: N815
    cancelled: bool | None = None
    stopReason: str | None = None  # noqa: N815
    errorMessage: Any = None  # noqa: N815
    summary: Any = None
    usage: msgspec.Raw = ABSENT
    own: Any = msgspec.field(default=None, name="__openclaw")

    @property
    def facts(self) -> dict[str, Any]:
        """What OpenClaw itself says of it."""
        return self.own if isinstance(self.own, dict) else {}


_ENTRY = msgspec.json.Decoder(Entry)
_MESSAGE = msgspec.json.Decoder(Message)
_USAGE = msgspec.json.Decoder(Usage | None)


class Reader:
    """Reads the entries of one session. ``session`` is what is known of it besides: one that is known to be a
    sub-agent's or scheduled is that whatever its prompts look like. ``trust`` is that of its prompts."""

    def __init__(
        self, source: Source, session: Session | None = None, trust: Trust = Trust.TRUSTED
    ) -> None:
        self.source = source
        name = _NAMED_ID.search(source.path.name)
        fallback = name.group(1) if name else source.path.name.split(".")[0]
        self.talk = Conversation(source, session or Session(TOOL, fallback))
        self.fixed = session.kind if session and session.kind is not SessionKind.MAIN else None
        self.trust = trust

    def read(self) -> Items:
        """All sessions and turns in the source."""
        for offset, line in self.source.lines():
            entries = list(records(self.source, line, _ENTRY))
            for entry in entries:
                yield from self.take(offset, entry)
            if len(entries) > 1:
                yield from self.talk.close()
        yield from self.talk.finish()

    def take(self, offset: int, entry: Entry) -> Items:
        match entry.type:
            case "message":
                message = decode(_MESSAGE, bytes(entry.message))
                if message is None:
                    self.source.corrupt()
                else:
                    yield from self.message(offset, entry, message)
            case "session":
                self.begin(entry)
            case "compaction" | "branch_summary":
                yield from self.say(entry, Speaker.SYSTEM, str(entry.summary or ""), Flag.SUMMARY)
            case "model_change":
                self.learn(model=answered_by(entry.modelId, entry.provider))
            case "session_info":
                self.learn(title=entry.name)
            case "reset":  # ``/new`` and ``/reset``: the session goes on under its name, and knows nothing of before
                yield from self.talk.close()
            case _ if entry.type not in _NOISE:
                self.source.unknown(entry.type or "no type")

    # The session

    def begin(self, entry: Entry) -> None:
        if self.source.carry.get("named"):
            return
        self.source.carry["named"] = True
        parent = entry.parentSession or entry.branchedFrom
        known = self.talk.session
        self.talk.session = replace(
            known,
            native_id=entry.id or known.native_id,
            cwd=entry.cwd,
            model=answered_by(entry.modelId, entry.provider) or known.model,
            label=entry.conversation_label or known.label,
            started=parse_time(entry.timestamp),
            parent=_session_id(parent) if parent else known.parent,
        )

    def learn(self, **known: str | None) -> None:
        for name, value in known.items():
            if isinstance(value, str) and value and getattr(self.talk.session, name) != value:
                self.talk.session = replace(self.talk.session, **{name: value})  # type: ignore[arg-type]

    def settle_kind(self, kind: SessionKind | None, *, human: bool) -> None:
        """A session is scheduled, a heartbeat or a sub-agent's as long as nobody has spoken in it."""
        if human and not self.source.carry.get("human"):
            self.source.carry["human"] = True
            kind = SessionKind.MAIN
        if kind is SessionKind.MAIN or (kind and not self.source.carry.get("human")):
            self.talk.session = replace(self.talk.session, kind=kind)

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
        self.learn(label=prompt.label)
        for other in prompt.others:
            self.talk.exchange.saw(other)
        if self.fixed:
            yield from self.task(entry, self.fixed, prompt)
        elif not prompt.harness:
            self.settle_kind(None, human=True)
            flags = Flag.INJECTED if cleaned.injected else Flag.NONE
            yield from self.prompt(entry, prompt, self.speaker(message, prompt), flags)
        elif prompt.words:
            self.settle_kind(prompt.kind, human=False)
            yield from self.task(entry, prompt.kind, prompt)

    def prompt(
        self, entry: Entry, prompt: Prompt, speaker: tuple[Speaker, Trust], flags: Flag
    ) -> Items:
        """What a person wrote, or another agent."""
        whose, trust = speaker
        author = prompt.author if trust is Trust.UNTRUSTED else None
        if trust is Trust.UNTRUSTED:
            self.talk.exchange.saw(prompt.words)
        yield from self.say(entry, whose, prompt.words, flags, trust=trust, author=author)

    def speaker(self, message: Message, prompt: Prompt) -> tuple[Speaker, Trust]:
        """Who wrote a message. Where the owner configured no identity, somebody who writes to the agent alone may be
        the owner: their words keep the owner's place, and are not trusted.
        """
        identities = self.source.identities
        is_known = message.facts.get("senderIsOwner") is True or (
            bool(prompt.senders) and all(sender.is_one_of(identities) for sender in prompt.senders)
        )
        is_anothers = not is_known if is_external_user(message) else names_another(message)
        is_anothers = (
            is_anothers
            or names_another(message.facts, *blocks_of(message.content))
            or prompt.is_anothers
        )
        if is_anothers or self.trust is Trust.UNTRUSTED:
            return Speaker.SYSTEM, Trust.UNTRUSTED
        if is_known or not prompt.senders:
            return Speaker.OWNER, Trust.TRUSTED
        may_be = prompt.is_direct and not identities
        return Speaker.OWNER if may_be else Speaker.SYSTEM, Trust.UNTRUSTED

    def task(self, entry: Entry, kind: SessionKind | None, prompt: Prompt) -> Items:
        """A prompt that no person wrote: another agent did, or OpenClaw, which may tell of what others wrote."""
        is_task = kind is SessionKind.SUBAGENT
        speaker = Speaker.AGENT if is_task else Speaker.SYSTEM
        if prompt.is_anothers:
            self.talk.exchange.saw(prompt.words)
        trust = Trust.UNTRUSTED if prompt.is_anothers else Trust.TRUSTED
        yield from self.say(
            entry, speaker, prompt.words, Flag.NONE if is_task else Flag.META, trust=trust
        )

    def assistant(self, offset: int, entry: Entry, message: Message) -> Items:
        self.learn(model=answered_by(message.model, message.provider))
        blocks = blocks_of(message.content)
        text = "\n\n".join(block.text for block in blocks if block.text and block.is_text)
        calls = [block for block in blocks if block.type == "toolCall" and block.name]
        before = self.talk.place(offset)
        usage = decode(_USAGE, bytes(message.usage)) if message.usage else None
        self.talk.spend(usage.tokens.bounded if usage else Tokens())
        if text.strip() or calls:
            yield from self.answer(entry, text, calls, before)
        identity = (
            f"{entry.id}-end"
            if entry.id
            else self.talk.new_id(Speaker.SYSTEM, entry.timestamp, "end")
        )
        if message.stopReason == "aborted":
            yield from self.talk.interrupted(identity, parse_time(entry.timestamp))
        elif message.stopReason == "error":
            yield from self.talk.failed(
                identity, str(message.errorMessage or ""), parse_time(entry.timestamp)
            )

    def answer(self, entry: Entry, text: str, calls: Sequence[Block], before: Before) -> Items:
        """What the agent says and does."""
        seed = text or " ".join(str(call.id) for call in calls)
        yield from self.talk.open(self.opened(entry, seed), before)
        self.talk.add_text(text)
        if self.talk.opened and is_silent(text):
            self.talk.opened.flags |= Flag.META
        for call in calls:
            arguments = trust_plain(call.arguments)
            known = arguments if isinstance(arguments, dict) else ""
            self.talk.add_call(call.id or "", call.name or "", known)

    def opened(self, entry: Entry, seed: str) -> OpenTurn:
        time = parse_time(entry.timestamp)
        if entry.id:
            return OpenTurn(entry.id, time, unique=False)
        identity = self.talk.new_id(Speaker.AGENT, entry.timestamp, clean(seed).text)
        return OpenTurn(identity, time, unique=is_precise(entry.timestamp))

    def result(self, message: Message) -> None:
        words = text_of(message.content, separator="\n") if message.isError else ""
        if any(block.type == "image" for block in blocks_of(message.content)):
            self.talk.exchange.unseen()  # a picture's words are not recorded
        self.talk.result(
            message.toolCallId or "",
            _result(words, is_error=bool(message.isError)),
            lambda: text_of(message.content, separator="\n"),
        )

    def bash(self, entry: Entry, message: Message) -> Items:
        """A command that the owner ran."""
        command = message.command or ""
        output = str(trust_plain(message.output))
        self.talk.exchange.heard(
            output, outside=is_outside("bash", command), own=is_own("bash", command)
        )
        result = "rejected" if message.cancelled else outcome(exit_code=message.exitCode or 0)
        call = answered(asked("bash", {"command": command}), result, lambda: output)
        yield from self.say(entry, Speaker.OWNER, f"! {command}", Flag.META, calls=(call,))

    def say(
        self,
        entry: Entry,
        speaker: Speaker,
        text: str,
        flags: Flag = Flag.NONE,
        *,
        trust: Trust = Trust.TRUSTED,
        author: str | None = None,
        calls: tuple[ToolCall, ...] = (),
    ) -> Items:
        cleaned = self.talk.clean(text)
        text = cleaned.text
        if not text:
            return
        flags |= Flag.INJECTED if cleaned.injected else Flag.NONE
        identity = entry.id or self.talk.new_id(speaker, entry.timestamp, text)
        unique = not entry.id and is_precise(entry.timestamp)
        yield from self.talk.say(
            Turn(
                identity,
                speaker,
                text,
                parse_time(entry.timestamp),
                calls,
                flags,
                trust,
                author,
                unique,
            )
        )


def _result(words: str, *, is_error: bool) -> str:
    """How a call came out; ``words`` are what it put out, if it failed."""
    if _is_refusal(words) or _ABORTED.search(words):
        return "rejected"
    code = _EXITED.search(words)
    return outcome(words, exit_code=int(code[1]) if code else None, is_error=is_error)


def _is_refusal(words: str) -> bool:
    return "denied by user" in words[:300].lower() or "rejected by user" in words[:300].lower()


def _session_id(path: str) -> str:
    """The id of the session in a file: pi puts a time before it."""
    return path.replace("\\", "/").rsplit("/", 1)[-1].split(".jsonl")[0].rsplit("_", 1)[-1]


def _sniff(head: Head) -> bool:
    if head.path.name == "sessions.json" or head.path.name.endswith(".lock"):
        return False
    first = head.objects[0] if head.objects else {}
    return (
        first.get("type") == "session"
        and "id" in first
        and "timestamp" in first
        and "key" not in first
    )


def parse(source: Source) -> Items:
    """Parse one session file; see :class:`~nacre.readers.adapter.Adapter`."""
    return Reader(source).read()


ENVIRONMENT = ("OPENCLAW_HOME", "OPENCLAW_STATE_DIR")
"""The environment's variables that :func:`state_folders` reads."""


def state_folders(places: Places) -> list[Path]:
    """The folders in which OpenClaw keeps everything, under its present and its former names."""
    home = Path(places.environ.get("OPENCLAW_HOME") or places.home).expanduser()
    state = places.environ.get("OPENCLAW_STATE_DIR")
    return [Path(state).expanduser()] if state else [home / name for name in _FOLDERS]


def _roots(places: Places) -> Sequence[Root]:
    agent = places.environ.get("PI_CODING_AGENT_DIR")
    pi = Path(agent).expanduser() if agent else places.home / ".pi" / "agent"
    return [
        *(
            Root(folder, tuple(f"agents/*/sessions/{name}" for name in _PATTERNS))
            for folder in state_folders(places)
        ),
        Root(pi / "sessions", ("**/*.jsonl",)),
    ]


ADAPTER = Adapter(
    tool=TOOL,
    label="OpenClaw and pi",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    versions="session version 3; version 1 of pi",
    reads=(
        "messages",
        "tool calls with outcome, files and errors",
        "folder",
        "model",
        "tokens",
        "title",
        "group",
        "heartbeats and scheduled runs, marked",
        "summaries",
        "interruptions",
        "errors of the model",
    ),
    leaves_out=("thinking", "pictures", "custom entries"),
    environment=(*ENVIRONMENT, "PI_CODING_AGENT_DIR"),
)


# ----------------------------------------------------------------------------
# OpenClaw since 2026: ``agents/<agent>/agent/openclaw-agent.sqlite``, whose events are the entries of
# the older files.
#
# Large events, and sessions that were reset or deleted, are compressed with zstd; what cannot be
# unpacked is counted.
# What else lies there, accounts and memories of its own, is never read.


_EVENTS = {"session_id", "seq", "event_json"}
_WINDOWS = {"session_id", "session_key"}
_ARCHIVES = {"session_id", "generation", "encoding", "archive_blob", "created_at"}
_KINDS = (
    (re.compile(r":subagent:|:acp:"), SessionKind.SUBAGENT),
    (re.compile(r":cron:|:hook:"), SessionKind.SCHEDULED),
    (re.compile(r":heartbeat(?::|\Z)"), SessionKind.HEARTBEAT),
)
_ZSTD = ("compression.zstd", "backports.zstd")
_MOST_BYTES = 256 * 1024 * 1024


def parse_store(source: Source) -> Items:
    """Parse one store; see :class:`~nacre.readers.adapter.Adapter`."""
    return _Store(source).read()


class _Store:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables = tables_of(source)
        self.packs = "event_zstd" in self.tables.columns("transcript_events")
        self.windows = self.tables.columns("session_windows")

    def read(self) -> Items:
        marks = Marks(self.source)
        if set(self.tables.columns("session_transcript_archives")) >= _ARCHIVES:
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
        known = self.facts(name)
        key = str(known.get("session_key") or "")
        kind = next((kind for pattern, kind in _KINDS if pattern.search(key)), SessionKind.MAIN)
        label = known.get("display_name")
        session = Session(
            TOOL,
            name,
            kind=kind,
            label=label if isinstance(label, str) and label else None,
            parent=self.parent(known) if kind is SessionKind.SUBAGENT else None,
        )
        trust = Trust.UNTRUSTED if known.get("hook_external_content_source") else Trust.TRUSTED
        yield from Reader(Part(self.source, events), session, trust).read()

    def facts(self, name: str) -> dict[str, Any]:
        """What the store says of a session besides its events."""
        if not set(self.windows) >= _WINDOWS:
            return {}
        found = self.tables.all(statement("openclaw_window"), session=name)
        return dict(zip(self.windows, found[0], strict=True)) if found else {}

    def parent(self, known: dict[str, Any]) -> str | None:
        """The session that another session's key stood for last."""
        key = known.get("spawned_by") or known.get("parent_session_key")
        found = self.tables.all(statement("openclaw_session_of_key"), key=key) if key else []
        return str(found[0][0]) if found else None

    def events(self, name: str) -> Iterator[bytes]:
        wanted = statement("openclaw_packed_events" if self.packs else "openclaw_events")
        last = -1
        while rows := self.tables.all(wanted, session=name, seq=last):
            last = rows[-1][0]
            for _, plain, *packed in rows:
                event = as_bytes(plain) or unpack(packed[0] if packed else None)
                if event is None:
                    self.source.unknown("compressed event")
                else:
                    yield event

    def archived(self, name: str, generation: str, encoding: str) -> Iterator[bytes]:
        found = self.tables.all(statement("openclaw_archive"), session=name, generation=generation)
        blob = found[0][0] if found else None
        data = blob if encoding == "identity" else unpack(blob)
        if data is None:
            self.source.unknown("compressed session")
        else:
            yield from (line for line in bytes(data).split(b"\n") if line.strip())


def unpack(data: object) -> bytes | None:
    """What zstd packed, in one frame or several; ``None`` where it is not there, is damaged or is too much."""
    name = next((name for name in _ZSTD if find_spec(name.partition(".")[0])), None)
    if name is None or not isinstance(data, bytes) or not data:
        return None
    zstd = import_module(name)
    unpacked = bytearray()
    while data:
        frame = zstd.ZstdDecompressor()
        try:
            unpacked += frame.decompress(data, max_length=_MOST_BYTES - len(unpacked))
        except zstd.ZstdError:
            return None
        if not frame.eof:
            return None
        data = frame.unused_data
    return bytes(unpacked)


def _sniff_store(head: Head) -> bool:
    return head.database is not None and set(head.database.columns("transcript_events")) >= _EVENTS


def _roots_store(places: Places) -> Sequence[Root]:
    return [
        Root(folder / "agents", ("*/agent/openclaw-agent.sqlite",))
        for folder in state_folders(places)
    ]


ADAPTER_STORE = Adapter(
    tool=TOOL,
    label="OpenClaw and pi",
    roots=_roots_store,
    sniff=_sniff_store,
    parse=parse_store,
    beside=log_of,
    versions="store of 2026.9, events of version 4",
    reads=(
        "messages",
        "tool calls with outcome",
        "folder",
        "model",
        "tokens",
        "names",
        "summaries",
        "kinds of sessions",
        "reset or deleted sessions",
        "compressed events",
    ),
    leaves_out=("thinking", "cold archives", "pending input", "its own memories and accounts"),
    environment=ENVIRONMENT,
)
