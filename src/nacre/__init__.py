"""nacre: a long-term memory for AI agents, local and yours.

>>> import nacre
>>> with nacre.open_memory() as memory:  # doctest: +SKIP
...     memory.ingest()
...     memory.recall("which database do we use for billing?").hits
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nacre.app.memory_home import MemoryHome, open_memory
    from nacre.app.proposing import Proposal
    from nacre.errors import NacreError
    from nacre.model.context import ContextBlock
    from nacre.model.deep import DeepResult
    from nacre.model.handing import FlushReport, HandoffView
    from nacre.model.memory import Expiry, Kind, Memory, Scope
    from nacre.model.recall import Filter, MemoryHit, Mode, RecallResult, TurnHit
    from nacre.model.reports import IngestReport, StoreOutcome
    from nacre.model.review import FeedbackReport
    from nacre.model.session import Session, Turn

_EXPORTS = {
    "ContextBlock": "nacre.model.context",
    "DeepResult": "nacre.model.deep",
    "Expiry": "nacre.model.memory",
    "FeedbackReport": "nacre.model.review",
    "Filter": "nacre.model.recall",
    "FlushReport": "nacre.model.handing",
    "HandoffView": "nacre.model.handing",
    "IngestReport": "nacre.model.reports",
    "Kind": "nacre.model.memory",
    "Memory": "nacre.model.memory",
    "MemoryHit": "nacre.model.recall",
    "MemoryHome": "nacre.app.memory_home",
    "Mode": "nacre.model.recall",
    "NacreError": "nacre.errors",
    "Proposal": "nacre.app.proposing",
    "RecallResult": "nacre.model.recall",
    "Scope": "nacre.model.memory",
    "Session": "nacre.model.session",
    "StoreOutcome": "nacre.model.reports",
    "Turn": "nacre.model.session",
    "TurnHit": "nacre.model.recall",
    "open_memory": "nacre.app.memory_home",
}

__all__ = [
    "ContextBlock", "DeepResult", "Expiry", "FeedbackReport", "Filter", "FlushReport", "HandoffView", "IngestReport",
    "Kind", "Memory", "MemoryHit", "MemoryHome", "Mode", "NacreError", "Proposal", "RecallResult", "Scope", "Session",
    "StoreOutcome", "Turn", "TurnHit", "open_memory",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for, so that ``import nacre`` costs nothing."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'nacre' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_EXPORTS[name]), name)
