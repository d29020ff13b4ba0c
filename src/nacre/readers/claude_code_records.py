"""Forms that the agent puts to the owner: what they ask, and how an answer stands in what was said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from nacre.base.text import one_line
from nacre.readers.adapter import Source, parse_time
from nacre.readers.conversation import answered as conversation_answered
from nacre.readers.conversation import is_tools
from nacre.readers.trust import CHOSEN, TYPED, Claims, is_outside, is_own, names_another, shared
from nacre.values.session import (
    Action,
    Flag,
    Session,
    SessionKind,
    Speaker,
    Tokens,
    ToolCall,
    Trust,
)

_ASKING_ENDS = ("?", "？", ":", "：")
_UNTOLD = "…?"
"""Stands for a question that is not the agent's own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the owner's to a question; ``is_typed`` where it is none of the options that it had."""

    question: str
    answer: str
    is_typed: bool


def questions_of(arguments: Mapping[str, Any]) -> dict[str, list[str]]:
    """What a form asks, each question with its options."""
    found: dict[str, list[str]] = {}
    for one in _objects(arguments.get("questions")):
        if isinstance(one.get("question"), str):
            labels = (option.get("label") for option in _objects(one.get("options")))
            found.setdefault(one["question"], []).extend(
                label for label in labels if isinstance(label, str)
            )
    return found


def answered(question: str, answer: str, options: Sequence[str]) -> Answer:
    """An answer as the owner gave it. Where no options are known it may be one of them."""
    asking = one_line(question)
    asking = asking if asking.endswith(_ASKING_ENDS) else f"{asking}:"
    is_typed = bool(options) and not _holds(answer, options)
    return Answer(asking, answer if is_typed else one_line(answer), is_typed)


def messages_of(
    answers: Iterable[Answer], trust_of: Callable[[str], Trust]
) -> tuple[list[str], str]:
    """The owner's messages in the answers to a form, and what of them is from outside.

    A question and its options are the agent's words: of a question that draws on text from outside the answer is left,
    and an option that does so itself was only pointed at. What was typed is a message by itself.
    """
    chosen, typed, foreign = list[str](), list[str](), list[str]()
    for one in answers:
        pair = f"{one.question} {TYPED if one.is_typed else CHOSEN} {one.answer}"
        own = typed if one.is_typed else chosen
        if trust_of(pair) is Trust.TRUSTED:
            own.append(pair)
        elif trust_of(one.answer) is Trust.TRUSTED:
            own.append(one.answer if one.is_typed else f"{_UNTOLD} {CHOSEN} {one.answer}")
        else:
            foreign.append(pair)
    return [*(["\n".join(chosen)] if chosen else []), *typed], "\n".join(foreign)


def _holds(answer: str, options: Sequence[str]) -> bool:
    """Whether an answer is made of options, or has words in a row of one."""
    labels = {_plain(one) for one in options}
    return (
        _plain(answer) in labels
        or all(_plain(part) in labels for part in answer.split(", "))
        or any(shared(one, answer) or shared(answer, one) for one in options)
    )


def _plain(text: str) -> str:
    return one_line(text).lower()


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


# ----------------------------------------------------------------------------
# The records of a Claude Code transcript, as far as nacre reads them.
#
# Bodies stay undecoded (``msgspec.Raw``) until a record turns out to be of interest: most of a
# transcript's bytes are
# tool results, which are only skimmed. Everything a tool may write differently is optional.


T = TypeVar("T")

IGNORED = frozenset(
    "agent-color agent-name agent-setting api-request api-request-blob api-request-resumed api-request-shape "
    "artifact-autoreact-ledger artifact-comment-monitor atis-latch attribution-snapshot bridge-session "
    "content-replacement continued-in cost-state data-flow-incomplete data-flow-records derived-from dev-mods "
    "ended-by-model file-history-delta file-history-snapshot fork-context-ref frame-link history-suppression "
    "host-row hybrid-organization isolation-latch last-prompt memory-mode mode observer-ref permission-mode "
    "relocated repl-mode result resume-head-vouch session-owner started system tag teleported-from tool_result "
    "tool_use tools-used worktree-state".split()
)
"""Types of records that hold nothing to read: all that Claude Code 2.1.330 writes beside those that are."""


class Record(Claims, gc=False):
    """One line."""

    type: str = ""
    uuid: str | None = None
    sessionId: str | None = None  # noqa: N815
    agentId: str | None = None  # noqa: N815
    timestamp: str | None = None
    cwd: str | None = None
    gitBranch: str | None = None  # noqa: N815
    version: str | None = None
    isSidechain: bool | None = None  # noqa: N815
    isMeta: bool | None = None  # noqa: N815
    isCompactSummary: bool | None = None  # noqa: N815
    isApiErrorMessage: bool | None = None  # noqa: N815
    operation: str | None = None
    reason: str | None = None
    summary: str | None = None
    leafUuid: str | None = None  # noqa: N815
    aiTitle: str | None = None  # noqa: N815
    customTitle: str | None = None  # noqa: N815
    prUrl: str | None = None  # noqa: N815
    planContent: str | None = None  # noqa: N815
    sourceToolAssistantUUID: str | None = None  # noqa: N815
    message: msgspec.Raw = msgspec.Raw(b"null")
    content: msgspec.Raw = msgspec.Raw(b"null")
    attachment: msgspec.Raw = msgspec.Raw(b"null")
    data: msgspec.Raw = msgspec.Raw(b"null")
    toolUseResult: msgspec.Raw = msgspec.Raw(b"null")  # noqa: N815


class Message(Claims, gc=False):
    """The ``message`` of a user or assistant record; ``content`` is a string or a list of blocks."""

    content: msgspec.Raw = msgspec.Raw(b"null")
    id: str | None = None
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")


class Usage(msgspec.Struct, gc=False):
    """What a message cost; its records repeat it, and the last one knows best."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def tokens(self) -> Tokens:
        """The same in nacre's words."""
        fresh = (self.input_tokens or 0) + (self.cache_creation_input_tokens or 0)
        return Tokens(fresh, self.cache_read_input_tokens or 0, self.output_tokens or 0)


