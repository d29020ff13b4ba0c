"""Triage of what waits for a person: one after another, one key each."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.formats import count, kind_span, place_name, short_id, short_session, speaker_name, split_session, when
from nacre.cli.operations import perform, resumable
from nacre.cli.paper import Paper, Span, bold, cut, dim, joined, printable
from nacre.cli.run import Run
from nacre.cli.terminal.keys import END, RESIZE
from nacre.cli.terminal.picker import Picker
from nacre.cli.terminal.screen import Screen
from nacre.errors import NacreError
from nacre.platform.lazy import Module
from nacre.text import passages
from nacre.values import session as values_session

if TYPE_CHECKING:
    from nacre.review import merge
    from nacre.values.memory import Memory
else:
    merge = Module("nacre.review.merge")

_KEYS = {
    "k": "keep", "e": "edit", "m": "merge", "n": "replace", "d": "drop", "s": "skip", " ": "skip", "u": "undo",
    "q": "quit", "escape": "quit", END: "quit",
}  # fmt: skip
_HELP = (
    ("k", "keep it: a candidate becomes a memory, a memory stays; beside a newer one, both hold"),
    ("e", "keep it in other words, which you write in your editor"),
    ("m", "merge it into another memory, which you choose"),
    ("n", "the newer memory takes its place"),
    ("d", "drop it: a candidate is not proposed again, a memory is retired and its file is kept"),
    ("s", "skip it: it waits on"),
    ("u", "undo the last of these, and then the one before"),
    ("↑ ↓", "scroll a long text"),
    ("q", "quit: the others wait on"),
)
_DONE = {"keep": "Kept", "edit": "Kept in other words", "merge": "Merged", "replace": "Replaced", "drop": "Dropped",
         "skip": "Skipped"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Waiting:
    """A candidate, or a memory to review: why it waits, and the newer memory that says otherwise, if one does."""

    memory: Memory
    why: str
    is_candidate: bool
    newer: Memory | None = None


class Triage:
    """What waits, what was decided so far, and what was said of the last decision."""

    def __init__(self, run: Run, screen: Screen, waiting: Iterable[Waiting]) -> None:
        self._run = run
        self._screen = screen
        self._left = deque(waiting)
        self._decided: list[tuple[str, Waiting]] = []
        self._told: Span | str = ""
        self._shows_help = False

    @property
    def done(self) -> Counter[str]:
        """How often each decision was taken."""
        return Counter(what for what, _ in self._decided)

    @property
    def left(self) -> int:
        """How many wait on, with those that were skipped."""
        return len(self._left) + self.done["skip"]

    def go(self) -> None:
        """Show one after another, and do as the keys say, until none is left or the person has enough."""
        while True:
            self._draw()
            key = self._screen.keys.read()
            if key == RESIZE or self._screen.scroll(key):
                continue
            self._shows_help = key == "?" and not self._shows_help
            chosen = _KEYS.get(key.lower() if len(key) == 1 else key)
            if chosen == "quit" or (not self._left and chosen != "undo"):
                return
            if chosen:
                self._do(chosen)

    def _do(self, chosen: str) -> None:
        self._told = ""
        self._screen.to_top()
        try:
            if chosen == "undo":
                self._undo()
            elif chosen == "skip" or self._decide(chosen, self._left[0]):
                self._told = _told(chosen, self._left[0])
                self._decided.append((chosen, self._left.popleft()))
        except NacreError as error:
            self._told = Span(joined((error.message, error.hint), "; "), "red")
        except click.ClickException as error:
            self._told = Span(error.format_message(), "red")

    def _undo(self) -> None:
        if not self._decided:
            self._told = "Nothing was decided yet."
            return
        chosen, one = self._decided[-1]
        if chosen != "skip":
            perform(self._run, "review-undo", reference=one.memory.id)
        self._left.appendleft(self._decided.pop()[1])
        self._told = f"Undone: {_DONE[chosen].lower()}."

    def _decide(self, chosen: str, one: Waiting) -> bool:
        """Whether it is decided: an edit or a merge can be given up."""
        if chosen == "replace":
            return self._replace(one)
        if chosen == "drop":
            operation = "candidate-drop" if one.is_candidate else "review-retire"
            perform(self._run, operation, references=(one.memory.id,))
            return True
        if chosen == "keep":
            self._keep(one)
            return True
        if chosen == "merge":
            return self._merge(one)
        words = self._edited(one.memory.content)
        if words is not None:
            self._keep(one, content=words)
        return words is not None

    def _replace(self, one: Waiting) -> bool:
        if one.newer is None:
            self._told = "No newer memory says otherwise than this one."
            return False
        perform(self._run, "review-replace", references=(one.memory.id,))
        return True

    def _keep(self, one: Waiting, **fields: Any) -> None:
        if one.is_candidate:
            perform(self._run, "candidate-keep", reference=one.memory.id, **fields)
        else:
            perform(self._run, "review-dismiss", references=(one.memory.id,), **fields)

    def _merge(self, one: Waiting) -> bool:
        """Merge it into a memory that the person chooses, in words that start as those of both."""
        picker = Picker(self._run, self._screen, text=one.memory.content, but=one.memory.id)
        target = picker.choose(f"Merge “{_subject(one.memory, 30)}” into")
        words = self._edited(merge.words_of_both(target, one.memory)) if target else None
        if target is None or words is None:
            self._told = "Not merged."
            return False
        self._keep(one, into=target.id, content=words)
        return True

    def _edited(self, content: str) -> str | None:
        """Words as the person leaves them in an editor; none where they were not saved, or deleted."""
        words = self._screen.edit(printable(content))
        if words is None or not words.strip():
            self._told = "Not saved, nothing was changed."
            return None
        return words.strip()

    def _draw(self) -> None:
        screen = self._screen
        foot = [*screen.page(self._render_told)[:3], screen.rule(), *screen.page(self._render_keys)[:2]]
        if self._shows_help:
            body = screen.page(_render_help)
        elif self._left:
            body = screen.page(lambda paper: _render(paper, self._left[0]))
        else:
            body = screen.page(lambda paper: paper.line(bold("Nothing is left.")))
        screen.draw([self._heading(), screen.rule()], body, foot)

    def _heading(self) -> str:
        done = ", ".join(f"{what.lower()} {self.done[key]}" for key, what in _DONE.items() if self.done[key])
        left = self._screen.page(lambda paper: paper.line(bold("Review"), dim(f"  {done}")))[0]
        right = self._screen.page(lambda paper: paper.line(bold(f"{len(self._left):,} left")))[0]
        return self._screen.bar(left, right)

    def _render_told(self, paper: Paper) -> None:
        if self._told:
            paper.line(self._told)

    def _render_keys(self, paper: Paper) -> None:
        if not self._left:
            paper.line(*_keys("undo" if self._decided else "", "quit"))
            return
        newer = "newer holds" if self._left[0].newer else ""
        undo = "undo" if self._decided else ""
        paper.line(*_keys("keep", "edit", "merge", newer, "drop", "skip", undo, "quit"), "  ", bold("?"), dim(" help"))


def _keys(*names: str) -> list[Span]:
    """Names of keys, each with its letter in bold."""
    spans: list[Span] = []
    for name in filter(None, names):
        spans += [bold(f"{'  ' if spans else ''}{name[0]}"), dim(f"\u00a0{name.replace(' ', chr(0xA0))}")]
    return spans


def _subject(memory: Memory, columns: int) -> str:
    return cut(" ".join(printable(memory.subject).split()), columns)


def _told(chosen: str, one: Waiting) -> str:
    return f"{_DONE[chosen]}: {_subject(one.memory, 44)}"


def _render(paper: Paper, one: Waiting) -> None:
    """One that waits, why, and beside it the newer memory."""
    what = "candidate" if one.is_candidate else "memory"
    paper.line(dim(what), "  ", kind_span(one.memory.kind), "  ", Span(one.why, "yellow"))
    paper.blank()
    _render_words(paper, one.memory)
    if one.newer:
        paper.blank()
        paper.line(dim("newer  "), kind_span(one.newer.kind))
        paper.blank()
        _render_words(paper, one.newer)


def _render_words(paper: Paper, memory: Memory) -> None:
    if memory.trust is values_session.Trust.UNTRUSTED:
        paper.line(Span("from outside:", "yellow"), indent=2)
    if not passages.normalise(memory.content).startswith(passages.normalise(memory.subject).rstrip("….")):
        paper.line(bold(memory.subject), indent=2)
    paper.body(memory.content, indent=2)
    tool, native_id = split_session(memory.source.session)
    said = f"said by {speaker_name(memory.speaker, memory.author)}"
    where = f"{said} in {tool} {short_session(native_id)}" if tool and native_id else said
    paper.line(dim(joined((place_name(memory), when(memory.created), where, short_id(memory)))), indent=2)


def _render_help(paper: Paper) -> None:
    paper.facts(_HELP)


def summary(triage: Triage) -> str:
    """What was done, in a sentence."""
    done = triage.done
    parts = [f"{what.lower()} {done[key]:,}" for key, what in _DONE.items() if done[key] and key != "skip"]
    told = ", ".join(parts) or "nothing was changed"
    left = f"; {count(triage.left, 'decision waits', 'decisions wait')}" if triage.left else ""
    return f"{told[:1].upper()}{told[1:]}{left}."


def go_through(run: Run, waiting: Iterable[Waiting], nothing: str) -> None:
    """Show what waits on the terminal, one after another, and answer with what was done."""
    found = list(waiting)
    if not found:
        run.answer({}, lambda paper: paper.line(nothing))
        return
    screen = Screen(run)
    triage = Triage(run, screen, found)
    with resumable(run), screen.open():
        triage.go()
    run.answer({}, lambda paper: paper.line(summary(triage)))
    run.embed_afterwards()
