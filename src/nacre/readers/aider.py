"""Where Aider keeps its histories, and what the files beside one another tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nacre.base.ids import turn_hash
from nacre.readers.adapter import Adapter, Head, Items, Places, Root, Source, parse_time
from nacre.readers.conversation import asked, outcome
from nacre.readers.trust import Before, Conversation, Exchange, OpenTurn, is_outside, is_own
from nacre.values.session import Flag, Session, Speaker, Tokens, ToolCall, Trust, Turn

TOOL = "aider"

CHAT, INPUT, LLM = ".aider.chat.history.md", ".aider.input.history", ".aider.llm.history"

_ENTRY = re.compile(r"^# (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)[ \t]*$")
_MOST_INPUT = 32 * 1024 * 1024

Typed = tuple[datetime, str]
"""When something was typed, and what."""


def local_time(text: str) -> datetime | None:
    """A time as Aider writes it: that of the machine, without its zone. In UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC)  # one without a zone is the machine's
    except (ValueError, OverflowError, OSError):
        return None


def same_words(text: str) -> str:
    """A prompt as it is compared: the histories differ in spaces at the ends of lines."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def typed_beside(chat: Path) -> list[Typed]:
    """What was typed, from the input history beside a chat history; empty when there is none."""
    name = chat.name.replace(".chat.history", ".input.history").removesuffix(".md")
    path = chat.with_name(name)
    try:
        if path == chat or path.stat().st_size > _MOST_INPUT:
            return []
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return []
    found: list[Typed] = []
    time: datetime | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), "# 0001-01-02 00:00:00"]:
        begins = _ENTRY.match(line)
        if begins:
            found += [(time, same_words("\n".join(lines)))] if time and lines else []
            time, lines = local_time(begins[1]), []
        elif line.startswith("+"):
            lines.append(line[1:])
    return found


def is_input(head: Head) -> bool:
    """Whether a file is an input history: it tells when, and is no transcript of its own."""
    lines = [line for line in head.text.splitlines() if line.strip()][:2]
    return len(lines) == 2 and bool(_ENTRY.match(lines[0])) and lines[1].startswith("+")


def roots(places: Places, name: str, variable: str) -> Sequence[Root]:
    """A history lies in its repository: in folders in which any tool worked, at home, or where Aider was told."""
    told = places.environ.get(variable)
    path = Path(told).expanduser() if told else None
    at = [Root(path.parent, (path.name,))] if path and path.is_absolute() else []
    return [*at, *(Root(folder, (name,)) for folder in (places.home, *places.projects))]


# ----------------------------------------------------------------------------
# Aider's chat history, ``.aider.chat.history.md`` in a repository: many sessions in one growing
# Markdown file.
#
# What a person typed are lines that begin with ``#### ``, what the tool says begins with ``> ``, both
# with two spaces at
# the end; all else is the agent's. Times stand only at the beginning of a session: those of prompts
# are in the input
# history beside it, which also confirms that they were typed.


_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_PROMPT = re.compile(r"####(?: (.*))?", re.DOTALL)
_ASKED = re.compile(r"\(Y\)es/\(N\)o")
_COMMAND = re.compile(r"/([a-z][\w-]*)(?:\s+|\Z)")
_HELPED = "# Question:"
_WITH_WORDS = frozenset(
    {"ask", "code", "architect", "context", "copy-context", "help", "chat-mode"}
)
_RUNS = frozenset({"run", "test", "git", "lint"})
_VERSION = re.compile(r"Aider v?(\S+)")
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")
_EDITED = re.compile(r"Applied edit to (.+)")
_COMMITTED = re.compile(r"Commit ([0-9a-f]{7,40}) (.*)")
_COUNT = r"(\d+(?:\.\d+)?k?)"
_SPENT = re.compile(
    rf"Tokens: {_COUNT} sent(?:, {_COUNT} cache write)?(?:, {_COUNT} cache hit)?, {_COUNT} received\."
)
_SCRAPED = re.compile(r"Scraping |Add URL to the chat\?.* (?:y|a)\b|\bto the chat\b.*https?://")
_THOUGHTS = re.compile(
    r"^►? ?\*\*THINKING\*\*.*?^►? ?\*\*ANSWER\*\*|<think>.*?</think>|-{3,}\s*► \*\*",
    re.DOTALL | re.MULTILINE,
)
_SURE = 80
_FEWEST = 20
"""So many characters of an answer are compared with a prompt, and so many at least: "ok" proves nothing."""

_EDIT = re.compile(
    r"(?:^`{3,}[^\n]*\n)?^<{5,9} SEARCH.*?^>{5,9} REPLACE[^\n]*$(?:\n`{3,}[ \t]*$)?",
    re.DOTALL | re.MULTILINE,
)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.carry = source.carry
        self.folder = str(source.path.parent.absolute())
        self.talk = Conversation(source, Session(TOOL, source.path.stem, cwd=self.folder))
        self.typed = typed_beside(source.path)
        self.prompt: list[str] = []
        self.prompt_at: Before | None = None
        self.words: list[str] = []
        self.shown: list[str] = []
        self.end = 0

    def read(self) -> Items:
        for offset, line in self.source.lines():
            has_gap = offset > self.end
            self.end = offset + len(line) + 1
            yield from self.line(
                offset, line.decode("utf-8", errors="replace").rstrip("\r"), has_gap=has_gap
            )
        before = self.prompt_at or self.talk.before
        yield from self.prompted()
        self.said()
        yield from self.talk.finish(before)

    def line(self, offset: int, line: str, *, has_gap: bool) -> Items:
        start = _START.fullmatch(line)
        prompt = _PROMPT.fullmatch(line)
        if start:
            yield from self.begin(start[1])
        elif prompt and self.is_typed(line):
            if has_gap:
                yield from self.prompted()
            if not self.prompt:
                self.said()
                yield from self.talk.close()
                self.prompt_at = self.talk.place(offset)
            self.prompt.append((prompt[1] or "").rstrip())
        else:
            yield from self.prompted()
            yield from self.other(offset, line, has_gap=has_gap)

    def is_typed(self, line: str) -> bool:
        """Whether a line that begins as a prompt is one: Aider ends them with two spaces, an agent its headings not.

        Editors may have taken the spaces from all lines: then the first of a session has none.
        """
        if "bare" not in self.carry:
            self.carry["bare"] = not line.endswith("  ")
        return bool(self.carry["bare"]) or line.endswith("  ")

    def begin(self, stamp: str) -> Items:
        """Another session begins: nothing of the last one is heard any more."""
        yield from self.prompted()
        self.said()
        yield from self.talk.conclude()
        self.talk.spent = None
        times = self.carry.get("times", {})
        times = {stamp: times.get(stamp, 0) + 1}
        name = turn_hash("session", f"{stamp}\n{self.folder}", times[stamp] - 1)
        self.carry.clear()
        self.carry["times"] = times
        started = local_time(stamp)
        self.carry["clock"] = started.isoformat() if started else None
        self.talk.session = Session(TOOL, name, cwd=self.folder, started=started)
        self.talk.exchange = Exchange()

    # What was typed

    def prompted(self) -> Items:
        """A prompt is complete."""
        lines, self.prompt, self.prompt_at = self.prompt, [], None
        text = "\n".join(lines).strip()
        if not text or text == "<blank>" or _ASKED.search(text):
            return
        time, is_sure = self.when(text)
        command = _COMMAND.match(text)
        name = command[1] if command else ""
        self.carry["ran"] = text[command.end() :] if command and name in _RUNS else ""
        words = text[command.end() :].strip() if command and name in _WITH_WORDS else text
        if not command and self.is_echo(words):
            return
        self.carry["commanded"] = " ".join(words.split()) if command and name in _WITH_WORDS else ""
        cleaned = self.talk.clean(words or text)
        if not cleaned.text:
            return
        flags = Flag.INJECTED if cleaned.injected else Flag.NONE
        calls: tuple[ToolCall, ...] = ()
        if text.startswith("!"):
            self.carry["ran"] = text[1:].strip()
            flags, calls = flags | Flag.META, (asked("shell", {"command": self.carry["ran"]}),)
        elif command and (name not in _WITH_WORDS or not words):
            flags |= Flag.COMMAND
        identity = self.numbered(Speaker.OWNER)
        trust = Trust.TRUSTED if is_sure else Trust.UNTRUSTED
        yield from self.talk.say(
            Turn(identity, Speaker.OWNER, cleaned.text, time, calls, flags, trust)
        )
        if name == "web":
            self.scraped()
        elif self.carry.get("scraped"):
            self.talk.exchange.unseen()

    def is_echo(self, words: str) -> bool:
        """Whether Aider wrote a prompt: it repeats what a command as ``/code`` was given, with pages of its manual up
        to the answer where that was ``/help``, and hands the architect's answer on to the model that edits.
        """
        plain = " ".join(words.split())
        answer, commanded = self.carry.get("answer", ""), self.carry.get("commanded", "")
        if commanded and plain.startswith(f"{_HELPED} {commanded}"):
            self.carry["manual"] = True
        is_handed_on = len(plain) >= _FEWEST and bool(answer) and answer.startswith(plain[:_SURE])
        return (
            is_handed_on or self.carry.get("manual", False) or (bool(plain) and plain == commanded)
        )

    def when(self, text: str) -> tuple[datetime | None, bool]:
        """When a prompt was typed, and whether the input history, where there is one, knows of it."""
        last = parse_time(self.carry.get("clock"))
        wanted = same_words(text)
        times = [
            time for time, words in self.typed if words == wanted and (last is None or time >= last)
        ]
        if times:
            self.carry["clock"] = min(times).isoformat()
        return (min(times) if times else last), bool(times) or not self.typed

    # What the agent and the tool said

    def other(self, offset: int, line: str, *, has_gap: bool) -> Items:
        if line.startswith(">") and (line.endswith("  ") or self.carry.get("bare")):
            yield from self.tool(offset, line[1:].strip())
            return
        self.hear()
        yield from self.opened(offset)
        self.words += ["", line] if has_gap else [line]

    def opened(self, offset: int) -> Items:
        if self.talk.opened is None:
            before = self.talk.place(offset)
            time = parse_time(self.carry.get("clock"))
            self.carry |= {"answer": "", "commanded": "", "manual": False}
            yield from self.talk.open(
                OpenTurn(self.numbered(Speaker.AGENT), time, unique=False), before
            )

    def numbered(self, speaker: Speaker) -> str:
        """The id of a session's next turn of a speaker: it stays while the turn grows."""
        counts = self.carry["counts"] = {**self.carry.get("counts", {})}
        counts[speaker] = counts.get(speaker, 0) + 1
        return turn_hash(speaker, self.talk.session.native_id, counts[speaker])

    def said(self) -> None:
        """The agent's words so far, without its thoughts and the code of its edits."""
        answer = _THOUGHTS.sub("", "\n".join(self.words))
        text = _EDIT.sub("", answer)
        self.words = []
        if answer.strip() and not self.carry.get("answer"):
            self.carry["answer"] = " ".join(answer.split())[:_SURE]
        self.talk.add_text(text)
        self.hear()

    def hear(self) -> None:
        """What the tool showed so far."""
        shown, self.shown = "\n".join(self.shown), []
        ran = self.carry.get("ran") or ""
        if shown:
            self.talk.exchange.heard(
                shown, outside=is_outside("shell", ran), own=is_own("shell", ran)
            )

    def tool(self, offset: int, line: str) -> Items:
        self.learn(line)
        if spent := _SPENT.match(line):
            self.talk.spend(_tokens(spent))
        edited, committed = _EDITED.match(line), _COMMITTED.match(line)
        if _SCRAPED.search(line):
            self.scraped()
        if edited or committed:
            self.hear()
            yield from self.opened(offset)
            self.said()
            name, given = ("edit", {"path": edited[1]}) if edited else ("commit", {"command": line})
            self.talk.result(self.talk.add_call("", name, given), outcome(), lambda: "")
            return
        self.shown.append(line)

    def scraped(self) -> None:
        """A page came into the session, which is not recorded, and stays in it."""
        self.carry["scraped"] = True
        self.talk.exchange.unseen()

    def learn(self, line: str) -> None:
        """Version and model stand at the beginning of a session, before anybody spoke."""
        if self.carry.get("begun"):
            return
        if found := _VERSION.fullmatch(line):
            self.talk.session = replace(self.talk.session, tool_version=found[1])
        elif (found := _MODEL.match(line)) and not self.talk.session.model:
            self.talk.session = replace(self.talk.session, model=found[1])


