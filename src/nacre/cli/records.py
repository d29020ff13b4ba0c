"""What ``--json`` answers: the field names are a promise.

Sessions and turns carry the ids of their tool; ``session`` is nacre's own, ``<tool>:<id>``. Times are ISO 8601, UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nacre.model.forgetting import ForgetPlan, ForgetReport, Forgotten, StandingRetirement
from nacre.model.memory import Confirmation, Memory
from nacre.model.recall import Evidence, Lane, MemoryHit, RecallResult, TurnHit

if TYPE_CHECKING:
    from nacre.app.committing import Committed
    from nacre.app.exporting import ExportReport
    from nacre.app.history import Step
    from nacre.app.importing import ImportPlan, ImportReport
    from nacre.app.looking import LinkView, MemoryView, SessionView
    from nacre.app.operations import Difference
    from nacre.app.proofs.finding import Proof
    from nacre.app.quickstart import QuickstartResult
    from nacre.app.reviewing import Review
    from nacre.app.syncing import Synced
    from nacre.app.undoing import Undoing
    from nacre.model.operation import Operation
    from nacre.model.reports import Check, IngestPlan, IngestReport, StoreOutcome
    from nacre.model.review import FeedbackReport
    from nacre.model.scrub import ScrubReport
    from nacre.model.session import ToolCall
    from nacre.storage.sessions import StoredSession, StoredTurn

Record = dict[str, Any]


def stamp(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC; milliseconds only where there are any."""
    if moment is None:
        return None
    moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds") + "Z"


def split_session(session: str | None) -> tuple[str | None, str | None]:
    """The tool and its own id of ``<tool>:<id>``."""
    if not session:
        return None, None
    tool, _, native_id = session.partition(":")
    return tool, native_id


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
        "extra": memory.extra,
    }


def _confirmation_record(one: Confirmation) -> Record:
    tool, session_id = split_session(one.session)
    return {"at": stamp(one.at), "session_id": session_id, "tool": tool, "turn_ids": list(one.turns)}


def outcome_record(outcome: StoreOutcome, memory: Memory) -> Record:
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


def session_record(stored: StoredSession) -> Record:
    """One session."""
    session = stored.session
    return {
        "session_id": session.native_id,
        "session": session.id,
        "tool": session.tool,
        "project": stored.project,
        "title": session.title,
        "kind": session.kind.value,
        "parent": session.parent,
        "cwd": session.cwd,
        "branch": session.branch,
        "started": stamp(session.started),
        "ended": stamp(stored.ended),
        "turns": stored.turns,
        "file": stored.file,
    }


def session_view_record(view: SessionView, first: int) -> Record:
    """One session with turns; ``turns`` are the turns here, ``total`` counts all."""
    record = session_record(view.session)
    return {
        **record,
        "total": record["turns"],
        "first": first,
        "turns": [_turn_record(stored) for stored in view.turns],
        "memories": [memory_record(memory) for memory in view.memories],
    }


def _turn_record(stored: StoredTurn) -> Record:
    turn = stored.turn
    return {
        "turn_id": turn.id,
        "seq": stored.seq,
        "speaker": turn.speaker.value,
        "author": turn.author,
        "time": stamp(turn.time),
        "text": turn.text,
        "trust": turn.trust.value,
        "flags": [flag.name.lower() for flag in turn.flags if flag.name],
        "tool_calls": [call_record(call) for call in turn.tool_calls],
    }


def call_record(call: ToolCall) -> Record:
    """One tool call of an agent."""
    return {
        "name": call.name,
        "input": call.input,
        "outcome": call.outcome,
        "action": call.action.value,
        "paths": list(call.paths),
        "error": call.error,
    }


def feedback_record(report: FeedbackReport) -> Record:
    """What a reply or a person said of memories."""
    return {
        "judged": [
            {
                "id": item.memory_id,
                "subject": item.subject,
                "verdict": item.verdict.value,
                "likeness": None if item.likeness is None else round(item.likeness, 4),
                "quality_before": round(item.before, 4),
                "quality": round(item.after, 4),
            }
            for item in report.judged
        ],
        "by": report.by,
        "message": report.note,
    }


def review_record(review: Review) -> Record:
    """One memory that waits for a person."""
    return {
        **memory_record(review.memory),
        "reason": review.entry.reason.value,
        "detail": review.entry.detail,
        "suggested": review.entry.suggested.value,
        "since": stamp(review.entry.since),
        "quality": round(review.usage.quality, 4),
        "recall_count": review.usage.recall_count,
    }


