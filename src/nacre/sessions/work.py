"""The change history of files (``did``) and earlier fixes of errors (``fix``)."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product, starmap
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
from nacre.sessions.summary import goals
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
"""Words that are too common in names to identify a subject."""
_ASKED_SHARE = 0.65
"""Weight of the given error. The stored error weighs less, because it contains other output."""


def gist(line: str) -> str:
    """Return a line of an error without times, ids, numbers, positions and folders."""
    text = _COLOUR_CODES.sub("", line).lower()
    for pattern in _VARIABLE_PARTS:
        text = pattern.sub(" ", text)
    text = _FOLDERS.sub("", _PLACE.sub(" ", text))
    return " ".join(_NUMBER.sub(" ", text).split())


def terms_of(line: str) -> frozenset[str]:
    """Return the words in a line of an error, without variable parts such as numbers."""
    return frozenset(_WORD.findall(gist(line)))


def likeness(requested: Iterable[frozenset[str]], stored: Iterable[frozenset[str]]) -> float:
    """Return the similarity of two errors, from 0 to 1, by their most similar lines.

    Names such as ``ModuleNotFoundError`` weigh three times as much as other words, and generic
    words a quarter as much.
    """
    return max(starmap(_overlap, product(requested, stored)), default=0.0)


def search_words(lines: Sequence[str]) -> list[str]:
    """Return up to 40 search words from the lines of an error, most specific first."""
    terms = {term for line in lines for term in terms_of(line)}
    return sorted(terms, key=lambda term: (-_weight(term), term))[:40]


def concerns(step: ToolCall, failed: ToolCall) -> bool:
    """Return True if a later call names the same file, program or identifier as a failed call."""
    step_names = _name_parts(step.input, *step.paths)
    error = failed.error or failed.outcome or ""
    named = {name.lower() for name in _QUOTED.findall(error)}
    return not step_names.isdisjoint(_name_parts(failed.input, *failed.paths, error)) or any(
        name in thing for name in named for thing in step_names
    )


def _name_parts(*texts: str) -> frozenset[str]:
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


@operation("did", by_key=True)
def did(home: Home, query: DidQuery) -> FileHistory:
    """Return the agents' actions on a file or in a folder, the newest first."""
    forms = _forms(query.path)
    named = _find_files(home, forms)
    uses = home.deeds.uses(list(named), query.wanted, reads=True, limit=_MAX_USES) if named else []
    folders = {row: home.sessions.get(row).session.cwd for row in {use.session for use in uses}}
    located = {
        (use.session, use.file): _locate(named[use.file], folders[use.session]) for use in uses
    }
    uses = [use for use in uses if _matches(located[use.session, use.file], forms)]
    groups: dict[tuple[int, int | None], list[FileUse]] = {}
    for use in uses:
        if not (query.reads or use.action is Action.EDIT):
            continue
        request = request_before(home, home.sessions.get(use.session).session, use.session, use.seq)
        groups.setdefault((use.session, request.row if request else None), []).append(use)
    ordered = sorted(groups.items(), key=lambda item: _moment(home, item[1]), reverse=True)
    page = ordered[query.offset : query.offset + query.limit]
    return FileHistory(
        asked=query.path,
        paths=tuple(dict.fromkeys(located[use.session, use.file] for use in uses)),
        changes=tuple(_change(home, request, group, uses, located) for (_, request), group in page),
        edits=sum(use.action is Action.EDIT for use in uses),
        reads=sum(use.action is Action.READ for use in uses),
        sessions=len({use.session for use in uses}),
        more=len(ordered) > query.offset + query.limit,
    )


def _forms(name_or_path: str) -> list[str]:
    plain = plain_path(
        str(Path(name_or_path).expanduser()) if name_or_path.startswith("~") else name_or_path
    )
    # os.path.exists returns False for an invalid name.
    if _is_whole(plain) or not os.path.exists(Path.cwd() / plain):
        return [plain]
    return [plain_path(os.path.normpath(Path.cwd() / plain)), plain]


def _find_files(home: Home, forms: Sequence[str]) -> dict[int, str]:
    named = home.deeds.files_named(forms[0].rsplit("/", 1)[-1])
    for files in (named, home.deeds.all_files()):
        if matching := {row: path for row, path in files if _matches(path, forms)}:
            return matching
    return {}


def _locate(path: str, folder: str | None) -> str:
    if not folder or _is_whole(path):
        return path
    return posixpath.normpath(f"{plain_path(folder)}/{path}")


def request_before(home: Home, session: Session, row: int, seq: int) -> StoredTurn | None:
    """Return the latest request before a position in a session. Very short ones are avoided."""
    if session.kind is not SessionKind.MAIN:
        return next(iter(home.sessions.turns_of(row, limit=1)), None)
    rows = home.deeds.requests(row, seq, limit=_MAX_REQUESTS)
    turns = list(home.sessions.by_rows(rows).values())
    telling = (turn for turn in turns if len(words(turn.turn.text)) >= _MIN_REQUEST_WORDS)
    return next(telling, turns[0] if turns else None)


def _matches(path: str, forms: Sequence[str]) -> bool:
    names = _bounded(path)
    for form in forms:
        form_names = _bounded(form)
        if _is_whole(path) and _is_whole(form):
            if names.startswith(form_names):
                return True
        # A relative path matches any absolute path that ends with it.
        elif form_names in names or (not _is_whole(path) and form_names.endswith(names)):
            return True
    return False


