"""Tombstones and standing retirements, as the ledger tells them, and what forgetting has left to do."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from nacre.platform.ids import from_ms, to_ms
from nacre.storage.database import Database, in_transaction
from nacre.values.forgetting import Match, StandingRetirement, Tombstone, TombstoneKind


class Tombstones:
    """Reads and writes ``tombstones``, ``standing_retirements`` and ``forgetting_values``."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def all(self) -> list[Tombstone]:
        """Every tombstone that holds."""
        found = self._db.all("list_tombstones")
        return [Tombstone(TombstoneKind(kind), value, run, owner) for kind, value, run, owner in found]

    def standing(self) -> list[StandingRetirement]:
        """Every standing retirement, the oldest first."""
        found = []
        for rule, pattern, match, key, reason, contexts, at in self._db.all("list_standing_retirements"):
            moment = from_ms(at)
            if moment:
                contexts = tuple(json.loads(contexts))
                found.append(StandingRetirement(rule, pattern, Match(match), moment, key, reason, contexts))
        return found

    @in_transaction
    def add(self, tombstones: Iterable[Tombstone]) -> None:
        """Let tombstones hold from this transaction on."""
        self._db.run_many("insert_tombstone", [{**_row(one), "owner": one.owner} for one in tombstones])
        self.set("edition", str(int(self.value("edition") or 0) + 1))

    def add_standing(self, rules: Iterable[StandingRetirement]) -> None:
        """Let standing retirements hold from this transaction on."""
        rows: list[dict[str, object]] = [
            {"id": one.id, "pattern": one.pattern, "match": one.match.value, "canonical_key": one.canonical_key,
             "reason": one.reason, "contexts": json.dumps(one.contexts), "at": to_ms(one.at)}
            for one in rules
        ]  # fmt: skip
        self._db.run_many("insert_standing_retirement", rows)

    @in_transaction
    def change(self, more: Collection[Tombstone], fewer: Collection[Tombstone]) -> None:
        """Let some hold, and others no longer."""
        self._db.run_many("delete_tombstone", [_row(one) for one in fewer])
        if more or fewer:
            self.add(more)

    @in_transaction
    def replace_standing(self, rules: Sequence[StandingRetirement]) -> None:
        """All standing retirements anew."""
        self._db.run("clear_standing_retirements")
        self.add_standing(rules)

    def edition(self) -> str:
        """Changes whenever tombstones do; empty as long as there was none."""
        return self.value("edition") or ""

    def due(self) -> set[str]:
        """The runs that are not carried out yet."""
        return set(json.loads(self.value("due") or "[]"))

    def set_due(self, runs: Iterable[str]) -> None:
        """What is left to carry out."""
        self.set("due", json.dumps(sorted(runs)))

    def arrived(self) -> list[str]:
        """Ids of memories that were here when a standing retirement for them arrived."""
        return list(json.loads(self.value("arrived") or "[]"))

    def set_arrived(self, memories: Iterable[str]) -> None:
        """Which of them are still to be looked after."""
        self.set("arrived", json.dumps(sorted(memories)))

    def value(self, key: str) -> str | None:
        """A value: ``ledger`` (its time and size when read), ``told``, ``due``, ``arrived``, ``erase``, ``edition``."""
        row = self._db.one("get_forgetting_value", key=key)
        return row[0] if row else None

    def set(self, key: str, value: str) -> None:
        """Set a value."""
        self._db.run("set_forgetting_value", key=key, value=value)


def _row(one: Tombstone) -> dict[str, object]:
    return {"kind": one.kind.value, "value": one.value, "run": one.run}
