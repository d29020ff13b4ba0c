"""Check the structure of the source and the total size of the project.

    python scripts/check_house.py            # fails with one line for each problem
    python scripts/check_house.py --table    # print each measured total
    python scripts/check_house.py --lower    # record totals that have fallen

The totals must never grow. ``scripts/totals.toml`` has the largest allowed value for each. If a
change has to raise a total, edit its line and give the reason in a comment on that line.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import entry_points
from pathlib import Path

PROJECT = Path(__file__).parents[1]
TOTALS = Path(__file__).with_name("totals.toml")
MAX_MODULE_LINES = 900
SLACK = 0.01
"""Share by which a total can fall before the new value must be recorded."""

LOCAL_IMPORT_MARK = "noqa: PLC0415"
TABLES = {".toml", ".tsv", ".csv", ".json", ".yaml", ".sql", ".sh"}
WEB = {".ts", ".tsx", ".js", ".css"}
GENERATED = {"node_modules", "static", "minilm", "samples", "examples", "build", ".venv"}
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_FSTRING = {
    getattr(tokenize, name, None): step
    for name, step in (("FSTRING_START", 1), ("FSTRING_END", -1))
}


@dataclass(frozen=True)
class Import:
    """The target of an import statement, its line, and True if it is inside a function."""

    target: str
    is_local: bool
    line: int


@dataclass(frozen=True)
class Module:
    """A parsed module and its imports."""

    path: Path
    text: str
    imports: tuple[Import, ...]


def parse(source: Path) -> dict[str, Module]:
    """Return all modules below a folder by dotted name."""
    paths = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(source.rglob("*.py"))
    }
    modules = {}
    for name, path in paths.items():
        text = path.read_text(encoding="utf-8")
        imports = tuple(_imports(ast.parse(text), paths.keys()))
        modules[name] = Module(path.relative_to(source), text, imports)
    return modules


def _imports(tree: ast.AST, modules: Iterable[str], *, is_local: bool = False) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If() if "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            case ast.ImportFrom(module=str(module)):
                for alias in node.names:
                    full = f"{module}.{alias.name}"
                    yield Import(full if full in modules else module, is_local, node.lineno)
            case ast.Import():
                yield from (Import(alias.name, is_local, node.lineno) for alias in node.names)
            case ast.Assign(
                value=ast.Call(func=ast.Name(id="Module"), args=[ast.Constant(value=str(name))])
            ):
                yield Import(name, is_local=False, line=node.lineno)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _imports(node, modules, is_local=is_local or is_function)


def module_breaches(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield messages about modules that are too long, and late imports without a reason."""
    for module in modules.values():
        lines = module.text.splitlines()
        if (count := size_of(module.text).lines) > MAX_MODULE_LINES:
            yield f"{module.path}: {count} lines of code; a module has at most {MAX_MODULE_LINES}"
        for number, line in enumerate(lines, 1):
            _, mark, reason = line.partition(LOCAL_IMPORT_MARK)
            if mark and not reason.strip(" -"):
                yield f"{module.path}:{number}: {LOCAL_IMPORT_MARK} needs a reason after it"