def _tokens(told: re.Match[str]) -> Tokens:
    """What one answer cost, as Aider rounds it: to hundreds from a thousand on, to thousands from ten thousand on.

    What was written to a cache is part of what was sent.
    """
    sent, _, cached, received = (_count(group or "0") for group in told.groups())
    return Tokens.with_cached(sent, cached, received)


def _count(text: str) -> int:
    return round(float(text[:-1]) * 1000) if text.endswith("k") else int(float(text))


def parse(source: Source) -> Items:
    """Parse one history; see :class:`~nacre.readers.adapter.Adapter`."""
    if source.path.name.endswith(INPUT):
        return iter(())
    return _Reader(source).read()


def _sniff(head: Head) -> bool:
    lines = [line.strip("\ufeff\r") for line in head.text.splitlines() if line.strip()]
    if head.path.name.endswith(CHAT):
        return any(map(_START.fullmatch, lines))
    return bool(lines and _START.fullmatch(lines[0])) or (
        head.path.name.endswith(INPUT) and is_input(head)
    )


def _roots(places: Places) -> Sequence[Root]:
    return roots(places, CHAT, "AIDER_CHAT_HISTORY_FILE")


ADAPTER = Adapter(
    tool=TOOL,
    label="Aider",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    versions="0.82, 0.86.1",
    reads=(
        "messages",
        "edits and commits",
        "times, from the input history",
        "folder",
        "model",
        "version",
        "tokens (rounded)",
    ),
    leaves_out=(
        "reasoning",
        "code of edits",
        "output of the tool",
        "pages from /web (not recorded)",
    ),
    environment=("AIDER_CHAT_HISTORY_FILE",),
)


