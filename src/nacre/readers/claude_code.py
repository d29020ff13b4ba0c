"""Claude Code: ``~/.claude/projects/<slug>/<session>.jsonl``.

Transcripts of sub-agents are in a separate folder.

Each line contains one block of a message, and the results of the message's tool calls appear
between these lines. A message stays open until the next one starts. If it is still open at the end
of the file, it is read again next time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import msgspec

from nacre.base.frozen import frozen
from nacre.base.plain import JsonObject, Values, mapping, objects, string
from nacre.base.text import noted, one_line, shorten
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Places,
    Root,
    Source,
    decode,
    parse_time,
    plain,
    records,
)
from nacre.readers.conversation import is_tools, outcome, tokens_of, with_outcome
from nacre.readers.trust import (
    ABSENT,
    CHOSEN,
    TYPED,
    Block,
    Call,
    Claims,
    Exchange,
    blocks_of,
    names_another,
    shared,
    text_of,
    with_author,
)
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, ToolCall, Trust, Turn

TOOL = "claude-code"

_QUESTION_ENDS = ("?", "？", ":", "：")
_HIDDEN_QUESTION = "…?"
"""Placeholder for a question that is based on external text."""


@frozen
class Answer:
    """The user's answer to a question in a form, either typed or one of the options."""

    question: str
    answer: str
    is_typed: bool


def questions_of(arguments: Values) -> dict[str, list[str]]:
    """Return the options of each question in a form."""
    options_by_question: dict[str, list[str]] = {}
    for item in objects(arguments, "questions"):
        if isinstance(item.get("question"), str):
            labels = (option.get("label") for option in objects(item, "options"))
            options_by_question.setdefault(item["question"], []).extend(
                label for label in labels if isinstance(label, str)
            )
    return options_by_question


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
"""Types of records without content, as of Claude Code 2.1.330."""


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
    """A user or assistant record's ``message``, whose content is a string or a list of blocks."""

    content: msgspec.Raw = ABSENT
    id: str | None = None
    model: str | None = None
    usage: Any = None


RECORD = msgspec.json.Decoder(Record)
MESSAGE = msgspec.json.Decoder(Message)


def is_string(raw: msgspec.Raw) -> bool:
    """Return True if a JSON value is a string."""
    return bytes(memoryview(raw)[:1]) == b'"'


def string_of(raw: msgspec.Raw) -> str:
    """Decode a JSON string. Return an empty string for any other value."""
    return str(plain(raw)) if is_string(raw) else ""


def shows_image(content: msgspec.Raw) -> bool:
    """Return True if a tool result contains an image."""
    return b'"image"' in bytes(content) and any(
        block.type == "image" for block in blocks_of(content)
    )


def record_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """Yield each line of a transcript with its byte offset.

    A session moved here from the web is a single object. Its ``loglines`` are numbered instead.
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
"""Tools whose error messages always come from the host."""

_SHELL, _EXIT_CODE_SINCE_MAJOR = "Bash", 2
"""The shell tool, and the first major version whose error results start with the exit code."""


def fails_in_words_of_host(call: Call, version: str | None) -> bool:
    """Return True if a failed call's result starts with text by the host, not by the tool."""
    if call.outside:
        return False
    major = (version or "").partition(".")[0]
    is_marked = (
        call.call.name == _SHELL and major.isdecimal() and int(major[:9]) >= _EXIT_CODE_SINCE_MAJOR
    )
    return is_marked or call.call.name in _HOST_TOOLS


@dataclass(slots=True)
class OpenMessage:
    """An agent's message that later lines of the transcript may continue."""

    offset: int
    before: bytes
    mark: tuple[int, ...]
    key: str
    record: Record
    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    usage: Values = field(default_factory=dict)
    trust: Trust = Trust.TRUSTED


# -- What the user typed in a prompt ------------------------------------------


Form = Mapping[str, Sequence[str]]
"""The options of each question in a form."""

