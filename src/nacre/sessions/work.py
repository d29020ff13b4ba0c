"""The change history of files (``did``) and earlier fixes of errors (``fix``)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.base.text import excerpt, shorten, words
from nacre.errors import InvalidQueryError
from nacre.home.home import Home
from nacre.home.views import FixResult
from nacre.operations import operation
from nacre.readers import conversation
from nacre.recall import recall as recall_recall
from nacre.sessions.find import DidQuery, FixQuery
from nacre.store.schema import turn_clause
from nacre.store.sessions import plain_path
from nacre.values.memory import Kind
from nacre.values.recall import Filter, RecallQuery, TurnHit
from nacre.values.session import (
    Action,
    FileChange,
    FileHistory,
    FileUse,
    Repair,
    Session,
    SessionKind,
    Speaker,
    StoredTurn,
    ToolCall,
    Trouble,
)

_COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")
_VARIABLE_PARTS = (
    re.compile(r"\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:z|[+-]\d\d:?\d\d)?"),
    re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"),
    re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
    re.compile(r"\b0x[0-9a-f]+\b"),
    re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"),
)
_FOLDERS = re.compile(
    r"(?:[a-z]:)?(?:[\w.@~+-]*/)+(?=[\w.-])|(?:[a-z]:)?(?:[\w.@~+-]*\\)+(?=[\w.-])"
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\b")
_PLACE = re.compile(r":(?:\d+)(?::\d+)?\b")
_WORD = re.compile(r"[^\W_]+(?:[_.'-][^\W_]+)*|[぀-ヿ一-鿿]{2}")
_NAME = re.compile(r"[a-z]+(?:error|exception|warning)\b|[a-z0-9]+(?:[_.-][a-z0-9]+)+|e[a-z]{4,}\b")
_NAME_WEIGHT = 3.0
_TRIVIAL = frozenset(
    "a an the is was are be to of in on at for from by with and or not it its this that line file error errors failed "
    "failure exception traceback most recent call last warning fatal at exit code status".split()
)
_TRIVIAL_WEIGHT = 0.25
_SEPARATORS = re.compile(r"[\s\"'`=,;()\[\]{}<>|&]+")
_QUOTED = re.compile(r"[\"'`]([\w.@-]{3,})[\"'`]")
_PART = re.compile(r"[^\W_]{2,}")
_ENDING = re.compile(r"\.[a-z]{1,4}(?::\d+)*$|(?::\d+)+$")
_GENERIC_PARTS = frozenset(
    "test tests spec index main src lib cd run exec bin usr tmp home no nor found cannot".split()
)
"""Parts of names that do not identify a subject."""
_ASKED_SHARE = 0.65
"""Weight of the requested error's words. Output surrounds the stored error, which counts less."""


def gist(line: str) -> str:
    """Return an error line without times, ids, numbers, positions and folders."""
    text = _COLOUR_CODES.sub("", line).lower()
    for pattern in _VARIABLE_PARTS:
        text = pattern.sub(" ", text)
    text = _FOLDERS.sub("", _PLACE.sub(" ", text))
    return " ".join(_NUMBER.sub(" ", text).split())


def terms_of(line: str) -> frozenset[str]:
    """Return the words of an error line, without parts that vary, such as numbers."""
    return frozenset(_WORD.findall(gist(line)))


def likeness(requested: Iterable[frozenset[str]], stored: Iterable[frozenset[str]]) -> float:
    """Return the similarity of two errors (0 to 1), based on their most similar pair of lines.

    Names (``ModuleNotFoundError``, ``pg_config``, ``ECONNREFUSED``) weigh three times as much as words. Generic words
    weigh a quarter as much.
    """
    stored_lines = list(stored)
    return max(
        (
            _overlap(terms, stored_terms)
            for terms in requested
            for stored_terms in stored_lines
            if terms and stored_terms
        ),
        default=0.0,
    )


def search_words(lines: Sequence[str]) -> list[str]:
    """Return up to 40 search words, most specific first."""
    terms = {term for line in lines for term in terms_of(line)}
    return sorted(terms, key=lambda term: (-_weight(term), term))[:40]


