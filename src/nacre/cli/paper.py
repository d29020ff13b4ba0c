"""Lines for people: styled words, wrapped between words, and tables that fit the terminal.

Written by hand, because an answer in a terminal must not wait 70 ms for a rendering library.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from nacre.text import passages

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
    "bold": "1", "dim": "2", "italic": "3", "red": "31", "green": "32", "yellow": "33", "blue": "34",
    "magenta": "35", "cyan": "36",
}  # fmt: skip


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
    return encoded if encoded.isascii() and "\x7f" not in encoded else _STEERING.sub(_numbered, encoded)


def _numbered(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _visible(character: str) -> str:
    if character == "\n" or character == "\u200d":
        return character
    if character.isspace():
        return " " if character != "\u00a0" else character
    # C0, C1, surrogates, and the marks that reorder text
    hidden = unicodedata.category(character) in ("Cc", "Cs", "Cf") or 0xE0000 <= ord(character) <= 0xE0FFF
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
        self, *, width: int = PIPED_WIDTH, colour: bool = False, fits: bool = False, table_width: int | None = None,
        is_agents: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self.width = width
        self.table_width = table_width or width
        self.colour = colour
        self.fits = fits
        self._is_agents = is_agents
        self._lines: list[str] = []
        self._margin = 0

    @classmethod
    def of(
        cls, stream: TextIO, environ: Mapping[str, str], is_agents: Callable[[], bool] = lambda: False
    ) -> Paper:  # fmt: skip
        """Paper for a stream: colour only on a terminal that wants it, as wide as it is."""
        if not stream.isatty():
            return cls()
        columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns
        plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
        return cls(
            width=max(_NARROWEST, min(columns, _WIDEST)), colour=not plain, fits=True,
            table_width=max(_NARROWEST, min(columns, _WIDEST_TABLE)), is_agents=is_agents,
        )  # fmt: skip

    def text(self) -> str:
        """All lines."""
        return "".join(f"{line}\n" for line in self._lines).rstrip("\n") + ("\n" if self._lines else "")

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
        self._lines += [self._ink(_marks((Span(line, style),))) for line in lines] if style else lines

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
        self, rows: Sequence[Sequence[Cell]], *, header: Sequence[str] = (), drop: Sequence[int] = (), indent: int = 0,
        least: int = _LEAST_FLEXIBLE,
    ) -> None:  # fmt: skip
        """Aligned columns; the last one takes what is left of the line and is cut to it.

        ``header`` names them; a column that is empty throughout goes, and its name too. ``drop`` names the columns that
        go, one after the other, where less than ``least`` columns are left for the last one.
        """
        if header:
            named = [dim(name if any(_text(row[at]) for row in rows) else "") for at, name in enumerate(header)]
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
            self._lines.append(" " * indent + self._row([row[column] for column in columns], widths, columns, left))

    def _left(self, columns: Sequence[int], widths: Mapping[int, int], indent: int) -> int:
        width = self.table_width if self.fits else PIPED_TABLE_WIDTH
        return width - indent - sum(widths[column] + _GAP for column in columns[:-1])

    def _row(self, row: Sequence[Cell], widths: Mapping[int, int], columns: Sequence[int], left: int) -> str:
        inked = []
        for cell, column in zip(row, columns, strict=True):
            marks = [(" " if character == "\n" else character, style) for character, style in _marks(_parts(cell))]
            if column == columns[-1]:
                text = cut("".join(character for character, _ in marks), left)
                inked.append(self._ink([(character, marks[at][1]) for at, character in enumerate(text)]))
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
