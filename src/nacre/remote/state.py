"""What a home keeps of its server: how far both were in step. No texts: paths and contents are hashes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from nacre.platform import json_values, private_files
from nacre.remote.values import digest, name_of
from nacre.settings import Settings

_FILE = "remote.json"


@dataclass(frozen=True, slots=True)
class State:
    """``seen`` are documents as both had them last, by hashes of their paths. ``at`` and ``ledger_at`` are how far the
    server's documents and ledger are known, ``ledger_size`` and ``ledger`` the bytes of the ledger here that the server
    has, and their hash; ``here`` stands for what was here then. Turns up to row ``turn``, whose own id is ``turn_id``,
    were sent."""

    url: str = ""
    space: str = ""
    at: int = 0
    ledger_at: int = 0
    ledger_size: int = 0
    ledger: str = ""
    here: str = ""
    turn: int = 0
    turn_id: str = ""
    succeeded: str | None = None
    failing_since: str | None = None
    message: str = ""
    hint: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)

    def knows(self, path: str) -> str | None:
        """The hash of what a document held last."""
        return self.seen.get(name_of(path))

    def having(self, documents: Mapping[str, bytes | None]) -> State:
        """The same after both agreed on these."""
        seen = dict(self.seen)
        for path, data in documents.items():
            seen.pop(name_of(path), None)
            if data is not None:
                seen[name_of(path)] = digest(data) or ""
        return replace(self, seen=seen)


def read_state(settings: Settings) -> State:
    """What is known; of another server than the one that is set, nothing."""
    url = settings.text("remote.url")
    try:
        found: State = json_values.decode((settings.home / _FILE).read_bytes(), State)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return State(url)
    return found if found.url == url else State(url)


def write_state(settings: Settings, state: State) -> None:
    """Keep it. Raises OSError."""
    private_files.write_file(settings.home / _FILE, json_values.encode(state).decode() + "\n")


def drop_state(settings: Settings) -> None:
    """Forget it."""
    (settings.home / _FILE).unlink(missing_ok=True)
