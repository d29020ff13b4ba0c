"""Systems for the card: plain FTS5, and any MCP server or command that a TOML file describes.

Each turn is stored with a mark in front (``zs3t12``: session 3, turn 12). A turn counts as shown if
its mark is in an answer. Files, notes and ids can be named after a session's mark (``zs3``).
"""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import apsw
import msgspec
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.retrieval.homes import as_jsonl
from benchmarks.retrieval.plain import PlainFts
from benchmarks.retrieval.suites import BenchSession, BenchTurn, Haystack
from nacre.base.environment import environment
from nacre.base.text import count_tokens
from nacre.errors import InvalidInputError, NotFoundError

DESCRIPTIONS = Path(__file__).parent / "systems"
DEPTH = 10
"""Number of results that a search asks for."""

_MARK = re.compile(r"\bzs(\d+)(?:t(\d+))?\b")
_PLACE = re.compile(r"\{(\w+)\}")


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of an MCP tool, or of a command. Its arguments can contain ``{placeholders}``.

    ``each``: store turns or whole sessions.
    """

    tool: str = ""
    command: str = ""
    arguments: dict[str, Any] = {}
    each: str = "turn"


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to run a system in an empty folder, ``{home}``.

    ``program``: the file to look for on PATH. ``install``: how to install it. ``version``: a
    command that prints the version. ``files``: write each session to this file, as Markdown or as
    ``.jsonl``. ``commands``: run before the search, for example to index the files. ``server``: an
    MCP server over standard streams. ``weak``: a pattern where the results begin that the system
    itself marks as uncertain.
    """

    program: str
    install: str
    search: Call
    version: str = ""
    environment: dict[str, str] = {}
    files: str = ""
    commands: list[str] = []
    server: str = ""
    store: Call | None = None
    weak: str = ""


class Opened(msgspec.Struct, frozen=True):
    """A system with the sessions of a haystack. ``ask`` returns the text of an answer."""

    ask: Callable[[str], Awaitable[str]]
    schema_tokens: int = 0


def read_description(name: str) -> Description | None:
    """Return a bundled description, or one in a file. ``fts5`` has none. Raises InvalidInputError."""
    if name == "fts5":
        return None
    path = Path(name) if name.endswith(".toml") else DESCRIPTIONS / f"{name}.toml"
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Description)
    except FileNotFoundError:
        names = ", ".join(["fts5", *sorted(file.stem for file in DESCRIPTIONS.glob("*.toml"))])
        raise NotFoundError(f"no system {name}", hint=f"one of {names}, or a .toml file") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidInputError(f"{path}: {error}", hint="see benchmarks/README.md") from None


def marked(haystack: Haystack) -> tuple[list[BenchSession], dict[str, str]]:
    """Return the sessions with marks for ids and in texts, and the mark of each id."""
    marks: dict[str, str] = {}
    sessions = []
    for at, session in enumerate(haystack.sessions):
        marks[session.id] = f"zs{at}"
        turns = []
        for number, turn in enumerate(session.turns):
            marks[turn.id] = mark = f"zs{at}t{number}"
            turns.append(
                BenchTurn(mark, turn.role, turn.author, f"[{mark}] {turn.text}", turn.time)
            )
        sessions.append(BenchSession(f"zs{at}", tuple(turns), session.project))
    return sessions, marks


def shown_marks(answer: str) -> tuple[list[str], list[str]]:
    """Return the marks of turns and of sessions in an answer, in order."""
    turns = dict.fromkeys(match[0] for match in _MARK.finditer(answer) if match[2])
    sessions = dict.fromkeys(f"zs{match[1]}" for match in _MARK.finditer(answer))
    return list(turns), list(sessions)


def version_of(description: Description | None) -> str:
    """Return the system's version. Raises NotFoundError if it is not installed."""
    if description is None:
        return f"SQLite {apsw.sqlite_lib_version()}"
    if shutil.which(description.program) is None:
        raise NotFoundError(
            f"{description.program} is not installed", hint=description.install or "install it"
        )
    return (
        anyio.run(_run, description.version, environment()).strip() if description.version else ""
    )


