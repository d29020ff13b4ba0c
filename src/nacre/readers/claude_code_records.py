"""Claude Code's records, forms and sessions, and the words that the user typed in prompts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from nacre.base.frozen import frozen
from nacre.base.plain import JsonObject, Values, mapping, objects, total
from nacre.base.text import one_line
from nacre.readers.adapter import (
    Source,
    parse_time,
    plain,
)
from nacre.readers.conversation import is_tools
from nacre.readers.trust import (
    ABSENT,
    CHOSEN,
    TYPED,
    Block,
    Call,
    Claims,
    blocks_of,
    names_another,
    shared,
)
from nacre.values.session import (
    Flag,
    Session,
    SessionKind,
    Tokens,
    Trust,
)

_QUESTION_ENDS = ("?", "？", ":", "：")
_HIDDEN_QUESTION = "…?"
"""Placeholder for a form question that is based on external text."""


@frozen
class Answer:
    """The user's answer to a form question. ``is_typed`` is False if it is one of the options."""

    question: str
    answer: str
    is_typed: bool


def questions_of(arguments: Values) -> dict[str, list[str]]:
    """Return the questions of a form, each with its options."""
    options_by_question: dict[str, list[str]] = {}
    for item in objects(arguments, "questions"):
        if isinstance(item.get("question"), str):
            labels = (option.get("label") for option in objects(item, "options"))
            options_by_question.setdefault(item["question"], []).extend(
                label for label in labels if isinstance(label, str)
            )
    return options_by_question


def answered(question: str, answer: str, options: Sequence[str]) -> Answer:
    """Return the user's answer to a question.

    If the options are unknown, the answer counts as chosen.
    """
    asking = one_line(question)
    asking = asking if asking.endswith(_QUESTION_ENDS) else f"{asking}:"
    is_typed = bool(options) and not _uses_options(answer, options)
    return Answer(asking, answer if is_typed else one_line(answer), is_typed)


def messages_of(
    answers: Iterable[Answer], trust_of: Callable[[str], Trust]
) -> tuple[list[str], str]:
    """Split the answers to a form into the user's messages and external text.

    Each typed answer is a separate message. A question based on external text is left out. An
    answer based on external text counts as external.
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
    labels = {_plain(option) for option in options}
    return (
        _plain(answer) in labels
        or all(_plain(part) in labels for part in answer.split(", "))
        or any(shared(option, answer) or shared(answer, option) for option in options)
    )


def _plain(text: str) -> str:
    return one_line(text).lower()


# -- Records -------------------------------------------------------------------
# Bodies stay undecoded (``msgspec.Raw``) until needed, because most bytes of a transcript are tool
# results. Every field that a tool might write differently is optional.


IGNORED = frozenset(
    "agent-color agent-name agent-setting api-request api-request-blob api-request-resumed api-request-shape "
    "artifact-autoreact-ledger artifact-comment-monitor atis-latch attribution-snapshot bridge-session "
    "content-replacement continued-in cost-state data-flow-incomplete data-flow-records derived-from dev-mods "
    "ended-by-model file-history-delta file-history-snapshot fork-context-ref frame-link history-suppression "
    "host-row hybrid-organization isolation-latch last-prompt memory-mode mode observer-ref permission-mode "
    "relocated repl-mode result resume-head-vouch session-owner started system tag teleported-from tool_result "
    "tool_use tools-used worktree-state".split()
)
"""Record types without content. Claude Code 2.1.330 writes them, and the reader skips them."""


class Record(Claims, gc=False):
    """One line of a transcript."""

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
    message: msgspec.Raw = ABSENT
    content: msgspec.Raw = ABSENT
    attachment: msgspec.Raw = ABSENT
    data: msgspec.Raw = ABSENT
    toolUseResult: msgspec.Raw = ABSENT  # noqa: N815


class Message(Claims, gc=False):
    """The ``message`` of a user or assistant record; ``content`` is a string or a list of blocks."""

    content: msgspec.Raw = ABSENT
    id: str | None = None
    model: str | None = None
    usage: Any = None


RECORD = msgspec.json.Decoder(Record)
MESSAGE = msgspec.json.Decoder(Message)


def is_string(raw: msgspec.Raw) -> bool:
    """Return True if a body is a JSON string."""
    return bytes(memoryview(raw)[:1]) == b'"'


def string_of(raw: msgspec.Raw) -> str:
    """Return the text of a JSON string, or else an empty string."""
    return str(plain(raw)) if is_string(raw) else ""


def shows_image(content: msgspec.Raw) -> bool:
    """Return True if a tool result has an image. Text in images is not recorded."""
    return b'"image"' in bytes(content) and any(
        block.type == "image" for block in blocks_of(content)
    )


def record_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """Yield each record with its position.

    A session moved here from the web is one object with its records in ``loglines``.
    """
    if source.path.suffix != ".json":
        yield from source.lines()
        return
    logged = mapping(plain(source.text())).get("loglines")
    if not isinstance(logged, list):
        source.corrupt()
        return
    for number, record in enumerate(logged):
        yield number, msgspec.json.encode(record)


# -- Calls without a result, and messages that can still grow ------------------


_HOST_TOOLS = frozenset(
    "Agent AskUserQuestion Edit EnterPlanMode ExitPlanMode Glob Grep LS MultiEdit NotebookEdit NotebookRead Read Task "
    "TodoRead TodoWrite Write exit_plan_mode".split()
)
"""Tools whose error messages are always written by the host."""

_SHELL, _EXIT_CODE_SINCE_MAJOR = "Bash", 2
"""The shell tool, and the first major version in which the result of a failed command starts with its exit code."""


def fails_in_words_of_host(call: Call, version: str | None) -> bool:
    """Return True if this version of the host starts the call's error result with its own text."""
    if call.outside:
        return False
    major = (version or "").partition(".")[0]
    is_marked = (
        call.call.name == _SHELL and major.isdecimal() and int(major[:9]) >= _EXIT_CODE_SINCE_MAJOR
    )
    return is_marked or call.call.name in _HOST_TOOLS


