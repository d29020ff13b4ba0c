"""``nacre review``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nacre.base import text
from nacre.cli import hits, terminal
from nacre.cli.command import TEXT, DefaultGroup, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.memories import answer_todo
from nacre.cli.operations import ask, perform
from nacre.cli.options import (
    SESSION,
    SHORT_ID,
    YES,
    argument,
    count,
    kind_span,
    option,
    options,
    read_content,
    short_id,
    speaker_name,
    when,
)
from nacre.errors import DepartedError
from nacre.home import views
from nacre.memories import store
from nacre.recall import recall
from nacre.review import queue
from nacre.values import review as reviews
from nacre.values import session

if TYPE_CHECKING:
    from nacre.values.memory import Memory
    from nacre.values.review import (
        FeedbackReport,
        Judged,
        Question,
        Reflected,
        Reflection,
        Unanswered,
        UnansweredQuestion,
    )

_CHARACTERS = 400
_DONE = {
    "keep-new": "the newer memory supersedes the older one",
    "keep-old": "the older memory is kept, the newer one retired",
    "keep-both": "both are kept",
}


@click.group(
    "review",
    cls=DefaultGroup,
    places={name: f"review:{name}" for name in ("feedback", "gaps", "reflect")},
    examples=[
        "nacre review --only candidate --json",
        "nacre review keep 5f0c2a4d",
        "nacre review resolve 5f0c2a4d keep-new",
    ],
)
@options("review", "project", "only", "limit", "offset")
def review(run: Run, **wanted: Any) -> None:
    """Review pending items: keep, change or drop them.

    Two memories are pending if they contradict each other and nacre cannot tell which one is true. A memory is pending
    if an agent proposed or changed it, if it is recalled often but rarely used, or if you rated it as bad. Candidates
    are possible memories. Agents do not get them, and they are deleted after 90 days.

    On a terminal, all items are shown one by one, with keys to keep, edit, merge, drop or skip an item, and to undo the
    last decision. Otherwise, or with options, the command lists conflicts, then memories in doubt, then candidates.
    """
    context = click.get_current_context()
    is_narrowed = any(
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in wanted
    )
    if not is_narrowed and terminal.can_be_drawn(run):
        terminal.go_through(run, ask(run, views.PendingPage, "review", limit=0).items)
        return
    run.present(ask(run, views.PendingPage, "review", **wanted), _render)


@review.command(
    "keep", examples=["nacre review keep 5f0c2a4d", "nacre review keep 5f0c2a4d --into 3f9a01c2"]
)
@argument("review-keep", "references", metavar="ID...")
@options("review-keep", "content", "into", "anyway")
def keep(run: Run, references: tuple[str, ...], **fields: Any) -> None:
    """Keep pending items.

    Candidates become memories. A memory in doubt gets a quality of at least .3. It is kept even if a newer memory
    seemed to contradict it.
    """
    try:
        kept = perform(run, queue.keep_items, references=references, **fields)
    except DepartedError as error:
        if not run.is_interactive:
            raise
        run.confirm(f"{error.message[:1].upper()}{error.message[1:]}. Keep it anyway?")
        kept = perform(run, queue.keep_items, references=references, **{**fields, "anyway": True})
    run.answer({"kept": kept}, hits.render_outcomes, "Kept", kept)


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
    gone = perform(run, queue.drop, references=references, reason=reason)
    run.answer({"dropped": gone}, hits.render_outcomes, "Dropped", gone)


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
    outcome = f"  {settled.older.subject}: {_DONE[choice]}"
    run.answer(settled, Paper.line, bold("Resolved"), outcome, hang=2)


def _render(paper: Paper, page: views.PendingPage) -> None:
    if not page.items:
        paper.line("Nothing is pending.")
        return
    for item in page.items:
        _render_item(paper, item)
        paper.blank()
    paper.note(
        f"{len(page.items):,} of {count(page.total, 'item')}; nacre review keep ID keeps one"
    )
    paper.note("nacre review drop ID drops a candidate or retires a memory in doubt")
    if page.conflicts:
        paper.note("nacre review resolve ID keep-new, keep-old or keep-both resolves a conflict")


def _render_item(paper: Paper, item: views.Pending) -> None:
    memory = item.memory
    if item.newer:
        paper.line(
            bold(f"{short_id(memory)}+{short_id(item.newer)}"), "  ", bold(memory.subject), hang=2
        )
        _side(paper, "older", memory)
        _side(paper, "newer", item.newer)
        if item.detail:
            paper.note(item.detail, "yellow", indent=2)
        return
    paper.line(
        kind_span(memory.kind), "  ", bold(text.shorten(memory.content, _CHARACTERS)), hang=2
    )
    paper.note(terminal.why_of(item), "yellow", indent=2)
    facts = (item.kind.value, memory.project, when(item.since), short_id(memory))
    paper.note(joined(facts), indent=2)


def _side(paper: Paper, name: str, memory: Memory) -> None:
    valid = memory.valid.since
    facts = (
        kind_span(memory.kind).text,
        memory.project,
        f"importance {memory.importance}",
        f"said by {speaker_name(memory.speaker, memory.author)}",
        when(memory.created),
        f"valid from {valid}" if valid else "",
        short_id(memory),
    )
    if memory.trust is session.Trust.UNTRUSTED:
        paper.line(f"{name}:", indent=2)
        paper.framed(text.shorten(memory.content, _CHARACTERS), hits.origin_of(memory), indent=4)
    else:
        paper.line(dim(f"{name}: "), text.shorten(memory.content, _CHARACTERS), indent=2, hang=7)
    paper.note(joined(facts), indent=9)


# ----------------------------------------------------------------------------
# ``nacre review reflect``.


_LINKS = {
    "r": reviews.Relates.RELATED_TO,
    "d": reviews.Relates.DEPENDS_ON,
    "s": reviews.Relates.SPECIALIZES,
    "p": reviews.Relates.PART_OF,
    "b": reviews.Relates.BUILDS_ON,
    "a": reviews.Relates.ALTERNATIVE_TO,
    "c": reviews.Relates.CONTRADICTS,
}
_KEEPS = {"n": views.Choice.KEEP_NEW, "o": views.Choice.KEEP_OLD, "b": views.Choice.KEEP_BOTH}
_ASKED = (
    "1 … 2: (r)elated, (d)epends on, (s)pecial case of, (p)art of, (b)uilds on, (a)lternative to, (c)ontradicts; a "
    "capital letter: 2 … 1. Or type a sentence; (n)ever ask, Enter: later, (q)uit"
)
_ASKED_WHICH = "Keep (n)ewer, (o)lder, (b)oth. Or type a sentence; Enter: later, (q)uit"


@command(
    "reflect",
    examples=[
        "nacre review reflect",
        "nacre review reflect 5f0c2a4d+91d0a4be --link depends_on",
        'nacre review reflect 5f0c2a4d+91d0a4be "The cache is there because the API is slow."',
    ],
)
@argument("reflect-answer", "reference", metavar="[ID]", required=False)
@argument("reflect-answer", "text", metavar="[TEXT]", required=False)
@option("reflect", "limit", "--limit", "-n")
@option("reflect", "project", help="Only about this project; . means this folder's project.")
@options("reflect-answer", "link", "keep", "skip", "lesson")
def reflect(
    run: Run, /, reference: str | None, limit: int, project: str | None, **answer: Any
) -> None:
    """Ask how unlinked memories relate to each other.

    The questions cover contradictions first, then unlinked memories with a similar meaning or a common name. An answer
    becomes a link or a memory. On a terminal, the command asks one question after another.

    ID consists of the ids of two memories, joined by +. --link sets the relation of the first memory to the second. A
    sentence is stored as a memory with a link to both memories. --keep resolves a contradiction. nacre undo reverts the
    answer.
    """
    if reference:
        done = perform(run, queue.answer, reference=reference, **answer)
        run.answer(done, _render_answers, [done])
    elif any(answer.values()):
        raise click.UsageError("an answer needs an ID")
    elif run.is_interactive and not run.as_json:
        _ask(run)
    else:
        run.present(
            ask(run, reviews.Reflection, "reflect", limit=limit, project=project), _render_questions
        )


def _ask(run: Run) -> None:
    found = ask(run, reviews.Reflection, "reflect")
    done: list[Reflected] = []
    for number, question in enumerate(found.questions, 1):
        run.show(
            partial(
                _render_question, question=question, title=f"{number} of {len(found.questions)}"
            )
        )
        given = _given(question)
        if given is None:
            break
        if given:
            done.append(perform(run, queue.answer, **given))
    run.answer({}, _render_answers, done, asked=len(found.questions))


def _given(question: Question) -> dict[str, Any] | None:
    """Return the user's answer. It is empty if the user typed nothing, and ``None`` if the user quits."""
    keys = _KEEPS if question.contradicts else _LINKS
    while True:
        typed: str = click.prompt(
            _ASKED_WHICH if question.contradicts else _ASKED,
            default="",
            show_default=False,
            err=True,
        )
        typed = typed.strip()
        key = typed.lower()
        if key in ("", "q"):
            return {} if not key else None
        if key in keys:
            first, second = question.first.id, question.second.id
            ends = (
                (second, first) if typed.isupper() and not question.contradicts else (first, second)
            )
            return {
                "reference": "+".join(ends),
                "keep" if question.contradicts else "link": keys[key],
            }
        whole = {"reference": f"{question.first.id}+{question.second.id}"}
        if key == "n":
            return {**whole, "skip": True}
        if " " in typed:
            return {**whole, "text": typed}


