"""Formatting of values, and the options that commands share."""

from __future__ import annotations

import functools
import pathlib
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, timedelta
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
from nacre.cli.operations import MOMENT, PERIOD, SAID_DAY, ask, place_of
from nacre.errors import NotFoundError
from nacre.home import change, location
from nacre.serve.catalogue import request_of
from nacre.values import codec
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
_UNITS = ("B", "KB", "MB", "GB", "TB")
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


def stamp(moment: datetime | None) -> str | None:
    """Return a time as it is written in JSON, or ``None`` if there is no time."""
    return codec.stamp(moment) if moment else None


def split_session(session: str | None) -> tuple[str | None, str | None]:
    """Split ``<tool>:<id>`` into the tool and the tool's id for the session."""
    if not session:
        return None, None
    tool, _, native_id = session.partition(":")
    return tool, native_id


def short_id(memory: Memory) -> str:
    """Return the end of a memory's id. Ids created at the same moment have the same start."""
    return memory.id[-SHORT_ID:]


def short_session(native_id: str) -> str:
    """Return the start of a session's id, which is long enough to tell sessions apart."""
    match = _UUID.fullmatch(native_id)
    if match:
        return native_id[:13] if match.group(1) == "7" else native_id[:8]
    return native_id[:_ID_CHARACTERS]


def kind_span(kind: Kind) -> Span:
    """Return a memory's kind as coloured text."""
    return Span(kind.value, _TINTS[kind])


def place_name(memory: Memory) -> str:
    """Return a memory's project. This is ``inbox`` while the project is undecided, and empty if there is none."""
    return "inbox" if memory.inbox else memory.project or ""


def speaker_name(speaker: Speaker, author: str | None = None) -> str:
    """Return the author's name, or the speaker's role if there is no name."""
    return author or _SPEAKERS[speaker]


def day(moment: datetime | None) -> str:
    """Return the day in local time."""
    return shown_day(moment) if moment else ""


def minute(moment: datetime | None) -> str:
    """Return the day and minute in local time."""
    return shown_minute(moment) if moment else ""


