"""The portable file: what its lines are called. Who writes and who reads it share these names.

The first line is the header, the last one the trailer. Between them one JSON object a line, each with its ``type``.
"""

from __future__ import annotations

FORMAT = "nacre-export"
VERSION = 1

HEADER = "header"
PAGE = "page"
MEMORY = "memory"
LINK = "link"
LEDGER_ENTRY = "ledger"
SESSION = "session"
TURN = "turn"
TRAILER = "trailer"
