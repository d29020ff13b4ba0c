"""``nacre review``, as a list or, on a terminal, with one key for each decision."""

from __future__ import annotations

import signal
import sys
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nacre.base.text import shorten
from nacre.cli import hits
from nacre.cli.command import (
    DefaultGroup,
    Paper,
    Run,
    Span,
    bold,
    command,
    cut,
    dim,
    joined,
    printable,
)
from nacre.cli.memories import render_evidence
from nacre.cli.options import (
    SHORT_ID,
    YES,
    argument,
    ask,
    count,
    kind_span,
    option,
    perform,
    place_name,
    read_content,
    resumable,
    short_id,
    short_session,
    speaker_name,
    when,
)
from nacre.errors import DepartedError, NacreError
from nacre.home.views import Choice, Pending, PendingKind, PendingPage
from nacre.memories import history, store
from nacre.recall import recall
from nacre.review import queue
from nacre.values import review as reviews
from nacre.values.recall import RecallResult
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.values.memory import Memory


_OUTCOMES = {
    "keep-new": "the newer memory supersedes the older one",
    "keep-old": "the older memory is kept, the newer one retired",
    "keep-both": "both are kept",
}


@click.group(
    "review",
    cls=DefaultGroup,
    places={name: f"review:{name}" for name in ("feedback", "gaps")},
    examples=[
        "nacre review --only candidate --json",
        "nacre review keep 5f0c2a4d",
        "nacre review resolve 5f0c2a4d keep-new",
    ],
)
@option("review", "project", "only", "limit", "offset")
def review(run: Run, **request: Any) -> None:
    """Review pending items: keep, change or drop them.

    Two memories are pending if they contradict each other and nacre cannot tell which one is true. A memory is pending
    if an agent proposed or changed it, if it is recalled often but rarely used, or if you rated it as bad. Candidates
    are possible memories. Agents do not get them, and they are deleted after 90 days.

    On a terminal, all items are shown one by one, with keys to keep, edit, merge, drop or skip an item, and to undo the
    last decision. Otherwise, or with options, the command lists conflicts, then doubtful memories, then candidates.
    """
    context = click.get_current_context()
    is_narrowed = any(
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in request
    )
    if not is_narrowed and can_be_drawn(run):
        go_through(run, ask(run, PendingPage, "review", limit=0).items)
        return
    run.present(ask(run, PendingPage, "review", **request), _render)


@review.command(
    "keep", examples=["nacre review keep 5f0c2a4d", "nacre review keep 5f0c2a4d --into 3f9a01c2"]
)
@argument("review-keep", "references", metavar="ID...")
@option("review-keep", "content", "into", "anyway")
def keep(run: Run, references: tuple[str, ...], **fields: Any) -> None:
    """Keep pending items.

    Candidates become memories. A doubtful memory is kept even if a newer memory seemed to contradict it, with a quality
    of at least .3.
    """
    try:
        memories = perform(run, queue.keep_items, references=references, **fields)
    except DepartedError as error:
        if not run.is_interactive:
            raise
        run.confirm(f"{error.message[:1].upper()}{error.message[1:]}. Keep it anyway?")
        memories = perform(
            run, queue.keep_items, references=references, **{**fields, "anyway": True}
        )
    run.answer({"kept": memories}, hits.render_outcomes, "Kept", memories)


@review.command(
    "drop",
    examples=["nacre review drop 5f0c2a4d", "nacre review drop 5f0c2a4d --reason 'no longer so'"],
)
@argument("review-drop", "references", metavar="ID...")
@option("review-drop", "reason")
@YES
def drop(run: Run, references: tuple[str, ...], reason: str | None, yes: bool) -> None:
    """Delete candidates, and retire memories that might be outdated.

    The files of retired memories are kept. On a terminal, the command asks before it retires memories.
    """
    if run.is_interactive and not yes:
        memories = [
            store.get(run.home, reference)
            for reference in references
            if not run.home.candidates.find(reference.strip())
        ]
        if memories:
            run.show(hits.render_table, memories)
            run.confirm("Retire?")
    items = perform(run, queue.drop, references=references, reason=reason)
    run.answer({"dropped": items}, hits.render_outcomes, "Dropped", items)