@dataclass(slots=True)
class OpenMessage:
    """An agent's message that can continue in later lines."""

    offset: int
    before: bytes
    mark: tuple[int, ...]
    key: str
    record: Record
    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    usage: Values = field(default_factory=dict)
    trust: Trust = Trust.TRUSTED


# -- Sessions of the user, and of sub-agents in the same transcript -----


TOOL = "claude-code"

_MAX_COUNTED_MESSAGES = 8


class Sessions:
    """The sessions in a file.

    ``carry``: state for the next reading. ``stem``: file name without suffix, which is the session
    id if a record contains none.
    """

    def __init__(self, carry: JsonObject, stem: str) -> None:
        self.carry = carry
        self.stem = stem
        self.session: Session | None = None
        self.by_id: dict[str, Session] = {}

    def ids_of(self, record: Record) -> tuple[str, str]:
        """Return the id of the main session and the id of the record's own session.

        The ids differ if a sub-agent wrote the record.
        """
        own = record.sessionId or self.carry.get("session") or self.stem
        agent = record.agentId if record.isSidechain else None
        return own, f"agent-{agent}" if agent else own

    def entitle(self, record: Record) -> None:
        """Store a title. The user's title takes priority over the host's."""
        custom = record.type == "custom-title"
        title = record.customTitle or record.aiTitle
        if title and (custom or not self.carry.get("custom_title")):
            self.carry["title"], self.carry["custom_title"] = title, custom

    def session_of(self, record: Record) -> Session:
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

    def facts_of(self, record: Record, native_id: str) -> JsonObject:
        """Return facts about a session from its first record."""
        facts: JsonObject = self.carry.setdefault("sessions", {}).setdefault(native_id, {})
        facts.setdefault("cwd", record.cwd)
        facts.setdefault(
            "branch", record.gitBranch if record.gitBranch not in ("", "HEAD") else None
        )
        facts.setdefault("started", record.timestamp)
        facts.setdefault("version", record.version)
        return facts

    def finished(self, session: Session) -> Session:
        """Return a session with its final facts.

        A sub-agent's model is unknown if the file has several sub-agents.
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
        """Add a message's tokens to the total of the session.

        If the message continues later, only the additional tokens are added.
        """
        usage = group.usage
        if not usage:
            return
        _, native_id = self.ids_of(group.record)
        spent = self.carry.setdefault("spent", {}).setdefault(
            native_id, {"all": [0, 0, 0], "last": {}}
        )
        now = Tokens(
            total(usage, "input_tokens", "cache_creation_input_tokens"),
            total(usage, "cache_read_input_tokens"),
            total(usage, "output_tokens"),
        ).bounded
        before = Tokens(*spent["last"].pop(group.key, ()))
        spent["all"] = _numbers((Tokens(*spent["all"]) + now - before).bounded)
        spent["last"] = dict(
            [*spent["last"].items(), (group.key, _numbers(now))][-_MAX_COUNTED_MESSAGES:]
        )


def _numbers(tokens: Tokens) -> list[int]:
    return [tokens.input, tokens.cached, tokens.output]


# -- The user's words in a prompt ---------------------------------------------


Form = Mapping[str, Sequence[str]]
"""The questions of a form, each with its options."""

_INTERRUPTION_NOTE = re.compile(r"\[Request interrupted by user[^\]\n]{0,40}\]")
_PLAN_HEAD = "Implement the following plan:"
_FEEDBACK_HEAD = "\n\nUser feedback on this plan: "
_PROMPT_COMMAND = "<command-message>"
"""Start of a command that is a prompt. Other commands, such as ``/model``, start with their name."""
_COMMAND_TAGS = ("command-message", "command-name", "command-args")
_SOURCE_FIELDS = ("source", "sender", "author", "from", "channel")
"""Fields that could name the source of a queued command. The host does not write them today."""
_QUEUED_COMMAND = re.compile(r"/[\w:-]+(?: |$)")
_MAX_TITLE_CHARACTERS = 200
_ANSWER_PAIR = re.compile(r'"((?:[^"\\]|\\.)+)"\s*=\s*"((?:[^"\\]|\\.)*)"')
_LISTED_ANSWER = re.compile(r'^- "([^\n]+)"\n[ \t]+Answer: ([^\n]+)$', re.MULTILINE)
_REJECTION_HEAD = "The user doesn't want to proceed"
_REJECTION_WORDS = re.compile(r"[^\n]*the user said:[^\S\n]*\n(.*)", re.DOTALL)


def content_of(content: msgspec.Raw) -> tuple[str, list[Block], list[Block]]:
    """Return a message's text, its tool results, and its text blocks."""
    if is_string(content):
        return string_of(content), [], []
    blocks = blocks_of(content)
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
    """Return the host's note about an interruption, or "", and the rest of a prompt."""
    note = _INTERRUPTION_NOTE.match(text)
    return (note[0], text[note.end() :].strip()) if note else ("", text)


