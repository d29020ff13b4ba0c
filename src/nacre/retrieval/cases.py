"""Cases: a trace of every question that is answered, and of what became of the answer.

What was shown is kept by its ids alone, so that nothing is told twice: who looks sees it as it is then, and what is
forgotten is gone here, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta

from nacre.home.home import Home
from nacre.memories.usage import session_name
from nacre.retrieval.requests import DeepQuery
from nacre.spending.spool import note_trace
from nacre.text.passages import count, shorten
from nacre.values.deep_recall import DeepResult
from nacre.values.memory import Scope
from nacre.values.recall import Filter, LaneState, RecallQuery, RecallResult
from nacre.values.review import Judged, Verdict
from nacre.values.trace import NARROWED, NOT_SURE, NOTHING_FOUND, PROJECTS, Step, Trace, TraceKind

_QUESTION_CHARACTERS = 400
_REMEMBERED = timedelta(days=30)
_STATUS = {LaneState.RAN: "done", LaneState.PARTIAL: "done", LaneState.UNAVAILABLE: "failed"}
_NARROWING = (
    "since", "until", "kinds", "tags", "min_importance", "expiry", "owner_only", "tools", "as_of", "exclude_projects",
)  # fmt: skip
_TOLD = {Verdict.USED: "used", Verdict.UNUSED: "not used", Verdict.CORRECTED: "corrected"}


def note_case(home: Home, query: RecallQuery, result: RecallResult) -> None:
    """Note a question and its answer: a line in a spool, nothing in the database."""
    if not home.settings.flag("traces.cases"):
        return
    steps = [
        Step(f"{lane.name} lane", output=lane.note or lane.state.value, status=_STATUS.get(lane.state, "skipped"))
        for lane in result.lanes
    ]
    shown = {hit.memory.id: hit.score for hit in result.hits}
    shown |= {f"{hit.session.id}#{hit.turn.id}": hit.score for hit in result.turns}
    _note(home, query, steps, shown, _outcome(result), result.took_ms)


def note_deep_case(home: Home, query: DeepQuery, result: DeepResult) -> None:
    """The same for a question that was looked into deeply: its steps, and who took each."""
    if not home.settings.flag("traces.cases"):
        return
    steps = [
        Step(step.name, output=step.problem or step.outcome, status="failed" if step.problem else "done",
             more={"by": step.by.value})
        for step in result.steps
    ]  # fmt: skip
    shown = {hit.memory.id: hit.score for hit in result.hits}
    memories = len(shown)
    outcome = f"asks which project: {', '.join(result.clarify)}" if result.clarify else NOTHING_FOUND
    if memories:
        of = f"of {result.project}" if result.project else "of no project"
        outcome = f"{count(memories, 'memory', 'memories')} {of}"
    _note(home, query, steps, shown, outcome, result.took_ms)


def _note(
    home: Home, query: RecallQuery | DeepQuery, steps: Sequence[Step], shown: Mapping[str, float], outcome: str,
    took_ms: float,
) -> None:  # fmt: skip
    ended, took = home.clock(), timedelta(milliseconds=took_ms)
    answer = Step("answer", output=outcome, refs=tuple(shown), seconds=took.total_seconds(), more=shown)
    question = shorten(home.redactor.clean(query.text), _QUESTION_CHARACTERS)
    session = session_name(query.session) if query.session else ""
    told = (_asked(home, query.filter), *steps, answer)
    note_trace(home, Trace(home.ids(), TraceKind.CASE, question, ended - took, ended, outcome, told, session=session))


def _asked(home: Home, wanted: Filter) -> Step:
    """Who asked, of which projects, and by which filters the question was narrowed."""
    more = {PROJECTS: ",".join(wanted.projects), NARROWED: ",".join(_narrowing(wanted))}
    about = f"{home.actor.in_words}; of {', '.join(wanted.projects)}" if wanted.projects else home.actor.in_words
    return Step("asked", output=about, more={name: value for name, value in more.items() if value})


def _narrowing(wanted: Filter) -> list[str]:
    """Filters but for projects and trust: who asks for todos of May only is not told what is not known."""
    names = [name for name in _NARROWING if getattr(wanted, name)]
    return [*names, "scope"] if wanted.scope is not Scope.PRIVATE else names


def note_verdicts(home: Home, judged: Sequence[Judged], session: str | None) -> None:
    """Say in the latest questions that memories were shown for whether they were of use."""
    since = home.now() - _REMEMBERED
    of_case: Mapping[str, list[Judged]] = defaultdict(list)
    for item in judged:
        case = home.traces.case_of(item.memory_id, session_name(session) if session else None, since)
        if case:
            of_case[case].append(item)
    with home.database.transaction():
        for case, items in of_case.items():
            told = "; ".join(
                f"{words}: {sum(item.verdict is verdict for item in items)}"
                for verdict, words in _TOLD.items()
                if any(item.verdict is verdict for item in items)
            )
            more = {item.memory_id: _TOLD[item.verdict] for item in items}
            home.traces.add_step(case, Step("hears back", output=told, refs=tuple(more), more=more), told)


def _outcome(result: RecallResult) -> str:
    if not result.is_answered:
        return NOT_SURE if result.hits or result.turns else NOTHING_FOUND
    return f"{count(len(result.hits), 'memory', 'memories')}, {count(len(result.turns), 'turn')}"
