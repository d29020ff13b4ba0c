"""Reads: the checks that ran in a session (tests, lints, builds) and whether they pass, and commands that failed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nacre.extraction.reading.course import calls, changes
from nacre.sessions.summary.work import does, mended
from nacre.transcripts.commands import names, parts
from nacre.values.session import Action, ToolCall, Turn

_BUILD = "build"
_CHECK = re.compile(
    r"(?:\S+ )*?(?:pytest|jest|vitest|mocha|rspec|phpunit|tox|nox|ctest|mypy|pyright|ruff|flake8|eslint|tsc|tsgo|clippy"
    r"|golangci-lint|rubocop|shellcheck|unittest|playwright|cypress|make|ninja|biome|credo|dialyzer"
    r"|(?:run[-_.]?)?(?:tests?|check|lint|build|verify|vet|typecheck|type-check|compile)(?:[:._-][\w:.-]*)?)"
)
_STATIC = re.compile(
    r"lint|ruff|eslint|flake8|clippy|biome|credo|shellcheck|rubocop|\bvet\b|mypy|pyright|tsc|tsgo|type-?check|dialyzer"
)
_TESTING = re.compile(r"test|jest|mocha|rspec|phpunit|tox|nox|playwright|cypress")
_BUILDING = re.compile(r"build|compile|(?:make|ninja)$|cargo check")
_NEVER_RAN = re.compile(r"exit 12[67]")
"""There is no such program, or it may not be run."""

_HIDDEN = re.compile(r"(?<![|\\])\|(?!\|)|\|\|\s*(?:true|:|echo)\b|;\s*(?:true|echo)\b")
"""What else decides how the command came out: `pytest | tail`."""

_PLACE = re.compile(r"(?:\./)?[\w.-]+[/\\][\w./\\-]*\w(?:::.*)?|\./\w[\w.-]*")
"""A word that names a part of the whole: `./parser`, `tests/test_a.py::test_b`."""


def failing(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """The checks that failed, each with its turn, and after which none of their sort passed: tests, lints, or builds,
    which whatever passes shows to work, unless it was only of a part.
    """
    red: dict[str, tuple[Turn, ToolCall]] = {}
    for turn in turns:
        for call in turn.tool_calls:
            sorts = _sorts(call)
            if not sorts or call.outcome in (None, "rejected") or _NEVER_RAN.search(call.outcome or ""):
                continue
            if call.failed:
                red.update(dict.fromkeys(sorts, (turn, call)))
                continue
            for sort in sorts if _is_of_a_part(call) else (*sorts, _BUILD):
                red.pop(sort, None)
    return list({id(call): (turn, call) for turn, call in red.values()}.values())


def unmended(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """The other commands that failed, and were not seen to work after."""
    done = [(turn, call) for turn in turns for call in turn.tool_calls]
    is_mended = mended([call for _, call in done])
    return [
        (turn, call) for at, (turn, call) in enumerate(done)
        if call.action is Action.RUN and call.failed and does(call) and not is_check(call)
        and call.error and not is_mended(at)
    ]  # fmt: skip


def pass_at_the_end(turns: Sequence[Turn]) -> bool:
    """Whether something was changed, and a check was seen to pass after the last change."""
    done = calls(turns, 0, len(turns))
    since = next((at for at in range(len(done), 0, -1) if changes(done[at - 1])), None)
    if since is None or failing(turns):
        return False
    return any(is_check(call) and call.outcome == "ok" and not _HIDDEN.search(call.input) for call in done[since:])


def is_check(call: ToolCall) -> bool:
    """Whether a call tests, lints or builds."""
    return bool(_sorts(call))


def _sorts(call: ToolCall) -> set[str]:
    """Which sorts of checks a call runs."""
    if call.action is not Action.RUN:
        return set()
    return {_sort(name) for name in names(call.input) if _CHECK.fullmatch(name)}


def _sort(name: str) -> str:
    """What a check is, by its name; one that only says so is of its own sort: "make check"."""
    if _TESTING.search(name):
        return "test"
    if _STATIC.search(name):
        return "lint"
    return _BUILD if _BUILDING.search(name) else name


def _is_of_a_part(call: ToolCall) -> bool:
    """Whether a check names the part it looks at: `go test ./parser`, and not `go test ./...`."""
    return any(
        _PLACE.fullmatch(word) for part in parts(call.input) if part[0] not in ("cd", "source") for word in part[1:]
    )
