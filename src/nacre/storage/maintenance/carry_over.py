"""State that no file of the vault holds, carried from the database that was into the one that takes its place."""

from __future__ import annotations

from pathlib import Path

import apsw

from nacre.errors import NacreError
from nacre.storage.candidates import Candidates
from nacre.storage.database import UNREADABLE
from nacre.storage.sqlite.database import FileDatabase, damaged
from nacre.storage.traces import Traces

_OURS = "{0} IN (SELECT id FROM main.memories)"

CARRIED = {
    "model_calls": ("what models cost", "true"),
    "model_refusals": ("which calls the budget stopped", "true"),
    "model_health": ("which models failed", "true"),
    "model_answers": ("what models answered", "true"),
    "traces": ("traces", "json_valid(steps)"),
    "candidates": ("candidates", "true"),
    "usage": ("how memories were used", _OURS.format("memory")),
    "uses": ("when memories were used", _OURS.format("memory")),
    "usage_values": ("how far use was counted", "true"),
    "co_recall": ("which memories were used together", f"{_OURS.format('a')} AND {_OURS.format('b')}"),
    "conflicts": ("judged contradictions", f"{_OURS.format('older')} AND {_OURS.format('newer')}"),
    "claims_waiting": ("which claims were pending", _OURS.format("memory")),
    "claimless": ("which memories claim nothing", _OURS.format("memory")),
    "unsettled": ("which memories were to be compared", _OURS.format("memory")),
    "stale_memories": ("which memories were stale", _OURS.format("memory")),
    "review_queue": ("what waited for review", "carry_review_queue"),
    "sessions": ("what was learned from sessions", "carry_sessions"),
    "code_projects": ("which code was read", "true"),
    "code_files": ("files of code", "true"),
    "code_symbols": ("symbols of code", "true"),
    "code_edges": ("what code calls", "true"),
    "code_outside": ("what code imports", "true"),
    "ingest_log": ("when transcripts were read", "true"),
}
"""Table → its contents in words, and the condition for a row to be carried, or the statement that carries them."""

DERIVED = frozenset(
    "archive_segments archived claims code_mentions code_mentions_read confirmations embedding file_uses "
    "files forgetting_values links memories memory_names memory_vectors mentions passage_bits passages "
    "project_dependencies project_keys projects session_files standing_retirements "
    "tags tombstones transcript_cursors turn_passages turns unreadable_files vault_files".split()
)
"""Tables that are read anew from the vault, the ledger, transcripts and the archive."""

DISCARDED = frozenset(
    "git_state intents ledger_end operations other_embedding other_memory_vectors other_passage_bits other_passages "
    "other_turn_passages touched".split()
)
"""Tables that say something of one database file, of a model that is not in use, or what git tells again."""

_OF_READING = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ)
_OF_WRITING = (apsw.FullError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, apsw.BusyError)


def carry_over(earlier: Path, database: FileDatabase) -> list[str]:
    """Carry the rows of ``CARRIED``; returns, in words, the tables that the earlier database could not tell any more.

    Both are of the present schema. A table with a row that cannot be read is left behind. Raises StoreUnusable,
    StoreBusy, Unavailable where ``database`` cannot be written to.
    """
    lost = []
    database.run("attach_earlier", path=str(earlier))
    try:
        for table, (told, condition) in CARRIED.items():
            try:
                with database.transaction():
                    if condition.startswith("carry_"):
                        database.run(condition)
                    else:  # with a condition: without one SQLite would copy records of whatever types
                        copied = f"SELECT * FROM earlier.{table} WHERE {condition}"  # noqa: S608 - names from above
                        database.many(f"INSERT OR REPLACE INTO main.{table} {copied}", [()])
                    if not database.is_readable(table):
                        raise damaged(earlier)
                    if table == "traces":
                        Traces(database).latest(limit=-1)
                    if table == "candidates":
                        Candidates(database).waiting()
            except (NacreError, *UNREADABLE) as error:
                if not _is_of_reading(error):
                    raise
                lost.append(told)
    finally:
        database.run("detach_earlier")
    return lost


def _is_of_reading(error: Exception) -> bool:
    """Whether an error says that rows cannot be read, and not that they cannot be written."""
    cause = error.__cause__
    if isinstance(cause, apsw.IOError):
        return getattr(cause, "extendedresult", 0) in _OF_READING
    return not isinstance(cause, _OF_WRITING)
