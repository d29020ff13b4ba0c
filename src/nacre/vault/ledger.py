"""``ledger.jsonl``: what a file cannot say. Append-only; one JSON object a line, the operation's id first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nacre.vault.document import stamp


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation: its UUIDv7, when, what (``retire``, ``ingest`` …), and its particulars."""

    op: str
    at: datetime
    action: str
    details: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """The entry as its line in the ledger."""
        values = {"op": self.op, "at": stamp(self.at), "action": self.action, **self.details}
        return json.dumps(values, ensure_ascii=False)


def read(data: bytes) -> Iterator[Entry]:
    """The entries of a ledger; a line that is not one (a torn end, a merge marker) is passed over."""
    for line in data.decode("utf-8", errors="replace").splitlines():
        try:
            values = json.loads(line)
            yield Entry(values.pop("op"), datetime.fromisoformat(values.pop("at")), values.pop("action"), values)
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
