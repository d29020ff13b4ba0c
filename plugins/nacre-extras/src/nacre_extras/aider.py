"""Aider: the chat history, input history and model log in a repository."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from nacre.base.ids import turn_hash
from nacre.readers.adapter import Adapter, Head, Items, Places, Root, Source, local_time, parse_time
from nacre.readers.conversation import new_call, outcome
from nacre.readers.trust import Before, Conversation, Exchange
from nacre.values.session import Flag, Session, Speaker, Tokens, ToolCall, Trust, Turn

TOOL = "aider"

CHAT, INPUT, LLM = ".aider.chat.history.md", ".aider.input.history", ".aider.llm.history"

_ENTRY = re.compile(r"^# (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)[ \t]*$")
_MAX_INPUT_BYTES = 32 * 1024 * 1024

Typed = tuple[datetime, str]
"""Time and text of a prompt."""


def same_words(text: str) -> str:
    """Strip each line of a prompt, because Aider's two histories differ in spaces."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def typed_beside(chat: Path) -> list[Typed]:
    """Read the prompts from the input history in the same folder as a chat history."""
    name = chat.name.replace(".chat.history", ".input.history").removesuffix(".md")
    path = chat.with_name(name)
    try:
        if path == chat or path.stat().st_size > _MAX_INPUT_BYTES:
            return []
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return []
    prompts: list[Typed] = []
    time: datetime | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), "# 0001-01-02 00:00:00"]:
        begins = _ENTRY.match(line)
        if begins:
            prompts += [(time, same_words("\n".join(lines)))] if time and lines else []
            time, lines = local_time(begins[1]), []
        elif line.startswith("+"):
            lines.append(line[1:])
    return prompts


def roots(places: Places, name: str, variable: str) -> Sequence[Root]:
    """Return the folders that may contain histories: the configured one, home, and known projects."""
    configured = places.environ.get(variable)
    path = Path(configured).expanduser() if configured else None
    at = [Root(path.parent, (path.name,))] if path and path.is_absolute() else []
    return [*at, *(Root(folder, (name,)) for folder in (places.home, *places.projects))]


# -- Chat history ``.aider.chat.history.md``: many sessions in one growing Markdown file ---
# Lines of a prompt begin with ``#### `` and lines of the tool with ``> ``, and both end with two spaces.
# All other lines are the agent's. The history only has the start times of sessions. The input history
# has the times of prompts, and confirms that they were typed.


_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_PROMPT = re.compile(r"####(?: (.*))?", re.DOTALL)
_YES_NO_QUESTION = re.compile(r"\(Y\)es/\(N\)o")
_COMMAND = re.compile(r"/([a-z][\w-]*)(?:\s+|\Z)")
_HELP_HEAD = "# Question:"
_MESSAGE_COMMANDS = frozenset("ask code architect context copy-context help chat-mode".split())
_RUN_COMMANDS = frozenset({"run", "test", "git", "lint"})
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
_COMPARED_CHARACTERS = 80
_MIN_COMPARED_CHARACTERS = 20
"""Minimum length of a prompt to compare with the answer before it."""

_EDIT = re.compile(
    r"(?:^`{3,}[^\n]*\n)?^<{5,9} SEARCH.*?^>{5,9} REPLACE[^\n]*$(?:\n`{3,}[ \t]*$)?",
    re.DOTALL | re.MULTILINE,
)


class _HistoryReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.folder = str(source.path.parent.absolute())
        self.talk = Conversation(source, Session(TOOL, source.path.stem, cwd=self.folder))


