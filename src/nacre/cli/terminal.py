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
    when,
)
from nacre.errors import NacreError
from nacre.home.views import Choice, Pending, PendingKind
from nacre.memories import decision
from nacre.review import queue
from nacre.values import recall
from nacre.values.session import Trust

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
    (
        "d",
        "drop it, in a conflict the older memory; memories are retired, and their files are kept",
    ),
    ("s", "skip it, so that it stays pending"),
    ("w", "show its source turns"),
    ("u", "undo the last decision; repeat for earlier ones"),
    ("q", "quit; other items stay pending"),
)
_TURN_CHARACTERS = 2_000
_MAX_CHOICES = 9
"""Maximum number of memories offered as a merge target."""
_MAX_QUERY_CHARACTERS = 2_000
_VERBS = {
    "keep": "Kept",
    "edit": "Kept as edited",
    "merge": "Merged",
    "newer": "Replaced",
    "older": "Older kept",
    "drop": "Dropped",
    "skip": "Skipped",
}


_REASONS = {
    "found": "you said it",
    "unproven": "not proven",
    "untrusted": "untrusted source",
    "minor": "less important than others",
}
_CONFLICT_KEYS = (
    "These two are in conflict: n keeps the newer one, o the older one, k both; m merges them."
)


def can_be_drawn(run: Run) -> bool:
    """Return True if a person can review on this terminal and did not ask for ``--json``."""
    is_terminal = (
        run.is_interactive
        and bool(sys.stdout and sys.stdout.isatty())
        and run.environ.get("TERM") != "dumb"
    )
    return is_terminal and not run.as_json and not run.settings.actor.is_agent


def _why(item: Pending) -> str:
    if item.kind is PendingKind.CANDIDATE:
        return item.detail or _REASONS[item.why]
    return joined((item.why.replace("_", " "), item.detail), ": ")


class Triage:
    """A review of pending items, with the decisions so far."""

    def __init__(self, run: Run, items: Iterable[Pending]) -> None:
        self._run = run
        self._items = deque(items)
        self._decided: list[tuple[str, Pending]] = []
        self._last_attempt: str | None = None
        """The item that the user last tried to keep. A second try keeps it despite a conflicting statement."""

    @property
    def counts(self) -> Counter[str]:
        """Return how often each decision was made."""
        return Counter(what for what, _ in self._decided)

    @property
    def remaining(self) -> int:
        """Return the number of pending items, including skipped ones."""
        return len(self._items) + self.counts["skip"]

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
            action = _KEYS.get(key.lower(), "")
            if action == "quit" or (not self._items and action != "undo"):
                return
            if action == "help":
                self._run.show(Paper.facts, _HELP)
            elif action == "where":
                self._run.show(self._render_evidence)
            elif action and self._do(action):
                self._run.show(self._render)

    def _tell(self, message: str, style: str = "") -> None:
        self._run.show(Paper.note, message, style)

    def _do(self, action: str) -> bool:
        try:
            if action == "undo":
                return self._undo()
            if (words := self._decide(action, self._items[0])) is None:
                return False
        except NacreError as error:
            self._tell(joined((error.message, error.hint), "; "), "red")
            return False
        except click.ClickException as error:
            self._tell(error.format_message(), "red")
            return False
        self._tell(f"{_VERBS[action]}: {cut(' '.join(printable(words).split()), 44)}")
        self._decided.append((action, self._items.popleft()))
        return True

    def _undo(self) -> bool:
        if not self._decided:
            self._tell("Nothing was decided yet.")
            return False
        action, item = self._decided[-1]
        if action != "skip":
            perform(self._run, queue.reopen, reference=item.id)
        self._items.appendleft(self._decided.pop()[1])
        self._tell(f"Undone: {_VERBS[action].lower()}.")
        return True

    def _decide(self, action: str, item: Pending) -> str | None:
        if action in ("newer", "older") and item.newer is None:
            self._tell("This memory is not in conflict with another one.")
            return None
        if action == "edit" and item.newer:
            self._tell(_CONFLICT_KEYS)
            return None
        if action == "edit":
            words = self._edited(item.memory.content)
            if words is not None:
                self._keep(item, content=words)
            return words
        is_done = True
        if action == "merge":
            is_done = self._merge(item)
        elif item.newer and action in ("newer", "older", "drop"):
            choice = Choice.KEEP_OLD if action == "older" else Choice.KEEP_NEW
            perform(self._run, queue.resolve, reference=item.id, choice=choice)
        elif action == "drop":
            perform(self._run, queue.drop, references=(item.id,))
        elif action == "keep":
            self._keep(item)
        return item.memory.subject if is_done else None

    def _keep(self, item: Pending, **fields: Any) -> None:
        is_repeated, self._last_attempt = self._last_attempt == item.id, item.id
        perform(self._run, queue.keep_items, references=(item.id,), anyway=is_repeated, **fields)

    def _merge(self, item: Pending) -> bool:
        target = item.newer or self._choose_target(item.memory)
        words = self._edited(queue.words_of_both(target, item.memory)) if target else None
        if target is None or words is None:
            self._tell("Not merged.")
            return False
        self._keep(item, into=target.id, content=words)
        return True

    def _choose_target(self, memory: Memory) -> Memory | None:
        words = memory.content
        while words:
            result = ask(
                self._run,
                recall.RecallResult,
                "recall",
                text=words[:_MAX_QUERY_CHARACTERS],
                limit=_MAX_CHOICES,
                update=False,
                turns=0,
            )
            targets = [hit.memory for hit in result.hits if not hit.candidate]
            targets = [item for item in targets if item.id != memory.id]
            rows = [
                (f"{number}", kind_span(item.kind), hits.subject_and_content(item))
                for number, item in enumerate(targets, 1)
            ]
            self._run.show(Paper.table, rows)
            words = click.prompt(
                "Merge into (number, or words to search for)", "", show_default=False, err=True
            ).strip()
            if words.isdecimal() and 0 < int(words) <= len(targets):
                return targets[int(words) - 1]
        return None

    def _edited(self, content: str) -> str | None:
        words = click.edit(printable(content), extension=".md")
        if words is None or not words.strip():
            self._tell("Not saved; nothing was changed.")
            return None
        return words.strip()

    def _render(self, paper: Paper) -> None:
        paper.note("─" * paper.width)
        header = bold(f"{len(self._items):,} left")
        if not self._items:
            paper.line(header, "  ", "Nothing is left.")
            return
        render_item(paper, self._items[0], header)

    def _render_evidence(self, paper: Paper) -> None:
        item = self._items[0]
        for title, memory in (
            ("Where it was said", item.memory),
            ("Where the newer one was said", item.newer),
        ):
            if memory is None:
                continue
            paper.heading(title)
            turns = decision.evidence_of(self._run.home, memory, _TURN_CHARACTERS)
            if not turns:
                paper.note("No turn of a session is recorded for it.", indent=2)
            for turn in turns:
                render_evidence(paper, turn, memory)

    def _render_keys(self, paper: Paper) -> None:
        undo = "undo" if self._decided else ""
        if not self._items:
            paper.line(*_keys(undo, "quit"))
            return
        own = (
            ("newer holds", "older holds", "merge")
            if self._items[0].newer
            else ("edit", "merge", "drop")
        )
        names = ("keep", *own, "skip", "where said", undo, "quit")
        paper.line(*_keys(*names), "  ", bold("?"), dim(" help"))


