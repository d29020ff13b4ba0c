"""Memories that nobody needs to have: made-up notes, laid into a vault as files, as a person's are."""

from __future__ import annotations

from pathlib import Path

_PLACES = ("harbour", "quarry", "orchard", "foundry", "granary", "chapel", "mill", "observatory", "brewery", "tannery")
_THINGS = ("ledger", "gateway", "scheduler", "archive", "importer", "dashboard", "mailer", "indexer", "proxy", "cache")


def write_notes(home: Path, memories: int) -> None:
    """Lay so many facts into the vault of ``home``; the next look for edits by hand takes them in."""
    kept = home / "vault" / "global" / "fact"
    kept.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number in range(memories):
        (kept / f"note-{number}.md").write_text(f"# {subject(number)}\n\n{statement(number)}\n")


def subject(number: int) -> str:
    """What the note of this number is about."""
    return f"The {_PLACES[number % 10]} {_THINGS[number // 10 % 10]} {number // 100}"


def statement(number: int) -> str:
    """What the note of this number says."""
    return f"{subject(number)} listens on port {20_000 + number} and is restarted by team {number % 7}."
