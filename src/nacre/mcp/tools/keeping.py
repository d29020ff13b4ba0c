"""``memory_store`` and ``memory_retire``."""

from __future__ import annotations

from typing import Any

from nacre.errors import InvalidInput, NacreError
from nacre.home import location
from nacre.mcp import arguments
from nacre.mcp.answers import Answer, noted, refusal, short_id, title_of
from nacre.mcp.desk import GLOBAL, Desk
from nacre.memories.requests import RetireRequest, StoreRequest
from nacre.text.passages import harmless, one_line
from nacre.values.memory import Memory, Source
from nacre.values.reports import StoreOutcome
from nacre.values.session import Speaker, Trust

_DONE = {
    "stored": "Stored", "known": "Known already, and confirmed", "updated": "Merged into what was known",
    "retired": "Retired at once, as a standing retirement says",
}  # fmt: skip


_PROPOSED = "as your proposal: found when searched for; the person can keep it in review, or say it"


def store(desk: Desk, asked: arguments.Store) -> Answer:
    """Store memories, one after the other; what cannot be stored does not keep the others out."""
    project, is_known = _project(desk, asked.project)
    folder = None if project or _is_global(asked.project) else _repository(desk)
    lines, records, failed = [], [], None
    for number, entry in enumerate(asked.entries, start=1):
        desk.tell(f"storing {number} of {len(asked.entries)}")
        try:
            outcome: StoreOutcome = desk.call("store", _new(desk, entry, project, folder))
        except NacreError as error:
            failed = error
            lines.append(f"- not stored: {one_line(harmless(error.message))}")
            records.append(refusal(error))
            continue
        lines.append(_line(outcome))
        records.append(_record(outcome))
    if failed and len(asked.entries) == 1:
        raise failed
    fresh = (
        "" if is_known else f"{harmless(project or '')} is a new project; if it is another's name, store them there."
    )
    return Answer(noted(*lines, fresh), {"outcomes": records})


def _project(desk: Desk, name: str | None) -> tuple[str | None, bool]:
    """The slug that new memories get, and whether it is known; a name that nobody knows is a new project's."""
    if _is_global(name):
        return None, True
    if name is not None and name.strip() == "*":
        raise InvalidInput("a memory belongs to one project", hint='name it, or "global"')
    found = desk.place(name)
    return found.project, found.is_known


def _is_global(name: str | None) -> bool:
    return name is not None and name.strip().lower() == GLOBAL


def _repository(desk: Desk) -> str | None:
    """The folder of the client, where that is a repository: nobody knows its project yet. Else it says little."""

    return desk.folder if desk.folder and location.locate(desk.folder).is_repository else None


def _new(desk: Desk, entry: arguments.NewEntry, project: str | None, folder: str | None) -> Any:
    given = {name: getattr(entry, name) for name in entry.__struct_fields__ if name != "from_outside"}
    return StoreRequest(
        **given, project=project, folder=folder, speaker=Speaker.AGENT,
        trust=Trust.UNTRUSTED if entry.from_outside else Trust.TRUSTED, source=Source(session=desk.session),
    )  # fmt: skip


def _line(outcome: StoreOutcome) -> str:
    told = f"- [{short_id(outcome.memory_id)}] {_DONE.get(outcome.action, outcome.action)}"
    for replaced in outcome.supersedes:
        told += f"; replaces [{short_id(replaced.memory.id)}] {title_of(replaced.memory, 80)}"
    if outcome.superseded_by:
        newer = outcome.superseded_by.memory
        told += f"; a newer memory says otherwise: [{short_id(newer.id)}] {title_of(newer, 80)}"
    if outcome.similar and outcome.action == "stored":
        likest = outcome.similar[0]
        told += f"; like [{short_id(likest.id)}] {title_of(likest, 80)}: retire what no longer holds"
    if outcome.note:
        told += f" ({one_line(harmless(outcome.note))})"
    if outcome.proposed:
        told += f"; {_PROPOSED}"
    return told + "."


def _record(outcome: StoreOutcome) -> dict[str, Any]:
    return {
        "action": outcome.action, "id": outcome.memory_id, "reason": outcome.reason, "proposed": outcome.proposed,
        "supersedes": [one.memory.id for one in outcome.supersedes],
        "superseded_by": outcome.superseded_by.memory.id if outcome.superseded_by else None,
    }  # fmt: skip


def retire(desk: Desk, asked: arguments.Retire) -> Answer:
    """Take memories out of recall: all that are named, or none."""
    wide = next((one for one in asked.ids if "*" in one), None)
    if wide:
        raise InvalidInput(f"{wide!r} is a pattern", hint="name each memory by its id; memory_search shows ids")
    with desk.naming("memory_search shows the ids of memories"):
        retired: list[Memory] = desk.call(
            "retire", RetireRequest(references=asked.ids, reason=asked.reason, persist=asked.persist)
        )
    gone, waiting = [one for one in retired if one.retired], [one for one in retired if not one.retired]
    lines = []
    if gone:
        lines += ["Retired; the files are kept, and the person can bring them back:", *map(_named, gone)]
    if waiting:
        lines += ["Not retired: these are the person's words. What you want waits for their review:"]
        lines += map(_named, waiting)
    records = {"retired": [one.id for one in gone], "waiting": [one.id for one in waiting]}
    return Answer(noted(*lines), records)


def _named(memory: Memory) -> str:
    return f"- [{short_id(memory.id)}] {title_of(memory)}"
