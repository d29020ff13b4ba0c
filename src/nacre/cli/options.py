"""Formatting of values, and options shared by commands."""

from __future__ import annotations

import functools
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import click
import msgspec

from nacre.base import ids, json, text
from nacre.base.bounds import annotations_of, bounds_of
from nacre.base.frozen import frozen
from nacre.base.times import day_of, shown_day, shown_minute
from nacre.cli.command import TEXT, Run, Span
from nacre.cli.operations import MOMENT, PAST_DAY, PERIOD, ask, place_of
from nacre.errors import NotFoundError
from nacre.home import change, location
from nacre.serve.catalogue import request_of
from nacre.values.memory import Kind, Memory, Validity
from nacre.values.recall import Filter

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.values.session import Speaker, Tokens

Record = dict[str, Any]
SHORT_ID = 8
_NEAR_DAYS = 14
_UUID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)
_ID_CHARACTERS = 24
_LARGER_UNITS = ("KB", "MB", "GB", "TB")
_TINTS = {
    "fact": "blue",
    "decision": "green",
    "preference": "magenta",
    "todo": "yellow",
    "relationship": "cyan",
    "event": "blue",
    "lesson": "cyan",
}
_SPEAKERS = {"owner": "you", "agent": "agent", "tool": "tool", "system": "system"}

count = text.count


def short_id(memory: Memory) -> str:
    """Return the end of a memory's id, because ids created at the same time start alike."""
    return memory.id[-SHORT_ID:]


def short_session(native_id: str) -> str:
    """Return the start of a session's id, long enough to tell sessions apart."""
    match = _UUID.fullmatch(native_id)
    if match:
        return native_id[:13] if match.group(1) == "7" else native_id[:8]
    return native_id[:_ID_CHARACTERS]


def turn_name(session: str, seq: int) -> str:
    """Return a turn's name, ``<tool> <id>#<turn>``, which ``nacre sessions show`` accepts."""
    tool, _, native_id = session.partition(":")
    return f"{tool} {short_session(native_id)}#{seq}"


def kind_span(kind: Kind) -> Span:
    """Return a memory's kind as coloured text."""
    return Span(kind.value, _TINTS[kind])


def place_name(memory: Memory) -> str:
    """Return a memory's project, ``inbox`` if it is undecided, or an empty string if none."""
    return "inbox" if memory.inbox else memory.project or ""


def speaker_name(speaker: Speaker, author: str | None = None) -> str:
    """Return the author's name, or else the speaker's role."""
    return author or _SPEAKERS[speaker]


def day(moment: datetime | None) -> str:
    """Format a time as a local date."""
    return shown_day(moment) if moment else ""


def minute(moment: datetime | None) -> str:
    """Format a time as a local date and time, to the minute."""
    return shown_minute(moment) if moment else ""


