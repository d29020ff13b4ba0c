"""Aider's log of what its models were sent, ``.aider.llm.history``: read only where there is no chat history.

Each request repeats all that went before, so only its last message is looked at for what was typed. The tool writes
requests of its own: one that hands an answer on to the model that edits is not the owner's, and neither are a page or
the output of a command. An hour of silence parts two sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from nacre.platform.ids import turn_hash
from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.aider.files import CHAT, LLM, TOOL, local_time, roots
from nacre.transcripts.conversation import Conversation, OpenTurn
from nacre.transcripts.tool_calls import outcome
from nacre.transcripts.trust import is_outside, is_own
from nacre.values.session import Flag, Session, Speaker, Turn

Said = Iterator[Session | Turn]

_BLOCK = re.compile(r"^(TO LLM|LLM RESPONSE) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\n", re.MULTILINE)
_EDIT = re.compile(
    r"(?:^`{3,}[^\n]*\n)?^<{5,9} SEARCH.*?^>{5,9} REPLACE[^\n]*$(?:\n`{3,}[ \t]*$)?", re.DOTALL | re.MULTILINE
)
_EDITED = re.compile(r"^([^\n`<>]+)\n(?:`{3,}[^\n]*\n)?<{5,9} SEARCH", re.MULTILINE)
"""The file that an edit names stands above its fence, or as the first line in it."""
_RULES = re.compile(r"^# (?:\*SEARCH/REPLACE block\* Rules|\*file listing\* format|File editing rules)", re.MULTILINE)
_HARNESS = re.compile(
    r"\AI added these files to the chat:|\AI have \*added these files|\A#+ Fix any errors|\AThe LLM did not conform"
    r"|\A(?:# )?(?:Generate|Write).{0,40}commit message|\ASummarize "
)
_FAILED = re.compile(r"\A# \d+ SEARCH/REPLACE blocks? failed")
_PAGE = re.compile(r"^Here is the content of [a-z][a-z0-9+.-]*://\S+:[ \t]*$", re.MULTILINE)
"""To the end of the message: pages are added to what was typed, one after the other."""
_RAN = re.compile(r"\AI ran this command:\s+(.+?)\s+And got this output:\s", re.DOTALL)
_SILENCE = timedelta(hours=1)
_SURE = 80


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.folder = str(source.path.parent.absolute())
        self.talk = Conversation(source, Session(TOOL, source.path.stem, cwd=self.folder))
        self.time: datetime | None = None
        self.answer = ""
        self.edits: dict[str, str] = {}

    def read(self) -> Said:
        text = self.source.text().replace("\r\n", "\n")
        blocks = list(_BLOCK.finditer(text))
        for block, end in zip(blocks, [*(one.start() for one in blocks[1:]), len(text)], strict=False):
            time, body = local_time(block[2]), text[block.end() : end]
            if self.time is None or (time and time - self.time > _SILENCE):
                yield from self.begin(time)
            self.time = time or self.time
            yield from self.request(body) if block[1] == "TO LLM" else self.response(body)
        self.applied("")
        yield from self.talk.end()

    def begin(self, time: datetime | None) -> Said:
        self.applied("")
        yield from self.talk.end()
        name = turn_hash("session", f"llm {time}\n{self.folder}", 0)
        self.talk = Conversation(self.source, Session(TOOL, name, cwd=self.folder, started=time))
        self.answer = ""

    def request(self, body: str) -> Said:
        *before, last = re.split(r"^-------\n", body, flags=re.MULTILINE)
        brought = [_plain(group, "USER") for group in (*before, last) if group.startswith("USER")]
        self.applied(brought[-1] if brought else "")
        if last.startswith("USER"):
            rules = "\n".join(_plain(group, "SYSTEM") for group in before if group.startswith("SYSTEM"))
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

    def prompt(self, text: str) -> Said:
        """What was typed, if it was: without the pages that Aider added for the addresses in it."""
        page = _PAGE.search(text)
        cleaned = self.talk.clean(text[: page.start()] if page else text)
        is_tools = any(mark.match(cleaned.text) for mark in (_HARNESS, _FAILED, _RAN))
        if is_tools or self.hands_on(cleaned.text) or not cleaned.text:
            return
        flags = Flag.INJECTED if cleaned.injected else Flag.NONE
        identity = self.talk.new_id(Speaker.OWNER, str(self.time), cleaned.text)
        yield from self.talk.say(Turn(identity, Speaker.OWNER, cleaned.text, self.time, flags=flags))

    def hear(self, text: str) -> None:
        """A page, or what a command put out: the model reads it with every request."""
        ran, page = _RAN.match(text), _PAGE.search(text)
        if ran:
            output, command = text[ran.end() :], ran[1]
            self.talk.exchange.heard(output, outside=is_outside("shell", command), own=is_own("shell", command))
        elif page:
            self.talk.exchange.heard(text[page.end() :], outside=True)

    def hands_on(self, text: str) -> bool:
        """Whether a request begins with what the model answered last."""
        head = " ".join(text.split())[:_SURE]
        return bool(self.answer) and self.answer.startswith(head)

    def response(self, body: str) -> Said:
        text = _plain(body, "ASSISTANT")
        self.answer = " ".join(text.split())
        said = _EDIT.sub("", text).strip()
        if said:
            identity = self.talk.new_id(Speaker.AGENT, str(self.time), said)
            yield from self.talk.open(OpenTurn(identity, self.time, unique=False))
            self.talk.add_text(said)
            paths = dict.fromkeys(found.strip() for found in _EDITED.findall(text))
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


def parse(source: Source) -> Said:
    """Parse one log; see :class:`~nacre.transcripts.adapter.Adapter`."""
    if (source.path.parent / CHAT).is_file():
        return iter(())
    return _Reader(source).read()


def _sniff(head: Head) -> bool:
    first = _BLOCK.match(head.text)
    return bool(first) and head.text[first.end() :].startswith(("-------", "ASSISTANT"))  # type: ignore[union-attr]


def _roots(places: Places) -> Sequence[Root]:
    return roots(places, LLM, "AIDER_LLM_HISTORY_FILE")


ADAPTER = Adapter(
    tool=TOOL, label="Aider", roots=_roots, sniff=_sniff, parse=parse, whole=True,
    versions="of January 2025 (files name no version)",
    reads=("what was said, where there is no chat history", "edits that the model asked for", "times"),
    leaves_out=("what the tool asked its models", "repeated context", "code of edits", "pages and outputs brought"),
    environment=("AIDER_LLM_HISTORY_FILE",),
)  # fmt: skip
