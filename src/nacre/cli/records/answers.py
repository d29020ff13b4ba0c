"""What recall and searches answer."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.cli.records.memories import evidence_record, memory_record
from nacre.cli.records.values import Record, stamp
from nacre.values.memory import Memory
from nacre.values.recall import Lane, MemoryHit, RecallResult, TurnHit


def memory_hit_record(hit: MemoryHit) -> Record:
    """One memory that answers."""
    return {
        **memory_record(hit.memory),
        "score": hit.score,
        "evidence": [evidence_record(item) for item in hit.evidence],
        "outdated_by": list(hit.outdated_by),
        "may_replace": [_older_record(memory) for memory in hit.may_replace],
        "components": hit.components,
    }


def _older_record(memory: Memory) -> Record:
    return {
        "id": memory.id, "subject": memory.subject, "content": memory.content, "trust": memory.trust.value,
        "created": stamp(memory.created),
    }  # fmt: skip


def turn_hit_record(hit: TurnHit) -> Record:
    """One turn that answers."""
    return {
        "session_id": hit.session.native_id,
        "turn_id": hit.turn.id,
        "tool": hit.session.tool,
        "project": hit.project,
        "score": hit.score,
        "excerpt": hit.excerpt,
        "speaker": hit.turn.speaker.value,
        "trust": hit.turn.trust.value,
        "author": hit.turn.author,
        "time": stamp(hit.turn.time),
        "title": hit.session.title,
        "components": hit.components,
    }


def lane_records(lanes: Sequence[Lane]) -> list[Record]:
    """What each lane did."""
    return [{"name": lane.name, "state": lane.state.value, "note": lane.note} for lane in lanes]


def recall_record(result: RecallResult, message: str | None) -> Record:
    """The answer of ``recall``."""
    return {
        "query": result.query,
        "hits": [memory_hit_record(hit) for hit in result.hits],
        "turns": [turn_hit_record(hit) for hit in result.turns],
        "lanes": lane_records(result.lanes),
        "abstained": result.abstained,
        "message": message,
        "truncated": result.truncated,
        "since": stamp(result.since),
        "until": stamp(result.until),
        "around": stamp(result.around),
        "took_ms": round(result.took_ms, 2),
    }


def search_record(result: RecallResult, message: str | None) -> Record:
    """The answer of ``sessions search``."""
    return {
        "query": result.query,
        "hits": [turn_hit_record(hit) for hit in result.turns],
        "lanes": lane_records(result.lanes),
        "message": message,
        "more": result.truncated,
        "took_ms": round(result.took_ms, 2),
    }
