"""REST routes of ClawXMemory."""

from __future__ import annotations

import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio.to_thread

from nacre.base import files, ids
from nacre.base.text import one_line, shorten
from nacre.data.export import FORMAT, entry_file, project_id_of, write_snapshot
from nacre.data.importers import text_of
from nacre.errors import ConflictError, InvalidInputError
from nacre.values.codec import stamp
from nacre.values.memory import Kind, Memory
from nacre.vault import documents
from nacre_extras.compatibility import Call, Record, Routes, reference_of

_MAX_ITEMS = 200


# Entries are memories of projects or of the inbox (``_tmp``). Global memories form the user's profile.
_route = Routes()
_NO_LIMIT = 100_000
_DESCRIPTION_CHARACTERS = 180
_DAY_MINUTES = 1_440
_KINDS = {"user", "feedback", "project"}
_PROFILE = "global/User/user-profile.md"


@_route("GET", "/clawxmemory/api/overview")
async def overview(call: Call) -> Any:
    """Return counts and health for ClawXMemory's dashboard."""
    memories = await _memories(call)
    checks = (await call.ask("overview")).checks
    problems = [item for item in checks if item.state != "ok"]
    return {
        "pendingSessions": 0,
        "formalProjectCount": len({item.project for item in memories if item.project}),
        "userProfileCount": sum(_type(item) == "user" for item in memories),
        "tmpTotalFiles": sum(item.inbox for item in memories),
        "dashboardStatus": "warning" if problems else "healthy",
        "dashboardWarning": f"{problems[0].name}: {problems[0].detail}" if problems else None,
        "dashboardDiagnostics": {
            "issues": [f"{item.name}: {item.detail}" for item in problems],
            "conflictingFiles": [],
        },
    }


@_route("GET", "/clawxmemory/api/settings")
async def settings(call: Call) -> Any:
    """Return the settings, with intervals in minutes. 0 means continuous indexing, or no dreams."""
    at_night = await call.ask("config-get", key="dream.at_night")
    minutes = _DAY_MINUTES if str(at_night.value).lower() == "true" else 0
    return {
        "reasoningMode": "answer_first",
        "autoIndexIntervalMinutes": 0,
        "autoDreamIntervalMinutes": minutes,
    }


@_route("POST", "/clawxmemory/api/settings")
async def save_settings(call: Call) -> Any:
    """Turn nightly dreams on or off. Raises InvalidInputError for other settings."""
    changes = await call.body()
    minutes = changes.pop("autoDreamIntervalMinutes", None)
    current = await settings(call)
    other = next((name for name, value in changes.items() if current.get(name) != value), None)
    if other:
        raise InvalidInputError(f"{other} cannot be set", hint="nacre config lists the settings")
    if minutes is not None:
        if not isinstance(minutes, int) or isinstance(minutes, bool):
            raise InvalidInputError(
                "autoDreamIntervalMinutes is not a number",
                hint="use 0 for no dreams, and any other number for one a day",
            )
        await call.ask("config-set", key="dream.at_night", value="true" if minutes > 0 else "false")
    return await settings(call)


@_route("GET", "/clawxmemory/api/snapshot")
async def snapshot(call: Call) -> Any:
    """Return the overview, settings and recent entries."""
    recent = (await _memories(call))[: call.number("limit", 20, _MAX_ITEMS)]
    return {
        "overview": await overview(call),
        "settings": await settings(call),
        "recentMemoryFiles": [_manifest(memory) for memory in recent],
    }


@_route("POST", "/clawxmemory/api/index/run")
async def index_run(call: Call) -> Any:
    """Read new transcripts and learn from them."""
    report = await call.ask("ingest", puts_off=True)
    return {
        "sessions": report.sessions,
        "turns": report.turns,
        "memories": len(report.memories),
        "problems": [problem.message for problem in report.problems],
    }


@_route("POST", "/clawxmemory/api/dream/run")
async def dream_run(call: Call) -> Any:
    """Run a dream. The first dream in a home only makes a plan."""
    report = await call.ask("dream")
    planned, unfinished = len(report.plan.steps), len(report.left)
    return {
        "steps": planned,
        "done": planned - unfinished if report.operation else 0,
        "operation": report.operation,
        "diary": report.diary,
        "onlyPlanned": report.is_first,
    }


@_route("GET", "/clawxmemory/api/memory/list")
async def listed(call: Call) -> Any:
    """List entries, optionally of a kind or project, or with given words."""
    kind = call.text("kind") if call.text("kind") in _KINDS else ""
    project = await _project(call, call.text("projectId"))
    memories = [
        memory
        for memory in await _memories(call, call.text("q"))
        if kind in ("", _type(memory)) and (not project or memory.project == project)
    ]
    return [_manifest(memory) for memory in call.page(memories, _MAX_ITEMS)]