def concerns(step: ToolCall, failed: ToolCall) -> bool:
    """Return True if a step shares a file, program or identifier with a failed call or its error."""
    step_names = _name_parts(step.input, *step.paths)
    error = failed.error or failed.outcome or ""
    named = {name.lower() for name in _QUOTED.findall(error)}
    return not step_names.isdisjoint(_name_parts(failed.input, *failed.paths, error)) or any(
        name in thing for name in named for thing in step_names
    )


def _name_parts(*texts: str) -> frozenset[str]:
    """Return the names in commands, paths and errors, without folders, extensions and options."""
    tokens = (
        token
        for text in texts
        for token in _SEPARATORS.split(text.lower())
        if not token.startswith("-")
    )
    names = (re.split(r"[/\\]", token.strip(".:"))[-1] for token in tokens)
    parts = {part for name in names for part in _PART.findall(_ENDING.sub("", name))}
    return frozenset(parts - _TRIVIAL - _GENERIC_PARTS)


def _overlap(requested: frozenset[str], stored: frozenset[str]) -> float:
    common = sum(map(_weight, requested & stored))
    if not common:
        return 0.0
    return _ASKED_SHARE * common / sum(map(_weight, requested)) + (1 - _ASKED_SHARE) * common / sum(
        map(_weight, stored)
    )


def _weight(term: str) -> float:
    if term in _TRIVIAL:
        return _TRIVIAL_WEIGHT
    return _NAME_WEIGHT if _NAME.fullmatch(term) else 1.0


# -- Changes of a file, grouped by request ------------------------------------


_MAX_USES = 2_000
_MAX_REQUESTS = 5
_MIN_REQUEST_WORDS = 4
_DRIVE = re.compile(r"^[a-zA-Z]:")


@dataclass(slots=True)
class _Group:
    session: int
    request: int | None
    uses: list[FileUse] = field(default_factory=list)
    commands: list[tuple[int, ToolCall]] = field(default_factory=list)

    @property
    def last_seq(self) -> int:
        return max([*(use.seq for use in self.uses), *(seq for seq, _ in self.commands)])


@operation("did", by_key=True)
def did(home: Home, query: DidQuery) -> FileHistory:
    """Return the agents' actions on a file or in a folder, the newest first."""
    named = find_files(home, query.path)
    uses = home.deeds.uses(list(named), query.wanted, reads=True, limit=_MAX_USES) if named else []
    counted = [use for use in uses if query.reads or use.action is Action.EDIT]
    groups = _grouped(home, counted)
    if query.commands:
        name = plain_path(query.path).rsplit("/", 1)[-1]
        criteria = Filter(
            projects=(query.wanted.project,) if query.wanted.project else (), strict=True
        )
        matches = home.turn_search.match_parts([name], turn_clause(criteria), _MAX_USES)
        turns = home.sessions.by_rows([row for row, _, _ in matches])
        by_request = {(group.session, group.request): group for group in groups}
        for stored in turns.values():
            for call in stored.turn.tool_calls:
                if call.action is Action.RUN and name in call.input:
                    _group(home, by_request, stored.session, stored.seq).commands.append(
                        (stored.seq, call)
                    )
        groups[:] = list(by_request.values())
    ordered = sorted(groups, key=lambda group: _moment(home, group), reverse=True)
    page = ordered[query.offset : query.offset + query.limit]
    return FileHistory(
        asked=query.path,
        paths=tuple(sorted({named[use.file] for use in uses} or named.values())),
        changes=tuple(_change(home, group, uses, named) for group in page),
        edits=sum(use.action is Action.EDIT for use in uses),
        reads=sum(use.action is Action.READ for use in uses),
        sessions=len({use.session for use in counted}),
        more=len(ordered) > query.offset + query.limit,
    )


