"""JSON lines, plain text and Markdown from unknown tools."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from nacre.base import yaml
from nacre.base.frozen import frozen
from nacre.base.ids import turn_hash
from nacre.base.plain import JsonObject, Values
from nacre.base.text import pieces
from nacre.readers.adapter import ANY, Adapter, Head, Items, Source, local_time, parse_time, records
from nacre.readers.claude_code import interruption, plan_of, typed
from nacre.readers.conversation import new_call
from nacre.readers.registry import TOOLS
from nacre.readers.trust import (
    Conversation,
    Exchange,
    attribute,
    hashed_id,
    is_outside,
    is_own,
)
from nacre.values.reports import FORMAT
from nacre.values.session import Flag, Session, Speaker, ToolCall, Turn

CALLS = ("tool_call", "function_call", "tool_use")
"""Types of records that stand for one tool call each."""

ROLES: dict[str, Speaker] = {
    **dict.fromkeys(("user", "human", "owner"), Speaker.OWNER),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "agent", "gpt", *CALLS), Speaker.AGENT),
    **dict.fromkeys(
        ("tool", "function", "tool_result", "function_result", "function_call_output"), Speaker.TOOL
    ),
    **dict.fromkeys(("system", "developer"), Speaker.SYSTEM),
}

_MESSAGE_IDS = tuple("id uuid message_id messageId turn_id dia_id".split())
_SESSION_IDS = tuple("session_id sessionId conversation_id conversationId chat_id chatId".split())
_TIMES = tuple("timestamp ts created_at createdAt time date".split())
_TEXTS = tuple("content text message body value parts".split())
_RESULTS = (*_TEXTS, "result", "output")
_ROLE_KEYS = tuple("role type from sender speaker author name".split())
_NAME_KEYS = ("from", "sender", "speaker", "author", "name")
_MESSAGE_LISTS = ("messages", "turns", "conversation", "conversations")
_FACT_FIELDS = {
    "title": ("title", "conversation_title"),
    "cwd": ("cwd", "workspace", "workspaceDirectory", "working_directory"),
    "label": ("label", "project", "conversation_label"),
    "branch": ("branch", "gitBranch", "git_branch"),
    "model": ("model", "model_slug"),
}
_MAX_DEPTH = 5
_NON_TEXT_TYPES = frozenset(
    "thinking think reasoning tool_use tool_call tool_result image image_url".split()
)

_PERSON = re.compile(r"([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): \S")
_NAMED_MESSAGES = 20
"""Number of messages that are checked for names. Files with fewer are read from the start."""

_NAMED_SHARE = 0.8
"""Minimum share of messages that start with a name."""


@frozen
class Line:
    """A message in a transcript of any tool.

    ``author`` is a person or, for a tool's result, the tool.
    """

    speaker: Speaker
    text: str
    author: str | None
    stamp: str | None
    calls: tuple[Values, ...] = ()
    call_id: str | None = None


def read_line(record: Values) -> Line | None:
    """Extract the message from a record, or return None if it has none."""
    record = unwrapped(record)
    speaker, author = _speaker_of(record)
    if speaker is None:
        return None
    is_tools = speaker is Speaker.TOOL
    content = next(
        (record[key] for key in (_RESULTS if is_tools else _TEXTS) if record.get(key)), None
    )
    calls = tuple(_calls(record))
    if content is None and not calls:
        return None
    text = text_in(content) or (str(content) if is_tools else "")
    return Line(
        speaker,
        text,
        author,
        _first(record, _TIMES),
        calls,
        _first(record, ("tool_call_id", "call_id")),
    )


def messages_of(record: Values) -> list[tuple[Values, Line]]:
    """Return each message in a record of a whole session, with its original object."""
    for key in _MESSAGE_LISTS:
        value = record.get(key)
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            return [(item, line) for item in value if (line := read_line(item))]
    return []


def session_id(record: Values) -> str | None:
    """Return the session id in a record, if any."""
    return _first(record, _SESSION_IDS) or _first(unwrapped(record), _SESSION_IDS)


def text_in(content: Any, depth: int = 0) -> str:
    """Return the text in a message's content, which is a string, a block, or a list of both."""
    if isinstance(content, str):
        return content
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(content, Mapping):
        if str(content.get("type")) in _NON_TEXT_TYPES:
            return ""
        return text_in(next((content[key] for key in _TEXTS if content.get(key)), None), depth + 1)
    if isinstance(content, Sequence):
        return "\n\n".join(filter(None, (text_in(item, depth + 1) for item in content)))
    return ""


