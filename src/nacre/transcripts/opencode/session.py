"""A session of OpenCode, message by message: the same objects lie in its database, its older files and its exports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nacre.text.open_weights import answered_by
from nacre.transcripts.adapter import Places, Source
from nacre.transcripts.conversation import Conversation, OpenTurn
from nacre.transcripts.objects import parse_time
from nacre.transcripts.origins import names_another
from nacre.transcripts.tool_calls import outcome
from nacre.transcripts.whole_json import mapping, objects, string, total
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, Turn

TOOL = "opencode"

Said = Iterator[Session | Turn]
Values = Mapping[str, Any]

_QUIET = frozenset({
    "reasoning", "file", "step-start", "step-finish", "snapshot", "patch", "agent", "subtask", "retry", "compaction",
})  # fmt: skip
_DONE = frozenset({"completed", "success"})
_ABORTED = "MessageAbortedError"
_UNNAMED = re.compile(r"(?:New|Child) session - \d{4}-")
_REFUSED = re.compile(r"rejected permission|user (?:rejected|denied|dismissed)|specified a rule", re.IGNORECASE)


def session_of(info: Values, *, project: str | None = None) -> Session:
    """A session, from its object in a file or an export."""
    parent, title = string(info, "parentID"), string(info, "title")
    return Session(
        TOOL, str(info.get("id")), title=None if title and _UNNAMED.match(title) else title,
        cwd=string(info, "directory") or project, kind=SessionKind.SUBAGENT if parent else SessionKind.MAIN,
        parent=parent, started=parse_time(mapping(info, "time").get("created")), tool_version=string(info, "version"),
    )  # fmt: skip


class Talk:
    """Turns messages with their parts into a session's turns. A time that is missing is that of the message before."""

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)
        self.time = session.started
        self.is_done = True

    def take(self, message: Values, parts: Iterable[Values]) -> Said:
        """What one message says and does."""
        self.time = parse_time(mapping(message, "time").get("created")) or self.time
        role = message.get("role")
        if role == "user":
            yield from self.user(message, parts)
        elif role == "assistant":
            yield from self.agent(message, parts)
        else:
            self.source.unknown(f"role {role}")

    def end(self) -> Said:
        """The session ends, for now."""
        yield from self.talk.end()

    def user(self, message: Values, parts: Iterable[Values]) -> Said:
        """What a person typed, or, to a sub-agent, the agent that called it. What OpenCode adds is not theirs."""
        typed: list[str] = []
        for part in parts:
            if part.get("type") != "text":
                self.skip(part)
            elif part.get("ignored"):
                self.talk.exchange.heard(self.talk.clean(_text(part)).text)
            elif names_another(part):
                self.talk.exchange.saw(self.talk.clean(_text(part)).text)
            else:
                typed.append(_unquoted(_text(part)))
        cleaned = self.talk.clean("\n\n".join(text for text in typed if text.strip()))
        if cleaned.text:
            is_inner = self.talk.session.kind is SessionKind.SUBAGENT
            flags = Flag.INJECTED if cleaned.injected else Flag.NONE
            speaker = Speaker.AGENT if is_inner else Speaker.OWNER
            yield from self.talk.say(
                Turn(str(message.get("id")), speaker, cleaned.text, self.time, flags=flags, unique=True), message
            )

    def agent(self, message: Values, parts: Iterable[Values]) -> Said:
        """An answer with its calls; one that sums the session up is derived."""
        self.learn(message)
        self.talk.spend(_tokens(mapping(message, "tokens")))
        if message.get("summary") is True:
            yield from self.summary(message, parts)
            return
        time = mapping(message, "time")
        self.is_done = bool(time.get("completed") or message.get("error") or message.get("finish"))
        yield from self.talk.open(OpenTurn(str(message.get("id")), self.time, unique=True))
        for part in parts:
            if part.get("type") == "text":
                if not part.get("ignored") and not part.get("synthetic"):
                    self.talk.add_text(_text(part))
            elif part.get("type") == "tool":
                self.call(part)
            else:
                self.skip(part)
        yield from self.stopped(message)

    def stopped(self, message: Values) -> Said:
        """Why an answer ended before its time."""
        error, identity = mapping(message, "error"), f"{message.get('id')}-end"
        if error.get("name") == _ABORTED:
            yield from self.talk.interrupted(identity, self.time)
        elif error:
            words = string(mapping(error, "data"), "message") or string(error, "name") or ""
            yield from self.talk.failed(identity, words, self.time)

    def summary(self, message: Values, parts: Iterable[Values]) -> Said:
        words = "\n\n".join(_text(part) for part in parts if part.get("type") == "text")
        cleaned = self.talk.clean(words)
        if cleaned.text:
            yield from self.talk.say(
                Turn(str(message.get("id")), Speaker.SYSTEM, cleaned.text, self.time, flags=Flag.SUMMARY, unique=True)
            )

    def call(self, part: Values) -> None:
        """One tool call with what came of it."""
        state = mapping(part, "state")
        given = state.get("input")
        name = string(part, "tool") or "tool"
        call_id = self.talk.add_call(
            str(part.get("callID") or ""), name, given if isinstance(given, str | dict) else ""
        )
        status = state.get("status")
        output = state.get("output") if status in _DONE else state.get("error")
        told = output if isinstance(output, str) else ""
        if any(not str(item.get("mime")).startswith("text/") for item in objects(state, "attachments")):
            self.talk.exchange.unseen()  # a picture's words are not recorded
        if status in _DONE:
            code = mapping(state, "metadata").get("exit")
            self.talk.result(call_id, outcome(told, exit_code=code if type(code) is int else None), lambda: told)
        elif status == "error":
            refused = bool(_REFUSED.search(told[:300]))
            self.talk.result(call_id, "rejected" if refused else outcome(told, is_error=True), lambda: told)
        else:
            self.is_done = False

    def learn(self, message: Values) -> None:
        """The model that answers, and the folder where the session does not name one."""
        told = message if string(message, "modelID") else mapping(message, "model")
        model = answered_by(string(told, "modelID"), string(told, "providerID"))
        folder = string(mapping(message, "path"), "cwd")
        session = self.talk.session
        self.talk.session = replace(session, model=model or session.model, cwd=session.cwd or folder)

    def skip(self, part: Values) -> None:
        if part.get("type") not in _QUIET:
            self.source.unknown(f"part {part.get('type')}")


def _tokens(told: Values) -> Tokens:
    cache = mapping(told, "cache")
    return Tokens(
        total(told, "input") + total(cache, "write"), total(cache, "read"), total(told, "output", "reasoning")
    )


ENVIRONMENT = ("APPDATA", "LOCALAPPDATA", "XDG_DATA_HOME")
"""The environment's variables that :func:`data_folders` reads."""


def data_folders(places: Places) -> list[Path]:
    """Where OpenCode keeps its data: by the XDG rules, on every system."""
    found = [Path(places.environ.get("XDG_DATA_HOME") or places.home / ".local" / "share").expanduser()]
    if places.platform == "win32":
        found += [Path(folder) for name in ("LOCALAPPDATA", "APPDATA") if (folder := places.environ.get(name))]
    if places.platform == "darwin":
        found.append(places.home / "Library" / "Application Support")
    return [folder / "opencode" for folder in found]


def _unquoted(text: str) -> str:
    """A prompt as it was typed: ``opencode run`` puts one with spaces into quotes, and a stroke before those within."""
    inner = text[1:-1]
    if len(text) < 2 or text[0] != '"' or text[-1] != '"' or '"' in inner.replace('\\"', ""):
        return text
    return inner.replace('\\"', '"')


def _text(part: Values) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else ""
