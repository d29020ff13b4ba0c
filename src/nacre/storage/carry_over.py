"""State that no file of the vault holds, carried from the database that was into the one that takes its place."""

from __future__ import annotations

from pathlib import Path

from nacre.errors import NacreError
from nacre.storage.sqlite.database import UNREADABLE, Database, damaged
from nacre.storage.traces import Traces

_CARRIED = {
    "carry_model_calls": "what models cost",
    "carry_model_refusals": "which calls the budget stopped",
    "carry_model_health": "which models failed",
    "carry_model_answers": "what models answered",
    "carry_traces": "traces",
}


def carry_over(earlier: Path, database: Database) -> list[str]:
    """Carry what models cost, and traces; returns what the earlier database could not tell any more.

    Both are of the present schema. A row that is there already stays. A table with a row that cannot be read is left
    behind.
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
            except (NacreError, *UNREADABLE):
                lost.append(told)
    finally:
        database.run("detach_earlier")
    return lost