def when(moment: datetime | None) -> str:
    """Format a time as a local date, with an age such as ``(3 days ago)`` if recent."""
    if moment is None:
        return ""
    days = (day_of(ids.utc_now()) - day_of(moment)).days
    if not 0 <= days <= _NEAR_DAYS:
        return day(moment)
    age = {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
    return f"{day(moment)} ({age})".replace(" ", "\u00a0")


def size(number: int) -> str:
    """Format a number of bytes."""
    value, unit = float(number), "B"
    for larger in _LARGER_UNITS:
        if value >= 1000:
            value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """Format a duration: ``0.4 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``."""
    if seconds < 60:
        return f"{round(seconds, 1):g} s"
    minutes, hours = int(seconds) // 60 % 60, int(seconds) // 3600
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def amount(number: int) -> str:
    """Format a number briefly: ``950``, ``12 k``, ``1.2 M``."""
    if number < 1000:
        return str(number)
    value, unit = (number / 1000, "k") if number < 999_500 else (number / 1_000_000, "M")
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


def describe_tokens(tokens: Tokens) -> str:
    """Format the numbers of tokens that models read and wrote."""
    cached = f" ({amount(tokens.cached)} of it cached)" if tokens.cached else ""
    return f"{amount(tokens.input + tokens.cached)} read{cached}, {amount(tokens.output)} written"


def repeats_content(quote: str, content: str) -> bool:
    """Return True if the content contains all or nearly all of the quotation."""
    quoted, normalised = text.normalise(quote.strip("…")), text.normalise(content)
    return bool(quoted) and (
        quoted in normalised or (normalised in quoted and len(quoted) < 1.3 * len(normalised))
    )


# ----------------------------------------------------------------------------
# Options and arguments that get their type, bounds, help and default from request fields.
#
# A command adds only differences, such as a short name or other help. A field belongs to
# an operation's request (``option("store", "kind")``) or a value type (``option(Filter, "kinds")``).


Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

_SIMPLE: dict[Any, Any] = {
    str: TEXT,
    Any: TEXT,
    int: click.INT,
    float: click.FLOAT,
    datetime: MOMENT,
    date: PAST_DAY,
    Path: click.Path(path_type=Path),
    Validity: PERIOD,
}
_ABSENT = (MISSING, msgspec.NODEFAULT, msgspec.UNSET)


@frozen
class RequestField:
    """A request field that has a command-line option.

    For a list (``many``), ``item`` is the type of its elements.
    """

    name: str
    item: Any
    many: bool
    optional: bool
    default: Any
    meta: Any

    @property
    def type(self) -> Any:
        """Return the option's click type, with the field's bounds."""
        meta, item = self.meta, self.item
        if isinstance(item, type) and issubclass(item, StrEnum):
            return click.Choice([member.value for member in item], case_sensitive=False)
        if get_origin(item) is Literal:
            return click.Choice(list(get_args(item)), case_sensitive=False)
        least, most = (
            (meta.ge if meta.ge is not None else meta.gt),
            (meta.le if meta.le is not None else meta.lt),
        )
        if item in (int, float) and (least, most) != (None, None) and not self.many:
            kind = click.IntRange if item is int else click.FloatRange
            return kind(least, most, min_open=meta.gt is not None, max_open=meta.lt is not None)
        return _SIMPLE[item]


def field_of(source: str | type, name: str) -> RequestField:
    """Return a field of an operation's request or of a value type."""
    request = request_of(source) if isinstance(source, str) else source
    kind, many, optional = annotations_of(request)[name], False, False
    meta = bounds_of(request, name)
    while True:
        origin = get_origin(kind)
        if origin is Annotated:
            kind = get_args(kind)[0]
        elif origin in (Union, types.UnionType):
            members = [
                member for member in get_args(kind) if member not in (type(None), msgspec.UnsetType)
            ]
            optional, kind = True, members[0]
        elif origin is tuple:
            many, kind = True, get_args(kind)[0]
        else:
            return RequestField(name, kind, many, optional, _defaults(request)[name], meta)


def option(source: str | type, name: str, *declarations: str, **own: Any) -> Decorator:
    """Make a command-line option for a request field.

    The option of a list field can be repeated. A boolean field becomes a flag, called ``--no-name``
    if it is on by default. ``declarations`` replace the option's names, and ``own`` overrides click
    settings.
    """

    def make() -> click.Parameter:
        field = field_of(source, name)
        resolved = {"callback": _resolve_project} if name == "project" else {}
        settings = _click_settings(field) | resolved | own
        return click.Option([*(declarations or _names(field)), name], **settings)

    return _with_parameter(make)


def flag(name: str, description: str, *more_names: str) -> Decorator:
    """Make an option without a value.

    ``more_names`` are other spellings and the parameter's name.
    """
    return click.option(name, *more_names, is_flag=True, help=description)


def argument(source: str | type, name: str, **own: Any) -> Decorator:
    """Make a positional argument for a request field."""

    def make() -> click.Parameter:
        field = field_of(source, name)
        settings = {
            "type": field.type,
            "nargs": -1 if field.many else 1,
            "required": field.default in _ABSENT,
        }
        return click.Argument([name], **settings | own)

    return _with_parameter(make)


def _with_parameter(make: Callable[[], click.Parameter]) -> Decorator:
    def decorate(function: Function) -> Function:
        vars(function).setdefault("__click_params__", []).append(make)
        return function

    return decorate


def options(source: str | type, *names: str) -> Decorator:
    """Make the options for several request fields, in this order."""

    def decorate(function: Function) -> Function:
        for name in reversed(names):
            function = option(source, name)(function)
        return function

    return decorate


def _resolve_project(context: click.Context, _: click.Parameter, name: str | None) -> str | None:
    run = context.find_object(Run)
    if run is None or context.resilient_parsing:
        return name
    return find_project(run, name, or_all=True)


def _names(field: RequestField) -> tuple[str, ...]:
    if field.name == "project":
        return ("--project", "-p")
    word = field.name.replace("_", "-")
    if field.item is bool:
        if field.optional and field.default is None:
            return (f"--{word}/--no-{word}",)
        return (f"--no-{word}",) if field.default is True else (f"--{word}",)
    return (f"--{word.removesuffix('s') if field.many else word}",)


def _click_settings(field: RequestField) -> dict[str, Any]:
    description = field.meta.description
    if field.item in (date, datetime):
        description = f"{description.rstrip('.')}: 2026-11-20, 3d, 2w, yesterday, march."
    elif field.name.startswith("project") and field.item is str:
        description = f"{description.rstrip('.')}; . means this folder's project."
    settings: dict[str, Any] = {"help": description}
    if field.item is bool:
        if field.optional and field.default is None:
            return settings | {"default": None}
        return settings | {
            "is_flag": True,
            "default": field.default is True,
            "flag_value": field.default is not True,
        }
    settings["type"] = field.type
    if field.many:
        return settings | {"multiple": True}
    if field.default in _ABSENT or field.default is None:
        return settings | {"required": field.default in _ABSENT and not field.optional}
    default = field.default.value if isinstance(field.default, StrEnum) else field.default
    return settings | {"default": default, "show_default": True}


@cache
def _defaults(request: type) -> dict[str, Any]:
    # The result is cached because msgspec evaluates all types to find the fields.
    request_fields = fields(request) if is_dataclass(request) else msgspec.structs.fields(request)
    return {field.name: field.default for field in request_fields}


# ----------------------------------------------------------------------------
# Options that several commands share, and the filter built from these options.


HERE = "."

Page = TypeVar("Page")

_PAGE = 500
"""Number of items per list page."""

YES = flag("--yes", "Do not ask.", "-y")

_FILTER_NAMES = {
    "projects": ("--project", "-p"),
    "owner_only": ("--mine", "--user-only"),
    "tools": ("--tool", "--platform"),
}
"""Names of options for fields of :class:`Filter`, if they differ from the field's name."""

_TURN_FIELDS = (
    "tools",
    "projects",
    "strict",
    "exclude_projects",
    "since",
    "until",
    "owner_only",
    "trusted",
)
_MEMORY_FIELDS = ("kinds", "tags", "min_importance", "expiry", "as_of", "scope", *_TURN_FIELDS)


def limit_option(operation: str, **own: Any) -> Decorator:
    """Make the ``--limit`` option for a list operation.

    With ``default=None``, the limit comes from the settings.
    """
    return option(operation, "limit", "--limit", "-n", type=click.IntRange(1, 1000), **own)


LANES = option(
    "recall",
    "mode",
    default=None,
    show_default=False,
    type=click.Choice(["hybrid", "lexical", "vector"], case_sensitive=False),
)
SESSION = option("recall", "session")
NO_DAEMON = flag("--no-daemon", "Answer in this process even if nacre serve is running.")
EVERYTHING = flag("--all", "Show all, regardless of --limit.", "everything")
OFFSET = option("list", "offset", show_default=False)


def _with_filter(function: Function, names: Sequence[str]) -> Function:
    @functools.wraps(function)
    def call(run: Run, /, **values: Any) -> Any:
        run.by_itself = values.pop("no_daemon", False)
        criteria = {name: values.pop(name) for name in names}
        for name in ("projects", "exclude_projects"):
            projects = [find_project(run, project, or_all=True) for project in criteria[name]]
            criteria[name] = [project for project in projects if project]
        return function(run, criteria=json.convert(json.to_plain(criteria), Filter), **values)

    decorated: Function = call
    for name in reversed(names):
        decorated = option(Filter, name, *_FILTER_NAMES.get(name, ()))(decorated)
    return decorated


with_memory_filter = functools.partial(_with_filter, names=_MEMORY_FIELDS)
"""Add the memory filter options to a command, which receives the filter as ``criteria``."""

with_turn_filter = functools.partial(_with_filter, names=_TURN_FIELDS)
"""Add the turn filter options to a command, which receives the filter as ``criteria``."""


def find_project(run: Run, name: str | None, *, or_all: bool = False) -> str | None:
    """Return the project with this name or alias or, for ``.``, of the current folder.

    Warns if the project is unknown. Raises NotFoundError if the folder has no project, unless
    ``or_all`` is set.
    """
    if not name:
        return None
    place = place_of(run, name)
    if place.project is None:
        error = _no_project_here(place.namesake)
        if not or_all:
            raise error
        run.warnings.append(f"{error.message}, so all projects are shown; {error.hint}")
    elif place.project not in place.known:
        run.warnings.append(
            f"there is no project {name!r}; known projects: {', '.join(place.known) or 'none yet'}"
        )
    return place.project


def ask_pages(
    run: Run,
    result: type[Page],
    operation: str,
    items: str,
    /,
    *,
    limit: int,
    everything: bool,
    offset: int = 0,
    **fields: Any,
) -> tuple[list[Page], tuple[Any, ...]]:
    """Request a list page by page, and return the pages and all items.

    ``limit`` is ignored if ``everything`` is set. ``items`` is the page's attribute for its items,
    or empty if the page is itself a list.
    """
    results: list[Any] = []
    pages = []
    while True:
        size = _PAGE if everything else min(limit - len(results), _PAGE)
        page = ask(run, result, operation, limit=size, offset=offset + len(results), **fields)
        page_items: Any = getattr(page, items) if items else page
        results += page_items
        pages.append(page)
        if len(page_items) < size or (len(results) >= limit and not everything):
            return pages, tuple(results)


def project_slug(
    home: Home, name: str, of_folder: Callable[[Home, Path], str | None] | None = None
) -> str:
    """Return the project with this name or alias or, for ``.``, of the current folder.

    ``of_folder`` finds a folder's project. Raises NotFoundError if there is none.
    """
    if name != HERE:
        return change.project_called(home, name, location.projects(home))
    slug = (of_folder or location.project_of_folder)(home, Path.cwd())
    if slug is None:
        raise _no_project_here()
    return slug


def tie_hint(namesake: str) -> str:
    """Return the hint for a folder that has no project but shares its name with one."""
    return f"if this folder belongs to {namesake}: nacre project tie {namesake}"


def _no_project_here(namesake: str | None = None) -> NotFoundError:
    return NotFoundError(
        f"{Path.cwd()} belongs to no known project",
        hint=tie_hint(namesake) if namesake else "name a project; nacre project list shows them",
    )


def read_content(content: str) -> str:
    """Return ``content`` or, if it is ``-``, the text on standard input."""
    if content != "-":
        return content
    data: bytes = sys.stdin.buffer.read()
    return data.decode("utf-8", "replace")


@contextmanager
def readable(path: Path) -> Iterator[Path]:
    """Yield a path that can be read repeatedly: for ``-``, a copy of standard input."""
    if str(path) != "-":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="nacre-") as folder:
        file = Path(folder) / "standard-input"
        file.write_bytes(sys.stdin.buffer.read())
        yield file
