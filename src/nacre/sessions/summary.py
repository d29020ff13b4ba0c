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


def all_calls(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """Return a session's calls in order, each with its turn. Include sub-agents' calls."""
    return [(turn, call) for turn in turns for call in turn.tool_calls]


def files(calls: Iterable[ToolCall], cwd: str | None) -> tuple[FileTouched, ...]:
    """Return the files read or changed, most often changed first."""
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
    """Return unresolved errors, and then resolved errors. Each group starts with the newest error."""
    is_mended = find_mended(calls)
    latest: dict[str, tuple[int, ToolCall, str]] = {}
    times: Counter[str] = Counter()
    for at, call in enumerate(calls):
        message = (call.error or "").strip() or (call.outcome or "").removeprefix("error").lstrip(
            ": "
        )
        message = _EXIT.sub("", message).strip()
        if not (call.failed and message) or call.action in _READING or not does(call):
            continue
        key = _NUMBERS.sub("#", one_line(message).lower())[:_CALL_CHARACTERS]
        times[key] += 1
        latest[key] = (at, call, message)
    unique_errors = [
        (
            at,
            ErrorMet(
                shorten(message, _ERROR_CHARACTERS), describe_call(call), times[key], is_mended(at)
            ),
        )
        for key, (at, call, message) in latest.items()
    ]
    unique_errors = [
        item
        for item in unique_errors
        if not (item[1].mended and calls[item[0]].action is Action.EDIT)
    ]
    unique_errors.sort(key=lambda item: (item[1].mended, -item[0]))
    return tuple(error for _, error in unique_errors[:MOST_ERRORS])


def does(call: ToolCall) -> bool:
    """Return True if a call does more than read or wait."""
    return call.action is not Action.RUN or not all(
        looks(name) or name in _IDLE_COMMANDS for name in names(call.input)
    )


def find_mended(calls: Sequence[ToolCall]) -> Callable[[int], bool]:
    """Return a function that tells whether the failed call at a position succeeded later."""
    worked = {
        name: at for at, call in enumerate(calls) if call.outcome == "ok" for name in attempt(call)
    }
    return lambda at: any(worked.get(name, -1) > at for name in attempt(calls[at]))


def attempt(call: ToolCall) -> frozenset[str]:
    """Return keys that identify what a call tries to do, such as the names of its programs."""
    if call.action is Action.RUN:
        return frozenset(name for name in names(call.input) if not looks(name)) or frozenset(
            names(call.input)
        )
    if call.action is Action.EDIT and call.paths:
        return frozenset(f"edit {path}" for path in call.paths)
    return frozenset({f"{call.name} {call.input}"})


def describe_call(call: ToolCall) -> str:
    """Return a one-line description of a call."""
    text = call.input if call.action is Action.RUN and call.input else f"{call.name} {call.input}"
    return shorten(text, _CALL_CHARACTERS)


def commits(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the short hashes of the latest commits."""
    created = [
        name.removeprefix("commit ") for name in _iter_made(turns) if name.startswith("commit ")
    ]
    return tuple(dict.fromkeys(commit[:_HASH_CHARACTERS].lower() for commit in created))[
        -MOST_COMMITS:
    ]


def pull_requests(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the addresses of pull requests that the session opened or the host linked."""
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
"""Exit codes of missing or non-executable programs."""

_HIDDEN = re.compile(r"(?<![|\\])\|(?!\|)|\|\|\s*(?:true|:|echo)\b|;\s*(?:true|echo)\b")
"""Pattern for commands whose exit code can come from another command, as in `pytest | tail`."""

_PLACE = re.compile(r"(?:\./)?[\w.-]+[/\\][\w./\\-]*\w(?:::.*)?|\./\w[\w.-]*")
"""An argument that limits a check to a part, such as `./parser` or `tests/test_a.py::test_b`."""


def failing(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """Return failed checks with their turns, unless a check of the same kind passed later.

    Any passing check also proves that the build works, unless the check covers only part of the
    project.
    """
    failed_by_kind: dict[str, tuple[Turn, ToolCall]] = {}
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
            for kind in (
                kinds
                if any(
                    _PLACE.fullmatch(word)
                    for part in parts(call.input)
                    if part[0] not in ("cd", "source")
                    for word in part[1:]
                )
                else (*kinds, _BUILD)
            ):
                failed_by_kind.pop(kind, None)
    return list({id(call): (turn, call) for turn, call in failed_by_kind.values()}.values())


def find_unmended(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """Return failed commands that are not checks and did not succeed later."""
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


def _check_kinds(call: ToolCall) -> set[str]:
    if call.action is not Action.RUN:
        return set()
    return {_check_kind(name) for name in names(call.input) if _CHECK.fullmatch(name)}


def _check_kind(name: str) -> str:
    """Return a check's kind from its name. A generic name such as "make check" is a separate kind."""
    if _TESTING.search(name):
        return "test"
    if _STATIC.search(name):
        return "lint"
    return _BUILD if _BUILDING.search(name) else name


# -- The agent's final words --------------------------------------------------


_FINAL_CHARACTERS = 200
_BRIEF_CHARACTERS = 25
_EDGE_STATEMENTS = 3
"""The result of a report is expected in this many first or last statements."""


def is_report(turn: Turn) -> bool:
    """Return True if the text of a turn reports the result of the work."""
    if announces(turn.text):
        return False
    if not turn.tool_calls:
        return bool(turn.text)
    if turn.tool_calls[-1].outcome in (None, "rejected"):
        return False
    return says_done(turn.text) or len(turn.text) >= _FINAL_CHARACTERS or _is_question(turn.text)


def announces(text: str) -> bool:
    """Return True if text ends by announcing the next action, such as "Let me run the tests:"."""
    if _leads(text.rstrip()):
        return True
    return any(
        language_of(sentence).summary.announces.search(sentence)
        for sentence in _without_offers(text)[-1:]
    )


def says_done(text: str) -> bool:
    """Return True if text says that work is complete, such as "All tests pass"."""
    pattern = language_of(text).concluded.done
    return any(pattern.search(line) for line in text.splitlines() if line.strip())


def states_work(text: str) -> bool:
    """Return True if text describes completed work, such as "The pears are pruned"."""
    return any(
        language_of(sentence).concluded.work.search(sentence)
        for sentence in _result_sentences(text)
    )


def speaks_against(text: str) -> str:
    """Return the first sentence that reports failure or unfinished work.

    In a long text, only the first sentence and explicit statements count.
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
    return giving_up(text) or next(
        (
            sentence
            for sentence in _result_sentences(text)
            if bool(_cues(sentence).undone.search(_cues(sentence).beside.sub("", sentence)))
        ),
        "",
    )


def giving_up(text: str) -> str:
    """Return the last sentence that reports failure. If it is short, add the next sentence."""
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
    """Return the questions at the end of a text, except offers."""
    return [
        statement
        for statement in _statements_of(text)[-_EDGE_STATEMENTS:]
        if _is_question(statement) and not _offers(statement)
    ]


def asks_last(text: str) -> str:
    """Return the sentence that asks for the owner's input, or an empty string. Offers are ignored."""
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
    """Return the first sentence that does not only introduce the next one.

    A short sentence, such as "Done.", is returned with the next sentence.
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
    """Return True if a sentence reports failure, unless the next words resolve it."""
    cues = _cues(sentence)
    rest = cues.mended.sub("", f"{cues.beside.sub('', sentence)}\n{following}").partition("\n")[0]
    return bool(cues.against.search(rest))


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
    """Return open items from the agent's last list and from its separate tasks."""
    return [*_listed(turns), *_tasks(turns)]


def find_unticked(text: str) -> list[str]:
    """Return open checkboxes in a message, such as ``- [ ] profile``."""
    return _UNTICKED.findall(without_fences(text)) if "[ ]" in text else []


def ticks(call: ToolCall) -> bool:
    """Return True if a call completes a list item or task."""
    return call.action is Action.PLAN and ("[x] " in call.input or _is_over(call))


def _listed(turns: Sequence[Turn]) -> Iterator[tuple[Turn, str]]:
    plans = [(turn, call) for turn, call in _trusted_calls(turns) if call.action is Action.PLAN]
    lists = [(turn, call) for turn, call in plans if "[ ] " in call.input or "[x] " in call.input]
    for turn, call in lists[-1:]:
        yield from ((turn, text) for text in _BOX.findall(call.input))


def _tasks(turns: Sequence[Turn]) -> Iterator[tuple[Turn, str]]:
    tasks: dict[str, tuple[Turn, str]] = {}
    for turn, call in _trusted_calls(turns):
        for name in call.made:
            if name.startswith("task "):
                tasks[name.removeprefix("task ")] = (turn, call.input)
        match = _TASK.fullmatch(call.input)
        if match and _is_over(call):
            tasks.pop(match[1], None)
    yield from tasks.values()


def _is_over(call: ToolCall) -> bool:
    match = _TASK.fullmatch(call.input) if call.name == "TaskUpdate" else None
    return bool(match and match[2] in _OVER)


def _trusted_calls(turns: Sequence[Turn]) -> Iterator[tuple[Turn, ToolCall]]:
    for turn in turns:
        if turn.trust is Trust.TRUSTED:
            yield from ((turn, call) for call in turn.tool_calls)
