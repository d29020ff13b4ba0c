"""GitHub Copilot: VS Code chats in files and exports, and CLI sessions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from nacre.base.ids import turn_hash
from nacre.base.plain import Values, mapping, objects, string, total
from nacre.base.text import answered_by
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Places,
    Root,
    Source,
    beside,
    documents,
    keys_of,
    parse_time,
)
from nacre.readers.conversation import outcome, tokens_of
from nacre.readers.messages import Chat, Message, say
from nacre.readers.trust import (
    Conversation,
    folder_of,
    names_another,
    user_folders,
)
from nacre.values.session import Flag, Session, Speaker, Tokens

TOOL = "copilot-chat"


_QUIET = tuple(
    "thinking prepareTool codeblockUri undoStop progress mcpServers confirmation warning command "
    "treeData elicitation multiDiff questionCarousel hook workspaceEdit pullRequest extensions "
    "textEdit notebookEdit agentDetection usedContext contentReference codeCitation move "
    "clearTo".split()
)
"""Prefixes of the kinds of response parts that contain no text."""
_CALLS = ("toolInvocation", "toolInvocationSerialized")
_END = "end"
_UNIQUE_LENGTH = 36
_WORDS = frozenset({"", "markdownContent", "markdownVuln"})


class _Reader:
    def __init__(self, source: Source, values: Values, cwd: str | None, label: str | None) -> None:
        self.source = source
        self.requests = objects(values, "requests")
        first = self.requests[0] if self.requests else {}
        # An exported session has no id, but its first request has the same id as in the original.
        native_id = string(values, "sessionId") or turn_hash(
            "session", str(first.get("requestId") or _value(first.get("message"), "text")), 0
        )
        times = (request.get("timestamp") for request in self.requests)
        started = parse_time(values.get("creationDate") or next(filter(None, times), None))
        folders = objects(mapping(values, "repoData"), "workspaceFolders")
        recorded = (
            string(folders[0], "uri", "path")
            if folders
            else string(values, "workingDirectory", "workspaceFolder")
        )
        source.carry.clear()
        self.talk = Conversation(
            source,
            Session(
                TOOL,
                native_id,
                title=string(values, "customTitle", "computedTitle"),
                cwd=cwd or folder_of(recorded),
                label=label,
                started=started,
            ),
        )

    def __iter__(self) -> Items:
        for request in self.requests:
            yield from self.request(request)
        yield from self.talk.end()

    def request(self, request: Values) -> Items:
        model = string(request, "modelId") or ""
        provider = model.partition("/")[0] if "/" in model else None
        self.talk.learn(
            model=(answered_by(model, provider) or "").removeprefix("copilot/"),
            tool_version=string(mapping(request, "agent"), "extensionVersion"),
        )
        time = parse_time(request.get("timestamp")) or self.talk.session.started
        own = string(request, "requestId")
        claims = {
            **request,
            "isSystemInitiated": request.get("isSystemInitiated") or request.get("confirmation"),
        }
        flags = Flag.META if names_another(claims) else Flag.NONE
        prompt = Message(
            Speaker.OWNER, time, own, [claims], flags, [_value(request.get("message"), "text")]
        )
        yield from say(self.talk, prompt, 0)
        yield from self.answer(request, own, time)

    def answer(self, request: Values, own: str | None, time: Any) -> Items:
        done = parse_time(mapping(request, "modelState").get("completedAt")) or time
        response_id = string(request, "responseId") or (f"{own}-answer" if own else None)
        metadata = mapping(request, "result", "metadata")
        rounds = [
            call
            for call_round in objects(metadata, "toolCallRounds")
            for call in objects(call_round, "toolCalls")
        ]
        calls_by_id = {str(call.get("id")): call for call in rounds}
        results = mapping(metadata, "toolCallResults")
        part_number = 0
        words = ""
        for part in [*objects(request, "response"), {"kind": _END}]:
            kind = part.get("kind")
            if kind not in (_END, *_CALLS):
                words += self.words(part)
                continue
            if words.strip() or (self.talk.opened is None and kind != _END):
                identity = response_id or self.talk.new_id(Speaker.AGENT, str(time), "answer")
                name = f"{identity}-{part_number}" if part_number and response_id else identity
                is_unique = len(response_id or "") >= _UNIQUE_LENGTH
                yield from self.talk.open(name, done, unique=is_unique)
                self.talk.add_text(words)
                part_number, words = part_number + 1, ""
            if kind != _END:
                self.call(part, calls_by_id, results)
        yield from self.talk.close()
        summary = string(mapping(metadata, "summary"), "text") or ""
        yield from self.talk.write(Speaker.SYSTEM, summary, done, flags=Flag.SUMMARY)

    def words(self, part: Values) -> str:
        kind = str(part.get("kind") or "")
        if kind in _WORDS:
            return _value(part.get("content", part.get("value")))
        if kind == "inlineReference":
            return f"`{_reference(part)}`"
        if not kind.startswith(_QUIET):
            self.source.unknown(f"response {kind}")
        return ""

    def call(self, part: Values, calls_by_id: Values, results: Values) -> None:
        identity = str(part.get("toolCallId") or "")
        request = mapping(calls_by_id, identity)
        specific = mapping(part, "toolSpecificData")
        line = mapping(specific, "commandLine")
        command = string(line, "userEdited", "toolEdited", "original") or string(
            specific, "command"
        )
        inputs = (
            {"command": command} if command else None,
            request.get("arguments"),
            specific.get("rawInput") or mapping(part, "resultDetails").get("input"),
            _value(part.get("pastTenseMessage")) or _value(part.get("invocationMessage")),
        )
        arguments = next(value for value in inputs if isinstance(value, str | dict))
        name = string(part, "toolId") or string(request, "name") or "tool"
        key = self.talk.add_call(identity, name, arguments)
        output = _output(mapping(results, identity).get("content")) or _output(
            mapping(part, "resultDetails").get("output")
        )
        if self.talk.opened and self.talk.calls[key].outside and not output:
            self.talk.exchange.record_unseen()
        if result := _outcome(part, specific, output):
            self.talk.result(key, result, output)


def _outcome(part: Values, specific: Values, output: str) -> str | None:
    confirmed = part.get("isConfirmed")
    if confirmed is False or (isinstance(confirmed, Mapping) and confirmed.get("type") == 0):
        return "rejected"
    code = mapping(specific, "terminalCommandState").get("exitCode")
    if isinstance(code, int):
        return outcome(exit_code=code)
    failed = mapping(part, "resultDetails").get("isError") is True
    return outcome(output, is_error=failed) if part.get("isComplete", True) else None


def _value(value: Any, key: str = "value") -> str:
    return value if isinstance(value, str) else string(value, key) or ""


def _reference(part: Values) -> str:
    place = mapping(part, "inlineReference")
    uri = mapping(place, "location", "uri") or mapping(place, "uri") or place
    path = string(uri, "fsPath", "path") or ""
    return (
        string(part, "name") or string(place, "name") or path.replace("\\", "/").rsplit("/", 1)[-1]
    )


def _output(content: Any, depth: int = 0) -> str:
    if isinstance(content, str) or depth > 12:
        return content if isinstance(content, str) else ""
    if isinstance(content, Mapping):
        inner = (
            content[key]
            for key in ("value", "text", "content", "children", "node")
            if key in content
        )
        return "".join(_output(item, depth + 1) for item in inner)
    return (
        "\n".join(filter(None, (_output(item, depth + 1) for item in content)))
        if isinstance(content, list)
        else ""
    )


# -- VS Code Copilot Chat: session documents (until 1.108), change logs (since then), and exports
# The first line of a change log has the whole object. Each later line sets, extends or deletes the
# value at a path. If the first line is missing, unknown values are empty.


_INITIAL, _SET, _PUSH, _DELETE = range(4)
_MAX_PATH_STEPS = 64
_MAX_LOST = 10_000


def parse(source: Source) -> Items:
    """Parse a VS Code chat session."""
    values: Any = {}
    for number, entry in enumerate(documents(source)):
        if "kind" in entry and "requests" not in entry:
            if number == 0 and entry["kind"] != _INITIAL:
                values = _Partial(sessionId=source.path.stem)
            values = _replay(source, values, entry)
        elif number == 0:
            values = entry
        else:
            source.unknown("line without kind")
    chats = source.path.parent
    folder, label = workspace_of(chats) if chats.name == "chatSessions" else (None, None)
    yield from _Reader(source, mapping(values), folder, label)


class _Partial(dict[str, Any]):
    """A session whose log lacks its first line."""


def _replay(source: Source, values: Any, entry: Values) -> Any:
    kind, path, value = entry.get("kind"), entry.get("k"), entry.get("v")
    if kind == _INITIAL:
        return value
    if kind not in (_SET, _PUSH, _DELETE):
        source.unknown(f"change of kind {kind}")
        return values
    if not isinstance(path, list) or not 0 < len(path) <= _MAX_PATH_STEPS:
        source.corrupt()
        return values
    try:
        if isinstance(values, _Partial):
            _complete(values, path)
        _change(values, path, kind, value, entry.get("i"))
    except (KeyError, IndexError, TypeError, ValueError):
        source.corrupt()
    return values


def _change(values: Any, path: Sequence[Any], kind: int, value: Any, length: Any) -> None:
    place = values
    for step in path[:-1]:
        place = place[_step(place, step)]
    last = _step(place, path[-1])
    if kind == _DELETE:
        del place[last]
    elif kind == _SET and isinstance(place, list) and last == len(place):
        place.append(value)
    elif kind == _SET:
        place[last] = value
    else:
        if isinstance(place, dict):
            place.setdefault(last, [])
        listed = place[last]
        if not isinstance(listed, list) or not isinstance(value or [], list):
            raise TypeError("only an array can be pushed, and only to an array")
        if isinstance(length, int):
            del listed[max(0, length) :]
        listed.extend(value or [])


def _complete(values: Any, path: Sequence[Any]) -> None:
    place = values
    for step, following in pairwise([*path, None]):
        if isinstance(place, list) and step < _MAX_LOST:
            count = step + (following is not None) - len(place)
            place[:0] = [{} for _ in range(count)]
        if following is None:
            return
        if isinstance(place, dict):
            place.setdefault(str(step), [] if isinstance(following, int) else {})
        place = place[_step(place, step)]


def _step(place: Any, step: Any) -> Any:
    if isinstance(place, list):
        if not isinstance(step, int) or step < 0:
            raise TypeError("an array index must be a non-negative integer")
        return step
    return str(step)


def _sniff(head: Head) -> bool:
    keys = keys_of(head)
    if "kind" in keys and not keys.isdisjoint("kv"):
        return '"requests"' in head.text and all(
            entry.get("kind") in range(4) and isinstance(entry.get("k", []), list)
            for entry in head.objects
        )
    marker_keys = {"responderUsername", "initialLocation"} & keys
    return len(marker_keys) == 2 or ("requests" in keys and bool(marker_keys))


def _roots(places: Places) -> Sequence[Root]:
    patterns = ("*/chatSessions/*.json", "*/chatSessions/*.jsonl")
    empty = (
        "emptyWindowChatSessions/*.json",
        "emptyWindowChatSessions/*.jsonl",
        "transferredChatSessions/*.json*",
    )
    return [
        root
        for user in user_folders(places)
        for root in (Root(user / "workspaceStorage", patterns), Root(user / "globalStorage", empty))
    ]


def workspace_of(path: Path) -> tuple[str | None, str | None]:
    """Return the folder of a workspace, and its name if it has several folders."""
    facts = beside(path.with_name("workspace.json"))
    workspace = folder_of(string(facts, "workspace", "configuration")) or ""
    label = workspace.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".code-workspace")
    return folder_of(string(facts, "folder")), label or None


ADAPTER = Adapter(
    tool=TOOL,
    label="VS Code Copilot Chat",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    whole=True,
    versions="3, exports; change logs*",
    reads="version; summaries",
    leaves_out="tokens; drafts; rendered prompts; edits",
)


# -- GitHub Copilot CLI: ``~/.copilot/session-state/<id>/events.jsonl``, one event per line


TOOL_CLI = "copilot-cli"

Event = Values

_QUIET_CLI = re.compile(
    r"(?:hook|permission|mcp|subagent|custom_agent|user_input|elicitation|exit_plan_mode|commands|system|skill)\."
    r"|assistant\.(?:turn_|intent|reasoning|usage|idle|message_|streaming)"
    r"|tool\.(?:user_requested|execution_p)"
    r"|session\.(?:info|warning|truncation|usage|idle|compaction_start|snapshot_rewind|handoff|mode"
    r"|plan|permissions|context|tools|skills|custom|extensions|background|remote|task|todos|workspace|schedule|import)"
)
_EXIT = re.compile(r"\bexit(?:ed with)?(?: exit)? code:?\s*(\d{1,9})\b", re.IGNORECASE)
_FACTS = {
    "session.model_change": ("model", "newModel"),
    "session.auto_mode_resolved": ("model", "chosenModel"),
    "session.title_changed": ("title", "title"),
}


class _CliReader(Chat):
    def __init__(self, source: Source) -> None:
        name = source.path.parent.name if source.path.name == "events.jsonl" else source.path.stem
        super().__init__(source, Session(TOOL_CLI, name))

    def take(self, offset: int, event: Values) -> Items:
        kind, data = str(event.get("type") or "no type"), mapping(event, "data")
        if kind == "user.message":
            yield from self.user(event, data)
        elif kind == "assistant.message":
            yield from self.agent(offset, event, data)
        elif kind == "tool.execution_start":
            yield from self.call(offset, event, data)
        elif kind == "tool.execution_complete":
            self.result(data)
        elif kind == "session.compaction_complete":
            text = string(data, "summaryContent", "summary") or ""
            yield from self.say(event, Speaker.SYSTEM, text, Flag.SUMMARY)
        elif kind == "abort":
            yield from self.talk.interrupted(str(event.get("id")), _time(event))
        elif kind == "session.error":
            text = string(data, "message") or kind
            yield from self.talk.failed(str(event.get("id")), text, _time(event))
        elif kind == "session.shutdown":
            self.count(data)
        elif not self.learn(kind, data) and not _QUIET_CLI.match(kind):
            self.source.unknown(kind)

    # The session

    def learn(self, kind: str, data: Values) -> bool:
        if kind in ("session.start", "session.resume"):
            self.begin(data)
        elif fact := _FACTS.get(kind):
            self.talk.learn(**{fact[0]: string(data, fact[1])})
        else:
            return False
        return True

    def begin(self, data: Values) -> None:
        session, context = self.talk.session, mapping(data, "context")
        self.talk.learn(
            native_id=string(data, "sessionId"),
            cwd=session.cwd or string(context, "cwd", "gitRoot"),
            branch=session.branch or string(context, "branch"),
            repository=session.repository or _repository(context),
            model=string(data, "selectedModel"),
            tool_version=string(data, "copilotVersion"),
            started=session.started or parse_time(data.get("startTime")),
        )

    def count(self, data: Values) -> None:
        spent = _tokens_spent(data)
        written = self.source.carry.pop("written", 0)
        if spent.total:
            self.talk.spend(spent - Tokens(output=written))  # already counted by message

    # Messages and calls

    def user(self, event: Event, data: Values) -> Items:
        is_child = any(map(data.get, ("parentAgentTaskId", "parentToolCallId", "agentId")))
        claims = {
            **data,
            "messageSource": data.get("source"),
            **({"isSynthetic": True} if is_child else {}),
        }
        flags = Flag.META if names_another(event, claims) else Flag.NONE
        yield from self.say(
            event, Speaker.OWNER, string(data, "content") or "", flags, event, claims
        )

    def say(self, event: Event, speaker: Speaker, text: str, flags: Flag, *claims: Event) -> Items:
        message = self.message(speaker, event, text)
        message.claims, message.flags = list(claims), flags
        yield from say(self.talk, message, 0)

    def message(self, speaker: Speaker, event: Event, text: str | None = None) -> Message:
        return Message(speaker, _time(event), string(event, "id"), texts=[text])

    def agent(self, offset: int, event: Event, data: Values) -> Items:
        message = self.message(Speaker.AGENT, event, string(data, "content"))
        calls, child = objects(data, "toolRequests"), data.get("parentToolCallId")
        if message.texts[0] or any(
            str(call.get("toolCallId")) not in self.talk.calls for call in calls
        ):
            for call in calls:
                message.call(call.get("toolCallId"), call.get("name"), call.get("arguments"))
        part, is_answer = string(data, "messageId"), message.texts[0] or message.calls
        is_same = bool(data.get("chunkIndex")) and part == self.source.carry.get("message")
        joins = is_same and part is not None and self.talk.opened is not None
        message.model = None if child or not is_answer else string(data, "model")
        message.tokens = Tokens() if is_same else Tokens(output=total(data, "outputTokens")).bounded
        yield from say(self.talk, message, offset, joins=joins)
        if is_answer and not joins and self.talk.opened:
            self.source.carry["message"] = part
            self.talk.opened.flags |= Flag.SIDECHAIN if child else Flag.NONE
        if written := message.tokens.output:
            self.source.carry["written"] = self.source.carry.get("written", 0) + written

    def call(self, offset: int, event: Event, data: Values) -> Items:
        if data.get("parentToolCallId") or str(data.get("toolCallId")) in self.talk.calls:
            return
        message = self.message(Speaker.AGENT, event)
        message.call(data.get("toolCallId"), data.get("toolName"), data.get("arguments"))
        yield from say(self.talk, message, offset, joins=True)

    def result(self, data: Values) -> None:
        output = string(mapping(data, "result"), "content", "detailedContent") or ""
        error = mapping(data, "error")
        failed = data.get("success") is False
        code = _EXIT.search(output[-2_000:])
        result = outcome(
            output or string(error, "message") or "",
            exit_code=code and code[1],
            is_error=failed,
        )
        if failed and str(error.get("code")) in ("denied", "rejected"):
            result = "rejected"
        self.talk.result(
            str(data.get("toolCallId")),
            result,
            f"{output}\n{string(error, 'message') or ''}",
        )


def _time(event: Event) -> datetime | None:
    return parse_time(event.get("timestamp"))


def _tokens_spent(data: Values) -> Tokens:
    models = [mapping(value, "usage") for value in mapping(data, "modelMetrics").values()]
    tokens = Tokens()
    for usage in models:
        read, cached = total(usage, "inputTokens"), total(usage, "cacheReadTokens")
        tokens += Tokens.with_cached(read, cached, total(usage, "outputTokens"))
    if tokens.total:
        return tokens.bounded
    kinds = mapping(data, "tokenDetails").items()
    return tokens_of({kind: mapping(value).get("tokenCount") for kind, value in kinds})


def _repository(place: Values) -> str | None:
    name = string(place, "repository")
    if not name or "://" in name:
        return name
    host = string(place, "repositoryHost") or (
        "github.com" if place.get("hostType") == "github" else None
    )
    return f"https://{host}/{name}" if host else None


def _sniff_cli(head: Head) -> bool:
    first = head.first
    if first.get("type") == "session.start":
        return "sessionId" in mapping(first, "data")
    kind = first.get("type")
    return (
        isinstance(kind, str)
        and "." in kind
        and {"data", "id", "timestamp", "parentId"} <= first.keys()
    )


def _roots_cli(places: Places) -> Sequence[Root]:
    folders = [places.folder("COPILOT_HOME", ".copilot")]
    folders += [
        Path(base).expanduser() / ".copilot"
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")
        if (base := places.environ.get(name))
    ]
    return [
        Root(folder, ("session-state/*/events.jsonl", "session-state/*.jsonl"))
        for folder in folders
    ]


ADAPTER_CLI = Adapter(
    tool=TOOL_CLI,
    label="GitHub Copilot CLI",
    roots=_roots_cli,
    sniff=_sniff_cli,
    parse=_CliReader,
    resume=("copilot", "--resume={id}"),
    versions="0.0.420, 1.0.11, 1.0.77",
    reads="branch; summaries; interruptions",
    leaves_out="hooks; system messages",
    fields=frozenset({"type", "data", "id", "timestamp", "parentId", "ephemeral", "agentId"}),
)
