"""Records of a Claude Code transcript, forms and their answers, sessions, and the owner's words in
a prompt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from nacre.base.frozen import frozen
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

_QUESTION_ENDS = ("?", "？", ":", "：")
_HIDDEN_QUESTION = "…?"
"""Placeholder for a question that draws on outside text."""


@frozen
class Answer:
    """The owner's answer to a question. ``is_typed`` is set if it is none of the options."""

    question: str
    answer: str
    is_typed: bool


def questions_of(arguments: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the questions of a form, each with its options."""
    options_by_question: dict[str, list[str]] = {}
    for item in _objects(arguments.get("questions")):
        if isinstance(item.get("question"), str):
            labels = (option.get("label") for option in _objects(item.get("options")))
            options_by_question.setdefault(item["question"], []).extend(
                label for label in labels if isinstance(label, str)
            )
    return options_by_question


def answered(question: str, answer: str, options: Sequence[str]) -> Answer:
    """Return an answer of the owner. Without known options, it may be one of them."""
    asking = one_line(question)
    asking = asking if asking.endswith(_QUESTION_ENDS) else f"{asking}:"
    is_typed = bool(options) and not _uses_options(answer, options)
    return Answer(asking, answer if is_typed else one_line(answer), is_typed)


def messages_of(
    answers: Iterable[Answer], trust_of: Callable[[str], Trust]
) -> tuple[list[str], str]:
    """Return the owner's messages in the answers to a form, and the text in them that is from
    outside.

    Questions and options are the agent's words. If a question draws on outside text, only the
    answer remains, and an option that does so is not the owner's statement. Each typed answer is a
    separate message.
    """
    chosen, typed, foreign = list[str](), list[str](), list[str]()
    for item in answers:
        pair = f"{item.question} {TYPED if item.is_typed else CHOSEN} {item.answer}"
        trusted = typed if item.is_typed else chosen
        if trust_of(pair) is Trust.TRUSTED:
            trusted.append(pair)
        elif trust_of(item.answer) is Trust.TRUSTED:
            trusted.append(
                item.answer if item.is_typed else f"{_HIDDEN_QUESTION} {CHOSEN} {item.answer}"
            )
        else:
            foreign.append(pair)
    return [*(["\n".join(chosen)] if chosen else []), *typed], "\n".join(foreign)


def _uses_options(answer: str, options: Sequence[str]) -> bool:
    """Return True if an answer consists of options, or shares consecutive words with one."""
    labels = {_plain(option) for option in options}
    return (
        _plain(answer) in labels
        or all(_plain(part) in labels for part in answer.split(", "))
        or any(shared(option, answer) or shared(answer, option) for option in options)
    )


def _plain(text: str) -> str:
    return one_line(text).lower()


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


# -- Records -------------------------------------------------------------------
# Bodies stay undecoded (``msgspec.Raw``) until needed, because most bytes of a transcript are tool
# results. Every field that a tool may write differently is optional.


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
"""Types of records without content: all that Claude Code 2.1.330 writes, except those that are
read.
"""


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
    """The tokens of a message. Its records repeat them, and the last one is the most accurate."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def tokens(self) -> Tokens:
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
    """Decode a body. None if it is absent or has another shape."""
    try:
        value: T = _DECODERS[kind].decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value


def is_string(raw: msgspec.Raw) -> bool:
    """Return True if a body is a JSON string."""
    return bytes(memoryview(raw)[:1]) == b'"'


def plain_text(content: msgspec.Raw) -> str:
    """Return the text of a tool result: a string, or the text blocks of a list."""
    if is_string(content):
        return decode_raw(content, str) or ""
    return "\n".join(block.text for block in decode_raw(content, BLOCKS) or () if block.text)


def shows_image(content: msgspec.Raw) -> bool:
    """Return True if a tool result has a picture, whose words are not recorded."""
    if is_string(content) or b'"image"' not in bytes(content):
        return False
    return any(block.type == "image" for block in decode_raw(content, BLOCKS) or ())


def record_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """Yield the file's lines, or the records in ``loglines`` of a session teleported from the web,
    which is one object.
    """
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


# -- Calls without a result, and messages that may grow ------------------------


_HOST_TOOLS = frozenset(
    "Agent AskUserQuestion Edit EnterPlanMode ExitPlanMode Glob Grep LS MultiEdit NotebookEdit NotebookRead Read Task "
    "TodoRead TodoWrite Write exit_plan_mode".split()
)
"""Tools whose only output on failure is the host's message."""

_SHELL, _EXIT_CODE_SINCE_MAJOR = "Bash", 2
"""Since this major version, the result of a failed command begins with its exit code, not its output."""


@dataclass(slots=True)
class OpenCall:
    """A tool call without a result. ``questions`` are those of a form, with their options."""

    call: ToolCall
    record: str | None = None
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_outside(self) -> bool:
        """True if the call brings outside text."""
        return is_outside(self.call.name, self.call.input) or self.call.action is Action.FETCH

    @property
    def is_own(self) -> bool:
        """True if the call uses nacre."""
        return is_own(self.call.name, self.call.input)

    def fails_in_words_of_host(self, version: str | None) -> bool:
        """Return True if an error result of the call begins with the host's own words in this
        version.
        """
        if self.is_outside:
            return False
        major = (version or "").partition(".")[0]
        is_marked = (
            self.call.name == _SHELL
            and major.isdecimal()
            and int(major[:9]) >= _EXIT_CODE_SINCE_MAJOR
        )
        return is_marked or self.call.name in _HOST_TOOLS

    def answer(self, result: str, output: str) -> None:
        """Record the outcome of the call."""
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
        """Add a call. If it stores text in nacre, that text's trust applies to the message."""
        self.calls.append(call)
        if trust is Trust.UNTRUSTED:
            self.trust = trust


@frozen
class First:
    """The first prompt or summary, held until the id of the session that answers is known."""

    record: Record
    speaker: Speaker
    text: str
    flags: Flag
    trust: Trust


# -- Sessions of the owner, and of sub-agents in the same transcript -----


TOOL = "claude-code"

_MAX_COUNTED_MESSAGES = 8


class Sessions:
    """The facts of each session. ``carry`` holds all state for the next reading.

    ``stem`` is the file's name without suffix: the id of records without a session.
    """

    def __init__(self, carry: dict[str, Any], stem: str) -> None:
        self.carry = carry
        self.stem = stem
        self.session: Session | None = None
        self.by_id: dict[str, Session] = {}

    def ids_of(self, record: Record) -> tuple[str, str]:
        """Return the ids of the owner's session of a record, and of the session it is in, which may
        be a sub-agent's.
        """
        own = record.sessionId or self.carry.get("session") or self.stem
        agent = record.agentId if record.isSidechain else None
        return own, f"agent-{agent}" if agent else own

    def entitle(self, record: Record) -> None:
        """Store a title. The owner's takes priority over the host's."""
        custom = record.type == "custom-title"
        title = record.customTitle or record.aiTitle
        if title and (custom or not self.carry.get("custom_title")):
            self.carry["title"], self.carry["custom_title"] = title, custom

    def session_of(self, record: Record) -> Session:
        """Return the session of a record."""
        own, native_id = self.ids_of(record)
        is_sub = native_id != own
        if self.session is None or self.session.native_id != native_id:
            facts = self.facts_of(record, native_id)
            self.carry["session"] = own
            self.session = Session(
                tool=TOOL,
                native_id=native_id,
                cwd=facts["cwd"],
                branch=facts["branch"],
                kind=SessionKind.SUBAGENT if is_sub else SessionKind.MAIN,
                parent=own if is_sub else None,
                started=parse_time(facts["started"]),
                tool_version=facts["version"],
            )
            self.by_id[native_id] = self.session
        return self.session

    def facts_of(self, record: Record, native_id: str) -> dict[str, Any]:
        """Return the facts in the first record of a session."""
        facts: dict[str, Any] = self.carry.setdefault("sessions", {}).setdefault(native_id, {})
        facts.setdefault("cwd", record.cwd)
        facts.setdefault(
            "branch", record.gitBranch if record.gitBranch not in ("", "HEAD") else None
        )
        facts.setdefault("started", record.timestamp)
        facts.setdefault("version", record.version)
        return facts

    def finished(self, session: Session) -> Session:
        """Return a session with its final facts. The models of several sub-agents in one file
        cannot be distinguished.
        """
        spent = self.carry.get("spent", {}).get(session.native_id)
        tokens = Tokens(*spent["all"]) if spent else None
        if session.kind is SessionKind.MAIN:
            return replace(
                session, title=self.carry.get("title"), model=self.carry.get("model"), tokens=tokens
            )
        is_alone = len(self.by_id) == 1
        return replace(session, model=self.carry.get("model") if is_alone else None, tokens=tokens)

    def count(self, group: OpenMessage) -> None:
        """Add the tokens of a message once. A message that continues after a prompt is the same
        message.
        """
        if group.usage is None:
            return
        _, native_id = self.ids_of(group.record)
        spent = self.carry.setdefault("spent", {}).setdefault(
            native_id, {"all": [0, 0, 0], "last": {}}
        )
        before, now = Tokens(*spent["last"].pop(group.key, ())), group.usage.tokens.bounded
        spent["all"] = _numbers((Tokens(*spent["all"]) + now - before).bounded)
        spent["last"] = dict(
            [*spent["last"].items(), (group.key, _numbers(now))][-_MAX_COUNTED_MESSAGES:]
        )


def _numbers(tokens: Tokens) -> list[int]:
    return [tokens.input, tokens.cached, tokens.output]


# -- The owner's words in a prompt ---------------------------------------------


Form = Mapping[str, Sequence[str]]
"""The questions of a form, each with its options."""

_INTERRUPTION_NOTE = re.compile(r"\[Request interrupted by user[^\]\n]{0,40}\]")
_PLAN_HEAD = "Implement the following plan:"
_FEEDBACK_HEAD = "\n\nUser feedback on this plan: "
_PROMPT_COMMAND = "<command-message>"
"""Beginning of commands that are prompts. Commands for the host, such as ``/model``, begin with
their name.
"""
_COMMAND_TAGS = ("command-message", "command-name", "command-args")
_SOURCE_FIELDS = ("source", "sender", "author", "from", "channel")
"""Fields that the host does not write today. A queued command with one of them has another source.
"""
_QUEUED_COMMAND = re.compile(r"/[\w:-]+(?: |$)")
_MAX_TITLE_CHARACTERS = 200
_ANSWER_PAIR = re.compile(r'"((?:[^"\\]|\\.)+)"\s*=\s*"((?:[^"\\]|\\.)*)"')
_LISTED_ANSWER = re.compile(r'^- "([^\n]+)"\n[ \t]+Answer: ([^\n]+)$', re.MULTILINE)
_REJECTION_HEAD = "The user doesn't want to proceed"
_REJECTION_WORDS = re.compile(r"[^\n]*the user said:[^\S\n]*\n(.*)", re.DOTALL)


def content_of(content: msgspec.Raw) -> tuple[str, list[Block], list[Block]]:
    """Return the text of a message, its tool results, and the blocks of the text."""
    if is_string(content):
        return decode_raw(content, str) or "", [], []
    blocks = decode_raw(content, BLOCKS) or []
    text_blocks = [
        block
        for block in blocks
        if block.type == "text" and block.text and not block.text.startswith("<ide_")
    ]
    texts = [block.text for block in text_blocks if block.text]
    return (
        "\n\n".join(texts),
        [block for block in blocks if block.type == "tool_result"],
        text_blocks,
    )


def interruption(text: str) -> tuple[str, str]:
    """Return the host's note that the owner stopped the agent, if a prompt begins with one, and the
    rest.
    """
    note = _INTERRUPTION_NOTE.match(text)
    return (note[0], text[note.end() :].strip()) if note else ("", text)


def plan_of(text: str, accepted: str | None = None) -> tuple[str, str, str]:
    """Split a prompt with which the host hands over a plan into the owner's choice, the plan, and
    the owner's comment.

    The agent wrote the plan. If the record has the ``accepted`` plan, the text after it is the
    host's, with the owner's comment at its end.
    """
    head, _, rest = text.partition("\n\n")
    plan, words = rest.strip(), ""
    if head.strip() != _PLAN_HEAD or not plan:
        return "", "", ""
    if accepted and plan.startswith(accepted.strip()):
        words = plan.removeprefix(accepted.strip()).partition(_FEEDBACK_HEAD)[2].strip()
        plan = accepted.strip()
    title = plan.partition("\n")[0]
    return f"{_PLAN_HEAD}\n\n{title[:_MAX_TITLE_CHARACTERS]}", plan, words


def is_feedback_on_call(record: Record, message: Message, calls: Mapping[str, OpenCall]) -> bool:
    """Return True if the text of a message is the owner's remark on a tool call that they allowed.

    The host writes it as the only text after the only result, and names the record of the call.
    Other text next to a result is not the owner's.
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
    """Return the owner's words on declining a call, which are in place of its result, or None if it
    was not declined.

    The host writes strings, in the content and in ``beside``; a list or an object is a tool's
    output.
    """
    output = (decode_raw(content, str) or "") if is_string(content) else ""
    if not output.startswith(_REJECTION_HEAD) or not (
        is_string(beside) or bytes(beside) == b"null"
    ):
        return None
    words = _REJECTION_WORDS.match(output)
    return words[1].strip() if words else ""


def answers_in(output: str, form: Form, beside: msgspec.Raw) -> list[Answer]:
    """Return the owner's answers to the questions of ``form``: those in ``beside`` if
    present, else parsed from the output. A question may contain text that looks like another
    question with its answer.
    """
    answers = (decode_raw(beside, dict) or {}).get("answers")
    pairs = list(answers.items()) if isinstance(answers, dict) else _ANSWER_PAIR.findall(output)
    return _to_questions(pairs, form)


def listed_answers(text: str, form: Form) -> list[Answer]:
    """Return the answers that the host lists when the owner prefers to talk, or is done. The rest
    is the host's text.
    """
    return _to_questions(_LISTED_ANSWER.findall(text), form)


def _to_questions(pairs: Iterable[tuple[str, object]], form: Form) -> list[Answer]:
    """Return the answers to known questions. A question that occurs twice is skipped, since its
    answer is ambiguous.
    """
    known_pairs = [(question, answer) for question, answer in pairs if question in form]
    times = Counter(question for question, _ in known_pairs)
    return [
        answered(question, answer, form[question])
        for question, answer in known_pairs
        if times[question] == 1 and isinstance(answer, str) and answer.strip()
    ]


def is_typed_ahead(attachment: Mapping[str, Any]) -> bool:
    """Return True if a queued command names an input mode of a person, or a person, as its source, and no other."""
    sources = [{"origin": attachment[name]} for name in _SOURCE_FIELDS if attachment.get(name)]
    names_owner = bool(attachment.get("commandMode") or attachment.get("origin"))
    return names_owner and not attachment.get("isMeta") and not names_another(attachment, *sources)


def typed_ahead(text: str) -> tuple[str, Flag, str]:
    """Split a prompt typed while the agent worked, like :func:`typed`. A command without arguments
    has its own record.
    """
    words, flags, others = typed(text)
    command = _QUEUED_COMMAND.match(words)
    if not command:
        return words, flags, others
    return ("", Flag.META, others) if command[0] == words else (words, flags | Flag.COMMAND, others)


def typed(text: str) -> tuple[str, Flag, str]:
    """Split a prompt into the owner's words, their flags, and the text of the host or others."""
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
    """Return the tags with which the host writes a command, and the rest of the text, which was not
    typed.
    """
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
    """Return the text in the first pair of tags. A regular expression would search for the end from
    every beginning.
    """
    _, _, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside.strip() if closed else None
