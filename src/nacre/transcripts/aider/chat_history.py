"""Aider's chat history, ``.aider.chat.history.md`` in a repository: many sessions in one growing Markdown file.

What a person typed are lines that begin with ``#### ``, what the tool says begins with ``> ``, both with two spaces at
the end; all else is the agent's. Times stand only at the beginning of a session: those of prompts are in the input
history beside it, which also confirms that they were typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from nacre.platform.ids import turn_hash
from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.aider.files import CHAT, INPUT, TOOL, is_input, local_time, roots, same_words, typed_beside
from nacre.transcripts.conversation import Before, Conversation, OpenTurn
from nacre.transcripts.objects import parse_time
from nacre.transcripts.tool_calls import asked, outcome
from nacre.transcripts.trust import Exchange, is_outside, is_own
from nacre.values.session import Flag, Session, Speaker, Tokens, ToolCall, Trust, Turn

Said = Iterator[Session | Turn]

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_PROMPT = re.compile(r"####(?: (.*))?", re.DOTALL)
_ASKED = re.compile(r"\(Y\)es/\(N\)o")
_COMMAND = re.compile(r"/([a-z][\w-]*)(?:\s+|\Z)")
_HELPED = "# Question:"
_WITH_WORDS = frozenset({"ask", "code", "architect", "context", "copy-context", "help", "chat-mode"})
_RUNS = frozenset({"run", "test", "git", "lint"})
_VERSION = re.compile(r"Aider v?(\S+)")
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")
_EDITED = re.compile(r"Applied edit to (.+)")
_COMMITTED = re.compile(r"Commit ([0-9a-f]{7,40}) (.*)")
_COUNT = r"(\d+(?:\.\d+)?k?)"
_SPENT = re.compile(rf"Tokens: {_COUNT} sent(?:, {_COUNT} cache write)?(?:, {_COUNT} cache hit)?, {_COUNT} received\.")
_SCRAPED = re.compile(r"Scraping |Add URL to the chat\?.* (?:y|a)\b|\bto the chat\b.*https?://")
_THOUGHTS = re.compile(
    r"^►? ?\*\*THINKING\*\*.*?^►? ?\*\*ANSWER\*\*|<think>.*?</think>|-{3,}\s*► \*\*", re.DOTALL | re.MULTILINE
)
_SURE = 80
_FEWEST = 20
"""So many characters of an answer are compared with a prompt, and so many at least: "ok" proves nothing."""

_EDIT = re.compile(
    r"(?:^`{3,}[^\n]*\n)?^<{5,9} SEARCH.*?^>{5,9} REPLACE[^\n]*$(?:\n`{3,}[ \t]*$)?", re.DOTALL | re.MULTILINE
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

    def read(self) -> Said:
        for offset, line in self.source.lines():
            has_gap = offset > self.end
            self.end = offset + len(line) + 1
            yield from self.line(offset, line.decode("utf-8", errors="replace").rstrip("\r"), has_gap=has_gap)
        before = self.prompt_at or self.talk.before
        yield from self.prompted()
        self.said()
        yield from self.talk.finish(before)

    def line(self, offset: int, line: str, *, has_gap: bool) -> Said:
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

    def begin(self, stamp: str) -> Said:
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

    def prompted(self) -> Said:
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
        yield from self.talk.say(Turn(identity, Speaker.OWNER, cleaned.text, time, calls, flags, trust))
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
        return is_handed_on or self.carry.get("manual", False) or (bool(plain) and plain == commanded)

    def when(self, text: str) -> tuple[datetime | None, bool]:
        """When a prompt was typed, and whether the input history, where there is one, knows of it."""
        last = parse_time(self.carry.get("clock"))
        wanted = same_words(text)
        times = [time for time, words in self.typed if words == wanted and (last is None or time >= last)]
        if times:
            self.carry["clock"] = min(times).isoformat()
        return (min(times) if times else last), bool(times) or not self.typed

    # What the agent and the tool said

    def other(self, offset: int, line: str, *, has_gap: bool) -> Said:
        if line.startswith(">") and (line.endswith("  ") or self.carry.get("bare")):
            yield from self.tool(offset, line[1:].strip())
            return
        self.hear()
        yield from self.opened(offset)
        self.words += ["", line] if has_gap else [line]

    def opened(self, offset: int) -> Said:
        if self.talk.opened is None:
            before = self.talk.place(offset)
            time = parse_time(self.carry.get("clock"))
            self.carry |= {"answer": "", "commanded": "", "manual": False}
            yield from self.talk.open(OpenTurn(self.numbered(Speaker.AGENT), time, unique=False), before)

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
            self.talk.exchange.heard(shown, outside=is_outside("shell", ran), own=is_own("shell", ran))

    def tool(self, offset: int, line: str) -> Said:
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


def parse(source: Source) -> Said:
    """Parse one history; see :class:`~nacre.transcripts.adapter.Adapter`."""
    if source.path.name.endswith(INPUT):
        return iter(())
    return _Reader(source).read()


def _sniff(head: Head) -> bool:
    lines = [line.strip("\ufeff\r") for line in head.text.splitlines() if line.strip()]
    if head.path.name.endswith(CHAT):
        return any(map(_START.fullmatch, lines))
    return bool(lines and _START.fullmatch(lines[0])) or (head.path.name.endswith(INPUT) and is_input(head))


def _roots(places: Places) -> Sequence[Root]:
    return roots(places, CHAT, "AIDER_CHAT_HISTORY_FILE")


ADAPTER = Adapter(
    tool=TOOL, label="Aider", roots=_roots, sniff=_sniff, parse=parse,
    versions="0.82, 0.86.1",
    reads=("what was said", "edits and commits", "times, from the input history beside", "folder", "model", "version",
           "tokens, as they are rounded"),
    leaves_out=("reasoning", "code of edits", "output of the tool", "pages brought with /web (not recorded)"),
    environment=("AIDER_CHAT_HISTORY_FILE",),
)  # fmt: skip
