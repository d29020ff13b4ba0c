"""Gemini CLI: ``~/.gemini/tmp/<project>/chats``, one JSON document a session, or (since 0.40) a log of events.

The log says things again and takes them back: a message under a known id replaces the earlier copy, ``$rewindTo``
drops a message with all that follows, ``$set`` changes the header and may bring other messages. Only the end of it
tells what was said, so both forms are read as a whole.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Places,
    Root,
    Source,
    beside,
    documents,
    mapping,
    objects,
    parse_time,
    shape_of,
    string,
    total,
)
from nacre.readers.conversation import outcome
from nacre.readers.trust import Conversation, OpenTurn
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, Turn

TOOL = "gemini-cli"

Message = Mapping[str, Any]

_AGENT = frozenset({"gemini", "model"})
_NOTICES = frozenset({"info", "warning", "error"})
_FILES = re.compile(r"-{3} Content from referenced files -{3}.*\Z", re.DOTALL)
"""To the end of the message, where the tool puts it: a file may hold the mark that ends it."""
_LEFT_OUT = ("<hook_context>", "/", "?")
_SNAPSHOT = "<state_snapshot>"
_CANCELLED = "Request cancelled."
_COMMAND = re.compile(r"/[a-z][\w-]*(?:\s|\Z)")
_EXIT = re.compile(r"(?:^|\\n)Exit Code: (\d+)", re.MULTILINE)
_SHELL = "run_shell_command"
_FRAME = re.compile(
    r"^(?:Command|Directory|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*\n?"
    r"|^(?:Error|Output|Stdout|Stderr): (?:\((?:none|empty)\)(?:\n|\Z))?",
    re.MULTILINE,
)
"""What the tool says of a command around what the command said."""
_UUID_LENGTH = 36


class _Log:
    """The header and the messages, as the events left them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.header: dict[str, Any] = {}
        self.messages: dict[str, Message] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        if isinstance(event.get("$rewindTo"), str):
            self.rewind(event["$rewindTo"])
        elif "$set" in event or "$patch" in event:
            self.change(mapping(event, "$set" if "$set" in event else "$patch"), event.get("id"))
        elif isinstance(event.get("id"), str):
            self.messages[event["id"]] = event
        elif "sessionId" in event:
            self.change(event, None)
        else:
            self.source.unknown(str(event.get("type") or "no message"))

    def rewind(self, target: str) -> None:
        ids = list(self.messages)
        if target not in self.messages:
            self.source.unknown("$rewindTo an unknown message")
            return
        for known in ids[ids.index(target) :]:
            del self.messages[known]

    def change(self, values: Mapping[str, Any], message: object) -> None:
        """Change one message, or the header. Other messages replace those before, except where the tool only made
        the model's context shorter: what was said stays said.
        """
        if isinstance(message, str) and message in self.messages:
            self.messages[message] = {**self.messages[message], **values}
            return
        self.header |= {key: value for key, value in values.items() if key != "messages"}
        if not isinstance(values.get("messages"), list):
            return
        listed = objects(values, "messages")
        fresh = {str(one.get("id") or f"#{number}"): one for number, one in enumerate(listed)}
        if any(_SNAPSHOT in _words(one.get("content")) for one in listed):
            known = {
                (one.get("type"), _words(one.get("content"))) for one in self.messages.values()
            }
            said = {
                key: one
                for key, one in fresh.items()
                if (one.get("type"), _words(one.get("content"))) not in known
            }
            self.messages |= said
        else:
            kept = {
                key: one for key, one in self.messages.items() if key in fresh or _is_left_out(one)
            }
            self.messages = kept | fresh


class _Reader:
    def __init__(self, source: Source, log: _Log) -> None:
        self.source = source
        self.header = log.header
        self.messages = log.messages
        self.talk = Conversation(source, self.session())

    def session(self) -> Session:
        is_main = self.header.get("kind") != "subagent"
        folder = self.source.path.parent.name
        parent = None if is_main or folder == "chats" else folder
        directories = self.header.get("directories")
        named = str(directories[0]) if isinstance(directories, list) and directories else None
        return Session(
            TOOL,
            string(self.header, "sessionId") or self.source.path.stem,
            title=string(self.header, "summary"),
            cwd=named or _project_root(self.source.path, self.header),
            kind=SessionKind.MAIN if is_main else SessionKind.SUBAGENT,
            parent=parent,
            started=parse_time(self.header.get("startTime")),
        )

    def read(self) -> Items:
        for identity, message in self.messages.items():
            kind = str(message.get("type"))
            if kind == "user":
                yield from self.user(identity, message)
            elif kind in _AGENT:
                yield from self.agent(identity, message)
            elif kind in _NOTICES:
                yield from self.notice(identity, message)
            else:
                self.source.unknown(f"message {kind}")
        yield from self.talk.end()

    def user(self, identity: str, message: Message) -> Items:
        said = _words(message.get("displayContent")) or _words(message.get("content"))
        for brought in _FILES.findall(_words(message.get("content"))):
            self.talk.exchange.heard(brought)
        for result in _responses(message.get("content")):
            self.talk.result(str(result.get("id")), "ok", lambda result=result: _output(result))  # type: ignore[misc]
        is_summary = _SNAPSHOT in said
        said = said.replace(_SNAPSHOT, "").replace("</state_snapshot>", "")
        cleaned = self.talk.clean(_FILES.sub("", said))
        if not cleaned.text:
            return
        speaker, flags = (
            (Speaker.SYSTEM, Flag.SUMMARY) if is_summary else self.speaker(cleaned.text)
        )
        flags |= Flag.INJECTED if cleaned.injected else Flag.NONE
        time = parse_time(message.get("timestamp"))
        yield from self.talk.say(
            Turn(
                identity,
                speaker,
                cleaned.text,
                time,
                flags=flags,
                unique=len(identity) == _UUID_LENGTH,
            ),
            message,
        )

    def notice(self, identity: str, message: Message) -> Items:
        """What the tool shows: that the owner stopped the agent, or that the model failed. All else passes."""
        words, time = _words(message.get("content")), parse_time(message.get("timestamp"))
        if message.get("type") == "error":
            yield from self.talk.failed(identity, words, time)
        elif words.strip() == _CANCELLED:
            yield from self.talk.interrupted(identity, time)

    def speaker(self, text: str) -> tuple[Speaker, Flag]:
        if self.talk.session.kind is SessionKind.SUBAGENT:
            return Speaker.AGENT, Flag.NONE
        return Speaker.OWNER, Flag.COMMAND if _COMMAND.match(text) else Flag.NONE

    def agent(self, identity: str, message: Message) -> Items:
        model = string(message, "model")
        if model:
            self.talk.session = replace(self.talk.session, model=model)
        self.talk.spend(_tokens(mapping(message, "tokens")))
        time = parse_time(message.get("timestamp"))
        yield from self.talk.open(OpenTurn(identity, time, unique=len(identity) == _UUID_LENGTH))
        self.talk.add_text(_words(message.get("content") or message.get("parts")))
        for call in objects(message, "toolCalls"):
            self.call(call)

    def call(self, call: Mapping[str, Any]) -> None:
        name, arguments = str(call.get("name") or "tool"), call.get("args")
        identity = str(call.get("id") or "")
        key = self.talk.add_call(identity, name, arguments if isinstance(arguments, dict) else "")
        output = "\n".join(_output(one) for one in _responses(call.get("result")))
        shown = call.get("resultDisplay")
        output = output or (shown if isinstance(shown, str) else "")
        if call.get("status") in ("success", "error", "cancelled"):
            said = _FRAME.sub("", output) if name == _SHELL else output
            self.talk.result(key, _outcome(call, output), lambda: said)