class Block(Claims, gc=False):
    """One block of a message's content."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"null")
    tool_use_id: str | None = None
    is_error: bool | None = None
    content: msgspec.Raw = msgspec.Raw(b"null")


class Progress(msgspec.Struct, gc=False):
    """The ``data`` of a progress record; ``message`` is a record of a sub-agent."""

    type: str = ""
    agentId: str | None = None  # noqa: N815
    message: msgspec.Raw = msgspec.Raw(b"null")


RECORD = msgspec.json.Decoder(Record)
BLOCKS = list[Block]

_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind)
    for kind in (Record, Message, Usage, Progress, BLOCKS, str, dict)
}


def decode_raw(raw: msgspec.Raw, kind: type[T]) -> T | None:
    """Decode a body; ``None`` when it is absent or of another shape."""
    try:
        value: T = _DECODERS[kind].decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value


def is_string(raw: msgspec.Raw) -> bool:
    """Whether a body is a JSON string."""
    return bytes(memoryview(raw)[:1]) == b'"'


def plain_text(content: msgspec.Raw) -> str:
    """The text of a tool result: a string, or the text blocks of a list."""
    if is_string(content):
        return decode_raw(content, str) or ""
    return "\n".join(block.text for block in decode_raw(content, BLOCKS) or () if block.text)


def shows_image(content: msgspec.Raw) -> bool:
    """Whether a tool result holds a picture, whose words are not recorded."""
    if is_string(content) or b'"image"' not in bytes(content):
        return False
    return any(block.type == "image" for block in decode_raw(content, BLOCKS) or ())


def record_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """The file's lines; for a session teleported from the web, one object, the records in its ``loglines``."""
    if source.path.suffix != ".json":
        yield from source.lines()
        return
    try:
        logged = msgspec.json.decode(source.text().encode("utf-8", errors="replace"))["loglines"]
    except (msgspec.DecodeError, KeyError, TypeError, RecursionError):
        logged = None
    if not isinstance(logged, list):
        source.corrupt()
        return
    for number, record in enumerate(logged):
        yield number, msgspec.json.encode(record)


# ----------------------------------------------------------------------------
# What is still open while a Claude Code transcript is read: calls without an answer, messages that
# may grow.


_OF_HOST = frozenset(
    "Agent AskUserQuestion Edit EnterPlanMode ExitPlanMode Glob Grep LS MultiEdit NotebookEdit NotebookRead Read Task "
    "TodoRead TodoWrite Write exit_plan_mode".split()
)
"""Tools that put nothing out where they fail but what the host says of it."""

