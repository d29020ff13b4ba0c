"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from nacre.base.sql import statements
from nacre.known_settings import SETTINGS

PROJECT = Path(__file__).parents[2]
SOURCE = PROJECT / "src" / "nacre"
BENCHMARKS = PROJECT / "benchmarks"
BROAD_EXCEPT = {
    "nacre_gateway/engine.py",  # a third-party channel must not stop the others
    "base/plugins.py",  # a plugin for another version of nacre may raise anything
    "serve/homes.py",  # an answer that raises must not end the daemon, nor a failing plugin its requests
    "serve/server.py",  # the daemon's boundary, and its periodic tasks
    "serve/mcp.py",  # the boundary of MCP
    "serve/hook_process.py",  # a hook ends as it should, whatever happens in its thread
    "cli/output.py",  # the boundary of the command line, and the record of a crash
    "testing/conformance.py",  # carried over to the reading thread, and raised there
    "nacre_server/cluster.py",  # a space whose work fails must not stop that of the others
    "home/parsing.py",  # carried over to the reading thread, and raised there
    "home/archive.py",  # a damaged pack or a third-party reader costs its own transcript only
    "setup/chores.py",  # a failed chore is tried again later, and reported
    "llm/failures.py",  # carried over to the waiting thread, and raised there
    "llm/local_model.py",  # the runtimes raise bare exceptions
}
NAMED_BY_TABLE = {"turns_size", "memories_size"}
BANNED = {
    "utils",
    "util",
    "helpers",
    "helper",
    "manager",
    "common",
    "misc",
    "impl",
    "handler",
    "service",
}


def nodes(marks: str, *, within: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The nodes of every module whose text has one of the marks, a regular expression."""
    plugins = [(source, source.rglob("*.py")) for source in PROJECT.glob("plugins/*/src")]
    for root, files in (
        (SOURCE, SOURCE.rglob("*.py")),
        (PROJECT, BENCHMARKS.rglob("*.py")),
        *plugins,
    ):
        for path in sorted(files):
            name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            if name.startswith(within) and re.search(marks, text):
                yield from ((name, node) for node in ast.walk(ast.parse(text)))


def test_only_one_module_reads_the_environment() -> None:
    readers = {
        name
        for name, node in nodes(r"\b(?:environ|getenv|putenv)\b")
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "putenv")
        if isinstance(node.value, ast.Name) and node.value.id == "os"
    }
    assert readers == {"base/environment.py"}


def test_broad_excepts_occur_only_at_the_listed_boundaries() -> None:
    broad = {
        name
        for name, node in nodes(r"except:|\b(?:Base)?Exception\b")
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or {"Exception", "BaseException"} & set(ast.unparse(node.type).split("."))
        )
        and not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
    }
    assert broad <= BROAD_EXCEPT


def test_module_names_contain_no_banned_words() -> None:
    for path in (*SOURCE.rglob("*.py"), *BENCHMARKS.rglob("*.py")):
        name = path.relative_to(SOURCE if path.is_relative_to(SOURCE) else PROJECT).as_posix()
        parts = set(re.split(r"[/_.]", name))
        assert not parts & BANNED, name


def test_every_query_has_a_comment_and_is_used() -> None:
    used = {
        name
        for path in [*SOURCE.rglob("*.py"), *PROJECT.glob("plugins/*/src/**/*.py")]
        for name in re.findall(r'"(\w+)"', path.read_text(encoding="utf-8"))
    }
    for name, sql in statements("nacre.store", "sql/queries").items():
        assert sql.startswith("--"), f"{name} has no comment"
        assert name in used or name in NAMED_BY_TABLE, f"{name} is not used"


def test_migration_numbers_are_unique() -> None:
    numbers = [path.name[:4] for path in (SOURCE / "store" / "sql" / "migrations").glob("*.sql")]
    assert sorted(numbers) == sorted(set(numbers))


def test_benchmarks_import_at_the_top() -> None:
    inner = {
        name
        for name, node in nodes("(?m)^ +(?:import|from) ", within="benchmarks/")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if any(isinstance(part, ast.Import | ast.ImportFrom) for part in ast.walk(node))
    }
    assert inner == set()


def test_every_setting_has_a_summary_and_a_unique_variable() -> None:
    assert len({setting.variable for setting in SETTINGS}) == len(SETTINGS)
    assert all(setting.summary for setting in SETTINGS)