@review.command(
    "resolve",
    examples=[
        "nacre review resolve 5f0c2a4d keep-new",
        "nacre review resolve 5f0c2a4d+91d0a4be keep-both --reason 'one is for staging'",
    ],
)
@argument("review-resolve", "reference", metavar="ID")
@argument("review-resolve", "choice")
@option("review-resolve", "reason")
def resolve(run: Run, reference: str, choice: str, reason: str | None) -> None:
    """Resolve a conflict between two memories.

    keep-new: the newer memory supersedes the older one. keep-old: the newer memory is retired. keep-both: both are
    kept, and are not reported again. nacre undo reverts it.
    """
    settled = perform(run, queue.resolve, reference=reference, choice=choice, reason=reason)
    run.answer(
        settled, Paper.title, "Resolved", f"  {settled.older.subject}: {_OUTCOMES[choice]}", hang=2
    )


def _render(paper: Paper, page: PendingPage) -> None:
    if not page.items:
        paper.line("Nothing is pending.")
        return
    for item in page.items:
        ids = [memory.id[-SHORT_ID:] for memory in (item.memory, item.newer) if memory]
        render_item(paper, item, bold("+".join(ids)))
        paper.blank()
    paper.note(
        f"{len(page.items):,} of {count(page.total, 'item')}; nacre review keep ID keeps one"
    )
    paper.note("nacre review drop ID drops a candidate or retires a doubtful memory")
    if page.conflicts:
        paper.note("nacre review resolve ID keep-new, keep-old or keep-both resolves a conflict")


# ----------------------------------------------------------------------------
# ``nacre review feedback``.


_TINTS = {"used": "green", "unused": "dim", "corrected": "yellow"}
_BY_PERSON = {"used": "good", "corrected": "bad"}


@command(
    "feedback",
    examples=[
        "nacre review feedback --session 7f3a1c2d --reply reply.md",
        "cat reply.md | nacre review feedback 5f0c2a4d 9b1e0c3e",
        "nacre review feedback 5f0c2a4d --bad",
    ],
)
@argument("feedback", "references", metavar="[ID]...")
@option("recall", "session")
@option(
    "feedback",
    "reply",
    required=False,
    type=click.Path(dir_okay=False, exists=True, allow_dash=True),
    help="A file with the agent's reply [default: standard input].",
)
@option("feedback", "stored")
@click.option(
    "--good/--bad", "good", default=None, help="Rate the memories yourself, without a reply."
)
def feedback(run: Run, reply: str | None, good: bool | None, **judged: Any) -> None:
    """Rate whether recalled memories were useful.

    An agent's reply is compared with the named memories, or else with memories recalled in the session since the last
    feedback. A memory whose words are in the reply gains quality, other memories lose a little, and a memory that the
    agent stored again loses more. The reply is not stored. With --good or --bad, you rate the memories yourself. Bad
    memories are also pending in nacre review.
    """
    if good is None:
        report = perform(run, recall.feedback, reply=_reply(run, reply), **judged)
    elif reply or judged["stored"] or judged["session"] or not judged["references"]:
        raise click.UsageError("--good and --bad require memories and no other options")
    else:
        report = perform(run, recall.judge, references=judged["references"], good=good)
    run.present(report, _render_feedback)


def _reply(run: Run, path: str | None) -> str:
    if path and path != "-":
        return Path(path).read_text(encoding="utf-8", errors="replace")
    if run.is_interactive:
        raise click.UsageError("no reply: pass --reply FILE, --good or --bad")
    return read_content("-")


def _render_feedback(paper: Paper, report: reviews.FeedbackReport) -> None:
    if report.note:
        paper.line(f"Nothing changed: {report.note}.")
    paper.table([_judged_row(item) for item in report.judged])
    if any(
        item.verdict is reviews.Verdict.CORRECTED and item.likeness is None
        for item in report.judged
    ):
        paper.note("nacre review lists memories rated as bad")


def _judged_row(item: reviews.Judged) -> tuple[Span | str, ...]:
    verdict = item.verdict.value if item.likeness is not None else _BY_PERSON[item.verdict]
    return (
        Span(verdict, _TINTS[item.verdict]),
        dim(item.memory_id[-SHORT_ID:]),
        f"quality {item.before:.2f} → {item.after:.2f}",
        item.subject,
    )


# ----------------------------------------------------------------------------
# ``nacre review gaps``.


_WORDINGS_SHOWN = 3
_CHARACTERS_GAPS = 160


@command("gaps", examples=["nacre review gaps", "nacre review gaps --project . --min-times 2"])
@option("unanswered", "days", "project", "min_times")
@option("unanswered", "limit", "--limit", "-n")
def gaps(run: Run, **request: Any) -> None:
    """List questions that nacre could not answer.

    Similar questions are grouped, the most frequent first. Questions that nacre can answer now are closed.
    """
    report = ask(run, reviews.Unanswered, "unanswered", **request)
    has_log = run.settings.whole("traces.keep_days") > 0
    run.present(report, _render_gaps, request, has_log=has_log)


