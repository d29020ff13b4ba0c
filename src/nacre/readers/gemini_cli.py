"""Gemini CLI: ``~/.gemini/tmp/<project>/chats``.

Each session is a JSON document or, since 0.40, an event log.

In a log, a message with a known id replaces the earlier copy. ``$rewindTo`` removes a message and
all later ones. ``$set`` changes the header and can replace messages. Only the complete log shows
the final messages, so both forms are read from the start each time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nacre.base.plain import Values, mapping, objects, string, total
from nacre.readers.adapter import (
    Adapter,
    Items,
    Source,
    beside,
    documents,
    keys_of,
    parse_time,
    under,
)
from nacre.readers.conversation import outcome
from nacre.readers.generic import text_in
from nacre.readers.messages import Message, say
from nacre.readers.trust import Conversation
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens

TOOL = "gemini-cli"

_AGENT_TYPES = frozenset({"gemini", "model"})
_NOTICES = frozenset({"info", "warning", "error"})
_FILES = re.compile(r"-{3} Content from referenced files -{3}.*\Z", re.DOTALL)
"""Matches the contents of files that Gemini CLI appended to a message.

The end mark is ignored, because files can contain it.
"""
_OMITTED_PREFIXES = ("<hook_context>", "/", "?")
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
"""Matches the lines that the tool adds around a command's output."""
_HASH = re.compile(r"\b[0-9a-f]{64}\b")


class _Reader:
    talk: Conversation

    def __init__(self, source: Source) -> None:
        self.source = source
        self.header: dict[str, Any] = {}
        self.messages: dict[str, Values] = {}
        for event in documents(source):
            self.take(event)

    def take(self, event: Values) -> None:
        if isinstance(event.get("$rewindTo"), str):
            target, ids = event["$rewindTo"], list(self.messages)
            if target not in ids:
                self.source.unknown("$rewindTo an unknown message")
                return
            for message_id in ids[ids.index(target) :]:
                del self.messages[message_id]
        elif "$set" in event or "$patch" in event:
            self.change(mapping(event, "$set" if "$set" in event else "$patch"), event.get("id"))
        elif isinstance(event.get("id"), str):
            self.messages[event["id"]] = event
        elif "sessionId" in event:
            self.change(event, None)
        else:
            self.source.unknown(str(event.get("type") or "no message"))

    def change(self, values: Values, message: object) -> None:
        if isinstance(message, str) and message in self.messages:
            self.messages[message] = {**self.messages[message], **values}
            return
        self.header |= {key: value for key, value in values.items() if key != "messages"}
        if not isinstance(values.get("messages"), list):
            return
        listed = objects(values, "messages")
        new_messages = {
            str(item.get("id") or f"#{number}"): item for number, item in enumerate(listed)
        }
        # A list with a summary of the model's context does not replace the earlier messages.
        if any(_SNAPSHOT in _content(item)[1] for item in listed):
            present = set(map(_content, self.messages.values()))
            self.messages |= {
                key: item for key, item in new_messages.items() if _content(item) not in present
            }
            return
        for key, item in list(self.messages.items()):
            kind, words = _content(item)
            # On resuming, the tool omits commands, and prompts with text added by a hook.
            is_omitted = kind == "user" and words.lstrip().startswith(_OMITTED_PREFIXES)
            if key not in new_messages and not is_omitted:
                del self.messages[key]
        self.messages |= new_messages

    def session(self) -> Session:
        is_main = self.header.get("kind") != "subagent"
        folder = self.source.path.parent.name
        parent = None if is_main or folder == "chats" else folder
        directories = self.header.get("directories")
        listed_folder = (
            str(directories[0]) if isinstance(directories, list) and directories else None
        )
        return Session(
            TOOL,
            string(self.header, "sessionId") or self.source.path.stem,
            title=string(self.header, "summary"),
            cwd=listed_folder or _project_root(self.source.path, self.header),
            kind=SessionKind.MAIN if is_main else SessionKind.SUBAGENT,
            parent=parent,
            started=parse_time(self.header.get("startTime")),
        )

    def __iter__(self) -> Items:
        self.talk = Conversation(self.source, self.session())
        for identity, message in self.messages.items():
            kind = str(message.get("type"))
            if kind == "user":
                yield from self.user(identity, message)
            elif kind in _AGENT_TYPES:
                yield from self.agent(identity, message)
            elif kind in _NOTICES:
                yield from self.notice(identity, message)
            else:
                self.source.unknown(f"message {kind}")
        yield from self.talk.end()

    def user(self, identity: str, message: Values) -> Items:
        words = words_of(message.get("displayContent")) or words_of(message.get("content"))
        for file_content in _FILES.findall(words_of(message.get("content"))):
            self.talk.exchange.record(file_content)
        for result in responses_of(message.get("content")):
            self.talk.result(str(result.get("id")), "ok", output_of(result))
        is_summary = _SNAPSHOT in words
        words = words.replace(_SNAPSHOT, "").replace("</state_snapshot>", "")
        cleaned = self.talk.clean(_FILES.sub("", words))
        is_main = self.talk.prompter is Speaker.OWNER
        flags = Flag.COMMAND if is_main and _COMMAND.match(cleaned.text) else Flag.NONE
        speaker, time = Speaker.OWNER, parse_time(message.get("timestamp"))
        if is_summary:
            speaker, flags = Speaker.SYSTEM, Flag.SUMMARY
        flags |= cleaned.flags
        prompt = Message(speaker, time, identity, [message], flags, [cleaned.text])
        yield from say(self.talk, prompt)

    def notice(self, identity: str, message: Values) -> Items:
        words, time = words_of(message.get("content")), parse_time(message.get("timestamp"))
        if message.get("type") == "error":
            yield from self.talk.failed(identity, words, time)
        elif words.strip() == _CANCELLED:
            yield from self.talk.interrupted(identity, time)

    def agent(self, identity: str, message: Values) -> Items:
        counts, time = mapping(message, "tokens"), parse_time(message.get("timestamp"))
        # The input includes cached tokens, and the output excludes thoughts.
        read, written = total(counts, "input", "tool"), total(counts, "output", "thoughts")
        answer = Message(Speaker.AGENT, time, identity, model=string(message, "model"))
        answer.tokens = Tokens.with_cached(read, total(counts, "cached"), written)
        answer.texts.append(words_of(message.get("content") or message.get("parts")))
        yield from say(self.talk, answer)
        for call in objects(message, "toolCalls"):
            step = Message(Speaker.AGENT, time, identity)
            key = str(call.get("id") or f"#{len(self.talk.calls)}")
            step.call(key, call.get("name"), call.get("args"))
            yield from say(self.talk, step)
            output = "\n".join(output_of(response) for response in responses_of(call.get("result")))
            output = output or string(call, "resultDisplay") or ""
            record_result(self.talk, key, call.get("status"), output)


