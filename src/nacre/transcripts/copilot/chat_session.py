"""One chat session of VS Code Copilot: the object that its files, its old database and its exports hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nacre.platform.ids import turn_hash
from nacre.text.open_weights import answered_by, noted
from nacre.transcripts.adapter import Source
from nacre.transcripts.conversation import Conversation, OpenTurn
from nacre.transcripts.editors import folder_of
from nacre.transcripts.objects import parse_time
from nacre.transcripts.origins import names_another
from nacre.transcripts.tool_calls import outcome
from nacre.transcripts.whole_json import mapping, objects, string
from nacre.values.session import Flag, Session, Speaker, Turn

TOOL = "copilot-chat"

Said = Iterator[Session | Turn]
Values = Mapping[str, Any]

_QUIET = frozenset({
    "thinking", "prepareToolInvocation", "codeblockUri", "undoStop", "progressMessage", "progressTask",
    "progressTaskSerialized", "mcpServersStarting", "confirmation", "warning", "command", "treeData",
    "elicitation", "elicitationSerialized", "multiDiffData", "questionCarousel", "hook", "workspaceEdit",
    "pullRequest", "extensions", "textEdit", "textEditGroup", "notebookEdit", "notebookEditGroup", "agentDetection",
    "usedContext", "contentReference", "codeCitation", "move", "clearToPreviousToolInvocation",
})  # fmt: skip
_CALLS = ("toolInvocation", "toolInvocationSerialized")
_END = "end"
_WORDS = frozenset({"", "markdownContent", "markdownVuln"})


def parse_session_object(source: Source, values: Values, *, cwd: str | None = None, label: str | None = None) -> Said:
    """The session in an object with ``requests``, and its turns; nothing where nobody spoke.

    ``source`` counts what is unknown; its carry is not used. An export has no id: the session is named after its first
    request, whose id is that of the original's.
    """
    return _Reader(source, values, cwd, label).read()


class _Reader:
    def __init__(self, source: Source, values: Values, cwd: str | None, label: str | None) -> None:
        self.source = source
        self.requests = objects(values, "requests")
        first = self.requests[0] if self.requests else {}
        own = string(values, "sessionId") or turn_hash("session", str(first.get("requestId") or _typed(first)), 0)
        model = None
        for request in self.requests:
            named = string(request, "modelId") or ""
            provider = named.partition("/")[0] if "/" in named else None
            model = noted(model, (answered_by(named, provider) or "").removeprefix("copilot/"))
        versions = [
            name for request in self.requests if (name := string(mapping(request, "agent"), "extensionVersion"))
        ]
        started = parse_time(values.get("creationDate")) or parse_time(first.get("timestamp"))
        source.carry.clear()
        self.talk = Conversation(source, Session(
            TOOL, own, title=string(values, "customTitle", "computedTitle"), cwd=cwd or folder_of(_folder(values)),
            label=label, started=started, model=model or None,
            tool_version=versions[-1] if versions else None,
        ))  # fmt: skip

    def read(self) -> Said:
        for request in self.requests:
            yield from self.request(request)
        yield from self.talk.end()

    def request(self, request: Values) -> Said:
        time = parse_time(request.get("timestamp")) or self.talk.session.started
        own = string(request, "requestId")
        cleaned = self.talk.clean(_typed(request))
        told = {**request, "isSystemInitiated": request.get("isSystemInitiated") or request.get("confirmation")}
        if cleaned.text:
            flags = Flag.INJECTED if cleaned.injected else Flag.NONE
            flags |= Flag.META if names_another(told) else Flag.NONE
            identity = own or self.talk.new_id(Speaker.OWNER, str(time), cleaned.text)
            turn = Turn(identity, Speaker.OWNER, cleaned.text, time, flags=flags, unique=_is_unique(own))
            yield from self.talk.say(turn, told)
        yield from self.answer(request, own, time)

    def answer(self, request: Values, own: str | None, time: Any) -> Said:
        """What the agent said: a turn up to its calls, and another with what it said after them."""
        done = parse_time(mapping(request, "modelState").get("completedAt")) or time
        told = string(request, "responseId") or (f"{own}-answer" if own else None)
        metadata = mapping(request, "result", "metadata")
        rounds = [call for one in objects(metadata, "toolCallRounds") for call in objects(one, "toolCalls")]
        asked = {str(call.get("id")): call for call in rounds}
        results = mapping(metadata, "toolCallResults")
        part_of = 0
        words = ""
        for part in [*objects(request, "response"), {"kind": _END}]:
            kind = part.get("kind")
            if kind not in (_END, *_CALLS):
                words += self.words(part)
                continue
            if words.strip() or (self.talk.opened is None and kind != _END):
                identity = told or self.talk.new_id(Speaker.AGENT, str(time), "answer")
                name = f"{identity}-{part_of}" if part_of and told else identity
                yield from self.talk.open(OpenTurn(name, done, unique=_is_unique(told)))
                self.talk.add_text(words)
                part_of, words = part_of + 1, ""
            if kind != _END:
                self.call(part, asked, results)
        yield from self.talk.close()
        yield from self.summary(metadata, done)

    def words(self, part: Values) -> str:
        kind = str(part.get("kind") or "")
        if kind in _WORDS:
            return _value(part.get("content", part.get("value")))
        if kind == "inlineReference":
            return f"`{_reference(part)}`"
        if kind not in _QUIET:
            self.source.unknown(f"response {kind}")
        return ""

    def call(self, part: Values, asked: Values, results: Values) -> None:
        identity = str(part.get("toolCallId") or "")
        request = mapping(asked, identity)
        specific = mapping(part, "toolSpecificData")
        line = mapping(specific, "commandLine")
        command = string(line, "userEdited", "toolEdited", "original") or string(specific, "command")
        arguments = request.get("arguments")
        if not isinstance(arguments, str | dict) or command:
            shown = _value(part.get("pastTenseMessage")) or _value(part.get("invocationMessage"))
            given = specific.get("rawInput") or mapping(part, "resultDetails").get("input")
            arguments = {"command": command} if command else (given if isinstance(given, str | dict) else shown)
        name = string(part, "toolId") or string(request, "name") or "tool"
        key = self.talk.add_call(identity, name, arguments)
        output = _output(mapping(results, identity).get("content")) or _output(
            mapping(part, "resultDetails").get("output")
        )
        opened = self.talk.opened
        if opened and opened.calls[key].outside and not output:
            self.talk.exchange.unseen()
        if result := _outcome(part, specific, output):
            self.talk.result(key, result, lambda: output)

    def summary(self, metadata: Values, time: Any) -> Said:
        text = string(mapping(metadata, "summary"), "text")
        cleaned = self.talk.clean(text or "")
        if cleaned.text:
            identity = self.talk.new_id(Speaker.SYSTEM, None, cleaned.text)
            flags = Flag.SUMMARY | (Flag.INJECTED if cleaned.injected else Flag.NONE)
            yield from self.talk.say(Turn(identity, Speaker.SYSTEM, cleaned.text, time, flags=flags))


def _outcome(part: Values, specific: Values, output: str) -> str | None:
    confirmed = part.get("isConfirmed")
    if confirmed is False or (isinstance(confirmed, Mapping) and confirmed.get("type") == 0):
        return "rejected"
    code = mapping(specific, "terminalCommandState").get("exitCode")
    if isinstance(code, int):
        return outcome(exit_code=code)
    failed = mapping(part, "resultDetails").get("isError") is True
    return outcome(output, is_error=failed) if part.get("isComplete", True) else None


def _typed(request: Values) -> str:
    message = request.get("message")
    return message if isinstance(message, str) else string(message, "text") or ""


def _value(value: Any) -> str:
    """Markdown is a text, or an object with one."""
    return value if isinstance(value, str) else string(value, "value") or ""


def _reference(part: Values) -> str:
    place = mapping(part, "inlineReference")
    uri = mapping(place, "location", "uri") or mapping(place, "uri") or place
    path = string(uri, "fsPath", "path") or ""
    return string(part, "name") or string(place, "name") or path.replace("\\", "/").rsplit("/", 1)[-1]


def _output(content: Any, depth: int = 0) -> str:
    """The words of a tool's result, however deep it puts them."""
    if isinstance(content, str) or depth > 12:
        return content if isinstance(content, str) else ""
    if isinstance(content, Mapping):
        inner = (content[key] for key in ("value", "text", "content", "children", "node") if key in content)
        return "".join(_output(one, depth + 1) for one in inner)
    return "\n".join(filter(None, (_output(one, depth + 1) for one in content))) if isinstance(content, list) else ""


def _folder(values: Values) -> str | None:
    folders = objects(mapping(values, "repoData"), "workspaceFolders")
    return string(folders[0], "uri", "path") if folders else string(values, "workingDirectory", "workspaceFolder")


def _is_unique(identity: str | None) -> bool:
    return identity is not None and len(identity) >= 36
