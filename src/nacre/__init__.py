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
    from nacre.learn.learn import Proposal
    from nacre.values.context import ContextBlock
    from nacre.values.memory import Expiry, Kind, Memory, Scope
    from nacre.values.recall import DeepResult, Filter, MemoryHit, Mode, RecallResult, TurnHit
    from nacre.values.reports import IngestReport, StoreOutcome
    from nacre.values.review import FeedbackReport
    from nacre.values.session import FlushReport, HandoffView, Session, Turn

__version__ = "0.1.0"

_EXPORTS = {
    name: module
    for module, names in {
        "nacre.api": (
            "MemoryHome",
            "call",
            "open_memory",
        ),
        "nacre.errors": ("NacreError",),
        "nacre.learn.learn": ("Proposal",),
        "nacre.values.context": ("ContextBlock",),
        "nacre.values.memory": (
            "Expiry",
            "Kind",
            "Memory",
            "Scope",
        ),
        "nacre.values.recall": (
            "DeepResult",
            "Filter",
            "MemoryHit",
            "Mode",
            "RecallResult",
            "TurnHit",
        ),
        "nacre.values.reports": (
            "IngestReport",
            "StoreOutcome",
        ),
        "nacre.values.review": ("FeedbackReport",),
        "nacre.values.session": (
            "FlushReport",
            "HandoffView",
            "Session",
            "Turn",
        ),
    }.items()
    for name in names
}

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
    "Proposal",
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
    """Load a public name on first use, so that ``import nacre`` is fast."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'nacre' has no attribute {name!r}")
    from nacre.base.lazy import load  # noqa: PLC0415 - every hook imports this package

    return load(f"{_EXPORTS[name]}:{name}")
