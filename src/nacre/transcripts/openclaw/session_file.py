"""OpenClaw, and pi, whose session format it uses: ``agents/<agent>/sessions/<id>.jsonl``.

Files that a reset or a deletion renamed (``.jsonl.reset.<time>``, ``.jsonl.deleted.<time>``) are whole
sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from nacre.text.open_weights import answered_by
from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source, records
from nacre.transcripts.blocks import ABSENT, Block, blocks_of, plain, text_of
from nacre.transcripts.conversation import Before, Conversation, OpenTurn, is_precise
from nacre.transcripts.injected import clean
from nacre.transcripts.objects import decode, parse_time
from nacre.transcripts.openclaw.prompts import TOOL, Prompt, is_silent, read_prompt
from nacre.transcripts.origins import Claims, is_external_user, names_another
from nacre.transcripts.tool_calls import answered, asked, outcome
from nacre.transcripts.trust import is_outside, is_own
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, ToolCall, Trust, Turn

Said = Iterator[Session | Turn]

_NOISE = frozenset({
    "custom", "custom_message", "thinking_level_change", "label", "context_transform", "ephemeral",
    "leaf", "active_tools_change",
})  # fmt: skip
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
        return Tokens((self.input or 0) + (self.cacheWrite or 0), self.cacheRead or 0, self.output or 0)


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

    def __init__(self, source: Source, session: Session | None = None, trust: Trust = Trust.TRUSTED) -> None:
        self.source = source
        name = _NAMED_ID.search(source.path.name)
        fallback = name.group(1) if name else source.path.name.split(".")[0]
        self.talk = Conversation(source, session or Session(TOOL, fallback))
        self.fixed = session.kind if session and session.kind is not SessionKind.MAIN else None
        self.trust = trust

    def read(self) -> Said:
        """All sessions and turns in the source."""
        for offset, line in self.source.lines():
            entries = list(records(self.source, line, _ENTRY))
            for entry in entries:
                yield from self.take(offset, entry)
            if len(entries) > 1:
                yield from self.talk.close()
        yield from self.talk.finish()

    def take(self, offset: int, entry: Entry) -> Said:
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
            known, native_id=entry.id or known.native_id, cwd=entry.cwd,
            model=answered_by(entry.modelId, entry.provider) or known.model,
            label=entry.conversation_label or known.label, started=parse_time(entry.timestamp),
            parent=_session_id(parent) if parent else known.parent,
        )  # fmt: skip

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

    def message(self, offset: int, entry: Entry, message: Message) -> Said:
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

    def user(self, entry: Entry, message: Message) -> Said:
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

    def prompt(self, entry: Entry, prompt: Prompt, speaker: tuple[Speaker, Trust], flags: Flag) -> Said:
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
        is_anothers = is_anothers or names_another(message.facts, *blocks_of(message.content)) or prompt.is_anothers
        if is_anothers or self.trust is Trust.UNTRUSTED:
            return Speaker.SYSTEM, Trust.UNTRUSTED
        if is_known or not prompt.senders:
            return Speaker.OWNER, Trust.TRUSTED
        may_be = prompt.is_direct and not identities
        return Speaker.OWNER if may_be else Speaker.SYSTEM, Trust.UNTRUSTED

    def task(self, entry: Entry, kind: SessionKind | None, prompt: Prompt) -> Said:
        """A prompt that no person wrote: another agent did, or OpenClaw, which may tell of what others wrote."""
        is_task = kind is SessionKind.SUBAGENT
        speaker = Speaker.AGENT if is_task else Speaker.SYSTEM
        if prompt.is_anothers:
            self.talk.exchange.saw(prompt.words)
        trust = Trust.UNTRUSTED if prompt.is_anothers else Trust.TRUSTED
        yield from self.say(entry, speaker, prompt.words, Flag.NONE if is_task else Flag.META, trust=trust)

    def assistant(self, offset: int, entry: Entry, message: Message) -> Said:
        self.learn(model=answered_by(message.model, message.provider))
        blocks = blocks_of(message.content)
        text = "\n\n".join(block.text for block in blocks if block.text and block.is_text)
        calls = [block for block in blocks if block.type == "toolCall" and block.name]
        before = self.talk.place(offset)
        usage = decode(_USAGE, bytes(message.usage)) if message.usage else None
        self.talk.spend(usage.tokens.bounded if usage else Tokens())
        if text.strip() or calls:
            yield from self.answer(entry, text, calls, before)
        identity = f"{entry.id}-end" if entry.id else self.talk.new_id(Speaker.SYSTEM, entry.timestamp, "end")
        if message.stopReason == "aborted":
            yield from self.talk.interrupted(identity, parse_time(entry.timestamp))
        elif message.stopReason == "error":
            yield from self.talk.failed(identity, str(message.errorMessage or ""), parse_time(entry.timestamp))

    def answer(self, entry: Entry, text: str, calls: Sequence[Block], before: Before) -> Said:
        """What the agent says and does."""
        seed = text or " ".join(str(call.id) for call in calls)
        yield from self.talk.open(self.opened(entry, seed), before)
        self.talk.add_text(text)
        if self.talk.opened and is_silent(text):
            self.talk.opened.flags |= Flag.META
        for call in calls:
            arguments = plain(call.arguments)
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

    def bash(self, entry: Entry, message: Message) -> Said:
        """A command that the owner ran."""
        command = message.command or ""
        output = str(plain(message.output))
        self.talk.exchange.heard(output, outside=is_outside("bash", command), own=is_own("bash", command))
        result = "rejected" if message.cancelled else outcome(exit_code=message.exitCode or 0)
        call = answered(asked("bash", {"command": command}), result, lambda: output)
        yield from self.say(entry, Speaker.OWNER, f"! {command}", Flag.META, calls=(call,))

    def say(
        self, entry: Entry, speaker: Speaker, text: str, flags: Flag = Flag.NONE,
        *, trust: Trust = Trust.TRUSTED, author: str | None = None, calls: tuple[ToolCall, ...] = (),
    ) -> Said:  # fmt: skip
        cleaned = self.talk.clean(text)
        text = cleaned.text
        if not text:
            return
        flags |= Flag.INJECTED if cleaned.injected else Flag.NONE
        identity = entry.id or self.talk.new_id(speaker, entry.timestamp, text)
        unique = not entry.id and is_precise(entry.timestamp)
        yield from self.talk.say(
            Turn(identity, speaker, text, parse_time(entry.timestamp), calls, flags, trust, author, unique)
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
    return first.get("type") == "session" and "id" in first and "timestamp" in first and "key" not in first


def parse(source: Source) -> Said:
    """Parse one session file; see :class:`~nacre.transcripts.adapter.Adapter`."""
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
        *(Root(folder, tuple(f"agents/*/sessions/{name}" for name in _PATTERNS)) for folder in state_folders(places)),
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
        "what was said",
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