def _render_gaps(
    paper: Paper, report: reviews.Unanswered, request: dict[str, Any], *, has_log: bool
) -> None:
    if not has_log:
        paper.line("Questions are not stored: traces.keep_days is 0.", hang=2)
    if not report.gaps:
        is_narrowed = request["project"] is not None or request["min_times"] > 1
        paper.line(
            f"No unanswered questions in the last {request['days']} days{' match' * is_narrowed}."
        )
    for gap in report.gaps:
        paper.line(dim(gap.id), "  ", bold(shorten(gap.question, _CHARACTERS_GAPS)), hang=10)
        facts = (
            f"asked {count(gap.times, 'time')}",
            count(gap.unsure, "near miss", "near misses") if gap.unsure else "",
            f"last {when(gap.last)}",
            ", ".join(gap.projects),
        )
        paper.note(joined(facts), indent=10)
        for wording in gap.wordings[:_WORDINGS_SHOWN]:
            paper.line(dim("also: "), shorten(wording, _CHARACTERS_GAPS), indent=10)
        if len(gap.wordings) > _WORDINGS_SHOWN:
            more = count(len(gap.wordings) - _WORDINGS_SHOWN, "more wording")
            paper.note(f"and {more}", indent=10)
        paper.blank()
    remaining = report.total - len(report.gaps)
    more = joined(
        (
            f"{remaining} more" if remaining else "",
            f"{report.closed} answered since" if report.closed else "",
        ),
        "; ",
    )
    if more:
        paper.note(f"{more[:1].upper()}{more[1:]}.")
    if report.gaps:
        paper.note('nacre store "…" answers a question', hang=2)


# ----------------------------------------------------------------------------
# The review on a terminal.


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


def can_be_drawn(run: Run) -> bool:
    """Return True if a person can review on this terminal and did not ask for ``--json``."""
    is_terminal = (
        run.is_interactive
        and bool(sys.stdout and sys.stdout.isatty())
        and run.environ.get("TERM") != "dumb"
    )
    return is_terminal and not run.as_json and not run.settings.actor.is_agent


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
            key = "q"
            with suppress(EOFError):
                key = click.getchar() or key
            if len(key) > 1:
                if not key.startswith("\x1b"):  # an arrow key, for example
                    self._tell("Pasted text is ignored: press a key for each decision.")
                continue
            action = _KEYS.get(key.lower(), "")
            if action == "quit" or (not self._items and action != "undo"):
                return
            if action == "help":
                self._run.show(Paper.facts, _HELP, indent=0)
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
            self._tell(
                "These two are in conflict: n keeps the newer one, o the older one, k both; m merges them."
            )
            return None
        if action == "edit":
            words = self._edited(item.memory.content)
            if words is not None:
                self._keep(item, content=words)
            return words
        if action == "merge" and not self._merge(item):
            return None
        if item.newer and action in ("newer", "older", "drop"):
            choice = Choice.KEEP_OLD if action == "older" else Choice.KEEP_NEW
            perform(self._run, queue.resolve, reference=item.id, choice=choice)
        elif action == "drop":
            perform(self._run, queue.drop, references=(item.id,))
        elif action == "keep":
            self._keep(item)
        return item.memory.subject

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
                RecallResult,
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
            turns = history.evidence_of(self._run.home, memory, _TURN_CHARACTERS)
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
    if item.kind is PendingKind.CANDIDATE:
        why = item.detail or _REASONS[item.why]
    else:
        why = joined((item.why.replace("_", " "), item.detail), ": ")
    kind = kind_span(item.memory.kind)
    paper.line(header, "  ", dim(what), "  ", kind, "  ", Span(why, "yellow"), hang=2)
    _render_memory(paper, item.memory)
    if item.newer:
        paper.blank()
        paper.line(dim("newer  "), kind_span(item.newer.kind))
        _render_memory(paper, item.newer)
    if item.later:
        paper.note(f"later you said: “{item.later}”", "yellow", indent=2)


def _render_memory(paper: Paper, memory: Memory) -> None:
    paper.blank()
    subject = "" if hits.repeats_subject(memory) else f"{memory.subject}\n"
    content = subject + memory.content
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
    made = [(what.lower(), counts[key]) for key, what in _VERBS.items() if key != "skip"]
    decisions = ", ".join(f"{what} {number:,}" for what, number in made if number)
    remaining = f"; {count(triage.remaining, 'item')} pending" if triage.remaining else ""
    return f"{decisions.capitalize() or 'Nothing was changed'}{remaining}."


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
