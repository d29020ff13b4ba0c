"""The state of a home and its faults, read by a fresh process."""

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
"""``memories`` by name, each with its fields; counts of turns, sessions and of the ledger's actions; the state
``outside`` the home."""


def look(
    context: Home,
    known: Collection[str] = (),
    may_tell: str | None = None,
    may_leave: str | tuple[str, ...] | None = None,
) -> tuple[State, list[str]]:
    """Return the memories and the faults of a home. Memories are named by their ids if ``known``, else by subject.

    ``may_tell`` is part of an acceptable warning, ``may_leave`` the prefix of an acceptable file's name or path in the
    home.
    """
    catch_up(context)
    warnings = [problem for problem in context.problems if not (may_tell and may_tell in problem)]
    wrong = [f"reported at opening: {problem}" for problem in warnings]
    memories = _all(context)
    subjects = {memory.id: memory.subject for memory in memories}
    by_name: dict[str, Any] = {}
    for memory in memories:
        name = memory.id if memory.id in known else memory.subject
        if name in by_name:
            wrong.append(f"doubled: {name}")
        by_name[name] = _fields(memory, subjects)
    counts = context.sessions.counts()
    wrong += _vault(context, memories) + _ledger(context) + _leftovers(context, may_leave)
    state = {
        "memories": by_name,
        "sessions": sum(row[1] for row in counts),
        "turns": sum(row[2] or 0 for row in counts),
        "projects": sorted(project.slug for project in context.files.projects()),
        "ledger": _actions(context),
        "standing": sorted(rule.pattern for rule in context.tombstones.standing()),
    }
    return state, wrong + _doubled_turns(context)


def _all(context: Home) -> list[Memory]:
    memories = (
        context.memories.find(memory_id) for memory_id in sorted(context.memories.all_ids())
    )
    return [memory for memory in memories if memory]


