"""Hold the source to the sizes that keep it readable: folders, modules, functions, local imports, cycles.

    python scripts/check_house.py            # fails with one line for each breach
    python scripts/check_house.py --table    # prints what it measured, too

Every module under ``src/nacre`` is parsed once. Imports under ``TYPE_CHECKING`` do not count; those inside functions
do, for cycles as well, and so do the lazy doors ``Module("…")``. An import inside a function needs
``# noqa: PLC0415 - reason``; ruff finds those without.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

SOURCE = Path(__file__).parents[1] / "src"

MOST_MODULES_IN_A_FOLDER = 25
MOST_LINES_IN_A_MODULE = 450
MOST_LINES_OF_95_IN_100_FUNCTIONS = 25
MOST_LOCAL_IMPORTS = 40
LOCAL_IMPORT_MARK = "noqa: PLC0415"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """One import statement's target, and whether it stands inside a function."""

    target: str
    is_local: bool
    line: int


@dataclass(frozen=True)
class Module:
    """One parsed module: its lines, functions and imports of this package."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def lines(self) -> int:
        """Lines of the file."""
        return self.text.count("\n")

    @property
    def code_lines(self) -> int:
        """Lines that hold code: neither blank, nor comment, nor docstring."""
        code: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in _NO_CODE:
                code.update(range(token.start[0], token.end[0] + 1))
        return len(code - set(_docstring_lines(self.tree)))

    @property
    def functions(self) -> list[Function]:
        """All functions and methods."""
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]


_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield from range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def parse(source: Path) -> dict[str, Module]:
    """All modules below a folder, by dotted name."""
    texts = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): (
            path.relative_to(source), path.read_text(encoding="utf-8")
        )
        for path in sorted(source.rglob("*.py"))
    }  # fmt: skip
    trees = {name: ast.parse(text) for name, (_, text) in texts.items()}
    return {
        name: Module(name, path, text, trees[name], tuple(_imports(trees[name], texts.keys())))
        for name, (path, text) in texts.items()
    }


def _imports(tree: ast.AST, known: Mapping[str, object] | set[str], *, is_local: bool = False) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield Import(full if full in known else node.module, is_local, node.lineno)
        elif door := _door(node):
            yield Import(door, is_local=False, line=node.lineno)
        elif isinstance(node, ast.Import):
            yield from (Import(alias.name, is_local, node.lineno) for alias in node.names)
        yield from _imports(node, known, is_local=is_local or isinstance(node, Function | ast.Lambda))


def _door(node: ast.AST) -> str | None:
    """The module that ``Module("…")`` of :mod:`nacre.platform.lazy` stands for: it is imported later, not less."""
    match node:
        case ast.Assign(value=ast.Call(func=ast.Name(id="Module"), args=[ast.Constant(value=str(name))])):
            return name
    return None


def folder_breaches(modules: Mapping[str, Module]) -> Iterator[str]:
    """Folders with too many modules."""
    counts: dict[Path, int] = {}
    for module in modules.values():
        if module.path.name != "__init__.py":
            counts[module.path.parent] = counts.get(module.path.parent, 0) + 1
    for folder, count in counts.items():
        if count > MOST_MODULES_IN_A_FOLDER:
            yield f"{folder}: {count} modules; a folder has at most {MOST_MODULES_IN_A_FOLDER}"


def module_breaches(modules: Mapping[str, Module]) -> Iterator[str]:
    """Modules that are too long."""
    for module in modules.values():
        if module.lines > MOST_LINES_IN_A_MODULE:
            where = module.path
            yield f"{where}: {module.lines} lines; a module has at most {MOST_LINES_IN_A_MODULE}"


def function_sizes(modules: Mapping[str, Module]) -> list[int]:
    """Lines of each function, signature and docstring included."""
    functions = (function for module in modules.values() for function in module.functions)
    return [(function.end_lineno or 0) - function.lineno + 1 for function in functions]


def function_breaches(modules: Mapping[str, Module]) -> Iterator[str]:
    """Whether functions are too long on the whole."""
    long = quantiles(function_sizes(modules), n=20)[-1]
    if long > MOST_LINES_OF_95_IN_100_FUNCTIONS:
        yield f"one function in twenty is longer than {long:.0f} lines; {MOST_LINES_OF_95_IN_100_FUNCTIONS} is the most"


def local_imports(modules: Mapping[str, Module]) -> list[str]:
    """Import statements inside functions, as ``path:line``."""
    return sorted(
        {f"{module.path}:{one.line}" for module in modules.values() for one in module.imports if one.is_local}
    )


def local_import_breaches(modules: Mapping[str, Module]) -> Iterator[str]:
    """Too many imports inside functions, or one whose mark gives no reason."""
    found = local_imports(modules)
    if len(found) > MOST_LOCAL_IMPORTS:
        yield f"{len(found)} imports inside functions; {MOST_LOCAL_IMPORTS} are allowed: {', '.join(found[:8])} …"
    for module in modules.values():
        for number, line in enumerate(module.text.splitlines(), 1):
            _, mark, reason = line.partition(LOCAL_IMPORT_MARK)
            if mark and not reason.strip(" -"):
                yield f"{module.path}:{number}: {LOCAL_IMPORT_MARK} needs a reason after it"


def cycles(modules: Mapping[str, Module]) -> list[list[str]]:
    """Groups of modules that import each other in a circle, by Tarjan's algorithm (1972)."""
    edges = {name: {one.target for one in module.imports if one.target in modules} for name, module in modules.items()}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in edges[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in edges:
        if name not in index:
            visit(name)
    return found


def cycle_breaches(modules: Mapping[str, Module]) -> Iterator[str]:
    """Modules that import each other in a circle."""
    for group in cycles(modules):
        yield f"a circle of imports: {' → '.join(group)}"


CHECKS = (folder_breaches, module_breaches, function_breaches, local_import_breaches, cycle_breaches)


def table(modules: Mapping[str, Module]) -> Iterator[tuple[str, str]]:
    """What was measured, in words."""
    code = sum(module.code_lines for module in modules.values())
    sizes = function_sizes(modules)
    folders = [module.path.parent for module in modules.values() if module.path.name != "__init__.py"]
    largest = max(set(folders), key=folders.count)
    found = local_imports(modules)
    yield "code lines (no blanks, comments, docstrings)", f"{code:,}"
    yield "modules", str(len(modules))
    yield "modules in the largest folder", f"{folders.count(largest)} ({largest})"
    yield "lines of the longest module", str(max(module.lines for module in modules.values()))
    yield "lines of a function: median, p95", f"{quantiles(sizes, n=2)[0]:.0f}, {quantiles(sizes, n=20)[-1]:.0f}"
    yield "imports inside functions (per 1,000 code lines)", f"{len(found)} ({len(found) / code * 1000:.1f})"
    yield "modules in circles of imports", str(sum(map(len, cycles(modules))))


def main() -> int:
    """Check, and say what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--source", type=Path, default=SOURCE, help="the folder of the package")
    parser.add_argument("--table", action="store_true", help="print what was measured")
    asked = parser.parse_args()
    modules = parse(asked.source)
    if asked.table:
        for name, value in table(modules):
            print(f"{name:50} {value}")
    breaches = [breach for check in CHECKS for breach in check(modules)]
    for breach in breaches:
        print(breach, file=sys.stderr)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