def when(moment: datetime | None) -> str:
    """Return the day, with an age such as ``(3 days ago)`` if recent."""
    if moment is None:
        return ""
    days = (day_of(ids.utc_now()) - day_of(moment)).days
    if not 0 <= days <= _NEAR_DAYS:
        return day(moment)
    age = {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
    return f"{day(moment)} ({age})".replace(" ", "\u00a0")


def size(number: int) -> str:
    """Format a number of bytes."""
    value = float(number)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{number} B"


def seconds(value: float) -> str:
    """Format a duration in seconds."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def duration(span: timedelta) -> str:
    """Format a duration: ``40 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``."""
    total = int(span.total_seconds())
    if total < 60:
        return f"{total} s"
    minutes, hours = total // 60 % 60, total // 3600
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


def tokens_told(tokens: Tokens) -> str:
    """Format the number of tokens that models read and wrote."""
    cached = f" ({amount(tokens.cached)} of it cached)" if tokens.cached else ""
    return f"{amount(tokens.input + tokens.cached)} read{cached}, {amount(tokens.output)} written"


def says_the_same(quote: str, content: str) -> bool:
    """Return True if the content already says what the quotation says."""
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
    date: SAID_DAY,
    Path: click.Path(path_type=Path),
    Validity: PERIOD,
}
_ABSENT = (MISSING, msgspec.NODEFAULT, msgspec.UNSET)


@frozen
class RequestField:
    """A request field on the command line. ``item`` is the field's type, or the element type if ``many`` is set."""

    name: str
    item: Any
    many: bool
    optional: bool
    default: Any
    meta: Any

    @property
    def type(self) -> Any:
        """Return the click type, with the field's bounds."""
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
    """Make a command-line option for a field of a request.

    The option of a list field can be repeated. A boolean field becomes a flag, which is named
    ``--no-name`` if the field is on by default. ``declarations``: names that replace the field's
    name. ``own``: click settings that override the field's settings.
    """

    def make() -> click.Parameter:
        field = field_of(source, name)
        resolved = {"callback": _resolve_project} if name == "project" else {}
        settings = _click_settings(field) | resolved | own
        return click.Option([*(declarations or _names(field)), name], **settings)

    return _with_parameter(make)


def flag(name: str, description: str, *more_names: str) -> Decorator:
    """Make an option that takes no value. ``more_names`` can contain other spellings and the name of the parameter."""
    return click.option(name, *more_names, is_flag=True, help=description)


def argument(source: str | type, name: str, **own: Any) -> Decorator:
    """Make the positional argument for a field."""

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
    """Add a parameter to a command. ``make`` is called when the command is first used."""

    def decorate(function: Function) -> Function:
        vars(function).setdefault("__click_params__", []).append(make)
        return function

    return decorate


def options(source: str | type, *names: str) -> Decorator:
    """Make the options for several fields, in this order."""

    def decorate(function: Function) -> Function:
        for name in reversed(names):
            function = option(source, name)(function)
        return function

    return decorate


def _resolve_project(context: click.Context, _: click.Parameter, name: str | None) -> str | None:
    run = context.find_object(Run)
    return name if run is None or context.resilient_parsing else find_project(run, name)


def _names(field: RequestField) -> tuple[str, ...]:
    word = field.name.replace("_", "-")
    if field.item is bool:
        if field.optional and field.default is None:
            return (f"--{word}/--no-{word}",)
        return (f"--no-{word}",) if field.default is True else (f"--{word}",)
    return (f"--{word.removesuffix('s') if field.many else word}",)


def _click_settings(field: RequestField) -> dict[str, Any]:
    settings: dict[str, Any] = {"help": field.meta.description}
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
    """Return the defaults of a request's fields. Cached, because msgspec evaluates all types to find the defaults."""
    request_fields = fields(request) if is_dataclass(request) else msgspec.structs.fields(request)
    return {field.name: field.default for field in request_fields}


# ----------------------------------------------------------------------------
# Options that several commands share, and the filter built from these options.


HERE = "."

Page = TypeVar("Page")

_PAGE = 500
"""Number of items per page of a list."""

YES = flag("--yes", "Do not ask.", "-y")

_PLACE_AND_TIME = (
    (
        "projects",
        "--project",
        "Only this project and memories without a project; . means this folder's project.",
    ),
    (
        "strict",
        "--strict",
        "With --project: exclude its dependencies and memories without a project.",
    ),
    ("exclude_projects", "--exclude-project", "Exclude this project."),
    ("since", "--since", "From this day on: 2026-11-20, 3d, 2w, yesterday, march."),
    ("until",),
    ("owner_only", "--mine", "--user-only", "Only what you said yourself."),
    ("trusted",),
)
_MEMORY = (
    ("kinds", "--kind", "Only memories of this kind."),
    ("tags", "--tag", "Only memories with this tag."),
    ("min_importance",),
    ("expiry",),
    ("as_of",),
    ("scope",),
    (
        "tools",
        "--tool",
        "--platform",
        "Only memories from sessions with this tool, e.g. claude-code.",
    ),
)
_TURN = (("tools", "--tool", "Only sessions with this tool, e.g. claude-code."),)
"""Fields of :class:`Filter`, each with its options and help if these are not the field's."""


def limit_option(operation: str, **own: Any) -> Decorator:
    """Make the option ``--limit`` for an operation that lists things.

    With ``default=None``, the limit comes from the settings.
    """
    return option(operation, "limit", "--limit", "-n", type=click.IntRange(1, 1000), **own)


LANES = option(
    "recall",
    "mode",
    default=None,
    show_default=False,
    help="The lanes to use.",
    type=click.Choice(["hybrid", "lexical", "vector"], case_sensitive=False),
)
SESSION = option("recall", "session")
NO_DAEMON = flag("--no-daemon", "Answer in this process even if nacre serve is running.")
EVERYTHING = flag("--all", "Show all, regardless of --limit.", "everything")
OFFSET = option("list", "offset", show_default=False)


def with_memory_filter(function: Function) -> Function:
    """Add options that select memories to a command. The command receives the filter as ``wanted``."""
    return _with_filter(function, (*_MEMORY, *_PLACE_AND_TIME))


def with_turn_filter(function: Function) -> Function:
    """Add options that select turns to a command. The command receives the filter as ``wanted``."""
    return _with_filter(function, (*_TURN, *_PLACE_AND_TIME))


def _with_filter(function: Function, fields: tuple[tuple[str, ...], ...]) -> Function:
    @functools.wraps(function)
    def call(run: Run, /, **values: Any) -> Any:
        run.by_itself = values.pop("no_daemon", False)
        wanted = {name: values.pop(name) for name, *_ in fields}
        for name in ("projects", "exclude_projects"):
            wanted[name] = [_known_project(run, project) for project in wanted[name]]
        return function(run, wanted=json.from_plain(json.to_plain(wanted), Filter), **values)

    decorated: Function = call
    for name, *words in reversed(fields):
        own = {"help": words.pop()} if words else {}
        decorated = option(Filter, name, *words, **own)(decorated)
    return decorated


def _known_project(run: Run, name: str) -> str:
    """Return the project with this name. Warn if the project is unknown, because the filter then matches nothing."""
    place = place_of(run, name)
    if place.project is None:
        raise _no_project_here(place.namesake)
    if place.project not in place.known:
        run.warnings.append(
            f"there is no project {name!r}; known projects: {', '.join(place.known) or 'none yet'}"
        )
    return place.project


def find_project(run: Run, name: str | None) -> str | None:
    """Return the project with this name or alias. ``.`` stands for the project of the current folder.

    If there is no name, the result is ``None``. Unknown projects cause a warning. Raises NotFoundError.
    """
    return _known_project(run, name) if name else None


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
) -> tuple[Page, tuple[Any, ...]]:
    """Ask for a list page by page. Return the last page and the collected items.

    Unless ``everything`` is set, at most ``limit`` items are collected. ``items``: name of the
    page's attribute with the items, or empty if the page is a list.
    """
    found: list[Any] = []
    while True:
        size = _PAGE if everything else min(limit - len(found), _PAGE)
        page = ask(run, result, operation, limit=size, offset=offset + len(found), **fields)
        listed: Any = getattr(page, items) if items else page
        found += listed
        if len(listed) < size or (len(found) >= limit and not everything):
            return page, tuple(found)


