"""Cline and its forks Roo Code and Kilo Code: tasks stored by editors and Cline's own programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from nacre.base.plain import Values, mapping, objects_in, string, total
from nacre.base.text import answered_by, one_line
from nacre.readers.adapter import (
    MAX_WHOLE_BYTES,
    Adapter,
    Head,
    Items,
    Places,
    Root,
    Source,
    beside,
    content_blocks,
    document,
    keys_of,
    parse_time,
    plain,
    shape_of,
    torn,
)
from nacre.readers.conversation import ending, outcome, tokens_of
from nacre.readers.trust import Call, Conversation, user_folders
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, Trust, Turn

CLINE, ROO, KILO = "cline", "roo-code", "kilo-code"

FOLDERS = {
    CLINE: "saoudrizwan.claude-dev",
    ROO: "rooveterinaryinc.roo-cline",
    KILO: "kilocode.kilo-code",
}
MESSAGES = ("ui_messages.json", "claude_messages.json")
HISTORY = "api_conversation_history.json"

_DIRECTORY = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\)")


def roots(places: Places, tool: str) -> list[Root]:
    """Return the task folders of an extension in each editor, and of Cline's own programs."""
    patterns = tuple(f"*/{name}" for name in (*MESSAGES, HISTORY))
    folders = [
        Root(user / "globalStorage" / FOLDERS[tool] / "tasks", patterns)
        for user in user_folders(places)
    ]
    return folders + (_own_roots(places, "tasks", patterns) if tool == CLINE else [])


def _own_roots(places: Places, name: str, patterns: tuple[str, ...]) -> list[Root]:
    variable = "CLINE_DATA_DIR" if places.environ.get("CLINE_DATA_DIR") else "CLINE_DIR"
    home = places.folder(variable, ".cline")
    return [Root(home / "data" / name, patterns), Root(home / name, patterns)]


def tool_of(path: Path) -> str:
    """Return the tool that wrote a task: Cline, Roo Code or Kilo Code."""
    folders = {part.lower() for part in path.parts}
    if FOLDERS[KILO] in folders:
        return KILO
    is_roo = FOLDERS[ROO] in folders or (path.parent / "history_item.json").is_file()
    return ROO if is_roo else CLINE


def session_of(path: Path) -> Session:
    """Return the session of a task, with the working folder from the tool's task list."""
    native_id = path.parent.name if path.name in (*MESSAGES, HISTORY) else path.stem
    item = mapping(beside(path.parent / "history_item.json"))
    if not item and len(path.parents) > 2:
        listed = objects_in(beside(path.parents[2] / "state" / "taskHistory.json"))
        item = next((entry for entry in listed if entry.get("id") == native_id), {})
    started = parse_time(native_id) if len(native_id) == 13 and native_id.isdigit() else None
    return Session(
        tool_of(path),
        native_id,
        started=started,
        cwd=string(item, "workspace", "cwdOnTaskInitialization"),
        model=string(item, "modelId"),
    )


def folder_in(text: str) -> str | None:
    """Return the working folder named in the context that the tool adds for the model, if any."""
    match = _DIRECTORY.search(text)
    return match[1] if match else None


def model_of(message: Values) -> str | None:
    """Return a message's model, with the provider if it may be the user's own server.

    Cline and Roo Code call any server with OpenAI's API ``openai``.
    """
    info = mapping(message, "modelInfo")
    return _model(string(info, "modelId", "id"), string(info, "providerId", "provider"))


def _model(name: str | None, provider: str | None) -> str | None:
    return answered_by(name, "openai-compatible" if provider == "openai" else provider)


# -- Messages shown to the user: ``tasks/<id>/ui_messages.json`` ---------------
# ``api_conversation_history.json`` contains the same task and is read only without this file.


Message = Values

_OUTPUT_SEPARATOR = "\nOutput:\n"
_OWNER_KINDS = frozenset({"task", "user_feedback"})
_AGENT_KINDS = frozenset(
    {"text", "completion_result", "followup", "plan_mode_respond", "act_mode_respond"}
)
_QUESTION_KINDS = frozenset({"followup", "plan_mode_respond", "act_mode_respond"})
_ANSWER_FIELDS = ("response", "question", "text")
_CALL_KINDS = frozenset(
    "tool command use_mcp_server browser_action_launch browser_action use_subagents subagent "
    "new_task".split()
)
_CALLS_WITH_RESULT = frozenset({"command", "use_mcp_server"})
"""Kinds of calls whose results follow in separate messages."""

