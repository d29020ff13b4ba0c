"""The edges found in repositories of every language match the hand-written lists."""

from __future__ import annotations

import ast
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nacre_code.languages import read_code
from symbols.repositories import SAMPLES
from tests.cli.conftest import SOURCE, Nacre

RELATIONS = ("calls", "imports", "inherits")
EDGES = """
SELECT e.rel, sf.path || iif(s.qualified = '', '', '#' || s.qualified) || ' -> '
    || tf.path || iif(t.qualified = '', '', '#' || t.qualified)
FROM code_edges e JOIN code_symbols s ON s.row = e.source JOIN code_files sf ON sf.row = s.file
    JOIN code_symbols t ON t.row = e.target JOIN code_files tf ON tf.row = t.file
"""


def stored_edges() -> dict[str, set[str]]:
    edges: dict[str, set[str]] = {rel: set() for rel in RELATIONS}
    with closing(sqlite3.connect(Path(os.environ["NACRE_HOME"]) / "nacre.db")) as database:
        for rel, edge in database.execute(EDGES):
            edges[rel].add(edge)
    return edges


@pytest.mark.parametrize("name", SAMPLES)
def test_edges_match_the_annotated_edges(nacre: Nacre, tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    nacre("graph", "ingest-code", str(sample.write(tmp_path / "code")), "--project", "sample")
    edges = stored_edges()
    for rel in RELATIONS:
        assert edges[rel] == sample.edges(rel)


def calls_by_ast(source: str) -> set[tuple[str, str]]:
    """Return the innermost definition around each Python call and the called name, from Python's
    parser."""

    def walk(node: ast.AST, around: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from walk(decorator, around)
            around, node.decorator_list = f"{around}.{node.name}".lstrip("."), []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield around, node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield around, node.func.attr
        for child in ast.iter_child_nodes(node):
            yield from walk(child, around)

    return set(walk(ast.parse(source), ""))


def test_python_calls_match_the_ast_module() -> None:
    expected: set[tuple[str, str, str]] = set()
    results: set[tuple[str, str, str]] = set()
    for path in sorted(SOURCE.glob("nacre/recall/*.py")):
        source = path.read_text(encoding="utf-8")
        facts = read_code("python", source.encode())
        names = [definition.qualified for definition in facts.definitions]
        results |= {
            (path.name, names[call.scope] if call.scope >= 0 else "", call.name)
            for call in facts.calls
        }
        expected |= {(path.name, around, name) for around, name in calls_by_ast(source)}
    assert len(expected) > 1000
    assert results == expected