class _Reader(_HistoryReader):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.carry = source.carry
        self.typed_prompts = typed_beside(source.path)
        self.prompt: list[str] = []
        self.prompt_at: Before | None = None
        self.words: list[str] = []
        self.tool_lines: list[str] = []
        self.end = 0

    def __iter__(self) -> Items:
        for offset, line in self.source.lines():
            has_gap = offset > self.end
            self.end = offset + len(line) + 1
            yield from self.line(
                offset, line.decode("utf-8", errors="replace").rstrip("\r"), has_gap=has_gap
            )
        before = self.prompt_at or self.talk.before
        yield from self.prompted()
        self.add_words()
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
                self.add_words()
                yield from self.talk.close()
                self.prompt_at = self.talk.place(offset)
            self.prompt.append((prompt[1] or "").rstrip())
        else:
            yield from self.prompted()
            yield from self.other(offset, line, has_gap=has_gap)

    def is_typed(self, line: str) -> bool:
        """Recognise a prompt by the two spaces that Aider adds to each line, unless an editor
        removed them.
        """
        if "bare" not in self.carry:
            self.carry["bare"] = not line.endswith("  ")
        return bool(self.carry["bare"]) or line.endswith("  ")

    def begin(self, stamp: str) -> Items:
        yield from self.prompted()
        self.add_words()
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

    # Prompts

    def prompted(self) -> Items:
        lines, self.prompt, self.prompt_at = self.prompt, [], None
        text = "\n".join(lines).strip()
        if not text or text == "<blank>" or _YES_NO_QUESTION.search(text):
            return
        time, is_sure = self.when(text)
        command = _COMMAND.match(text)
        name, arguments = (command[1], text[command.end() :]) if command else ("", "")
        is_message = name in _MESSAGE_COMMANDS
        self.carry["ran"] = arguments if name in _RUN_COMMANDS else ""
        words = arguments.strip() if is_message else text
        if not command and self.is_echo(words):
            return
        self.carry["commanded"] = " ".join(words.split()) if is_message else ""
        cleaned = self.talk.clean(words or text)
        if not cleaned.text:
            return
        flags = cleaned.flags
        calls: tuple[ToolCall, ...] = ()
        if text.startswith("!"):
            self.carry["ran"] = text[1:].strip()
            flags, calls = flags | Flag.META, (new_call("shell", {"command": self.carry["ran"]}),)
        elif command and not (is_message and words):
            flags |= Flag.COMMAND
        identity = self.numbered(Speaker.OWNER)
        trust = Trust.TRUSTED if is_sure else Trust.UNTRUSTED
        yield from self.talk.say(
            Turn(identity, Speaker.OWNER, cleaned.text, time, calls, flags, trust)
        )
        if name == "web":
            self.scraped()
        elif self.carry.get("scraped"):
            self.talk.exchange.record_unseen()

    def is_echo(self, words: str) -> bool:
        """Return True if Aider wrote the prompt itself: the arguments of a command such as
        ``/code``, its manual after ``/help``, or the architect's answer.
        """
        plain = " ".join(words.split())
        answer, commanded = self.carry.get("answer", ""), self.carry.get("commanded", "")
        if commanded and plain.startswith(f"{_HELP_HEAD} {commanded}"):
            self.carry["manual"] = True
        is_long = len(plain) >= _MIN_COMPARED_CHARACTERS
        if is_long and answer.startswith(plain[:_COMPARED_CHARACTERS]):
            return True
        return self.carry.get("manual", False) or (bool(plain) and plain == commanded)

    def when(self, text: str) -> tuple[datetime | None, bool]:
        last = parse_time(self.carry.get("clock"))
        normalised = same_words(text)
        times = [
            time
            for time, words in self.typed_prompts
            if words == normalised and (last is None or time >= last)
        ]
        if times:
            self.carry["clock"] = min(times).isoformat()
        return min(times, default=last), bool(times) or not self.typed_prompts

    # Output of the agent and the tool

    def other(self, offset: int, line: str, *, has_gap: bool) -> Items:
        if line.startswith(">") and (line.endswith("  ") or self.carry.get("bare")):
            yield from self.tool(offset, line[1:].strip())
            return
        self.hear()
        yield from self.open_turn(offset)
        self.words += ["", line] if has_gap else [line]

    def open_turn(self, offset: int) -> Items:
        if self.talk.opened is None:
            before = self.talk.place(offset)
            time = parse_time(self.carry.get("clock"))
            self.carry |= {"answer": "", "commanded": "", "manual": False}
            yield from self.talk.open(self.numbered(Speaker.AGENT), time, before=before)

    def numbered(self, speaker: Speaker) -> str:
        """Return an id for the speaker's next turn that stays the same while the turn grows."""
        counts = self.carry["counts"] = {**self.carry.get("counts", {})}
        counts[speaker] = counts.get(speaker, 0) + 1
        return turn_hash(speaker, self.talk.session.native_id, counts[speaker])

    def add_words(self) -> None:
        answer = _THOUGHTS.sub("", "\n".join(self.words))
        text = _EDIT.sub("", answer)
        self.words = []
        if answer.strip() and not self.carry.get("answer"):
            self.carry["answer"] = " ".join(answer.split())[:_COMPARED_CHARACTERS]
        self.talk.add_text(text)
        self.hear()

    def hear(self) -> None:
        tool_lines, self.tool_lines = "\n".join(self.tool_lines), []
        ran = self.carry.get("ran") or ""
        if tool_lines:
            self.talk.exchange.record_output("shell", ran, tool_lines)

    def tool(self, offset: int, line: str) -> Items:
        self.learn(line)
        if spent := _SPENT.match(line):
            # Aider rounds these. Sent tokens include tokens written to a cache.
            sent, _, cached, received = (_count(group or "0") for group in spent.groups())
            self.talk.spend(Tokens.with_cached(sent, cached, received))
        edited, committed = _EDITED.match(line), _COMMITTED.match(line)
        if _SCRAPED.search(line):
            self.scraped()
        if edited or committed:
            self.hear()
            yield from self.open_turn(offset)
            self.add_words()
            name, arguments = (
                ("edit", {"path": edited[1]}) if edited else ("commit", {"command": line})
            )
            self.talk.result(self.talk.add_call("", name, arguments), outcome())
            return
        self.tool_lines.append(line)

    def scraped(self) -> None:
        """Record that the session read a web page, because the history omits its text."""
        self.carry["scraped"] = True
        self.talk.exchange.record_unseen()

    def learn(self, line: str) -> None:
        if self.carry.get("begun"):
            return
        if match := _VERSION.fullmatch(line):
            self.talk.learn(tool_version=match[1])
        elif (match := _MODEL.match(line)) and not self.talk.session.model:
            self.talk.learn(model=match[1])


