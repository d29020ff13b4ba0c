"""The example sessions in a home: laid there for a first look, told apart from a person's own, taken out again."""

from __future__ import annotations

import shutil
from pathlib import Path

from nacre.errors import NotFound
from nacre.examples import example_files
from nacre.forgetting import forget as forgetting
from nacre.forgetting.requests import ForgetRequest
from nacre.home.home import Home
from nacre.platform import private_files
from nacre.tombstones.erasure import remove_empty_projects
from nacre.values.forgetting import ForgetPlan, ForgetReport
from nacre.values.session import StoredSession

_FOLDER = "examples"
_LOOKED_AT = 50


def lay_out(home: Home) -> list[Path]:
    """Put the example transcripts into the home, where they stay: a memory names the transcript it comes from.

    Where they were taken out before, they may be read again.
    """
    ours = {example.session for example in example_files()}
    for run in forgetting.forgotten(home):
        if run.sessions and not run.is_allowed and ours.issuperset(run.sessions):
            forgetting.allow_again(home, run.run)
    laid = []
    for example in example_files():
        path = home.settings.home / _FOLDER / example.name
        if not (path.is_file() and path.read_bytes() == example.data):
            private_files.make_folder(path.parent)
            private_files.write_file(path, example.data)
        laid.append(path)
    return laid


def present(home: Home) -> tuple[str, ...]:
    """The ids of those that were read into this memory, and not forgotten."""
    return tuple(example.session for example in example_files() if home.sessions.find(example.session))


def plan_to_forget(home: Home) -> ForgetPlan:
    """What goes with them. Raises NotFound where they are not in this memory."""
    if not (sessions := present(home)):
        raise NotFound("the example sessions are not in this memory")
    return forgetting.plan(home, ForgetRequest(sessions=sessions))


def forget(home: Home, plan: ForgetPlan) -> ForgetReport:
    """Remove them from the memory for good, with their transcripts and their projects unless others use those."""
    projects = {found.project for session in plan.sessions for found in home.sessions.find(session) if found.project}
    shutil.rmtree(home.settings.home / _FOLDER, ignore_errors=True)
    report = forgetting.forget(home, plan)
    with home.vault_lock:
        remove_empty_projects(home, projects)
    return report


def has_others(home: Home) -> bool:
    """Whether any session of the owner's own was read."""
    return any(not is_one(home, found) for found in home.sessions.newest(limit=_LOOKED_AT))


def is_one(home: Home, session: StoredSession) -> bool:
    """Whether a session is an example, and none of the owner's."""
    return is_from_one(home, session.file)


def is_from_one(home: Home, transcript: str | None) -> bool:
    """Whether a transcript is that of an example."""
    return (transcript or "").startswith(str(home.settings.home / _FOLDER))
