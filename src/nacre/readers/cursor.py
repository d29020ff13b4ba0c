"""Cursor's agent transcripts, their folders, and the context that Cursor adds to prompts."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

from nacre.base.frozen import frozen
from nacre.base.plain import Values, mapping, string
from nacre.readers.adapter import (
    ANY,
    Adapter,
    Head,
    Items,
    Places,
    Root,
    Source,
    beside,
    content_blocks,
    modified,
    parse_time,
)
from nacre.readers.conversation import outcome
from nacre.readers.trust import Before, Conversation, OpenTurn
from nacre.values.session import Session, SessionKind, Speaker, Trust, Turn

TOOL = "cursor"

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_STAMP = re.compile(r"<timestamp>(.*?)</timestamp>", re.DOTALL)
_WRAPPING = re.compile(
    r"<(attached_files|open_and_recently_viewed_files|git_status|git_diff\w*|system_reminder|timestamp|cursor_commands"
    r"|user_info|rules|agent_skills|available_skills|manually_attached_skills|project_layout|additional_data"
    r"|reproduction_steps|image_files|external_links|uploaded_documents|agent_transcripts|mcp_\w+)\b[^>]*>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)
_WRITTEN_TIME = re.compile(
    r"(?:\w+, )?(\w+ \d{1,2}, \d{4}),? (?:at )?(\d{1,2}:\d{2}(?::\d{2})? [AP]M)(?: \(UTC([+-]\d{1,2})(?::?(\d{2}))?\))?"
)
_SLUG = re.compile(r"[^A-Za-z0-9]+")
_MAX_FOLDERS_SEARCHED = 20_000


@frozen
class Prompt:
    """A user message, split into typed words, context and time.

    ``words``: text that the user typed, from the tags at the end of the message. ``context``:
    context from Cursor. ``is_sure``: False if the message contains several pairs of such tags,
    because attached files can contain these tags.
    """

    words: str
    context: str = ""
    time: datetime | None = None
    is_sure: bool = True


def read_prompt(text: str) -> Prompt:
    """Split a user message."""
    stamp = _STAMP.search(text)
    queries = _QUERY.findall(text)
    words = queries[-1] if queries else _WRAPPING.sub("", text)
    context = (
        _QUERY.sub("", text)
        if queries
        else "\n".join(match[0] for match in _WRAPPING.finditer(text))
    )
    return Prompt(
        words.strip(), context.strip(), _time(stamp[1]) if stamp else None, len(queries) < 2
    )


def _time(text: str) -> datetime | None:
    """Parse a time that Cursor wrote for the model. Return None if it has no time zone."""
    match = _WRITTEN_TIME.search(text)
    if not match or not match[3]:
        return None
    sign = -1 if match[3].startswith("-") else 1
    zone = timezone(
        sign * timedelta(hours=min(abs(int(match[3])), 23), minutes=min(int(match[4] or 0), 59))
    )
    for form in (
        "%b %d, %Y %I:%M %p",
        "%B %d, %Y %I:%M %p",
        "%b %d, %Y %I:%M:%S %p",
        "%B %d, %Y %I:%M:%S %p",
    ):
        try:
            return (
                datetime.strptime(f"{match[1]} {match[2]}", form)
                .replace(tzinfo=zone)
                .astimezone(UTC)
            )
        except (ValueError, OverflowError):
            continue
    return None


def roots(places: Places, suffix: str) -> Sequence[Root]:
    """Return the folders of agent transcripts."""
    folders = (places.home / ".cursor", places.folder("CURSOR_CONFIG_DIR", ".cursor"))
    patterns = (f"*/agent-transcripts/**/*{suffix}",)
    return [Root(folder / "projects", patterns) for folder in dict.fromkeys(folders)]


def session_of(source: Source) -> Session:
    """Return a transcript's session. Its id is the file name; the folder shows the project."""
    path = source.path
    is_child = path.parent.name == "subagents"
    folder = next(
        (parent.parent for parent in path.parents if parent.name == "agent-transcripts"), None
    )
    return Session(
        TOOL,
        path.stem,
        cwd=string(beside(folder / ".workspace-trusted"), "workspacePath")
        or _unslug(Path(folder.anchor), folder.name.lower())
        if folder
        else None,
        label=folder.name if folder else None,
        kind=SessionKind.SUBAGENT if is_child else SessionKind.MAIN,
        parent=path.parent.parent.name if is_child else None,
        started=modified(source),
    )