def find_files(home: Home, name_or_path: str) -> dict[int, str]:
    """Return the paths of the files that a name or path can mean, keyed by row.

    Exact paths are tried first, then paths with the same last components, then files in a matching
    folder.
    """
    plain = plain_path(
        str(Path(name_or_path).expanduser()) if name_or_path.startswith("~") else name_or_path
    )
    forms = [plain]
    if not _is_whole(plain):
        resolved = plain_path(str(Path.cwd() / plain))
        if os.path.exists(Path.cwd() / plain):  # also False for an invalid name
            forms.insert(0, resolved)
    name = forms[0].rsplit("/", 1)[-1]
    files = home.deeds.files_named(name)
    exact = {
        row: path
        for row, path in files
        if any(
            (path == form or (bool(_DRIVE.match(path)) and path.lower() == form.lower()))
            for form in forms
        )
    }
    if exact:
        return exact
    loose = {row: path for row, path in files if any(_ends_alike(path, form) for form in forms)}
    return loose or _below(home, forms)


def request_before(home: Home, session: Session, row: int, seq: int) -> StoredTurn | None:
    """Return the latest request before a position in a session.

    Requests of very few words are skipped if possible.
    """
    by = Speaker.OWNER if session.kind is SessionKind.MAIN else Speaker.AGENT
    rows = home.deeds.requests(row, seq, by=by, limit=_MAX_REQUESTS)
    turns = home.sessions.by_rows(rows)
    ordered = [turns[row] for row in rows if row in turns]
    if by is Speaker.AGENT:
        first = home.sessions.turns_of(row, limit=1)
        return next(iter(first), None)
    telling = (turn for turn in ordered if len(words(turn.turn.text)) >= _MIN_REQUEST_WORDS)
    return next(telling, ordered[0] if ordered else None)


def _ends_alike(path: str, form: str) -> bool:
    """Return True if two paths end with the same components and at least one path is relative."""
    if _is_whole(path) and _is_whole(form):
        return False
    left, right = _components(path.lower()), _components(form.lower())
    shorter = min(len(left), len(right))
    return shorter > 0 and left[-shorter:] == right[-shorter:]


def _is_whole(path: str) -> bool:
    return path.startswith("/") or bool(_DRIVE.match(path))


def _below(home: Home, forms: Sequence[str]) -> dict[int, str]:
    files = {}
    for row, path in home.deeds.all_files():
        for form in forms:
            inside = f"{form.rstrip('/')}/"
            if path.startswith(inside) or (not form.startswith("/") and f"/{inside}" in path):
                files[row] = path
    return files


