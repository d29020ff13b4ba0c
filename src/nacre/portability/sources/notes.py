"""Free notes, cut into statements: a list's items and paragraphs, each under its headings."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from nacre.text.passages import normalise, one_line, title_of
from nacre.values.memory import Kind

_LEAST_CHARACTERS = 12
"""A single ASCII word that is shorter is not a statement."""

_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_ITEM = re.compile(r"^(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)")
_LEAD = re.compile(r"^\*\*(.{2,80}?)[:：]?\*\*\s*[:：–—-]?\s*")
_BOLD = re.compile(r"\*\*([^*\n]{2,80}?)[:：]?\*\*[:：]?")
_BOLD_LEVEL = 7
_RULE = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,})\s*$")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Note:
    """One statement, and the headings above it, the outermost first."""

    headings: tuple[str, ...]
    text: str

    @property
    def subject(self) -> str:
        """What it is called: the words that lead it in bold, else its first sentence."""
        lead = _LEAD.match(self.text)
        return one_line(lead.group(1)) if lead else title_of(self.text)

    @property
    def is_said(self) -> bool:
        """Return True if the text has two words, or a long one; scripts without spaces need fewer characters."""
        words = normalise(self.text)
        return " " in words or len(words) >= _LEAST_CHARACTERS // (1 if words.isascii() else 3)


def notes(text: str) -> Iterator[Note]:
    """The statements of a text, in order. Code blocks belong to what stands before them."""
    reader = _Reader()
    for line in _COMMENT.sub("", text).splitlines():
        yield from reader.take(line)
    yield from reader.flush()
    yield from reader.release()


def kind_of(headings: Sequence[str], default: Kind) -> Kind:
    """The kind that the innermost telling heading names."""
    for heading in reversed(headings):
        said = heading.lower()
        for kind, words in _table():
            if any(word in said for word in words):
                return kind
    return default


class _Reader:
    def __init__(self) -> None:
        self.headings: list[tuple[int, str]] = []
        self.lines: list[str] = []
        self.lead = ""
        self.fence = ""
        self.item = False
        self.held: tuple[Note, bool] | None = None

    def take(self, line: str) -> Iterator[Note]:
        mark = _FENCE.match(line)
        if self.fence or mark:
            if mark and not self.fence and not self.lines:
                self.resume()
            if mark and (not self.fence or mark.group(1).startswith(self.fence)):
                self.fence = "" if self.fence else mark.group(1)
            self.lines.append(line)
            return
        heading = _HEADING.match(line)
        if heading or _RULE.match(line):
            yield from self.flush()
            yield from self.release()
            self.lead = ""
            if heading:
                self.enter(len(heading.group(1)), one_line(heading.group(2)))
        elif _ITEM.match(line):
            yield from self.flush()
            self.lines, self.item = [_ITEM.sub("", line)], True
        elif not line.strip():
            yield from self.pause()
        elif self.item and not line[0].isspace() and self.lines and not self.lines[-1]:
            yield from self.flush()
            self.lead, self.lines = "", [line]
        else:
            self.lines.append(line)

    def enter(self, level: int, heading: str) -> None:
        self.headings = [(above, text) for above, text in self.headings if above < level] + [(level, heading)]

    def pause(self) -> Iterator[Note]:
        """A blank line ends a paragraph; an item may go on, indented."""
        if self.item:
            self.lines.append("")
        else:
            yield from self.flush()

    def resume(self) -> None:
        """A code block goes on with what stands before it."""
        if self.held:
            (note, self.item), self.held = self.held, None
            self.lines = [note.text, ""]

    def release(self) -> Iterator[Note]:
        """What was held back for a code block to follow."""
        if self.held:
            (note, _), self.held = self.held, None
            yield note

    def flush(self) -> Iterator[Note]:
        """The lines so far are a statement: the one before it is sure to be whole."""
        text = "\n".join(self.lines).strip()
        was_item, self.item, self.lines = self.item, False, []
        if not text:
            return
        if not was_item and text.endswith((":", "：")) and "\n" not in text:
            self.lead = text.rstrip(":： ")  # it introduces the list that follows
            return
        bold = None if was_item else _BOLD.fullmatch(text)
        if bold:
            self.enter(_BOLD_LEVEL, one_line(bold.group(1)))
            return
        above = [heading for _, heading in self.headings]
        yield from self.release()
        self.held = Note((*above, self.lead) if was_item and self.lead else tuple(above), text), was_item


@cache
def _table() -> tuple[tuple[Kind, tuple[str, ...]], ...]:
    text = files("nacre.portability.sources").joinpath("headings.toml").read_text(encoding="utf-8")
    return tuple((Kind(kind), tuple(values["words"])) for kind, values in tomllib.loads(text).items())
