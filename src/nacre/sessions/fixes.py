"""What mended this error before: failures like it, what was tried after, and what worked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nacre.errors import QueryInvalid
from nacre.home.home import Home
from nacre.retrieval.recall import recall, search_sessions
from nacre.sessions.error_likeness import concerns, likeness, searched, terms_of
from nacre.sessions.file_history import said_of
from nacre.sessions.requests import FixQuery
from nacre.text.excerpt import excerpt
from nacre.text.passages import shorten
from nacre.transcripts.commands import only_looks, programs
from nacre.transcripts.tool_calls import telling
from nacre.values.file_history import Repair, Trouble
from nacre.values.memory import Kind
from nacre.values.recall import Filter, RecallQuery, TurnHit
from nacre.values.session import Action, Speaker, StoredTurn, ToolCall
from nacre.views import FixResult

_CANDIDATES = 100
_AHEAD = 300
_STEPS = 6
_LIKE = 0.5
_LIKE_IN_TALK = 0.6
_SAME = 0.8
_MAX_CHARACTERS = 100_000
_QUESTION_CHARACTERS = 400
_DOING = (Action.RUN, Action.EDIT, Action.FETCH)


@dataclass(frozen=True, slots=True)
class _Failure:
    turn: StoredTurn
    number: int
    likeness: float
    lines: tuple[str, ...]

    @property
    def call(self) -> ToolCall:
        """The call that failed."""
        return self.turn.turn.tool_calls[self.number]


def fix(home: Home, query: FixQuery) -> FixResult:
    """What followed errors like this one. Raises QueryInvalid for an empty or endless error."""
    if not query.error.strip():
        raise QueryInvalid("no error is named", hint='nacre fix "<the error>", or paste it: … | nacre fix -')
    if len(query.error) > _MAX_CHARACTERS:
        raise QueryInvalid(f"the error is longer than {_MAX_CHARACTERS:,} characters", hint="its last lines will do")
    lines = telling(query.error).splitlines()
    found = sorted(_failures(home, lines, query), key=lambda failure: -failure.likeness)
    troubles = tuple(_troubles(home, found, query))
    question = shorten(" ".join(lines[-2:]), _QUESTION_CHARACTERS)
    asked = Filter(projects=(query.wanted.project,) if query.wanted.project else (), since=query.wanted.since)
    lessons = recall(
        home,
        RecallQuery(
            question,
            replace(asked, kinds=(Kind.LESSON,)),
            limit=3,
            confident=True,
            turns=0,
            update=False,
            co_recall=False,
        ),
    ).hits
    talk = () if troubles else _talk(home, question, asked, lines)
    return FixResult(query.error, troubles, lessons, talk)


def _failures(home: Home, lines: Sequence[str], query: FixQuery) -> Iterator[_Failure]:
    rows = home.deeds.failures(searched(lines), query.wanted, limit=_CANDIDATES)
    asked = [terms_of(line) for line in lines]
    for stored in home.sessions.by_rows(rows).values():
        for number, call in enumerate(stored.turn.tool_calls):
            if not call.failed:
                continue
            said = tuple((call.error or call.outcome or "").splitlines())
            like = likeness(asked, map(terms_of, said))
            if like >= _LIKE:
                yield _Failure(stored, number, like, said)


def _troubles(home: Home, found: Sequence[_Failure], query: FixQuery) -> Iterator[Trouble]:
    """The same error met several times is one trouble."""
    left = list(found)
    for _ in range(query.limit):
        if not left:
            return
        first = left[0]
        terms = [terms_of(line) for line in first.lines]
        same = [item for item in left if likeness(terms, map(terms_of, item.lines)) >= _SAME or item is first]
        left = [item for item in left if item not in same]
        repairs = sorted(
            _told_once(_repair(home, item) for item in same),
            key=lambda repair: (not repair.worked, -(repair.time.timestamp() if repair.time else 0)),
        )
        yield Trouble(
            error="\n".join(first.lines), likeness=round(first.likeness, 3), times=len(same),
            sessions=len({item.turn.session for item in same}), repairs=tuple(repairs[: query.repairs]),
        )  # fmt: skip


def _told_once(repairs: Iterator[Repair]) -> Iterator[Repair]:
    """Failures that the same deed mended are one story: that of the first."""
    known: dict[tuple[str, object], Repair] = {}
    for repair in sorted(repairs, key=lambda repair: (repair.session.id, repair.seq)):
        key = (repair.session.id, (repair.steps[-1:], repair.words) if repair.worked else "open")
        known.setdefault(key, repair)
    return iter(known.values())


def _repair(home: Home, failure: _Failure) -> Repair:
    stored = home.sessions.get(failure.turn.session)
    wanted = _kinds(failure.call)
    steps: list[ToolCall] = []
    attempts, place, worked = 0, failure.turn.seq, False
    for seq, call in _calls_after(home, failure):
        if call.action not in _DOING:
            continue
        if call.outcome == "ok" and not only_looks(call) and concerns(call, failure.call):
            steps.append(call)
        if not wanted & _kinds(call):
            continue
        place = seq
        if call.outcome == "ok":
            worked = True
            break
        attempts += call.failed
    return Repair(
        session=stored.session, project=stored.project, seq=failure.turn.seq, time=failure.turn.turn.time,
        failed=failure.call, worked=worked, attempts=attempts, steps=tuple(_brief(steps)) if worked else (),
        words=said_of(home, stored, max(place, failure.turn.seq + 1)),
    )  # fmt: skip


def _calls_after(home: Home, failure: _Failure) -> Iterator[tuple[int, ToolCall]]:
    for item in home.sessions.turns_of(failure.turn.session, first=failure.turn.seq, limit=_AHEAD):
        calls = item.turn.tool_calls
        start = failure.number + 1 if item.seq == failure.turn.seq else 0
        yield from ((item.seq, call) for call in calls[start:])


def _brief(steps: Sequence[ToolCall]) -> Sequence[ToolCall]:
    """The last deeds; edits of the same file in a row are one."""
    told: list[ToolCall] = []
    for call in steps:
        if told and call.action is Action.EDIT and told[-1].paths == call.paths and call.paths:
            told[-1] = call
        else:
            told.append(call)
    return told[-_STEPS:]


def _kinds(call: ToolCall) -> frozenset[str]:
    """What would be the same attempt: the programs that a command runs with what they are told first, or the file that
    is edited."""
    if call.action is Action.RUN:
        return frozenset(programs(call.input))
    if call.action is Action.EDIT:
        return frozenset(f"edit {path}" for path in call.paths)
    return frozenset({f"{call.name} {call.input}"})


def _talk(home: Home, question: str, asked: Filter, lines: Sequence[str]) -> tuple[TurnHit, ...]:
    """Return what agents said of an error: where the owner pasted it, the answer that followed."""
    if not question:
        return ()
    terms = [terms_of(line) for line in lines]
    found: dict[str, TurnHit] = {}
    for hit in search_sessions(home, RecallQuery(question, asked, limit=10), exact=False).turns:
        if likeness(terms, map(terms_of, hit.turn.text.splitlines()[:200])) >= _LIKE_IN_TALK:
            told = _answer(home, hit) if hit.turn.speaker is Speaker.OWNER else hit
            if told:
                found.setdefault(told.turn.id, told)
    return tuple(found.values())[:3]


def _answer(home: Home, asked: TurnHit) -> TurnHit | None:
    """Return the agent's answer to a turn; ``None`` if there is none."""
    stored = home.sessions.find_said(asked.session.id, asked.turn.id)
    turn = said_of(home, home.sessions.get(stored.session), stored.seq + 1) if stored else None
    return replace(asked, turn=turn, excerpt=excerpt(turn.text, ())) if turn else None
