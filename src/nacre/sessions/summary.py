"""Facts about a session: files, errors, commits, checks, reports and todo lists."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from nacre.base.text import one_line, shorten
from nacre.learn.reading import calls, is_change, passages, without_fences
from nacre.learn.sentences import ConcludedCues, language_of
from nacre.readers.conversation import looks, names, parts
from nacre.values.session import (
    Action,
    ErrorMet,
    FileTouched,
    Flag,
    Speaker,
    ToolCall,
    Trust,
    Turn,
)

MOST_COMMITS = 20
MOST_ERRORS = 10
_MAX_PULL_REQUESTS = 10
_ERROR_CHARACTERS = 300
_CALL_CHARACTERS = 160
_HASH_CHARACTERS = 7

_IDLE_COMMANDS = frozenset(
    "true false sleep yes printf test [ kill pkill date nl awk sed bash sh zsh git gh npm npx go".split()
)
_URL = re.compile(r"https?://[^\s<>\"'`)\]}|\\，。；）】》]{4,500}")
_PULL_REQUEST = re.compile(r"/(?:pull|merge_requests)/\d+(?:$|[/#?])")
_EXIT = re.compile(
    r"^(?:\(no output\)\s*)?(?:exit \d+|Command exited with code \d+|Sibling tool call errored)$",
    re.MULTILINE,
)
_READING = frozenset({Action.READ, Action.SEARCH, Action.FETCH})
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)


def files(calls: Iterable[ToolCall], cwd: str | None) -> tuple[FileTouched, ...]:
    """Return the files that the calls read or changed, most often changed first."""
    edits: Counter[str] = Counter()
    reads: Counter[str] = Counter()
    for call in calls:
        if call.failed or call.outcome == "rejected":
            continue
        for path in call.paths:
            if call.action is Action.EDIT:
                edits[_placed(path, cwd)] += 1
            elif call.action is Action.READ:
                reads[_placed(path, cwd)] += 1
    paths = sorted({*edits, *reads}, key=lambda path: (-edits[path], -reads[path], path))
    return tuple(FileTouched(path, edits[path], reads[path]) for path in paths)


def _placed(path: str, cwd: str | None) -> str:
    plain = path.replace("\\", "/")
    folder = (cwd or "").replace("\\", "/").rstrip("/")
    if folder and (plain == folder or plain.lower().startswith(f"{folder.lower()}/")):
        plain = plain[len(folder) :].strip("/") or "."
    return posixpath.normpath(plain)


def errors(calls: Sequence[ToolCall]) -> tuple[ErrorMet, ...]:
    """Return a session's errors: unresolved ones first, then the newest."""
    is_mended = find_mended(calls)
    latest: dict[str, ErrorMet] = {}
    times: Counter[str] = Counter()
    for at, call in enumerate(calls):
        message = call.error or (call.outcome or "").removeprefix("error").lstrip(": ")
        message = _EXIT.sub("", message.strip()).strip()
        if not (call.failed and message) or call.action in _READING or not does(call):
            continue
        key = _NUMBERS.sub("#", one_line(message).lower())[:_CALL_CHARACTERS]
        times[key] += 1
        latest.pop(key, None)
        if not (is_mended(at) and call.action is Action.EDIT):
            text = shorten(message, _ERROR_CHARACTERS)
            latest[key] = ErrorMet(text, describe_call(call), times[key], is_mended(at))
    newest_first = reversed(latest.values())
    return tuple(sorted(newest_first, key=lambda error: error.mended))[:MOST_ERRORS]


def does(call: ToolCall) -> bool:
    """Return True if a call does more than read or wait."""
    return call.action is not Action.RUN or not all(
        looks(name) or name in _IDLE_COMMANDS for name in names(call.input)
    )


def find_mended(calls: Sequence[ToolCall]) -> Callable[[int], bool]:
    """Return a function that tells whether the failed call at an index succeeded later."""
    worked = {
        name: at for at, call in enumerate(calls) if call.outcome == "ok" for name in goals(call)
    }
    return lambda at: any(worked.get(name, -1) > at for name in goals(calls[at]))


