"""The review of pending items on a terminal, with one key for each decision."""

from __future__ import annotations

import signal
import sys
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from nacre.base import text
from nacre.cli import hits
from nacre.cli.command import Paper, Run, Span, bold, cut, dim, joined, printable
from nacre.cli.memories import render_evidence
from nacre.cli.operations import ask, perform, resumable
from nacre.cli.options import (
    count,
    kind_span,
    place_name,
    short_id,
    short_session,
    speaker_name,
    split_session,
    when,
)
from nacre.errors import NacreError
from nacre.home import views
from nacre.home.views import Choice, Pending, PendingKind
from nacre.memories import decision
from nacre.review import contradictions, queue
from nacre.values import recall
from nacre.values import session as values_session

if TYPE_CHECKING:
    from nacre.values.memory import Memory


_KEYS = {
    "k": "keep",
    "e": "edit",
    "m": "merge",
    "n": "newer",
    "o": "older",
    "d": "drop",
    "s": "skip",
    " ": "skip",
    "u": "undo",
    "q": "quit",
    "\x1b": "quit",
    "?": "help",
    "w": "where",
}
_HELP = (
    ("k", "keep it; a candidate becomes a memory; in a conflict, both memories stay"),
    ("e", "keep it in other words, written in your editor"),
    (
        "m",
        "merge it into a memory that you choose; in a conflict, merge the older memory into the newer one",
    ),
    ("n", "in a conflict, replace the older memory with the newer one"),
    ("o", "in a conflict, keep the older memory and retire the newer one"),
    ("d", "drop it; a candidate is not proposed again; a memory is retired, but its file is kept"),
    ("s", "skip it, so that it stays pending"),
    ("w", "show its source turns"),
    ("u", "undo the last decision; repeat for earlier ones"),
    ("q", "quit; other items stay pending"),
)
_CHARACTERS_OF_A_TURN = 2_000
_MOST_CHOICES = 9
"""Number of memories offered as the target of a merge."""
_MOST_ASKED = 2_000
_DONE = {
    "keep": "Kept",
    "edit": "Kept in other words",
    "merge": "Merged",
    "newer": "Replaced",
    "older": "Older kept",
    "drop": "Dropped",
    "skip": "Skipped",
}


_WHY = {
    "found": "you said it",
    "unproven": "not proven",
    "untrusted": "untrusted source",
    "minor": "less important than others",
}
_TWO = "These two are in conflict: n keeps the newer one, o the older one, k both; m merges them."


def can_be_drawn(run: Run) -> bool:
    """Return True if the review can ask for keys: on a terminal, outside an agent, and without ``--json``."""
    is_terminal = (
        run.is_interactive
        and bool(sys.stdout and sys.stdout.isatty())
        and run.environ.get("TERM") != "dumb"
    )
    return is_terminal and not run.as_json and not run.settings.actor.is_agent


def why_of(item: Pending) -> str:
    """Return the reason why an item is pending."""
    if item.kind is PendingKind.CANDIDATE:
        return item.detail or _WHY[item.why]
    return joined((item.why.replace("_", " "), item.detail), ": ")