@_route("GET", "/clawxmemory/api/memory/get")
async def records(call: Call) -> Any:
    """Return the entries with given paths. Raises InvalidInputError without a path."""
    names = [name.strip() for name in call.text("ids").split(",") if name.strip()]
    if not names:
        raise InvalidInputError(
            "ids are missing", hint="use paths from memory/list: ?ids=PATH,PATH"
        )
    found = []
    for name in names[:_MAX_ITEMS]:
        memory = await call.ask("get", reference=reference_of(name), update=False)
        preview = shorten(one_line(memory.content), 300)
        text = {"content": entry_file(memory)[1], "preview": preview}
        found.append(_manifest(memory) | text)
    return found


@_route("GET", "/clawxmemory/api/memory/user-summary")
async def user_summary(call: Call) -> Any:
    """Return the global memories and the owner's page."""
    page = await call.ask("page-own", name="profile")
    mine = [memory for memory in await _memories(call) if _type(memory) == "user"]
    return {
        "profile": page.text,
        "preferences": [memory.content for memory in mine if memory.kind is Kind.PREFERENCE],
        "constraints": [],
        "relationships": [memory.content for memory in mine if memory.kind is Kind.RELATIONSHIP],
        "notes": [
            memory.content
            for memory in mine
            if memory.kind not in (Kind.PREFERENCE, Kind.RELATIONSHIP)
        ],
        "files": [_manifest(memory) for memory in mine],
    }


@_route("GET", "/clawxmemory/api/projects")
async def projects(call: Call) -> Any:
    """List projects with their entries."""
    memories = await _memories(call)
    query = call.text("q").lower()
    matches = []
    for project in await call.ask("project-list"):
        entries = [_manifest(memory) for memory in memories if memory.project == project.slug]
        if (
            query
            in " ".join(
                [project.name, *project.aliases, *(entry["name"] for entry in entries)]
            ).lower()
        ):
            matches.append(
                {
                    "projectId": project_id_of(project.slug),
                    "projectName": project.name,
                    "description": "",
                    "aliases": project.aliases,
                    "status": "active",
                    "updatedAt": stamp(project.last) if project.last else "",
                    **_by_type(entries),
                }
            )
    return call.page(matches, _MAX_ITEMS)


@_route("GET", "/clawxmemory/api/tmp")
async def staged(call: Call) -> Any:
    """List the entries in the inbox."""
    entries = [
        _manifest(memory) for memory in await _memories(call, call.text("q")) if memory.inbox
    ]
    return {"totalFiles": len(entries), **_by_type(entries)}


def _by_type(entries: list[Record]) -> Record:
    result: Record = {}
    for kind in ("project", "feedback"):
        result[f"{kind}Entries"] = [entry for entry in entries if entry["type"] == kind]
        result[f"{kind}Count"] = len(result[f"{kind}Entries"])
    return result


@_route("POST", "/clawxmemory/api/memory/actions")
async def act(call: Call) -> Any:
    """Change entries or a project.

    Raises InvalidInputError for an unknown or incomplete action, and the errors of operations.
    """
    body = await call.body()
    action = str(body.get("action") or "")
    if action in _ENTRY_ACTIONS:
        paths = body.get("ids")
        changed = (
            [path.strip() for path in paths if isinstance(path, str) and path.strip()]
            if isinstance(paths, list)
            else []
        )
        if not changed:
            raise InvalidInputError("ids are missing", hint="use paths from memory/list")
        await _ENTRY_ACTIONS[action](call, [reference_of(path) for path in changed], body)
    elif action in _ACTIONS:
        changed = [await _ACTIONS[action](call, body)]
    else:
        names = ", ".join([*_ACTIONS, *_ENTRY_ACTIONS])
        raise InvalidInputError(f"there is no action {action[:40]!r}", hint=f"use one of {names}")
    return {
        "ok": True,
        "action": action,
        "mutatedIds": changed,
        "deletedProjectIds": [],
        "messages": [],
        "updatedOverview": await overview(call),
    }


async def _edit_project(call: Call, body: Record) -> str:
    project = await _project(call, _text(body, "projectId"))
    name, description = _text(body, "projectName"), _text(body, "description")
    page = await call.ask("page-own", name="project", project=project)
    front = documents.load(documents.split(page.text)[0] or "")
    aliases = [alias for alias in body.get("aliases") or () if isinstance(alias, str)]
    changed = {
        "name": name,
        "status": _text(body, "status"),
        "aliases": list(dict.fromkeys([name, *aliases])),
    }
    text = f"---\n{documents.dump({**front, **changed})}---\n# {name}\n\n{description}\n"
    await call.ask(
        "page-write", name="project", project=project, text=text, expected=page.etag or None
    )
    return project_id_of(project)


