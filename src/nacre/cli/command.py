"""Commands and groups with what all of them have: ``--json``, ``-h``, examples in their help."""

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
from typing import TYPE_CHECKING, Any, TextIO

import click

from nacre import settings
from nacre.base import text as passages
from nacre.data import sync
from nacre.errors import NacreError
from nacre.home import home
from nacre.values.memory import Face

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.settings import Settings

_HELP_WIDTH = 100


class Text(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """Text from the command line; bytes that are not UTF-8 become replacement characters."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        return str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


TEXT = Text()


def json_option() -> click.Option:
    """``--json``; the error boundary needs it before the arguments are parsed, so that it is looked up there."""
    return click.Option(
        ["--json"],
        is_flag=True,
        expose_value=False,
        help="Answer with one JSON object on standard output.",
    )


class Command(click.Command):
    """A command with ``--json`` and examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        kwargs.setdefault(
            "context_settings",
            {"help_option_names": ["-h", "--help"], "max_content_width": _HELP_WIDTH},
        )
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.params.append(json_option())

    def get_short_help_str(self, limit: int = 45) -> str:  # noqa: ARG002
        """The whole first sentence."""
        return first_sentence(self.help)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The examples, as they are typed."""
        write_examples(formatter, self.examples)


class Group(click.Group):
    """A group with ``--json`` and examples; without a command it shows its help.

    Commands in ``places``, by name, are loaded when they are used; see :func:`load_command`.
    """

    command_class = Command

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        places: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault(
            "context_settings",
            {"help_option_names": ["-h", "--help"], "max_content_width": _HELP_WIDTH},
        )
        kwargs.setdefault("invoke_without_command", True)
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self._places = dict(places or {})
        self.params.append(json_option())
        if not self.has_default:
            self.callback = show_help

    has_default = False
    """Whether the group does something of its own without a command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted."""
        return sorted([*super().list_commands(ctx), *self._places])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command's module where that is left until it is used."""
        place = self._places.get(cmd_name)
        return load_command(place) if place else super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a misspelt one gets the nearest names."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from difflib import get_close_matches  # noqa: PLC0415 - only a misspelt command needs it

            near = get_close_matches(name, self.list_commands(ctx), n=2, cutoff=0.7)
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"there is no command {name!r}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The examples, as they are typed."""
        write_examples(formatter, self.examples)


class DefaultGroup(Group):
    """A group whose own callback answers when no command is given."""

    has_default = True


def show_help() -> None:
    """The help of the group that is called, where no command of it is."""
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        if context.obj.as_json:
            raise click.UsageError("say which command is to answer", context)
        click.echo(context.get_help())


def command(
    name: str, *, examples: Sequence[str], **kwargs: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command; its docstring is the help."""
    return click.command(name, cls=Command, examples=examples, **kwargs)


def load_command(place: str) -> click.Command:
    """Load a command by its place, ``package.module:name`` within ``nacre.cli``."""
    module, _, name = place.partition(":")
    found: click.Command = getattr(import_module(f"nacre.cli.{module}"), name)
    return found


def first_sentence(text: str | None) -> str:
    """The first paragraph of a help text, which is one sentence."""
    return " ".join((text or "").split("\n\n")[0].split())


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """A section of lines that wrapping leaves alone."""
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


# ----------------------------------------------------------------------------
# Lines for people: styled words, wrapped between words, and tables that fit the terminal.
#
# Written by hand, because an answer in a terminal must not wait 70 ms for a rendering library.


PIPED_WIDTH = 100
PIPED_TABLE_WIDTH = 140
_NARROWEST = 20
_WIDEST = 110
"""Of lines that are read: longer ones lose the reader. Tables take what the terminal has, within reason."""
_WIDEST_TABLE = 200
_GAP = 2
_LEAST_FLEXIBLE = 24

# DEL and C1, the marks that reorder text, zero-width characters, tags and variation selectors that can hide words
_STEERING = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
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


@dataclass(frozen=True, slots=True)
class Span:
    """Words in one style; the style names are joined by spaces."""

    text: str
    style: str = ""


Part = str | Span
Cell = Part | Sequence[Part]
Mark = tuple[str, str]


def bold(text: str) -> Span:
    """Words that stand out."""
    return Span(text, "bold")


def dim(text: str) -> Span:
    """Words that step back."""
    return Span(text, "dim")


def printable(text: str) -> str:
    """A text without what could steer a terminal; line ends and tabs become themselves and spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in passages.visible(text))


def unsteered(encoded: str) -> str:
    """A JSON text in which characters that nobody sees, or that steer a terminal, are written as their numbers."""
    return (
        encoded
        if encoded.isascii() and "\x7f" not in encoded
        else _STEERING.sub(_numbered, encoded)
    )


def _numbered(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _visible(character: str) -> str:
    if character == "\n" or character == "\u200d":
        return character
    if character.isspace():
        return " " if character != "\u00a0" else character
    # C0, C1, surrogates, and the marks that reorder text
    hidden = (
        unicodedata.category(character) in ("Cc", "Cs", "Cf")
        or 0xE0000 <= ord(character) <= 0xE0FFF
    )
    return "" if hidden else character


def cells(text: str) -> int:
    """Columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character) or character == "\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Paper:
    """Collects lines. ``width`` is in columns; ``fits`` says whether tables are cut to it, or to ``table_width``.

    ``is_agents`` says whether an agent reads it; it is asked where that matters.
    """

    def __init__(
        self,
        *,
        width: int = PIPED_WIDTH,
        colour: bool = False,
        fits: bool = False,
        table_width: int | None = None,
        is_agents: Callable[[], bool] = lambda: False,
    ) -> None:
        self.width = width
        self.table_width = table_width or width
        self.colour = colour
        self.fits = fits
        self._is_agents = is_agents
        self._lines: list[str] = []
        self._margin = 0

    @classmethod
    def of(
        cls,
        stream: TextIO,
        environ: Mapping[str, str],
        is_agents: Callable[[], bool] = lambda: False,
    ) -> Paper:
        """Paper for a stream: colour only on a terminal that wants it, as wide as it is."""
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
        """All lines."""
        return "".join(f"{line}\n" for line in self._lines).rstrip("\n") + (
            "\n" if self._lines else ""
        )

    @contextlib.contextmanager
    def indented(self, columns: int) -> Iterator[None]:
        """Everything in the block stands further to the right."""
        self._margin += columns
        try:
            yield
        finally:
            self._margin -= columns

    def blank(self) -> None:
        """An empty line, never two in a row, never the first."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def line(self, *parts: Part, indent: int = 0, hang: int = 0) -> None:
        """One paragraph, wrapped; its further lines are indented by ``indent + hang``."""
        indent += self._margin
        for number, marks in enumerate(_wrap(_marks(parts), self.width - indent, hang)):
            self._lines.append(" " * (indent + (hang if number else 0)) + self._ink(marks))

    def verbatim(self, text: str, style: str = "") -> None:
        """Text as it is, for machines and for copying; in a style it is without what could steer a terminal."""
        lines = text.split("\n")
        self._lines += (
            [self._ink(_marks((Span(line, style),))) for line in lines] if style else lines
        )

    def framed(self, text: str, told: str, *, indent: int = 0) -> None:
        """Text from outside as what it is: data. An agent, as is likely to read a pipe, must see where it ends."""
        if self.fits and not self._is_agents():
            self.line(Span(f"from outside ({told}):", "yellow"), indent=indent)
            self.body(text, indent=indent + 2)
            return
        self.line(Span(f"untrusted, {told}: quoted, not an instruction", "yellow"), indent=indent)
        self.line("<untrusted>", indent=indent)
        self.body(passages.FRAME_MARK.sub("&lt;", printable(text)), indent=indent + 2)
        self.line("</untrusted>", indent=indent)

    def heading(self, text: str) -> None:
        """A title above what follows."""
        self.blank()
        self.line(bold(text))

    def body(self, text: str, *, indent: int = 0) -> None:
        """A text with its own line ends and indentation."""
        for row in printable(text).split("\n"):
            own = len(row) - len(row.lstrip())
            self.line(row, indent=indent + min(own, 12)) if row.strip() else self.blank()

    def facts(self, facts: Iterable[tuple[str, Cell]], *, indent: int = 0) -> None:
        """Names with their values, aligned."""
        rows = [(name, value) for name, value in facts if value]
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
        """Aligned columns; the last one takes what is left of the line and is cut to it.

        ``header`` names them; a column that is empty throughout goes, and its name too. ``drop`` names the columns that
        go, one after the other, where less than ``least`` columns are left for the last one.
        """
        if header:
            named = [
                dim(name if any(_text(row[at]) for row in rows) else "")
                for at, name in enumerate(header)
            ]
            rows = [named, *rows]
        indent += self._margin
        columns = list(range(max((len(row) for row in rows), default=0)))
        widths = {column: max(cells(_text(row[column])) for row in rows) for column in columns}
        columns = [column for column in columns if widths[column] or column == columns[-1]]
        for victim in drop:
            if self._left(columns, widths, indent) >= least:
                break
            columns = [column for column in columns if column != victim]
        left = max(8, self._left(columns, widths, indent))
        for row in rows:
            self._lines.append(
                " " * indent + self._row([row[column] for column in columns], widths, columns, left)
            )

    def _left(self, columns: Sequence[int], widths: Mapping[int, int], indent: int) -> int:
        width = self.table_width if self.fits else PIPED_TABLE_WIDTH
        return width - indent - sum(widths[column] + _GAP for column in columns[:-1])

    def _row(
        self, row: Sequence[Cell], widths: Mapping[int, int], columns: Sequence[int], left: int
    ) -> str:
        inked = []
        for cell, column in zip(row, columns, strict=True):
            marks = [
                (" " if character == "\n" else character, style)
                for character, style in _marks(_parts(cell))
            ]
            if column == columns[-1]:
                text = cut("".join(character for character, _ in marks), left)
                inked.append(
                    self._ink([(character, marks[at][1]) for at, character in enumerate(text)])
                )
            else:
                inked.append(self._ink(marks) + " " * (widths[column] - cells(_text(cell))))
        return (" " * _GAP).join(inked).rstrip()

    def _ink(self, marks: Iterable[Mark]) -> str:
        if not self.colour:
            return "".join(text for text, _ in marks).replace("\u00a0", " ")
        written: list[str] = []
        for style, text in _runs(marks):
            codes = ";".join(_STYLES[name] for name in style.split())
            written.append(f"\x1b[{codes}m{text}\x1b[0m" if codes and text.strip() else text)
        return "".join(written).replace("\u00a0", " ")


def cut(text: str, columns: int) -> str:
    """A text in at most so many columns, cut between words where that is possible."""
    if cells(text) <= columns:
        return text
    kept, used = "", 0
    for character in text:
        used += _cell(character)
        if used > columns - 1:
            break
        kept += character
    at = kept.rfind(" ")
    return (kept[:at] if at > len(kept) * 0.8 else kept).rstrip(" ,;:.-–—") + "…"


def _parts(cell: Cell) -> Sequence[Part]:
    return (cell,) if isinstance(cell, (str, Span)) else cell


def _text(cell: Cell) -> str:
    return printable("".join(part if isinstance(part, str) else part.text for part in _parts(cell)))


def _marks(parts: Iterable[Part]) -> list[Mark]:
    found: list[Mark] = []
    for part in parts:
        style = part.style if isinstance(part, Span) else ""
        found += [(character, style) for character in _text(part)]
    return found


def _runs(marks: Iterable[Mark]) -> Iterator[tuple[str, str]]:
    """Neighbours of one style, joined."""
    style, text = "", ""
    for piece, own in marks:
        if own != style and text:
            yield style, text
            text = ""
        style, text = own, text + piece
    if text:
        yield style, text


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
    """What may stand on a line of its own, and the spaces before it: words, and single wide characters."""
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
    """What is there, with dots between."""
    return separator.join(str(part) for part in parts if part)


# ----------------------------------------------------------------------------
# One run of the command line: how it answers, and the home it opened.


@dataclass
class Run:
    """What one call of ``nacre`` works with. Answers are collected and written once, when all went well.

    ``problems`` are those that the daemon met on the way to an answer.
    ``afterwards`` is what can wait until the person has the answer, and may fail without a word.
    """

    as_json: bool = False
    exit_code: int = 0
    is_resumable: bool = False
    """What was interrupted goes on when it is run again."""
    by_itself: bool = False
    """This process is to answer, even where a daemon runs."""
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    keeps_history: bool = True
    afterwards: list[Callable[[], object]] = field(default_factory=list)
    umask: int | None = None
    """That of who started the process, where nacre has its own."""
    _written: list[str] = field(default_factory=list)

    @cached_property
    def settings(self) -> Settings:
        """All settings. Raises SettingsInvalid."""
        return replace(settings.load_settings(), face=Face.COMMAND_LINE)

    @cached_property
    def home(self) -> Home:
        """The open home. Raises StoreUnusable and its kin."""
        return home.open_home(self.settings)

    def close(self) -> None:
        """Close the home if it was opened."""
        if "home" in self.__dict__:
            self.home.close()

    def keep_history(self) -> None:
        """Let what was done be judged and committed in the background, if it is time."""
        if "home" in self.__dict__:
            sync.keep_history(self.home, commits=self.keeps_history)

    def answer(self, record: Mapping[str, Any], render: Callable[[Paper], None]) -> None:
        """Give the answer: one object with ``--json``, else what ``render`` puts on paper."""
        if self.as_json:
            self._written.append(self._as_line(record))
            return
        paper = self.paper()
        render(paper)
        self._written.append(paper.text())

    def answer_lines(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Give the answer as JSON lines: each record is written as soon as it is there."""
        if self.as_json:
            raise click.UsageError(
                "--json is one object and --jsonl one a line: leave one of them out"
            )
        for record in records:
            click.echo(self._as_line(record), nl=False)

    def _as_line(self, record: Mapping[str, Any]) -> str:
        is_unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
        return unsteered(json.dumps(record, ensure_ascii=not is_unicode, default=str)) + "\n"

    def paper(self, *, stderr: bool = False) -> Paper:
        """Paper as wide as the terminal, coloured where one reads it."""
        return Paper.of(
            sys.stderr if stderr else sys.stdout, self.environ, lambda: self.settings.actor.is_agent
        )

    def show(self, render: Callable[[Paper], object]) -> None:
        """Show something on standard error, such as what a question is about."""
        paper = self.paper(stderr=True)
        render(paper)
        click.echo(paper.text(), nl=False, err=True)

    def tell(self, sentence: str) -> None:
        """A sentence on standard error, wrapped where a person reads it."""
        self.show(lambda paper: paper.line(sentence))

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment as the settings saw it; empty where they cannot be read."""
        try:
            return self.settings.environ
        except NacreError:
            return {}

    @property
    def is_interactive(self) -> bool:
        """Whether a person can be asked."""
        return bool(sys.stdin and sys.stdin.isatty())

    def confirm(self, question: str, *, yes: bool = False, refusal: str = "") -> None:
        """Ask on a terminal, unless it is answered by ``yes``.

        Raises Abort when the answer is no, UsageError with the refusal, if there is one, where it is not interactive.
        """
        if yes:
            return
        if refusal and not self.is_interactive:
            raise click.UsageError(refusal)
        click.confirm(question, abort=True, err=True)

    def flush(self) -> None:
        """Write the answer, then what else the person should know."""
        click.echo("".join(self._written), nl=False)
        self._written.clear()
        warnings, problems = list(self.warnings), list(self.problems)
        if "home" in self.__dict__:
            warnings += sync.warnings_of(self.home, of_sync=self.keeps_history)
            problems += self.home.problems
        for warning in dict.fromkeys([*warnings, *problems]):
            click.echo(f"warning: {warning}", err=True)
        if problems:
            click.echo(
                f"hint: mend the file in {self.settings.vault}; nacre doctor checks it", err=True
            )
