"""What was looked at, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.records.values import Record

if TYPE_CHECKING:
    from nacre.health.proofs.finding import Proof
    from nacre.values.reports import Check


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