# ----------------------------------------------------------------------------
# Aider's log of what its models were sent, ``.aider.llm.history``: read only where there is no chat
# history.
#
# Each request repeats all that went before, so only its last message is looked at for what was typed.
# The tool writes
# requests of its own: one that hands an answer on to the model that edits is not the owner's, and
# neither are a page or
# the output of a command. An hour of silence parts two sessions.


_BLOCK = re.compile(r"^(TO LLM|LLM RESPONSE) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\n", re.MULTILINE)
_EDITED_LLM_HISTORY = re.compile(r"^([^\n`<>]+)\n(?:`{3,}[^\n]*\n)?<{5,9} SEARCH", re.MULTILINE)
"""The file that an edit names stands above its fence, or as the first line in it."""
_RULES = re.compile(
    r"^# (?:\*SEARCH/REPLACE block\* Rules|\*file listing\* format|File editing rules)",
    re.MULTILINE,
)
_HARNESS = re.compile(
    r"\AI added these files to the chat:|\AI have \*added these files|\A#+ Fix any errors|\AThe LLM did not conform"
    r"|\A(?:# )?(?:Generate|Write).{0,40}commit message|\ASummarize "
)
_FAILED = re.compile(r"\A# \d+ SEARCH/REPLACE blocks? failed")
_PAGE = re.compile(r"^Here is the content of [a-z][a-z0-9+.-]*://\S+:[ \t]*$", re.MULTILINE)
"""To the end of the message: pages are added to what was typed, one after the other."""
_RAN = re.compile(r"\AI ran this command:\s+(.+?)\s+And got this output:\s", re.DOTALL)
_SILENCE = timedelta(hours=1)


