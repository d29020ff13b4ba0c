"""The diary of dreams: what each one did, in words, in the vault (``dreams/<day>.md``)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from nacre.dream.values import SIGNALS, DreamAction, DreamReport, Promotion, Step
from nacre.platform.days import shown, shown_day
from nacre.text.passages import shorten
from nacre.values.memory import Memory

FOLDER = "dreams"
_HEADINGS = {
    DreamAction.MERGE: "Said more than once, now one memory",
    DreamAction.SUPERSEDE: "Ended by what was said later",
    DreamAction.EXPIRE: "Meant for a while, and over",
    DreamAction.FORGET: "Forgotten: never asked for",
    DreamAction.SHELVE: "Retired from the inbox",
    DreamAction.FILE: "Filed from the inbox",
    DreamAction.PAGE: "Pages",
    DreamAction.LINK: "Belongs together, and is linked",
    DreamAction.JOIN: "Projects that are one",
    DreamAction.UNLINK: "Links that led nowhere, and are dropped",
}
_LINE = 160


def path_of(now: datetime) -> str:
    """Where the diary of a day lies."""
    return f"{FOLDER}/{shown_day(now)}.md"


def written(report: DreamReport, memories: Mapping[str, Memory], now: datetime) -> str:
    """One dream as a section of its day's diary."""
    plan = report.plan
    ending = plan.ending - sum(len(step.ends) for step, _ in report.left)
    said = f"{plan.seen:,} memories seen, {ending:,} of them ended; {report.operation}."
    lines = [f"## {shown(now, '%H:%M')}", "", said]
    not_done = {id(step) for step, _ in report.left}
    for action, heading in _HEADINGS.items():
        steps = [step for step in plan.steps if step.action is action and id(step) not in not_done]
        if steps:
            lines += ["", f"### {heading}", "", *(line for step in steps for line in _step(step, memories))]
    if plan.put_off:
        lines += [
            "",
            f"{len(plan.put_off):,} more steps wait for another night: one ends {plan.most:,} memories at most.",
        ]
    if plan.refused:
        lines += ["", f"{len(plan.refused):,} proposals of the writer's were not followed, and wait in `nacre review`."]
    if plan.promotions:
        lines += ["", "### Projects with new sessions", "", *map(_promotion, plan.promotions)]
    if report.left:
        lines += ["", *(f"- left: {_about(step, memories)}: {why}" for step, why in report.left)]
    return "\n".join(lines) + "\n"


def _step(step: Step, memories: Mapping[str, Memory]) -> list[str]:
    if step.action is DreamAction.FILE:
        return [f"- {_named(step.into or '', memories)}: into {step.project}: {step.why}"]
    if step.action is DreamAction.JOIN:
        return [f"- {step.subject} into {step.project}: {step.why}"]
    if step.action is DreamAction.PAGE:
        return [f"- {step.project or step.subject}: {step.why}"]
    if step.action is DreamAction.LINK:
        to = "; ".join(_named(one, memories) for one in step.links)
        return [f"- {_named(step.into or '', memories)}", f"  - {step.words}: {to}{_whose(step)}"]
    if step.action is DreamAction.MERGE:
        goes = [f"  - goes: {_named(one, memories)}" for one in step.ends]
        if not step.words:
            return [f"- stays: {_named(step.into or '', memories)}{_whose(step)}", *goes]
        was = f"  - said before: {_named(step.into or '', memories)}"
        return [f"- says now: {shorten(' '.join(step.words.split()), _LINE)}{_whose(step)}", was, *goes]
    if step.action is DreamAction.SUPERSEDE:
        holds = f"- holds: {_named(step.into or '', memories)}{_whose(step)}"
        return [holds, *(f"  - over: {_named(one, memories)}" for one in step.ends)]
    return [f"- {_named(one, memories)}: {step.why}" for one in step.ends or (step.into or "",)]


def _about(step: Step, memories: Mapping[str, Memory]) -> str:
    named = next((one for one in (*step.ends, step.into) if one), None)
    return _named(named, memories) if named else step.subject


def _promotion(found: Promotion) -> str:
    signals = ", ".join(f"{name} {getattr(found, name):.2f}" for name in SIGNALS)
    outcome = "; ".join(found.failed) or "worth its page"
    return f"- {found.project}: score {found.score:.2f} ({signals}); sessions: {found.sessions}; {outcome}"


def _whose(step: Step) -> str:
    return f"; {step.by}: {step.why}" if step.by else ""


def _named(memory_id: str, memories: Mapping[str, Memory]) -> str:
    memory = memories.get(memory_id)
    said = shorten(" ".join(memory.content.split()), _LINE) if memory else "?"
    return f"{said} ({memory_id[-8:]})"
