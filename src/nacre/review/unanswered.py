"""Gaps: what nacre was asked and could not answer.

Every answered question leaves a case (:mod:`nacre.retrieval.cases`), so there is no other log: questions are without
secrets, kept for ``traces.keep_days``, and reached by ``forget`` and ``scrub``. Prompts that hooks look up leave none:
most need nothing that could be known.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile

from nacre.errors import Conflict, NotFound
from nacre.home.home import Home
from nacre.memories.requests import StoreRequest
from nacre.memories.store import store
from nacre.retrieval.recall import recall
from nacre.review.question_groups import group, stems_of
from nacre.review.requests import GapRequest, GapTodoRequest, UnansweredRequest
from nacre.spending.spool import fold_notes
from nacre.text.passages import shorten
from nacre.values.memory import Kind
from nacre.values.recall import Filter, RecallQuery
from nacre.values.reports import StoreOutcome
from nacre.values.review import Unanswered, UnansweredQuestion
from nacre.values.session import Speaker
from nacre.values.trace import NARROWED, NOT_SURE, PROJECTS, Trace

MOST_QUESTIONS = 300
"""Wordings that are grouped, the latest: each is embedded."""

MOST_ASKED_AGAIN = 60
"""Wordings that one listing asks again, to see whether they are answered by now."""

_DISMISSED = "gaps.dismissed"
_MOST_DISMISSED = 2_000
_EVER = timedelta(days=3650)
_REFERENCE = 8
_TODO_CHARACTERS = 300
_KEY_BYTES = 12


@dataclass(frozen=True, slots=True)
class _Wording:
    """One wording of a question, with its cases, the latest first."""

    text: str
    cases: tuple[Trace, ...]

    @property
    def projects(self) -> Counter[str]:
        """The projects that it was asked about, with how often."""
        return Counter(name for case in self.cases for name in _noted(case, PROJECTS))

    @property
    def key(self) -> str:
        """A hash of its stems: what was dismissed is known again, and no word of it is kept."""
        said = " ".join(sorted(stems_of(self.text)))
        return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=_KEY_BYTES).hexdigest()


def unanswered(home: Home, asked: UnansweredRequest) -> Unanswered:
    """Questions that were asked and not answered, grouped: the one asked most first, then the latest.

    Those that would be answered today are left out: what is to be shown is asked again, without counting as use.
    Raises StoreBusy.
    """
    groups, by = _groups(home, timedelta(days=asked.days), asked.project)
    wanted = [one for one in groups if _gap(one).times >= asked.min_times]
    shown: list[UnansweredQuestion] = []
    closed = 0
    asking = _Asking(home)
    for wordings in wanted:
        if len(shown) == asked.limit:
            break
        left = asking.without_answer(wordings)
        if left and _gap(left).times >= asked.min_times:
            shown.append(_gap(left))
        else:
            closed += 1
    return Unanswered(tuple(sorted(shown, key=_rank)), len(wanted) - closed, closed, by)


def dismiss(home: Home, request: GapRequest) -> UnansweredQuestion:
    """List a gap no more, in any of its wordings. Raises NotFound, Conflict."""
    wordings = _find(home, request.reference)
    with home.database.transaction():
        held = dict.fromkeys([*_dismissed(home), *(one.key for one in wordings)])
        home.usage.set_value(_DISMISSED, json.dumps(list(held)[-_MOST_DISMISSED:]))
    return _gap(wordings)


def add_todo(home: Home, request: GapTodoRequest) -> StoreOutcome:
    """Store the owner's todo to write down what a gap asks, in the project it was asked about most.

    From then on the todo answers the question. Raises NotFound, Conflict, and what storing raises.
    """
    wordings = _find(home, request.reference)
    projects = sum((one.projects for one in wordings), Counter[str]()).most_common(1)
    question = shorten(_gap(wordings).question, _TODO_CHARACTERS)
    new = StoreRequest(
        content=f"Write down: {question}", kind=Kind.TODO, importance=request.importance, speaker=Speaker.OWNER,
        project=projects[0][0] if projects else None,
    )  # fmt: skip
    return store(home, new)


def _groups(home: Home, since: timedelta, project: str | None = None) -> tuple[list[list[_Wording]], str]:
    """Groups of wordings, but for those that were dismissed: those asked most first."""
    wordings = list(_wordings(home, since, project))[:MOST_QUESTIONS]
    wordings.reverse()  # the oldest first: what comes later joins the groups that are there
    places, by = group(home, [one.text for one in wordings]) if wordings else ([], "words")
    gone = set(_dismissed(home))
    groups = [[wordings[place] for place in places_of] for places_of in places]
    kept = [one for one in groups if gone.isdisjoint(wording.key for wording in one)]
    return sorted(kept, key=lambda one: _rank(_gap(one))), by


def _wordings(home: Home, since: timedelta, project: str | None) -> Iterator[_Wording]:
    """Every wording that was asked and not answered, the latest first."""
    fold_notes(home)
    cases: dict[str, list[Trace]] = {}
    for case in home.traces.unanswered(home.now() - since):
        if not _noted(case, NARROWED) and (project is None or project in _noted(case, PROJECTS)):
            cases.setdefault(" ".join(case.subject.lower().split()), []).append(case)
    for same in cases.values():
        yield _Wording(same[0].subject, tuple(same))


def _noted(case: Trace, name: str) -> list[str]:
    """What the first step of a case has under a name."""
    value = case.steps[0].more.get(name) if case.steps else None
    return value.split(",") if isinstance(value, str) else []


class _Asking:
    """Asks questions again, so many at most: what comes after them counts as without an answer."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._left = MOST_ASKED_AGAIN

    def without_answer(self, wordings: Sequence[_Wording]) -> list[_Wording]:
        """A group from the first wording on that has no answer today, those asked most first."""
        ranked = _ranked(wordings)
        answered = takewhile(self._is_answered, ranked)
        return ranked[sum(1 for _ in answered) :]

    def _is_answered(self, wording: _Wording) -> bool:
        """For all the projects it was asked about."""
        if self._left <= 0:
            return False
        self._left -= 1
        turns = min(1, self._home.settings.whole("recall.turns"))
        wanted = Filter(projects=tuple(sorted(wording.projects)))
        query = RecallQuery(
            wording.text, filter=wanted, limit=1, turns=turns, confident=True, update=False, co_recall=False
        )
        found = recall(self._home, query)
        return bool(found.hits or found.turns)