def unwrapped(record: Values) -> Values:
    """Merge a record with the message nested in its ``message`` or ``payload``."""
    inner = record.get("message")
    payload = record.get("payload")
    if isinstance(payload, Mapping) and payload.get("type") == "message":
        inner = payload
    if not isinstance(inner, Mapping):
        return record
    return {**{key: value for key, value in record.items() if key != "message"}, **inner}


def _speaker_of(record: Values) -> tuple[Speaker | None, str | None]:
    speaker: Speaker | None = None
    author: str | None = None
    for key in _ROLE_KEYS:
        value = record.get(key)
        if isinstance(value, Mapping):
            value = value.get("role") or value.get("name")
        if not isinstance(value, str) or not value.strip():
            continue
        role = ROLES.get(value.strip().lower())
        if role:
            speaker = speaker or role
        elif key in _NAME_KEYS:
            author = author or value.strip()
    if record.get("type") in CALLS:
        author = None  # the name belongs to the tool
    return (speaker or (Speaker.OWNER if author else None)), author


def _calls(record: Values) -> Iterator[Values]:
    content = record.get("content")
    blocks = content if isinstance(content, list) else ()
    listed = record.get("tool_calls") or record.get("toolCalls")
    single = (record,) if record.get("type") in CALLS else ()
    for call in (*blocks, *(listed if isinstance(listed, list) else ()), *single):
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        inner = function if isinstance(function, Mapping) else call
        arguments = next(
            (at[key] for at in (inner, call) for key in ("arguments", "input") if key in at), None
        )
        if isinstance(inner.get("name"), str) and arguments is not None:
            yield {
                "id": call.get("call_id") or call.get("id"),
                "name": inner["name"],
                "arguments": arguments,
            }


def _first(record: Values, keys: Sequence[str]) -> str | None:
    for key in keys:
        value = record.get(key)
        if (
            isinstance(value, str | int | float)
            and not isinstance(value, bool)
            and str(value).strip()
        ):
            return str(value)
    return None


# -- JSON lines: one message or one whole session per line ---------------------
# Field names can come from any tool. A file can have several sessions.


TOOL = "jsonl"

