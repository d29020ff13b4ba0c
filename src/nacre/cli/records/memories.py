"""Memories, how they hang together, and what became of a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.records.values import Record, split_session, stamp
from nacre.values.memory import Confirmation, Memory
from nacre.values.recall import Evidence
from nacre.vault.document import claim_values

if TYPE_CHECKING:
    from nacre.values.reports import StoreOutcome
    from nacre.views import LinkView, MemoryView, Step


def memory_record(memory: Memory) -> Record:
    """One memory."""
    tool, session_id = split_session(memory.source.session)
    return {
        "id": memory.id,
        "kind": memory.kind.value,
        "subject": memory.subject,
        "content": memory.content,
        "importance": memory.importance,
        "expiry": memory.expiry.value,
        "scope": memory.scope.value,
        "project": memory.project,
        "inbox": memory.inbox,
        "tags": list(memory.tags),
        "created": stamp(memory.created),
        "updated": stamp(memory.updated),
        "speaker": memory.speaker.value,
        "trust": memory.trust.value,
        "confidence": memory.confidence.value,
        "canonical_key": memory.canonical_key,
        "session": memory.source.session,
        "session_id": session_id,
        "tool": tool,
        "turn_ids": list(memory.source.turns),
        "superseded_by": memory.superseded_by,
        "retired": stamp(memory.retired.at) if memory.retired else None,
    }


def evidence_record(evidence: Evidence) -> Record:
    """Where a memory was said."""
    tool, session_id = split_session(evidence.session_id)
    return {
        "session_id": session_id,
        "turn_id": evidence.turn_id,
        "tool": tool,
        "speaker": evidence.speaker.value,
        "time": stamp(evidence.time),
        "excerpt": evidence.excerpt,
    }


def view_record(view: MemoryView, vault: str) -> Record:
    """One memory with its evidence, links and file."""
    memory = view.memory
    return {
        **memory_record(memory),
        "valid": {
            "from": memory.valid.since.isoformat() if memory.valid.since else None,
            "to": memory.valid.until.isoformat() if memory.valid.until else None,
        },
        "author": memory.author,
        "evergreen": memory.evergreen,
        "retired_reason": memory.retired.reason if memory.retired else None,
        "evidence": [evidence_record(item) for item in view.evidence],
        "confirmed": [_confirmation_record(one) for one in memory.confirmed],
        "links": [_link_record(link) for link in view.links],
        "path": f"{vault}/{view.path}" if view.path else None,
        "recall_count": view.usage.recall_count,
        "last_recalled": stamp(view.usage.last_recalled),
        "access_count": view.usage.access_count,
        "maturity": view.maturity.value,
        "quality": round(view.usage.quality, 4),
        "used_together": [
            {
                "id": item.memory.id,
                "subject": item.memory.subject,
                "weight": round(item.weight, 4),
                "sessions": item.sessions,
            }
            for item in view.together
        ],
        "claim": memory.claim and claim_values(memory.claim),
        "extra": memory.extra,
    }


def _confirmation_record(one: Confirmation) -> Record:
    tool, session_id = split_session(one.session)
    return {"at": stamp(one.at), "session_id": session_id, "tool": tool, "turn_ids": list(one.turns)}


def outcome_record(outcome: StoreOutcome, memory: Memory, *, dry_run: bool = False) -> Record:
    """What became of a memory that was to be stored."""
    by = outcome.superseded_by
    return {
        "action": outcome.action,
        "id": outcome.memory_id,
        "reason": outcome.reason,
        "memory": memory_record(memory),
        "supersedes": [{**memory_record(one.memory), "reason": one.reason} for one in outcome.supersedes],
        "newer": {**memory_record(by.memory), "reason": by.reason} if by else None,
        "similar": [memory_record(one) for one in outcome.similar],
        "decided_by": outcome.decided_by or "rules",
        "note": outcome.note,
        "dry_run": dry_run,
    }


def step_record(step: Step) -> Record:
    """One memory in a history."""
    return {
        **memory_record(step.memory),
        "from": step.since.isoformat(),
        "to": step.until.isoformat() if step.until else None,
        "reason": step.reason,
        "asked": step.is_asked,
    }


def _link_record(link: LinkView) -> Record:
    direction = "out" if link.is_outgoing else "in"
    return {
        "rel": link.rel, "id": link.other, "subject": link.subject, "direction": direction, "origin": link.origin,
        "reason": link.reason,
    }  # fmt: skip