_OUTSIDE_RESULTS = frozenset({"mcp_server_response", "browser_action_result"})
_SUMMARIES = frozenset({"condense_context", "summarize_task", "condense"})
_QUIET = tuple(
    "reasoning api_req_ deleted_api_ task_progress checkpoint_ error diff_error shell_integration_ "
    "mcp_server_request mcp_notif load_mcp_ info hook_ clineignore_ rooignore_ user_feedback_ "
    "subtask_result codebase_search user_edit_ command_permission generate_expl image "
    "conditional_ subagent_usage resume_ mistake_limit report_bug auto_approval finish_task "
    "sliding_window".split()
)
"""Prefixes of the kinds of messages without text."""


class _TaskReader:
    def __init__(self, source: Source, messages: Sequence[Message], session: Session) -> None:
        self.source = source
        self.messages = messages
        self.talk = Conversation(source, session)
        self.chosen: dict[str, str] = {}
        """The options of the agent's last question, each with an answer that repeats the question.
        """


class _Reader(_TaskReader):
    def __init__(self, source: Source, messages: Sequence[Message]) -> None:
        super().__init__(source, messages, session_of(source.path))
        self.name_counts = Counter[str]()
        self.last_call = ""
        self.is_unseen = False

    def __iter__(self) -> Items:
        keys = [(str(message.get("ts")), _kind(message)) for message in self.messages]
        newest = {key: number for number, key in enumerate(keys)}
        for number, message in enumerate(self.messages):
            if message.get("partial") and newest[keys[number]] > number:
                continue
            yield from self.take(
                _kind(message) if number or _kind(message) != "text" else "task", message
            )
        yield from self.talk.end()

    def take(self, kind: str, message: Message) -> Items:
        text = string(message, "text") or ""
        self.learn(kind, message, text)
        if kind in _OWNER_KINDS:
            answer, self.chosen = self.chosen.get(one_line(text), text), {}
            yield from self.say(message, Speaker.OWNER, answer, Flag.NONE)
        elif kind in _AGENT_KINDS:
            yield from self.answer(message, text)
        elif kind in _CALL_KINDS:
            yield from self.call(kind, message, text)
        elif kind in _OUTSIDE_RESULTS or kind == "command_output":
            self.talk.result(self.last_call, "ok", text)
            if kind in _OUTSIDE_RESULTS:
                self.talk.exchange.record_outside(text)
            if kind == "browser_action_result":
                self.miss()  # a page's text is only in its screenshot
        elif kind in _SUMMARIES:
            summary = string(mapping(message, "contextCondense"), "summary") or text
            yield from self.say(message, Speaker.SYSTEM, summary, Flag.SUMMARY)
        elif not kind.startswith(_QUIET):
            self.source.unknown(f"{message.get('type')} {kind}")

    def learn(self, kind: str, message: Message, text: str) -> None:
        self.talk.learn(model=model_of(message))
        if kind == "api_req_started":  # contains the folder and, after an answer, the token counts
            request = _object(text)
            self.talk.spend(tokens_of(request))
            if not self.talk.session.cwd:
                self.talk.learn(cwd=folder_in(string(request, "request") or ""))
        if not self.talk.session.started:
            self.talk.learn(started=parse_time(message.get("ts")))

    def say(self, message: Message, speaker: Speaker, text: str, flags: Flag) -> Items:
        identity, time = self.identity(message)
        yield from self.talk.write(speaker, text, time, message, identity=identity, flags=flags)
        if self.is_unseen:
            self.talk.exchange.record_unseen()

    def identity(self, message: Message) -> tuple[str, datetime | None]:
        name = f"{message.get('ts')}-{_kind(message)}"
        self.name_counts[name] += 1
        occurrence = self.name_counts[name]
        return name if occurrence == 1 else f"{name}-{occurrence}", parse_time(message.get("ts"))

    def answer(self, message: Message, text: str) -> Items:
        if _kind(message) in _QUESTION_KINDS:
            facts = _object(text)
            text = string(facts, *_ANSWER_FIELDS) or text
            self.chosen = as_answers(text, facts)
        if text.strip():
            yield from self.open(message)
            self.talk.add_text(text)

    def open(self, message: Message) -> Items:
        identity, time = self.identity(message)
        yield from self.talk.open(identity, time)

    def call(self, kind: str, message: Message, text: str) -> Items:
        if not text.strip():
            return
        command, _, output = (
            text.partition(_OUTPUT_SEPARATOR) if kind == "command" else (text, "", "")
        )
        call_facts = _object(text)
        name = string(call_facts, "toolName", "tool", "action") or (
            "execute_command" if kind == "command" else kind
        )
        server = string(call_facts, "serverName")
        name = f"mcp__{server}__{name}" if server else name
        if self.talk.opened is None:
            yield from self.open(message)
        call = self.add_call_once(
            f"{message.get('ts')}-{message.get('type')}-{kind}",
            name,
            _arguments(kind, call_facts, command),
        )
        if call and call.outside and kind not in _CALLS_WITH_RESULT:
            self.miss()
        result = string(call_facts, "content") or string(call_facts, "diff") or output
        if output or (message.get("type") == "say" and kind != "command"):
            self.talk.result(self.last_call, outcome(), result)

    def add_call_once(
        self, call_id: str, name: str, arguments: dict[str, Any] | str
    ) -> Call | None:
        calls = self.talk.calls
        previous = calls.get(self.last_call)
        call = calls[self.talk.add_call(call_id, name, arguments)] if self.talk.opened else None
        # A call that awaited approval is recorded again when it runs.
        if previous and call and previous is not call and previous.call == call.call:
            del calls[call_id]
            return previous
        self.last_call = call_id
        return call

    def miss(self) -> None:
        self.is_unseen = True
        self.talk.exchange.record_unseen()