_MAX_SESSIONS_CARRIED = 200
_MAX_CALLS_CARRIED = 200


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.facts: dict[str, JsonObject] = source.carry.setdefault("sessions", {})
        self.exchanges = defaultdict[str, Exchange](Exchange)
        for native_id, facts in self.facts.items():
            self.exchanges[native_id] = Exchange(facts.pop("exchange", None))
        self.calls: dict[str, list[bool]] = dict(source.carry.get("calls", {}))
        """For each call id, whether the result is external text, and whether it comes from nacre.
        """
        self.names = set[str]()
        self.yielded: Session | None = None

    def __iter__(self) -> Items:
        all_records = (
            record for _, line in self.source.lines() for record in records(self.source, line, ANY)
        )
        carry, first, lines = self.source.carry, list[Any](), list[Line]()
        if "names" not in carry:
            for record in all_records:
                first.append(record)
                lines += _lines_of(record)
                if len(lines) >= _NAMED_MESSAGES:
                    carry["names"] = sorted(_people(lines))
                    break
        self.names = set(carry.get("names", ())) or _people(lines)
        for record in chain(first, all_records):
            if isinstance(record, dict):
                yield from self.take(record)
            else:
                self.source.corrupt()
        self.finish()

    def take(self, record: JsonObject) -> Items:
        messages = messages_of(record)
        if messages:
            words = "\n".join(line.text for _, line in messages)
            native_id = (
                session_id(record)
                or _first(record, ("id", "uuid"))
                or turn_hash("session", words, 0)
            )
            self.learn(native_id, record)
            for message, line in messages:
                yield from self.message(native_id, message, line)
            return
        single = read_line(record)
        native_id = session_id(record) or self.source.carry.get("current") or ""
        if not native_id:  # derived from the first message if it has a time, else from the file
            native_id = (
                turn_hash("session", f"{single.stamp}\n{single.text}", 0)
                if single and single.stamp
                else self.source.path.stem
            )
        self.source.carry["current"] = native_id
        facts = self.learn(native_id, record)
        if single:
            yield from self.message(native_id, record, single)
        elif not facts:
            self.source.unknown(str(record.get("type") or "no message"))

    def learn(self, native_id: str, record: Values) -> dict[str, str]:
        values = {fact: _first(record, keys) for fact, keys in _FACT_FIELDS.items()}
        facts = {fact: value for fact, value in values.items() if value}
        self.facts.setdefault(native_id, {}).update(facts)
        return facts

    def message(self, native_id: str, record: Values, line: Line) -> Items:
        facts = self.facts.setdefault(native_id, {})
        exchange = self.exchanges[native_id]
        cleaned = exchange.clean(line.text)
        if line.speaker is Speaker.TOOL:
            name = line.author or ""
            outside, own = self.calls.get(line.call_id or "", (False, False))
            outside, own = outside or is_outside(name, ""), own or is_own(name, "")
            exchange.record(cleaned.text, outside=outside, own=own)
            return
        calls = tuple(self.call(call) for call in line.calls)
        if not (cleaned.text or calls):
            return
        facts.setdefault("started", line.stamp)
        session_fields: JsonObject = {name: facts.get(name) for name in _FACT_FIELDS}
        started = parse_time(facts.get("started"))
        session = replace(Session(TOOL, native_id, started=started), **session_fields)
        if session != self.yielded:
            self.yielded = session
            yield session
        flags = Flag.META if line.speaker is Speaker.SYSTEM else Flag.NONE
        identity = self.identify(facts, record, line, cleaned.text)
        name, _, words = cleaned.text.partition(": ")
        is_named = line.author is None and name in self.names
        turn = Turn(
            identity,
            line.speaker,
            words if is_named else cleaned.text,
            parse_time(line.stamp),
            calls,
            flags | cleaned.flags,
            author=name if is_named else line.author,
        )
        identities = self.source.identities
        yield attribute(turn, TOOL, identities, exchange, record, unwrapped(record))

    def identify(self, facts: JsonObject, record: Values, line: Line, text: str) -> str:
        own = _first(record, _MESSAGE_IDS) or _first(unwrapped(record), _MESSAGE_IDS)
        if own and own != facts.get("last_id"):
            facts["last_id"] = own
            return own
        return hashed_id(facts, line.speaker, line.stamp, f"{line.author or ''}\n{text}")

    def call(self, call: Values) -> ToolCall:
        name, arguments = str(call["name"]), call["arguments"]
        brief_call = new_call(name, arguments if isinstance(arguments, str | dict) else "")
        self.calls[str(call["id"])] = [
            is_outside(name, brief_call.input),
            is_own(name, brief_call.input),
        ]
        return brief_call

    def finish(self) -> None:
        if "names" not in self.source.carry:  # more messages might reveal names
            self.source.carry.clear()
            self.source.hold(0)
            return
        for native_id, exchange in self.exchanges.items():
            self.facts[native_id]["exchange"] = exchange.carried()
        self.source.carry["calls"] = dict(list(self.calls.items())[-_MAX_CALLS_CARRIED:])
        recent = list(self.facts.items())[-_MAX_SESSIONS_CARRIED:]
        self.source.carry["sessions"] = dict(recent)


def _lines_of(record: Any) -> list[Line]:
    if not isinstance(record, dict):
        return []
    lines = (*(line for _, line in messages_of(record)), read_line(record))
    speakers = (Speaker.OWNER, Speaker.AGENT)
    return [line for line in lines if line and line.text and line.speaker in speakers]


def _people(lines: Sequence[Line]) -> set[str]:
    starts = Counter(match[1] for line in lines if (match := _PERSON.match(line.text)))
    names = {name for name, times in starts.items() if times > 1 and name.lower() not in ROLES}
    is_most = sum(starts[name] for name in names) >= _NAMED_SHARE * len(lines)
    return names if len(names) > 1 and is_most else set()