def cycle_breaches(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield a message about a cycle of modules that import each other, if there is one."""
    edges = {
        name: {each.target for each in module.imports} & modules.keys()
        for name, module in modules.items()
    }
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        yield f"a cycle of imports: {' → '.join(sorted(set(error.args[1])))}"


@dataclass(frozen=True)
class Size:
    """Lines of code, tokens, bytes in string literals and words of prose in one Python file."""

    lines: int
    tokens: int
    string_bytes: int
    prose_words: int


@cache
def size_of(text: str) -> Size:
    """Measure a Python source text.

    Lines and tokens exclude comments, docstrings, line ends and indentation. An f-string counts as
    one token, as before Python 3.12. Prose consists of docstrings, comments, and string literals
    with at least four words.
    """
    tree = ast.parse(text)
    docstrings: set[int] = set()
    prose: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            for part in node.body:
                if (
                    isinstance(part, ast.Expr)
                    and isinstance(part.value, ast.Constant)
                    and isinstance(part.value.value, str)
                ):
                    docstrings.update(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    literals = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    prose += [str(node.value) for node in literals if len(str(node.value).split()) >= 4]
    string_bytes = sum(
        len(str(node.value).encode("utf-8", "replace"))
        for node in literals
        if node.lineno not in docstrings
    )
    tokens = depth = 0
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            prose.append(token.string.lstrip("# "))
        if token.type in _LAYOUT or token.start[0] in docstrings:
            continue
        lines.update(range(token.start[0], token.end[0] + 1))
        tokens += depth == 0
        depth += _FSTRING.get(token.type, 0)
    return Size(len(lines), tokens, string_bytes, sum(len(text.split()) for text in prose))


def measure(project: Path) -> dict[str, int]:
    """Return a checkout's totals, which must never grow."""
    code = [
        size_of(path.read_text(encoding="utf-8"))
        for path in _files(project, ["src", "plugins"], {".py"})
    ]
    tools = [
        size_of(path.read_text(encoding="utf-8"))
        for path in _files(project, ["benchmarks", "scripts"], {".py"})
    ]
    web = [
        *_files(project, ["web/src", "plugins", "host-plugins"], WEB),
        *_files(project, ["src"], {".js"}),
    ]
    pages = [*_files(project, ["docs"], {".md"}), *project.glob("*.md")]
    pages = [
        path for path in pages if path.name not in ("CHANGELOG.md", "json.md")
    ]  # json.md is generated
    return {
        "python_tokens": sum(size.tokens for size in code),
        "tools_tokens": sum(size.tokens for size in tools),
        "string_bytes": sum(size.string_bytes for size in code),
        "table_bytes": sum(
            path.stat().st_size
            for path in _files(project, ["src", "plugins"], TABLES)
            if path.name != "pyproject.toml"
        ),
        "web_lines": sum(path.read_text(encoding="utf-8").count("\n") for path in web),
        "prose_words_in_code": sum(size.prose_words for size in code),
        "documentation_words": sum(len(path.read_text(encoding="utf-8").split()) for path in pages),
        "slow_tests": _slow_tests(project),
        **_interface_totals(),
    }


def _slow_tests(project: Path) -> int:
    listed = tomllib.loads((project / "tests" / "slow.toml").read_text(encoding="utf-8"))
    return sum(map(len, listed.values()))


def _files(project: Path, folders: Iterable[str], suffixes: set[str]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((project / folder).rglob("*")):
            inside = path.relative_to(project / folder).parts
            if (
                path.suffix in suffixes
                and path.is_file()
                and not {"tests", *GENERATED} & set(inside)
            ):
                yield path


def _interface_totals() -> dict[str, int]:
    import click

    for entry_point in entry_points(group="nacre.commands"):
        entry_point.load()  # a plugin that does not load would leave its commands uncounted
    from nacre.cli.command import walk_commands
    from nacre.cli.root import cli
    from nacre.known_settings import SETTINGS

    root = click.Context(cli)
    commands = [context.command for context in walk_commands(root)]
    at_the_top = len(cli.list_commands(root))
    return {
        "commands": at_the_top,
        "sub_commands": len(commands) - at_the_top,
        "options": sum(
            isinstance(option, click.Option) for command in commands for option in command.params
        ),
        "settings": len(SETTINGS),
    }


def total_breaches(totals: Mapping[str, int], allowed: Mapping[str, int]) -> Iterator[str]:
    """Yield messages about totals that grew, fell without being recorded, or have no recorded value."""
    for name in sorted(totals.keys() | allowed.keys()):
        now, most = totals.get(name), allowed.get(name)
        if now is None or most is None:
            yield f"{TOTALS.name}: {name} is {'not recorded' if most is None else 'not measured'}"
        elif now > most:
            yield f"{name}: {now:,}, and at most {most:,} is allowed; remove something first"
        elif now < most * (1 - SLACK):
            yield f"{name} fell from {most:,} to {now:,}; record it with scripts/check_house.py --lower"


def lower(totals: Mapping[str, int]) -> None:
    """Record totals that have fallen. Comments in the file are kept."""
    text = TOTALS.read_text(encoding="utf-8")
    for name, now in totals.items():
        most = tomllib.loads(text).get(name)
        if most is not None and now < most:
            text = re.sub(rf"(?m)^{name} = [\d_]+", f"{name} = {now:_}", text)
    TOTALS.write_text(text, encoding="utf-8")


def main() -> int:
    """Check the source and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", type=Path, help="check the structure of this folder only")
    parser.add_argument("--table", action="store_true", help="print each measured total")
    parser.add_argument("--lower", action="store_true", help="record totals that have fallen")
    options = parser.parse_args()
    sources = (
        [options.source] if options.source else [PROJECT / "src", *PROJECT.glob("plugins/*/src")]
    )
    breaches = []
    for modules in map(parse, sources):
        breaches += [*module_breaches(modules), *cycle_breaches(modules)]
    if not options.source:
        totals = measure(PROJECT)
        if options.lower:
            lower(totals)
        if options.table:
            for name, value in totals.items():
                print(f"{name:24} {value:>10,}")
        breaches += total_breaches(totals, tomllib.loads(TOTALS.read_text(encoding="utf-8")))
    for breach in breaches:
        print(breach, file=sys.stderr)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