_SHELL, _MARKED_SINCE = "Bash", 2
"""Of a command that fails versions since this one tell the exit code first; before, only what it put out."""


@dataclass(slots=True)
class OpenCall:
    """A tool call that waits for its result; ``questions`` are those of a form, with their options."""

    call: ToolCall
    record: str | None = None
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_outside(self) -> bool:
        """Whether it brings text from outside."""
        return is_outside(self.call.name, self.call.input) or self.call.action is Action.FETCH

    @property
    def is_own(self) -> bool:
        """Whether it asks nacre."""
        return is_own(self.call.name, self.call.input)

    def fails_in_words_of_host(self, version: str | None) -> bool:
        """Whether its result, where it is an error, begins with what a version of the host says, and nobody else."""
        if self.is_outside:
            return False
        major = (version or "").partition(".")[0]
        is_marked = (
            self.call.name == _SHELL and major.isdecimal() and int(major[:9]) >= _MARKED_SINCE
        )
        return is_marked or self.call.name in _OF_HOST

    def answer(self, result: str, output: str) -> None:
        """How it came out."""
        self.call = conversation_answered(self.call, result, lambda: output)


@dataclass(slots=True)
class OpenMessage:
    """An agent message that may still grow."""

    offset: int
    before: bytes
    mark: tuple[int, ...]
    key: str
    record: Record
    texts: list[str] = field(default_factory=list)
    calls: list[OpenCall] = field(default_factory=list)
    usage: Usage | None = None
    trust: Trust = Trust.TRUSTED

    def add(self, call: OpenCall, trust: Trust) -> None:
        """One more call; what it has nacre keep is the message's word, too."""
        self.calls.append(call)
        if trust is Trust.UNTRUSTED:
            self.trust = trust


@dataclass(frozen=True, slots=True)
class First:
    """What the owner said first, or what was handed over: it is told once it is known which session answers."""

    record: Record
    speaker: Speaker
    text: str
    flags: Flag
    trust: Trust


# ----------------------------------------------------------------------------
# The sessions of a Claude Code transcript: the owner's, and those of sub-agents that speak in it.


TOOL = "claude-code"

_COUNTED = 8


class Sessions:
    """What is known of each session; what must survive until the next reading lies in ``carry``.

    ``stem`` is the file's name without its suffix: the id of records that name no session.
    """

    def __init__(self, carry: dict[str, Any], stem: str) -> None:
        self.carry = carry
        self.stem = stem
        self.session: Session | None = None
        self.told: dict[str, Session] = {}

    def ids_of(self, record: Record) -> tuple[str, str]:
        """The session of the owner that a record belongs to, and the one it is said in: that or a sub-agent's."""
        own = record.sessionId or self.carry.get("session") or self.stem
        agent = record.agentId if record.isSidechain else None
        return own, f"agent-{agent}" if agent else own

    def entitle(self, record: Record) -> None:
        """Keep a title: the owner's before one that the host made."""
        custom = record.type == "custom-title"
        title = record.customTitle or record.aiTitle
        if title and (custom or not self.carry.get("custom_title")):
            self.carry["title"], self.carry["custom_title"] = title, custom

    def session_of(self, record: Record) -> Session:
        """The session that a record is said in."""
        own, native_id = self.ids_of(record)
        is_sub = native_id != own
        if self.session is None or self.session.native_id != native_id:
            known = self.known(record, native_id)
            self.carry["session"] = own
            self.session = Session(
                tool=TOOL,
                native_id=native_id,
                cwd=known["cwd"],
                branch=known["branch"],
                kind=SessionKind.SUBAGENT if is_sub else SessionKind.MAIN,
                parent=own if is_sub else None,
                started=parse_time(known["started"]),
                tool_version=known["version"],
            )
            self.told[native_id] = self.session
        return self.session

    def known(self, record: Record, native_id: str) -> dict[str, Any]:
        """What the first record of a session tells of it."""
        known: dict[str, Any] = self.carry.setdefault("sessions", {}).setdefault(native_id, {})
        known.setdefault("cwd", record.cwd)
        known.setdefault(
            "branch", record.gitBranch if record.gitBranch not in ("", "HEAD") else None
        )
        known.setdefault("started", record.timestamp)
        known.setdefault("version", record.version)
        return known

    def finished(self, session: Session) -> Session:
        """A session with what is known of it at the end. Models of sub-agents that speak here are not told apart."""
        spent = self.carry.get("spent", {}).get(session.native_id)
        tokens = Tokens(*spent["all"]) if spent else None
        if session.kind is SessionKind.MAIN:
            return replace(
                session, title=self.carry.get("title"), model=self.carry.get("model"), tokens=tokens
            )
        is_alone = len(self.told) == 1
        return replace(session, model=self.carry.get("model") if is_alone else None, tokens=tokens)

    def count(self, group: OpenMessage) -> None:
        """What a message cost, once: one that goes on after a word of the owner is the same message."""
        if group.usage is None:
            return
        _, native_id = self.ids_of(group.record)
        spent = self.carry.setdefault("spent", {}).setdefault(
            native_id, {"all": [0, 0, 0], "last": {}}
        )
        before, now = Tokens(*spent["last"].pop(group.key, ())), group.usage.tokens.bounded
        spent["all"] = _numbers((Tokens(*spent["all"]) + now - before).bounded)
        spent["last"] = dict([*spent["last"].items(), (group.key, _numbers(now))][-_COUNTED:])


