"""A picker of memories: type, see what answers, look at one, open its file, copy it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.formats import day, kind_span, place_name
from nacre.cli.memories.memory import subject_and_content
from nacre.cli.memories.show import render_memory
from nacre.cli.operations import ask, perform
from nacre.cli.paper import Paper, Span, bold, cells, dim, joined, printable
from nacre.cli.run import Run
from nacre.cli.terminal.keys import END, PASTE, RESIZE
from nacre.cli.terminal.screen import Screen, copy
from nacre.errors import NacreError
from nacre.text import passages
from nacre.text.passages import shorten
from nacre.values import recall
from nacre.values import session as values_session

if TYPE_CHECKING:
    from nacre.values.memory import Memory
    from nacre.values.recall import Filter

_MOST = 50
_HITS = 20
_ENOUGH = 10
"""With so many that answer, those that merely hold the words are not looked for."""
_MOVES = {"up": -1, "down": 1, "ctrl-p": -1, "ctrl-n": 1, "page-up": -8, "page-down": 8}
_MOST_TYPED = 2_000


@dataclass
class _View:
    """What is seen: the words, what they find, which of it is chosen, and whether that one is shown whole."""

    text: str = ""
    found: tuple[Memory, ...] = ()
    at: int = 0
    whole: list[str] | None = None
    told: str = ""

    @property
    def chosen(self) -> Memory | None:
        return self.found[self.at] if self.found else None


class Picker:
    """Finds memories as words are typed. ``but``: the id of one that is not to be found."""

    def __init__(
        self, run: Run, screen: Screen, *, text: str = "", wanted: Filter | None = None, but: str | None = None
    ) -> None:  # fmt: skip
        self._run = run
        self._screen = screen
        self._wanted = wanted or recall.Filter()
        self._but = but
        self._like = text
        self._view = _View()
        self._title = "Recall"
        self._chooses = False

    def choose(self, title: str) -> Memory | None:
        """The memory that the person chooses, of those nearest to the text until they type; none: they went back."""
        self._title, self._chooses = title, True
        return self._go()

    def browse(self) -> None:
        """Let the person look around until they leave."""
        self._go()

    def _go(self) -> Memory | None:
        self._find()
        while True:
            if not self._screen.keys.has_more():
                self._draw()
            key = self._screen.keys.read()
            self._view.told = "" if key != RESIZE else self._view.told
            if key == END or (key == "escape" and self._view.whole is None):
                return None
            if key == "enter" and self._chooses and self._view.chosen:
                return self._view.chosen
            if self._view.whole is None:
                self._typed(key)
            elif key == "q":
                return None
            else:
                self._seen(key)

    def _typed(self, key: str) -> None:
        """A key while words are typed."""
        view = self._view
        if key in _MOVES:
            self._move(_MOVES[key])
        elif key == "enter":
            self._show()
        elif key in ("ctrl-o", "ctrl-y"):
            self._act(key[-1])
        elif (text := self._edited(key)) != view.text:
            view.text = text
            self._screen.draw_first(*self._heading())
            if not self._screen.keys.has_more():  # a fast typist
                self._find()
            else:
                self._view = replace(view, at=0)

    def _edited(self, key: str) -> str:
        """The words after a key; what is pasted is one line of them."""
        text = self._view.text
        return (
            f"{text}{' '.join(self._screen.keys.pasted.split())}"[:_MOST_TYPED] if key == PASTE else _edited(text, key)
        )

    def _seen(self, key: str) -> None:
        """A key while one is shown whole."""
        if key in ("j", "k"):
            self._move(1 if key == "j" else -1)
            self._show()
        elif key in ("escape", "enter", "/"):
            self._view.whole = None
            self._screen.scroll_to(0)
        elif key in ("o", "c", "ctrl-o", "ctrl-y"):
            self._act(key[-1])
        elif key == RESIZE:
            self._show()
        else:
            self._screen.scroll(key)

    def _move(self, step: int) -> None:
        self._view.at = max(0, min(len(self._view.found) - 1, self._view.at + step))

    def _find(self) -> None:
        """Find what the words mean, then what merely holds them; without words, the newest."""
        asked = self._view.text.strip() or (self._like[:_MOST_TYPED] if self._chooses else "")
        found: dict[str, Memory] = {}
        try:
            if asked:
                result = ask(
                    self._run, "recall", text=asked, filter=self._wanted, limit=_HITS, update=False, turns=0
                )  # fmt: skip
                found = {hit.memory.id: hit.memory for hit in result.hits if not hit.candidate}
            if len(found) < _ENOUGH:
                words = self._view.text.strip()
                listed = ask(self._run, "list", filter=self._wanted, words=words, limit=_MOST).memories
                found = {**found, **{one.id: one for one in listed if one.id not in found}}
        except NacreError as error:
            self._view.told = error.message
        found.pop(self._but or "", None)
        self._view = replace(self._view, found=tuple(found.values()), at=0, whole=None)

    def _show(self) -> None:
        """Show the chosen one whole, with its evidence and links."""
        if self._view.chosen is None:
            return
        self._screen.scroll_to(0)
        try:
            view = ask(self._run, "look", reference=self._view.chosen.id, update=True, session=None)
            stale = ask(self._run, "graph-stale", memory=view.memory.id, folder=str(Path.cwd()))
        except NacreError as error:
            self._view.told = joined((error.message, error.hint), "; ")
            return
        vault = self._run.settings.shown_vault
        self._view.whole = self._screen.page(lambda paper: render_memory(paper, view, vault, stale))

    def _act(self, key: str) -> None:
        """Open the chosen one's file, or copy its words."""
        if (memory := self._view.chosen) is None:
            return
        if key in ("c", "y"):
            copy(printable(memory.content))
            self._view.told = "Copied, where your terminal lets programs write to the clipboard (OSC 52)."
            return
        try:
            path = perform(self._run, "look", reference=memory.id, update=False, session=None).path
            if path is None or self._run.settings.server:
                self._view.told = "It has no file."
                return
            self._screen.open_file(str(self._run.settings.vault / path))
            self._again()
        except NacreError as error:
            self._view.told = joined((error.message, error.hint), "; ")
        except click.ClickException as error:
            self._view.told = error.format_message()

    def _again(self) -> None:
        """Show what was found as it is now: its file may have been changed."""
        at, is_whole = self._view.at, self._view.whole is not None
        self._find()
        self._view.at = min(at, max(0, len(self._view.found) - 1))
        if is_whole:
            self._show()

    def _draw(self) -> None:
        view, screen = self._view, self._screen
        told = screen.page(lambda paper: paper.line(Span(view.told, "yellow")) if view.told else None)[:1]
        foot = [*told, screen.rule(), *screen.page(self._render_keys)[:1]]
        if view.whole is not None:
            head = [
                screen.page(lambda paper: paper.line(bold(f"{view.at + 1} of {len(view.found)}")))[0],
                screen.rule(),
            ]
            screen.draw(head, view.whole, foot)
            return
        heading, typed_at = self._heading()
        head = [heading, screen.rule()]
        room = screen.rows - len(head) - len(foot)
        above = max(3, room // 2)
        body = [*self._listed(above), screen.rule()]
        screen.draw(head, [*body, *self._preview(room - len(body))], foot, typed_at)

    def _heading(self) -> tuple[str, int]:
        """The line in which words are typed, and the column after them."""
        title = f"{self._title}: ".replace(" ", "\u00a0")
        typed = _end(self._view.text, self._screen.columns // 2).replace(" ", "\u00a0")
        return self._screen.page(lambda paper: paper.line(bold(title), typed))[0], cells(title + typed)

    def _listed(self, rows: int) -> list[str]:
        """The part of what was found in which the chosen one is."""
        view = self._view
        if not view.found:
            told = "No memory holds these words." if view.text else "There is nothing in memory yet."
            return self._screen.page(lambda paper: paper.line(dim(told)))
        first = max(0, min(view.at - rows // 2, len(view.found) - rows))
        table = [
            (bold("▸") if first + number == view.at else " ", kind_span(one.kind), dim(day(one.created)),
             subject_and_content(one))
            for number, one in enumerate(view.found[first:][:rows])
        ]  # fmt: skip
        return self._screen.page(lambda paper: paper.table(table, drop=(2,)))

    def _preview(self, rows: int) -> list[str]:
        """The chosen one's words, as far as they fit."""
        lines = self._screen.page(self._render_preview)
        return [*lines[: rows - 1], "…"] if len(lines) > rows else lines

    def _render_preview(self, paper: Paper) -> None:
        memory = self._view.chosen
        if memory is None:
            return
        if memory.trust is values_session.Trust.UNTRUSTED:
            paper.line(Span("from outside:", "yellow"))
        if not passages.normalise(memory.content).startswith(passages.normalise(memory.subject)):
            paper.line(bold(shorten(memory.subject, 200)))
        paper.body(memory.content)
        paper.line(dim(joined((place_name(memory), f"importance {memory.importance}", memory.id[-8:]))))

    def _render_keys(self, paper: Paper) -> None:
        if self._chooses:
            keys = "type to search · ↑ ↓ choose · Enter merge into it · Esc back"
        elif self._view.whole is not None:
            keys = "j k next, previous · ↑ ↓ scroll · o open · c copy · Esc back · q quit"
        else:
            keys = "type to search · ↑ ↓ choose · Enter show · ^O open · ^Y copy · Esc quit"
        paper.line(dim(keys))


def _edited(text: str, key: str) -> str:
    """The words after a key."""
    if key == "backspace":
        return text[:-1]
    if key == "ctrl-u":
        return ""
    if key == "ctrl-w":
        return text.rstrip().rpartition(" ")[0]
    is_written = len(key) == 1 and key.isprintable() and len(text) < _MOST_TYPED
    return text + key if is_written else text


def _end(text: str, columns: int) -> str:
    """The end of what was typed, where all of it does not fit."""
    text = printable(text)
    while cells(text) > columns:
        text = text[1:]
    return text


def browse(run: Run, wanted: Filter) -> None:
    """Open the picker on the terminal."""
    screen = Screen(run)
    with screen.open():
        Picker(run, screen, wanted=wanted).browse()