_INTERRUPTION_NOTE = re.compile(r"\[Request interrupted by user[^\]\n]{0,40}\]")
_PLAN_HEAD = "Implement the following plan:"
_FEEDBACK_HEAD = "\n\nUser feedback on this plan: "
_PROMPT_COMMAND = "<command-message>"
"""Start of commands that send a prompt. Others, such as ``/model``, start with their name."""
_COMMAND_TAGS = ("command-message", "command-name", "command-args")
_SOURCE_FIELDS = ("source", "sender", "author", "from", "channel")
"""Fields that might name the source of a queued command in future versions of the host."""
_QUEUED_COMMAND = re.compile(r"/[\w:-]+(?: |$)")
_MAX_TITLE_CHARACTERS = 200
_ANSWER_PAIR = re.compile(r'"((?:[^"\\]|\\.)+)"\s*=\s*"((?:[^"\\]|\\.)*)"')
_LISTED_ANSWER = re.compile(r'^- "([^\n]+)"\n[ \t]+Answer: ([^\n]+)$', re.MULTILINE)
_REJECTION_HEAD = "The user doesn't want to proceed"
_REJECTION_WORDS = re.compile(r"[^\n]*the user said:[^\S\n]*\n(.*)", re.DOTALL)


def content_of(content: msgspec.Raw) -> tuple[str, list[Block], list[Block]]:
    """Return a message's text, its tool results and its text blocks."""
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
    """Split a prompt into the host's note about an interruption ("" if none) and the rest."""
    note = _INTERRUPTION_NOTE.match(text)
    return (note[0], text[note.end() :].strip()) if note else ("", text)


def plan_of(text: str, accepted: str | None = None) -> tuple[str, str, str]:
    """Split a prompt that accepts a plan into its title, the plan and the user's comment.

    All are empty for other prompts. The comment is found only if ``accepted`` is the plan's text.
    """
    head, _, body = text.partition("\n\n")
    plan, words = body.strip(), ""
    if head.strip() != _PLAN_HEAD or not plan:
        return "", "", ""
    if accepted and plan.startswith(accepted.strip()):
        words = plan.removeprefix(accepted.strip()).partition(_FEEDBACK_HEAD)[2].strip()
        plan = accepted.strip()
    title = plan.partition("\n")[0]
    return f"{_PLAN_HEAD}\n\n{title[:_MAX_TITLE_CHARACTERS]}", plan, words


def is_feedback_on_call(record: Record, message: Message, calls: Mapping[str, Call]) -> bool:
    """Return True if a message is the user's comment on a tool call they approved.

    Such a message has one text block after the tool result, and its record names the call.
    """
    first, *other_blocks = blocks_of(message.content) or [Block()]
    call = calls.get(first.tool_use_id or "")
    return (
        first.type == "tool_result"
        and not first.is_error
        and [block.type for block in other_blocks if block.type != "image"] == ["text"]
        and call is not None
        and call.record is not None
        and call.record == record.sourceToolAssistantUUID
    )


def rejection(content: msgspec.Raw, beside: msgspec.Raw) -> str | None:
    """Return the user's reason for declining a tool call, or None if it was not declined.

    If ``beside`` is a list or an object, the tool itself wrote ``content``.
    """
    output = string_of(content)
    if not output.startswith(_REJECTION_HEAD) or not (
        is_string(beside) or bytes(beside) == b"null"
    ):
        return None
    words = _REJECTION_WORDS.match(output)
    return words[1].strip() if words else ""


def answers_to(form: Form, pairs: Iterable[tuple[str, object]]) -> Iterator[Answer]:
    """Yield the user's answers to those questions of ``form`` that occur only once.

    If a question's options are unknown, its answer counts as chosen.
    """
    known_pairs = [(question, answer) for question, answer in pairs if question in form]
    times = Counter(question for question, _ in known_pairs)
    for question, answer in known_pairs:
        if times[question] == 1 and isinstance(answer, str) and answer.strip():
            asking, options = one_line(question), form[question]
            asking = asking if asking.endswith(_QUESTION_ENDS) else f"{asking}:"
            is_typed = bool(options) and not _uses_options(answer, options)
            yield Answer(asking, answer if is_typed else one_line(answer), is_typed)


def is_typed_ahead(attachment: Values) -> bool:
    """Return True if the user typed a queued command."""
    sources = [{"origin": attachment[name]} for name in _SOURCE_FIELDS if attachment.get(name)]
    names_owner = bool(attachment.get("commandMode") or attachment.get("origin"))
    return names_owner and not attachment.get("isMeta") and not names_another(attachment, *sources)


