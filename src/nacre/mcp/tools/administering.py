"""``memory_admin``: how memory is, what is in it, reading what is new, and what a dream would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.dream.requests import DreamPlanRequest
from nacre.ingestion.requests import IngestOptions
from nacre.mcp import arguments
from nacre.mcp.answers import Answer, framed
from nacre.mcp.desk import Desk
from nacre.platform.request import Nothing
from nacre.text.passages import count, harmless, one_line, shorten

if TYPE_CHECKING:
    from nacre.dream.values import DreamPlan
    from nacre.health.database_care import Vacuumed
    from nacre.values.reports import IngestReport
    from nacre.views import Overview

_PROJECTS = 40
_STEPS = 20


def administer(desk: Desk, asked: arguments.Admin) -> Answer:
    """One of five actions."""
    if asked.action == "flush":
        return _flush(desk)
    if asked.action == "vacuum":
        return _vacuum(desk)
    if asked.action == "dream":
        return _dream_plan(desk)
    return _status(desk) if asked.action == "status" else _overview(desk)


def _looked(desk: Desk) -> Overview:
    desk.tell("looking at everything")
    found: Overview = desk.call("overview", Nothing())
    return found


def _status(desk: Desk) -> Answer:
    checks = _looked(desk).checks
    lines = [
        f"- {check.name}: {check.state}; {shorten(check.detail, 300)}" + (f"; {check.hint}" if check.hint else "")
        for check in checks
    ]
    records = [{"name": one.name, "state": one.state, "detail": one.detail, "hint": one.hint} for one in checks]
    return Answer(framed("\n".join(one_line(harmless(line)) for line in lines)), {"checks": records})


def _overview(desk: Desk) -> Answer:
    found = _looked(desk)
    kinds = ", ".join(f"{number} {kind}" for kind, number in found.memories.items() if number)
    told = {check.name: check.detail for check in found.checks if check.name in ("sessions", "review", "vectors")}
    projects = ", ".join(found.projects[:_PROJECTS]) + (", …" if len(found.projects) > _PROJECTS else "")
    number = count(sum(found.memories.values()), "active memory", "active memories")
    text = framed(
        f"{number}: {kinds}. {count(found.links, 'link', 'links')}." if kinds else f"{number}.",
        f"Projects: {harmless(projects)}." if projects else "No project yet.",
        "\n".join(harmless(one_line(f"{name.capitalize()}: {detail}.")) for name, detail in told.items()),
    )
    return Answer(text, {"memories": found.memories, "links": found.links, "projects": list(found.projects)})


def _flush(desk: Desk) -> Answer:
    desk.tell("reading what is new in transcripts")
    report: IngestReport = desk.call("ingest", IngestOptions())
    learned, files = len(report.memories), report.files
    problems = [f"- {shorten(one.message, 200)}" for one in report.problems[:5]]
    text = framed(
        f"Read {count(files, 'transcript', 'transcripts')} with something new; learned "
        f"{count(learned, 'memory', 'memories')}, {report.duplicates:,} known already.",
        "Not read:\n" + "\n".join(harmless(one_line(line)) for line in problems) if problems else "",
    )
    return Answer(text, {"files": files, "memories": list(report.memories), "duplicates": report.duplicates})


def _vacuum(desk: Desk) -> Answer:
    desk.tell("making the database smaller")
    done: Vacuumed = desk.call("db-vacuum", Nothing())
    text = framed(f"The database has {done.after / 1e6:,.1f} MB; before it had {done.before / 1e6:,.1f}.")
    return Answer(text, {"bytes_before": done.before, "bytes_after": done.after})


def _dream_plan(desk: Desk) -> Answer:
    desk.tell("planning a dream")
    plan: DreamPlan = desk.call("dream-plan", DreamPlanRequest())
    if not plan.steps:
        seen = count(plan.seen, "memory", "memories")
        return Answer(framed(f"A dream would do nothing: {seen} looked at."), {"steps": []})
    lines = [
        f"- {step.action}: {shorten(step.subject, 80)} ({len(step.ends or step.links):,}); {step.why}"
        for step in plan.steps
    ]
    told = [harmless(one_line(line)) for line in lines[:_STEPS]]
    dropped = f", and drop {count(plan.dropped, 'link', 'links')} to nothing" if plan.dropped else ""
    text = framed(
        f"A dream would retire {plan.ending:,} of {count(plan.seen, 'memory', 'memories')}{dropped}. "
        "Whoever owns them has it done: nacre dream",
        "\n".join([*told, f"and {len(lines) - _STEPS:,} more"] if len(lines) > _STEPS else told),
    )
    steps = [
        {
            "action": str(one.action), "ends": list(one.ends), "into": one.into, "links": list(one.links),
            "why": one.why,
        }
        for one in plan.steps
    ]  # fmt: skip
    return Answer(text, {"steps": steps[:_STEPS], "ending": plan.ending, "seen": plan.seen})
