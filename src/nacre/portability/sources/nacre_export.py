"""nacre's own exports: the JSON lines, the zip of Markdown files, the vault's folder itself, or what nacre extract
--json answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from nacre.errors import InvalidInput, MemoryInvalid
from nacre.platform import json_text
from nacre.platform.ids import from_ms
from nacre.portability.sources.shape import (
    cleaned,
    imported_id,
    json_of,
    listed,
    moment,
    named,
    project_of,
)
from nacre.portability.sources.source import Found, ImportSource, Item, Operation, Page, Skipped, Talk
from nacre.portability.sources.tree import Tree, safe_name
from nacre.values import portable
from nacre.values.memory import Memory
from nacre.values.review import Usage
from nacre.values.session import Action, Flag, Session, SessionKind, Speaker, Tokens, ToolCall, Trust, Turn
from nacre.vault.document import as_text, assemble, parse
from nacre.vault.front_matter import load, split
from nacre.vault.layout import LEDGER, is_memory_file

NAME = "nacre"

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_EXTRACTED = re.compile(rb'\s*\{\s*"sessions"\s*:\s*\[\s*(?:\]|\{\s*"session"\s*:)')
_PAGE = re.compile(r"(?:identity|IDENTITY|profile|projects/[^/]+/project)\.md")
_SPOILT = "export it again; the zip of Markdown files (nacre export vault.zip) may be edited by hand"

Values = Mapping[str, Any]


def _recognise(tree: Tree) -> bool:
    if tree.single:
        first = tree.head(tree.names[0]).split(b"\n", 1)[0]
        return (b'"format"' in first and portable.FORMAT.encode() in first) or _is_extracted(tree)
    return any(_is_own(tree, name) for name in tree.names if is_memory_file(name))


def _is_own(tree: Tree, name: str) -> bool:
    try:
        front, _ = split(tree.text(name) or "")
        return bool(front) and {"id", "kind"} <= load(front or "").keys()
    except MemoryInvalid:
        return False


def _is_extracted(tree: Tree) -> bool:
    return tree.single and bool(_EXTRACTED.match(tree.head(tree.names[0])))


def _read(tree: Tree) -> Iterator[Item]:
    yield from _extracted(tree) if _is_extracted(tree) else _lines(tree) if tree.single else _files(tree)


def _extracted(tree: Tree) -> Iterator[Item]:
    """The memories of each session; its candidates are left to the ingest, which keeps them for review."""
    for session in _objects(named(json_of(tree, tree.names[0])).get("sessions")):
        name, cwd = str(session.get("session")), _text(session, "cwd")
        for memory in _objects(session.get("memories")):
            front = {key: value for key, value in memory.items() if key not in ("content", "turn_ids")}
            content = _text(memory, "content") or ""
            front |= {
                "id": imported_id(NAME, f"{name}#{content}", moment(session.get("started"))),
                "source": {"session": name, "turns": memory.get("turn_ids")},
            }
            found = _from_line(tree, 1, {"front": {"created": session.get("started"), **front}, "content": content})
            yield replace(found, cwd=cwd) if isinstance(found, Found) else found
        for candidate in _objects(session.get("candidates")):
            yield Skipped(name, f"a candidate: {candidate.get('why')}")


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in listed(value) if isinstance(item, dict)]


def _files(tree: Tree) -> Iterator[Item]:
    for name in tree.names:
        if name == LEDGER:
            lines = (tree.text(name) or "").split("\n")
            yield from (Operation(values) for line in lines if (values := _object(tree, line)))
        elif _PAGE.fullmatch(name):
            yield Page(name, tree.clean(tree.text(name) or ""))
        elif is_memory_file(name):
            yield _from_file(tree, name)


def _from_file(tree: Tree, name: str) -> Item:
    text = tree.text(name)
    if text is None:
        return Skipped(name, "it is too large, or no text")
    modified = tree.leaves[name].modified
    return _checked(
        tree,
        name,
        lambda: parse(_without_secrets(tree, text), name, new_id=lambda: _no_id(tree, name), modified=modified),
        None,
    )


def _without_secrets(tree: Tree, text: str) -> str:
    """A document whose body is clean, before a heading is taken from it; its front matter is taken apart first."""
    _, body = split(text)
    return text.removesuffix(body) + tree.clean(body)


def _lines(tree: Tree) -> Iterator[Item]:
    """Every line in order; at the end the trailer proves that the file is whole. Raises InvalidInput."""
    digest, lines, closed = hashlib.sha256(), 0, False
    talk: tuple[Session, Values, list[Turn]] | None = None
    with tree.path_of(tree.names[0]).open("rb") as file:
        for line in file:
            values = _object(tree, line) or {}
            kind = values.get("type")
            if kind == portable.TRAILER:
                closed = values.get("lines") == lines and values.get("sha256") == digest.hexdigest()
                break
            digest.update(line)
            lines += 1
            if talk and kind != portable.TURN:
                yield _talk(talk)
                talk = None
            if kind == portable.SESSION:
                talk = (_session(values), values, [])
            elif kind == portable.TURN and talk:
                talk[2].append(_turn(values))
            else:
                yield from _item(tree, lines, values)
    if talk:
        yield _talk(talk)
    if not closed:
        raise InvalidInput(f"{tree.root} is not whole: its end is missing, or it was changed", hint=_SPOILT)


def _item(tree: Tree, line: int, values: Values) -> Iterator[Item]:
    kind = values.get("type")
    if kind == portable.HEADER:
        if not isinstance(values.get("version"), int) or values["version"] > portable.VERSION:
            raise InvalidInput(f"{tree.root} was written by a newer nacre", hint="upgrade nacre, then import it")
    elif kind == portable.MEMORY:
        yield _from_line(tree, line, values)
    elif kind == portable.PAGE and _PAGE.fullmatch(str(values.get("path"))):
        yield Page(str(values["path"]), str(values.get("document") or ""))
    elif kind == portable.LEDGER_ENTRY and isinstance(values.get("entry"), dict):
        yield Operation(values["entry"])
    elif kind != portable.LINK:  # likeness is found again, use together begins anew
        yield Skipped(f"line {line}", f"a record nacre does not know: {kind}")


def _from_line(tree: Tree, line: int, values: Values) -> Item:
    front, path = values.get("front"), str(values.get("path") or "")
    if not isinstance(front, dict) or (path and not safe_name(path)):
        return Skipped(f"line {line}", "it is no memory")
    where = path or f"line {line}"
    modified = moment(front.get("created")) or tree.leaves[tree.names[0]].modified

    def make() -> Memory:
        said = {str(key): as_text(value) for key, value in front.items()}
        body = str(values.get("content") or "")
        return assemble(said, body, path or "memory.md", new_id=lambda: _no_id(tree, where), modified=modified)

    return _checked(tree, where, make, _usage(values.get("usage")))


def _checked(tree: Tree, where: str, make: Callable[[], Memory], usage: Usage | None) -> Item:
    """A memory that is well formed: its id is one, its project a folder's name."""
    try:
        memory = make()
    except MemoryInvalid as error:
        return Skipped(where, error.message)
    if not _ID.fullmatch(memory.id):
        memory = replace(memory, id=imported_id(NAME, memory.id, None))
    return Found(replace(memory, project=project_of(tree.clean(memory.project or ""))), usage)


