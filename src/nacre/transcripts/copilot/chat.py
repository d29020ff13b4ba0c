"""VS Code Copilot Chat: session documents (until 1.108), logs of changes to one (since), and exports.

A log begins with the whole object; each line after it sets, extends or deletes what lies at a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.copilot.chat_session import TOOL, parse_session_object
from nacre.transcripts.editors import ENVIRONMENT, folder_of, user_folders
from nacre.transcripts.whole_json import beside, documents, mapping, shape_of, string
from nacre.values.session import Session, Turn

_INITIAL, _SET, _PUSH, _DELETE = range(4)
_MOST_PATH = 64


def parse(source: Source) -> Iterator[Session | Turn]:
    """Parse one session; see :class:`~nacre.transcripts.adapter.Adapter`."""
    values: Any = {}
    for number, entry in enumerate(documents(source)):
        if "kind" in entry and "requests" not in entry:
            values = _replay(source, values, entry)
        elif number == 0:
            values = entry
        else:
            source.unknown("line without kind")
    folder, label = _workspace(source)
    return parse_session_object(source, mapping(values), cwd=folder, label=label)


def _replay(source: Source, values: Any, entry: Mapping[str, Any]) -> Any:
    """The object after one change to it. A change that cannot be made is counted."""
    kind, path, value = entry.get("kind"), entry.get("k"), entry.get("v")
    if kind == _INITIAL:
        return value
    if kind not in (_SET, _PUSH, _DELETE):
        source.unknown(f"change of kind {kind}")
        return values
    if not isinstance(path, list) or not 0 < len(path) <= _MOST_PATH:
        source.corrupt()
        return values
    try:
        _change(values, path, kind, value, entry.get("i"))
    except (KeyError, IndexError, TypeError, ValueError):
        source.corrupt()
    return values


def _change(values: Any, path: Sequence[Any], kind: int, value: Any, length: Any) -> None:
    place = values
    for step in path[:-1]:
        place = place[_step(place, step)]
    last = _step(place, path[-1])
    if kind == _DELETE:
        del place[last]
    elif kind == _SET:
        _put(place, last, value)
    else:
        if isinstance(place, dict):
            place.setdefault(last, [])
        listed = place[last]
        if not isinstance(listed, list) or not isinstance(value or [], list):
            raise TypeError("no array to push to, or to push")
        if isinstance(length, int):
            del listed[max(0, length) :]
        listed.extend(value or [])


def _put(place: Any, at: Any, value: Any) -> None:
    if isinstance(place, list) and at == len(place):
        place.append(value)
    else:
        place[at] = value


def _step(place: Any, step: Any) -> Any:
    """A key of an object, or a place in an array, which is never counted from its end."""
    if isinstance(place, list):
        if not isinstance(step, int) or step < 0:
            raise TypeError("no place in an array")
        return step
    return str(step)


def _workspace(source: Source) -> tuple[str | None, str | None]:
    """The folder, or the name of the workspace of several, in which a chat was."""
    folder = source.path.parent
    if folder.name != "chatSessions":
        return None, None
    facts = beside(folder.parent / "workspace.json")
    workspace = folder_of(string(facts, "workspace", "configuration"))
    label = workspace.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".code-workspace") if workspace else None
    return folder_of(string(facts, "folder")), label


def _sniff(head: Head) -> bool:
    shape = shape_of(head)
    if shape is None or shape.is_array:
        return False
    if {"kind", "v"} <= shape.keys:
        first = mapping(head.objects[0] if head.objects else {}, "v")
        return "requests" in first or (not head.objects and '"requests"' in head.text)
    named = {"responderUsername", "initialLocation"} & shape.keys
    return len(named) == 2 or ("requests" in shape.keys and bool(named))


def _roots(places: Places) -> Sequence[Root]:
    patterns = ("*/chatSessions/*.json", "*/chatSessions/*.jsonl")
    empty = ("emptyWindowChatSessions/*.json", "emptyWindowChatSessions/*.jsonl", "transferredChatSessions/*.json*")
    return [
        root
        for user in user_folders(places)
        for root in (Root(user / "workspaceStorage", patterns), Root(user / "globalStorage", empty))
    ]


ADAPTER = Adapter(
    tool=TOOL, label="VS Code Copilot Chat", roots=_roots, sniff=_sniff, parse=parse, whole=True,
    versions="session version 3: documents, logs of changes (from their description), exports",
    reads=("what was said", "tool calls with outcome", "title", "folder", "model", "extension version", "summaries"),
    leaves_out=("thinking", "drafts", "rendered prompts", "edits' contents", "attachments' contents"),
    environment=ENVIRONMENT,
)  # fmt: skip