def _components(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _grouped(home: Home, uses: Iterable[FileUse]) -> list[_Group]:
    groups: dict[tuple[int, int | None], _Group] = {}
    for use in uses:
        group = _group(home, groups, use.session, use.seq)
        group.uses.append(use)
    return list(groups.values())


def _group(
    home: Home, groups: dict[tuple[int, int | None], _Group], session: int, seq: int
) -> _Group:
    stored = home.sessions.get(session)
    request = request_before(home, stored.session, session, seq)
    key = (session, request.row if request else None)
    return groups.setdefault(key, _Group(*key))


def _moment(home: Home, group: _Group) -> tuple[float, int]:
    times = [use.time for use in group.uses if use.time]
    stored = home.sessions.get(group.session)
    time: datetime | None = max(times) if times else stored.ended or stored.session.started
    return time.timestamp() if time else 0.0, group.last_seq


def _change(
    home: Home, group: _Group, uses: Sequence[FileUse], named: dict[int, str]
) -> FileChange:
    stored = home.sessions.get(group.session)
    turns = {
        item.row: item for item in home.sessions.by_rows([use.turn for use in group.uses]).values()
    }
    files = {use.file for use in group.uses}
    within = [use for use in uses if use.session == group.session and use.turn in turns]
    last = max(group.uses, key=lambda use: use.seq, default=None)
    request = home.sessions.by_rows([group.request])[group.request].turn if group.request else None
    calls = [call for item in turns.values() for call in item.turn.tool_calls]
    paths = {plain_path(named[file]) for file in files}
    return FileChange(
        path=named[last.file] if last else "",
        session=stored.session,
        project=stored.project,
        seq=group.last_seq,
        time=max((use.time for use in group.uses if use.time), default=stored.ended),
        edits=sum(use.action is Action.EDIT for use in within),
        reads=sum(use.action is Action.READ for use in within),
        commands=tuple(call for _, call in group.commands),
        failed=sum(
            call.failed for call in calls if paths & {plain_path(path) for path in call.paths}
        ),
        request=request,
        words=recall_recall.turns_after(home, stored.row, group.last_seq)[0],
    )


# -- Earlier fixes of an error ------------------------------------------------


_MAX_CANDIDATES = 100
_MAX_TURNS_AFTER = 300
_MAX_STEPS = 6
_MIN_LIKENESS = 0.5
_MIN_LIKENESS_IN_TALK = 0.6
_SAME_ERROR_LIKENESS = 0.8
_MAX_CHARACTERS = 100_000
_QUESTION_CHARACTERS = 400
_CHANGING_ACTIONS = (Action.RUN, Action.EDIT, Action.FETCH)


@frozen
class _Failure:
    turn: StoredTurn
    number: int
    likeness: float
    lines: tuple[str, ...]

    @property
    def call(self) -> ToolCall:
        return self.turn.turn.tool_calls[self.number]


@operation("fix", by_key=True)
def fix(home: Home, query: FixQuery) -> FixResult:
    """Return what followed earlier errors that resemble the given error.

    Raises InvalidQueryError if the error is empty or too long.
    """
    if not query.error.strip():
        raise InvalidQueryError(
            "there is no error to look for",
            hint='nacre fix "<the error>", or paste it: … | nacre fix -',
        )
    if len(query.error) > _MAX_CHARACTERS:
        raise InvalidQueryError(
            f"the error is longer than {_MAX_CHARACTERS:,} characters", hint="give its last lines"
        )
    lines = conversation.telling(query.error).splitlines()
    failures = sorted(_failures(home, lines, query), key=lambda failure: -failure.likeness)
    troubles = tuple(_troubles(home, failures, query))
    question = shorten(" ".join(lines[-2:]), _QUESTION_CHARACTERS)
    criteria = Filter(
        projects=(query.wanted.project,) if query.wanted.project else (), since=query.wanted.since
    )
    lessons = recall_recall.recall(
        home,
        RecallQuery(
            question,
            replace(criteria, kinds=(Kind.LESSON,)),
            limit=3,
            confident=True,
            turns=0,
            update=False,
            co_recall=False,
        ),
    ).hits
    talk = () if troubles else _agent_statements(home, question, criteria, lines)
    return FixResult(query.error, troubles, lessons, talk)


def _failures(home: Home, lines: Sequence[str], query: FixQuery) -> Iterator[_Failure]:
    rows = home.deeds.failures(search_words(lines), query.wanted, limit=_MAX_CANDIDATES)
    terms = [terms_of(line) for line in lines]
    for stored in home.sessions.by_rows(rows).values():
        for number, call in enumerate(stored.turn.tool_calls):
            if not call.failed:
                continue
            error_lines = tuple((call.error or call.outcome or "").splitlines())
            similarity = likeness(terms, map(terms_of, error_lines))
            if similarity >= _MIN_LIKENESS:
                yield _Failure(stored, number, similarity, error_lines)


def _troubles(home: Home, failures: Sequence[_Failure], query: FixQuery) -> Iterator[Trouble]:
    remaining = list(failures)
    for _ in range(query.limit):
        if not remaining:
            return
        first = remaining[0]
        terms = [terms_of(line) for line in first.lines]
        same = [
            item
            for item in remaining
            if likeness(terms, map(terms_of, item.lines)) >= _SAME_ERROR_LIKENESS or item is first
        ]
        remaining = [item for item in remaining if item not in same]
        repairs = sorted(
            _distinct_repairs(_repair(home, item) for item in same),
            key=lambda repair: (
                not repair.worked,
                -(repair.time.timestamp() if repair.time else 0),
            ),
        )
        yield Trouble(
            error="\n".join(first.lines),
            likeness=round(first.likeness, 3),
            times=len(same),
            sessions=len({item.turn.session for item in same}),
            repairs=tuple(repairs[: query.repairs]),
        )


def _distinct_repairs(repairs: Iterator[Repair]) -> Iterator[Repair]:
    first_repairs: dict[tuple[str, object], Repair] = {}
    for repair in sorted(repairs, key=lambda repair: (repair.session.id, repair.seq)):
        key = (repair.session.id, (repair.steps[-1:], repair.words) if repair.worked else "open")
        first_repairs.setdefault(key, repair)
    return iter(first_repairs.values())


def _repair(home: Home, failure: _Failure) -> Repair:
    stored = home.sessions.get(failure.turn.session)
    kinds = _kinds(failure.call)
    steps: list[ToolCall] = []
    attempts, place, worked = 0, failure.turn.seq, False
    for seq, call in _calls_after(home, failure):
        if call.action not in _CHANGING_ACTIONS:
            continue
        if (
            call.outcome == "ok"
            and not conversation.only_looks(call)
            and concerns(call, failure.call)
        ):
            steps.append(call)
        if not kinds & _kinds(call):
            continue
        place = seq
        if call.outcome == "ok":
            worked = True
            break
        attempts += call.failed
    return Repair(
        session=stored.session,
        project=stored.project,
        seq=failure.turn.seq,
        time=failure.turn.turn.time,
        failed=failure.call,
        worked=worked,
        attempts=attempts,
        steps=tuple(_merge_edits(steps)) if worked else (),
        words=recall_recall.turns_after(home, stored.row, max(place, failure.turn.seq + 1))[0],
    )


def _calls_after(home: Home, failure: _Failure) -> Iterator[tuple[int, ToolCall]]:
    for item in home.sessions.turns_of(
        failure.turn.session, first=failure.turn.seq, limit=_MAX_TURNS_AFTER
    ):
        calls = item.turn.tool_calls
        start = failure.number + 1 if item.seq == failure.turn.seq else 0
        yield from ((item.seq, call) for call in calls[start:])


def _merge_edits(steps: Sequence[ToolCall]) -> Sequence[ToolCall]:
    merged: list[ToolCall] = []
    for call in steps:
        if merged and call.action is Action.EDIT and merged[-1].paths == call.paths and call.paths:
            merged[-1] = call
        else:
            merged.append(call)
    return merged[-_MAX_STEPS:]


def _kinds(call: ToolCall) -> frozenset[str]:
    """Return keys for what a call does: its programs, edited files, or name and input."""
    if call.action is Action.RUN:
        return frozenset(conversation.programs(call.input))
    if call.action is Action.EDIT:
        return frozenset(f"edit {path}" for path in call.paths)
    return frozenset({f"{call.name} {call.input}"})


def _agent_statements(
    home: Home, question: str, criteria: Filter, lines: Sequence[str]
) -> tuple[TurnHit, ...]:
    """Return what agents said about an error, including answers to a pasted error."""
    if not question:
        return ()
    terms = [terms_of(line) for line in lines]
    hits: dict[str, TurnHit] = {}
    for hit in recall_recall.search_sessions(
        home, RecallQuery(question, criteria, limit=10), exact=False
    ).turns:
        if (
            likeness(terms, map(terms_of, hit.turn.text.splitlines()[:200]))
            >= _MIN_LIKENESS_IN_TALK
        ):
            answer = _answer(home, hit) if hit.turn.speaker is Speaker.OWNER else hit
            if answer:
                hits.setdefault(answer.turn.id, answer)
    return tuple(hits.values())[:3]


def _answer(home: Home, hit: TurnHit) -> TurnHit | None:
    stored = home.sessions.find_said(hit.session.id, hit.turn.id)
    turn = recall_recall.turns_after(home, stored.session, stored.seq + 1)[0] if stored else None
    return replace(hit, turn=turn, excerpt=excerpt(turn.text, ())) if turn else None
