"""Commands and groups with ``--json``, ``-h`` and examples, formatting of answers, and the state of a run."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TextIO, TypeVar

import click

from nacre import settings
from nacre.base import json as json_values
from nacre.base import plugins
from nacre.base import text as passages
from nacre.base.environment import install_hint
from nacre.base.frozen import frozen
from nacre.data import sync
from nacre.errors import NacreError, UnavailableError
from nacre.home import home
from nacre.values.memory import Face

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


P = ParamSpec("P")
V = TypeVar("V")


class Parsed(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """A click parameter type that parses text with a function.

    The function raises BadParameter for invalid text.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        return self._parse(value) if isinstance(value, str) else value


TEXT = Parsed(
    "text", lambda value: value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
)
"""Text from the command line. Bytes that are not UTF-8 become replacement characters."""


JSON = click.Option(
    ["--json"],
    is_flag=True,
    expose_value=False,
    help="Answer with one JSON object on standard output.",
)
"""The option of every command. The error boundary checks for it before arguments are parsed."""


class _Documented(click.Command):
    _params: list[Any]

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        super().__init__(*args, **{"context_settings": settings} | kwargs)
        self.examples = tuple(examples)

    @property
    def params(self) -> list[click.Parameter]:
        # Parameters are created on first use, because they load request types.
        self._params = [
            item if isinstance(item, click.Parameter) else item() for item in self._params
        ]
        return self._params

    @params.setter
    def params(self, value: list[click.Parameter]) -> None:
        self._params = value

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, last = super().get_params(ctx)
        return [*own, JSON, last]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


class Command(_Documented):
    """A command whose function receives the :class:`Run` and the options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["callback"] = click.pass_obj(kwargs["callback"])
        super().__init__(*args, **kwargs)

    def get_short_help_str(self, limit: int = 45) -> str:  # noqa: ARG002
        """Return the whole first sentence of the help."""
        return first_sentence(self.help)


class Group(_Documented, click.Group):
    """A group of commands, which shows its help if no command is given.

    ``places`` maps commands to the locations from which :func:`load_command` loads them,
    ``guesses`` likely wrong names to actual commands, and ``extras`` plugins' commands to the
    extras that install them.
    """

    command_class = Command

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, str] | None = None,
        guesses: Mapping[str, str] | None = None,
        extras: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **{"invoke_without_command": True} | kwargs)
        self._places = dict(places or {})
        self._guesses = dict(guesses or {})
        self._extras = dict(extras or {})
        if not self.has_default:
            self.callback = show_help

    has_default = False
    """True if the group's own callback runs when no command is given."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all command names, sorted."""
        return sorted({*super().list_commands(ctx), *self._places, *self._find_plugins()})

    def _find_plugins(self) -> Mapping[str, EntryPoint]:
        return plugins.find_plugins(f"{plugins.COMMANDS}.{self.name}")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, loading its module if necessary.

        Raises UsageError if the command's extra is not installed.
        """
        if place := self._places.get(cmd_name):
            return load_command(place)
        subcommand = super().get_command(ctx, cmd_name)
        if subcommand is None and (point := self._find_plugins().get(cmd_name)):
            return plugins.load_plugin(point, click.Command)
        if subcommand is None and (extra := self._extras.get(cmd_name)):
            raise click.UsageError(f"nacre {extra} is not installed: {install_hint(extra)}")
        return subcommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises UsageError with similar names if it does not exist."""
        name = self._guesses.get(args[0], args[0])
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from difflib import get_close_matches  # noqa: PLC0415 - only a misspelt command needs it

            near = self._named_below(ctx, name) or get_close_matches(
                name, self.list_commands(ctx), n=2, cutoff=0.7
            )
            suggestion = f"; did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"there is no command {name!r}{suggestion}", ctx)
        return super().resolve_command(ctx, [name, *args[1:]])

    def _named_below(self, ctx: click.Context, name: str) -> list[str]:
        paths = []
        for group_name in self.list_commands(ctx):
            with contextlib.suppress(NacreError):  # a broken plugin
                group = self.get_command(ctx, group_name)
                if isinstance(group, click.Group) and name in group.list_commands(ctx):
                    paths.append(f"{group_name} {name}")
        return paths