def _render_questions(paper: Paper, found: Reflection) -> None:
    if not found.questions:
        paper.line(
            "No questions: all memories with a similar meaning or a common name are linked, without contradictions."
        )
        return
    for question in found.questions:
        _render_question(paper, question, question.id)
    left = found.total - len(found.questions)
    more = f"{count(left, 'more question')}; " if left else ""
    paper.note(
        f'{more}nacre review reflect ID --link …, "a sentence" or --skip; nacre review reflect asks you',
        hang=2,
    )


def _render_question(paper: Paper, question: Question, title: str) -> None:
    how = "Which of these is true?" if question.contradicts else "How are these related?"
    paper.line(bold(title), "  ", bold(how), hang=2)
    for number, memory in enumerate((question.first, question.second), 1):
        _side_reflect(paper, f"{number}: ", memory)
    paper.note(text.shorten(question.why, _CHARACTERS), "yellow", indent=2)
    paper.blank()


def _side_reflect(paper: Paper, name: str, memory: Memory) -> None:
    facts = (kind_span(memory.kind).text, memory.project, when(memory.created), short_id(memory))
    if memory.trust is session.Trust.UNTRUSTED:
        paper.line(name, indent=2)
        paper.framed(text.shorten(memory.content, _CHARACTERS), "from outside", indent=4)
    else:
        paper.line(dim(name), text.shorten(memory.content, _CHARACTERS), indent=2, hang=3)
    paper.note(joined(facts), indent=5)