def record_result(talk: Conversation, key: str, status: object, output: str) -> None:
    """Record a call's result unless the call is still running."""
    if status not in ("success", "error", "cancelled"):
        return
    is_shell = key in talk.calls and talk.calls[key].call.name == _SHELL
    code = _EXIT.findall(output) if is_shell else []
    result = outcome(output, exit_code=code[-1][:9] if code else None, is_error=status == "error")
    printed = _FRAME.sub("", output) if is_shell else output
    talk.result(key, "rejected" if status == "cancelled" else result, printed)


def words_of(content: Any) -> str:
    """Return the text in a message's content, without thoughts, images and tool results."""
    parts = content if isinstance(content, list) else [content]
    return text_in([part for part in parts if not mapping(part).get("thought")])


def _content(message: Values) -> tuple[str, str]:
    return str(message.get("type")), words_of(message.get("content"))


def responses_of(parts: Any) -> list[Values]:
    """Return the tool results among a message's parts."""
    listed = parts if isinstance(parts, list) else []
    return [response for part in listed if (response := mapping(part, "functionResponse"))]


def output_of(response: Values) -> str:
    """Return the text of a tool result."""
    body = mapping(response, "response")
    return "\n".join(
        value for key in ("output", "error", "content") if isinstance(value := body.get(key), str)
    )


def folder_of_hash(text: str, folders: Iterable[str]) -> str | None:
    """Return the first of ``folders`` whose SHA-256 hash occurs in ``text``, if any."""
    hashes = set(_HASH.findall(text))
    for folder in folders if hashes else ():
        if hashlib.sha256(folder.encode("utf-8", errors="replace")).hexdigest() in hashes:
            return folder
    return None


def _project_root(path: Path, header: Values) -> str | None:
    chats = next((parent for parent in list(path.parents)[:4] if parent.name == "chats"), None)
    if chats is None:
        return None
    try:
        return (chats.parent / ".project_root").read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        projects = mapping(beside(chats.parent.parent.parent / "projects.json"), "projects")
        return folder_of_hash(f"{header.get('projectHash')} {chats.parent.name}", projects)


ADAPTER = Adapter(
    tool=TOOL,
    label="Gemini CLI",
    roots=under("GEMINI_CLI_HOME", "", ".gemini/tmp", "*/chats/**/*.json", "*/chats/**/*.jsonl"),
    sniff=lambda head: {"sessionId", "projectHash"} <= keys_of(head),
    parse=_Reader,
    whole=True,
    fields=frozenset(
        {
            *("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "messages"),
            *("directories", "summary", "memoryScratchpad", "$set", "$patch", "$rewindTo"),
            *("id", "timestamp", "type", "content", "displayContent", "tokens", "model"),
            *("toolCalls", "thoughts"),
        }
    ),
    resume=("gemini", "--resume", "{id}"),
    versions="0.23, 0.40",
    reads="sub-agents; interruptions; errors",
    leaves_out="rewound messages; checkpoints; logs.json",
)