def typed(text: str) -> tuple[str, Flag, str]:
    """Split a prompt into the user's text, its flags, and the text by others or the host."""
    if text.startswith("<command-"):
        parts, foreign_text = _command_parts(text)
        command, words = parts.get("command-name"), parts.get("command-args")
        if not command or not (words or text.startswith(_PROMPT_COMMAND)):
            return "", Flag.META, text
        return f"/{command.removeprefix('/')} {words or ''}".rstrip(), Flag.COMMAND, foreign_text
    shell, is_closed, _ = text.removeprefix("<bash-input>").partition("</bash-input>")
    if is_closed and text.startswith("<bash-input>"):
        return f"! {shell.strip()}", Flag.META, ""
    return ("", Flag.META, text) if is_tools(TOOL, text) else (text, Flag.NONE, "")


def _command_parts(text: str) -> tuple[dict[str, str], str]:
    parts: dict[str, str] = {}
    while tag := next(
        (tag for tag in _COMMAND_TAGS if tag not in parts and text.startswith(f"<{tag}>")), None
    ):
        inside, closed, following = text.partition(f"</{tag}>")
        if not closed:
            break
        parts[tag], text = inside.removeprefix(f"<{tag}>").strip(), following.lstrip()
    return parts, text


# -- Reading a transcript ----------------------------------------------------------


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Matches ids that are unique across sessions."""
_EXIT_CODE = re.compile(r"\AExit code (\d+)")
_MAX_SPOKEN_PROMPTS = 20
_SYNTHETIC_MODEL = "<synthetic>"
_MAIN_THREAD = ""
_MAX_ERROR_CHARACTERS = 300
_MAX_COUNTED_MESSAGES = 8


class Reader:
    """An iterator over the sessions and turns of one transcript."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.yielded: Session | None = None
        self.first: list[tuple[Record, Speaker, str, Flag, Trust]] = []
        """The first prompts or summaries, kept until the id of their session is known."""
        self.links: list[Record] = []
        self.open: dict[str, OpenMessage] = {}
        self.calls: dict[str, Call] = {}
        self.exchange = Exchange(source.carry.get("exchange"))
        self.summaries: dict[str, str] = {}
        self.carry = {"queue": [], "spoken": [], **source.carry}
        self.carry.pop("exchange", None)
        self.by_id: dict[str, Session] = {}
        folder = source.path.with_suffix("") / "subagents"
        self.inline_agents = not folder.is_dir()

    def __iter__(self) -> Items:
        for offset, line in record_lines(self.source):
            for record in records(self.source, line, RECORD):
                yield from self.take(offset, record)
        yield from self.finish()

    def take(self, offset: int, record: Record) -> Items:
        match record.type:
            case "user":
                yield from self.user(record)
            case "assistant":
                yield from self.assistant(offset, record)
            case "attachment":
                yield from self.attachment(record)
            case "queue-operation":
                yield from self.queued(record)
            case "progress":
                yield from self.progress(offset, record)
            case "pr-link":
                yield from self.pull_request(record)
            case "summary":
                if record.leafUuid and record.summary:
                    self.summaries[record.leafUuid] = record.summary
            case _:
                self.other(record)
        if record.uuid in self.summaries:
            self.carry.setdefault("title", self.summaries[record.uuid])

    def other(self, record: Record) -> None:
        if record.type in ("ai-title", "custom-title"):
            # The user's own title is preferred to a generated one.
            custom, title = record.type == "custom-title", record.customTitle or record.aiTitle
            if title and (custom or not self.carry.get("custom_title")):
                self.carry["title"], self.carry["custom_title"] = title, custom
        elif record.type not in IGNORED:
            self.source.unknown(record.type or "no type")

    # Sessions of the user, and of sub-agents in the same transcript

    def ids_of(self, record: Record) -> tuple[str, str]:
        """Return the main session's id and the id of the record's session.

        They differ if a sub-agent wrote the record.
        """
        own = record.sessionId or self.carry.get("session") or self.source.path.stem
        agent = record.agentId if record.isSidechain else None
        return own, f"agent-{agent}" if agent else own

    def session_of(self, record: Record) -> Session:
        own, native_id = self.ids_of(record)
        self.carry["session"] = own
        if native_id not in self.by_id:
            is_sub = native_id != own
            facts = self.facts_of(record, native_id)
            self.by_id[native_id] = Session(
                tool=TOOL,
                native_id=native_id,
                cwd=facts["cwd"],
                branch=facts["branch"],
                kind=SessionKind.SUBAGENT if is_sub else SessionKind.MAIN,
                parent=own if is_sub else None,
                started=parse_time(facts["started"]),
                tool_version=facts["version"],
            )
        return self.by_id[native_id]

    def facts_of(self, record: Record, native_id: str) -> JsonObject:
        """Return the folder, branch, start time and tool version from a session's first record."""
        facts: JsonObject = self.carry.setdefault("sessions", {}).setdefault(native_id, {})
        facts.setdefault("cwd", record.cwd)
        facts.setdefault(
            "branch", record.gitBranch if record.gitBranch not in ("", "HEAD") else None
        )
        facts.setdefault("started", record.timestamp)
        facts.setdefault("version", record.version)
        return facts

    def finished(self, session: Session) -> Session:
        """Add the title, model and tokens that are known only at the end of the file.

        A sub-agent's model is set only if the file has one session.
        """
        spent = self.carry.get("spent", {}).get(session.native_id)
        is_main = session.kind is SessionKind.MAIN
        return replace(
            session,
            title=self.carry.get("title") if is_main else None,
            model=self.carry.get("model") if is_main or len(self.by_id) == 1 else None,
            tokens=Tokens(*spent["all"]) if spent else None,
        )

    def count(self, group: OpenMessage) -> None:
        """Add a message's tokens to its session's total.

        If a later read continues the message, only the difference is added.
        """
        usage = group.usage
        if not usage:
            return
        _, native_id = self.ids_of(group.record)
        spent = self.carry.setdefault("spent", {}).setdefault(
            native_id, {"all": [0, 0, 0], "last": {}}
        )
        now = tokens_of(usage)
        before = Tokens(*spent["last"].pop(group.key, ()))
        spent["all"] = list(astuple((Tokens(*spent["all"]) + now - before).bounded))
        counted = [*spent["last"].items(), (group.key, list(astuple(now)))]
        spent["last"] = dict(counted[-_MAX_COUNTED_MESSAGES:])

    # Messages of the user

    def user(self, record: Record) -> Items:
        message = decode(MESSAGE, record.message)
        if message is None:
            self.source.corrupt()
            return
        text, results, text_blocks = content_of(message.content)
        is_foreign = bool(text and results) and not is_feedback_on_call(record, message, self.calls)
        for block in results:
            yield from self.tool_result(record, block)
        if not text or record.isMeta:
            self.exchange.record(text)
            return
        if record.isCompactSummary:
            yield from self.close_all()
            yield from self.derived(record, text)
            return
        note, text = interruption(text)
        if note:
            yield from self.interrupted(_with_suffix(record, "cut") if text else record, note)
        title, plan, feedback = plan_of(text, record.planContent)
        is_foreign |= names_another(record, message, *text_blocks) and not (
            plan and record.planContent
        )
        if is_foreign or note:
            yield from self.another(record, text)
            return
        if plan:
            yield from self.derived(_with_suffix(record, "plan"), plan)
        words, flags = (title, Flag.COMMAND) if plan else self.typed(text)
        yield from self.delivered(record, words, flags)
        if feedback:
            yield from self.owner(_with_suffix(record, "feedback"), feedback)

    def another(self, record: Record, text: str) -> Items:
        """Yield a message in the user's role that another agent or person sent.

        Text by the host is only recorded as external.
        """
        words, flags = self.typed(text)
        self.exchange.record_outside(text)
        if words:
            yield from self.close_all()
            yield from self.say(record, Speaker.SYSTEM, words, flags, trust=Trust.UNTRUSTED)

    def interrupted(self, record: Record, text: str) -> Items:
        """Yield the open messages, then the host's note that the user interrupted the agent."""
        yield from self.close_sides()
        if not record.isSidechain:
            yield from self.close(_MAIN_THREAD)
        yield from self.say(record, Speaker.SYSTEM, text, Flag.META | Flag.INTERRUPTED)

    def derived(self, record: Record, text: str) -> Items:
        """Yield a turn that the host composed from earlier messages, such as a summary."""
        trust, flags = self.exchange.judge(self.exchange.clean(text).text)
        yield from self.say(record, Speaker.SYSTEM, text, Flag.SUMMARY | flags, trust=trust)

    def owner(
        self, record: Record, words: str, flags: Flag = Flag.NONE, *, trust: Trust = Trust.TRUSTED
    ) -> Items:
        yield from self.close_sides()
        if record.isSidechain:
            yield from self.say(record, Speaker.AGENT, words, flags)
            return
        yield from self.close(_MAIN_THREAD)
        turn = Turn("", Speaker.OWNER, words, flags=flags, trust=trust)
        turn = with_author(turn, TOOL, self.source.identities, self.exchange)
        if turn.trust is Trust.TRUSTED:
            self.exchange.begin(turn.text)
        yield from self.say(
            record, turn.speaker, turn.text, turn.flags, trust=turn.trust, author=turn.author
        )

    def tool_result(self, record: Record, block: Block) -> Items:
        call = self.calls.pop(block.tool_use_id or "", None)
        is_form = call is not None and call.call.name == "AskUserQuestion"
        output = text_of(block.content, separator="\n")
        if not is_form:
            # Output without a known call counts as external.
            outside, own = not call or call.outside, bool(call and call.own)
            self.exchange.record(output, outside=outside, own=own)
            if shows_image(block.content):
                self.exchange.record_unseen()
        if not (block.is_error or is_form):
            if call:
                call.call = with_outcome(call.call, "ok", output)
            return
        words = rejection(block.content, record.toolUseResult)
        if words is not None:
            if call:
                call.call = with_outcome(call.call, "rejected", output)
            yield from self.declined(record, call, words)
        elif call:
            code = _EXIT_CODE.match(output)
            result = outcome(output, exit_code=code and code[1], is_error=bool(block.is_error))
            call.call = with_outcome(call.call, result, output)
        if call and is_form and not block.is_error:
            # A question in the output can look like an answer.
            answers = mapping(plain(record.toolUseResult)).get("answers")
            known = answers.items() if isinstance(answers, dict) else _ANSWER_PAIR.findall(output)
            yield from self.answers(record, answers_to(call.questions, known))

    def declined(self, record: Record, call: Call | None, words: str) -> Items:
        """Yield the user's reason for declining a tool call.

        A reason that a failed tool could have written is not attributed to the user.
        """
        words = self.exchange.clean(words).text
        if is_tools(TOOL, words):
            listed = _LISTED_ANSWER.findall(words)
            yield from self.answers(record, answers_to(call.questions, listed) if call else ())
        elif call is not None and fails_in_words_of_host(call, record.version):
            yield from self.owner(record, words)
        else:
            yield from self.another(record, words)

    def answers(self, record: Record, answers: Iterable[Answer]) -> Items:
        """Yield the user's answers to a form: all chosen options, and then each typed answer.

        Questions that repeat external text are left out. Answers that do so count as external.
        """
        trust_of = self.exchange.trust_of
        chosen, written, foreign = list[str](), list[str](), list[str]()
        for item in answers:
            pair = f"{item.question} {TYPED if item.is_typed else CHOSEN} {item.answer}"
            trusted = written if item.is_typed else chosen
            if trust_of(pair) is Trust.TRUSTED:
                trusted.append(pair)
            elif trust_of(item.answer) is Trust.TRUSTED:
                trusted.append(
                    item.answer if item.is_typed else f"{_HIDDEN_QUESTION} {CHOSEN} {item.answer}"
                )
            else:
                foreign.append(pair)
        if foreign:
            record_outside = _with_suffix(record, "outside")
            yield from self.owner(record_outside, "\n".join(foreign), trust=Trust.UNTRUSTED)
        for number, words in enumerate([*filter(None, ["\n".join(chosen)]), *written]):
            yield from self.owner(
                _with_suffix(record, f"answer {number}") if number else record, words
            )

    def attachment(self, record: Record) -> Items:
        attachment = mapping(plain(record.attachment))
        if attachment.get("type") != "queued_command":
            return
        prompt = msgspec.Raw(msgspec.json.encode(attachment.get("prompt")))
        text = text_of(prompt, separator="\n")
        if not is_typed_ahead(attachment) or names_another(record):
            yield from self.another(record, text)
            return
        yield from self.delivered(record, *self.typed(text, ahead=True))

    def delivered(self, record: Record, words: str, flags: Flag) -> Items:
        """Yield a prompt that reached the agent, unless it was already yielded."""
        self.carry["queue"] = [
            pending for pending in self.carry["queue"] if pending[1].strip() != words
        ]
        queued = next((spoken for spoken in self.carry["spoken"] if words == spoken[1]), None)
        if queued:
            self.carry["spoken"].remove(queued)
        elif words:
            yield from self.owner(record, words, flags)

    def queued(self, record: Record) -> Items:
        """Follow the queue of prompts that the user types while the agent works.

        Yields each prompt that leaves the queue, except one removed with text or a reason, which
        has its own record.
        """
        queue = self.carry["queue"]
        match record.operation:
            case "enqueue":
                text = string_of(record.content)
                if (is_foreign := names_another(record)) or is_tools(TOOL, text):
                    self.exchange.record_outside(text)
                # No record shows when a host notice leaves the queue.
                if not is_tools(TOOL, text):
                    queue.append((record.timestamp or "", "" if is_foreign else text))
            case "dequeue" if queue:
                queue.pop(0)
            case "popAll":
                queue.clear()
            case "remove" if queue:
                when, text = queue.pop(0)
                if not (record.reason or is_string(record.content)):
                    yield from self.say_queued(record, when, text)

    def say_queued(self, record: Record, when: str, text: str) -> Items:
        words, flags = self.typed(text, ahead=True)
        if not words:
            return
        yield from self.close_all()
        if [when, words] not in self.carry["spoken"]:
            self.carry["spoken"] = [*self.carry["spoken"][-_MAX_SPOKEN_PROMPTS:], [when, words]]
            yield from self.owner(
                msgspec.structs.replace(record, uuid=f"queued {when}", timestamp=when), words, flags
            )

    # Messages of the agent

    def assistant(self, offset: int, record: Record) -> Items:
        message = decode(MESSAGE, record.message)
        if message is None:
            self.source.corrupt()
            return
        side = (record.agentId or "side") if record.isSidechain else _MAIN_THREAD
        if record.isApiErrorMessage:
            yield from self.close(side)
            text = shorten(content_of(message.content)[0], _MAX_ERROR_CHARACTERS)
            yield from self.say(record, Speaker.SYSTEM, text, Flag.META)
        if record.isApiErrorMessage or message.model == _SYNTHETIC_MODEL:
            return
        key = message.id or record.uuid or str(offset)
        if (side in self.open) and self.open[side].key != key:
            yield from self.close(side)
        if side not in self.open:
            self.open[side] = OpenMessage(
                offset, msgspec.json.encode(self.carry), self.exchange.mark(), key, record
            )
        group = self.open[side]
        if message.model:
            self.carry["model"] = noted(self.carry.get("model"), message.model)
        group.usage = mapping(message.usage) or group.usage
        self.add_blocks(group, record.uuid, message.content)

    def add_blocks(self, group: OpenMessage, record: str | None, content: msgspec.Raw) -> None:
        for block in blocks_of(content):
            if block.type == "text" and block.text:
                group.texts.append(block.text)
            elif block.type == "tool_use" and block.name:
                arguments = mapping(plain(block.input))
                call = Call.of(block.name, arguments)
                call.record, call.questions = record, questions_of(arguments)
                group.calls.append(call)
                if self.exchange.trust_of_call(call.call, arguments) is Trust.UNTRUSTED:
                    group.trust = Trust.UNTRUSTED
                if block.id:
                    self.calls[block.id] = call
                if block.name == "ExitPlanMode" and isinstance(arguments.get("plan"), str):
                    group.texts.append(arguments["plan"])

    def pull_request(self, record: Record) -> Items:
        """Yield each of the session's pull requests once, as soon as no message is open."""
        if record.prUrl and record.prUrl not in self.carry.setdefault("linked", []):
            self.carry["linked"].append(record.prUrl)
            self.links.append(msgspec.structs.replace(record, uuid=f"pull request {record.prUrl}"))
        if _MAIN_THREAD not in self.open:
            yield from self.say_links()

    def say_links(self) -> Items:
        links, self.links = self.links, []
        for link in links:
            yield from self.say(link, Speaker.SYSTEM, f"Pull request: {link.prUrl}", Flag.META)

    def progress(self, offset: int, record: Record) -> Items:
        """Yield the sub-agent's message in a progress record.

        Newer versions of the host write these messages to a separate file.
        """
        progress = mapping(plain(record.data)) if self.inline_agents else {}
        agent = string(progress, "agentId")
        if progress.get("type") != "agent_progress" or not agent:
            return
        inner = decode(RECORD, msgspec.json.encode(progress.get("message")))
        if inner is None or not inner.uuid:
            return
        record_of_agent = msgspec.structs.replace(
            record,
            type=inner.type,
            uuid=inner.uuid,
            agentId=agent,
            isSidechain=True,
            timestamp=inner.timestamp,
            message=inner.message,
        )
        yield from (
            self.assistant(offset, record_of_agent)
            if inner.type == "assistant"
            else self.user(record_of_agent)
        )

    # Turns and sessions

    def close_sides(self) -> Items:
        for side in [side for side in self.open if side != _MAIN_THREAD]:
            yield from self.close(side)

    def close_all(self) -> Items:
        yield from self.close_sides()
        yield from self.close(_MAIN_THREAD)

    def close(self, side: str) -> Items:
        group = self.open.pop(side, None)
        if group is None:
            return
        self.count(group)
        cleaned = self.exchange.clean(
            "\n\n".join(part.strip() for part in group.texts if part.strip())
        )
        text = cleaned.text
        calls = tuple(pending.call for pending in group.calls)
        if text or calls:
            trust, flags = self.exchange.judge(text) if text else (group.trust, Flag.NONE)
            trust = trust if group.trust is Trust.TRUSTED else group.trust
            flags |= cleaned.flags
            yield from self.say(group.record, Speaker.AGENT, text, flags, calls=calls, trust=trust)
        if side == _MAIN_THREAD:
            yield from self.say_links()

    def typed(self, text: str, *, ahead: bool = False) -> tuple[str, Flag]:
        """Return the text that the user typed in a prompt, and its flags.

        Text by others is recorded as external. A command without arguments that the user typed
        ``ahead``, while the agent worked, gives no text, because it has its own record.
        """
        cleaned = self.exchange.clean(text)
        words, flags, foreign_text = typed(cleaned.text)
        if ahead and (command := _QUEUED_COMMAND.match(words)):
            is_bare = command[0] == words
            words, flags = ("", Flag.META) if is_bare else (words, flags | Flag.COMMAND)
        if foreign_text:
            self.exchange.record_outside(foreign_text)
        return words, flags | cleaned.flags

    def say(
        self,
        record: Record,
        speaker: Speaker,
        text: str,
        flags: Flag,
        *,
        calls: tuple[ToolCall, ...] = (),
        trust: Trust = Trust.TRUSTED,
        author: str | None = None,
    ) -> Items:
        if not self.carry.get("begun") and (speaker is Speaker.OWNER or flags & Flag.SUMMARY):
            self.carry["begun"] = speaker is Speaker.OWNER
            self.first.append((record, speaker, text, flags, trust))
            self.facts_of(record, self.ids_of(record)[1])
            return
        yield from self.say_first(record.sessionId)
        cleaned = self.exchange.clean(text)
        if not (cleaned.text or calls):
            return
        self.carry["begun"] = True
        session = self.session_of(record)
        if session != self.yielded:
            self.yielded = session
            yield session
        if record.isSidechain and session.kind is SessionKind.MAIN:
            flags |= Flag.SIDECHAIN
        yield Turn(
            id=record.uuid or f"{record.timestamp}",
            speaker=speaker,
            text=cleaned.text,
            time=parse_time(record.timestamp),
            tool_calls=calls,
            flags=flags | cleaned.flags,
            trust=trust,
            author=author,
            unique=bool(_UUID.fullmatch(record.uuid or "")),
        )

    def say_first(self, session_id: str | None) -> Items:
        """Yield the first prompts with the id of the current session.

        After the user clears a session, these records still have the old id.
        """
        prompts, self.first = self.first, []
        self.carry["begun"] = bool(prompts) or self.carry.get("begun", False)
        for first, speaker, text, flags, trust in prompts:
            record = msgspec.structs.replace(first, sessionId=session_id or first.sessionId)
            yield from self.say(record, speaker, text, flags, trust=trust)

    def finish(self) -> Items:
        """Yield the messages and queued prompts that remain at the end of the file.

        The next read starts at the first incomplete message.
        """
        earliest = min(self.open.values(), key=lambda group: group.offset, default=None)
        for side in list(self.open):
            yield from self.close(side)
        spoken = self.carry["spoken"]
        for time, text in self.carry["queue"]:
            yield from self.say_queued(Record(), time, text)
        yield from self.say_first(
            self.source.path.stem if _UUID.fullmatch(self.source.path.stem) else None
        )
        for session in self.by_id.values():
            finished = self.finished(session)
            if finished not in (session, self.yielded):
                yield finished
        if earliest:
            self.source.hold(earliest.offset)
        carry = msgspec.json.decode(earliest.before) if earliest else self.carry
        carry["spoken"] += [
            prompt for prompt in self.carry["spoken"] if prompt not in (*spoken, *carry["spoken"])
        ]
        self.source.carry = {
            **carry,
            "exchange": self.exchange.carried(earliest.mark if earliest else None),
        }