def _sniff(head: Head) -> bool:
    objects = head.objects
    if objects and objects[0].get("format") == FORMAT:
        return False  # nacre's own export is imported, not read as a transcript
    messages = [record for record in objects if messages_of(record) or read_line(record)]
    return any("role" in record for record in messages) or len(messages) * 2 >= len(objects) > 0


ADAPTER = Adapter(
    tool=TOOL,
    label="JSON lines",
    sniff=_sniff,
    parse=_Reader,
    guesses=True,
    versions="any",
    reads="branch",
    leaves_out="outcomes; tokens; records without a role",
)


# -- Plain text of any origin: notes, chat logs, minutes -----------------------
# The text counts as the owner's. The session's id is derived from the file's path, so it does not
# change when the text is edited.


TOOL_PLAIN_TEXT = "text"
TURN_CHARACTERS = 2_000

_DATE_IN_NAME = re.compile(
    r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?:[ T_-]?(\d{2})[:_-]?(\d{2})(?:[:_-]?(\d{2}))?(?!\d))?"
)
_UNDECODABLE_SHARE = 0.05
_SPEAKERS = re.compile(r"^[^A-Za-z\n]{0,60}Speaker \d+\b", re.MULTILINE)
"""Matches the numbered speakers in a meeting recorder's transcript."""
_NOT_TEXT = frozenset(".json .jsonl .lock .zst .svg .xml .html .htm .csv .tsv".split())


def is_text(head: Head) -> bool:
    """Return True if a file contains text that a person might have written."""
    if b"\x00" in head.data or not head.data.strip():
        return False
    name = head.path.name.lower()
    if head.path.suffix.lower() in _NOT_TEXT or ".jsonl." in name or head.objects:
        return False  # a renamed transcript can start with an incomplete line
    if name.startswith(".aider."):
        return False  # without the plugin, an agent's text must not become the owner's
    # The head can end in the middle of a character.
    undecodable = head.text[:-1].count("\ufffd")
    return undecodable <= len(head.text) * _UNDECODABLE_SHARE


def _sniff_text(head: Head) -> bool:
    # Transcripts of meetings quote other people.
    return is_text(head) and not _SPEAKERS.search(head.text)


def date_in_name(name: str) -> datetime | None:
    """Return the local date in a file name or title, and the time if it is there too."""
    match = _DATE_IN_NAME.search(name)
    if match is None:
        return None
    day, clock = match.groups()[:3], match.groups("00")[3:]
    return local_time(f"{'-'.join(day)} {':'.join(clock)}")


ADAPTER_PLAIN_TEXT = Adapter(
    tool=TOOL_PLAIN_TEXT,
    label="Plain text",
    sniff=_sniff_text,
    parse=lambda source: _parse(
        source,
        TOOL_PLAIN_TEXT,
        lambda text: (_Part(Speaker.OWNER, piece) for piece in pieces(text, TURN_CHARACTERS)),
    ),
    whole=True,
    guesses=True,
    versions="any",
    reads="paragraphs; date in the name; chats",
    leaves_out="tool calls; tokens",
)


# -- Markdown notes: front matter, and one turn per section --------------------


TOOL_MARKDOWN = "markdown"

_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S.*)")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")


def _parse(source: Source, tool: str, split: Callable[[str], Iterator[_Part]]) -> Items:
    facts, body = _front_matter(source.text())
    body = body.replace("\r\n", "\n")
    speakers = _speakers(body)
    if not speakers:
        body = _with_headings(body)
        speakers = _speakers(body)
    is_talk = bool(speakers) or "<!-- Generated by" in body[:100]
    parts = list(_parts(body, speakers) if is_talk else split(body))
    head = parts.pop(0).text if is_talk else ""
    times = filter(None, map(_find_time, head.splitlines()))
    time = parse_time(facts.get("date") or facts.get("created")) or min(
        times, default=date_in_name(source.path.name)
    )
    identity = _ID.search(head)
    path = source.path.absolute()
    above, is_project, _ = str(path).partition(f"{os.sep}.specstory{os.sep}")
    tags = facts.get("tags")
    listed = ", ".join(map(str, tags)) if isinstance(tags, list) else tags
    session = Session(
        tool,
        (is_talk and session_id(facts))
        or (identity and identity[identity.lastindex or 0])
        or f"{path.stem}-{turn_hash('file', path.as_posix(), 0)[:8]}",
        title=_title(facts, head if is_talk else body) or (None if is_talk else source.path.stem),
        label=str(facts.get("project") or listed or "") or None,
        cwd=above if is_project else None,
        started=time,
    )
    yield from _talk(source, session, parts)