class Triage:
    """A review of pending items, with the decisions so far."""

    def __init__(self, run: Run, waiting: Iterable[Pending]) -> None:
        self._run = run
        self._left = deque(waiting)
        self._decided: list[tuple[str, Pending]] = []
        self._departed: str | None = None
        """The item that the user last tried to keep. A second try ignores a conflicting later statement."""

    @property
    def done(self) -> Counter[str]:
        """Return how often each decision was made."""
        return Counter(what for what, _ in self._decided)

    @property
    def left(self) -> int:
        """Return the number of pending items, including skipped ones."""
        return len(self._left) + self.done["skip"]

    def go(self) -> None:
        """Print the items and handle keys until no item is left or the user quits."""
        self._run.show(self._render)
        while True:
            self._run.show(self._render_keys)
            key = _read_key()
            if len(key) > 1:
                if not key.startswith("\x1b"):  # an arrow key, for example
                    self._tell("Pasted text is ignored: press a key for each decision.")
                continue
            chosen = _KEYS.get(key.lower(), "")
            if chosen == "quit" or (not self._left and chosen != "undo"):
                return
            if chosen == "help":
                self._run.show(Paper.facts, _HELP)
            elif chosen == "where":
                self._run.show(self._render_evidence)
            elif chosen and self._do(chosen):
                self._run.show(self._render)

    def _tell(self, message: str, style: str = "") -> None:
        self._run.show(Paper.note, message, style)

    def _do(self, chosen: str) -> bool:
        """Carry out a decision. Return True if a different item is next."""
        try:
            if chosen == "undo":
                return self._undo()
            if (words := self._decide(chosen, self._left[0])) is None:
                return False
        except NacreError as error:
            self._tell(joined((error.message, error.hint), "; "), "red")
            return False
        except click.ClickException as error:
            self._tell(error.format_message(), "red")
            return False
        self._tell(f"{_DONE[chosen]}: {_one_line(words, 44)}")
        self._decided.append((chosen, self._left.popleft()))
        return True

    def _undo(self) -> bool:
        if not self._decided:
            self._tell("Nothing was decided yet.")
            return False
        chosen, item = self._decided[-1]
        if chosen != "skip":
            perform(self._run, queue.reopen, reference=item.id)
        self._left.appendleft(self._decided.pop()[1])
        self._tell(f"Undone: {_DONE[chosen].lower()}.")
        return True

    def _decide(self, chosen: str, item: Pending) -> str | None:
        """Carry out a decision. Return a name for the item, or ``None`` if the user cancelled an edit or merge."""
        if chosen in ("newer", "older") and item.newer is None:
            self._tell("This memory is not in conflict with another one.")
            return None
        if chosen in ("edit", "drop") and item.newer:
            self._tell(_TWO)
            return None
        if chosen == "edit":
            words = self._edited(item.memory.content)
            if words is not None:
                self._keep(item, content=words)
            return words
        is_done = True
        if chosen == "merge":
            is_done = self._merge(item)
        elif chosen in ("newer", "older"):
            choice = Choice.KEEP_NEW if chosen == "newer" else Choice.KEEP_OLD
            perform(self._run, queue.resolve, reference=item.id, choice=choice)
        elif chosen == "drop":
            perform(self._run, queue.drop, references=(item.id,))
        elif chosen == "keep":
            self._keep(item)
        return item.memory.subject if is_done else None

    def _keep(self, item: Pending, **fields: Any) -> None:
        is_repeated, self._departed = self._departed == item.id, item.id
        perform(self._run, queue.keep_items, references=(item.id,), anyway=is_repeated, **fields)

    def _merge(self, item: Pending) -> bool:
        """Merge an item into a memory that the user chooses. The editor starts with both texts."""
        target = item.newer or self._choose_target(item.memory)
        words = self._edited(contradictions.words_of_both(target, item.memory)) if target else None
        if target is None or words is None:
            self._tell("Not merged.")
            return False
        self._keep(item, into=target.id, content=words)
        return True

    def _choose_target(self, memory: Memory) -> Memory | None:
        """Return the memory whose number the user enters. Search for other input. An empty line cancels."""
        words = memory.content
        while words:
            found = self._find_targets(words, memory)
            rows = [
                (f"{number}", kind_span(item.kind), hits.subject_and_content(item))
                for number, item in enumerate(found, 1)
            ]
            self._run.show(Paper.table, rows)
            words = click.prompt(
                "Merge into (number, or words to search for)", "", show_default=False, err=True
            ).strip()
            if words.isdecimal() and 0 < int(words) <= len(found):
                return found[int(words) - 1]
        return None

    def _find_targets(self, words: str, memory: Memory) -> list[Memory]:
        """Return the memories that recall finds, then the newest memories."""
        result = ask(
            self._run,
            recall.RecallResult,
            "recall",
            text=words[:_MOST_ASKED],
            limit=_MOST_CHOICES,
            update=False,
            turns=0,
        )
        newest = ask(self._run, views.Listing, "list", limit=_MOST_CHOICES + 1).memories
        similar = [hit.memory for hit in result.hits if not hit.candidate]
        found = {item.id: item for item in (*similar, *newest) if item.id != memory.id}
        return list(found.values())[:_MOST_CHOICES]

    def _edited(self, content: str) -> str | None:
        """Return the text edited by the user, or ``None`` if it was not saved or is empty."""
        words = click.edit(printable(content), extension=".md")
        if words is None or not words.strip():
            self._tell("Not saved; nothing was changed.")
            return None
        return words.strip()

    def _render(self, paper: Paper) -> None:
        """Print the next item."""
        paper.note("─" * paper.width)
        left = bold(f"{len(self._left):,} left")
        if not self._left:
            paper.line(left, "  ", "Nothing is left.")
            return
        item = self._left[0]
        what = "memory" if item.kind is PendingKind.DOUBT else item.kind.value
        why = Span(why_of(item), "yellow")
        paper.line(left, "  ", dim(what), "  ", kind_span(item.memory.kind), "  ", why)
        _render_memory(paper, item.memory)
        if item.newer:
            paper.blank()
            paper.line(dim("newer  "), kind_span(item.newer.kind))
            _render_memory(paper, item.newer)

    def _render_evidence(self, paper: Paper) -> None:
        item = self._left[0]
        for title, memory in (
            ("Where it was said", item.memory),
            ("Where the newer one was said", item.newer),
        ):
            if memory is None:
                continue
            paper.heading(title)
            turns = decision.evidence_of(self._run.home, memory, _CHARACTERS_OF_A_TURN)
            if not turns:
                paper.note("No turn of a session is recorded for it.", indent=2)
            for turn in turns:
                render_evidence(paper, turn, memory)

    def _render_keys(self, paper: Paper) -> None:
        undo = "undo" if self._decided else ""
        if not self._left:
            paper.line(*_keys(undo, "quit"))
            return
        own = (
            ("newer holds", "older holds", "merge")
            if self._left[0].newer
            else ("edit", "merge", "drop")
        )
        names = ("keep", *own, "skip", "where said", undo, "quit")
        paper.line(*_keys(*names), "  ", bold("?"), dim(" help"))