def _with_suffix(record: Record, suffix: str) -> Record:
    return msgspec.structs.replace(record, uuid=f"{record.uuid} {suffix}")


# -- Adapter -------------------------------------------------------------------


def is_qwen(head: Head) -> bool:
    """Return True for a Qwen Code chat, whose similar records only nacre-extras can read."""
    return any(
        "sessionId" in record
        and ("systemPayload" in record or "parts" in mapping(record, "message"))
        for record in head.objects
    )


def _sniff(head: Head) -> bool:
    if head.path.suffix == ".json":
        return '"loglines"' in head.text[:2000]
    return not is_qwen(head) and any(
        (record.get("type") == "summary" and "leafUuid" in record)
        or (record.get("type") == "file-history-snapshot" and "snapshot" in record)
        or (
            "sessionId" in record
            and not str(record["sessionId"]).startswith("session-")  # iFlow
            and ("uuid" in record or record.get("type") in (*IGNORED, "queue-operation", "pr-link"))
        )
        for record in head.objects
    )


def _roots(places: Places) -> Sequence[Root]:
    configured = places.environ.get("CLAUDE_CONFIG_DIR")
    folders = [places.home / ".claude", places.home / ".config" / "claude"]
    if configured:
        folders = [places.home.joinpath(part) for part in configured.split(",") if part]
    return [Root(folder / "projects", ("**/*.jsonl",)) for folder in folders]


