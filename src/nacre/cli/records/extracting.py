"""What extraction would make of sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.records.reading import tokens_record
from nacre.cli.records.values import Record

if TYPE_CHECKING:
    from nacre.extraction.propose import Proposal
    from nacre.values.candidate import Candidate


def proposals_record(found: Sequence[Proposal]) -> Record:
    """Every session with the memories that would be stored."""
    return {"sessions": [_session_record(one) for one in found], "memories": sum(len(one.candidates) for one in found)}


def _session_record(found: Proposal) -> Record:
    asked = found.asked
    told: Record | None = None
    if asked:
        told = {
            "model": asked.model, "whole": asked.is_whole, "parts": asked.parts, "by_rules": asked.by_rules,
            "calls": asked.calls, "tokens": tokens_record(asked.tokens), "proposed": asked.proposed,
            "repeated": asked.repeated, "dropped": dict(asked.dropped), "problem": asked.problem, "hint": asked.hint,
        }  # fmt: skip
    session = found.session
    return {
        "session": session.id, "session_id": session.native_id, "tool": session.tool, "extraction": told,
        "memories": [_candidate_record(one) for one in found.candidates],
    }  # fmt: skip


def _candidate_record(one: Candidate) -> Record:
    return {
        "kind": one.kind.value, "subject": one.subject, "content": one.content, "importance": one.importance,
        "expiry": one.expiry.value, "tags": list(one.tags), "speaker": one.speaker.value, "trust": one.trust.value,
        "confidence": one.confidence.value, "confidence_score": one.confidence_score,
        "canonical_key": one.canonical_key, "turn_ids": list(one.turns),
    }  # fmt: skip