def as_answers(question: str, facts: Values) -> dict[str, str]:
    """Return an answer for each option that repeats the question, as in "Which one? → Both"."""
    asking = one_line(question.strip().rpartition("\n")[2])
    asking = asking if asking.endswith(("?", "？", ":", "：")) else f"{asking}:"
    listed = facts.get("options") or facts.get("suggest") or facts.get("follow_up")
    listed = plain(listed) if isinstance(listed, str) else listed
    options = (
        entry if isinstance(entry, str) else string(entry, "answer", "text") or ""
        for entry in (listed if isinstance(listed, list) else ())
    )
    return {
        one_line(option): f"{asking} → {one_line(option)}" for option in options if option.strip()
    }


def _arguments(kind: str, call_facts: Values, text: str) -> dict[str, Any] | str:
    if kind == "command":
        return {"command": text.strip()}
    inner = call_facts.get("arguments")
    if isinstance(inner, str | dict):
        return inner
    keys = ("path", "regex", "query", "url", "uri", "command", "filePattern")
    return {key: call_facts[key] for key in keys if call_facts.get(key)} or text


def _kind(message: Message) -> str:
    return str(message.get(str(message.get("type"))) or "no kind")


def _object(text: str) -> Values:
    return mapping(plain(text)) if text.lstrip().startswith("{") else {}


# -- Model history: ``tasks/<id>/api_conversation_history.json`` ---------------
# Read only if the messages shown to the user are missing, because one task is one session. In user
# messages, tags enclose what the user typed. The tool wrote the rest.


_OWNER_WORDS = re.compile(
    r"\A\s*<(task|feedback|answer|user_message|user_input)\b[^>]*>(.*?)</\1>\s*(?:<file_content|\Z)",
    re.DOTALL,
)
_NOTICE = re.compile(r"<mode_notice>.*?</mode_notice>", re.DOTALL)
_DENIAL = re.compile(
    r"\A\s*The user (?:denied|provided|has provided)[^\n]{0,200}\n+<(?:feedback|user_message)>(.*?)</",
    re.DOTALL,
)
_HEADER = re.compile(r"\A\s*\[([\w-]+)(?: for [^\n]*)?\] Result:[ \t]*", re.DOTALL)
_DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_TOOL_TEXT = re.compile(
    r"\A\s*(?:# (?:TODO LIST|task_progress)|\[(?:TASK RESUMPTION|ERROR)|\(This is an automated)"
)
_CALL = re.compile(r"<([a-z]+(?:_[a-z]+)+)>\s*(<[a-z_]+>.*?)</\1>", re.DOTALL)
_ARGUMENT = re.compile(r"<([a-z_]+)>(.*?)</\1>", re.DOTALL)
_THINKING = re.compile(r"<thinking>.*?(?:</thinking>|\Z)", re.DOTALL)
_SPOKEN_CALLS = (
    "attempt_completion",
    "ask_followup_question",
    "plan_mode_respond",
    "act_mode_respond",
)