def _front_matter(text: str) -> tuple[Values, str]:
    match = _FRONT_MATTER.match(text)
    try:
        facts, _ = yaml.read(match[1] if match else "")
    except yaml.NotPlainError:
        facts = {}
    return (facts, text[match.end() :]) if match and facts else ({}, text)


def _title(facts: Values, body: str) -> str | None:
    if facts.get("title"):
        return str(facts["title"])
    first = next(
        (line for line in body.splitlines() if line.strip() and not line.startswith("<!--")), ""
    )
    heading = None if _ONLY_TIME.fullmatch(first) else _HEADING.match(first)
    return heading[1].rstrip(" \t#") or None if heading else None


def _sections(body: str) -> Iterator[_Part]:
    lines: list[str] = []
    fence = ""
    has_text = False
    speaker, agents = Speaker.OWNER, 0  # level of the heading that names an agent
    for line in body.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        is_heading = not fence and not mark and bool(_HEADING.match(line))
        level = len(line.split()[0]) if is_heading else 0
        if is_heading and not 0 < agents < level:
            if has_text or agents:
                yield _Part(speaker, "\n".join(lines))
                lines, has_text = [], False
            _, name, _ = _read_heading(line) or ("", "", "")
            speaker, agents = Speaker.OWNER, 0
            if role_of(name) is Speaker.AGENT:
                speaker, agents = Speaker.AGENT, level
        # With heading marks, the text would look like a pasted document, which teaches nothing.
        lines.append(f"{line.strip('# ')}\n" if is_heading else line)
        has_text = has_text or (bool(line.strip()) and not is_heading)
    yield _Part(speaker, "\n".join(lines))


def _sniff_markdown(head: Head) -> bool:
    return _sniff_text(head) and (
        head.path.suffix.lower() in _SUFFIXES or bool(_front_matter(head.text)[0])
    )


# -- Exported chats: Markdown or text in which headings name the speakers ------
# The owner's headings in a file all look alike, such as ``## User`` or ``**User**``. Other headings
# do not start the owner's messages, because an agent can write them.