def _read_key() -> str:
    """Wait for a key. The text is longer if the user pasted text or pressed a special key."""
    try:
        return click.getchar() or "q"
    except EOFError:
        return "q"


def _keys(*names: str) -> list[Span]:
    """Return the names of keys, with each key's letter in bold."""
    spans: list[Span] = []
    for name in filter(None, names):
        spans += [
            bold(f"{'  ' if spans else ''}{name[0]}"),
            dim(f"\u00a0{name.replace(' ', chr(0xA0))}"),
        ]
    return spans


def _one_line(text: str, columns: int) -> str:
    return cut(" ".join(printable(text).split()), columns)


def _render_memory(paper: Paper, memory: Memory) -> None:
    paper.blank()
    if memory.trust is values_session.Trust.UNTRUSTED:
        paper.note("from outside:", "yellow", indent=2)
    if not text.normalise(memory.content).startswith(text.normalise(memory.subject).rstrip("….")):
        paper.line(bold(memory.subject), indent=2)
    paper.body(memory.content, indent=2)
    tool, native_id = split_session(memory.source.session)
    speaker = f"said by {speaker_name(memory.speaker, memory.author)}"
    where = f"{speaker} in {tool} {short_session(native_id)}" if tool and native_id else speaker
    paper.note(
        joined((place_name(memory), when(memory.created), where, short_id(memory))), indent=2
    )


def summary(triage: Triage) -> str:
    """Return a sentence with the numbers of decisions and pending items."""
    done = triage.done
    parts = [
        f"{what.lower()} {done[key]:,}"
        for key, what in _DONE.items()
        if done[key] and key != "skip"
    ]
    decisions = ", ".join(parts) or "nothing was changed"
    left = f"; {count(triage.left, 'item')} pending" if triage.left else ""
    return f"{decisions[:1].upper()}{decisions[1:]}{left}."


def go_through(run: Run, waiting: Sequence[Pending]) -> None:
    """Let the user review pending items on the terminal, then print a summary of the decisions."""
    if not waiting:
        run.answer({}, Paper.line, "Nothing is pending.")
        return
    triage = Triage(run, waiting)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # restores the terminal
    try:
        with resumable(run):
            triage.go()
    finally:
        signal.signal(signal.SIGTERM, before)
    run.answer({}, Paper.line, summary(triage))
