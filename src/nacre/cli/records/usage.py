"""What memories were used for, and which of them a person should look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.records.memories import memory_record
from nacre.cli.records.values import Record, stamp

if TYPE_CHECKING:
    from nacre.values.review import FeedbackReport
    from nacre.views import Review


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