def plan_of(text: str, accepted: str | None = None) -> tuple[str, str, str]:
    """Split a prompt with a plan into the user's choice, the agent's plan, and the user's comment.

    The comment is found only if ``accepted`` contains the text of the plan.
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


def is_feedback_on_call(record: Record, message: Message, calls: Mapping[str, Call]) -> bool:
    """Return True if a message contains the user's remark on an allowed tool call.

    Such a message contains a tool result and one text, and its record names the call.
    """
    first, *rest = blocks_of(message.content) or [Block()]
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
    """Return the user's reason for declining a tool call, or None if the call was not declined.

    If ``beside`` is a list or an object, the content is the output of a tool.
    """
    output = string_of(content)
    if not output.startswith(_REJECTION_HEAD) or not (
        is_string(beside) or bytes(beside) == b"null"
    ):
        return None
    words = _REJECTION_WORDS.match(output)
    return words[1].strip() if words else ""


def answers_in(output: str, form: Form, beside: msgspec.Raw) -> list[Answer]:
    """Return the user's answers to the questions in ``form``.

    The answers are read from ``beside`` if possible, because a question in ``output`` can contain
    text that looks like another question with an answer.
    """
    answers = mapping(plain(beside)).get("answers")
    pairs = list(answers.items()) if isinstance(answers, dict) else _ANSWER_PAIR.findall(output)
    return _to_questions(pairs, form)


def listed_answers(text: str, form: Form) -> list[Answer]:
    """Return the answers that the host lists when the user stops answering a form."""
    return _to_questions(_LISTED_ANSWER.findall(text), form)


def _to_questions(pairs: Iterable[tuple[str, object]], form: Form) -> list[Answer]:
    """Return the answers to known questions.

    A repeated question is skipped, because its answer is ambiguous.
    """
    known_pairs = [(question, answer) for question, answer in pairs if question in form]
    times = Counter(question for question, _ in known_pairs)
    return [
        answered(question, answer, form[question])
        for question, answer in known_pairs
        if times[question] == 1 and isinstance(answer, str) and answer.strip()
    ]


def is_typed_ahead(attachment: Values) -> bool:
    """Return True if a person typed a queued command."""
    sources = [{"origin": attachment[name]} for name in _SOURCE_FIELDS if attachment.get(name)]
    names_owner = bool(attachment.get("commandMode") or attachment.get("origin"))
    return names_owner and not attachment.get("isMeta") and not names_another(attachment, *sources)


def typed_ahead(text: str) -> tuple[str, Flag, str]:
    """Split a prompt that was typed while the agent worked. See :func:`typed`.

    A command without arguments is left out, because another record contains the command.
    """
    words, flags, others = typed(text)
    command = _QUEUED_COMMAND.match(words)
    if not command:
        return words, flags, others
    return ("", Flag.META, others) if command[0] == words else (words, flags | Flag.COMMAND, others)


def typed(text: str) -> tuple[str, Flag, str]:
    """Return the user's words in a prompt, their flags, and text from the host or other people."""
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
    """Return the contents of the command tags, and the text after the tags.

    The user did not type the text after the tags.
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
    """Return the text in the first pair of tags. A regular expression would be slow with many start tags."""
    _, _, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside.strip() if closed else None