@asynccontextmanager
async def opened(
    description: Description | None, sessions: Sequence[BenchSession], home: Path
) -> AsyncIterator[Opened]:
    """Store sessions in a system with an empty home, and yield the system."""
    if description is None:
        plain = PlainFts([turn for session in sessions for turn in session.turns])

        async def rank(question: str) -> str:
            return " ".join(plain.rank(question, DEPTH))

        yield Opened(rank)
        return
    place = {"home": str(home)}
    variables = {
        **environment(),
        "HOME": str(home),
        **{key: _filled(value, place) for key, value in description.environment.items()},
    }
    for session in sessions if description.files else ():
        path = Path(_filled(description.files, {**place, "session": session.id}))
        path.parent.mkdir(parents=True, exist_ok=True)
        written = as_jsonl(session) if path.suffix == ".jsonl" else as_markdown(session)
        path.write_text(written, encoding="utf-8")
    for command in description.commands:
        await _run(_filled(command, place), variables)
    if description.server:
        async with _served(description, sessions, place, variables) as system:
            yield system
        return

    async def run(question: str) -> str:
        values = {**place, "question": shlex.quote(question), "depth": str(DEPTH)}
        return await _run(_filled(description.search.command, values), variables)

    yield Opened(run)


@asynccontextmanager
async def _served(
    description: Description,
    sessions: Sequence[BenchSession],
    place: Mapping[str, str],
    variables: dict[str, str],
) -> AsyncIterator[Opened]:
    command, *arguments = shlex.split(_filled(description.server, place))
    parameters = StdioServerParameters(
        command=command, args=arguments, env=variables, cwd=place["home"]
    )
    async with Client(parameters) as client:
        tools = (await client.list_tools()).tools

        async def call_tool(call: Call, values: Mapping[str, str]) -> str:
            filled = _arguments(call.arguments, {**place, **values})
            answer = await client.call_tool(call.tool, filled)
            text = "\n".join(getattr(part, "text", "") for part in answer.content)
            if answer.is_error:
                raise InvalidInputError(f"{call.tool}: {text[:300]}", hint="check the description")
            return text

        if description.store:
            for values in _values(sessions, description.store.each):
                await call_tool(description.store, values)
        yield Opened(
            lambda question: call_tool(description.search, {"question": question}),
            sum(count_tokens(tool.model_dump_json(exclude_none=True)) for tool in tools),
        )


def as_markdown(session: BenchSession) -> str:
    """Return a session as a Markdown document."""
    time = next((turn.time for turn in session.turns if turn.time), None)
    head = f"# {session.id}\n\n{f'Date: {time:%Y-%m-%d %H:%M}' if time else ''}\n\n"
    return (
        head
        + "\n\n".join(
            f"## {turn.id} {turn.author or turn.role}\n\n{_text(turn)}" for turn in session.turns
        )
        + "\n"
    )


def _line(turn: BenchTurn) -> str:
    return f"{turn.id} {turn.author or turn.role}: {_text(turn)}"


def _text(turn: BenchTurn) -> str:
    return turn.text.removeprefix(f"[{turn.id}] ")


def _values(sessions: Sequence[BenchSession], each: str) -> Iterator[dict[str, str]]:
    for session in sessions:
        shared = {"session": session.id, "project": session.project or ""}
        if each == "session":
            yield {**shared, "text": as_markdown(session)}
            continue
        for turn in session.turns:
            date = turn.time.isoformat() if turn.time else ""
            yield {**shared, "text": _line(turn), "date": date, "turn": turn.id}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), text)


def _arguments(value: Any, values: Mapping[str, str]) -> Any:
    """Fill in placeholders. A lone ``{depth}`` becomes a number."""
    if isinstance(value, dict):
        return {key: _arguments(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_arguments(item, values) for item in value]
    if value == "{depth}":
        return DEPTH
    return _filled(value, values) if isinstance(value, str) else value


async def _run(command: str, variables: Mapping[str, str]) -> str:
    result = await anyio.run_process(shlex.split(command), env=variables, check=False)
    if result.returncode:
        error = result.stderr.decode(errors="replace").strip()[-300:]
        raise InvalidInputError(f"{command[:100]} failed: {error}", hint="check the description")
    return result.stdout.decode(errors="replace")
