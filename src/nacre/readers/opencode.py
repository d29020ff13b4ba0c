"""OpenCode and Kilo Code: sessions in a database, and OpenCode's older files and exports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from nacre.base.plain import JsonObject, Values, mapping, objects, string, total
from nacre.base.text import answered_by
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Marks,
    Part,
    Places,
    Root,
    Source,
    as_bytes,
    beside,
    has_columns,
    keys_of,
    parse_time,
    plain,
    rows_of,
    statement,
    tables_of,
)
from nacre.readers.messages import IMAGE, Message, say
from nacre.readers.trust import Conversation, names_another
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens

TOOL, KILO = "opencode", "kilo-code"

_QUIET = frozenset(
    "reasoning file step-start step-finish snapshot patch agent subtask retry compaction".split()
)
_DONE = frozenset({"completed", "success", "exited"})
_UNNAMED = re.compile(r"(?:New|Child) session - \d{4}-")


def tool_of(path: Path) -> str:
    """Return the tool that wrote a database: OpenCode or its fork Kilo Code."""
    return KILO if path.name.startswith("kilo") or path.parent.name == "kilo" else TOOL


def session_of(info: Values, *, tool: str = TOOL, project: str | None = None) -> Session:
    """Build a session from OpenCode's session object."""
    parent, title = string(info, "parentID"), string(info, "title")
    return Session(
        tool,
        str(info.get("id")),
        title=None if title and _UNNAMED.match(title) else title,
        cwd=string(info, "directory") or project,
        kind=SessionKind.SUBAGENT if parent else SessionKind.MAIN,
        parent=parent,
        started=parse_time(mapping(info, "time").get("created")),
        tool_version=string(info, "version"),
    )


class Talk:
    """A converter of messages and their parts to turns.

    A message without a time gets the previous message's time.
    """

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)
        self.time = session.started
        self.is_done = True

    def take(self, record: Values, parts: Iterable[Values]) -> Items:
        """Yield the turns of a message, given its parts."""
        self.time = parse_time(mapping(record, "time").get("created")) or self.time
        name = str(record.get("id"))
        message = Message.of(self.source, record.get("role"), self.time, name, [record])
        if message.speaker is Speaker.OWNER:
            for part in parts:
                self.prompt(message, part)
            yield from say(self.talk, message)
        elif message.speaker is Speaker.AGENT:
            yield from self.answer(record, message, parts)

    def prompt(self, message: Message, part: Values) -> None:
        """Add a part of a prompt to ``message``, unless OpenCode wrote it."""
        if part.get("type") != "text":
            self.skip(part)
        elif part.get("ignored"):
            self.talk.exchange.record(self.talk.clean(_text(part)).text)
        elif names_another(part):
            self.talk.exchange.record_outside(self.talk.clean(_text(part)).text)
        elif _text(part).strip():
            message.texts.append(_unquote(_text(part)))

    def answer(self, record: Values, message: Message, parts: Iterable[Values]) -> Items:
        """Yield an answer with its tool calls, or a summary of the session."""
        self.learn(record)
        counts = mapping(record, "tokens")
        cache = mapping(counts, "cache")
        self.talk.spend(
            Tokens(
                total(counts, "input") + total(cache, "write"),
                total(cache, "read"),
                total(counts, "output", "reasoning"),
            )
        )
        if record.get("summary") is True:
            message.speaker, message.flags = Speaker.SYSTEM, Flag.SUMMARY
            message.texts += [_text(part) for part in parts if part.get("type") == "text"]
            yield from say(self.talk, message)
            return
        time = mapping(record, "time")
        self.is_done = bool(time.get("completed") or record.get("error") or record.get("finish"))
        for part in parts:
            step = Message(message.speaker, self.time, message.id)
            if part.get("type") == "tool":
                self.call(step, part)
            elif part.get("type") != "text":
                self.skip(part)
            elif not part.get("ignored") and not part.get("synthetic"):
                step.texts.append(_text(part))
            yield from say(self.talk, step)
        yield from self.stopped(record)

    def stopped(self, message: Values) -> Items:
        """Yield the interruption or error that stopped an answer, if any."""
        error, identity = mapping(message, "error"), f"{message.get('id')}-end"
        name = string(error, "name", "type") or ""
        if "abort" in name.lower():
            yield from self.talk.interrupted(identity, self.time)
        elif error:
            words = string(mapping(error, "data"), "message") or string(error, "message") or name
            yield from self.talk.failed(identity, words, self.time)

    def call(self, message: Message, part: Values) -> None:
        state, call = mapping(part, "state"), part.get("callID") or part.get("id") or message.id
        message.call(call, string(part, "tool", "name"), state.get("input"))
        status, content = state.get("status"), objects(state, "content")
        output = state.get("output") if status in _DONE else state.get("error")
        text = output if isinstance(output, str) else string(output, "message")
        text = text or "\n".join(map(_text, content))
        if any(
            not str(item.get("mime", "text/")).startswith("text/")
            for item in (*objects(state, "attachments"), *content)
        ):
            text += f"\n{IMAGE}"
        if status in _DONE or status == "error":
            code = mapping(state, "metadata").get("exit") if status in _DONE else None
            message.result(call, text, is_error=status == "error", exit_code=code)
        else:
            self.is_done = False

    def learn(self, message: Values) -> None:
        """Update the session's model, and its folder if that is unknown."""
        model_info = message if string(message, "modelID") else mapping(message, "model")
        model = answered_by(string(model_info, "modelID", "id"), string(model_info, "providerID"))
        folder = self.talk.session.cwd or string(mapping(message, "path"), "cwd")
        self.talk.learn(model=model, cwd=folder)

    def skip(self, part: Values) -> None:
        if part.get("type") not in _QUIET:
            self.source.unknown(f"part {part.get('type')}")