class _ModelHistoryReader(_TaskReader):
    answering = ""
    """The call whose result the message contains."""

    def __iter__(self) -> Items:
        for number, message in enumerate(self.messages):
            role, place = message.get("role"), string(message, "id") or str(number)
            if role == "user":
                yield from self.user(place, message)
            elif role == "assistant":
                yield from self.agent(place, message)
            else:
                self.source.unknown(f"role {role}")
        yield from self.talk.end()

    def user(self, place: str, message: Values) -> Items:
        is_output, self.answering = False, ""
        for part, block in enumerate(content_blocks(message)):
            kind = block.get("type")
            if kind == "tool_result":
                yield from self.result(f"{place}.{part}", message, block)
            elif kind == "text":
                text = str(block.get("text") or "")
                if not self.talk.session.cwd and (folder := folder_in(text)):
                    self.talk.learn(cwd=folder)
                text = _NOTICE.sub("", _DETAILS.sub("", text))
                is_output = yield from self.text(
                    f"{place}.{part}", message, text, is_output=is_output
                )
            elif kind not in ("image", "document"):
                self.source.unknown(f"block {kind}")

    def text(
        self, place: str, message: Values, text: str, *, is_output: bool
    ) -> Generator[Session | Turn, None, bool]:
        header = _HEADER.match(text)
        owner_words = _OWNER_WORDS.match(text)
        if header:
            pending = (
                key
                for key, call in self.talk.calls.items()
                if call.call.outcome is None and call.call.name == header[1]
            )
            self.answering = next(pending, "")
        if owner_words:
            # Tool output can contain the tags of user messages.
            answer, self.chosen = (
                self.chosen.get(one_line(owner_words[2].strip()), owner_words[2]),
                {},
            )
            yield from self.say(
                place, message, answer, Trust.UNTRUSTED if is_output else Trust.TRUSTED
            )
        elif header or is_output:
            output = text[header.end() :] if header else text
            if self.answering:
                self.end_call(self.answering, output.lstrip())
            else:
                self.talk.exchange.record_output(header[1] if header else "", "", output)
            yield from self.denied(place, message, output)
        elif text.strip() and not _TOOL_TEXT.match(text):
            self.talk.exchange.record(text)
        return is_output or bool(header)

    def denied(self, place: str, message: Values, text: str) -> Items:
        match = _DENIAL.match(text)
        if match:
            # Tool output can look the same.
            yield from self.say(place, message, match[1], Trust.UNTRUSTED)

    def result(self, place: str, message: Values, block: Values) -> Items:
        output = "\n".join(
            str(item.get("text") or "")
            for item in content_blocks(block)
            if item.get("type") == "text"
        )
        output = _DETAILS.sub("", output)
        self.end_call(str(block.get("tool_use_id")), output, is_error=block.get("is_error") is True)
        yield from self.denied(place, message, output)

    def end_call(self, call: str, output: str, *, is_error: bool = False) -> None:
        self.talk.result(call, ending(output, is_error=is_error), output)

    def say(self, place: str, message: Values, text: str, trust: Trust) -> Items:
        time = parse_time(message.get("ts")) or self.talk.session.started
        yield from self.talk.write(
            self.talk.prompter, text, time, message, identity=f"{place}-user", trust=trust
        )

    def agent(self, place: str, message: Values) -> Items:
        self.talk.learn(model=model_of(message))
        counts = mapping(message, "metrics")
        cached = total(counts, "cacheReadTokens")
        read, written = total(counts, "inputTokens"), total(counts, "outputTokens")
        self.talk.spend(Tokens.with_cached(read, cached, written))
        time = parse_time(message.get("ts")) or self.talk.session.started
        yield from self.talk.open(f"{place}-assistant", time)
        for block in content_blocks(message):
            if block.get("type") == "text":
                self.words(str(block.get("text") or ""))
            elif block.get("type") == "tool_use":
                self.call(str(block.get("id") or ""), str(block.get("name")), block.get("input"))
            elif block.get("type") not in ("thinking", "redacted_thinking", "reasoning"):
                self.source.unknown(f"block {block.get('type')}")

    def words(self, text: str) -> None:
        text = _THINKING.sub("", text)
        self.talk.add_text(_CALL.sub("", text))
        for call in _CALL.finditer(text):  # written by old versions of the tool
            self.call(
                "", call[1], {match[1]: match[2].strip() for match in _ARGUMENT.finditer(call[2])}
            )

    def call(self, identity: str, name: str, arguments: Any) -> None:
        if name in _SPOKEN_CALLS:
            words = string(arguments, "result", "question", "response") or ""
            self.talk.add_text(words)
            self.chosen = as_answers(words, mapping(arguments))
        else:
            self.talk.add_call(identity, name, arguments)