def project_slug(
    home: Home, name: str, of_folder: Callable[[Home, Path], str | None] | None = None
) -> str:
    """Return the project with this name or alias. ``.`` stands for the project of the current folder.

    ``of_folder`` is a function that finds the project of a folder. Raises NotFoundError if the folder has no project.
    """
    if name != HERE:
        return change.project_called(home, name, location.projects(home))
    slug = (of_folder or location.project_of_folder)(home, pathlib.Path.cwd())
    if slug is None:
        raise _no_project_here()
    return slug


def tie_hint(namesake: str) -> str:
    """Return the hint for a folder that has no project but has the same name as a project."""
    return f"if this folder belongs to {namesake}: nacre project tie {namesake}"


def _no_project_here(namesake: str | None = None) -> NotFoundError:
    return NotFoundError(
        f"{pathlib.Path.cwd()} belongs to no known project",
        hint=tie_hint(namesake) if namesake else "name a project; nacre project list shows them",
    )


def read_content(content: str) -> str:
    """Return the content, or read standard input if it is ``-``."""
    if content != "-":
        return content
    data: bytes = sys.stdin.buffer.read()
    return data.decode("utf-8", "replace")


@contextmanager
def readable(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield the path of a file that can be read repeatedly. For ``-``, this is a copy of standard input."""
    if str(path) != "-":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="nacre-") as folder:
        file = pathlib.Path(folder) / "standard-input"
        file.write_bytes(sys.stdin.buffer.read())
        yield file
