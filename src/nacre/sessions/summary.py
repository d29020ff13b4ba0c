"""Reads: what was done in a session: tools, files, commands, errors, and what came of it."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from nacre.base.text import one_line, shorten
from nacre.learn.reading import calls, changes, is_own, passages, without_fences
from nacre.learn.sentences import ConcludedCues, Pattern, is_content, language_of
from nacre.readers.conversation import looks, names, parts
from nacre.values.session import (
    Action,
    CommandUse,
    ErrorMet,
    FileTouched,
    Flag,
    Speaker,
    ToolCall,
    ToolUse,
    Trust,
    Turn,
)

MOST_COMMITS = 20
MOST_URLS = 15
MOST_PACKAGES = 20
MOST_ERRORS = 10
_MOST_PULL_REQUESTS = 10
_MOST_COMMANDS = 20
_ERROR_CHARACTERS = 300
_CALL_CHARACTERS = 160
_HASH = 7

_HANDLE = re.compile(r"output|kill|stdin|status|wait", re.IGNORECASE)
"""Tools that deal with a command that runs already."""

_IDLE = frozenset(
    "true false sleep yes printf test [ kill pkill date nl awk sed bash sh zsh git gh npm npx go".split()
)
_URL = re.compile(r"https?://[^\s<>\"'`)\]}|\\，。；）】》]{4,500}")
_PULL_REQUEST = re.compile(r"/(?:pull|merge_requests)/\d+(?:$|[/#?])")
_HERE = re.compile(r"https?://(?:localhost|127\.|0\.0\.0\.0|\[::1?\]|example\.(?:com|org|net)\b)")
_CUT = re.compile("…|REDACTED")
_END = ".,;:!?*_~'\""
_EXIT = re.compile(
    r"^(?:\(no output\)\s*)?(?:exit \d+|Command exited with code \d+|Sibling tool call errored)$",
    re.MULTILINE,
)
_LOOKING = frozenset({Action.READ, Action.SEARCH, Action.FETCH})
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)
_INSTALLING = {
    "pip": {"install"},
    "pip3": {"install"},
    "pipx": {"install"},
    "uv": {"add", "pip install", "tool install"},
    "poetry": {"add"},
    "pdm": {"add"},
    "conda": {"install"},
    "mamba": {"install"},
    "npm": {"install", "i", "add"},
    "pnpm": {"add", "install", "i"},
    "yarn": {"add"},
    "bun": {"add", "install"},
    "cargo": {"add", "install"},
    "go": {"get", "install"},
    "gem": {"install"},
    "composer": {"require"},
    "apt": {"install"},
    "apt-get": {"install"},
    "apk": {"add"},
    "dnf": {"install"},
    "yum": {"install"},
    "brew": {"install"},
    "dotnet": {"add package"},
}
_VALUED = frozenset(
    "-r --requirement -c --constraint -e --editable -t --target --python -p --prefix --index-url -i --group --extra "
    "--channel --registry".split()
)
_PACKAGE = re.compile(
    r"(@?[A-Za-z][\w./-]*?)(?:\[[\w,-]*\])?(?:@?[=<>~!^]=?.*|@[\w.^~*-]+|:[\w.]+)?"
)


def all_calls(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """The calls of a session in order, with their turns; those of sub-agents that speak in it, too."""
    return [(turn, call) for turn in turns for call in turn.tool_calls]


def tools(calls: Iterable[ToolCall]) -> tuple[ToolUse, ...]:
    """Tools by how often they were called."""
    done = list(calls)
    failed = Counter(call.name for call in done if call.failed)
    actions = {call.name: call.action for call in reversed(done)}
    used = Counter(call.name for call in done)
    return tuple(
        ToolUse(name, actions[name], count, failed[name]) for name, count in used.most_common()
    )


def files(calls: Iterable[ToolCall], cwd: str | None) -> tuple[FileTouched, ...]:
    """Files that were read or changed, those changed most often first."""
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


def commands(calls: Iterable[ToolCall]) -> tuple[CommandUse, ...]:
    """Commands by how often they ran; one that failed is the last on its line."""
    runs: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for call in calls:
        if call.action is not Action.RUN or call.outcome == "rejected" or _HANDLE.search(call.name):
            continue
        found = [
            name
            for name in dict.fromkeys(names(call.input))
            if not looks(name) and name not in _IDLE
        ]
        runs.update(found)
        failed.update(found[-1:] if call.failed else ())
    return tuple(
        CommandUse(name, count, failed[name]) for name, count in runs.most_common(_MOST_COMMANDS)
    )


def errors(calls: Sequence[ToolCall]) -> tuple[ErrorMet, ...]:
    """What failed, those that were never mended first, the latest of them first."""
    is_mended = mended(calls)
    met: dict[str, tuple[int, ToolCall, str]] = {}
    times: Counter[str] = Counter()
    for at, call in enumerate(calls):
        said = (call.error or "").strip() or (call.outcome or "").removeprefix("error").lstrip(": ")
        said = _EXIT.sub("", said).strip()
        if not (call.failed and said) or call.action in _LOOKING or not does(call):
            continue
        key = _NUMBERS.sub("#", one_line(said).lower())[:_CALL_CHARACTERS]
        times[key] += 1
        met[key] = (at, call, said)
    found = [
        (at, ErrorMet(shorten(said, _ERROR_CHARACTERS), told(call), times[key], is_mended(at)))
        for key, (at, call, said) in met.items()
    ]
    found = [
        item for item in found if not (item[1].mended and calls[item[0]].action is Action.EDIT)
    ]
    found.sort(key=lambda item: (item[1].mended, -item[0]))
    return tuple(error for _, error in found[:MOST_ERRORS])


def does(call: ToolCall) -> bool:
    """Whether a call is more than a look or a pause: of commands, whether one of its programs is."""
    return call.action is not Action.RUN or not all(
        looks(name) or name in _IDLE for name in names(call.input)
    )


def mended(calls: Sequence[ToolCall]) -> Callable[[int], bool]:
    """Tells of the call at a place that failed whether the same kind of call came out after it."""
    worked = {
        name: at for at, call in enumerate(calls) if call.outcome == "ok" for name in attempt(call)
    }
    return lambda at: any(worked.get(name, -1) > at for name in attempt(calls[at]))


def attempt(call: ToolCall) -> frozenset[str]:
    """What would be the same attempt: a command's programs that do not only look, the files of an edit."""
    if call.action is Action.RUN:
        return frozenset(name for name in names(call.input) if not looks(name)) or frozenset(
            names(call.input)
        )
    if call.action is Action.EDIT and call.paths:
        return frozenset(f"edit {path}" for path in call.paths)
    return frozenset({f"{call.name} {call.input}"})