def _fields(memory: Memory, subjects: dict[str, str]) -> dict[str, Any]:
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
    """Return differences between files and rows."""
    wrong, rows = [], {memory.id: memory for memory in memories}
    for stat in context.vault.scan():
        modified = datetime.fromtimestamp(stat.modified_ns // 10**9, UTC)
        text = context.vault.read(stat.path).decode()
        parsed = parse(text, stat.path, new_id=lambda: "no id", modified=modified)
        row = rows.pop(parsed.id, None)
        if row is None:
            wrong.append(f"{stat.path}: no row, or a second file for {parsed.id}")
        elif _sorted(row) != _sorted(parsed):
            wrong.append(f"{stat.path}: file and index differ: {parsed} {row}")
    wrong += [f"no file for {memory.subject}" for memory in rows.values()]
    indexed = context.files.indexed()
    wrong += [f"{path}: not as indexed" for path in _changed_files(context, indexed)]
    checks = {check.name: check for check in doctor(context)}
    wrong += [
        f"{name}: {check.detail}"
        for name, check in checks.items()
        if name in ("vault", "database", "changes") and check.state != "ok"
    ]
    return wrong


def _sorted(memory: Memory) -> Memory:
    """Sort tags: the index stores them as a set."""
    return replace(memory, tags=tuple(sorted(memory.tags)))


def _changed_files(context: Home, indexed: dict[str, Any]) -> list[str]:
    stats = {stat.path: stat for stat in context.vault.scan()}
    return [
        path
        for path in stats.keys() | indexed.keys()
        if path not in indexed
        or path not in stats
        or indexed[path].mtime_ns != stats[path].mtime_ns
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
            wrong.append(f"invalid line of the ledger: {line!r}")
    return wrong


def _actions(context: Home) -> dict[str, int]:
    try:
        lines = context.vault.read(LEDGER).splitlines()
    except FileNotFoundError:
        return {}
    actions = []
    for line in lines:
        try:
            actions.append(json.loads(line)["action"])
        except (ValueError, KeyError, TypeError):
            continue
    return dict(sorted(Counter(actions).items()))


def _leftovers(context: Home, may_leave: str | tuple[str, ...] | None) -> list[str]:
    """Return files and operations that were left incomplete."""
    wrong = [f"still pending: {intent.action} {intent.path}" for intent in context.files.intents()]
    wrong += [f"left open: {operation.action}" for operation in context.journal.unfinished()]
    expected = (".lock", "-wal", "-shm")
    for path in context.settings.home.rglob("*"):
        if path.name.endswith((*expected, ".gitignore", ".gitattributes")) or ".git" in path.parts:
            continue
        place = path.relative_to(context.settings.home).as_posix()
        if may_leave and (path.name.startswith(may_leave) or place.startswith(may_leave)):
            continue
        if path.name.startswith("..git"):  # rewritten when git is next used
            continue
        if path.name.endswith(".tmp") or path.name.startswith("."):
            wrong.append(f"left behind: {place}")
    return wrong


def history(context: Home) -> list[str]:
    """Return faults of git, and uncommitted changes. Call after a commit."""
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
    """Rebuild the database; return the differences in memories."""
    before = _all(context)
    context.database.close()
    rebuild(context.settings, vectors=False, open_home=opened_home)
    again = opened_home()
    scan(again)
    after = _all(again)
    again.database.close()
    if after == before:
        return []
    differing = [
        (item, rebuilt_item)
        for item, rebuilt_item in zip(before, after, strict=False)
        if item != rebuilt_item
    ]
    return [f"a rebuild gives {len(after)} memories of {len(before)}: {differing[:1]}"]


def between(actual: State, before: State, after: State, *, is_whole: bool) -> list[str]:
    """Return the parts that equal neither the state before a step nor the state after it."""
    if actual in (before, after):
        return []
    if is_whole:
        return [
            f"half done: {_difference(actual, before)} from the old state,"
            f" {_difference(actual, after)} from the new state"
        ]
    wrong = []
    for name in sorted(
        actual["memories"].keys() | before["memories"].keys() | after["memories"].keys()
    ):
        value, old, new = (state["memories"].get(name) for state in (actual, before, after))
        if value not in (old, new):
            wrong.append(f"{name}: {value}, was {old}, should be {new}")
    for count in ("sessions", "turns"):
        if (
            not min(before[count], after[count])
            <= actual[count]
            <= max(before[count], after[count])
        ):
            wrong.append(f"{actual[count]} {count}, not {before[count]} to {after[count]}")
    return wrong + _between_outside(actual["outside"], before["outside"], after["outside"])


def _between_outside(actual: Any, before: Any, after: Any) -> list[str]:
    """Return the outside parts that equal neither the old nor the new state."""
    if actual in (before, after):
        return []
    if not isinstance(actual, dict):
        return [f"outside: {actual}, was {before}, should be {after}"]
    return [
        f"outside: {name}: {actual.get(name)}, was {before.get(name)}, should be {after.get(name)}"
        for name in sorted(actual.keys() | before.keys() | after.keys())
        if actual.get(name) not in (before.get(name), after.get(name))
    ]


def finished(actual: State, expected: State) -> list[str]:
    """Return differences from the expected final state; a repeated step may repeat its answer."""
    parts = ("memories", "sessions", "turns", "projects", "standing", "outside")
    return [
        f"after a second run: {part} differ: {_difference(actual, expected)}"
        for part in parts
        if actual[part] != expected[part]
    ]


def _difference(actual: State, expected: State) -> str:
    differences = []
    for part, value in expected.items():
        if actual[part] == value:
            continue
        if part == "memories":
            names = actual[part].keys() | value.keys()
            for name in sorted(names):
                actual_item, expected_item = actual[part].get(name), value.get(name)
                if actual_item != expected_item:
                    differences.append(f"{name}: {actual_item} for {expected_item}")
        else:
            differences.append(f"{part}: {actual[part]} for {value}")
    return "; ".join(differences)[:900]