def _numbers(tokens: Tokens) -> list[int]:
    return [tokens.input, tokens.cached, tokens.output]


# ----------------------------------------------------------------------------
# What in a Claude Code prompt the owner typed, and what the harness put there.


Asked = Mapping[str, Sequence[str]]
"""The questions of a form, each with its options."""

_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]{0,40}\]")
_PLAN = "Implement the following plan:"
_FEEDBACK = "\n\nUser feedback on this plan: "
_PROMPT_COMMAND = "<command-message>"
"""Commands that are prompts begin so; those for the host itself, as ``/model``, begin with their name."""
_COMMAND_TAGS = ("command-message", "command-name", "command-args")
_SOURCES = ("source", "sender", "author", "from", "channel")
"""Fields that the host does not write today; a queued command that has them is from another source."""
_QUEUED_COMMAND = re.compile(r"/[\w:-]+(?: |$)")
_TITLE_CHARACTERS = 200
_ANSWERED = re.compile(r'"((?:[^"\\]|\\.)+)"\s*=\s*"((?:[^"\\]|\\.)*)"')
_LISTED = re.compile(r'^- "([^\n]+)"\n[ \t]+Answer: ([^\n]+)$', re.MULTILINE)
_REJECTED = "The user doesn't want to proceed"
_REJECTION_WORDS = re.compile(r"[^\n]*the user said:[^\S\n]*\n(.*)", re.DOTALL)


def content_of(content: msgspec.Raw) -> tuple[str, list[Block], list[Block]]:
    """The text a message's content holds, the tool results in it, and the blocks of which the text is."""
    if is_string(content):
        return decode_raw(content, str) or "", [], []
    blocks = decode_raw(content, BLOCKS) or []
    said = [
        block for block in blocks if block.type == "text" and block.text and _is_said(block.text)
    ]
    texts = [block.text for block in said if block.text]
    return "\n\n".join(texts), [block for block in blocks if block.type == "tool_result"], said


def _is_said(text: str) -> bool:
    return not text.startswith("<ide_")


def interruption(text: str) -> tuple[str, str]:
    """The host's note that the owner stopped the agent, if a prompt begins with one, and the rest."""
    note = _INTERRUPTED.match(text)
    return (note[0], text[note.end() :].strip()) if note else ("", text)


def plan_of(text: str, accepted: str | None = None) -> tuple[str, str, str]:
    """What the owner chose, the plan, and what they said of it: the agent wrote it, and the host hands it over as the
    first prompt. Where the record names the plan that was ``accepted``, what follows it is the host's, and the
    owner's words at its end.
    """
    head, _, rest = text.partition("\n\n")
    plan, words = rest.strip(), ""
    if head.strip() != _PLAN or not plan:
        return "", "", ""
    if accepted and plan.startswith(accepted.strip()):
        words = plan.removeprefix(accepted.strip()).partition(_FEEDBACK)[2].strip()
        plan = accepted.strip()
    title = plan.partition("\n")[0]
    return f"{_PLAN}\n\n{title[:_TITLE_CHARACTERS]}", plan, words


