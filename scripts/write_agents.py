"""Write docs/agents.md from the adapters; print it with --show."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import generated

from nacre.hosts.registry import ALL_HOSTS
from nacre.readers.adapter import Adapter, Places
from nacre.readers.registry import adapters

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "agents.md"
PROVEN = ROOT / "src" / "nacre" / "hosts" / "proven.toml"

INTRODUCTION = """# Supported agents

nacre reads the sessions of these tools. `scripts/write_agents.py` generates this page from the adapters in
`src/nacre/readers/`, so do not edit it. `nacre ingest` counts and reports unknown records. They do not affect other
records.

From all tools, nacre reads the messages and the tool calls with their outcome, and the title, folder, model and tokens
of a session. It never reads thinking, pictures and attached files. The table lists additions and exceptions. A star
marks versions that are known only from documentation or from readers of other projects.

A tool with several formats has several rows. All have been supported since nacre 0.1.0. The table shows the folders
on Linux. On macOS and Windows, and if a tool's own variable or `$XDG_CONFIG_HOME` is set, nacre uses the
corresponding folder. You can add folders with the setting `ingest.roots`. If a format is missing here, [write an
adapter](adapters.md). To read sessions while they are written, run the [daemon](daemon.md#follow-sessions).

| tool | versions | folder | also read | not read |
|---|---|---|---|---|
"""

DRIVEN = """
## Driven for real

The test suite [connects and runs these hosts](hosts.md#driven-for-real) and then reads their transcripts. It found no
unknown records.

| host | in CI | newest | date |
|---|---|---|---|
"""


def page() -> str:
    """Return the whole page."""
    driven = [
        (ALL_HOSTS[name].label, *map(str, versions.values()))
        for name, versions in tomllib.loads(PROVEN.read_text("utf-8")).items()
    ]
    return INTRODUCTION + table(sorted(map(row, adapters().values()))) + DRIVEN + table(driven)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as a Markdown table."""
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def row(adapter: Adapter) -> tuple[str, ...]:
    """Return an adapter's row."""
    return (
        adapter.label,
        adapter.versions or "–",
        place(adapter),
        adapter.reads or "–",
        adapter.leaves_out or "–",
    )


def place(adapter: Adapter) -> str:
    """Return the first folder in which an adapter searches."""
    roots = adapter.roots(Places(Path("/~"), {}, "linux"))
    places = [f"`{(root.folder / root.patterns[0]).as_posix()[1:]}`" for root in roots[:1]]
    return (
        f"{places[0]} and {len(roots) - 1} more"
        if len(roots) > 1
        else "".join(places) or "files given by path"
    )


if __name__ == "__main__":
    generated.write(PAGE, page())