def _count(text: str) -> int:
    return round(float(text[:-1]) * 1000) if text.endswith("k") else int(float(text))


def _sniff(head: Head) -> bool:
    lines = [line.strip("\ufeff\r") for line in head.text.splitlines() if line.strip()]
    if head.path.name.endswith(CHAT):
        return any(map(_START.fullmatch, lines))
    if head.path.name.endswith(INPUT) and len(lines) > 1 and lines[1].startswith("+"):
        return bool(_ENTRY.match(lines[0]) or _START.fullmatch(lines[0]))
    return bool(lines and _START.fullmatch(lines[0]))


ADAPTER = Adapter(
    tool=TOOL,
    label="Aider",
    roots=partial(roots, name=CHAT, variable="AIDER_CHAT_HISTORY_FILE"),
    sniff=_sniff,
    parse=lambda source: () if source.path.name.endswith(INPUT) else _Reader(source),
    versions="0.82, 0.86.1",
    reads="commits; times from the input history",
    leaves_out="title; code of edits; pages from /web",
)


# -- Model log ``.aider.llm.history``: read only without a chat history --------
# Each request repeats all earlier requests, so only its last message can be a new prompt. It can also be
# an answer passed to the editing model, a web page, or the output of a command. After an hour without
# requests, a new session begins.


_BLOCK = re.compile(r"^(TO LLM|LLM RESPONSE) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\n", re.MULTILINE)
_FIRST_BLOCK = re.compile(rf"{_BLOCK.pattern}(?:-------|ASSISTANT)")
_EDITED_LLM_HISTORY = re.compile(r"^([^\n`<>]+)\n(?:`{3,}[^\n]*\n)?<{5,9} SEARCH", re.MULTILINE)
"""Pattern for an edit's file name, above the code fence or in its first line."""
_RULES_HEADING = re.compile(
    r"^# (?:\*SEARCH/REPLACE block\* Rules|\*file listing\* format|File editing rules)",
    re.MULTILINE,
)
_TOOL_REQUEST = re.compile(
    r"\AI added these files to the chat:|\AI have \*added these files|\A#+ Fix any errors|\AThe LLM did not conform"
    r"|\A(?:# )?(?:Generate|Write).{0,40}commit message|\ASummarize "
)
_FAILED = re.compile(r"\A# \d+ SEARCH/REPLACE blocks? failed")
_PAGE = re.compile(r"^Here is the content of [a-z][a-z0-9+.-]*://\S+:[ \t]*$", re.MULTILINE)
"""Pattern for the heading of a web page that Aider appends to a prompt."""
_RAN = re.compile(r"\AI ran this command:\s+(.+?)\s+And got this output:\s", re.DOTALL)
_SESSION_GAP = timedelta(hours=1)