def _unslug(root: Path, slug: str) -> str | None:
    """Return the folder with this slug, or None if no folder or several folders have it.

    A slug is a path in which everything except letters and digits is replaced by dashes.
    """
    pending = [(root, slug)]
    searched = 0
    matches: list[Path] = []
    while pending and searched < _MAX_FOLDERS_SEARCHED:
        folder, rest = pending.pop()
        for child in _folders(folder):
            searched += 1
            name = _SLUG.sub("-", child.name).strip("-").lower()
            if name and rest == name:
                matches.append(child)
            elif name and rest.startswith(f"{name}-"):
                pending.append((child, rest[len(name) + 1 :]))
    return str(matches[0]) if len(matches) == 1 else None


def _folders(folder: Path) -> list[Path]:
    try:
        return [child for child in folder.iterdir() if child.is_dir() and not child.is_symlink()]
    except OSError:
        return []


# -- Messages of any of Cursor's formats ----------------------------------------


_CALLS = frozenset({"tool_use", "tool_call", "tool-call"})
_RESULTS = frozenset({"tool_result", "tool-result"})
_QUIET = frozenset(
    "thinking redacted_thinking reasoning redacted-reasoning image image_url file".split()
)


class MessageReader:
    """Converts prompts and answers into turns. A missing time is replaced by the previous time."""

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)
        self.time = session.started

    def words(self, blocks: Sequence[Values]) -> str:
        """Return a message's words. Unknown blocks are counted."""
        texts = []
        for block in blocks:
            kind = block.get("type")
            if kind in ("text", None):
                texts.append(str(block.get("text") or ""))
            elif kind not in _QUIET | _CALLS | _RESULTS:
                self.source.unknown(f"block {kind}")
        return "\n\n".join(texts)

    def prompt(
        self, text: str, *claims: Values, is_sure: bool = True
    ) -> Generator[Session | Turn, None, Prompt]:
        """Yield a prompt from a person or, in a sub-agent's session, from the calling agent."""
        cleaned = self.talk.clean(text)
        prompt = read_prompt(cleaned.text)
        if prompt.context:
            self.talk.exchange.heard(prompt.context)
        if prompt.words:
            self.time = prompt.time or self.time
            yield from self.talk.write(
                self.talk.prompter,
                prompt.words,
                self.time,
                *claims,
                flags=cleaned.flags,
                trust=Trust.TRUSTED if is_sure and prompt.is_sure else Trust.UNTRUSTED,
            )
        return prompt

    def agent(self, text: str, blocks: Sequence[Values], before: Before | None = None) -> Items:
        calls = [block for block in blocks if block.get("type") in _CALLS]
        if not (text or calls):
            return
        yield from self.open(text or f"call {string(calls[0], 'name', 'toolName')}", before)
        self.talk.add_text(text)
        for call in calls:
            self.talk.add_call(
                string(call, "id", "toolCallId") or "",
                string(call, "name", "toolName") or "tool",
                next((call[key] for key in ("input", "arguments", "args") if key in call), None),
            )

    def open(self, seed: str, before: Before | None = None) -> Items:
        identity = self.talk.new_id(Speaker.AGENT, None, seed)
        yield from self.talk.open(OpenTurn(identity, self.time, unique=False), before)

    def miss(self) -> None:
        """Distrust the agent's next words if the result of an external call is missing."""
        if self.talk.waits_for_others:
            self.source.carry["unseen"] = True
        if self.source.carry.get("unseen"):
            self.talk.exchange.unseen()


# -- Text transcripts ``agent-transcripts/<id>.txt``, with headings for the speaker
# A tool's output can contain such headings. Words under the user's heading are therefore untrusted
# after a result, until the end of the session if external text was read.


_MARK = re.compile(
    r"^(user|assistant):[ \t]*$|^\[(Thinking|Tool call|Tool result)\][ \t]*(.*)$", re.MULTILINE
)
_START = re.compile(r"\A\ufeff?\s*user:[ \t]*\n")
_ARGUMENT = re.compile(r"^[ \t]*([A-Za-z_]+):[ \t]*(.+)$", re.MULTILINE)


