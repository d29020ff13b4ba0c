"""Options that several commands share, and the filter they add up to."""

from __future__ import annotations

import functools
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nacre.cli.moment import MOMENT as MOMENT
from nacre.cli.operations import place_of
from nacre.cli.request_options import Decorator, Function, option
from nacre.cli.run import Run
from nacre.errors import NotFound
from nacre.home import answers, location, lookup
from nacre.platform.days import day_of
from nacre.values import memory, recall
from nacre.values.recall import Filter

if TYPE_CHECKING:
    from pathlib import Path

    from nacre.home.home import Home


HERE = "."

Item = TypeVar("Item")
Fetch = Callable[[int, int], tuple[Sequence[Item], bool]]

_PAGE = 500
"""Items of a list that are read at once."""

_PLACE_AND_TIME: tuple[Decorator, ...] = (
    option(Filter, "projects", help="Only this project, and what belongs to none; . is the one of this folder."),
    option(Filter, "strict", help="With --project: leave out what it depends on, and what belongs to no project."),
    option(Filter, "exclude_projects", help="Leave this project out."),
    option(Filter, "since", help="From then on: 2026-11-20, 3d, 2w, yesterday, march."),
    option(Filter, "until"),
    option(Filter, "owner_only", "--mine", "--user-only", help="Only what you said yourself."),
    option(Filter, "trusted"),
)
_MEMORY: tuple[Decorator, ...] = (
    option(Filter, "kinds", help="Only memories of this kind."),
    option(Filter, "tags", help="Only memories with this tag."),
    option(Filter, "min_importance"),
    option(Filter, "expiry"),
    option(Filter, "as_of"),
    option(Filter, "scope"),
    option(
        Filter, "tools", "--tool", "--platform", help="Only what was said in sessions with this tool, e.g. claude-code."
    ),
)
_TURN: tuple[Decorator, ...] = (option(Filter, "tools", help="Only sessions with this tool, e.g. claude-code."),)


def limit_option(operation: str, **own: Any) -> Decorator:
    """``--limit`` of an operation's list; ``default=None`` leaves it to the settings."""
    return option(operation, "limit", "--limit", "-n", type=click.IntRange(1, 1000), **own)


LANES = option(
    "recall", "mode", default=None, show_default=False, help="The lanes to use.",
    type=click.Choice(["hybrid", "lexical", "vector"], case_sensitive=False),
)  # fmt: skip
SESSION = option("recall", "session")
NO_DAEMON = click.option("--no-daemon", is_flag=True, help="Answer in this process, also where nacre serve runs.")
JSON_LINES = click.option(
    "--jsonl", "as_lines", is_flag=True, help="One JSON object a line: the items of --json, as they come."
)
EVERYTHING = click.option("--all", "everything", is_flag=True, help="All of them, whatever --limit says.")
OFFSET = option("list", "offset", show_default=False)


def refused(options: Mapping[str, str]) -> Decorator:
    """Options of other programs that have no sense here: whoever gives one is told what to do instead."""

    def refuse(ctx: click.Context, param: click.Parameter, given: object) -> None:
        if given:
            raise click.UsageError(f"{param.opts[0]}: {options[param.opts[0]]}", ctx)

    def decorate(function: Function) -> Function:
        for name in options:
            function = click.option(
                name,
                is_flag=name not in _WITH_VALUE,
                hidden=True,
                expose_value=False,
                callback=refuse,
                help=options[name],
            )(function)
        return function

    return decorate


_WITH_VALUE = ("--max-retries", "--concurrency", "--workers")


def with_memory_filter(function: Function) -> Function:
    """Add the options that choose memories; the function gets them as ``wanted``."""
    return _with_filter(
        function, (*_MEMORY, *_PLACE_AND_TIME),
        ("kinds", "tags", "min_importance", "expiry", "scope", "as_of", "tools"),
    )  # fmt: skip


