"""Code and the memories that mention it are stored on both engines."""

from __future__ import annotations

from datetime import timedelta

from nacre.store.schema import Database
from nacre.store.sessions import DeedIndex
from nacre.values.session import Action, ToolCall
from nacre_code.languages import MODULE, Definition
from nacre_code.store import CodeGraph, CodeMentions, Mention, NewFile, Symbol
from tests.storage.samples import DAY, NOON, an_id, memory, numbers, put, put_session, retired, turn


def _file(path: str, *symbols: str, **more: bytes) -> NewFile:
    new_symbols = [
        Definition(name.rpartition(".")[2], name, "function", MODULE, "", at, at + 1)
        for at, name in enumerate(symbols, start=2)
    ]
    return NewFile(
        path, "python", more.get("hash", b"\x00\xff"), more.get("facts", b"\xfe"), new_symbols
    )


def _read(database: Database, project: str, *files: NewFile) -> int:
    store = CodeGraph(database)
    row = store.begin(project, f"/code/{project}", NOON)
    store.put(row, files)
    return row


def _edge(target: int, rel: str, source: int, line: int) -> dict[str, object]:
    return {"target": target, "rel": rel, "source": source, "line": line}


def _import(module: str, file: int, line: int) -> dict[str, object]:
    return {"module": module, "file": file, "line": line}


def test_code_names_match_in_any_letter_case(database: Database) -> None:
    store = CodeGraph(database)
    _read(
        database,
        "b",
        _file("src/Main.py", "Größe", "Größe.messen", "run"),
        _file("SRC/main.py", "GRÖSSE", "RUN", "RUN"),
    )
    _read(database, "a", _file("main.py", "größe"))
    assert [(item.project, item.qualified) for item in store.named("GRÖßE", None)] == [
        ("a", "größe"),
        ("b", "Größe"),
    ]
    assert [(item.path, item.qualified, item.line) for item in store.named("Run", "b")] == [
        ("SRC/main.py", "RUN", 3),
        ("src/Main.py", "run", 4),
    ]
    assert [(item.project, item.path) for item in store.files_named("MAIN.PY", None)] == [
        ("a", "main.py"),
        ("b", "SRC/main.py"),
        ("b", "src/Main.py"),
    ]
    assert store.named("", None) == store.named("r%", None) == []
    (symbol,) = store.named("größe", "b")
    assert isinstance(symbol, Symbol)
    assert store.of_rows([symbol.row, 10**9]) == {symbol.row: symbol}
    assert [sibling.qualified for sibling in store.siblings(symbol)] == ["Größe.messen"]
    (file,) = store.files_named("main.py", "a")
    assert [sibling.qualified for sibling in store.siblings(file)] == ["", "größe"]


def test_code_of_a_project_is_replaced_and_forgotten(database: Database) -> None:
    store = CodeGraph(database)
    row = _read(database, "a", _file("z.py", "x", hash=b"1"), _file("a.py", facts=b"2"))
    _read(database, "b", _file("z.py"))
    store.mark_linked(row)
    assert _read(database, "a") == row
    repository = store.find("a")
    assert repository
    assert (repository.root, repository.read_at, repository.is_linked) == ("/code/a", NOON, False)
    store.mark_linked(row)
    repository = store.find("a")
    assert repository
    assert repository.is_linked
    assert store.projects() == ["a", "b"]
    hashes = store.hashes(row)
    assert {path: digest for path, (_, digest) in hashes.items()} == {
        "z.py": b"1",
        "a.py": b"\x00\xff",
    }
    assert [(path, facts) for _, path, facts in store.facts(row)] == [
        ("a.py", b"2"),
        ("z.py", b"\xfe"),
    ]
    store.drop(row, [hashes["a.py"][0]])
    assert [*store.hashes(row)] == ["z.py"]
    store.forget("a")
    assert store.find("a") is None
    assert store.hashes(row) == {}
    assert store.projects() == ["b"]


