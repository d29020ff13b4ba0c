"""Triage of what waits for a person: one after another, one key each."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.formats import count, kind_span, place_name, short_id, short_session, speaker_name, split_session, when
from nacre.cli.memories.show import render_evidence
from nacre.cli.operations import perform, resumable
from nacre.cli.paper import Paper, Span, bold, cut, dim, joined, printable
from nacre.cli.run import Run
from nacre.cli.terminal.keys import END, PASTE, RESIZE
from nacre.cli.terminal.picker import Picker
from nacre.cli.terminal.screen import Screen
from nacre.errors import NacreError
from nacre.memories import evidence
from nacre.review import merge
from nacre.text import passages
from nacre.values import session as values_session
from nacre.views import Choice, Pending, PendingKind

if TYPE_CHECKING:
    from nacre.values.memory import Memory

_KEYS = {
    "k": "keep", "e": "edit", "m": "merge", "n": "newer", "o": "older", "d": "drop", "s": "skip", " ": "skip",
    "u": "undo", "q": "quit", "escape": "quit", END: "quit",
}  # fmt: skip
_HELP = (
    ("k", "keep it: a candidate becomes a memory, a memory stays; of two in conflict, both hold"),
    ("e", "keep it in other words, which you write in your editor"),
    ("m", "merge it into another memory, which you choose; of two in conflict, the older one into the newer one"),
    ("n", "of two in conflict, the newer one takes the place of the older one"),
    ("o", "of two in conflict, the older one holds, and the newer one is retired"),
    ("d", "drop it: a candidate is not proposed again, a memory is retired and its file is kept"),
    ("s", "skip it: it waits on"),
    ("w", "where it was said: the turns that it comes from, and back"),
    ("u", "undo the last of these, and then the one before"),
    ("↑ ↓", "scroll a long text"),
    ("q", "quit: the others wait on"),
)
_ASIDE = {"?": "help", "w": "where"}
"""Keys that show something beside what waits, until another one is pressed."""
_CHARACTERS_OF_A_TURN = 2_000
_LEAST_LINES = 2
"""Of what waits, that have to be seen before it is decided: one of its words, and how many follow."""
_TOO_SMALL = "The window is too small to show it. Make it larger; q quits."
_DONE = {"keep": "Kept", "edit": "Kept in other words", "merge": "Merged", "newer": "Replaced",
         "older": "Older kept", "drop": "Dropped", "skip": "Skipped"}  # fmt: skip


_WHY = {
    "found": "you said it",
    "unproven": "not borne out",
    "untrusted": "may come from outside",
    "minor": "others matter more",
}
_TWO = "Two memories are in conflict: n, the newer one holds; o, the older one; k, both; m merges them."


def why_of(item: Pending) -> str:
    """Why an item waits, in words."""
    if item.kind is PendingKind.CANDIDATE:
        return item.detail or _WHY[item.why]
    return joined((item.why.replace("_", " "), item.detail), ": ")


class Triage:
    """What waits, what was decided so far, and what was said of the last decision."""

    def __init__(self, run: Run, screen: Screen, waiting: Iterable[Pending]) -> None:
        self._run = run
        self._screen = screen
        self._left = deque(waiting)
        self._decided: list[tuple[str, Pending]] = []
        self._told: Span | str = ""
        self._aside = ""
        self._is_legible = False
        self._departed: str | None = None
        """A candidate from which a later statement departs: kept when it is asked for once more."""

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
            if key == PASTE:
                self._told = "What you pasted is ignored: each decision is a key that you press."
                continue
            key = key.lower() if len(key) == 1 else key
            chosen = _KEYS.get(key)
            if chosen == "quit" or (not self._left and chosen != "undo"):
                return
            if self._is_legible:
                self._look_aside(_ASIDE.get(key, ""))
                if chosen:
                    self._do(chosen)

    def _look_aside(self, shown: str) -> None:
        """Show help, or where it was said, or neither: the same key leads back."""
        self._aside = shown if shown != self._aside else ""
        self._screen.scroll_to(len(self._words()) if self._aside == "where" else 0)

    def _do(self, chosen: str) -> None:
        self._told = ""
        try:
            if chosen == "undo":
                self._undo()
            elif (words := self._decide(chosen, self._left[0])) is not None:
                self._told = f"{_DONE[chosen]}: {_one_line(words, 44)}"
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
            perform(self._run, "review-undo", reference=one.id)
        self._left.appendleft(self._decided.pop()[1])
        self._told = f"Undone: {_DONE[chosen].lower()}."

    def _decide(self, chosen: str, one: Pending) -> str | None:
        """What names the one that was decided; ``None`` where it was not, as an edit or a merge can be given up."""
        if chosen in ("newer", "older") and one.newer is None:
            self._told = "No other memory says otherwise than this one."
            return None
        if chosen in ("edit", "drop") and one.newer:
            self._told = _TWO
            return None
        if chosen == "edit":
            words = self._edited(one.memory.content)
            if words is not None:
                self._keep(one, content=words)
            return words
        is_done = True
        if chosen == "merge":
            is_done = self._merge(one)
        elif chosen in ("newer", "older"):
            choice = Choice.KEEP_NEW if chosen == "newer" else Choice.KEEP_OLD
            perform(self._run, "review-resolve", reference=one.id, choice=choice)
        elif chosen == "drop":
            perform(self._run, "review-drop", references=(one.id,))
        elif chosen == "keep":
            self._keep(one)
        return one.memory.subject if is_done else None

    def _keep(self, one: Pending, **fields: Any) -> None:
        is_asked, self._departed = self._departed == one.id, one.id
        perform(self._run, "review-keep", references=(one.id,), anyway=is_asked, **fields)

    def _merge(self, one: Pending) -> bool:
        """Merge it into a memory that the person chooses, in words that start as those of both."""
        target = one.newer
        if target is None:
            picker = Picker(self._run, self._screen, text=one.memory.content, but=one.memory.id)
            target = picker.choose(f"Merge “{_one_line(one.memory.subject, 30)}” into")
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
        head, rule, keys = [self._heading(), screen.rule()], [screen.rule()], screen.page(self._render_keys)[:2]
        body, least = self._body()
        spare = screen.rows - len(head) - len(rule) - len(keys) - least
        self._is_legible = spare >= 0
        if not self._is_legible:
            screen.draw([], screen.page(lambda paper: paper.line(Span(_TOO_SMALL, "yellow"))), [])
            return
        told = screen.page(self._render_told)[: max(1, min(3, spare))]
        screen.draw(head, body, [*told, *([] if told and not spare else rule), *keys])

    def _body(self) -> tuple[list[str], int]:
        """The lines to show, and how many of them have to be seen before anything is decided."""
        page = self._screen.page
        if not self._left:
            return page(lambda paper: paper.line(bold("Nothing is left."))), 1
        words = self._words()
        if self._aside == "help":
            body = page(_render_help)
        elif self._aside == "where":
            body = [*words, *page(self._render_evidence)]
        else:
            body = words
        above = len(words) - len(page(lambda paper: _render_words(paper, self._left[0])))
        return body, min(len(body), above + _LEAST_LINES)

    def _words(self) -> list[str]:
        return self._screen.page(lambda paper: _render(paper, self._left[0])) if self._left else []

    def _heading(self) -> str:
        done = ", ".join(f"{what.lower()} {self.done[key]}" for key, what in _DONE.items() if self.done[key])
        left = self._screen.page(lambda paper: paper.line(bold("Review"), dim(f"  {done}")))[0]
        right = self._screen.page(lambda paper: paper.line(bold(f"{len(self._left):,} left")))[0]
        return self._screen.bar(left, right)

    def _render_told(self, paper: Paper) -> None:
        if self._told:
            paper.line(self._told)

    def _render_evidence(self, paper: Paper) -> None:
        """The turns that it comes from, and those of the newer one."""
        one = self._left[0]
        for title, memory in (("Where it was said", one.memory), ("Where the newer one was said", one.newer)):
            if memory is None:
                continue
            paper.heading(title)
            found = evidence.evidence_of(self._run.home, memory, _CHARACTERS_OF_A_TURN)
            if not found:
                paper.line(dim("No turn of a session shows it."), indent=2)
            for turn in found:
                render_evidence(paper, turn, memory)

    def _render_keys(self, paper: Paper) -> None:
        if not self._left:
            paper.line(*_keys("undo" if self._decided else "", "quit"))
            return
        undo = "undo" if self._decided else ""
        own = ("newer holds", "older holds", "merge") if self._left[0].newer else ("edit", "merge", "drop")
        names = ("keep", *own, "skip", "where said", undo, "quit")
        paper.line(*_keys(*names), "  ", bold("?"), dim(" help"))


def _keys(*names: str) -> list[Span]:
    """Names of keys, each with its letter in bold."""
    spans: list[Span] = []
    for name in filter(None, names):
        spans += [bold(f"{'  ' if spans else ''}{name[0]}"), dim(f"\u00a0{name.replace(' ', chr(0xA0))}")]
    return spans


def _one_line(text: str, columns: int) -> str:
    return cut(" ".join(printable(text).split()), columns)


def _render(paper: Paper, one: Pending) -> None:
    """One that waits, and why."""
    what = "memory" if one.kind is PendingKind.DOUBT else one.kind.value
    paper.line(dim(what), "  ", kind_span(one.memory.kind), "  ", Span(why_of(one), "yellow"))
    paper.blank()
    _render_trust(paper, one.memory)
    _render_words(paper, one)


def _render_trust(paper: Paper, memory: Memory) -> None:
    if memory.trust is values_session.Trust.UNTRUSTED:
        paper.line(Span("from outside:", "yellow"), indent=2)


def _render_words(paper: Paper, one: Pending) -> None:
    """Its words and, beside them, the newer memory."""
    _render_memory(paper, one.memory)
    if one.newer:
        paper.blank()
        paper.line(dim("newer  "), kind_span(one.newer.kind))
        paper.blank()
        _render_trust(paper, one.newer)
        _render_memory(paper, one.newer)


def _render_memory(paper: Paper, memory: Memory) -> None:
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


def go_through(run: Run, waiting: Sequence[Pending]) -> None:
    """Show what waits on the terminal, one after another, and answer with what was done."""
    if not waiting:
        run.answer({}, lambda paper: paper.line("Nothing waits for review."))
        return
    screen = Screen(run)
    triage = Triage(run, screen, waiting)
    with resumable(run), screen.open():
        triage.go()
    run.answer({}, lambda paper: paper.line(summary(triage)))
