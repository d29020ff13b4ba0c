"""Six short example sessions about two invented projects, in the formats of three tools."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from nacre.base import files
from nacre.base.frozen import frozen
from nacre.data import forget as forgetting
from nacre.data.forget import Deletion, ForgetRequest
from nacre.errors import NotFoundError
from nacre.home.home import Home
from nacre.memories.erasure import remove_empty_projects
from nacre.values.memory import ForgetReport

_TOOLS = ("claude-code", "codex", "openclaw")
_ID_CHARACTERS = 36


@frozen
class ExampleFile:
    """An example transcript, named ``<tool>/<file name as the tool writes it>``."""

    name: str
    data: bytes

    @property
    def session(self) -> str:
        """Return the session's name, ``<tool>:<id>``. The id is the end of the file's name."""
        tool, _, file = self.name.partition("/")
        return f"{tool}:{file.removesuffix('.jsonl')[-_ID_CHARACTERS:]}"


def example_files() -> Iterator[ExampleFile]:
    """Yield the example transcripts in nacre's package, even if the package is zipped."""
    root = resources.files(__package__) / "example_sessions"
    for tool in _TOOLS:
        for entry in sorted(root.joinpath(tool).iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".jsonl"):
                yield ExampleFile(f"{tool}/{entry.name}", entry.read_bytes())


# -- Example sessions in a home --------------------------------------------------------------------


_FOLDER = "examples"
_LOOKED_AT = 50


def write_examples(home: Home) -> list[Path]:
    """Write the example transcripts into the home, where memories refer to them.

    Examples that the user had deleted may be read again.
    """
    ours = {example.session for example in example_files()}
    for run in forgetting.forgotten(home):
        if run.sessions and not run.is_allowed and ours.issuperset(run.sessions):
            forgetting.allow_again(home, reference=run.run)
    paths = []
    for example in example_files():
        path = home.settings.home / _FOLDER / example.name
        if not (path.is_file() and path.read_bytes() == example.data):
            files.make_folder(path.parent)
            files.write_file(path, example.data)
        paths.append(path)
    return paths


def stored_examples(home: Home) -> tuple[str, ...]:
    """Return the ids of the examples that the home contains."""
    return tuple(
        example.session for example in example_files() if home.sessions.find(example.session)
    )


def plan_to_forget(home: Home) -> Deletion:
    """Plan the deletion of the examples. Raises NotFoundError if the home has none."""
    if not (sessions := stored_examples(home)):
        raise NotFoundError("this memory does not contain the example sessions")
    return forgetting.prepare(home, ForgetRequest(sessions=sessions))


def forget(home: Home, deletion: Deletion) -> ForgetReport:
    """Permanently forget the examples, with their transcripts and the projects that only they use."""
    projects = {
        stored.project
        for session in deletion.plan.sessions
        for stored in home.sessions.find(session)
        if stored.project
    }
    shutil.rmtree(home.settings.home / _FOLDER, ignore_errors=True)
    report = forgetting.forget(home, deletion)
    with home.vault_lock:
        remove_empty_projects(home, projects)
    return report


def has_others(home: Home) -> bool:
    """Return True if nacre has read a session that is not an example."""
    newest = home.sessions.newest(limit=_LOOKED_AT)
    return any(not is_example(home, session.file) for session in newest)


def is_example(home: Home, transcript: str | None) -> bool:
    """Return True if a transcript belongs to an example."""
    return (transcript or "").startswith(folder(home))


def folder(home: Home) -> str:
    """Return the folder of the examples in a home."""
    return str(home.settings.home / _FOLDER)
