"""Calls of operations, options made from their requests, and formatting of values."""

from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from enum import EnumType
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import click
import msgspec

from nacre.base import ids, json, link, text
from nacre.base.bounds import annotations_of, bounds_of
from nacre.base.frozen import frozen
from nacre.base.times import day_of, parse_moment, shown_day, shown_minute
from nacre.cli import output
from nacre.cli.command import TEXT, Parsed, Run, Span
from nacre.errors import InvalidQueryError, NotFoundError
from nacre.home import change, location, views
from nacre.operations import operation_of
from nacre.serve.catalogue import CATALOGUE, request_of
from nacre.values.memory import Kind, Memory, Validity
from nacre.values.recall import MEMORY_FIELDS, Filter

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.values.session import Speaker, Tokens


Result = TypeVar("Result")

_DAEMON_SECONDS = 1.0
"""Time in seconds to wait for the daemon, which hangs or saves no time if it takes longer."""


def ask(run: Run, result: type[Result], operation: str, /, **fields: Any) -> Result:
    """Run an operation in the daemon if possible, else in this process, and return its result.

    The operation is passed by name, so that its module is loaded only if the daemon does not
    answer. Raises InvalidInputError for out-of-bounds fields, and the operation's own errors.
    """
    if not run.by_itself:
        try:
            answer = link.ask_whole(
                run.settings.home,
                operation,
                json.to_plain(fields),
                seconds=_DAEMON_SECONDS,
                settings=run.settings.mark,
                notes=True,
            )
            value = json.convert(answer.get("result"), result)
            notes = answer.get("notes", {})
            run.warnings += notes.get("warnings", ())
            run.problems += notes.get("problems", ())
            return value
        except link.DaemonAwayError:
            run.by_itself = True
        except (link.DaemonRefusedError, msgspec.ValidationError):
            pass  # this process reports the error
    entry = CATALOGUE[operation]
    return cast("Result", entry.run(run.home, entry.make(fields)))


def perform(run: Run, function: Callable[..., Result], /, **fields: Any) -> Result:
    """Run an operation in this process, with a progress bar on a terminal, and return its result.

    Raises InvalidInputError for out-of-bounds fields, and the operation's own errors.
    """
    entry = operation_of(function)
    opened = run.home if entry.needs_home else run.settings
    is_resumable = entry.takes_long and entry.writes and entry.needs_home
    with resumable(run) if is_resumable else nullcontext(), output.progress_bar(run) as notify:
        return cast("Result", entry.run(opened, entry.make(fields), notify))


@contextmanager
def resumable(run: Run) -> Iterator[None]:
    """Mark the command as resumable if the user interrupts the block."""
    try:
        yield
    except KeyboardInterrupt:
        run.is_resumable = True
        raise


def place_of(run: Run, name: str | None) -> views.Place:
    """Return the project with this name or alias or, for ``.``, of the current folder."""
    folder = None
    with suppress(FileNotFoundError):  # the folder was deleted
        folder = os.getcwd()
    return ask(run, views.Place, "place", name=name, folder=folder)


# ----------------------------------------------------------------------------
# Dates on the command line.


def _moment(value: str) -> datetime:
    try:
        return parse_moment(value, ids.utc_now())
    except (OverflowError, ValueError) as error:
        raise InvalidQueryError(
            f"{value!r} is out of range", hint="write 2026-11-20, 3d, 2w or march"
        ) from error


def _day(value: str) -> date | str:
    try:
        return date.fromisoformat(value) if value else ""
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a day; write 2026-12-31") from error


def _period(value: str) -> Validity:
    since, dots, until = value.partition("..")
    try:
        days = [date.fromisoformat(day.strip()) if day.strip() else None for day in (since, until)]
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is not a period; write 2026-01-01..2026-06-30, 2026-01-01.. or ..2026-06-30"
        ) from error
    if since and not dots:
        raise click.BadParameter(f"{value!r} is a single day; write {value}.. or ..{value}")
    period = Validity(*days)
    if period.since and period.until and period.since > period.until:
        raise click.BadParameter(f"{value!r} ends before it starts")
    return period


MOMENT = Parsed("date", _moment)
"""A date, absolute or relative."""

PAST_DAY = Parsed("day", lambda value: day_of(_moment(value)))
"""A day, absolute or relative: 2026-11-20, 3d, yesterday."""

DAY = Parsed("day", _day)
"""A future day, such as 2026-12-31, or ``""`` for no day."""

PERIOD = Parsed("from..to", _period)
"""A period, such as 2026-01-01..2026-06-30 or ..2026-06-30. ``""`` means always."""


# ----------------------------------------------------------------------------
# Formatting of values.


Record = dict[str, Any]
SHORT_ID = 8
_NEAR_DAYS = 14
_UUID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)
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
    return native_id[:24]


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
    for larger in ("KB", "MB", "GB", "TB"):
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
        if isinstance(item, EnumType) or get_origin(item) is Literal:
            return click.Choice(list(map(str, get_args(item) or item)), case_sensitive=False)
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


def option(source: str | type, *names: str, **own: Any) -> Decorator:
    """Make command-line options for request fields, in this order.

    The option of a list field can be repeated. A boolean field becomes a flag, called ``--no-name``
    if it is on by default. ``names`` that start with ``-`` replace the option's names, and ``own``
    overrides click settings.
    """
    declarations = [name for name in names if name.startswith("-")]

    def make(name: str) -> click.Parameter:
        field = field_of(source, name)
        resolved = {"callback": _resolve_project} if name == "project" else {}
        settings = _click_settings(field) | resolved | own
        return click.Option([*(declarations or _names(field)), name], **settings)

    fields = [name for name in reversed(names) if name not in declarations]
    return _with_parameters(*(functools.partial(make, name) for name in fields))


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

    return _with_parameters(make)


def _with_parameters(*makers: Callable[[], click.Parameter]) -> Decorator:
    def decorate(function: Function) -> Function:
        vars(function).setdefault("__click_params__", []).extend(makers)
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
    return settings | {"default": field.default, "show_default": True}


@functools.cache
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

_WITHOUT_OPTION = ("sessions", "settled")


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
NO_DAEMON = flag("--no-daemon", "Answer in this process even if nacre serve is running.")
EVERYTHING = flag("--all", "Show all, regardless of --limit.", "everything")
OFFSET = option("list", "offset", show_default=False)


def _with_filter(function: Function, without: Sequence[str] = _WITHOUT_OPTION) -> Function:
    names = [field.name for field in fields(Filter) if field.name not in without]

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


with_memory_filter = _with_filter
"""Add the memory filter options to a command, which receives the filter as ``criteria``."""

with_turn_filter = functools.partial(
    _with_filter, without=(*_WITHOUT_OPTION, *MEMORY_FIELDS, "as_of", "scope")
)
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