class _LlmHistoryReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.folder = str(source.path.parent.absolute())
        self.talk = Conversation(source, Session(TOOL, source.path.stem, cwd=self.folder))
        self.time: datetime | None = None
        self.answer = ""
        self.edits: dict[str, str] = {}

    def read(self) -> Items:
        text = self.source.text().replace("\r\n", "\n")
        blocks = list(_BLOCK.finditer(text))
        for block, end in zip(
            blocks, [*(one.start() for one in blocks[1:]), len(text)], strict=False
        ):
            time, body = local_time(block[2]), text[block.end() : end]
            if self.time is None or (time and time - self.time > _SILENCE):
                yield from self.begin(time)
            self.time = time or self.time
            yield from self.request(body) if block[1] == "TO LLM" else self.response(body)
        self.applied("")
        yield from self.talk.end()

    def begin(self, time: datetime | None) -> Items:
        self.applied("")
        yield from self.talk.end()
        name = turn_hash("session", f"llm {time}\n{self.folder}", 0)
        self.talk = Conversation(self.source, Session(TOOL, name, cwd=self.folder, started=time))
        self.answer = ""

    def request(self, body: str) -> Items:
        *before, last = re.split(r"^-------\n", body, flags=re.MULTILINE)
        brought = [_plain(group, "USER") for group in (*before, last) if group.startswith("USER")]
        self.applied(brought[-1] if brought else "")
        if last.startswith("USER"):
            rules = "\n".join(
                _plain(group, "SYSTEM") for group in before if group.startswith("SYSTEM")
            )
            yield from self.prompt(_without_rules(brought[-1], rules))
        for text in brought:
            self.hear(text)

    def applied(self, request: str) -> None:
        """How the last edits came out: the next request names the files in which one could not be applied."""
        has_failed = _FAILED.match(request)
        for path, call in self.edits.items():
            is_error = bool(has_failed) and path in request
            self.talk.result(call, outcome(request if is_error else "", is_error=is_error), str)
        self.edits = {}

    def prompt(self, text: str) -> Items:
        """What was typed, if it was: without the pages that Aider added for the addresses in it."""
        page = _PAGE.search(text)
        cleaned = self.talk.clean(text[: page.start()] if page else text)
        is_tools = any(mark.match(cleaned.text) for mark in (_HARNESS, _FAILED, _RAN))
        if is_tools or self.hands_on(cleaned.text) or not cleaned.text:
            return
        flags = Flag.INJECTED if cleaned.injected else Flag.NONE
        identity = self.talk.new_id(Speaker.OWNER, str(self.time), cleaned.text)
        yield from self.talk.say(
            Turn(identity, Speaker.OWNER, cleaned.text, self.time, flags=flags)
        )

    def hear(self, text: str) -> None:
        """A page, or what a command put out: the model reads it with every request."""
        ran, page = _RAN.match(text), _PAGE.search(text)
        if ran:
            output, command = text[ran.end() :], ran[1]
            self.talk.exchange.heard(
                output, outside=is_outside("shell", command), own=is_own("shell", command)
            )
        elif page:
            self.talk.exchange.heard(text[page.end() :], outside=True)

    def hands_on(self, text: str) -> bool:
        """Whether a request begins with what the model answered last."""
        head = " ".join(text.split())[:_SURE]
        return bool(self.answer) and self.answer.startswith(head)

    def response(self, body: str) -> Items:
        text = _plain(body, "ASSISTANT")
        self.answer = " ".join(text.split())
        said = _EDIT.sub("", text).strip()
        if said:
            identity = self.talk.new_id(Speaker.AGENT, str(self.time), said)
            yield from self.talk.open(OpenTurn(identity, self.time, unique=False))
            self.talk.add_text(said)
            paths = dict.fromkeys(found.strip() for found in _EDITED_LLM_HISTORY.findall(text))
            self.edits = {path: self.talk.add_call("", "edit", {"path": path}) for path in paths}