def _tokens(told: Mapping[str, Any]) -> Tokens:
    """What an answer cost; what was read from the cache is part of the input, thoughts are no part of the output."""
    cached = total(told, "cached")
    return Tokens(
        max(0, total(told, "input", "tool") - cached), cached, total(told, "output", "thoughts")
    )


def _outcome(call: Mapping[str, Any], output: str) -> str:
    if call.get("status") == "cancelled":
        return "rejected"
    code = _EXIT.findall(output) if call.get("name") == _SHELL else []
    return outcome(
        output,
        exit_code=int(code[-1][:9]) if code else None,
        is_error=call.get("status") == "error",
    )


def _words(content: Any) -> str:
    """The words of a text, or of a list of parts; without thoughts, images and the results of tools."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    said = (
        part if isinstance(part, str) else string(part, "text")
        for part in parts
        if not mapping(part).get("thought")
    )
    return "\n\n".join(text for text in said if text)


def _is_left_out(message: Message) -> bool:
    """Whether a tool that resumes a session leaves a message out, as if nobody had said it: a command, or a prompt
    that a hook put something in front of."""
    return message.get("type") == "user" and _words(message.get("content")).lstrip().startswith(
        _LEFT_OUT
    )


def _responses(parts: Any) -> list[Mapping[str, Any]]:
    listed = parts if isinstance(parts, list) else []
    return [found for part in listed if (found := mapping(part, "functionResponse"))]


def _output(response: Mapping[str, Any]) -> str:
    said = mapping(response, "response")
    return "\n".join(
        value for key in ("output", "error", "content") if isinstance(value := said.get(key), str)
    )


def _project_root(path: Path, header: Mapping[str, Any]) -> str | None:
    """The folder that a session worked in: its name lies beside the chats, or the project's hash is of a known one."""
    for parent in list(path.parents)[:4]:
        if parent.name == "chats":
            try:
                return (parent.parent / ".project_root").read_text(encoding="utf-8").strip() or None
            except (OSError, UnicodeDecodeError):
                known = (
                    mapping(beside(parent.parents[2] / "projects.json"), "projects")
                    if len(parent.parents) > 2
                    else {}
                )
                return next(
                    (root for root in known if _hash(root) == header.get("projectHash")), None
                )
    return None


def _hash(root: str) -> str:
    return hashlib.sha256(root.encode("utf-8", errors="replace")).hexdigest()


def parse(source: Source) -> Items:
    """Parse one session; see :class:`~nacre.readers.adapter.Adapter`."""
    log = _Log(source)
    for event in documents(source):
        log.take(event)
    return _Reader(source, log).read()


def _sniff(head: Head) -> bool:
    shape = shape_of(head)
    return shape is not None and not shape.is_array and {"sessionId", "projectHash"} <= shape.keys


def _roots(places: Places) -> Sequence[Root]:
    home = Path(places.environ.get("GEMINI_CLI_HOME") or places.home).expanduser()
    return [Root(home / ".gemini" / "tmp", ("*/chats/**/*.json", "*/chats/**/*.jsonl"))]


ADAPTER = Adapter(
    tool=TOOL,
    label="Gemini CLI",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    whole=True,
    resume=("gemini", "--resume", "{id}"),
    versions="0.23 (documents), 0.40 (event logs)",
    reads=(
        "messages",
        "tool calls with outcome",
        "model",
        "tokens",
        "title",
        "sub-agents",
        "folder, if recorded",
        "interruptions",
        "errors of the model",
    ),
    leaves_out=("thoughts", "other notices", "rewound messages", "checkpoints and logs.json"),
    environment=("GEMINI_CLI_HOME",),
)