def is_feedback_on_call(record: Record, message: Message, calls: Mapping[str, OpenCall]) -> bool:
    """Return True if the text of a message is the owner's remark on a tool call that they allowed.

    The host writes it as the one text after the one result, and names the record that made the call. Other text next
    to a result is not the owner's.
    """
    first, *rest = decode_raw(message.content, BLOCKS) or [Block()]
    call = calls.get(first.tool_use_id or "")
    return (
        first.type == "tool_result"
        and not first.is_error
        and [block.type for block in rest if block.type != "image"] == ["text"]
        and call is not None
        and call.record is not None
        and call.record == record.sourceToolAssistantUUID
    )


def rejection(content: msgspec.Raw, beside: msgspec.Raw) -> str | None:
    """Return the owner's words on declining a call, which the host writes in place of its result, or ``None`` if
    nobody declined it. The host writes strings, both there and ``beside`` it; a list or an object is a tool's output.
    """
    output = (decode_raw(content, str) or "") if is_string(content) else ""
    if not output.startswith(_REJECTED) or not (is_string(beside) or bytes(beside) == b"null"):
        return None
    words = _REJECTION_WORDS.match(output)
    return words[1].strip() if words else ""


def answers_in(output: str, asked: Asked, beside: msgspec.Raw) -> list[Answer]:
    """Questions of a form that was ``asked`` with the owner's answers: those ``beside`` the result where the host keeps
    them there, else as it tells them. A question may hold what looks like another one with its answer.
    """
    kept = (decode_raw(beside, dict) or {}).get("answers")
    pairs = list(kept.items()) if isinstance(kept, dict) else _ANSWERED.findall(output)
    return _of_those_asked(pairs, asked)


def listed_answers(text: str, asked: Asked) -> list[Answer]:
    """The same as the host lists them when the owner would rather talk, or is done; the rest of that is the host's."""
    return _of_those_asked(_LISTED.findall(text), asked)


def _of_those_asked(pairs: Iterable[tuple[str, object]], asked: Asked) -> list[Answer]:
    """Those of questions that were asked: of one that comes twice nobody can tell which answer is the owner's."""
    found = [(question, answer) for question, answer in pairs if question in asked]
    times = Counter(question for question, _ in found)
    return [
        answered(question, answer, asked[question])
        for question, answer in found
        if times[question] == 1 and isinstance(answer, str) and answer.strip()
    ]


def is_typed_ahead(attachment: Mapping[str, Any]) -> bool:
    """Return True if a queued command names an input mode of a person, or a person, as its source, and no other."""
    sources = [{"origin": attachment[name]} for name in _SOURCES if attachment.get(name)]
    names_owner = bool(attachment.get("commandMode") or attachment.get("origin"))
    return names_owner and not attachment.get("isMeta") and not names_another(attachment, *sources)


def typed_ahead(text: str) -> tuple[str, Flag, str]:
    """Split a prompt that was typed while the agent worked, as :func:`typed` does. A command alone has a record of its
    own where it runs.
    """
    words, flags, others = typed(text)
    command = _QUEUED_COMMAND.match(words)
    if not command:
        return words, flags, others
    return ("", Flag.META, others) if command[0] == words else (words, flags | Flag.COMMAND, others)


def typed(text: str) -> tuple[str, Flag, str]:
    """Split a prompt into the words that the owner typed, with their flags, and those that the host or others wrote."""
    if text.startswith("<command-"):
        parts, others = _command_parts(text)
        command, words = parts.get("command-name"), parts.get("command-args")
        if not command or not (words or text.startswith(_PROMPT_COMMAND)):
            return "", Flag.META, text
        return f"/{command.removeprefix('/')} {words or ''}".rstrip(), Flag.COMMAND, others
    shell = _inside(text, "bash-input") if text.startswith("<bash-input>") else None
    if shell is not None:
        return f"! {shell}", Flag.META, ""
    return ("", Flag.META, text) if is_tools(TOOL, text) else (text, Flag.NONE, "")


def _command_parts(text: str) -> tuple[dict[str, str], str]:
    """Return the tags with which the host writes a command, and the rest of the text, which nobody typed."""
    parts: dict[str, str] = {}
    while tag := next(
        (tag for tag in _COMMAND_TAGS if tag not in parts and text.startswith(f"<{tag}>")), None
    ):
        inside, closed, rest = text.partition(f"</{tag}>")
        if not closed:
            break
        parts[tag], text = inside.removeprefix(f"<{tag}>").strip(), rest.lstrip()
    return parts, text


def _inside(text: str, tag: str) -> str | None:
    """What the first pair of tags encloses; an expression would look for the end again from every beginning."""
    _, _, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside.strip() if closed else None
