"""``nacre project page``."""

from __future__ import annotations

import click

from nacre.cli.command import Paper, Run, command, dim
from nacre.cli.operations import perform
from nacre.cli.options import argument, flag, option, read_content
from nacre.context import build


@command(
    "page",
    examples=[
        "nacre project page identity",
        'nacre project page identity "You work for Ada, who keeps bees and writes Python."',
        "nacre project page profile --edit",
    ],
)
@argument("page-write", "name", metavar="NAME")
@argument("page-write", "text", required=False)
@option("page-write", "project", callback=None)
@flag("--edit", "Edit the page in your editor.")
@flag("--remove", "Delete the page.")
def page(
    run: Run, name: str, text: str | None, project: str | None, edit: bool, remove: bool
) -> None:
    """Show or edit the page about you that agents read at session start.

    NAME is identity (who agents work for), profile (how you want things done: "Always …", "Prefer …", "Never …") or
    project (what --project is about, with its front matter). TEXT replaces the page; - reads standard input. Pages are
    files in the vault and can be changed with any editor.
    """
    if (text is not None) + edit + remove > 1:
        raise click.UsageError("give only one of TEXT, --edit and --remove")
    if text is not None and not text.strip():
        raise click.UsageError("the text is empty; use --remove to delete the page")
    before = perform(run, build.own_page_answers, name=name, project=project)
    if edit:
        text = _edited(run, before)
    elif text is not None:
        text = read_content(text)
    after: build.OwnPage = (
        before
        if text is None and not remove
        else perform(
            run,
            build.write_own_page_answers,
            name=name,
            project=project,
            text=text or "",
            expected=before.etag if edit else None,
        )
    )
    did_change = after.text != before.text
    if after.tokens > after.told_tokens:
        run.warnings.append(
            f"the page has {after.tokens} tokens; sessions receive only about the first {after.told_tokens}"
        )
    record = {
        "page": name,
        "path": str(run.settings.shown_vault / after.path),
        "text": after.text,
        "tokens": after.tokens,
        "told_tokens": after.told_tokens,
        "changed": did_change,
        "etag": after.etag,
    }
    run.answer(record, _show, after, did_change=did_change, is_read=text is None and not remove)


def _edited(run: Run, before: build.OwnPage) -> str | None:
    """Return the text from the editor, or ``None`` if the user saved nothing."""
    if not run.is_interactive:
        raise click.UsageError("--edit needs a terminal; pass TEXT, or - for standard input")
    return click.edit(before.text, extension=".md")


def _show(paper: Paper, page: build.OwnPage, *, did_change: bool, is_read: bool) -> None:
    if not is_read:
        verb = "Saved" if page.text else "Deleted"
        paper.line(f"{verb}: {page.path}" if did_change else "Nothing changed.")
        return
    if not page.text:
        paper.line(
            f"There is no {page.name} page yet.",
            dim(f'  nacre project page {page.name} "…" writes it'),
        )
    for line in page.text.splitlines():
        paper.verbatim(line)