def test_edges_are_removed_with_their_source_files(database: Database) -> None:
    store = CodeGraph(database)
    row = _read(database, "a", _file("a.py", "f", "g"), _file("b.py", "h"))
    symbols = {name: number for (_, name), number in store.symbol_rows(row).items() if name}
    files = {path: number for path, (number, _) in store.hashes(row).items()}
    f, g, h = symbols["f"], symbols["g"], symbols["h"]
    store.link(
        [files["a.py"]],
        [
            _edge(h, "calls", f, 3),
            _edge(h, "calls", f, 9),
            _edge(h, "uses", g, 4),
            _edge(g, "calls", f, 5),
        ],
        [
            _import("os.path", files["a.py"], 1),
            _import("os.path", files["a.py"], 7),
            _import("osx", files["a.py"], 2),
        ],
    )
    store.link([files["b.py"]], [_edge(f, "calls", h, 6)], [_import("os", files["b.py"], 8)])
    assert store.counts(row) == (3, 4)
    assert store.edges([h], ["calls", "uses"]) == [(h, "calls", f, 3), (h, "uses", g, 4)]
    assert [(item.path, item.line, module) for item, module in store.importers("os", None, 9)] == [
        ("a.py", 1, "os.path"),
        ("b.py", 8, "os"),
    ]
    assert store.importers("OS", None, 9) == store.importers("os", "b", 9) == []
    store.link([files["a.py"]], [], [])
    assert store.edges([f, g, h], ["calls", "uses"]) == [(f, "calls", h, 6)]
    store.drop(row, [files["a.py"]])
    assert store.counts(row) == (1, 0)


def test_sessions_that_edited_a_file_are_listed_with_counts(database: Database) -> None:
    edit = ToolCall("Edit", "", "ok", Action.EDIT, ("/code/a.py",))
    first = put_session(
        database,
        "one",
        turn("1", tool_calls=(edit,), minutes=1),
        turn("2", tool_calls=(edit,), minutes=3),
        project="p",
    )
    two = put_session(database, "two", turn("1", tool_calls=(edit,)), started=NOON + DAY)
    put_session(database, "three", turn("1", tool_calls=(edit,), minutes=-9))
    put_session(database, "four", turn("1", tool_calls=(edit,)))
    ((file, _),) = DeedIndex(database).all_files()
    edits = CodeGraph(database).edits([file], NOON, None)
    assert [(session, count) for _, session, _, _, count in edits] == [(first, 2), (two, 1)]
    assert edits[0][3] == NOON + timedelta(minutes=3)
    assert edits[1][2:4] == (NOON + DAY, NOON + DAY)
    assert len(CodeGraph(database).edits([file], NOON, "p")) == 1


def test_code_names_match_memories_of_the_project_or_global(database: Database) -> None:
    store = CodeMentions(database)
    put(
        database,
        memory(1, project="p"),
        memory(2, days=1),
        memory(3, project="q"),
        memory(4, **retired()),
        memory(5, evergreen=True),
    )
    assert [item for item, _, _ in store.unread(2)] == [an_id(1), an_id(2)]
    path, marked = Mention("a.py", "src/A.py", "path"), Mention("größe", "Größe", "marked")
    store.put(
        [
            (an_id(1), [path, marked, path]),
            (an_id(2), [path]),
            (an_id(3), [path]),
            (an_id(4), [path]),
            (an_id(5), [path]),
        ]
    )
    store.put([(an_id(1), [marked])])
    assert store.unread(9) == []
    assert store.ending(["a.py", "größe"], "p", 9) == [
        (path, an_id(2)),
        *sorted(((path, an_id(1)), (marked, an_id(1))), key=lambda item: item[0].key),
        (path, an_id(5)),
    ]
    assert store.ending(["A.py"], "p", 9) == []
    assert store.within([an_id(1)]) == {
        an_id(1): [Mention("größe", "Größe", "marked"), Mention("src/a.py", "src/A.py", "path")]
    }
    assert numbers(store.with_paths(None, 9)) == [2, 1, 3]
    assert numbers(store.with_paths("p", 9)) == [1]
    put(database, memory(1, "New words."))
    assert [item for item, _, _ in store.unread(9)] == [an_id(1)]
    assert store.within([an_id(1)]) == {}