def _render_answers(paper: Paper, done: Sequence[Reflected], *, asked: int | None = None) -> None:
    if asked == 0:
        paper.line("No questions.")
    for reflected in done:
        subject = (
            reflected.stored.subject
            if reflected.stored
            else f"{reflected.first.subject} · {reflected.second.subject}"
        )
        paper.line(bold(reflected.action.capitalize()), f"  {subject}", hang=2)
        link = next(
            (
                link
                for link in reflected.first.links
                if link.to == reflected.second.id and link.origin
            ),
            None,
        )
        if link and reflected.action == "linked":
            paper.note(
                f"{short_id(reflected.first)} {link.rel} {short_id(reflected.second)}", indent=2
            )


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
@SESSION
@option(
    "feedback",
    "reply",
    required=False,
    type=click.Path(dir_okay=False, exists=True, allow_dash=True),
    help="A file with the agent's reply [default: standard input].",
)
@option("feedback", "stored", "--stored", help="A memory that the agent has stored since then.")
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


def _render_feedback(paper: Paper, report: FeedbackReport) -> None:
    if report.note:
        paper.line(f"Nothing changed: {report.note}.")
    paper.table([_judged_row(item) for item in report.judged])
    if any(
        item.verdict is reviews.Verdict.CORRECTED and item.likeness is None
        for item in report.judged
    ):
        paper.note("nacre review lists memories rated as bad")


def _judged_row(item: Judged) -> tuple[Span | str, ...]:
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