def _plain(group: str, role: str) -> str:
    """A message without the name of its speaker before each line."""
    return "\n".join(line.removeprefix(role).removeprefix(" ") for line in group.splitlines())


def _without_rules(text: str, rules: str) -> str:
    """A prompt without the reminder that Aider adds: what is also among its rules, or begins as one of them does."""
    paragraphs = text.split("\n\n")
    for number in range(1, len(paragraphs)):
        rest = "\n\n".join(paragraphs[number:]).strip()
        if _RULES.match(rest) or (len(rest) > _SURE and rest in rules):
            return "\n\n".join(paragraphs[:number])
    return text


def parse_llm_history(source: Source) -> Items:
    """Parse one log; see :class:`~nacre.readers.adapter.Adapter`."""
    if (source.path.parent / CHAT).is_file():
        return iter(())
    return _LlmHistoryReader(source).read()


def _sniff_llm_history(head: Head) -> bool:
    first = _BLOCK.match(head.text)
    return bool(first) and head.text[first.end() :].startswith(("-------", "ASSISTANT"))  # type: ignore[union-attr]


def _roots_llm_history(places: Places) -> Sequence[Root]:
    return roots(places, LLM, "AIDER_LLM_HISTORY_FILE")


ADAPTER_LLM_HISTORY = Adapter(
    tool=TOOL,
    label="Aider",
    roots=_roots_llm_history,
    sniff=_sniff_llm_history,
    parse=parse_llm_history,
    whole=True,
    versions="of January 2025 (files name no version)",
    reads=(
        "messages, if there is no chat history",
        "edits by the model",
        "times",
    ),
    leaves_out=(
        "prompts of the tool itself",
        "repeated context",
        "code of edits",
        "web pages and command output",
    ),
    environment=("AIDER_LLM_HISTORY_FILE",),
)