def data_folder(places: Places, name: str = TOOL) -> Path:
    """Return a tool's data folder. It follows the XDG rules on every system."""
    return places.folder("XDG_DATA_HOME", ".local", "share") / name


def _unquote(text: str) -> str:
    inner = text[1:-1]  # ``opencode run`` quotes prompts with spaces
    if len(text) < 2 or text[0] != '"' or text[-1] != '"' or '"' in inner.replace('\\"', ""):
        return text
    return inner.replace('\\"', '"')


def _text(part: Values) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else ""


# -- Database ``opencode.db``, since 1.1, with the tables session, message and part. Since 2.0, the
# tables session_v2 and session_message, which also contain all sessions of a migrated database.
# Columns differ between versions, so only existing columns are read. The tables of accounts and
# credentials, and the event log, which repeats everything, are never read.


_COLUMNS = {
    "session": {"id", "time_created", "time_updated"},
    "message": {"id", "session_id", "time_created", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}
_COLUMNS_2 = {
    "session_v2": {"id", "time_created", "time_updated"},
    "session_message": {"id", "session_id", "type", "seq", "time_created", "time_updated", "data"},
}
_KEY_BY_COLUMN = {
    "parent_id": "parentID",
    "fork_session_id": "forkID",
    "fork_boundary": "boundary",
    "directory": "directory",
    "title": "title",
    "version": "version",
}
_QUIET_ROWS = frozenset({"idle", "agent-switched", "model-switched", "location-switched"})
_TYPED = frozenset({"user", "synthetic", "system", "skill"})

Messages = Iterator[tuple[JsonObject, Iterable[Values]]]
"""Messages and their parts, in the format of the older files."""


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables = tables_of(source)
        self.open: list[str] = []

    def __iter__(self) -> Items:
        marks, migrated = Marks(self.source), set()
        if has_columns(self.tables, _COLUMNS_2):
            for session, *mark in self.tables.all(statement("opencode_2_sessions")):
                migrated.add(session)
                if marks.is_new(session, *mark):
                    yield from self.session("session_v2", session, self.rows)
        last = self.source.carry.get("part")
        if has_columns(self.tables, _COLUMNS):
            written = self.written()
            last = self.tables.all(statement("opencode_last_part"))[0][0]
            for session, updated in self.tables.all(statement("opencode_sessions")):
                if session not in migrated and (
                    marks.is_new(session, updated) or session in written
                ):
                    yield from self.session("session", session, self.messages)
        marks.save()
        self.source.carry |= {"part": last, "open": self.open}

    def written(self) -> set[str]:
        last = self.source.carry.get("part")
        rows = self.tables.all(statement("opencode_written"), part=last) if last else []
        return {session for (session,) in rows} | set(self.source.carry.get("open", ()))

    def session(self, table: str, name: str, read: Callable[[JsonObject], Messages]) -> Items:
        for row in rows_of(self.source, table, statement(f"opencode_{table}"), session=name):
            facts = {key: row.get(column) for column, key in _KEY_BY_COLUMN.items()}
            facts |= {"id": name, "time": {"created": row["time_created"]}}
            talk = Talk(Part(self.source), session_of(facts, tool=tool_of(self.source.path)))
            for message, parts in read(facts):
                yield from talk.take(message, parts)
            yield from talk.talk.end()
            if not talk.is_done:
                self.open.append(name)

    def messages(self, facts: JsonObject) -> Messages:
        for message, created, data in self.tables.all(
            statement("opencode_messages"), session=facts["id"]
        ):
            if values := self.values(data, message, created):
                yield values, self.parts(message)

    def parts(self, message: str) -> Iterator[JsonObject]:
        for name, data in self.tables.all(statement("opencode_parts"), message=message):
            if values := self.values(data, name):
                yield values

    def rows(self, facts: JsonObject) -> Messages:
        for row, kind, created, data in self.tables.all(
            statement("opencode_2_messages"),
            session=facts["id"],
            original=facts["forkID"],
            boundary=facts["boundary"],
        ):
            if kind not in _QUIET_ROWS and (values := self.values(data, row, created)):
                yield _in_older_form(kind, values)

    def values(self, data: object, name: str, created: object = None) -> JsonObject | None:
        values = plain(as_bytes(data))
        if isinstance(values, dict):
            time = values.get("time")
            time = time if isinstance(time, Mapping) else {"created": created}
            return {**values, "id": name, "time": time}
        self.source.corrupt()
        return None


def _in_older_form(kind: str, row: JsonObject) -> tuple[JsonObject, Iterable[Values]]:
    if kind == "compaction":
        summary = {"type": "text", "text": row.get("summary")}
        return {**row, "role": "assistant", "summary": True}, [summary]
    if kind == "shell":
        state = {
            "status": "completed",
            **row,
            "input": {"command": row.get("command")},
            "output": string(row.get("output"), "output"),
            "metadata": row,
        }
        return {**row, "role": "assistant"}, [{"type": "tool", "tool": kind, "state": state}]
    if kind in _TYPED:
        part = {"type": "text", "text": row.get("text"), "synthetic": kind != "user"}
        return {**row, "role": "user"}, [part]
    return {**row, "role": kind}, objects(row, "content")


def _roots(places: Places, name: str = TOOL) -> Sequence[Root]:
    roots = [Root(data_folder(places, name), (f"{name}.db", f"{name}-*.db"))]
    configured = places.environ.get("OPENCODE_DB") if name == TOOL else None
    if configured and configured != ":memory:":
        path = data_folder(places) / Path(configured).expanduser()
        roots.append(Root(path.parent, (path.name,)))
    return roots


def _sniff(head: Head, tool: str = TOOL) -> bool:
    is_known = has_columns(head.database, _COLUMNS) or has_columns(head.database, _COLUMNS_2)
    return is_known and tool_of(head.path) == tool


ADAPTER = Adapter(
    tool=TOOL,
    label="OpenCode",
    roots=_roots,
    sniff=_sniff,
    parse=_Reader,
    resume=("opencode", "--session", "{id}"),
    versions="1.16 to 1.18, 2.0*",
    reads="version; sub-agents; forks; summaries; interruptions; errors",
    leaves_out="snapshots; todos; accounts",
)
ADAPTER_KILO = replace(
    ADAPTER,
    tool=KILO,
    label="Kilo Code",
    roots=partial(_roots, name="kilo"),
    sniff=partial(_sniff, tool=KILO),
    resume=("kilo", "--session", "{id}"),
    versions="7.2*",
)


# -- Files ``storage/session/<project>/<session>.json``, before 1.1, with messages and parts in separate files
# The oldest versions keep sessions, messages and parts below ``storage/session``. An export
# (``opencode export``) is one file with the same objects. A session is read again when its file or
# a message changes. OpenCode rewrites a message when it is complete.


_MAX_FLAT_PARTS = 20_000
_SAFE_NAME = re.compile(r"[\w.-]+")


def parse_files(source: Source) -> Items:
    """Parse a session that is stored in separate files or in an export."""
    values = plain(source.text())
    if not isinstance(values, dict):
        source.corrupt()  # the file may be incomplete
    elif isinstance(values.get("messages"), list):
        talk = Talk(source, session_of(mapping(values, "info")))
        for message in objects(values, "messages"):
            yield from talk.take(mapping(message, "info"), objects(message, "parts"))
        yield from talk.talk.end()
    else:
        yield from _session(source, values)


def _session(source: Source, values: Values) -> Items:
    name = str(values.get("id"))
    folders = _Folders(source.path)
    project = string(folders.project(values), "worktree")
    talk = Talk(source, session_of(values, project=project if project != "/" else None))
    for message in sorted(_read(source, folders.messages(name)), key=_order):
        parts = folders.parts(name, str(message.get("id")))
        yield from talk.take(message, _read(source, parts))
    yield from talk.talk.end()


def _read(source: Source, paths: Iterable[Path]) -> Iterator[JsonObject]:
    for values in map(beside, paths):
        if isinstance(values, dict):
            yield values
        else:
            source.corrupt()


class _Folders:
    def __init__(self, path: Path) -> None:
        is_old = path.parent.name == "info"
        self.storage = path.parent.parent if is_old else path.parent.parent.parent
        self._is_old = is_old
        self._flat: dict[str, list[Path]] | None = None

    def project(self, values: Values) -> Values:
        name = string(values, "projectID")
        is_safe = name and _SAFE_NAME.fullmatch(name)
        return mapping(beside(self.storage / "project" / f"{name}.json")) if is_safe else {}

    def messages(self, session: str) -> list[Path]:
        return _files(self.storage / "message" / session) if _SAFE_NAME.fullmatch(session) else []

    def parts(self, session: str, message: str) -> list[Path]:
        if not _SAFE_NAME.fullmatch(message):
            return []
        top = self.storage / "part"
        files = _files(top / session / message if self._is_old else top / message)
        # Some versions keep all parts in one folder.
        return files or self.flat().get(message, [])

    def flat(self) -> dict[str, list[Path]]:
        if self._flat is None:
            self._flat = {}
            for path in _files(self.storage / "part")[:_MAX_FLAT_PARTS]:
                part = beside(path)
                if isinstance(part, dict):
                    self._flat.setdefault(str(part.get("messageID")), []).append(path)
        return self._flat


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def _order(message: Values) -> tuple[float, str]:
    created = mapping(message, "time").get("created")
    return (created if isinstance(created, int | float) else 0, str(message.get("id")))


def _messages_of(path: Path) -> Iterator[Path]:
    if path.name.endswith(".json") and path.parent.parent.name == "session":
        yield from _Folders(path).messages(path.stem)


def _sniff_files(head: Head) -> bool:
    keys = keys_of(head)
    is_export = {"info", "messages"} <= keys and '"sessionID"' in head.text
    return is_export or ({"id", "time", "title"} <= keys and bool({"projectID", "version"} & keys))


def _roots_files(places: Places) -> Sequence[Root]:
    patterns = ("storage/session/*/*.json", "project/*/storage/session/info/*.json")
    return [Root(data_folder(places), patterns)]


ADAPTER_FILES = replace(
    ADAPTER,
    roots=_roots_files,
    sniff=_sniff_files,
    parse=parse_files,
    beside=_messages_of,
    versions="0.1 to 1.3, exports*",
)