@command(
    "gaps",
    examples=[
        "nacre review gaps",
        "nacre review gaps --project . --min-times 2",
        "nacre review gaps --todo 5f0c2a4d",
    ],
)
@option("unanswered", "days")
@option(
    "unanswered",
    "project",
    help="Only questions about this project; . means this folder's project.",
)
@option("unanswered", "min_times")
@option("unanswered", "limit", "--limit", "-n")
@click.option("--todo", metavar="ID", type=TEXT, help="Store a todo to answer the question.")
@click.option("--dismiss", metavar="ID", type=TEXT, help="Hide a question in all wordings.")
def gaps(run: Run, todo: str | None, dismiss: str | None, **asked: Any) -> None:
    """List questions that nacre could not answer.

    Similar questions are grouped, the most frequent first. Questions that nacre can answer now are closed.
    """
    if todo and dismiss:
        raise click.UsageError("use either --todo or --dismiss")
    if todo:
        answer_todo(run, perform(run, queue.add_todo, reference=todo))
    elif dismiss:
        gap = perform(run, queue.dismiss, reference=dismiss)
        run.answer(gap, Paper.line, "Dismissed: ", bold(gap.question), hang=2)
    else:
        found = ask(run, reviews.Unanswered, "unanswered", **asked)
        has_log = run.settings.whole("traces.keep_days") > 0
        run.present(found, _render_gaps, asked, has_log=has_log)


def _render_gaps(paper: Paper, found: Unanswered, asked: dict[str, Any], *, has_log: bool) -> None:
    if not has_log:
        paper.line("Questions are not stored: traces.keep_days is 0.", hang=2)
    if not found.gaps:
        is_narrowed = asked["project"] is not None or asked["min_times"] > 1
        paper.line(
            f"No unanswered questions in the last {asked['days']} days{' match' * is_narrowed}."
        )
    for gap in found.gaps:
        _render_gap(paper, gap)
    left = found.total - len(found.gaps)
    more = joined(
        (f"{left} more" if left else "", f"{found.closed} answered since" if found.closed else ""),
        "; ",
    )
    if more:
        paper.note(f"{more[:1].upper()}{more[1:]}.")
    if found.gaps:
        paper.note(
            "nacre review gaps --todo ID stores a todo to answer it; --dismiss ID hides it", hang=2
        )


def _render_gap(paper: Paper, gap: UnansweredQuestion) -> None:
    paper.line(dim(gap.id), "  ", bold(text.shorten(gap.question, _CHARACTERS_GAPS)), hang=10)
    near = count(gap.unsure, "near miss", "near misses") if gap.unsure else ""
    facts = (
        f"asked {count(gap.times, 'time')}",
        near,
        f"last {when(gap.last)}",
        ", ".join(gap.projects),
    )
    paper.note(joined(facts), indent=10)
    for wording in gap.wordings[:_WORDINGS_SHOWN]:
        paper.line(dim("also: "), text.shorten(wording, _CHARACTERS_GAPS), indent=10)
    if len(gap.wordings) > _WORDINGS_SHOWN:
        paper.note(f"and {count(len(gap.wordings) - _WORDINGS_SHOWN, 'more wording')}", indent=10)
    paper.blank()


# ----------------------------------------------------------------------------
# ``nacre graph edges``.


_SUBJECT_CHARACTERS = 28


@command(
    "edges",
    examples=[
        "nacre graph edges",
        "nacre graph edges 5f0c2a4d --limit 5",
        "nacre graph edges --json",
    ],
)
@argument("edges", "reference", metavar="[ID]", required=False)
@option("edges", "limit", "--limit", "-n")
def edges(run: Run, reference: str | None, limit: int) -> None:
    """List memories that were used together.

    A pair gains .1 (up to 1) for each session in which both were used, and loses 5 % a day. Recall ranks memories
    higher if they are often used together with its best hits. With ID, the list contains only pairs of that memory.
    """
    found = ask(run, list[views.UsedTogether], "edges", reference=reference, limit=limit)
    run.answer({"edges": found}, _render_edges, found)


def _render_edges(paper: Paper, found: Sequence[views.UsedTogether]) -> None:
    if not found:
        paper.line("No memories have been used together yet.")
        return
    rows = [
        (
            f"{edge.weight:.2f}",
            dim(count(edge.sessions, "session")),
            dim(short_id(edge.memory)),
            _named(edge.memory),
            dim(short_id(edge.other)),
            _named(edge.other),
        )
        for edge in found
    ]
    paper.table(rows, header=("weight", "used in", "id", "memory", "id", "and"), drop=(1,))


def _named(memory: Memory) -> str:
    return text.shorten(memory.subject, _SUBJECT_CHARACTERS)