class _LlmHistoryReader(_HistoryReader):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.time: datetime | None = None
        self.answer = ""
        self.edits: dict[str, str] = {}

    def __iter__(self) -> Items:
        text = self.source.text().replace("\r\n", "\n")
        blocks = list(_BLOCK.finditer(text))
        for block, end in zip(
            blocks, [*(block.start() for block in blocks[1:]), len(text)], strict=False
        ):
            time, body = local_time(block[2]), text[block.end() : end]
            if self.time is None or (time and time - self.time > _SESSION_GAP):
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
        messages = [_plain(group, "USER") for group in (*before, last) if group.startswith("USER")]
        self.applied(messages[-1] if messages else "")
        if last.startswith("USER"):
            rules = "\n".join(
                _plain(group, "SYSTEM") for group in before if group.startswith("SYSTEM")
            )
            yield from self.prompt(_without_rules(messages[-1], rules))
        for text in messages:
            self.hear(text)

    def applied(self, request: str) -> None:
        has_failed = _FAILED.match(request)
        for path, call in self.edits.items():
            is_error = bool(has_failed) and path in request
            self.talk.result(call, outcome(request if is_error else "", is_error=is_error))
        self.edits = {}

    def prompt(self, text: str) -> Items:
        page = _PAGE.search(text)
        cleaned = self.talk.clean(text[: page.start()] if page else text)
        is_tool_request = any(mark.match(cleaned.text) for mark in (_TOOL_REQUEST, _FAILED, _RAN))
        if is_tool_request or self.repeats_answer(cleaned.text) or not cleaned.text:
            return
        identity = self.talk.new_id(Speaker.OWNER, str(self.time), cleaned.text)
        yield from self.talk.say(
            Turn(identity, Speaker.OWNER, cleaned.text, self.time, flags=cleaned.flags)
        )

    def hear(self, text: str) -> None:
        ran, page = _RAN.match(text), _PAGE.search(text)
        if ran:
            self.talk.exchange.record_output("shell", ran[1], text[ran.end() :])
        elif page:
            self.talk.exchange.record(text[page.end() :], outside=True)

    def repeats_answer(self, text: str) -> bool:
        head = " ".join(text.split())[:_COMPARED_CHARACTERS]
        return bool(self.answer) and self.answer.startswith(head)

    def response(self, body: str) -> Items:
        text = _plain(body, "ASSISTANT")
        self.answer = " ".join(text.split())
        words = _EDIT.sub("", text).strip()
        if words:
            yield from self.talk.open(None, self.time, stamp=str(self.time), seed=words)
            self.talk.add_text(words)
            paths = dict.fromkeys(path.strip() for path in _EDITED_LLM_HISTORY.findall(text))
            self.edits = {path: self.talk.add_call("", "edit", {"path": path}) for path in paths}


def _plain(group: str, role: str) -> str:
    return "\n".join(line.removeprefix(role).removeprefix(" ") for line in group.splitlines())


def _without_rules(text: str, rules: str) -> str:
    """Remove the reminder of the rules that Aider appends to a prompt."""
    paragraphs = text.split("\n\n")
    for number in range(1, len(paragraphs)):
        reminder = "\n\n".join(paragraphs[number:]).strip()
        if _RULES_HEADING.match(reminder) or (
            len(reminder) > _COMPARED_CHARACTERS and reminder in rules
        ):
            return "\n\n".join(paragraphs[:number])
    return text


ADAPTER_LLM_HISTORY = Adapter(
    tool=TOOL,
    label="Aider",
    roots=partial(roots, name=LLM, variable="AIDER_LLM_HISTORY_FILE"),
    sniff=lambda head: _FIRST_BLOCK.match(head.text) is not None,
    parse=lambda source: () if (source.path.parent / CHAT).is_file() else _LlmHistoryReader(source),
    whole=True,
    versions="2025-01",
    reads="only without a chat history",
    leaves_out="title; model; tokens; code of edits; output",
)