_OTHER_FIELDS = (
    "agentName,apiErrorStatus,apiRefusalCategory,apiRefusalExplanation,atis,attributionAgent,"
    "attributionMcpServer,attributionMcpTool,attributionPlugin,attributionSkill,"
    "bridgeSessionId,cause,classifierMetaLines,compactMetadata,direction,durationMs,effort,"
    "entrypoint,error,errorDetails,fallbackModel,files,frameUrl,hasOutput,"
    "hookAdditionalContext,hookCount,hookErrors,hookInfos,imagePasteIds,interruptedByShutdown,"
    "interruptedMessageId,isAbortedMidStream,isSnapshotUpdate,key,lastPrompt,lastSequenceNum,"
    "level,logicalParentUuid,maxRetries,mcpMeta,messageCount,messageId,microcompactMetadata,"
    "mode,originalModel,ownerAccountUuid,ownerOrganizationUuid,parentToolUseID,parentUuid,path,"
    "pendingBackgroundAgentCount,permissionMode,prNumber,prRepository,preventedContinuation,"
    "promptId,refusedUserMessageUuid,relocatedCwd,requestId,result,retractedMessageUuids,"
    "retryAttempt,retryInMs,scope,sessionKind,session_id,slug,snapshot,source,sourceToolUseID,"
    "stopReason,subtype,supersedesUuids,thinkingMetadata,title,todos,toolDenialKind,"
    "toolEndsTurn,toolUseID,trigger,userType,worktreeSession"
)
"""Known fields that are not part of the conversation."""


ADAPTER = Adapter(
    tool=TOOL,
    label="Claude Code",
    roots=_roots,
    sniff=_sniff,
    parse=Reader,
    resume=("claude", "--resume", "{id}"),
    versions="2.0.64–2.1.330",
    reads="branch; version; sub-agents; summaries; interruptions; pull requests",
    leaves_out="progress; file history",
    fields=frozenset({*Record.__struct_encode_fields__, *_OTHER_FIELDS.split(",")}),
)
