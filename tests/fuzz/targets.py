"""What every parser promises, for any bytes: one function a parser, which raises when the promise is broken.

The same functions serve the hypothesis tests, the coverage-guided fuzzer and the corpora.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import msgspec

from nacre.base.text import identifiers, pieces
from nacre.base.times import find_window, parse_moment
from nacre.data.importers import (
    SOURCES,
    ImportedMemory,
    ImportSource,
    Item,
    Operation,
    Page,
    Skipped,
    Talk,
    get_source,
    open_tree,
)
from nacre.errors import (
    InvalidInputError,
    InvalidMemoryError,
    InvalidQueryError,
    InvalidSettingsError,
    UnreadableTranscriptError,
)
from nacre.home.location import redact
from nacre.home.parsing import open_transcript
from nacre.learn.extract import extract
from nacre.llm.calibration import calibration_of
from nacre.memories.judge import judge
from nacre.memories.statements import read as read_statement
from nacre.readers.adapter import SUFFIXES, Adapter, FileSource, Head, Places, plain
from nacre.readers.cursor import CHAT, COMPOSERS, PROMPTS, read_fields
from nacre.readers.registry import adapters
from nacre.recall.question import read_question
from nacre.redact.redactor import Redactor
from nacre.settings import load_settings, write_setting
from nacre.values.memory import Kind, Memory
from nacre.values.session import Cursor, Session, Speaker, Trust, Turn
from nacre.vault import documents, files
from nacre.vault.documents import adopt, parse, render, rewrite
from nacre.vault.files import folder_of, path_for, place_of, slugify
from tests import agents
from tests.app.agent_shapes import write_hermes
from tests.fuzz.bundles import unpack
from tests.stores import (
    OpenClaw,
    OpenCode,
    OpenCode2,
    bubble,
    conversation,
    write_state,
    write_store,
)

Target = Callable[[bytes], None]
Turns = dict[tuple[str, str], Turn]

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
_ID = "0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81"
_LONGEST = 20_000
_MTIME = 1_795_003_200
_REDACTOR = Redactor()
SECRETS = (
    "ghp_" + "a1B2" * 9,
    "AKIA" + "Q3ZJ7XPLM2VTKD4N",
    "npm_" + "k9Xw" * 9,
    "postgres://billing:s3cretpassw0rd@db.example.org/ledger",
)


def transcript(adapter: Adapter) -> Target:
    """No bytes make an adapter raise; of a torn zip, read as a whole, it may say that it cannot be read.

    A file that is read as it grows gives what it gives in one reading.
    """

    def check(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="nacre-fuzz-") as folder:
            path = Path(folder, "2026-11-20 talk.jsonl")
            path.write_bytes(data)
            adapter.sniff(Head(path, data[:65_536]))
            try:
                whole, _ = _said(adapter, path, None)
            except UnreadableTranscriptError:
                assert adapter.whole
                return
            if adapter.whole:
                return
            cut = int.from_bytes(hashlib.blake2b(data, digest_size=4).digest()) % (len(data) + 1)
            if _ends_within_an_object(data, cut):
                return
            path.write_bytes(data[:cut])
            early, cursor = _said(adapter, path, None)
            path.write_bytes(data[: cursor.offset])
            sure, _ = _said(adapter, path, None)
            path.write_bytes(data)
            late, _ = _said(adapter, path, cursor)
            _compare(sure, {**early, **late}, whole)

    return check


def _compare(sure: Turns, found: Turns, whole: Turns) -> None:
    """Two readings against one.

    What the second reading began with may be told otherwise by what follows it; ``sure`` lies before that. And of text
    from outside that was read before the cut only its being there is known, so that more is untrusted, never less.
    """
    assert whole.keys() <= found.keys()
    assert found.keys() - whole.keys() <= found.keys() - sure.keys()
    for key in whole:
        assert replace(found[key], trust=whole[key].trust) == whole[key]
        assert whole[key].trust is Trust.TRUSTED or found[key].trust is Trust.UNTRUSTED, key


def _ends_within_an_object(data: bytes, cut: int) -> bool:
    """A line that is cut where an object ends is taken for complete, as some tools leave it: then it must be so."""
    rest = data[cut:].split(b"\n", 1)[0].strip()
    return bool(rest) and data[:cut].rstrip().endswith(b"}")


def _said(adapter: Adapter, path: Path, cursor: Cursor | None) -> tuple[Turns, Cursor]:
    os.utime(path, (_MTIME, _MTIME))  # some formats know no other time
    found: Turns = {}
    session: Session | None = None
    with FileSource(path, cursor) as source:
        for item in adapter.parse(source):
            if isinstance(item, Session):
                session = item
                msgspec.json.encode(item.native_id)
                continue
            assert session is not None, "a turn before its session"
            assert item.time is None or item.time.tzinfo is not None
            found[session.id, item.id] = item
        carried = msgspec.json.decode(msgspec.json.encode(source.carry))
        return found, replace(source.cursor(), carry=carried)


DATABASES = {
    name
    for name, adapter in adapters().items()
    for root in adapter.roots(Places(Path(), {}, "linux"))
    if root.patterns[0].endswith(SUFFIXES)
}
"""Adapters, by name, of what lies in databases."""


def databases(data: bytes) -> None:
    """Whatever stands in the tables of a tool, its adapter reads what there is; and no bytes are a database that
    makes nacre fail otherwise than by saying so.
    """
    with tempfile.TemporaryDirectory(prefix="nacre-fuzz-") as folder:
        for name in DATABASES:
            file, write = STORES[name]
            path = Path(folder, name, file)
            write(path, data)
            with open_transcript(path) as (adapter, source):
                assert adapter is adapters()[name]
                _check(adapter.parse(source))
                msgspec.json.encode(source.carry)
        torn = Path(folder, "torn.db")
        torn.write_bytes(
            Path(folder, "cursor-state", "state.vscdb").read_bytes()[: len(data) * 40] + data
        )
        with contextlib.suppress(InvalidInputError), open_transcript(torn) as (adapter, source):
            _check(adapter.parse(source) if adapter else iter(()))


def _check(items: Iterator[Session | Turn]) -> None:
    session: Session | None = None
    for item in items:
        if isinstance(item, Session):
            session = item
            continue
        assert session is not None, "a turn before its session"
        assert item.time is None or item.time.tzinfo is not None
        msgspec.json.encode(item.text.encode("utf-8", errors="strict").decode())


def _state(path: Path, data: bytes) -> None:
    values = {
        "composerData:c2": data,
        "bubbleId:c1:b1": data,
        **conversation("c1", [bubble(1, "x", bubbleId="b2")]),
    }
    values["composerData:c1"]["fullConversationHeadersOnly"].append({"bubbleId": "b1"})
    write_state(path, dict.fromkeys((CHAT, COMPOSERS, PROMPTS), data), values)


def _opencode(path: Path, data: bytes) -> None:
    store = OpenCode(path, "delete")
    store.session("ses_1")
    store.message("ses_1", "user", {"text": "x"})
    text = data.decode("utf-8", errors="replace")
    store.connection.execute("UPDATE part SET data = ?", (text,))
    store.connection.execute("INSERT INTO message VALUES ('msg_9', 'ses_1', 'x', 0, ?)", (text,))
    store.connection.execute("UPDATE session SET title = ?, directory = ?", (text, text))
    store.close()


def _opencode_2(path: Path, data: bytes) -> None:
    store = OpenCode2(path)
    store.session("ses_1")
    text = data.decode("utf-8", errors="replace")
    store.session("ses_2", fork_session_id="ses_1", fork_boundary=text)
    for kind in ("user", "assistant", "shell", "compaction", text):
        row = store.row("ses_2", kind, {})
        store.connection.execute("UPDATE session_message SET data = ? WHERE id = ?", (text, row))
    store.close()


def _openclaw(path: Path, data: bytes) -> None:
    store = OpenClaw(path, "delete")
    store.window("s1")
    store.connection.execute(
        "UPDATE transcript_events SET event_json = ?", (data.decode("utf-8", errors="replace"),)
    )
    store.event("s1", {}, packed=data or b"x")
    store.close()


def _hermes(path: Path, data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    records = [
        {"role": "user", "content": text},
        {"role": "user", "content": f"\0json:{text}"},
        {"role": "assistant", "content": "x", "tool_calls": text},
        {"role": "tool", "content": text, "tool_call_id": "c1"},
        {"role": text, "content": "x"},
    ]
    path.unlink(missing_ok=True)
    write_hermes(path, records, model_config=text, title=text, cwd=text)


def _crush(path: Path, data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    agents.write_crush(path, {text: [{"id": "1", "role": "user", "created_at": 1, "parts": text}]})


def _goose(path: Path, data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    message = {"id": "1", "role": "user", "created": 1, "content": text, "metadata": text}
    agents.write_goose(
        path, {"s1": [message, {**message, "role": "assistant"}]}, model_config_json=text
    )


def _kiro(path: Path, data: bytes) -> None:
    value = plain(data)
    history = value if isinstance(value, list) else [value, [value, value]]
    agents.write_kiro(path, {"k1": [*history, {"user": value, "assistant": value}]})


def _zed(path: Path, data: bytes) -> None:
    value = plain(data)
    messages = [value, {"User": value}, {"Agent": value}, {"role": "user", "segments": value}]
    agents.write_zed(path, {"z1": {"messages": messages, "model": value}}, folder_paths=str(value))


STORES: dict[str, tuple[str, Callable[[Path, bytes], object]]] = {
    "cursor-state": ("state.vscdb", _state),
    "cursor-store": (
        "store.db",
        lambda path, data: write_store(
            path, [data, {"role": "user", "content": "x"}], listed=len(data) % 2 == 0
        ),
    ),
    "opencode": ("opencode.db", _opencode),
    "kilo-code": ("kilo.db", _opencode_2),
    "openclaw-store": ("openclaw-agent.sqlite", _openclaw),
    "hermes": ("state.db", _hermes),
    "crush": ("crush.db", _crush),
    "goose": ("sessions.db", _goose),
    "kiro-cli": ("data.sqlite3", _kiro),
    "zed": ("threads.db", _zed),
}
"""By the name of the adapter: the name of a database, and what writes one with any bytes in it."""


def protobuf(data: bytes) -> None:
    """Bytes are fields from end to end, or none."""
    fields = read_fields(data)
    assert fields is None or sum(len(value) for _, value in fields) <= len(data)


def document(data: bytes) -> None:
    """A file is a memory or InvalidMemoryError; a memory survives being written, rewritten and read again."""
    text = data.decode("utf-8", errors="replace")
    path = "global/fact/note.md"
    try:
        memory = parse(text, path, new_id=lambda: _ID, modified=NOW)
    except InvalidMemoryError:
        return
    assert _read(render(memory), path) == memory
    assert _read(rewrite(text, memory), path) == memory
    changed = replace(
        memory,
        importance=memory.importance % 10 + 1,
        tags=("new", "a b: c"),
        links=(),
        author="me # you",
    )
    written = rewrite(text, changed)
    assert _read(written, path) == changed
    assert _comments(text) <= _comments(written)
    if "id" not in documents.load(documents.split(text)[0] or ""):
        assert _read(adopt(text, {"id": _ID}), path) == memory
    place_of(path_for(memory, lambda taken: False))


def _read(text: str, path: str) -> Memory:
    return parse(text, path, new_id=lambda: _ID, modified=NOW)


def _comments(text: str) -> set[str]:
    front, _ = documents.split(text)
    return {line for line in (front or "").split("\n") if line.startswith("#")}


def ledger_lines(data: bytes) -> None:
    """Any bytes are a ledger; what is an entry survives being written again."""
    for entry in files.read(data):
        assert list(files.read(entry.line().encode("utf-8"))) == [entry]


def config(data: bytes) -> None:
    """Any bytes are a configuration or InvalidSettingsError; setting a value keeps the others."""
    with tempfile.TemporaryDirectory(prefix="nacre-fuzz-") as folder:
        path = Path(folder, "config.toml")
        path.write_bytes(data)
        environ = {"HOME": folder}
        try:
            before = load_settings(folder, environ)
            write_setting(path, "recall.limit", 7)
        except InvalidSettingsError:
            return
        after = load_settings(folder, environ)
        assert after["recall.limit"] == 7
        assert all(after[key] == before[key] for key in before.values if key != "recall.limit")


def imported(source: ImportSource) -> Target:
    """Whatever lies where another memory wrote, an import recognises it or not, and what it reads is well formed.

    What it finds in files, in zips and in databases, be they damaged, is a memory that survives being written and read;
    that they are damaged as a whole is InvalidInputError.
    """

    def check(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="nacre-fuzz-") as folder:
            path = unpack(data, Path(folder))
            try:
                tree = open_tree(path, _REDACTOR.clean)
            except InvalidInputError:
                return
            source.recognise(tree)
            with contextlib.suppress(InvalidInputError):
                for item in source.read(tree):
                    _check_item(item)

    return check


def _check_item(item: Item) -> None:
    match item:
        case ImportedMemory(memory, usage):
            assert usage is None or 0 <= usage.quality <= 1
            _check_memory(memory)
        case Skipped(where, reason):
            msgspec.json.encode((_sound(where), reason))
        case Page(path, document):
            assert path == "profile.md" or path.startswith("projects/")
            assert ".." not in Path(path).parts
            msgspec.json.encode(_sound(document))
        case Operation(values):
            list(files.read(files.encode(values)))
        case Talk(session, _, _, turns):
            msgspec.json.encode([_sound(session.id), *(_sound(turn.text) for turn in turns)])


def _check_memory(memory: Memory) -> None:
    """As it is placed: in a folder that is one, under a name that is one."""
    assert UUID(memory.id).version == 7
    assert memory.created.tzinfo is not None
    with contextlib.suppress(InvalidMemoryError):
        memory = redact(_REDACTOR, memory)
        memory = replace(memory, project=slugify(memory.project or "") or None, confirmed=())
        path = path_for(memory, lambda taken: False)
        place_of(path)
        assert _read(render(memory), path) == memory


def _sound(text: str) -> str:
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _stored(data: bytes) -> str:
    """A text as it is stored: without half characters."""
    return data[:_LONGEST].decode("utf-8", errors="replace")


def _text(data: bytes) -> str:
    """A text, with half a character for every substitute character (0x1a)."""
    return data[:_LONGEST].decode("utf-8", errors="replace").replace("\x1a", "\ud83d")


def redaction(data: bytes) -> None:
    """Redaction never raises, finds a planted secret whatever stands around it, and has nothing to do twice."""
    text = _text(data)
    secret = SECRETS[len(data) % len(SECRETS)]
    cut = len(text) // 2
    clean = _REDACTOR.clean(f"{text[:cut]}\n{secret}\n{text[cut:]}")
    assert secret not in clean
    assert _REDACTOR.clean(clean) == clean


def time_words(data: bytes) -> None:
    """Any text holds a time or none."""
    text = _text(data)
    window = find_window(text, NOW)
    assert window is None or window.since is None or window.since.tzinfo is not None
    with contextlib.suppress(InvalidQueryError):
        assert parse_moment(text, NOW).tzinfo is not None


def question(data: bytes) -> None:
    """Any text is a question."""
    text = _text(data)
    read_question(text, now=NOW, authors=("Mara", "Will (2)"), projects=("acme-billing",))
    identifiers(text)
    assert all(0 < len(piece) <= 90 for piece in pieces(text, 90))


def statement(data: bytes) -> None:
    """Any two texts can be compared, either way round."""
    text = _stored(data)
    read_statement(text, "acme-billing")
    earlier, later = (
        Memory(id=_ID, kind=Kind.FACT, subject=half[:80], content=half, created=NOW, updated=NOW)
        for half in (text[: len(text) // 2], text[len(text) // 2 :])
    )
    for cosine in (None, 0.9):
        judge(earlier, later, cosine, calibration_of(None))
        judge(later, earlier, cosine, calibration_of(None))


def extraction(data: bytes) -> None:
    """Any session can be extracted from; what is found has words."""
    parts = _stored(data).split("\n\n")[:60]
    speakers = (Speaker.OWNER, Speaker.AGENT)
    turns = [
        Turn(f"t{number}", speakers[number % 2], part, NOW) for number, part in enumerate(parts)
    ]
    for candidate in extract(Session("claude-code", "s1", cwd="/code/acme"), turns):
        assert candidate.content.strip()
        assert candidate.subject.strip()


def names(data: bytes) -> None:
    """Whatever a person, a transcript or another machine calls a thing, its file stays inside the vault."""
    text = _text(data)
    slug = slugify(text)
    assert slugify(slug) == slug
    assert len(slug) <= 62
    assert len(slug.encode("utf-8")) <= 122
    assert not set(slug) & set('./\\:*?"<>|\0\n\t ~$')
    assert not slug.startswith("-")
    assert slug.isprintable()
    memory = Memory(
        id=_ID,
        kind=Kind.FACT,
        subject=text,
        content="words",
        created=NOW,
        updated=NOW,
        project=slug or None,
    )
    path = path_for(memory, lambda taken: False)
    assert path.startswith(f"{folder_of(memory)}/")
    assert ".." not in Path(path).parts
    assert not Path(path).is_absolute()
    assert len(path.split("/")) == (4 if slug else 3)
    assert place_of(path).project == memory.project


TARGETS: dict[str, Target] = {
    **{name: transcript(adapter) for name, adapter in adapters().items() if name not in DATABASES},
    **{f"import-{name}": imported(get_source(name)) for name in SOURCES},
    "databases": databases,
    "protobuf": protobuf,
    "document": document,
    "ledger": ledger_lines,
    "config": config,
    "redaction": redaction,
    "time-words": time_words,
    "question": question,
    "statement": statement,
    "extraction": extraction,
    "names": names,
}
