"""The languages that are read, and the one door to tree-sitter, which is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING

from nacre.errors import Unavailable
from nacre.platform.lazy import load

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

HINT = "pip install 'nacre-memory[code]'"


@dataclass(frozen=True, slots=True)
class Language:
    """A language: the module of its grammar and the function in it, the queries that find things in its trees, and
    the module that reads what they find. Languages of one ``family`` call each other."""

    name: str
    family: str
    grammar: str
    function: str
    queries: Sequence[str]
    suffixes: Sequence[str]


LANGUAGES = {
    one.name: one
    for one in (
        Language("python", "python", "python", "language", ("python",), (".py", ".pyi")),
        Language("javascript", "ecma", "javascript", "language", ("ecma", "jsx", "javascript"),
                 (".js", ".mjs", ".cjs", ".jsx")),
        Language("typescript", "ecma", "typescript", "language_typescript", ("ecma", "typescript"),
                 (".ts", ".mts", ".cts")),
        Language("tsx", "ecma", "typescript", "language_tsx", ("ecma", "jsx", "typescript"), (".tsx",)),
        Language("go", "go", "go", "language", ("go",), (".go",)),
        Language("rust", "rust", "rust", "language", ("rust",), (".rs",)),
        Language("java", "java", "java", "language", ("java",), (".java",)),
        Language("c", "cfamily", "c", "language", ("c",), (".c",)),
        Language("cpp", "cfamily", "cpp", "language", ("c", "cpp"),
                 (".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp")),
    )
}  # fmt: skip
"""By name. Headers are read as C++, which nearly all of C is."""

_BY_SUFFIX = {suffix: one.name for one in LANGUAGES.values() for suffix in one.suffixes}


def language_of(path: str) -> str | None:
    """The language that a file's name says it is in, if it is one of these."""
    name = path.rsplit("/", 1)[-1]
    return _BY_SUFFIX.get("." + name.rsplit(".", 1)[-1].lower()) if "." in name else None


def require() -> None:
    """Raise Unavailable, with what to install, where the parsers are not there."""
    try:
        import_module("tree_sitter")
        for one in LANGUAGES.values():
            import_module(f"tree_sitter_{one.grammar}")
    except ImportError as error:
        raise Unavailable(f"{error.name} is not installed: nacre reads code with it", hint=HINT) from error


@cache
def parser_of(name: str) -> tuple[Parser, Query]:
    """The parser of a language, and what is looked for in its trees. Raises ImportError."""
    one = LANGUAGES[name]
    grammar = load("tree_sitter:Language")(load(f"tree_sitter_{one.grammar}:{one.function}")())
    text = "\n".join((files(__package__) / f"{query}.scm").read_text(encoding="utf-8") for query in one.queries)
    return load("tree_sitter:Parser")(grammar), load("tree_sitter:Query")(grammar, text)