class _Reader(MessageReader):
    def __init__(self, source: Source) -> None:
        super().__init__(source, session_of(source))
        self.speaker = "user"
        self.call = ""
        self.after_result = False
        self.after_outside = False

    def __iter__(self) -> Items:
        text = self.source.text().replace("\r\n", "\n")
        marks = list(_MARK.finditer(text))
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        for mark, end in zip(marks, ends, strict=False):
            body = text[mark.end() : end].strip()
            if mark[1]:
                yield from self.turn(mark[1], body)
            elif self.speaker == "assistant":
                yield from self.aside(mark[2], mark[3].strip(), body)
            else:
                self.talk.exchange.heard(body)
        yield from self.talk.end()

    def turn(self, speaker: str, body: str) -> Items:
        self.speaker = speaker
        is_sure = not (self.after_result or self.after_outside)
        self.after_result = False
        if speaker == "assistant":
            self.miss()
            yield from self.open(body)
            self.talk.add_text(body)
        else:
            yield from self.prompt(body, is_sure=is_sure)

    def aside(self, kind: str, rest: str, body: str) -> Items:
        if kind == "Thinking":
            return
        if kind == "Tool result":
            output = f"{rest}\n{body}"
            called = self.talk.calls.get(self.call)
            self.after_result = True
            self.after_outside = self.after_outside or called is None or called.outside
            self.talk.result(self.call, outcome(), lambda: output)
            return
        if self.talk.opened is None:
            yield from self.open(rest)
        name, _, more = rest.partition(" ")
        arguments = {match[1]: match[2] for match in _ARGUMENT.finditer(f"{more}\n{body}")}
        self.call = self.talk.add_call("", name or "tool", arguments or body)


ADAPTER = Adapter(
    tool=TOOL,
    label="Cursor",
    roots=partial(roots, suffix=".txt"),
    sniff=lambda head: (
        bool(_START.match(head.text.replace("\r\n", "\n"))) and b"\x00" not in head.data
    ),
    parse=_Reader,
    whole=True,
    versions="2025*",
    leaves_out="title; model; tokens; outcomes; times",
)


# -- Transcripts ``~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl``
# Messages have no ids, times, models or results. The session's id and time come from the file. If
# an external result might be missing, the agent's later words are not trusted.


_REDACTED = "[REDACTED]"
_OTHER_FORMAT_FIELDS = frozenset("type uuid id timestamp sessionId session_id".split())


class _TranscriptsReader(MessageReader):
    def __init__(self, source: Source) -> None:
        super().__init__(source, session_of(source))
        self.time = parse_time(source.carry.get("time")) or self.time

    def __iter__(self) -> Items:
        return self.talk.read(ANY, self.take)

    def take(self, offset: int, record: Any) -> Items:
        role, blocks = string(record, "role"), content_blocks(mapping(record, "message"))
        if role == "user":
            for block in blocks:
                if block.get("type") in _RESULTS:
                    self.result(block)
            prompt = yield from self.prompt(
                self.words(blocks), record, mapping(record, "message"), *blocks
            )
            if prompt.words and prompt.time:
                self.source.carry["time"] = prompt.time.isoformat()
        elif role == "assistant":
            self.talk.learn(model=string(record, "model"))
            self.miss()
            text = self.words(blocks).replace(_REDACTED, "").strip()
            yield from self.agent(text, blocks, self.talk.place(offset))
        elif isinstance(record, dict) and record.get("type") != "turn_ended":
            self.source.unknown(str(role or record.get("type") or "no role"))

    def result(self, block: Values) -> None:
        """Assign a result to the call with the same id, or else to the first pending call."""
        calls = self.talk.calls
        named = str(block.get("tool_use_id") or "")
        pending = [key for key, call in calls.items() if call.call.outcome is None]
        output = "\n".join(str(item.get("text") or "") for item in content_blocks(block))
        identity = named if named in calls else (pending[0] if pending else named)
        self.talk.result(
            identity, outcome(output, is_error=block.get("is_error") is True), lambda: output
        )


def _sniff_transcripts(head: Head) -> bool:
    first = head.first
    if first.get("role") not in ("user", "assistant") or not first.keys().isdisjoint(
        _OTHER_FORMAT_FIELDS
    ):
        return False
    return isinstance(mapping(first, "message").get("content"), list)


ADAPTER_TRANSCRIPTS = Adapter(
    tool=TOOL,
    label="Cursor",
    roots=partial(roots, suffix=".jsonl"),
    sniff=_sniff_transcripts,
    parse=_TranscriptsReader,
    versions="2026",
    reads="sub-agents",
    leaves_out="title; model; tokens; outcomes; times",
)
