"""nacre: a local long-term memory for AI agents.

>>> import nacre
>>> with nacre.open_memory() as memory:  # doctest: +SKIP
...     memory.ingest()
...     memory.recall("which database do we use for billing?").hits
"""

from __future__ import annotations

from nacre.base import late_modules

late_modules.install()

TYPE_CHECKING = (
    False  # type checkers treat this as True; importing typing takes longer than this module
)
if TYPE_CHECKING:
    from typing import Any

    from nacre.api import MemoryHome, call, open_memory
    from nacre.errors import NacreError
    from nacre.values.context import ContextBlock
    from nacre.values.memory import Expiry, Kind, Memory, Scope
    from nacre.values.recall import DeepResult, Filter, MemoryHit, Mode, RecallResult, TurnHit
    from nacre.values.reports import IngestReport, StoreOutcome
    from nacre.values.review import FeedbackReport
    from nacre.values.session import FlushReport, HandoffView, Session, Turn

__version__ = "0.1.0"

_MODULES = {
    "ContextBlock": "nacre.values.context",
    "DeepResult": "nacre.values.recall",
    "Expiry": "nacre.values.memory",
    "FeedbackReport": "nacre.values.review",
    "Filter": "nacre.values.recall",
    "FlushReport": "nacre.values.session",
    "HandoffView": "nacre.values.session",
    "IngestReport": "nacre.values.reports",
    "Kind": "nacre.values.memory",
    "Memory": "nacre.values.memory",
    "MemoryHit": "nacre.values.recall",
    "MemoryHome": "nacre.api",
    "Mode": "nacre.values.recall",
    "NacreError": "nacre.errors",
    "RecallResult": "nacre.values.recall",
    "Scope": "nacre.values.memory",
    "Session": "nacre.values.session",
    "StoreOutcome": "nacre.values.reports",
    "Turn": "nacre.values.session",
    "TurnHit": "nacre.values.recall",
    "call": "nacre.api",
    "open_memory": "nacre.api",
}
"""The module of each public name."""

__all__ = [
    "ContextBlock",
    "DeepResult",
    "Expiry",
    "FeedbackReport",
    "Filter",
    "FlushReport",
    "HandoffView",
    "IngestReport",
    "Kind",
    "Memory",
    "MemoryHit",
    "MemoryHome",
    "Mode",
    "NacreError",
    "RecallResult",
    "Scope",
    "Session",
    "StoreOutcome",
    "Turn",
    "TurnHit",
    "call",
    "open_memory",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'nacre' has no attribute {name!r}")
    from nacre.base.lazy import load  # noqa: PLC0415 - every hook imports this package

    return load(f"{_MODULES[name]}:{name}")
