"""What a dream went through, as steps of its trace: counts, and the ids of the memories that it concerned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from nacre.dream import values
from nacre.dream.values import DreamAction, DreamPlan, DreamReport
from nacre.spending.stages import MOST_REFS, counted
from nacre.values.trace import Step

_REASONS = 10


def steps_of(report: DreamReport) -> Iterator[Step]:
    """The plan, what a second look did not bear out, and what was done."""
    plan = report.plan
    yield Step("snapshot loaded", output=counted({"memories": plan.seen, "brought back": plan.brought_back}))
    yield _planned(plan)
    yield _validated(plan)
    if report.is_first:
        yield Step("mutations applied", output="none: a home's first dream only plans", status="skipped")
        return
    left = {step for step, _ in report.left}
    done = [step for step in plan.steps if step not in left] if report.operation else []
    yield Step(
        "mutations applied", output=_counts(done) or "none", refs=_refs(done), status="done" if done else "skipped",
        more={"operation": report.operation, **_reasons(report.left)} if report.operation else _reasons(report.left),
    )  # fmt: skip
    pages = sum(step.action is DreamAction.PAGE for step in done)
    if pages:
        yield Step("pages rewritten", output=counted({"pages": pages}))
    if report.diary:
        yield Step("diary written", output=report.diary)


def outcome_of(report: DreamReport) -> str:
    """How it ended, in a line."""
    if report.is_first and report.plan.steps:
        return f"planned only: {_counts(report.plan.steps)}"
    return _counts(report.plan.steps) if report.operation else "nothing to do"


def _planned(plan: DreamPlan) -> Step:
    more = {"put off": len(plan.put_off), "unasked clusters": plan.unasked}
    return Step(
        "plan generated", output=_counts(plan.steps) or "nothing", refs=_refs(plan.steps),
        more={name: count for name, count in more.items() if count} | ({"note": plan.note} if plan.note else {}),
    )  # fmt: skip


def _validated(plan: DreamPlan) -> Step:
    refused = [step for step, _ in plan.refused]
    told = f"refused: {len(refused)}" if refused else "nothing refused"
    return Step("plan validated", output=told, refs=_refs(refused), more=_reasons(plan.refused))


def _counts(steps: Iterable[values.Step]) -> str:
    return counted(Counter(step.action.value for step in steps))


def _refs(steps: Iterable[values.Step]) -> tuple[str, ...]:
    named = (one for step in steps for one in (*step.ends, step.into) if one)
    return tuple(dict.fromkeys(named))[:MOST_REFS]


def _reasons(left: Iterable[tuple[values.Step, str]]) -> dict[str, int]:
    """Why steps were not done, the most frequent reasons first."""
    return dict(Counter(why for _, why in left).most_common(_REASONS))
