"""What language models are asked for."""

from __future__ import annotations

from enum import StrEnum


class Task(StrEnum):
    """What a model is asked for; each may have a model and a budget of its own."""

    EXTRACTION = "extraction"
    DEDUP = "dedup"
    CLAIMS = "claims"
    CONTRADICTION = "contradiction"
    TODOS = "todos"
    RECALL = "recall"
    MERGE = "merge"
    DREAM = "dream"
    HANDOFF = "handoff"
    PROFILE = "profile"
    CHAT = "chat"
    """Answers in conversations of the gateway."""
    TEST = "test"
    """Whether a model answers at all."""
