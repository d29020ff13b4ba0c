"""``nacre retire`` and ``nacre unretire``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import SHORT_ID, Record, count, day, short_id, stamp
from nacre.cli.memories.memory import memory_record, render_outcomes, render_table
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.memories import retire as retiring

if TYPE_CHECKING:
    from nacre.memories.retire import BroughtBack, Chosen
    from nacre.values.forgetting import StandingRetirement
    from nacre.values.memory import Memory

_HOW = {
    "exact": "memories about {!r}",
    "contains": "memories whose subject contains {!r}",
    "pattern": "memories whose subject is like {!r}",
}


@command(
    "retire",
    examples=[
        "nacre retire 5f0c2a4d --reason 'we moved to SQLite'",
        "nacre retire 'standup notes *' --persist --yes",
        "nacre retire --contains 'old office' --dry-run",
    ],
)
@argument("retire", "references", metavar="[ID|SUBJECT|PATTERN]...")
@option("retire", "contains", "--contains", metavar="TEXT", help="Also memories whose subject contains this.")
@option("retire", "subjects", metavar="TEXT")
@option("retire", "like", "--like", "--fuzzy", metavar="TEXT", help="Also memories whose subject is nearly this.")
@options("retire", "reason", "persist")
@click.option("--dry-run", is_flag=True, help="Show what would be retired, and change nothing.")
@click.option("--list", "shows_list", is_flag=True, help="List what is retired.")
@click.option("--yes", "-y", "--force", "yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def retire(  # noqa: PLR0913 - one parameter an option
    run: Run, references: tuple[str, ...], contains: tuple[str, ...], subjects: tuple[str, ...], like: tuple[str, ...],
    reason: str | None, persist: bool, dry_run: bool, shows_list: bool, yes: bool,
) -> None:  # fmt: skip
    """Take memories out of recall; their files are kept.

    Each is named by its id (four characters or more), its subject, or a pattern in which * stands for any text. They
    move to retired/ in the vault; nacre unretire brings them back. On a terminal it asks first; elsewhere it wants
    --yes where a subject or pattern means several.
    """
    if shows_list:
        _list(run)
        return
    if not (references or contains or subjects or like):
        raise click.UsageError(
            "say which memories: ids, subjects, patterns, --contains or --like", click.get_current_context()
        )
    chosen: Chosen = perform(
        run, "retire-plan", references=references, contains=contains, subjects=subjects, like=like, persist=persist
    )
    if dry_run:
        record = {"retired": [], "standing": [], "would_retire": [memory_record(one) for one in chosen.memories]}
        run.answer(record, lambda paper: _render_retired(paper, chosen.memories, [], is_dry=True))
        return
    _ask(run, chosen, persist=persist, yes=yes)
    done, rules = retiring.retire_chosen(run.home, chosen, reason, persist=persist)
    retired, waiting = [one for one in done if one.retired], [one for one in done if not one.retired]
    record = {
        "retired": [memory_record(memory) for memory in retired], "would_retire": [],
        "waiting_for_review": [memory_record(memory) for memory in waiting],
        "standing": [_standing_record(rule) for rule in rules],
    }  # fmt: skip
    run.answer(record, lambda paper: _render_retired(paper, retired, rules, waiting=waiting))


@command("unretire", examples=["nacre unretire 5f0c2a4d", "nacre unretire 5f0c2a4d 9b1e0c3e"])
@argument("unretire", "references", metavar="ID...")
@click.pass_obj
def unretire(run: Run, references: tuple[str, ...]) -> None:
    """Bring back memories that were retired or superseded.

    A memory that superseded one of them stays beside it: both then hold. The id of a standing retirement (nacre
    retire --list) ends that.
    """
    back: BroughtBack = perform(run, "unretire", references=references)
    record = {
        "unretired": [memory_record(memory) for memory in back.memories],
        "ended": [_standing_record(rule) for rule in back.rules],
    }
    run.answer(record, lambda paper: _render_unretired(paper, back))


def _list(run: Run) -> None:
    found: list[Memory] = perform(run, "retired")
    rules: list[StandingRetirement] = perform(run, "retired-standing")
    reasons = [one.retired.reason if one.retired else None for one in found]
    record = {
        "retired": [memory_record(one) | {"reason": why} for one, why in zip(found, reasons, strict=True)],
        "would_retire": [],
        "standing": [_standing_record(rule) for rule in rules],
    }
    run.answer(record, lambda paper: _render_retired_list(paper, found, rules))


def _ask(run: Run, chosen: Chosen, *, persist: bool, yes: bool) -> None:
    if yes:
        return
    if not run.is_interactive:
        if chosen.is_wider:
            raise click.UsageError(
                f"that means {len(chosen.memories)} memories: look with --dry-run, then add --yes",
                click.get_current_context(),
            )
        return
    run.show(lambda paper: render_table(paper, chosen.memories))
    run.confirm("Retire, and keep out what is stored later under such a subject?" if persist else "Retire?")


def _standing_record(rule: StandingRetirement) -> Record:
    """One standing retirement."""
    return {
        "id": rule.id, "subject_pattern": rule.pattern, "match_type": rule.match.value,
        "canonical_key": rule.canonical_key, "reason": rule.reason, "suppressed_contexts": list(rule.contexts),
        "created": stamp(rule.at),
    }  # fmt: skip


def _render_retired(
    paper: Paper,
    memories: Sequence[Memory],
    rules: Sequence[StandingRetirement],
    *,
    waiting: Sequence[Memory] = (),
    is_dry: bool = False,
) -> None:
    """What was retired, or would be."""
    if is_dry:
        paper.line(
            f"Would retire {count(len(memories), 'memory', 'memories')}:" if memories else "Would retire nothing."
        )
        render_table(paper, memories, indent=2)
        return
    render_outcomes(paper, "Retired", memories)
    render_outcomes(paper, "Waits for the owner's review", waiting)
    for rule in rules:
        paper.line("From now on: ", _standing(rule), hang=2)
        paper.line(dim(f"nacre unretire {rule.id[-SHORT_ID:]} ends that"), indent=2)


def _render_unretired(paper: Paper, back: BroughtBack) -> None:
    """What is not retired any more."""
    render_outcomes(paper, "Brought back", back.memories)
    for rule in back.rules:
        paper.line("No longer: ", _standing(rule), hang=2)


def _render_retired_list(paper: Paper, memories: Sequence[Memory], rules: Sequence[StandingRetirement]) -> None:
    """Every retired memory with its reason, and what stands for later ones."""
    if not memories and not rules:
        paper.line("Nothing is retired.")
        return
    rows = [
        (dim(short_id(one)), dim(day(one.retired.at)), bold(one.subject), one.retired.reason or "")
        for one in memories
        if one.retired
    ]
    if rows:
        paper.table(rows, header=("id", "retired", "memory", "reason"), drop=(1,))
    if rules:
        paper.heading("Whenever they are stored")
        paper.table([(dim(rule.id[-SHORT_ID:]), _standing(rule), dim(rule.reason or "")) for rule in rules], indent=2)


def _standing(rule: StandingRetirement) -> str:
    return _HOW[rule.match].format(rule.pattern) + " are retired as soon as they are stored"
