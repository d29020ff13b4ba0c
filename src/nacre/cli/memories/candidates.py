"""``nacre review candidates`` and ``nacre review drop``."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import Record, count, kind_span, short_id, stamp, when
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import ask, perform
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.text import passages

if TYPE_CHECKING:
    from nacre.values.candidate import HeldCandidate
    from nacre.values.reports import StoreOutcome
    from nacre.views import CandidatePage

_CHARACTERS = 400
_KEYS = {"k": "keep", "e": "edit", "d": "drop", "s": "skip", " ": "skip", "q": "quit", "\x1b": "quit"}
_HELP = """
    k  keep it: it is a memory from now on
    e  keep it in other words, which you type
    d  drop it for good: its words are not found again
    s  skip it: it waits on
    q  quit: the others wait on"""
_WHY = {
    "found": "you said it",
    "unproven": "not borne out",
    "untrusted": "may come from outside",
    "unused": "never used",
    "minor": "others matter more",
}


@command(
    "candidates",
    examples=["nacre review candidates", "nacre review candidates --json", "nacre review keep 5f0c2a4d"],
)
@option("candidates", "project")
@option("candidates", "limit")
@option("candidates", "offset")
@click.option("--list", "only_list", is_flag=True, help="List them, and ask nothing.")
@click.pass_obj
def candidates(run: Run, project: str | None, limit: int, offset: int, only_list: bool) -> None:
    """Look at what may be worth remembering, and say what is.

    On a terminal one after another is shown, the likeliest first: a key keeps it, lets you put it in other words, drops
    it for good, or skips it. A candidate that nobody keeps is gone after 90 days.
    """
    page: CandidatePage = ask(run, "candidates", project=project, limit=limit, offset=offset)
    if run.is_interactive and not (run.as_json or only_list):
        _go_through(run, page)
        return
    run.answer(
        {"candidates": [_record(one) for one in page.candidates], "total": page.total},
        lambda paper: _render_list(paper, page),
    )


@command("drop", examples=["nacre review drop 5f0c2a4d"])
@argument("candidate-drop", "references", metavar="ID...")
@click.pass_obj
def drop(run: Run, references: tuple[str, ...]) -> None:
    """Drop candidates for good: their words are not found again."""
    dropped = perform(run, "candidate-drop", references=references)
    run.answer(
        {"dropped": [memory_record(memory) for memory in dropped]},
        lambda paper: paper.line(f"Dropped {count(len(dropped), 'candidate')}."),
    )


def is_candidate(run: Run, reference: str) -> bool:
    """Whether a reference is that of a candidate."""
    return bool(run.home.candidates.find(reference.strip()))


def keep_candidates(run: Run, references: Sequence[str]) -> None:
    """Make candidates memories, and answer with what became of them."""
    kept: list[StoreOutcome] = [perform(run, "candidate-keep", reference=one) for one in references]
    run.answer(
        {"kept": [{"id": one.memory_id, "action": one.action, "reason": one.reason} for one in kept]},
        lambda paper: paper.line(f"Kept {count(len(kept), 'candidate')}."),
    )
    run.embed_afterwards()


def _go_through(run: Run, page: CandidatePage) -> None:
    """Show one after another, and do as the person says."""
    done = {"keep": 0, "drop": 0}
    keys: deque[str] = deque()
    for number, one in enumerate(page.candidates, 1):
        run.show(partial(_render, candidate=one, title=f"{number} of {page.total:,}"))
        chosen = _asked(keys)
        if chosen == "quit":
            break
        if chosen in ("keep", "edit"):
            if chosen == "edit":
                keys.clear()
            words = _reworded(one.memory.content) if chosen == "edit" else None
            perform(run, "candidate-keep", reference=one.memory.id, content=words)
        elif chosen == "drop":
            perform(run, "candidate-drop", references=(one.memory.id,))
        done[{"edit": "keep"}.get(chosen, chosen)] = done.get({"edit": "keep"}.get(chosen, chosen), 0) + 1
    told = f"Kept {done['keep']}, dropped {done['drop']}" if page.candidates else "No candidate waits"
    left = page.total - done["keep"] - done["drop"]
    run.answer({}, lambda paper: paper.line(f"{told}; {left:,} wait." if left else f"{told}."))
    run.embed_afterwards()


def _asked(keys: deque[str]) -> str:
    """What one key says; a key without a meaning shows what they mean. ``keys`` were pressed already."""
    while True:
        click.echo("  [k]eep  [e]dit  [d]rop  [s]kip  [q]uit  [?] help ", nl=False, err=True)
        if not keys:
            pressed = click.getchar().lower()
            keys.extend([pressed] if pressed.startswith("\x1b") else pressed)  # one of more than one character
        chosen = _KEYS.get(keys.popleft())
        click.echo(chosen or _HELP, err=True)
        if chosen:
            return chosen
        keys.clear()


def _reworded(content: str) -> str:
    words: str = click.prompt("  In your words", default=content, err=True)
    return words


def _record(one: HeldCandidate) -> Record:
    return {
        **memory_record(one.memory), "why": one.why.value, "detail": one.detail, "score": one.score,
        "found": stamp(one.found),
    }  # fmt: skip


def _render_list(paper: Paper, page: CandidatePage) -> None:
    if not page.candidates:
        paper.line("No candidate waits.")
        return
    for one in page.candidates:
        _render(paper, candidate=one)
        paper.blank()
    shown = f"{len(page.candidates):,} of {count(page.total, 'candidate')}"
    paper.line(dim(f"{shown}; nacre review keep ID makes one a memory, nacre review drop ID does away with it"))


def _render(paper: Paper, candidate: HeldCandidate, title: str = "") -> None:
    memory = candidate.memory
    if title:
        paper.blank()
        paper.line(dim(title))
    paper.line(kind_span(memory.kind), "  ", bold(passages.shorten(memory.content, _CHARACTERS)), hang=2)
    why = candidate.detail or _WHY[candidate.why.value]
    paper.line(Span(why, "yellow"), indent=2)
    paper.line(dim(joined((memory.project, when(memory.created), short_id(memory)))), indent=2)