def with_turn_filter(function: Function) -> Function:
    """Add the options that choose turns; the function gets them as ``wanted``."""
    return _with_filter(function, (*_TURN, *_PLACE_AND_TIME), ("tools",))


def _with_filter(function: Function, options: tuple[Decorator, ...], own: tuple[str, ...]) -> Function:
    names = (*own, "projects", "strict", "exclude_projects", "since", "until", "owner_only", "trusted")

    @click.pass_obj
    @functools.wraps(function)
    def call(run: Run, /, **values: Any) -> Any:
        run.by_itself = bool(values.get("no_daemon"))
        return function(run, wanted=_filter(run, {name: values.pop(name) for name in names}), **values)

    decorated: Function = call
    for decorate in reversed(options):
        decorated = decorate(decorated)
    return decorated


def _filter(run: Run, values: dict[str, Any]) -> Filter:
    values["kinds"] = tuple(memory.Kind(kind) for kind in values.get("kinds", ()))
    values["expiry"] = tuple(memory.Expiry(expiry) for expiry in values.get("expiry", ()))
    values["scope"] = memory.Scope(values.get("scope", memory.Scope.PRIVATE))
    values["as_of"] = day_of(values["as_of"]) if values.get("as_of") else None
    for name in ("projects", "exclude_projects"):
        values[name] = tuple(_known_project(run, project) for project in values[name])
    return recall.Filter(**values)


def _known_project(run: Run, name: str) -> str:
    """The project meant; an unknown one is no error, but worth a word: nothing will be found in it."""
    place = place_of(run, name)
    if place.project is None:
        raise _no_project_here(place.namesake)
    if place.project not in place.known:
        run.warnings.append(f"no project is called {name!r}; known: {', '.join(place.known) or 'none yet'}")
    return place.project


def find_project(run: Run, name: str | None) -> str | None:
    """The project that a name, an alias or ``.`` means; ``None`` without a name. Warns of an unknown one.

    Raises NotFound.
    """
    return _known_project(run, name) if name else None


def pages(fetch: Fetch[Item], limit: int | None, offset: int) -> Iterator[Item]:
    """The items of a list from ``offset`` on, ``limit`` of them or all, a page at a time.

    ``fetch`` gets a page's size and offset; it returns the page, and whether there are more items.
    """
    while limit is None or limit > 0:
        size = _PAGE if limit is None else min(limit, _PAGE)
        found, has_more = fetch(size, offset)
        yield from found
        if not has_more:
            return
        offset += size
        limit = None if limit is None else limit - size


def project_slug(
    home: Home, name: str, of_folder: Callable[[Home, Path], str | None] | None = None
) -> str:  # fmt: skip
    """The project meant by a name, an alias, or ``.`` for the folder nacre runs in.

    ``of_folder`` finds the project of that folder, by default among those that are known. Raises NotFound when it
    belongs to none.
    """
    if name != HERE:
        return answers.project_called(home, name, lookup.projects(home))
    found = (of_folder or location.project_of_folder)(home, pathlib.Path.cwd())
    if found is None:
        raise _no_project_here()
    return found


def tie_hint(namesake: str) -> str:
    """What to do where a folder is called as a project is, and belongs to none."""
    return f"if it is the project {namesake}: nacre project tie {namesake}"


def _no_project_here(namesake: str | None = None) -> NotFound:
    return NotFound(
        f"{pathlib.Path.cwd()} belongs to no project that nacre knows",
        hint=tie_hint(namesake) if namesake else "name a project; nacre project list shows them",
    )


def read_content(content: str) -> str:
    """The content itself, or standard input for ``-``."""
    if content != "-":
        return content
    data: bytes = sys.stdin.buffer.read()
    return data.decode("utf-8", "replace")


@contextmanager
def readable(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """The path itself, or for ``-`` a temporary file with standard input: formats are recognised at both ends."""
    if str(path) != "-":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="nacre-") as folder:
        file = pathlib.Path(folder) / "standard-input"
        file.write_bytes(sys.stdin.buffer.read())
        yield file