def _gap(wordings: Sequence[_Wording]) -> UnansweredQuestion:
    """What is told of a group: the wording asked most, of these the latest, stands for it."""
    ranked = _ranked(wordings)
    cases = sorted((case for one in wordings for case in one.cases), key=lambda case: case.began)
    projects = sum((one.projects for one in wordings), Counter[str]())
    return UnansweredQuestion(
        cases[-1].id[-_REFERENCE:], ranked[0].text, len(cases), sum(case.outcome == NOT_SURE for case in cases),
        cases[0].began, cases[-1].began, tuple(name for name, _ in projects.most_common()),
        tuple(one.text for one in ranked[1:]),
    )  # fmt: skip


def _ranked(wordings: Sequence[_Wording]) -> list[_Wording]:
    """Those asked most first, then the latest."""
    return sorted(wordings, key=lambda one: (len(one.cases), one.cases[0].began), reverse=True)


def _rank(gap: UnansweredQuestion) -> tuple[int, float]:
    return (-gap.times, -gap.last.timestamp())


def _find(home: Home, reference: str) -> list[_Wording]:
    """The group of a case. Raises NotFound, Conflict."""
    wanted = reference.strip()
    groups, _ = _groups(home, _EVER)
    found = [one for one in groups if any(_names(wanted, case.id) for wording in one for case in wording.cases)]
    if not found:
        raise NotFound(f"no gap is called {reference!r}", hint="nacre gaps lists what was not answered")
    if len(found) > 1:
        raise Conflict(f"{reference!r} means several gaps", hint="give more of the id")
    return found[0]


def _names(reference: str, case: str) -> bool:
    return case == reference or (len(reference) >= _REFERENCE // 2 and case.endswith(reference))


def _dismissed(home: Home) -> list[str]:
    return list(json.loads(home.usage.value(_DISMISSED) or "[]"))