def goals(call: ToolCall) -> frozenset[str]:
    """Return keys for a call's goal, such as the names of its programs."""
    if call.action is Action.RUN:
        return frozenset(name for name in names(call.input) if not looks(name)) or frozenset(
            names(call.input)
        )
    if call.action is Action.EDIT and call.paths:
        return frozenset(f"edit {path}" for path in call.paths)
    return frozenset({f"{call.name} {call.input}"})


def describe_call(call: ToolCall) -> str:
    """Describe a call in one line."""
    text = call.input if call.action is Action.RUN and call.input else f"{call.name} {call.input}"
    return shorten(text, _CALL_CHARACTERS)


def commits(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the short hashes of the session's latest commits."""
    created = [
        name.removeprefix("commit ") for name in _iter_made(turns) if name.startswith("commit ")
    ]
    return tuple(dict.fromkeys(commit[:_HASH_CHARACTERS].lower() for commit in created))[
        -MOST_COMMITS:
    ]


def pull_requests(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the URLs of pull requests that the session opened or the host linked."""
    addresses = [name for name in _iter_made(turns) if name.startswith("https://")]
    linked = [
        turn.text for turn in turns if turn.speaker is Speaker.SYSTEM and turn.flags & Flag.META
    ]
    addresses += [
        url[0] for text in linked for url in _URL.finditer(text) if _PULL_REQUEST.search(url[0])
    ]
    return tuple(dict.fromkeys(addresses))[:_MAX_PULL_REQUESTS]


def _iter_made(turns: Sequence[Turn]) -> Iterator[str]:
    for turn in turns:
        for call in turn.tool_calls:
            yield from call.made


# -- Checks (tests, lints, builds) and failed commands ------------------------


_BUILD = "build"
_CHECK = re.compile(
    r"(?:\S+ )*?(?:pytest|jest|vitest|mocha|rspec|phpunit|tox|nox|ctest|mypy|pyright|ruff|flake8|eslint|tsc|tsgo|clippy"
    r"|golangci-lint|rubocop|shellcheck|unittest|playwright|cypress|make|ninja|biome|credo|dialyzer"
    r"|(?:run[-_.]?)?(?:tests?|check|lint|build|verify|vet|typecheck|type-check|compile)(?:[:._-][\w:.-]*)?)"
)
_STATIC = re.compile(
    r"lint|ruff|eslint|flake8|clippy|biome|credo|shellcheck|rubocop|\bvet\b|mypy|pyright|tsc|tsgo|type-?check|dialyzer"
)
_TESTING = re.compile(r"test|jest|mocha|rspec|phpunit|tox|nox|playwright|cypress")
_BUILDING = re.compile(r"build|compile|(?:make|ninja)$|cargo check")
_NEVER_RAN = re.compile(r"exit 12[67]")
"""Pattern for the outcome of a call whose program is missing or not executable."""

_HIDDEN = re.compile(r"(?<![|\\])\|(?!\|)|\|\|\s*(?:true|:|echo)\b|;\s*(?:true|echo)\b")
"""Pattern for commands that can hide a check's exit code, such as ``pytest | tail``."""

_PLACE = re.compile(r"(?:\./)?[\w.-]+[/\\][\w./\\-]*\w(?:::.*)?|\./\w[\w.-]*")
"""Pattern for paths that limit a check to part of the project, such as ``tests/test_a.py::test_b``."""


def failing(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """Return the failed checks, with their turns, that no later check of the same kind passed.

    A passing check of the whole project also proves that it builds.
    """
    failed_by_kind = {}
    for turn in turns:
        for call in turn.tool_calls:
            kinds = _check_kinds(call)
            if (
                not kinds
                or call.outcome in (None, "rejected")
                or _NEVER_RAN.search(call.outcome or "")
            ):
                continue
            if call.failed:
                failed_by_kind.update(dict.fromkeys(kinds, (turn, call)))
                continue
            words = (
                word
                for part in parts(call.input)
                for word in part[1:]
                if part[0] not in ("cd", "source")
            )
            if not any(map(_PLACE.fullmatch, words)):
                kinds.append(_BUILD)
            for kind in kinds:
                failed_by_kind.pop(kind, None)
    return list({id(call): (turn, call) for turn, call in failed_by_kind.values()}.values())


def find_unmended(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """Return failed commands, other than checks, that did not succeed later."""
    done = [(turn, call) for turn in turns for call in turn.tool_calls]
    is_mended = find_mended([call for _, call in done])
    return [
        (turn, call)
        for at, (turn, call) in enumerate(done)
        if call.action is Action.RUN
        and call.failed
        and does(call)
        and not is_check(call)
        and call.error
        and not is_mended(at)
    ]


def pass_at_the_end(turns: Sequence[Turn]) -> bool:
    """Return True if a check passed after the last change."""
    done = calls(turns, 0, len(turns))
    since = next((at for at in range(len(done), 0, -1) if is_change(done[at - 1])), None)
    if since is None or failing(turns):
        return False
    return any(
        is_check(call) and call.outcome == "ok" and not _HIDDEN.search(call.input)
        for call in done[since:]
    )


def is_check(call: ToolCall) -> bool:
    """Return True if a call tests, lints or builds."""
    return bool(_check_kinds(call))


def _check_kinds(call: ToolCall) -> list[str]:
    if call.action is not Action.RUN:
        return []
    kinds = (_check_kind(name) for name in names(call.input) if _CHECK.fullmatch(name))
    return list(dict.fromkeys(kinds))


def _check_kind(name: str) -> str:
    if _TESTING.search(name):
        return "test"
    if _STATIC.search(name):
        return "lint"
    return _BUILD if _BUILDING.search(name) else name


# -- The agent's final message ------------------------------------------------


_FINAL_CHARACTERS = 200
_BRIEF_CHARACTERS = 25
_EDGE_STATEMENTS = 3
"""Number of statements at the start and at the end of a report that can state its result."""


def is_report(turn: Turn) -> bool:
    """Return True if a turn's text reports the result of the work."""
    if announces(turn.text):
        return False
    if not turn.tool_calls:
        return bool(turn.text)
    if turn.tool_calls[-1].outcome in (None, "rejected"):
        return False
    return says_done(turn.text) or len(turn.text) >= _FINAL_CHARACTERS or _is_question(turn.text)


def announces(text: str) -> bool:
    """Return True if the text ends by announcing the next step, such as "Let me run the tests:"."""
    if _leads(text.rstrip()):
        return True
    return any(
        language_of(sentence).summary.announces.search(sentence)
        for sentence in _without_offers(text)[-1:]
    )


def says_done(text: str) -> bool:
    """Return True if the text says that the work is complete, such as "All tests pass"."""
    pattern = language_of(text).concluded.done
    return any(pattern.search(line) for line in text.splitlines() if line.strip())


def states_work(text: str) -> bool:
    """Return True if the text describes completed work, such as "The pears are pruned"."""
    return any(
        language_of(sentence).concluded.work.search(sentence)
        for sentence in _result_sentences(text)
    )


def speaks_against(text: str) -> str:
    """Return the first sentence that reports a failure or unfinished work, or an empty string.

    In a long message, only the first sentence and explicit statements count.
    """
    statements = _statements_of(text)
    opening_part = statements if len(statements) <= _EDGE_STATEMENTS else statements[:1]
    denials = (
        statement
        for at, statement in enumerate(opening_part)
        if _speaks_against(statement, " ".join(statements[at + 1 :][:_EDGE_STATEMENTS]))
    )
    return next(denials, "") or says_undone(text)


def says_undone(text: str) -> str:
    """Return a sentence that explicitly reports failure or unfinished work, or an empty string."""
    sentences = (
        sentence
        for sentence in _result_sentences(text)
        if _cues(sentence).undone.search(_cues(sentence).beside.sub("", sentence))
    )
    return giving_up(text) or next(sentences, "")


def giving_up(text: str) -> str:
    """Return the last sentence that reports failure, with the next one if it is short."""
    pattern = language_of(text).summary.gave_up
    statements = _statements_of(text)
    return next(
        (
            _with_next(statements, at)
            for at in reversed(range(len(statements)))
            if pattern.search(statements[at])
        ),
        "",
    )


def questions(text: str) -> list[str]:
    """Return the questions at the end of a message, except offers of help."""
    return [
        statement
        for statement in _statements_of(text)[-_EDGE_STATEMENTS:]
        if _is_question(statement) and not _offers(statement)
    ]


def asks_last(text: str) -> str:
    """Return the final request for the owner's input in a message, or an empty string."""
    needed = next(
        (
            sentence
            for sentence in _statements_of(text)[-2:]
            if language_of(sentence).summary.awaits.search(sentence)
        ),
        "",
    )
    last = _without_offers(text)[-1:]
    return needed or next((sentence for sentence in last if _is_question(sentence)), "")


def opening(text: str) -> str:
    """Return the first sentence that does not end with a colon.

    If it is as short as "Done.", include the next one.
    """
    statements = _statements_of(text)
    at = next((at for at, statement in enumerate(statements) if not _leads(statement)), None)
    return "" if at is None else _with_next(statements, at)


def _statements_of(text: str) -> list[str]:
    return [statement.text for passage in passages(text) for statement in passage.statements]


def _result_sentences(text: str) -> list[str]:
    statements = _statements_of(text)
    between = [
        statement
        for statement in statements[_EDGE_STATEMENTS:-_EDGE_STATEMENTS]
        if _leads(statement)
    ]
    headings = [passage.heading for passage in passages(text) if passage.heading]
    return [
        *statements[:_EDGE_STATEMENTS],
        *headings,
        *between,
        *statements[_EDGE_STATEMENTS:][-_EDGE_STATEMENTS:],
    ]


def _cues(sentence: str) -> ConcludedCues:
    return language_of(sentence).concluded


def _speaks_against(sentence: str, following: str) -> bool:
    cues = _cues(sentence)
    remainder = cues.mended.sub("", f"{cues.beside.sub('', sentence)}\n{following}").partition(
        "\n"
    )[0]
    return bool(cues.against.search(remainder))


def _without_offers(text: str) -> list[str]:
    statements = _statements_of(text)
    while statements and _offers(statements[-1]):
        statements.pop()
    return statements


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("*_ )）\"'").endswith(("?", "？"))


def _offers(sentence: str) -> bool:
    return bool(language_of(sentence).summary.offer.search(sentence))


def _with_next(statements: Sequence[str], at: int) -> str:
    following = [statement for statement in statements[at + 1 : at + 2] if not _leads(statement)]
    return (
        language_of(statements[at]).joiner.join([statements[at], *following])
        if len(statements[at]) <= _BRIEF_CHARACTERS
        else statements[at]
    )


def _leads(sentence: str) -> bool:
    return sentence.endswith((":", "："))


# -- Todo lists ---------------------------------------------------------------
# Items come from tool calls and messages.


_BOX = re.compile(r"(?:^|; )\[ \] (.*?)(?=; \[[ x]\] |$)")
_UNTICKED = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[ \][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_TASK = re.compile(r"#(\w+)(?: (\w+))?")
_OVER = frozenset({"completed", "done", "deleted", "cancelled"})


def open_todos(turns: Sequence[Turn]) -> list[tuple[Turn, str]]:
    """Return the open items of the agent's last todo list, and its open tasks."""
    items = []
    tasks = {}
    for turn in turns:
        for call in turn.tool_calls if turn.trust is Trust.TRUSTED else ():
            if call.action is Action.PLAN and ("[ ] " in call.input or "[x] " in call.input):
                items = [(turn, text) for text in _BOX.findall(call.input)]
            for name in call.made:
                if name.startswith("task "):
                    tasks[name.removeprefix("task ")] = (turn, call.input)
            if number := _completed_task(call):
                tasks.pop(number, None)
    return [*items, *tasks.values()]


def find_unticked(text: str) -> list[str]:
    """Return the text of the open checkboxes in a message, such as ``- [ ] profile``."""
    return _UNTICKED.findall(without_fences(text)) if "[ ]" in text else []


def ticks(call: ToolCall) -> bool:
    """Return True if a call completes a todo item or task."""
    return call.action is Action.PLAN and (
        "[x] " in call.input or _completed_task(call) is not None
    )


def _completed_task(call: ToolCall) -> str | None:
    match = _TASK.fullmatch(call.input) if call.name == "TaskUpdate" else None
    return match[1] if match and match[2] in _OVER else None