_NAMES: dict[str, Speaker] = {
    **ROLES,
    **dict.fromkeys(TOOLS, Speaker.AGENT),
    **dict.fromkeys(("you", "me", "prompt"), Speaker.OWNER),
    **dict.fromkeys(("response", "reply"), Speaker.AGENT),
}
_OWNER = re.compile(
    r"(?:user|human|my)_(?:input|message|prompt|query|request|question)|q|question"
    r"|benutzer|nutzer|usuario|usuário|utilisateur|utente|用户|ユーザー|пользователь"
)
_AGENT = re.compile(
    r"(?:ai|assistant|agent|model|planner|bot|llm)_(?:response|reply|answer|output|message)|a|answer"
    r"|(?:ai|cursor|coding)_(?:agent|assistant)|github_copilot|cascade|junie|assistent|asistente"
    r"|assistente|助手|アシスタント|ассистент"
    r"|(?:chatgpt|gpt|claude|gemini|deepseek|grok|llama|mistral|qwen|kimi|glm|o)"
    r"(?:[_.-]?(?:v?\d[\w.]*|opus|sonnet|haiku|pro|flash|mini|turbo|code|r\d))*"
)
_COUNTER = r"(?i:turn|message|step|exchange|entry)(?=[ \t#]*\d)"
_MARK = re.compile(
    r"(?:[^\x00-\x7f\w]{1,9}[ \t])?(?P<form>#{1,6}(?=[ \t])|_?\*\*|\*(?=\w)"
    r"|[=-]{2,9}(?![=-])|\[|(?=[^\W\d_][\w .]{1,24}:))"
    rf"(?:\[[^\]\n]{{0,60}}\]|{_COUNTER}|[^\w\n\[]|[\d_]){{0,60}}?"
    rf"(?P<name>(?!{_COUNTER})"
    r"[^\W\d_][\w .'’-]{0,30}?)"
    r"(?P<facts>(?:(?:[:*(\])]|[ \t]+[^\w\s'’&/+,.]).*)?)"
)
_WORDS = re.compile(
    r"[*\]_]*(?:[ \t]*\([^)\n]*\))?[*\]_]*(?P<colon>:\**|(?<=\]))[ \t]*(?P<words>.*)"
)
_BRACKETED = re.compile(r"\([^()\n]*\)")
_LETTER = re.compile(r"[^\W\d_]")
_ASIDE = re.compile(r" {0,3}(?:(```+|~~~+)|<(details|think|tool-use)\b)")
_RULE = re.compile(r"^---[ \t]*\s*\Z|^<!--.*?-->$", re.MULTILINE)
_ALERT = re.compile(r"^> \[!IMPORTANT\]((?:\n>.*)+)", re.MULTILINE)
_GLYPH = re.compile(r"^(?:([❯›>])|[⏺●•✦✻※]|[ \t]*⎿)(?=\s)", re.MULTILINE)
_TERMINAL = re.compile(
    r"(?=[\s\S]*^[❯›]\s)(?=[\s\S]*^[⏺●✦•]\s)|(?=[\s\S]*^>\s)(?=[\s\S]*^[⏺●]\s)", re.MULTILINE
)
"""Matches text copied from a terminal in which symbols mark the speakers."""
_UNDERLINED = re.compile(r"^(\S.{0,40})\n[-=]{3,}$", re.MULTILINE)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d{1,2}[/.]\d{1,2}[/.]\d{4},?(?: at)? \d{1,2}:\d\d:\d\d(?:\s?[AaPp][Mm])?"
)
_FORMS = (
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y at %H:%M:%S",
    "%d/%m/%Y at %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
)
"""Formats of local times. Those with AM or PM and those of Cursor's exports start with the month.
"""
_ONLY_TIME = re.compile(rf"\W*(?:{_TIME.pattern})\W*")
_SKILL = 'data-tool-name="Skill"'
_ID = re.compile(
    r"<!--[^\n]{0,60}?\bSession:? +([\w-]*\d[\w-]*)|^[^\w\n]{0,9}Session ID[^\w\n:]*:[^\w\n]*([\w.-]+)",
    re.IGNORECASE | re.MULTILINE,
)


@frozen
class _Part:
    speaker: Speaker
    text: str
    heading: str = ""


def _with_headings(text: str) -> str:
    if _ALERT.search(text) and _ID.search(text[:500]):  # the owner's messages are alerts
        return _ALERT.sub(r"_**User**_\1\n_**Agent**_\n", text).replace("\n> ", "\n")
    if not _TERMINAL.match(text):
        return _UNDERLINED.sub(r"## \1", text)
    text = _GLYPH.sub(lambda mark: f"_**{'User' if mark[1] else 'Agent'}**_\n", text)
    return text.replace("\n  ", "\n")


def _read_heading(line: str) -> tuple[str, str, str] | None:
    mark = _MARK.fullmatch(line)
    if mark is None:
        return None
    form, facts = mark["form"], mark["facts"]
    inline = _WORDS.match(facts)
    if inline and not form.startswith("#"):
        form += inline["colon"][:1]
    elif _LETTER.search(inline["words"] if inline else _BRACKETED.sub("", facts) * (form == "**")):
        return None
    name = mark["name"].strip().lower().replace(" ", "_")
    if "sidechain" in facts or "🤖" in line[: mark.start("name")]:
        name = "agent"
    return form, name, inline["words"] if inline else ""


def role_of(name: str) -> Speaker | None:
    """Return the speaker that a name in a heading means, if known."""
    if role := _NAMES.get(name):
        return role
    if _OWNER.fullmatch(name):
        return Speaker.OWNER
    return Speaker.AGENT if _AGENT.fullmatch(name) else None


