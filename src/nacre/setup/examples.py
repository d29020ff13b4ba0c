"""Six short sessions about two invented projects, in the formats of three tools, for a first look at nacre."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from nacre.base import files
from nacre.data import forget as forgetting
from nacre.data.forget import ForgetRequest
from nacre.errors import NotFound
from nacre.home.home import Home
from nacre.memories.erasure import remove_empty_projects
from nacre.values.memory import ForgetPlan, ForgetReport
from nacre.values.session import StoredSession

_TOOLS = ("claude-code", "codex", "openclaw")
_ID_CHARACTERS = 36


@dataclass(frozen=True, slots=True)
class ExampleFile:
    """One transcript: ``name`` is ``<tool>/<file name as the tool writes it>``."""

    name: str
    data: bytes

    @property
    def session(self) -> str:
        """The session in it, as ``<tool>:<id>``: all three tools end the file's name with the id."""
        tool, _, file = self.name.partition("/")
        return f"{tool}:{file.removesuffix('.jsonl')[-_ID_CHARACTERS:]}"


def example_files() -> Iterator[ExampleFile]:
    """The example transcripts, read from the package wherever it is installed, a zip file included."""
    root = resources.files(__package__) / "example_sessions"
    for tool in _TOOLS:
        for entry in sorted(root.joinpath(tool).iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".jsonl"):
                yield ExampleFile(f"{tool}/{entry.name}", entry.read_bytes())


# ----------------------------------------------------------------------------
# The example sessions in a home: laid there for a first look, told apart from a person's own, taken
# out again.


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
            files.make_folder(path.parent)
            files.write_file(path, example.data)
        laid.append(path)
    return laid


def present(home: Home) -> tuple[str, ...]:
    """The ids of those that were read into this memory, and not forgotten."""
    return tuple(
        example.session for example in example_files() if home.sessions.find(example.session)
    )


def plan_to_forget(home: Home) -> ForgetPlan:
    """What goes with them. Raises NotFound where they are not in this memory."""
    if not (sessions := present(home)):
        raise NotFound("the example sessions are not in this memory")
    return forgetting.plan(home, ForgetRequest(sessions=sessions))


def forget(home: Home, plan: ForgetPlan) -> ForgetReport:
    """Remove them from the memory for good, with their transcripts and their projects unless others use those."""
    projects = {
        found.project
        for session in plan.sessions
        for found in home.sessions.find(session)
        if found.project
    }
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