def ingest_record(report: IngestReport) -> Record:
    """What an ingest read and learned."""
    return {
        "files": report.files,
        "sessions": report.sessions,
        "turns": report.turns,
        "memories": len(report.memories),
        "memory_ids": list(report.memories),
        "skipped": report.skipped,
        "unrecognised": report.unrecognised,
        "left_out": report.left_out,
        "duplicates": report.duplicates,
        "corrupt": report.corrupt,
        "excluded": report.excluded,
        "unknown": report.unknown,
        "problems": [{"path": item.path, "message": item.message, "hint": item.hint} for item in report.problems],
        "tools": report.tools,
        "bytes": report.bytes_read,
        "read_seconds": round(report.read_seconds, 3),
        "seconds": round(report.seconds, 3),
        "vectors": {"made": report.vectors_made, "left": report.vectors_left, "note": report.vectors_note},
    }


def plan_record(plan: IngestPlan) -> Record:
    """What an ingest would read."""
    return {
        "dry_run": True,
        "files": plan.files,
        "bytes": plan.bytes,
        "tools": plan.tools,
        "skipped": plan.skipped,
        "unrecognised": plan.unrecognised,
        "excluded": plan.excluded,
        "problems": [{"path": item.path, "message": item.message, "hint": item.hint} for item in plan.problems],
    }


def export_record(report: ExportReport) -> Record:
    """What went out."""
    return {
        "path": report.path,
        "format": report.form,
        "counts": report.counts,
        "left_out": report.left_out,
        "bytes": report.bytes,
    }


def import_record(plan: ImportPlan, report: ImportReport | None, *, dry_run: bool) -> Record:
    """What was found, and what became of it; without a report, what would."""
    actions = Counter(step.action.value for step in plan.steps)
    repeated = actions["duplicate"] + (report.duplicates if report else 0)
    return {
        "source": plan.source.name,
        "path": str(plan.options.path),
        "trusted": plan.options.trust,
        "dry_run": dry_run,
        "kinds": plan.kinds,
        "added": len(report.added) if report else actions["add"],
        "updated": report.updated if report else actions["update"],
        "newly_trusted": report.trusted if report else actions["trust"],
        "known": actions["known"],
        "duplicates": repeated,
        "skipped": [{"where": item.where, "reason": item.reason} for item in plan.skipped],
        "pages": report.pages if report else len(plan.pages),
        "ledger_entries": report.entries if report else len(plan.entries),
        "sessions": report.sessions if report else plan.sessions,
        "turns": report.turns if report else plan.turns,
        "transcripts": [str(path) for path in plan.transcripts],
        "memory_ids": report.added if report else [],
        "ingest": ingest_record(report.ingest) if report and report.ingest else None,
    }


def checks_record(checks: Sequence[Check]) -> Record:
    """What ``health`` and ``doctor`` found."""
    return {
        "ok": not any(check.state == "failure" for check in checks),
        "checks": [
            {"name": check.name, "state": check.state, "detail": check.detail, "hint": check.hint} for check in checks
        ],
    }


def finding_records(proofs: Sequence[Proof]) -> list[Record]:
    """Everything that ``doctor --deep`` found."""
    return [
        {
            "area": proof.area,
            "severity": one.severity,
            "sentence": one.sentence,
            "repair": one.repair,
            "repairable": one.mend is not None,
        }
        for proof in proofs
        for one in proof.findings
    ]


def quickstart_record(result: QuickstartResult) -> Record:
    """What a first look found."""
    return {
        "source": result.source,
        "tools": result.tools,
        "report": ingest_record(result.report),
        "best": [memory_record(memory) for memory in result.best],
        "answers": [{"question": answer.question, **recall_record(answer.result, None)} for answer in result.answers],
    }


def committed_record(done: Committed) -> Record:
    """What a commit took."""
    return {
        "commits": [{"commit": commit, "title": title} for commit, title in done.commits],
        "operations": done.operations,
        "waiting": done.waiting,
        "held": [{"path": item.path, "reason": item.reason} for item in done.held],
        "note": done.note,
    }