def _bounded(path: str) -> str:
    return "/".join(["", *(name for name in path.lower().split("/") if name.strip(".")), ""])


def _is_whole(path: str) -> bool:
    return path.startswith(("/", "~")) or bool(_DRIVE.match(path))


def _moment(home: Home, uses: Sequence[FileUse]) -> tuple[float, int]:
    times = [use.time for use in uses if use.time]
    stored = home.sessions.get(uses[0].session)
    time = max(times) if times else stored.ended or stored.session.started
    return time.timestamp() if time else 0.0, max(use.seq for use in uses)


def _change(
    home: Home,
    request: int | None,
    group: Sequence[FileUse],
    uses: Sequence[FileUse],
    located: dict[tuple[int, int], str],
) -> FileChange:
    last = max(group, key=lambda use: use.seq)
    stored = home.sessions.get(last.session)
    turns = home.sessions.by_rows([use.turn for use in group])
    within = [use for use in uses if use.session == last.session and use.turn in turns]
    calls = [call for item in turns.values() for call in item.turn.tool_calls]
    paths = {located[use.session, use.file] for use in group}
    return FileChange(
        path=located[last.session, last.file],
        session=stored.session,
        project=stored.project,
        seq=last.seq,
        time=max((use.time for use in group if use.time), default=stored.ended),
        edits=sum(use.action is Action.EDIT for use in within),
        reads=sum(use.action is Action.READ for use in within),
        failed=sum(
            call.failed
            for call in calls
            if paths & {_locate(plain_path(path), stored.session.cwd) for path in call.paths}
        ),
        request=home.sessions.by_rows([request])[request].turn if request else None,
        words=recall_recall.answer_after(home, stored.row, last.seq),
    )


# -- Earlier fixes of an error ------------------------------------------------


_MAX_CANDIDATES = 100
_MAX_TURNS_AFTER = 300
_MAX_STEPS = 6
_MIN_LIKENESS = 0.5
_MIN_LIKENESS_IN_TALK = 0.6
_SAME_ERROR_LIKENESS = 0.8
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

    @property
    def terms(self) -> list[frozenset[str]]:
        return list(map(terms_of, self.lines))


@operation("fix", by_key=True)
def fix(home: Home, query: FixQuery) -> FixResult:
    """Return what followed earlier errors that resemble the given error.

    Raises InvalidQueryError if the error is empty.
    """
    if not query.error.strip():
        raise InvalidQueryError(
            "the error to look for is empty",
            hint='nacre fix "<the error>", or paste it: … | nacre fix -',
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
    groups: list[list[_Failure]] = []
    for failure in failures:
        similar = (
            group
            for group in groups
            if likeness(group[0].terms, failure.terms) >= _SAME_ERROR_LIKENESS
        )
        if group := next(similar, None):
            group.append(failure)
        else:
            groups.append([failure])
    for same in groups[: query.limit]:
        first = same[0]
        first_repairs: dict[tuple[str, object], Repair] = {}
        attempts = (_repair(home, item) for item in same)
        for repair in sorted(attempts, key=lambda repair: (repair.session.id, repair.seq)):
            end = (repair.steps[-1:], repair.words) if repair.worked else "open"
            first_repairs.setdefault((repair.session.id, end), repair)
        repairs = sorted(
            first_repairs.values(),
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


def _repair(home: Home, failure: _Failure) -> Repair:
    stored = home.sessions.get(failure.turn.session)
    wanted = goals(failure.call)
    steps, unrelated = list[ToolCall](), list[ToolCall]()
    attempts, place, worked = 0, failure.turn.seq, False
    for seq, call in _calls_after(home, failure):
        if call.action not in _CHANGING_ACTIONS:
            continue
        if call.outcome == "ok" and not all(map(conversation.looks, goals(call))):
            if concerns(call, failure.call):
                steps.append(call)
                place = seq
            else:
                unrelated.append(call)
        if not wanted & goals(call):
            continue
        place = seq
        if call.outcome == "ok":
            worked = True
            break
        attempts += call.failed
        if likeness(failure.terms, [terms_of(call.error or "")]) >= _SAME_ERROR_LIKENESS:
            steps.clear()  # they did not help
    if worked and len(steps) < 2:
        steps = unrelated[-1:] + steps
    return Repair(
        session=stored.session,
        project=stored.project,
        seq=failure.turn.seq,
        time=failure.turn.turn.time,
        failed=failure.call,
        worked=worked,
        attempts=attempts,
        steps=tuple(_merge_edits(steps)),
        words=recall_recall.answer_after(home, stored.row, max(place, failure.turn.seq + 1)),
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


def _agent_statements(
    home: Home, question: str, criteria: Filter, lines: Sequence[str]
) -> tuple[TurnHit, ...]:
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
            if hit.turn.speaker is Speaker.OWNER:
                stored = home.sessions.find_said(hit.session.id, hit.turn.id)
                turn = (
                    recall_recall.answer_after(home, stored.session, stored.seq + 1)
                    if stored
                    else None
                )
                if turn is None:
                    continue
                hit = replace(hit, turn=turn, excerpt=excerpt(turn.text, ()))
            hits.setdefault(hit.turn.id, hit)
    return tuple(hits.values())[:3]