def _no_id(tree: Tree, where: str) -> str:
    return imported_id(NAME, f"{tree.root}#{where}", None)


def _usage(values: object) -> Usage | None:
    if not isinstance(values, dict):
        return None
    try:
        return Usage(
            int(values.get("recall_count") or 0), moment(values.get("last_recalled")),
            tuple(int(at) for at in values.get("recall_intervals") or ())[-100:],
            int(values.get("contradictions") or 0), min(1.0, max(0.0, float(values.get("quality", 0.5)))),
            int(values.get("access_count") or 0),
        )  # fmt: skip
    except (TypeError, ValueError, OverflowError):
        return None


def _session(values: Values) -> Session:
    text = {name: _text(values, name) for name in ("title", "cwd", "branch", "parent", "tool_version", "model")}
    kind = _text(values, "kind")
    return Session(
        _text(values, "tool") or "unknown", _text(values, "id") or "unknown",
        kind=SessionKind(kind) if kind in list(SessionKind) else SessionKind.MAIN, started=_time(values, "started"),
        tokens=_tokens(values.get("tokens")), **text,
    )  # fmt: skip


def _tokens(counts: object) -> Tokens | None:
    is_sound = isinstance(counts, list) and len(counts) == 3 and all(type(count) is int for count in counts)
    return Tokens(*counts).bounded if isinstance(counts, list) and is_sound else None


def _talk(talk: tuple[Session, Values, list[Turn]]) -> Talk:
    session, values, turns = talk
    return Talk(session, project_of(_text(values, "project")), _text(values, "file"), tuple(turns))


def _turn(values: Values) -> Turn:
    speaker, trust = _text(values, "speaker"), _text(values, "trust")
    tools, flags = values.get("tools"), values.get("flags")
    calls = (
        [call for call in tools if isinstance(call, list) and 3 <= len(call) <= 7] if isinstance(tools, list) else []
    )
    return Turn(
        _text(values, "id") or "unknown", Speaker(speaker) if speaker in list(Speaker) else Speaker.AGENT,
        _text(values, "text") or "", _time(values, "time"),
        tuple(_call(*call) for call in calls),
        Flag(flags & 63) if isinstance(flags, int) else Flag.NONE,
        Trust.TRUSTED if trust == "trusted" else Trust.UNTRUSTED,
        _text(values, "author"), unique=values.get("unique") is True,
    )  # fmt: skip


def _call(
    name: object, brief: object, result: object, action: object = None, paths: object = None, error: object = None,
    made: object = None,
) -> ToolCall:  # fmt: skip
    known = Action(str(action)) if action in list(Action) else Action.OTHER
    return ToolCall(str(name), str(brief or ""), _or_none(result), known, _texts(paths), _or_none(error), _texts(made))


def _texts(values: object) -> tuple[str, ...]:
    return tuple(str(value) for value in values) if isinstance(values, list) else ()


def _or_none(value: object) -> str | None:
    return None if value is None else str(value)


def _text(values: Values, name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) and value else None


def _time(values: Values, name: str) -> datetime | None:
    value = values.get(name)
    try:
        return from_ms(round(value)) if isinstance(value, int | float) else None
    except (OverflowError, ValueError):
        return None


def _object(tree: Tree, line: bytes | str) -> dict[str, Any] | None:
    try:
        value = cleaned(json_text.parse(line), tree.clean)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


SOURCE = ImportSource(NAME, "nacre export", _recognise, _read)