def parse(source: Source) -> Items:
    """Parse a task of Cline, Roo Code or Kilo Code."""
    messages = objects_in(document(source))
    if messages and "role" in messages[0]:
        names = map(source.path.with_name, MESSAGES)
        displayed = next(filter(Path.is_file, names), None)
        if displayed is None:
            yield from _ModelHistoryReader(source, messages, session_of(source.path))
            return
        value = beside(displayed, MAX_WHOLE_BYTES)
        if value is None:
            raise torn(displayed)
        messages = objects_in(value)
    yield from _Reader(source, messages)


def _sniff(head: Head) -> bool:
    is_array, keys = shape_of(head)
    if {"role", "content"} <= keys:
        marks = ("<task>", "<environment_details>")
        return is_array and (head.path.name == HISTORY or any(mark in head.text for mark in marks))
    return is_array and {"ts", "type"} <= keys and bool({"say", "ask"} & keys)


ADAPTER = Adapter(
    tool=CLINE,
    label="Cline",
    roots=partial(roots, tool=CLINE),
    sniff=_sniff,
    parse=parse,
    whole=True,
    versions="3*",
    reads="summaries",
    leaves_out="title; checkpoints; edits; environment details",
)


def _of_fork(tool: str, label: str) -> Adapter:
    return replace(
        ADAPTER,
        tool=tool,
        label=label,
        roots=partial(roots, tool=tool),
        sniff=lambda head: _sniff(head) and tool_of(head.path) == tool,
    )


ADAPTER_ROO = _of_fork(ROO, "Roo Code")
ADAPTER_KILO = _of_fork(KILO, "Kilo Code")


# -- Sessions since version 4: ``.cline/data/sessions/<id>/<id>.messages.json`` ----------------
# Sessions have the model history's format and a manifest ``<id>.json``. Sub-agents' messages are in
# the folder of the session that started them.


_SUFFIX = ".messages.json"


def parse_session(source: Source) -> Items:
    """Parse a session, skipping the messages that a fork copied from its original."""
    path, value = source.path, mapping(document(source))
    name, folder = path.name.removesuffix(_SUFFIX), path.parent.name
    manifest, outer = beside(_manifest_of(path)), beside(path.with_name(f"{folder}.json"))
    is_inner = manifest is None and outer is not None
    facts = mapping(outer if is_inner else manifest)
    metadata = mapping(facts, "metadata")
    forked = parse_time(mapping(metadata, "fork").get("forkedAt"))
    messages = [
        message
        for message in objects_in(value.get("messages"))
        if not (forked and (time := parse_time(message.get("ts"))) and time < forked)
    ]
    session = Session(
        CLINE,
        f"{folder}__{name}" if is_inner else name,
        title=None if is_inner else string(metadata, "title"),
        cwd=string(facts, "cwd", "workspace_root"),
        kind=SessionKind.SUBAGENT if is_inner else SessionKind.MAIN,
        parent=folder if is_inner else None,
        started=parse_time(string(facts, "started_at", "created_at")),
        model=_model(string(facts, "model"), string(facts, "provider")),
    )
    yield from _ModelHistoryReader(source, messages, session)


def _manifest_of(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix(_SUFFIX)}.json")


ADAPTER_SESSIONS = replace(
    ADAPTER,
    roots=partial(_own_roots, name="sessions", patterns=(f"*/*{_SUFFIX}",)),
    sniff=lambda head: head.path.name.endswith(_SUFFIX) and "messages" in keys_of(head),
    parse=parse_session,
    beside=lambda path: [_manifest_of(path)] if path.name.endswith(_SUFFIX) else [],
    resume=("cline", "--id", "{id}"),
    versions="4*",
    reads="sub-agents; forks",
    leaves_out="commands; summaries",
)