def _speakers(text: str) -> dict[tuple[str, str], Speaker]:
    forms: dict[str, list[str]] = {}
    for form, name, _ in filter(None, map(_read_heading, text.splitlines())):
        forms.setdefault(form, []).append(name)
    roles_of = {form: list(map(role_of, names)) for form, names in forms.items()}
    for form, roles in sorted(roles_of.items(), key=lambda item: Speaker.OWNER not in item[1]):
        names = forms[form]
        speakers = {name: role for name, role in zip(names, roles, strict=True) if role}
        role, other, step = Speaker.OWNER, Speaker.AGENT, 1
        if role not in roles:
            role, other, step = other, role, -1
        places = [at for at, each_role in enumerate(roles) if each_role is role]
        neighbours = {names[at + step] for at in places if 0 <= at + step < len(names)}
        # A single unknown name next to the owner's headings is the agent's, and vice versa.
        unknown = neighbours - {*speakers}
        is_regular = len(places) > 1 or form.endswith("**") or places[:step] in ([0], [1])
        if len(unknown) == 1 and is_regular and other not in roles:
            speakers[unknown.pop()] = other
        if (places and form == "_**") or any(speakers.get(name) is other for name in neighbours):
            return {(form, name): speaker for name, speaker in speakers.items()}
    return {}


def _parts(text: str, speakers: Mapping[tuple[str, str], Speaker]) -> Iterator[_Part]:
    speaker, heading, time, closing = Speaker.SYSTEM, "", "", ""
    lines: list[str] = []
    for line in text.splitlines():
        form, name, words = _read_heading(line) or ("", "", "")
        next_speaker = speakers.get((form, name)) if not closing else None
        # A heading in a code block or in another style can only end the owner's message.
        if speaker is Speaker.OWNER and not next_speaker and form not in ("", ":"):
            other = role_of(name) or speakers.get((form, name))
            next_speaker = other if other is not Speaker.OWNER else None
        if next_speaker:
            yield _Part(speaker, "\n".join(lines), heading)
            speaker, heading, time, lines = next_speaker, time + line, "", [words]
        elif _ONLY_TIME.fullmatch(line) and not closing:
            # The time is above or below the heading.
            time, heading = (line, heading) if any(lines) else (time, heading + line)
        else:
            aside = None if closing else _ASIDE.match(line)
            if aside:
                closing = aside[1] or f"</{aside[2]}>"
                heading += line
            if not closing.startswith("<"):
                lines.append(line)
            if closing and closing in line[aside.end() if aside else 0 :]:
                closing = ""
    yield _Part(speaker, "\n".join(lines), heading)


def _find_time(text: str) -> datetime | None:
    match = _TIME.search(text)
    if match is None or match[0][4] == "-":
        return parse_time(match[0]) if match else None
    plain = re.sub(r"[,\s]+", " ", match[0])
    for form in _FORMS:
        with contextlib.suppress(OverflowError, ValueError):
            return datetime.strptime(plain, form).astimezone(UTC)
    return None


def _talk(source: Source, session: Session, parts: Iterable[_Part]) -> Items:
    talk = Conversation(source, session)
    expects: str | None = None
    for part in parts:
        cleaned = talk.clean(_RULE.sub("", part.text))
        text, typed_flags = cleaned.text, Flag.NONE
        moment = _find_time(part.heading)
        second = str(moment)[:19]
        if part.speaker is Speaker.OWNER:
            text = interruption(text)[1]
            title, _, feedback = plan_of(text)
            text, typed_flags, host = typed(feedback or title or text)
            # The host expands a command in the same second, or after the agent used a skill.
            if not typed_flags and expects in (second, _SKILL):
                text, host = "", text
            talk.exchange.record(host)
        elif part.speaker is Speaker.TOOL:
            talk.exchange.record(text)
            text = ""
        expects = second if typed_flags & Flag.COMMAND else None
        if _SKILL in part.heading:
            expects = _SKILL
        moment, flags = moment or session.started, cleaned.flags | typed_flags
        yield from talk.write(part.speaker, text, moment, stamp=second, flags=flags)
    yield from talk.end()


ADAPTER_MARKDOWN = Adapter(
    tool=TOOL_MARKDOWN,
    label="Markdown",
    sniff=_sniff_markdown,
    parse=lambda source: _parse(source, TOOL_MARKDOWN, _sections),
    whole=True,
    guesses=True,
    versions="any; SpecStory 2",
    reads="sections; front matter; chats",
    leaves_out="tool calls; tokens",
)
