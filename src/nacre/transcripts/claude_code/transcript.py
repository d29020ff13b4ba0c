"""Claude Code: ``~/.claude/projects/<slug>/<session>.jsonl``, sub-agents beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.claude_code.reader import Reader
from nacre.transcripts.claude_code.records import IGNORED
from nacre.transcripts.claude_code.sessions import TOOL
from nacre.values.session import Session, Turn


def _sniff(head: Head) -> bool:
    if head.path.suffix == ".json":
        return '"loglines"' in head.text[:2000]
    for record in head.objects:
        kind = record.get("type")
        if kind == "summary" and "leafUuid" in record:
            return True
        if kind == "file-history-snapshot" and "snapshot" in record:
            return True
        if "sessionId" in record and ("uuid" in record or kind in IGNORED or kind in ("queue-operation", "pr-link")):
            return True
    return False


def _roots(places: Places) -> Sequence[Root]:
    configured = places.environ.get("CLAUDE_CONFIG_DIR")
    folders = [places.home / ".claude", places.home / ".config" / "claude"]
    if configured:
        folders = [places.home.joinpath(part) for part in configured.split(",") if part]
    return [Root(folder / "projects", ("**/*.jsonl",)) for folder in folders]


def parse(source: Source) -> Iterator[Session | Turn]:
    """Parse one transcript; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return Reader(source).read()


ADAPTER = Adapter(
    tool=TOOL,
    label="Claude Code",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    resume=("claude", "--resume", "{id}"),
    versions="2.0.64–2.1.330",
    reads=(
        "what was said",
        "commands",
        "tool calls with outcome, files and errors",
        "folder, branch and version",
        "model",
        "tokens",
        "title",
        "sub-agents",
        "summaries",
        "interruptions",
        "pull requests",
    ),
    leaves_out=("thinking", "pictures", "progress", "file history", "copies of requests"),
    environment=("CLAUDE_CONFIG_DIR",),
)