def _read_key() -> str:
    try:
        return click.getchar() or "q"
    except EOFError:
        return "q"


def _keys(*names: str) -> list[Span]:
    spans: list[Span] = []
    for name in filter(None, names):
        spans += [
            bold(f"{'  ' if spans else ''}{name[0]}"),
            dim(f"\u00a0{name.replace(' ', chr(0xA0))}"),
        ]
    return spans


def render_item(paper: Paper, item: Pending, header: Span) -> None:
    """Print a pending item: its kind, its reason, and its memories in full."""
    what = "memory" if item.kind is PendingKind.DOUBT else item.kind.value
    why = Span(_why(item), "yellow")
    paper.line(header, "  ", dim(what), "  ", kind_span(item.memory.kind), "  ", why, hang=2)
    _render_memory(paper, item.memory)
    if item.newer:
        paper.blank()
        paper.line(dim("newer  "), kind_span(item.newer.kind))
        _render_memory(paper, item.newer)
    if item.later:
        paper.note(f"later you said: “{item.later}”", "yellow", indent=2)


def _render_memory(paper: Paper, memory: Memory) -> None:
    paper.blank()
    has_subject = text.normalise(memory.content).startswith(
        text.normalise(memory.subject).rstrip("….")
    )
    content = memory.content if has_subject else f"{memory.subject}\n{memory.content}"
    if memory.trust is Trust.UNTRUSTED:
        paper.framed(content, hits.origin_of(memory), indent=2)
    else:
        paper.body(content, indent=2)
    tool, _, native_id = (memory.source.session or "").partition(":")
    speaker = f"said by {speaker_name(memory.speaker, memory.author)}"
    where = f"{speaker} in {tool} {short_session(native_id)}" if native_id else speaker
    paper.note(
        joined((place_name(memory), when(memory.created), where, short_id(memory))), indent=2
    )


def summary(triage: Triage) -> str:
    """Summarise the decisions and the number of pending items."""
    counts = triage.counts
    parts = [
        f"{what.lower()} {counts[key]:,}"
        for key, what in _VERBS.items()
        if counts[key] and key != "skip"
    ]
    decisions = ", ".join(parts) or "nothing was changed"
    remaining = f"; {count(triage.remaining, 'item')} pending" if triage.remaining else ""
    return f"{decisions[:1].upper()}{decisions[1:]}{remaining}."


def go_through(run: Run, items: Sequence[Pending]) -> None:
    """Let the user review pending items on the terminal, then print a summary of the decisions."""
    if not items:
        run.answer({}, Paper.line, "Nothing is pending.")
        return
    triage = Triage(run, items)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # restores the terminal
    try:
        with resumable(run):
            triage.go()
    finally:
        signal.signal(signal.SIGTERM, before)
    run.answer({}, Paper.line, summary(triage))
