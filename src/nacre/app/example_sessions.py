"""The example sessions in a home: laid there for a first look, told apart from a person's own, taken out again."""

from __future__ import annotations

import shutil
from pathlib import Path

from nacre import private
from nacre.app import forgetting
from nacre.app.context import Context
from nacre.app.forgetting import ForgetRequest
from nacre.errors import NotFound
from nacre.examples import example_files
from nacre.model.forgetting import ForgetPlan, ForgetReport

_FOLDER = "examples"
_LOOKED_AT = 50


def lay_out(context: Context) -> list[Path]:
    """Put the example transcripts into the home, where they stay: a memory names the transcript it comes from.

    Where they were taken out before, they may be read again.
    """
    ours = {example.session for example in example_files()}
    for run in forgetting.forgotten(context):
        if run.sessions and not run.is_allowed and ours.issuperset(run.sessions):
            forgetting.allow_again(context, run.run)
    laid = []
    for example in example_files():
        path = context.settings.home / _FOLDER / example.name
        if not (path.is_file() and path.read_bytes() == example.data):
            private.make_folder(path.parent)
            private.write_file(path, example.data)
        laid.append(path)
    return laid


def present(context: Context) -> tuple[str, ...]:
    """The ids of those that were read into this memory, and not forgotten."""
    return tuple(example.session for example in example_files() if context.sessions.find(example.session))


def plan_to_forget(context: Context) -> ForgetPlan:
    """What goes with them. Raises NotFound where they are not in this memory."""
    if not (sessions := present(context)):
        raise NotFound("the example sessions are not in this memory")
    return forgetting.plan(context, ForgetRequest(sessions=sessions))


def forget(context: Context, plan: ForgetPlan) -> ForgetReport:
    """Take them out of the memory for good, and their transcripts out of the home."""
    shutil.rmtree(context.settings.home / _FOLDER, ignore_errors=True)
    return forgetting.forget(context, plan)


def has_others(context: Context) -> bool:
    """Whether any session of the owner's own was read."""
    folder = str(context.settings.home / _FOLDER)
    return any(not (found.file or "").startswith(folder) for found in context.sessions.newest(limit=_LOOKED_AT))