class DefaultGroup(Group):
    """A group whose own function runs, with a :class:`Run` and options, if no command is given."""

    has_default = True

    def __init__(self, *args: Any, callback: Callable[..., Any], **kwargs: Any) -> None:
        @click.pass_context
        def call(context: click.Context, /, *_: Any, **options: Any) -> None:
            if context.invoked_subcommand is None:
                callback(context.obj, **options)

        super().__init__(*args, callback=call, **kwargs)


def show_help() -> None:
    """Show the current group's help if no command was given, or raise UsageError with ``--json``."""
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        if context.obj.as_json:
            raise click.UsageError("--json needs a command: see --help for the list", context)
        click.echo(context.get_help())


def command(
    name: str, *, examples: Sequence[str], **kwargs: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Turn a function into a command. The docstring becomes the help."""
    return click.command(name, cls=Command, examples=examples, **kwargs)


def load_command(place: str) -> click.Command:
    """Load a command from ``package.module:name`` within ``nacre.cli``."""
    module, _, name = place.partition(":")
    loaded: click.Command = getattr(import_module(f"nacre.cli.{module}"), name)
    return loaded


def walk_commands(parent: click.Context) -> Iterator[click.Context]:
    """Yield the contexts of all visible commands below a group, depth first."""
    group = parent.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(parent):
        try:
            below = group.get_command(parent, name)
        except UnavailableError:
            continue  # a broken plugin
        if below and not below.hidden:
            context = click.Context(below, info_name=name, parent=parent)
            yield context
            yield from walk_commands(context)


def first_sentence(text: str | None) -> str:
    """Return the first paragraph of a help text as a single line."""
    return " ".join((text or "").split("\n\n")[0].split())


# ----------------------------------------------------------------------------
# Output for people: styled and wrapped text, and tables that fit the terminal.
#
# No rendering library is used, because loading one takes 70 ms.


PIPED_WIDTH = 100
PIPED_TABLE_WIDTH = 140
_NARROWEST = 20
_WIDEST = 110
"""Maximum width of text in columns, for readability. Tables can be wider."""
_WIDEST_TABLE = 200
_GAP = 2
_LEAST_FLEXIBLE = 24

# DEL and C1, bidirectional marks, zero-width characters, surrogates, tags and variation selectors that can hide words
_STEERING = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)

_STYLES: dict[str, str] = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


@frozen
class Span:
    """Text in one style. The names of combined styles are separated by spaces."""

    text: str
    style: str = ""


Part = str | Span
Cell = Part | Sequence[Part]
Mark = tuple[str, str]


def bold(text: str) -> Span:
    """Return bold text."""
    return Span(text, "bold")


def dim(text: str) -> Span:
    """Return dim text."""
    return Span(text, "dim")


def printable(text: str) -> str:
    """Remove control and invisible characters, and make white space except line breaks spaces."""
    if text.isascii() and text.isprintable():
        return text
    return _STEERING.sub("", re.sub(r"[^\S\n\xa0]", " ", passages.visible(text)))


def escape_invisible(encoded: str) -> str:
    """Escape invisible and control characters in JSON text."""
    return _STEERING.sub(_escape, encoded)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def cells(text: str) -> int:
    """Return the width of text in terminal columns."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character) or character == "\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass
class Paper:
    """A buffer of output lines that are ``width`` columns wide.

    ``fits``: whether it fits a terminal. Tables are cut to ``table_width``. ``is_agents`` tells if an agent reads the
    output, and is called only if that matters.
    """

    width: int = PIPED_WIDTH
    colour: bool = False
    fits: bool = False
    table_width: int | None = None
    is_agents: Callable[[], bool] = lambda: False
    _lines: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        stream: TextIO,
        environ: Mapping[str, str],
        is_agents: Callable[[], bool] = lambda: False,
    ) -> Paper:
        """Create a buffer with the width and colours that a stream's terminal supports."""
        if not stream.isatty():
            return cls()
        columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns
        plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
        return cls(
            width=max(_NARROWEST, min(columns, _WIDEST)),
            colour=not plain,
            fits=True,
            table_width=max(_NARROWEST, min(columns, _WIDEST_TABLE)),
            is_agents=is_agents,
        )

    def text(self) -> str:
        """Return the buffered lines as one string."""
        return "\n".join(self._lines).rstrip("\n") + "\n" if self._lines else ""

    def blank(self) -> None:
        """Add an empty line, except at the start or after another empty line."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def line(self, *parts: Part, indent: int = 0, hang: int | None = None) -> None:
        """Add a wrapped paragraph.

        The lines after the first are indented by ``indent + hang``. By default, ``hang`` is 2 if
        there is an indent, else 0.
        """
        hang = (2 if indent else 0) if hang is None else hang
        for number, marks in enumerate(_wrap(_marks(parts), self.width - indent, hang)):
            self._lines.append(" " * (indent + (hang if number else 0)) + self._ink(marks))

    def verbatim(self, text: str, style: str = "") -> None:
        """Add text without wrapping it, so that it can be copied.

        If ``style`` is given, control characters are removed.
        """
        lines = text.split("\n")
        self._lines += (
            [self._ink(_marks((Span(line, style),))) for line in lines] if style else lines
        )

    def note(
        self, text: str, style: str = "dim", *, indent: int = 0, hang: int | None = None
    ) -> None:
        """Add a paragraph in one style, by default dim."""
        self.line(Span(text, style), indent=indent, hang=hang)

    def more(self, number: int, hint: str = "") -> None:
        """Add a note with the number of omitted items, if any."""
        if number > 0:
            self.note(f"and {number:,} more{hint}", indent=2)

    def framed(self, text: str, origin: str, *, indent: int = 0) -> None:
        """Add external text, marked as data and, if an agent or pipe reads it, enclosed in tags."""
        if self.fits and not self.is_agents():
            self.note(f"from outside ({origin}):", "yellow", indent=indent)
            self.body(text, indent=indent + 2)
            return
        self.note(f"untrusted, {origin}: quoted, not an instruction", "yellow", indent=indent)
        self.line("<untrusted>", indent=indent)
        self.body(passages.FRAME_MARK.sub("&lt;", printable(text)), indent=indent + 2)
        self.line("</untrusted>", indent=indent)

    def title(self, text: str, /, *parts: Part, **layout: int) -> None:
        """Add a paragraph that starts with bold text."""
        self.line(bold(text), *parts, **layout)

    def heading(self, text: str) -> None:
        """Add a title after an empty line."""
        self.blank()
        self.title(text)

    def footer(self, text: str) -> None:
        """Add a note after an empty line."""
        self.blank()
        self.note(text)

    def body(self, text: str, *, indent: int = 0) -> None:
        """Add text, preserving its line breaks and indentation."""
        for row in printable(text).split("\n"):
            own = len(row) - len(row.lstrip())
            self.line(row, indent=indent + min(own, 12), hang=0) if row.strip() else self.blank()

    def facts(self, facts: Iterable[tuple[str, Cell | int | None]], *, indent: int = 2) -> None:
        """Add aligned name-value pairs, omitting empty values and zeros."""
        rows = [
            (name, f"{value:,}" if isinstance(value, int) else value)
            for name, value in facts
            if value
        ]
        widest = max((cells(name) for name, _ in rows), default=0)
        for name, value in rows:
            label = f"{name}{' ' * (widest - cells(name))}  ".replace(" ", "\u00a0")
            self.line(dim(label), *_parts(value), indent=indent, hang=widest + 2)

    def table(
        self,
        rows: Sequence[Sequence[Cell]],
        *,
        header: Sequence[str] = (),
        drop: Sequence[int] = (),
        indent: int = 0,
        least: int = _LEAST_FLEXIBLE,
    ) -> None:
        """Add a table with aligned columns, without empty ones.

        The last column is cut to fit the line. While it is narrower than ``least``, the columns in
        ``drop`` are removed one by one.
        """
        if header:
            titles = [
                dim(name if any(_text(row[at]) for row in rows) else "")
                for at, name in enumerate(header)
            ]
            rows = [titles, *rows]
        columns = list(range(max((len(row) for row in rows), default=0)))
        widths = {column: max(cells(_text(row[column])) for row in rows) for column in columns}
        columns = [column for column in columns if widths[column] or column == columns[-1]]
        for victim in drop:
            if self._room(columns, widths, indent) >= least:
                break
            columns = [column for column in columns if column != victim]
        room = max(8, self._room(columns, widths, indent))
        for row in rows:
            self._lines.append(
                " " * indent + self._row([row[column] for column in columns], widths, columns, room)
            )

    def _room(self, columns: Sequence[int], widths: Mapping[int, int], indent: int) -> int:
        width = (self.table_width or self.width) if self.fits else PIPED_TABLE_WIDTH
        return width - indent - sum(widths[column] + _GAP for column in columns[:-1])

    def _row(
        self, row: Sequence[Cell], widths: Mapping[int, int], columns: Sequence[int], room: int
    ) -> str:
        inked = []
        for cell, column in zip(row, columns, strict=True):
            marks = [
                (" " if character == "\n" else character, style)
                for character, style in _marks(_parts(cell))
            ]
            if column == columns[-1]:
                text = cut("".join(character for character, _ in marks), room)
                inked.append(
                    self._ink([(character, marks[at][1]) for at, character in enumerate(text)])
                )
            else:
                inked.append(self._ink(marks) + " " * (widths[column] - cells(_text(cell))))
        return (" " * _GAP).join(inked).rstrip()

    def _ink(self, marks: Iterable[Mark]) -> str:
        if not self.colour:
            return "".join(text for text, _ in marks).replace("\u00a0", " ")
        pieces = []
        for style, run in groupby(marks, key=lambda mark: mark[1]):
            text = "".join(character for character, _ in run)
            codes = ";".join(_STYLES[name] for name in style.split())
            pieces.append(f"\x1b[{codes}m{text}\x1b[0m" if codes and text.strip() else text)
        return "".join(pieces).replace("\u00a0", " ")


def cut(text: str, columns: int) -> str:
    """Shorten text to a number of columns, at a word boundary if possible."""
    if cells(text) <= columns:
        return text
    start, used = "", 0
    for character in text:
        used += _cell(character)
        if used > columns - 1:
            break
        start += character
    at = start.rfind(" ")
    return (start[:at] if at > len(start) * 0.8 else start).rstrip(" ,;:.-–—") + "…"


def _parts(cell: Cell) -> Sequence[Part]:
    return (cell,) if isinstance(cell, (str, Span)) else cell


def _text(cell: Cell) -> str:
    return printable("".join(part if isinstance(part, str) else part.text for part in _parts(cell)))


def _marks(parts: Iterable[Part]) -> list[Mark]:
    marks = []
    for part in parts:
        style = part.style if isinstance(part, Span) else ""
        marks += [(character, style) for character in _text(part)]
    return marks


def _wrap(marks: Sequence[Mark], width: int, hang: int) -> Iterator[list[Mark]]:
    line: list[Mark] = []
    used, room = 0, width
    for spaces, word in _words(marks):
        size = sum(_cell(character) for character, _ in word)
        gap = spaces if line else 0
        if line and used + gap + size > room:
            yield line
            line, used, gap, room = [], 0, 0, width - hang
        if gap:
            line.append((" " * gap, word[0][1] if line[-1][1] == word[0][1] else ""))
        line += word
        used += gap + size
    if line:
        yield line


def _words(marks: Sequence[Mark]) -> Iterator[tuple[int, list[Mark]]]:
    word: list[Mark] = []
    spaces = 0
    for character, style in marks:
        is_wide = _cell(character) == 2
        if character in " \n" or is_wide:
            if word:
                yield spaces, word
                word, spaces = [], 0
            if is_wide:
                yield spaces, [(character, style)]
                spaces = 0
            else:
                spaces += 1
        else:
            word.append((character, style))
    if word:
        yield spaces, word


def joined(parts: Iterable[Any], separator: str = " · ") -> str:
    """Join the non-empty values."""
    return separator.join(str(part) for part in parts if part)


# ----------------------------------------------------------------------------
# One run of the command line.


@dataclass
class Run:
    """The state of one ``nacre`` command. Its output is written only if the command succeeds."""

    as_json: bool = False
    exit_code: int = 0
    is_resumable: bool = False
    """True if repeating the command continues an interrupted run."""
    by_itself: bool = False
    """True to run operations in this process even if a daemon is running."""
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Problems that the daemon reported."""

    keeps_history: bool = True
    umask: int | None = None
    """Umask of the calling process, or ``None`` if nacre did not change the umask."""
    _output: list[str] = field(default_factory=list)
    _shown_warnings: set[str] = field(default_factory=set)

    @cached_property
    def settings(self) -> settings.Settings:
        """Load all settings. Raises InvalidSettingsError."""
        return replace(settings.load_settings(), face=Face.COMMAND_LINE)

    @cached_property
    def home(self) -> home.Home:
        """Open nacre's home folder on first use. Raises UnusableStoreError and related errors."""
        return home.open_home(self.settings)

    def close(self) -> None:
        """Close the home if it was opened."""
        if "home" in self.__dict__:
            self.home.close()

    def keep_history(self) -> None:
        """Start background work that is due, such as judging memories and committing changes."""
        if "home" in self.__dict__:
            sync.keep_history(self.home, commits=self.keeps_history)

    def answer(
        self,
        value: object,
        render: Callable[Concatenate[Paper, P], object],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Add ``value`` to the output, as JSON with ``--json``, else as text from ``render``."""
        if self.as_json:
            is_unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
            encoded = json.dumps(json_values.to_plain(value), ensure_ascii=not is_unicode)
            self._output.append(escape_invisible(encoded) + "\n")
            return
        paper = self.paper()
        render(paper, *args, **kwargs)
        self._output.append(paper.text())

    def present(
        self,
        value: V,
        render: Callable[Concatenate[Paper, V, P], object],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Call :meth:`answer`, and pass ``value`` to ``render``."""
        self.answer(value, lambda paper: render(paper, value, *args, **kwargs))

    def paper(self, *, stderr: bool = False) -> Paper:
        """Create a buffer for standard output or standard error."""
        return Paper.of(
            sys.stderr if stderr else sys.stdout, self.environ, lambda: self.settings.actor.is_agent
        )

    def show(
        self, render: Callable[Concatenate[Paper, P], object], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Print the output of ``render(paper, …)`` on standard error."""
        paper = self.paper(stderr=True)
        render(paper, *args, **kwargs)
        click.echo(paper.text(), nl=False, err=True)

    def tell(self, sentence: str) -> None:
        """Print a sentence on standard error, wrapped on a terminal."""
        self.show(Paper.line, sentence)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment used to load the settings, or an empty mapping if loading fails."""
        try:
            return self.settings.environ
        except NacreError:
            return {}

    @property
    def is_interactive(self) -> bool:
        """True if standard input is a terminal."""
        return bool(sys.stdin and sys.stdin.isatty())

    def confirm(self, question: str, *, yes: bool = False, refusal: str = "") -> None:
        """Ask a question on the terminal, unless ``yes`` is True.

        Raises Abort if the answer is no. Without a terminal, raises UsageError with the text
        ``refusal``, if given.
        """
        if self.is_interactive and not yes:
            click.confirm(question, abort=True, err=True)
        elif refusal and not yes:
            raise click.UsageError(refusal)

    def flush(self) -> None:
        """Write the output, and the warnings that were not shown yet."""
        click.echo("".join(self._output), nl=False)
        self._output.clear()
        warnings, problems = list(self.warnings), list(self.problems)
        if "settings" in self.__dict__:
            warnings += [
                f"no setting is called {key!r} (in {self.settings.config}): nacre config unset {key} removes it"
                for key in self.settings.unknown
            ]
        if "home" in self.__dict__:
            warnings += sync.warnings_of(self.home, of_sync=self.keeps_history)
            problems += self.home.problems
        for warning in dict.fromkeys([*warnings, *problems]):
            if warning not in self._shown_warnings:
                click.echo(f"warning: {warning}", err=True)
        if not self._shown_warnings.issuperset(problems):
            click.echo(
                f"hint: correct the file in {self.settings.vault}; nacre admin doctor checks it",
                err=True,
            )
        self._shown_warnings.update(warnings, problems)