def told(call: ToolCall) -> str:
    """A call in one line: the command itself, else the tool and what it was given."""
    text = call.input if call.action is Action.RUN and call.input else f"{call.name} {call.input}"
    return shorten(text, _CALL_CHARACTERS)


def commits(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Short hashes of commits that were made, the last of too many."""
    made = [name.removeprefix("commit ") for name in _made(turns) if name.startswith("commit ")]
    return tuple(dict.fromkeys(commit[:_HASH].lower() for commit in made))[-MOST_COMMITS:]


def pull_requests(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Addresses of pull requests that were opened, or that the host linked."""
    made = [name for name in _made(turns) if name.startswith("https://")]
    linked = [
        turn.text for turn in turns if turn.speaker is Speaker.SYSTEM and turn.flags & Flag.META
    ]
    made += [
        url[0] for text in linked for url in _URL.finditer(text) if _PULL_REQUEST.search(url[0])
    ]
    return tuple(dict.fromkeys(made))[:_MOST_PULL_REQUESTS]


def urls(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Addresses that the owner or the agent named, or that were fetched."""
    opened = set(pull_requests(turns))
    found = (
        _request_alone(url) for url in _addresses(turns) if not _HERE.match(url) and "/" in url[8:]
    )
    return tuple(url for url in dict.fromkeys(found) if url not in opened)[:MOST_URLS]


def packages(calls: Iterable[ToolCall]) -> tuple[str, ...]:
    """What was installed, or asked for by name."""
    found = (
        package
        for call in calls
        if call.action is Action.RUN and call.outcome == "ok"
        for part in parts(call.input.partition("<<")[0])
        for package in _installed(part)
    )
    return tuple(dict.fromkeys(found))[:MOST_PACKAGES]


def _installed(part: Sequence[str]) -> Iterator[str]:
    words = [
        word
        for word in part
        if word not in ("sudo", "-m", "python", "python3", "time", "env") and word
    ]
    for taken in (1, 2):
        head, rest = words[:1], words[1 + taken :]
        if head and " ".join(words[1 : 1 + taken]) in _INSTALLING.get(
            head[0].rsplit("/", 1)[-1], ()
        ):
            yield from _packages(rest)
            return


def _packages(words: Sequence[str]) -> Iterator[str]:
    skips = False
    for word in words:
        if word[:1] in "<>|&":
            return
        if (
            skips
            or word.startswith(("-", ".", "/", "~", "$", "http:", "https:", "git+"))
            or word.endswith("…")
        ):
            skips = word in _VALUED
            continue
        match = _PACKAGE.fullmatch(word)
        if match and not word.endswith((".txt", ".whl", ".tgz", ".gz")):
            yield match[1]


def _made(turns: Sequence[Turn]) -> Iterator[str]:
    for turn in turns:
        for call in turn.tool_calls:
            yield from call.made


def _addresses(turns: Sequence[Turn]) -> Iterator[str]:
    for turn in turns:
        texts = [turn.text] if _is_trusted(turn) and "http" in turn.text else []
        texts += [
            call.input
            for call in turn.tool_calls
            if call.action is Action.FETCH and "http" in call.input
        ]
        for text in texts:
            yield from (
                url[0].rstrip(_END)
                for url in _URL.finditer(text)
                if "…" not in url[0] and "REDACTED" not in url[0]
            )


def _request_alone(url: str) -> str:
    match = _PULL_REQUEST.search(url)
    return url[: match.end()].rstrip("/#?") if match else url


def _is_trusted(turn: Turn) -> bool:
    """Whether the words are the owner's, or the agent's own."""
    by_owner = turn.speaker is Speaker.OWNER and turn.trust is Trust.TRUSTED and is_content(turn)
    return by_owner or is_own(turn)


# ----------------------------------------------------------------------------
# Reads: the checks that ran in a session (tests, lints, builds) and whether they pass, and commands
# that failed.


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
"""There is no such program, or it may not be run."""

_HIDDEN = re.compile(r"(?<![|\\])\|(?!\|)|\|\|\s*(?:true|:|echo)\b|;\s*(?:true|echo)\b")
"""What else decides how the command came out: `pytest | tail`."""

_PLACE = re.compile(r"(?:\./)?[\w.-]+[/\\][\w./\\-]*\w(?:::.*)?|\./\w[\w.-]*")
"""A word that names a part of the whole: `./parser`, `tests/test_a.py::test_b`."""


def failing(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """The checks that failed, each with its turn, and after which none of their sort passed: tests, lints, or builds,
    which whatever passes shows to work, unless it was only of a part.
    """
    red: dict[str, tuple[Turn, ToolCall]] = {}
    for turn in turns:
        for call in turn.tool_calls:
            sorts = _sorts(call)
            if (
                not sorts
                or call.outcome in (None, "rejected")
                or _NEVER_RAN.search(call.outcome or "")
            ):
                continue
            if call.failed:
                red.update(dict.fromkeys(sorts, (turn, call)))
                continue
            for sort in sorts if _is_of_a_part(call) else (*sorts, _BUILD):
                red.pop(sort, None)
    return list({id(call): (turn, call) for turn, call in red.values()}.values())


def unmended(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """The other commands that failed, and were not seen to work after."""
    done = [(turn, call) for turn in turns for call in turn.tool_calls]
    is_mended = mended([call for _, call in done])
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
    """Whether something was changed, and a check was seen to pass after the last change."""
    done = calls(turns, 0, len(turns))
    since = next((at for at in range(len(done), 0, -1) if changes(done[at - 1])), None)
    if since is None or failing(turns):
        return False
    return any(
        is_check(call) and call.outcome == "ok" and not _HIDDEN.search(call.input)
        for call in done[since:]
    )


def is_check(call: ToolCall) -> bool:
    """Whether a call tests, lints or builds."""
    return bool(_sorts(call))


def _sorts(call: ToolCall) -> set[str]:
    """Which sorts of checks a call runs."""
    if call.action is not Action.RUN:
        return set()
    return {_sort(name) for name in names(call.input) if _CHECK.fullmatch(name)}


def _sort(name: str) -> str:
    """What a check is, by its name; one that only says so is of its own sort: "make check"."""
    if _TESTING.search(name):
        return "test"
    if _STATIC.search(name):
        return "lint"
    return _BUILD if _BUILDING.search(name) else name


def _is_of_a_part(call: ToolCall) -> bool:
    """Whether a check names the part it looks at: `go test ./parser`, and not `go test ./...`."""
    return any(
        _PLACE.fullmatch(word)
        for part in parts(call.input)
        if part[0] not in ("cd", "source")
        for word in part[1:]
    )


# ----------------------------------------------------------------------------
# Reads: what an agent's last words say of its work: that it is done, that it is not, what it asks,
# what comes next.


_FINAL = 200
_BRIEF = 25
_ENDS = 3
"""Statements at the beginning and at the end of a report that tell how things stand; those between explain."""


def is_report(turn: Turn) -> bool:
    """Whether a turn ends with words: it has no calls, or, in tools that put both into one, its words sound final."""
    if announces(turn.text):
        return False
    if not turn.tool_calls:
        return bool(turn.text)
    if turn.tool_calls[-1].outcome in (None, "rejected"):
        return False
    return says_done(turn.text) or len(turn.text) >= _FINAL or _is_question(turn.text)


def announces(text: str) -> bool:
    """Whether words end with what their speaker does next: "Let me run the tests:"."""
    if _leads(text.rstrip()):
        return True
    return any(language_of(one).summary.announces.search(one) for one in _without_offers(text)[-1:])


def says_done(text: str) -> bool:
    """Whether words say that it is done: "All tests pass"."""
    return _holds(text, language_of(text).concluded.done)


def tells_work(text: str) -> bool:
    """Whether words tell what was done: "The pears are pruned"."""
    return any(language_of(one).concluded.work.search(one) for one in _telling(text))


def speaks_against(text: str) -> str:
    """The first sentence that says that the work failed, or is left: of a long text only how it opens is taken so."""
    said = _said(text)
    denied = said if len(said) <= _ENDS else said[:1]
    held = (
        one
        for at, one in enumerate(denied)
        if _speaks_against(one, " ".join(said[at + 1 :][:_ENDS]))
    )
    return next(held, "") or says_undone(text)


def says_undone(text: str) -> str:
    """The first sentence that says so outright; of a long text the ends and headings are read."""
    return giving_up(text) or next(
        (one for one in _telling(text) if _holds_besides(one, _cues(one).undone)), ""
    )


def giving_up(text: str) -> str:
    """The last sentence that says that it did not get there, with what follows where it is short."""
    wanted = language_of(text).summary.gave_up
    said = _said(text)
    return next(
        (_with_next(said, at) for at in reversed(range(len(said))) if wanted.search(said[at])), ""
    )


def questions(text: str) -> list[str]:
    """What an agent asks at the end of its words, without what asks for nothing in particular."""
    return [one for one in _said(text)[-_ENDS:] if _is_question(one) and not _offers(one)]


def asks_last(text: str) -> str:
    """The question with which words end, or what they say they need of the owner; not an offer to do more."""
    needed = next(
        (one for one in _said(text)[-2:] if language_of(one).summary.awaits.search(one)), ""
    )
    last = _without_offers(text)[-1:]
    return needed or next((one for one in last if _is_question(one)), "")


def opening(text: str) -> str:
    """The first sentence, with what follows where it is short: "Done."; none where it only leads into something."""
    said = _said(text)
    at = next((at for at, one in enumerate(said) if not _leads(one)), None)
    return "" if at is None else _with_next(said, at)


def _said(text: str) -> list[str]:
    return [statement.text for passage in passages(text) for statement in passage.statements]


def _telling(text: str) -> list[str]:
    """Sentences that tell how things stand."""
    said = _said(text)
    between = [one for one in said[_ENDS:-_ENDS] if _leads(one)]
    headings = [passage.heading for passage in passages(text) if passage.heading]
    return [*said[:_ENDS], *headings, *between, *said[_ENDS:][-_ENDS:]]


def _cues(sentence: str) -> ConcludedCues:
    return language_of(sentence).concluded


def _holds_besides(sentence: str, wanted: Pattern) -> bool:
    """Whether a sentence says so itself, and not of a reason, or of the trouble that was mended."""
    return bool(wanted.search(_cues(sentence).beside.sub("", sentence)))


def _speaks_against(sentence: str, following: str) -> bool:
    """Whether a sentence denies the work, and tells of no trouble that is over by what follows."""
    cues = _cues(sentence)
    told = cues.mended.sub("", f"{cues.beside.sub('', sentence)}\n{following}").partition("\n")[0]
    return bool(cues.against.search(told))


def _without_offers(text: str) -> list[str]:
    said = _said(text)
    while said and _offers(said[-1]):
        said.pop()
    return said


def _holds(text: str, wanted: Pattern) -> bool:
    """Whether a line of a text says so. Over many lines of signs alone, expressions would go back and forth."""
    return any(wanted.search(line) for line in text.splitlines() if line.strip())


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("*_ )）\"'").endswith(("?", "？"))


def _offers(sentence: str) -> bool:
    return bool(language_of(sentence).summary.offer.search(sentence))


def _with_next(said: Sequence[str], at: int) -> str:
    following = [one for one in said[at + 1 : at + 2] if not _leads(one)]
    return (
        language_of(said[at]).joiner.join([said[at], *following])
        if len(said[at]) <= _BRIEF
        else said[at]
    )


def _leads(sentence: str) -> bool:
    return sentence.endswith((":", "："))


# ----------------------------------------------------------------------------
# Reads: what an agent's own lists have left to do, those that it keeps and those that it writes into
# its words.


_BOX = re.compile(r"(?:^|; )\[ \] (.*?)(?=; \[[ x]\] |$)")
_UNTICKED = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[ \][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_TASK = re.compile(r"#(\w+)(?: (\w+))?")
_OVER = frozenset({"completed", "done", "deleted", "cancelled"})


def open_todos(turns: Sequence[Turn]) -> list[tuple[Turn, str]]:
    """What the agent's last list has left, and what is left of tasks that it made one by one."""
    return [*_listed(turns), *_tasks(turns)]


def unticked(text: str) -> list[str]:
    """What a list of boxes in an agent's words has left: ``- [ ] profile``."""
    return _UNTICKED.findall(without_fences(text)) if "[ ]" in text else []


def ticks(call: ToolCall) -> bool:
    """Whether a call ticks something off: in a list, or a task by its number."""
    return call.action is Action.PLAN and ("[x] " in call.input or _is_over(call))


def _listed(turns: Sequence[Turn]) -> Iterator[tuple[Turn, str]]:
    plans = [(turn, call) for turn, call in _trusted_calls(turns) if call.action is Action.PLAN]
    lists = [(turn, call) for turn, call in plans if "[ ] " in call.input or "[x] " in call.input]
    for turn, call in lists[-1:]:
        yield from ((turn, text) for text in _BOX.findall(call.input))


def _tasks(turns: Sequence[Turn]) -> Iterator[tuple[Turn, str]]:
    made: dict[str, tuple[Turn, str]] = {}
    for turn, call in _trusted_calls(turns):
        for name in call.made:
            if name.startswith("task "):
                made[name.removeprefix("task ")] = (turn, call.input)
        match = _TASK.fullmatch(call.input)
        if match and _is_over(call):
            made.pop(match[1], None)
    yield from made.values()


def _is_over(call: ToolCall) -> bool:
    match = _TASK.fullmatch(call.input) if call.name == "TaskUpdate" else None
    return bool(match and match[2] in _OVER)


def _trusted_calls(turns: Sequence[Turn]) -> Iterator[tuple[Turn, ToolCall]]:
    for turn in turns:
        if turn.trust is Trust.TRUSTED:
            yield from ((turn, call) for call in turn.tool_calls)
