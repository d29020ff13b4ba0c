"""``nacre page``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nacre.cli.command import (
    Paper,
    Run,
    command,
    dim,
)
from nacre.cli.operations import perform
from nacre.cli.options import (
    argument,
    option,
    read_content,
)

if TYPE_CHECKING:
    from nacre.context.build import OwnPage

# ----------------------------------------------------------------------------
# ``nacre page``.


@command(
    "page",
    examples=[
        "nacre page identity",
        'nacre page identity "You work for Ada, who keeps bees and writes Python."',
        "nacre page profile --edit",
    ],
)
@argument("page-write", "name", metavar="NAME")
@argument("page-write", "text", required=False)
@option("page-write", "project")
@click.option("--edit", is_flag=True, help="Open it in your editor.")
@click.option("--remove", is_flag=True, help="Take it away.")
@click.pass_obj
def page(
    run: Run, name: str, text: str | None, project: str | None, edit: bool, remove: bool
) -> None:
    """Show or edit the page about you that agents read at session start.

    NAME is identity (who they work for), profile (how you want things done: "Always …", "Prefer …", "Never …") or
    project (what --project is about, front matter and all). TEXT takes the place of what the page says; - reads it from
    standard input. All are files in the vault, which any editor may change.
    """
    if (text is not None) + edit + remove > 1:
        raise click.UsageError(
            "a text, --edit or --remove: one of them", click.get_current_context()
        )
    if text is not None and not text.strip():
        raise click.UsageError(
            "the text is empty; --remove takes the page away", click.get_current_context()
        )
    before: OwnPage = perform(run, "page-own", name=name, project=project)
    if edit:
        text = _edited(run, before)
    elif text is not None:
        text = read_content(text)
    found: OwnPage = (
        before
        if text is None and not remove
        else perform(
            run,
            "page-write",
            name=name,
            project=project,
            text=text or "",
            expected=before.etag if edit else None,
        )
    )
    did_change = found.text != before.text
    if found.tokens > found.told_tokens:
        run.warnings.append(
            f"{found.tokens} tokens: a session is told some {found.told_tokens}, from the top on"
        )
    record = {
        "page": name,
        "path": str(run.settings.shown_vault / found.path),
        "text": found.text,
        "tokens": found.tokens,
        "told_tokens": found.told_tokens,
        "changed": did_change,
        "etag": found.etag,
    }
    run.answer(
        record,
        lambda paper: _show(
            paper, found, did_change=did_change, is_asked=text is None and not remove
        ),
    )


def _edited(run: Run, before: OwnPage) -> str | None:
    """What the person wrote; ``None`` where they saved nothing."""
    if not run.is_interactive:
        raise click.UsageError(
            "there is no terminal to open an editor in", click.get_current_context()
        )
    return click.edit(before.text, extension=".md")


def _show(paper: Paper, found: OwnPage, *, did_change: bool, is_asked: bool) -> None:
    if not is_asked:
        gone = "Taken away" if not found.text else "Saved"
        paper.line(f"{gone}: {found.path}" if did_change else "Nothing changed.")
        return
    if not found.text:
        paper.line(
            f"There is no {found.name} yet.", dim(f'  nacre page {found.name} "…" writes it')
        )
    for line in found.text.splitlines():
        paper.verbatim(line)
