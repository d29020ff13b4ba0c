"""What was retired for good, forgotten or scrubbed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nacre.cli.records.memories import memory_record
from nacre.cli.records.values import Record, stamp
from nacre.values.forgetting import ForgetPlan, ForgetReport, Forgotten, StandingRetirement

if TYPE_CHECKING:
    from nacre.values.scrub import ScrubReport


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


def forgotten_record(run: Forgotten) -> Record:
    """One run of forgetting, as the ledger tells it."""
    return {
        "id": run.run, "at": stamp(run.at), "how": run.how, "before": stamp(run.before),
        "sessions": list(run.sessions), "turns": run.turns, "memory_count": run.memories,
        "allowed_again": run.is_allowed,
    }  # fmt: skip


def scrub_record(report: ScrubReport) -> dict[str, Any]:
    """What a scrub found and changed."""
    return {
        "dry_run": report.dry_run, "total": report.total,
        "found": {place: dict(rules) for place, rules in report.found.items()},
        "turns": report.turns, "memories": report.memories, "files": report.files, "commits": report.commits,
        "copies": [str(path) for path in report.copies], "removed": [str(path) for path in report.removed],
        "elsewhere": list(report.elsewhere), "vectors_left": report.vectors_left, "seconds": round(report.seconds, 3),
    }  # fmt: skip
