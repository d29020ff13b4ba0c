"""``nacre reflect``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from nacre import views
from nacre.cli.command import DefaultGroup
from nacre.cli.formats import Record, count, kind_span, short_id, when
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import ask, perform
from nacre.cli.options import find_project
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.text import passages
from nacre.values import review as reviews
from nacre.values import session

if TYPE_CHECKING:
    from nacre.values.memory import Memory
    from nacre.values.review import Question, Reflected, Reflection

_CHARACTERS = 400
_LINKS = {
    "r": reviews.Relates.RELATED_TO, "d": reviews.Relates.DEPENDS_ON, "s": reviews.Relates.SPECIALIZES,
    "p": reviews.Relates.PART_OF, "b": reviews.Relates.BUILDS_ON, "a": reviews.Relates.ALTERNATIVE_TO,
    "c": reviews.Relates.CONTRADICTS,
}  # fmt: skip
_KEEPS = {"n": views.Choice.KEEP_NEW, "o": views.Choice.KEEP_OLD, "b": views.Choice.KEEP_BOTH}
_ASKED = (
    "1 … 2: (r)elated, (d)epends on, (s)pecial case of, (p)art of, (b)uilds on, (a)lternative to, (c)ontradicts; a "
    "capital: 2 … 1. Or a sentence; (n)ever ask, Enter: later, (q)uit"
)
_ASKED_WHICH = "Keep the (n)ewer one, the (o)lder one, (b)oth. Or a sentence; Enter: later, (q)uit"


@click.group(
    "reflect",
    cls=DefaultGroup,
    examples=[
        "nacre reflect",
        "nacre reflect answer 5f0c2a4d+91d0a4be --link depends_on",
        'nacre reflect answer 5f0c2a4d+91d0a4be "The cache is there because the API is slow."',
    ],
)
@click.pass_context
def reflect(context: click.Context) -> None:
    """Say how memories stand to each other that nothing connects.

    Asked are first those that contradict each other, then those near in meaning, or with a name in common, that no link
    connects. What you answer becomes a link or a memory. On a terminal you are asked about one after another.
    """
    if context.invoked_subcommand is not None:
        return
    run: Run = context.obj
    if run.is_interactive and not run.as_json:
        _ask(run)
    else:
        _list(run, limit=5, project=None)


@reflect.command("list", examples=["nacre reflect list --limit 20", "nacre reflect list --project . --json"])
@option("reflect", "limit", "--limit", "-n")
@option("reflect", "project", help="About this project only; . is the one of this folder.")
@click.pass_obj
def list_questions(run: Run, limit: int, project: str | None) -> None:
    """List what is most worth asking."""
    _list(run, limit=limit, project=find_project(run, project))


@reflect.command(
    "answer",
    examples=[
        "nacre reflect answer 5f0c2a4d+91d0a4be --link part_of",
        "nacre reflect answer 5f0c2a4d+91d0a4be --keep keep-new",
        "nacre reflect answer 5f0c2a4d+91d0a4be --skip",
    ],
)
@argument("reflect-answer", "reference", metavar="ID")
@argument("reflect-answer", "text", metavar="[TEXT]", required=False)
@option("reflect-answer", "link")
@option("reflect-answer", "keep")
@option("reflect-answer", "skip")
@option("reflect-answer", "lesson")
@click.pass_obj
def answer(run: Run, /, **asked: Any) -> None:
    """Answer a question, or say of any two memories how they stand to each other.

    ID is two memories joined by +. --link says how the first relates to the second; a sentence is stored, with a link
    to both; --keep settles a contradiction. nacre undo takes it back.
    """
    done: Reflected = perform(run, "reflect-answer", **asked)
    run.answer(_answer_record(done), lambda paper: _render_answers(paper, [done]))


def _list(run: Run, *, limit: int, project: str | None) -> None:
    found: Reflection = ask(run, "reflect", limit=limit, project=project)
    record = {"questions": [_question_record(one) for one in found.questions], "total": found.total, "limit": limit}
    run.answer(record, lambda paper: _render_questions(paper, found))


def _ask(run: Run) -> None:
    """Show one question after another, and do as the person says."""
    found: Reflection = ask(run, "reflect")
    done: list[Reflected] = []
    for number, question in enumerate(found.questions, 1):
        run.show(partial(_render_question, question=question, title=f"{number} of {len(found.questions)}"))
        given = _given(question)
        if given is None:
            break
        if given:
            done.append(perform(run, "reflect-answer", **given))
    run.answer({}, lambda paper: _render_answers(paper, done, asked=len(found.questions)))


def _given(question: Question) -> dict[str, Any] | None:
    """The answer that a person types; empty where they leave it for later, ``None`` where they are done."""
    keys = _KEEPS if question.contradicts else _LINKS
    while True:
        typed: str = click.prompt(
            _ASKED_WHICH if question.contradicts else _ASKED, default="", show_default=False, err=True
        )
        typed = typed.strip()
        key = typed.lower()
        if key in ("", "q"):
            return {} if not key else None
        if key in keys:
            first, second = question.first.id, question.second.id
            ends = (second, first) if typed.isupper() and not question.contradicts else (first, second)
            return {"reference": "+".join(ends), "keep" if question.contradicts else "link": keys[key]}
        whole = {"reference": f"{question.first.id}+{question.second.id}"}
        if key == "n":
            return {**whole, "skip": True}
        if " " in typed:
            return {**whole, "text": typed}


def _question_record(question: Question) -> Record:
    """Two memories, and why they are asked about."""
    return {
        "question": question.id, "first": memory_record(question.first), "second": memory_record(question.second),
        "why": question.why, "contradicts": question.contradicts,
    }  # fmt: skip


def _answer_record(done: Reflected) -> Record:
    """What became of an answer."""
    return {
        "action": done.action, "first": memory_record(done.first), "second": memory_record(done.second),
        "stored": memory_record(done.stored) if done.stored else None,
    }  # fmt: skip


def _render_questions(paper: Paper, found: Reflection) -> None:
    """Every question, and how to answer."""
    if not found.questions:
        paper.line("Nothing to ask: what is near in meaning or shares a name is linked, and nothing contradicts.")
        return
    for question in found.questions:
        _render_question(paper, question, question.id)
    left = found.total - len(found.questions)
    more = f"{count(left, 'more question')}; " if left else ""
    paper.line(dim(f'{more}nacre reflect answer ID --link …, "a sentence" or --skip; nacre reflect asks you'), hang=2)


def _render_question(paper: Paper, question: Question, title: str) -> None:
    """Two memories, and what is asked."""
    how = "Which of these holds?" if question.contradicts else "How do these stand to each other?"
    paper.line(bold(title), "  ", bold(how), hang=2)
    for number, memory in enumerate((question.first, question.second), 1):
        _side(paper, f"{number}: ", memory)
    paper.line(Span(passages.shorten(question.why, _CHARACTERS), "yellow"), indent=2, hang=2)
    paper.blank()


def _side(paper: Paper, name: str, memory: Memory) -> None:
    facts = (kind_span(memory.kind).text, memory.project, when(memory.created), short_id(memory))
    if memory.trust is session.Trust.UNTRUSTED:
        paper.line(name, indent=2)
        paper.framed(passages.shorten(memory.content, _CHARACTERS), "from outside", indent=4)
    else:
        paper.line(dim(name), passages.shorten(memory.content, _CHARACTERS), indent=2, hang=3)
    paper.line(dim(joined(facts)), indent=5)


def _render_answers(paper: Paper, done: Sequence[Reflected], *, asked: int | None = None) -> None:
    """What became of answers."""
    if asked == 0:
        paper.line("Nothing to ask.")
    for one in done:
        told = one.stored.subject if one.stored else f"{one.first.subject} · {one.second.subject}"
        paper.line(bold(one.action.capitalize()), f"  {told}", hang=2)
        link = next((link for link in one.first.links if link.to == one.second.id and link.origin), None)
        if link and one.action == "linked":
            paper.line(dim(f"{short_id(one.first)} {link.rel} {short_id(one.second)}"), indent=2)
