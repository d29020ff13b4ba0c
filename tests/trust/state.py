"""What a home holds, and whether it is sound: read by a fresh process after whatever happened."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from nacre.care.database import rebuild
from nacre.care.health import doctor
from nacre.home.home import Home
from nacre.memories.edit import catch_up, scan
from nacre.values.memory import Memory
from nacre.vault.documents import parse
from nacre.vault.files import LEDGER

State = dict[str, Any]
"""``memories`` by name, each with what it says; counts of turns, sessions and of the ledger's actions; what is
``outside`` the home."""


def look(
    context: Home,
    known: Collection[str] = (),
    may_tell: str | None = None,
    may_leave: str | tuple[str, ...] | None = None,
) -> tuple[State, list[str]]:
    """What is remembered, and what is wrong with it. Memories are named by their ids if ``known``, else by subject.

    ``may_tell`` is part of a warning that is in order, ``may_leave`` the beginning of a file's name, or of its path in
    the home, that is.
    """
    catch_up(context)
    told = [problem for problem in context.problems if not (may_tell and may_tell in problem)]
    wrong = [f"told at opening: {problem}" for problem in told]
    memories = _all(context)
    subjects = {memory.id: memory.subject for memory in memories}
    named: dict[str, Any] = {}
    for memory in memories:
        name = memory.id if memory.id in known else memory.subject
        if name in named:
            wrong.append(f"doubled: {name}")
        named[name] = _says(memory, subjects)
    counts = context.sessions.counts()
    wrong += _vault(context, memories) + _ledger(context) + _leftovers(context, may_leave)
    state = {
        "memories": named,
        "sessions": sum(row[1] for row in counts),
        "turns": sum(row[2] or 0 for row in counts),
        "projects": sorted(project.slug for project in context.files.projects()),
        "ledger": _actions(context),
        "standing": sorted(rule.pattern for rule in context.tombstones.standing()),
    }
    return state, wrong + _doubled_turns(context)


def _all(context: Home) -> list[Memory]:
    found = (context.memories.find(memory_id) for memory_id in sorted(context.memories.all_ids()))
    return [memory for memory in found if memory]


def _says(memory: Memory, subjects: dict[str, str]) -> dict[str, Any]:
    return {
        "subject": memory.subject,
        "content": memory.content,
        "kind": memory.kind,
        "importance": memory.importance,
        "project": memory.project,
        "tags": sorted(memory.tags),
        "confirmed": len(memory.confirmed),
        "retired": memory.retired and (memory.retired.reason or ""),
        "superseded": memory.superseded_by and subjects.get(memory.superseded_by, "nobody"),
        "links": sorted([link.rel, subjects.get(link.to, "nobody")] for link in memory.links),
    }


def _vault(context: Home, memories: list[Memory]) -> list[str]:
    """Every file has its row and every row its file, and they say the same."""
    wrong, left = [], {memory.id: memory for memory in memories}
    for stat in context.vault.scan():
        modified = datetime.fromtimestamp(stat.modified_ns // 10**9, UTC)
        text = context.vault.read(stat.path).decode()
        written = parse(text, stat.path, new_id=lambda: "no id", modified=modified)
        row = left.pop(written.id, None)
        if row is None:
            wrong.append(f"{stat.path}: no row, or a second file for {written.id}")
        elif _sorted(row) != _sorted(written):
            wrong.append(f"{stat.path}: file and index differ: {written} {row}")
    wrong += [f"no file for {memory.subject}" for memory in left.values()]
    seen = context.files.seen()
    wrong += [f"{path}: not as it was seen" for path in _strangers(context, seen)]
    checks = {check.name: check for check in doctor(context)}
    wrong += [
        f"{name}: {check.detail}"
        for name, check in checks.items()
        if name in ("vault", "database", "changes") and check.state != "ok"
    ]
    return wrong


def _sorted(memory: Memory) -> Memory:
    """The index keeps tags as a set."""
    return replace(memory, tags=tuple(sorted(memory.tags)))


def _strangers(context: Home, seen: dict[str, Any]) -> list[str]:
    stats = {stat.path: stat for stat in context.vault.scan()}
    return [
        path
        for path in stats.keys() | seen.keys()
        if path not in seen or path not in stats or seen[path].mtime_ns != stats[path].mtime_ns
    ]


def _ledger(context: Home) -> list[str]:
    try:
        data = context.vault.read(LEDGER)
    except FileNotFoundError:
        return []
    wrong = [] if data.endswith(b"\n") or not data else ["the ledger's last line is torn"]
    lines = data.splitlines()
    wrong += [
        f"twice in the ledger: {line!r}" for line, count in Counter(lines).items() if count > 1
    ]
    for line in lines:
        try:
            values = json.loads(line)
            assert isinstance(values["op"], str) and isinstance(values["action"], str)  # noqa: PT018
        except (ValueError, KeyError, TypeError, AssertionError):
            wrong.append(f"no line of the ledger: {line!r}")
    return wrong


def _actions(context: Home) -> dict[str, int]:
    try:
        lines = context.vault.read(LEDGER).splitlines()
    except FileNotFoundError:
        return {}
    found = []
    for line in lines:
        try:
            found.append(json.loads(line)["action"])
        except (ValueError, KeyError, TypeError):
            continue
    return dict(sorted(Counter(found).items()))


def _leftovers(context: Home, may_leave: str | tuple[str, ...] | None) -> list[str]:
    """Nothing half done is left lying about."""
    wrong = [f"still pending: {intent.action} {intent.path}" for intent in context.files.intents()]
    wrong += [f"left open: {operation.action}" for operation in context.journal.unfinished()]
    known = (".lock", "-wal", "-shm")
    for path in context.settings.home.rglob("*"):
        if path.name.endswith((*known, ".gitignore", ".gitattributes")) or ".git" in path.parts:
            continue
        place = path.relative_to(context.settings.home).as_posix()
        if may_leave and (path.name.startswith(may_leave) or place.startswith(may_leave)):
            continue
        if (
            path.name.startswith("..git") or path.name == ".MEMORY.md.tmp"
        ):  # written anew when git is next used
            continue
        if path.name.endswith(".tmp") or path.name.startswith("."):
            wrong.append(f"left behind: {place}")
    return wrong


def history(context: Home) -> list[str]:
    """git is whole, and clean once what waits is committed. Call after a commit."""
    vault = context.settings.vault
    if not (vault / ".git").is_dir():
        return []
    broken = subprocess.run(
        ["git", "-C", vault, "fsck", "--no-dangling"], capture_output=True, check=False, text=True
    )
    wrong = [f"git fsck: {broken.stdout} {broken.stderr}"] if broken.returncode else []
    changed = subprocess.run(
        ["git", "-C", vault, "status", "--porcelain"], capture_output=True, check=False, text=True
    )
    return [*wrong, f"git says {changed.stdout!r}"] if changed.stdout else wrong


def _doubled_turns(context: Home) -> list[str]:
    wrong = []
    for session in context.sessions.newest(limit=1000):
        texts = Counter(
            (item.turn.id, item.turn.text) for item in context.sessions.turns_of(session.row)
        )
        wrong += [f"turn twice: {turn}" for (turn, _), count in texts.items() if count > 1]
    return wrong


def rebuilt(context: Home, opened_home: Callable[..., Home]) -> list[str]:
    """Make the database anew: the same memories, with the same ids, words, links and retirements."""
    before = _all(context)
    context.database.close()
    rebuild(context.settings, opened_home, vectors=False)
    again = opened_home()
    scan(again)
    after = _all(again)
    again.database.close()
    if after == before:
        return []
    differing = [(one, other) for one, other in zip(before, after, strict=False) if one != other]
    return [f"a rebuild gives {len(after)} memories of {len(before)}: {differing[:1]}"]


def between(found: State, before: State, after: State, *, is_whole: bool) -> list[str]:
    """What is neither as it was before a step nor as it is after it."""
    if found in (before, after):
        return []
    if is_whole:
        return [
            f"half done: {_difference(found, before)} beside what was, {_difference(found, after)} beside what is"
        ]
    wrong = []
    for name in sorted(
        found["memories"].keys() | before["memories"].keys() | after["memories"].keys()
    ):
        here, then, now = (state["memories"].get(name) for state in (found, before, after))
        if here not in (then, now):
            wrong.append(f"{name}: {here}, was {then}, should be {now}")
    for count in ("sessions", "turns"):
        if not min(before[count], after[count]) <= found[count] <= max(before[count], after[count]):
            wrong.append(f"{found[count]} {count}, not {before[count]} to {after[count]}")
    return wrong + _between_outside(found["outside"], before["outside"], after["outside"])


def _between_outside(found: Any, before: Any, after: Any) -> list[str]:
    """What is beside memories is as before or as after; where it has parts, each part of it."""
    if found in (before, after):
        return []
    if not isinstance(found, dict):
        return [f"outside: {found}, was {before}, should be {after}"]
    return [
        f"outside: {name}: {found.get(name)}, was {before.get(name)}, should be {after.get(name)}"
        for name in sorted(found.keys() | before.keys() | after.keys())
        if found.get(name) not in (before.get(name), after.get(name))
    ]


def finished(found: State, wanted: State) -> list[str]:
    """How what is remembered differs from what it should be in the end; a step done twice may be told twice."""
    parts = ("memories", "sessions", "turns", "projects", "standing", "outside")
    return [
        f"after a second run: {part} differ: {_difference(found, wanted)}"
        for part in parts
        if found[part] != wanted[part]
    ]


def _difference(found: State, wanted: State) -> str:
    told = []
    for part, value in wanted.items():
        if found[part] == value:
            continue
        if part == "memories":
            names = found[part].keys() | value.keys()
            for name in sorted(names):
                here, there = found[part].get(name), value.get(name)
                if here != there:
                    told.append(f"{name}: {here} for {there}")
        else:
            told.append(f"{part}: {found[part]} for {value}")
    return "; ".join(told)[:900]
