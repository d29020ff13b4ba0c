"""Reads: what was done in a session: tools, files, commands, errors, and what came of it."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from nacre.extraction.reading.course import is_own
from nacre.extraction.reading.speech import is_content
from nacre.text.passages import one_line, shorten
from nacre.transcripts.commands import looks, names, parts
from nacre.values.session import Action, Flag, Speaker, ToolCall, Trust, Turn
from nacre.values.summary import CommandUse, ErrorMet, FileTouched, ToolUse

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

_IDLE = frozenset("true false sleep yes printf test [ kill pkill date nl awk sed bash sh zsh git gh npm npx go".split())
_URL = re.compile(r"https?://[^\s<>\"'`)\]}|\\，。；）】》]{4,500}")
_PULL_REQUEST = re.compile(r"/(?:pull|merge_requests)/\d+(?:$|[/#?])")
_HERE = re.compile(r"https?://(?:localhost|127\.|0\.0\.0\.0|\[::1?\]|example\.(?:com|org|net)\b)")
_CUT = re.compile("…|REDACTED")
_END = ".,;:!?*_~'\""
_EXIT = re.compile(
    r"^(?:\(no output\)\s*)?(?:exit \d+|Command exited with code \d+|Sibling tool call errored)$", re.MULTILINE
)
_LOOKING = frozenset({Action.READ, Action.SEARCH, Action.FETCH})
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)
_INSTALLING = {
    "pip": {"install"}, "pip3": {"install"}, "pipx": {"install"}, "uv": {"add", "pip install", "tool install"},
    "poetry": {"add"}, "pdm": {"add"}, "conda": {"install"}, "mamba": {"install"}, "npm": {"install", "i", "add"},
    "pnpm": {"add", "install", "i"}, "yarn": {"add"}, "bun": {"add", "install"}, "cargo": {"add", "install"},
    "go": {"get", "install"}, "gem": {"install"}, "composer": {"require"}, "apt": {"install"}, "apt-get": {"install"},
    "apk": {"add"}, "dnf": {"install"}, "yum": {"install"}, "brew": {"install"}, "dotnet": {"add package"},
}  # fmt: skip
_VALUED = frozenset(
    "-r --requirement -c --constraint -e --editable -t --target --python -p --prefix --index-url -i --group --extra "
    "--channel --registry".split()
)
_PACKAGE = re.compile(r"(@?[A-Za-z][\w./-]*?)(?:\[[\w,-]*\])?(?:@?[=<>~!^]=?.*|@[\w.^~*-]+|:[\w.]+)?")


def all_calls(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """The calls of a session in order, with their turns; those of sub-agents that speak in it, too."""
    return [(turn, call) for turn in turns for call in turn.tool_calls]


def tools(calls: Iterable[ToolCall]) -> tuple[ToolUse, ...]:
    """Tools by how often they were called."""
    done = list(calls)
    failed = Counter(call.name for call in done if call.failed)
    actions = {call.name: call.action for call in reversed(done)}
    used = Counter(call.name for call in done)
    return tuple(ToolUse(name, actions[name], count, failed[name]) for name, count in used.most_common())


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
        found = [name for name in dict.fromkeys(names(call.input)) if not looks(name) and name not in _IDLE]
        runs.update(found)
        failed.update(found[-1:] if call.failed else ())
    return tuple(CommandUse(name, count, failed[name]) for name, count in runs.most_common(_MOST_COMMANDS))


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
    found = [item for item in found if not (item[1].mended and calls[item[0]].action is Action.EDIT)]
    found.sort(key=lambda item: (item[1].mended, -item[0]))
    return tuple(error for _, error in found[:MOST_ERRORS])


def does(call: ToolCall) -> bool:
    """Whether a call is more than a look or a pause: of commands, whether one of its programs is."""
    return call.action is not Action.RUN or not all(looks(name) or name in _IDLE for name in names(call.input))


def mended(calls: Sequence[ToolCall]) -> Callable[[int], bool]:
    """Tells of the call at a place that failed whether the same kind of call came out after it."""
    worked = {name: at for at, call in enumerate(calls) if call.outcome == "ok" for name in attempt(call)}
    return lambda at: any(worked.get(name, -1) > at for name in attempt(calls[at]))


def attempt(call: ToolCall) -> frozenset[str]:
    """What would be the same attempt: a command's programs that do not only look, the files of an edit."""
    if call.action is Action.RUN:
        return frozenset(name for name in names(call.input) if not looks(name)) or frozenset(names(call.input))
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
    linked = [turn.text for turn in turns if turn.speaker is Speaker.SYSTEM and turn.flags & Flag.META]
    made += [url[0] for text in linked for url in _URL.finditer(text) if _PULL_REQUEST.search(url[0])]
    return tuple(dict.fromkeys(made))[:_MOST_PULL_REQUESTS]


def urls(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Addresses that the owner or the agent named, or that were fetched."""
    opened = set(pull_requests(turns))
    found = (_request_alone(url) for url in _addresses(turns) if not _HERE.match(url) and "/" in url[8:])
    return tuple(url for url in dict.fromkeys(found) if url not in opened)[:MOST_URLS]


def packages(calls: Iterable[ToolCall]) -> tuple[str, ...]:
    """What was installed, or asked for by name."""
    found = (
        package for call in calls if call.action is Action.RUN and call.outcome == "ok"
        for part in parts(call.input.partition("<<")[0]) for package in _installed(part)
    )  # fmt: skip
    return tuple(dict.fromkeys(found))[:MOST_PACKAGES]


def _installed(part: Sequence[str]) -> Iterator[str]:
    words = [word for word in part if word not in ("sudo", "-m", "python", "python3", "time", "env") and word]
    for taken in (1, 2):
        head, rest = words[:1], words[1 + taken :]
        if head and " ".join(words[1 : 1 + taken]) in _INSTALLING.get(head[0].rsplit("/", 1)[-1], ()):
            yield from _packages(rest)
            return


def _packages(words: Sequence[str]) -> Iterator[str]:
    skips = False
    for word in words:
        if word[:1] in "<>|&":
            return
        if skips or word.startswith(("-", ".", "/", "~", "$", "http:", "https:", "git+")) or word.endswith("…"):
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
        texts += [call.input for call in turn.tool_calls if call.action is Action.FETCH and "http" in call.input]
        for text in texts:
            yield from (
                url[0].rstrip(_END) for url in _URL.finditer(text) if "…" not in url[0] and "REDACTED" not in url[0]
            )


def _request_alone(url: str) -> str:
    match = _PULL_REQUEST.search(url)
    return url[: match.end()].rstrip("/#?") if match else url


def _is_trusted(turn: Turn) -> bool:
    """Whether the words are the owner's, or the agent's own."""
    by_owner = turn.speaker is Speaker.OWNER and turn.trust is Trust.TRUSTED and is_content(turn)
    return by_owner or is_own(turn)