def operation_record(operation: Operation, memories: Sequence[str] = ()) -> Record:
    """One operation."""
    return {
        "operation": operation.id,
        "time": stamp(operation.at),
        "action": operation.action,
        "subject": operation.subject,
        "why": operation.why,
        "state": "committed" if operation.committed else "pending",
        "commit": operation.committed,
        "memory_ids": list(memories),
    }


def diff_record(operation: Operation, found: Sequence[Difference]) -> Record:
    """What an operation changed."""
    memories = dict.fromkeys(one.change.memory for one in found if one.change.memory)
    return {**operation_record(operation, tuple(memories)), "changes": [_difference_record(one) for one in found]}


def _difference_record(one: Difference) -> Record:
    before, after = one.change.before, one.change.after
    return {
        "id": one.change.memory or None,
        "subject": one.subject,
        "path_before": before.path if before else None,
        "path": after.path if after else None,
        "fields": [{"name": field.name, "before": field.before, "after": field.after} for field in one.fields],
        "text": [{"mark": line[:1], "line": line[1:]} for line in one.lines],
    }


def undo_record(undoing: Undoing) -> Record:
    """What an undo does, or did."""
    return {
        "undone": operation_record(undoing.operation),
        "undo": undoing.op,
        "steps": [
            {
                "action": step.action.replace(" ", "_"),
                "id": step.change.memory or None,
                "subject": step.subject,
                "path": step.change.latest.path,
                "clashes": list(step.clashes),
            }
            for step in undoing.steps
        ],
    }


def standing_record(rule: StandingRetirement) -> Record:
    """One standing retirement."""
    return {
        "id": rule.id, "subject_pattern": rule.pattern, "match_type": rule.match.value,
        "canonical_key": rule.canonical_key, "reason": rule.reason, "suppressed_contexts": list(rule.contexts),
        "created": stamp(rule.at),
    }  # fmt: skip


def forget_record(plan: ForgetPlan, report: ForgetReport | None) -> Record:
    """What forgetting takes; without a report, what it would take."""
    return {
        "id": report.run if report else None,
        "done": report is not None,
        "how": plan.how,
        "counts": {"memories": len(plan.memories), "turns": plan.turns, "sessions": len(plan.sessions)},
        "forgotten_sessions": [{"session": name, "turns": turns} for name, turns in plan.sessions.items()],
        "cut_sessions": [{"session": name, "turns": turns} for name, turns in plan.parts.items()],
        "forgotten_memories": [memory_record(memory) for memory in plan.memories],
        "untitled_sessions": list(plan.untitled),
        "losing": [memory_record(memory) for memory in plan.losing],
        "released": [memory_record(memory) for memory in plan.released],
        "excerpts": [{"of": one.of, "excerpt": one.text} for one in plan.excerpts],
        "erased": report.is_erased if report else False,
        "unreached": [
            {"what": one.what, "where": one.where, "remedy": one.remedy} for one in (report.unreached if report else ())
        ],
    }


def scrub_record(report: ScrubReport) -> dict[str, Any]:
    """What a scrub found and changed."""
    return {
        "dry_run": report.dry_run, "total": report.total,
        "found": {place: dict(rules) for place, rules in report.found.items()},
        "turns": report.turns, "memories": report.memories, "files": report.files, "commits": report.commits,
        "copies": [str(path) for path in report.copies], "removed": [str(path) for path in report.removed],
        "elsewhere": list(report.elsewhere), "vectors_left": report.vectors_left, "seconds": round(report.seconds, 3),
    }  # fmt: skip


def forgotten_record(run: Forgotten) -> Record:
    """One run of forgetting, as the ledger tells it."""
    return {
        "id": run.run, "at": stamp(run.at), "how": run.how, "before": stamp(run.before),
        "sessions": list(run.sessions), "turns": run.turns, "memory_count": run.memories,
        "allowed_again": run.is_allowed,
    }  # fmt: skip


def sync_record(done: Synced) -> Record:
    """What a sync did, or would do."""
    return {
        "state": done.state.value,
        "remote": done.remote,
        "url": done.url,
        "branch": done.branch,
        "sent": done.sent,
        "received": done.received,
        "notes": [
            {
                "outcome": note.outcome.value, "id": note.memory, "subject": note.subject, "path": note.path,
                "other_path": note.other, "fields": list(note.fields),
            }
            for note in done.notes
        ],
        "held": [{"path": item.path, "reason": item.reason} for item in done.held],
        "left_out": list(done.left_out),
        "problems": list(done.problems),
    }  # fmt: skip
