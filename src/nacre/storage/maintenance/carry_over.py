"""State that no file of the vault holds, carried from the database that was into the one that takes its place."""

from __future__ import annotations

from pathlib import Path

import apsw

from nacre.errors import NacreError
from nacre.storage.candidates import Candidates
from nacre.storage.database import UNREADABLE
from nacre.storage.sqlite.database import FileDatabase, damaged
from nacre.storage.traces import Traces

_CARRIED = {
    "carry_model_calls": "what models cost",
    "carry_model_refusals": "which calls the budget stopped",
    "carry_model_health": "which models failed",
    "carry_model_answers": "what models answered",
    "carry_traces": "traces",
    "carry_candidates": "candidates",
    "carry_review_queue": "what waited for review",
    "carry_sessions": "what was learned from sessions",
    "carry_usage_values": "what was held against later sessions",
    "carry_code_projects": "which code was read",
    "carry_code_files": "files of code",
    "carry_code_symbols": "symbols of code",
    "carry_code_edges": "what code calls",
    "carry_code_outside": "what code imports",
}


_OF_READING = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ)
_OF_WRITING = (apsw.FullError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, apsw.BusyError)


def carry_over(earlier: Path, database: FileDatabase) -> list[str]:
    """Carry what models cost, traces, candidates, reviews, what waits for a writer, and code; returns what the earlier
    database could not tell any more.

    Both are of the present schema. A row that is there already stays. A table with a row that cannot be read is left
    behind. Raises StoreUnusable, StoreBusy, Unavailable where ``database`` cannot be written to.
    """
    lost = []
    database.run("attach_earlier", path=str(earlier))
    try:
        for name, told in _CARRIED.items():
            try:
                with database.transaction():
                    database.run(name)
                    if not database.is_readable(name.removeprefix("carry_")):
                        raise damaged(earlier)
                    if name == "carry_traces":
                        Traces(database).latest(limit=-1)
                    if name == "carry_candidates":
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
