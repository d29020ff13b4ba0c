"""What follows whatever was done, whoever runs it: a command, the daemon or an agent's server."""

from __future__ import annotations

from nacre.app.context import Context


def keep_history(context: Context, *, commits: bool = True) -> None:
    """Let what was done be judged, synced and committed in the background, where that is wanted and due.

    Without ``commits`` it is only judged.
    """
    if context.database.unwritable:
        return
    from nacre.app import background

    if context.settings["models.background"]:
        background.judge_in_background(context)
    if not commits:
        return
    if context.settings["sync.auto"] and background.sync_in_background(context):
        return
    if context.journal.waiting()[0]:
        background.commit_in_background(context)


def warnings_of(context: Context, *, of_sync: bool = True) -> list[str]:
    """What a person should know beside an answer: that syncs fail, or that nothing can be written now."""
    found = []
    if of_sync and context.settings["sync.auto"]:
        from nacre.app.syncing import long_failing  # only where syncs run by themselves

        last = long_failing(context)
        found += [f"syncing has failed since {last.failing_since}: {last.message}; {last.hint}"] if last else []
    why = context.database.unwritable
    return found + ([f"nothing is written, and edits by hand are not read: {why.message}; {why.hint}"] if why else [])