async def _edit_entry(call: Call, body: Record) -> str:
    name = _text(body, "id")
    fields = body.get("fields") if isinstance(body.get("fields"), dict) else {}
    lines = [
        str(line)
        for value in (fields or {}).values()
        for line in (value if isinstance(value, list) else [value])
    ]
    content = {"content": "\n".join(line for line in lines if line.strip())} if any(lines) else {}
    await call.ask("edit", reference=reference_of(name), subject=_text(body, "name"), **content)
    return name


_ACTIONS = {"edit_project_meta": _edit_project, "edit_entry": _edit_entry}


async def _delete(call: Call, references: list[str], _: object) -> None:
    memories = [await call.ask("get", reference=item, update=False) for item in references]
    active = next((item for item in memories if item.is_active), None)
    if active:
        raise ConflictError(
            f"{active.subject!r} is not deprecated", hint="use deprecate_entries first"
        )
    await call.ask("forget", memories=[item.id for item in memories])


async def _file(call: Call, references: list[str], body: Record) -> None:
    target = str(body.get("targetProjectId") or "")
    project = await _project(call, target) if target else _text(body, "newProjectName")
    for reference in references:
        memory = await call.ask("get", reference=reference, update=False)
        if not memory.inbox:
            raise ConflictError(
                f"{memory.subject!r} is not in the inbox",
                hint="GET /clawxmemory/api/tmp lists the entries in the inbox",
            )
    for reference in references:
        await call.ask("edit", reference=reference, project=project)


_ENTRY_ACTIONS: dict[str, Callable[[Call, list[str], Record], Awaitable[Any]]] = {
    "delete_entries": _delete,
    "deprecate_entries": lambda call, references, _: call.ask(
        "retire", references=references, reason="deprecated"
    ),
    "restore_entries": lambda call, references, _: call.ask("unretire", references=references),
    "archive_tmp": _file,
}


def _text(body: Record, name: str) -> str:
    value = text_of(body, name)
    if value is None:
        raise InvalidInputError(f"{name} is missing", hint="it must be a string")
    return value


@_route("POST", "/clawxmemory/api/clear")
async def clear(_: Call) -> Any:
    """Refuse to delete everything. Raises ConflictError."""
    raise ConflictError(
        "a home cannot be cleared over HTTP",
        hint="use nacre forget for sessions, projects or texts",
    )


@_route("GET", "/clawxmemory/api/export")
async def export(call: Call) -> Any:
    """Return a bundle that ClawXMemory can import."""
    memories = [*await _memories(call), *await call.ask("retired")]
    file = io.BytesIO()
    await anyio.to_thread.run_sync(write_snapshot, ids.utc_now(), memories, file)
    return json.loads(file.getvalue())


@_route("POST", "/clawxmemory/api/import")
async def import_(call: Call) -> Any:
    """Import a bundle. Raises InvalidInputError if it is invalid."""
    bundle = await call.body()
    if bundle.get("formatVersion") != FORMAT:
        raise InvalidInputError("not a ClawXMemory bundle", hint=f"formatVersion must be {FORMAT}")
    path = call.home / f"import-{ids.uuid7_source()()}.json"
    await anyio.to_thread.run_sync(files.write_file, path, json.dumps(bundle))
    try:
        report = await call.ask("import", path=path, source="clawxmemory")
    finally:
        await anyio.to_thread.run_sync(path.unlink)
    return {
        "formatVersion": FORMAT,
        "importedAt": stamp(ids.utc_now()),
        "imported": {"memoryFiles": len(report.added)},
        "updated": report.updated,
        "duplicates": report.duplicates,
        "projectPages": report.pages,
    }


async def _memories(call: Call, words: str = "") -> list[Memory]:
    return list((await call.ask("list", limit=_NO_LIMIT, words=words)).memories)


async def _project(call: Call, name: str) -> str:
    slugs = [project.slug for project in await call.ask("project-list")] if name else []
    return next((slug for slug in slugs if name in (slug, project_id_of(slug))), name)


def _type(memory: Memory) -> str:
    if not (memory.project or memory.inbox):
        return "user"
    return "feedback" if memory.kind is Kind.PREFERENCE else "project"


def _manifest(memory: Memory) -> Record:
    kind = _type(memory)
    path = (
        f"{_PROFILE.removesuffix('.md')}-{memory.id[-8:]}.md"
        if kind == "user"
        else entry_file(memory)[0]
    )
    return {
        "name": memory.subject,
        "description": shorten(one_line(memory.content), _DESCRIPTION_CHARACTERS),
        "type": kind,
        "scope": "global" if kind == "user" else "project",
        "projectId": project_id_of(memory.project) if memory.project else None,
        "updatedAt": stamp(memory.updated),
        "capturedAt": stamp(memory.created),
        "sourceSessionKey": memory.source.session or "",
        "deprecated": not memory.is_active,
        "dreamAttempts": 0,
        "file": path.rpartition("/")[2],
        "relativePath": path,
        "id": memory.id,
    }


SERVICE = _route
