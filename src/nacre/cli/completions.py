"""What a shell completes besides commands and options: ids, projects, tools, settings.

A field of a request is completed by what it names, whichever command takes it. Nothing is said where the home cannot be
read: a shell that is asked for a completion shows no errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.formats import short_id, short_session
from nacre.cli.operations import ask, place_of
from nacre.cli.run import Run
from nacre.errors import NacreError
from nacre.platform.lazy import load
from nacre.text.passages import one_line, shorten

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
Found = Iterable[tuple[str, str]]
"""What can be typed, each with what it stands for."""

_MOST = 200
_HELP_CHARACTERS = 60


def completer_of(source: str | type, name: str) -> Completer | None:
    """What completes a field of the request of an operation, or of a filter; ``None`` for what is not known before."""
    find = _BY_NAME.get(name) or (
        _BY_OPERATION.get(source) if name in _REFERENCES and isinstance(source, str) else None
    )
    return completer(find) if find else None


def completer(find: Callable[[Run], Found]) -> Completer:
    """Completes with what is found, by its beginning."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        run, item = context.find_object(Run), load("click.shell_completion:CompletionItem")
        with suppress(NacreError, OSError):
            known = list(find(run)) if run else []
            return [
                item(value, help=shorten(one_line(told), _HELP_CHARACTERS) if told else None)
                for value, told in known
                if value.startswith(incomplete)
            ]
        return []

    return complete


def sessions(run: Run) -> Found:
    """Sessions, the newest first."""
    for line in ask(run, "sessions", limit=_MOST).lines:
        session = line.session.session
        yield short_session(session.native_id), session.title or line.opening or ""


def hosts(_: Run) -> Found:
    """What ``init`` plugs nacre into."""
    return ((name, host.label) for name, host in load("nacre.hosts.registry:HOSTS").items())


def _memories(run: Run) -> Found:
    return _told(ask(run, "list", limit=_MOST).memories)


def _todos(run: Run) -> Found:
    todo = load("nacre.values.recall:Filter")(kinds=(load("nacre.values.memory:Kind").TODO,))
    return _told(ask(run, "list", filter=todo, limit=_MOST).memories)


def _retired(run: Run) -> Found:
    return _told(ask(run, "retired"))


def _pending(run: Run) -> Found:
    return _told(item.memory for item in ask(run, "review", limit=_MOST).items)


def _told(memories: Iterable[Any]) -> Iterator[tuple[str, str]]:
    return ((short_id(memory), memory.subject) for memory in memories)


def _operations(run: Run) -> Found:
    for one in ask(run, "log", limit=_MOST):
        yield one.operation.id[-8:], f"{one.operation.action} {one.operation.subject or ''}".strip()


def _traces(run: Run) -> Found:
    return ((trace.id[-8:], f"{trace.kind.value} {trace.subject}") for trace in ask(run, "traces"))


def _projects(run: Run) -> Found:
    place = place_of(run, None)
    here = [(".", f"{place.project}: this folder")] if place.project else []
    return [*here, *((name, "") for name in place.known)]


def _tools(_: Run) -> Found:
    return ((tool, "") for tool in sorted(load("nacre.transcripts.registry:BUILTINS")))


def _settings(_: Run) -> Found:
    return ((setting.key, setting.summary) for setting in load("nacre.known_settings:SETTINGS"))


def _queries(run: Run) -> Found:
    return ((query.id, query.query) for query in ask(run, "eval-list"))


_REFERENCES = ("reference", "references", "operation")
_BY_NAME: dict[str, Callable[[Run], Found]] = {
    "project": _projects, "projects": _projects, "exclude_projects": _projects, "tool": _tools, "tools": _tools,
    "sessions": sessions, "memories": _memories, "key": _settings, "query_id": _queries,
}  # fmt: skip
_BY_OPERATION: dict[str, Callable[[Run], Found]] = {
    **dict.fromkeys(("look", "edit", "retire", "feedback", "log"), _memories),
    **dict.fromkeys(("review-keep", "review-drop", "review-resolve"), _pending),
    **dict.fromkeys(("session", "session-summary", "session-restore"), sessions),
    **dict.fromkeys(("undo", "diff"), _operations),
    "todo-done": _todos, "unretire": _retired, "trace": _traces,
}  # fmt: skip
