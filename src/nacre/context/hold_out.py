"""The hold-out: a share of sessions, drawn by a hash of their names, that are told nothing unasked.

Comparing them with the others shows what telling does (:mod:`nacre.usefulness`). ``hold-out.json`` in the home holds
the salt of the hash and when which share was in force, so that it can be worked out later which session was which.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nacre.context.session_state import read_state
from nacre.errors import StoreUnusable
from nacre.home.home import Home
from nacre.platform import private_files
from nacre.platform.ids import keyed_hash, to_ms
from nacre.settings import Settings

SHARE = "usefulness.hold_out"
_FILE = "hold-out.json"
_SALT_BYTES = 16
_MOST_BYTES = 200_000
_HASHES = 2.0**64


@dataclass(frozen=True, slots=True)
class Draw:
    """Which sessions are held out: ``shares`` says from which time (epoch milliseconds) on which share was in force."""

    salt: str = ""
    shares: tuple[tuple[int, float], ...] = ()

    def share_at(self, at: int) -> float:
        """The share that was in force at a time."""
        return next((share for since, share in reversed(self.shares) if since <= at), 0.0)

    def is_steady(self, begin: int, end: int) -> bool:
        """Whether one share was in force all that time, and not none."""
        return self.share_at(begin) > 0 and not any(begin < since <= end for since, _ in self.shares)

    def takes(self, session: str, began: int) -> bool:
        """Whether a session that began then (epoch milliseconds) is held out; ``session`` is ``<tool>:<id>``."""
        share = self.share_at(began)
        return share > 0 and int(keyed_hash(bytes.fromhex(self.salt), session), 16) < share * _HASHES


def takes(home: Home, session: str) -> bool:
    """Whether a session is held out, where the setting is not 0; one that began before that is told as it was."""
    began = read_state(home.settings.home, session).started or to_ms(home.clock()) or 0
    return drawn(home.settings.home).takes(session, began)


def drawn(home: Path) -> Draw:
    """What is noted in a home; a draw that takes nobody where nothing is, or where it cannot be read."""
    try:
        with os.fdopen(private_files.open_file(home / _FILE, os.O_RDONLY), "rb") as file:
            kept = json.loads(file.read(_MOST_BYTES))
        bytes.fromhex(kept["salt"])
        return Draw(kept["salt"], tuple((int(since), float(share)) for since, share in kept["shares"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return Draw()


def note_share(settings: Settings, now_ms: int, random: Callable[[int], bytes] = os.urandom) -> None:
    """Note which share is in force from now on, where it is another than before. Raises StoreUnusable."""
    known, share = drawn(settings.home), settings.number(SHARE)
    if share == known.share_at(now_ms):
        return
    noted = {"salt": known.salt or random(_SALT_BYTES).hex(), "shares": [*known.shares, (now_ms, share)]}
    try:
        private_files.make_folder(settings.home)
        private_files.write_file(settings.home / _FILE, json.dumps(noted))
    except OSError as error:
        raise StoreUnusable(f"cannot note the hold-out: {error.strerror}", hint="is the disk full?") from error
