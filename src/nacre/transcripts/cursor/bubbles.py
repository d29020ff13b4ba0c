"""A conversation with Cursor, bubble by bubble, whatever generation of its storage the bubbles come from.

What the agent says and does in one answer lies in many bubbles: each that has words begins a turn, and the tools after
it are the turn's. Ids are made of words and their occurrence, not of the bubbles' own ids: Cursor writes the same
conversation as lines of text elsewhere, where there are none, and both are one session.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from nacre.transcripts.adapter import Source
from nacre.transcripts.blocks import ABSENT
from nacre.transcripts.conversation import Conversation, OpenTurn
from nacre.transcripts.objects import decode, parse_time
from nacre.transcripts.origins import Claims
from nacre.transcripts.tool_calls import outcome
from nacre.transcripts.whole_json import total
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, Turn

TOOL = "cursor"

Said = Iterator[Session | Turn]

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_EPOCH_MS = 1_000_000_000_000
_EXIT_CODES = ("exitCode", "exitCodeV2", "exit_code")
_OUTPUTS = ("output", "contents", "stdout", "result", "text")
_DECLINED = ("rejected", "cancelled", "canceled")
_FROM_OUTSIDE = ("externalLinks", "selectedDocs", "useWeb", "selectedPullRequests")


class Timing(msgspec.Struct, gc=False):
    """When a bubble's request was sent, in epoch milliseconds. ``clientStartTime`` counts from the machine's start."""

    clientRpcSendTime: Any = None  # noqa: N815
    clientEndTime: Any = None  # noqa: N815


class Called(msgspec.Struct, gc=False):
    """A tool call with its result. A bubble without a name has only a state left here, and is no call."""

    name: Any = None
    toolCallId: Any = None  # noqa: N815
    status: Any = None
    rawArgs: Any = None  # noqa: N815
    params: Any = None
    result: Any = None
    error: Any = None
    userDecision: Any = None  # noqa: N815


class Bubble(Claims, gc=False):
    """One bubble: type 1 or ``user`` is what a person typed, 2 or ``ai`` what the agent said, thought or did."""

    type: Any = None
    text: Any = None
    rawText: Any = None  # noqa: N815
    richText: Any = None  # noqa: N815
    createdAt: Any = None  # noqa: N815
    timingInfo: msgspec.Raw = ABSENT  # noqa: N815
    toolFormerData: msgspec.Raw = ABSENT  # noqa: N815
    modelInfo: Any = None  # noqa: N815
    modelType: Any = None  # noqa: N815
    tokenCount: Any = None  # noqa: N815
    workspaceUris: Any = None  # noqa: N815
    useWeb: Any = None  # noqa: N815
    context: msgspec.Raw = ABSENT

    @property
    def is_owners(self) -> bool | None:
        """Whether a person typed it; ``None`` where nobody knows."""
        return {1: True, "user": True, 2: False, "ai": False}.get(self.type if isinstance(self.type, int | str) else "")

    @property
    def words(self) -> str:
        """What it says, as plain text."""
        for text in (self.text, self.rawText):
            if isinstance(text, str) and text.strip():
                return text
        return rich_words(self.richText)

    @property
    def model(self) -> str | None:
        """The model that answered."""
        info = self.modelInfo
        name = info.get("modelName") if isinstance(info, dict) else self.modelType
        return name if isinstance(name, str) and name != "default" else None

    @property
    def tokens(self) -> Tokens:
        """What the answer cost; most bubbles tell nothing, and say so with zeros."""
        counts = self.tokenCount if isinstance(self.tokenCount, dict) else {}
        return Tokens(total(counts, "inputTokens"), 0, total(counts, "outputTokens")).bounded

    @property
    def time(self) -> datetime | None:
        """When it was written, where it knows."""
        timing = decode(_TIMING, bytes(self.timingInfo))
        told = (timing.clientRpcSendTime, timing.clientEndTime) if timing else ()
        since = [value for value in told if isinstance(value, int | float) and value > _EPOCH_MS]
        return parse_time(self.createdAt) or next((parse_time(value) for value in since), None)


_BUBBLE = msgspec.json.Decoder(Bubble)
_CALLED = msgspec.json.Decoder(Called | None)
_TIMING = msgspec.json.Decoder(Timing | None)


def bubble_of(raw: bytes) -> Bubble | None:
    """A bubble; ``None`` when it cannot be understood."""
    return decode(_BUBBLE, raw)


class Talk:
    """Turns bubbles into a session's turns. A time that a bubble lacks is that of the one before it."""

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)
        self.time = session.started

    def take(self, bubble: Bubble, when: datetime | None = None) -> Said:
        """What one bubble says and does; ``when`` it was, where the bubble does not know."""
        self.time = bubble.time or when or self.time
        if bubble.is_owners is None:
            self.source.unknown(f"bubble {bubble.type}")
        elif bubble.is_owners:
            yield from self.owner(bubble)
        else:
            yield from self.agent(bubble)

    def owner(self, bubble: Bubble) -> Said:
        """What a person typed, or, to a sub-agent, the agent that called it."""
        cleaned = self.talk.clean(bubble.words)
        if cleaned.text:
            speaker = Speaker.AGENT if self.talk.session.kind is SessionKind.SUBAGENT else Speaker.OWNER
            identity = self.talk.new_id(speaker, None, cleaned.text)
            flags = Flag.INJECTED if cleaned.injected else Flag.NONE
            yield from self.talk.say(Turn(identity, speaker, cleaned.text, self.time, flags=flags), bubble)
        if _draws_on_the_web(bubble):
            self.talk.exchange.unseen()

    def agent(self, bubble: Bubble) -> Said:
        """Words begin a turn; a call belongs to the turn that is open."""
        if bubble.model:
            self.learn(model=bubble.model)
        self.talk.spend(bubble.tokens)
        words = bubble.words if isinstance(bubble.text, str) or isinstance(bubble.rawText, str) else ""
        called = decode(_CALLED, bytes(bubble.toolFormerData))
        if words.strip():
            yield from self.open(words.strip())
            self.talk.add_text(words)
        if called and isinstance(called.name, str) and called.name:
            if self.talk.opened is None:
                yield from self.open(f"call {called.name}")
            self.call(called)

    def open(self, seed: str) -> Said:
        """Begin a turn of the agent."""
        identity = self.talk.new_id(Speaker.AGENT, None, seed)
        yield from self.talk.open(OpenTurn(identity, self.time, unique=False))

    def call(self, called: Called) -> None:
        """One tool call with what came of it."""
        arguments = called.rawArgs if _says_something(called.rawArgs) else called.params
        known = arguments if isinstance(arguments, str | dict) else ""
        call_id = str(called.toolCallId or "")
        call_id = self.talk.add_call(call_id, str(called.name), known)
        result = called.result if called.result is not None else called.error
        told = result_text(result)
        came = _outcome(called, result, told)
        if came is not None:
            self.talk.result(call_id, came, lambda: told)
        if came == "ok" and not told and self.talk.opened and self.talk.opened.calls[call_id].outside:
            self.talk.exchange.unseen()

    def learn(self, **known: Any) -> None:
        """Facts of the session that show on the way."""
        session = self.talk.session
        new = {name: value for name, value in known.items() if value and getattr(session, name) != value}
        self.talk.session = replace(session, **new)

    def end(self) -> Said:
        """The conversation ends, for now."""
        yield from self.talk.end()


def result_text(result: object) -> str:
    """What a tool said, out of the JSON in which Cursor keeps it."""
    if isinstance(result, str):
        value = decode(_ANY, result.encode("utf-8", "replace")) if result.lstrip()[:1] in ("{", "[") else None
        return result_text(value) or result if value is not None else result
    if isinstance(result, dict):
        for key in _OUTPUTS:
            if isinstance(result.get(key), str) and result[key].strip():
                return str(result[key])
        return msgspec.json.encode(result).decode() if result else ""
    return msgspec.json.encode(result).decode() if isinstance(result, list) and result else ""


def rich_words(rich: object) -> str:
    """The words in the editor's own tree of a message."""
    if not isinstance(rich, str) or not rich.strip():
        return ""
    tree = decode(_ANY, rich.encode("utf-8", "replace"))
    root = tree.get("root") if isinstance(tree, dict) else None
    blocks = root.get("children") if isinstance(root, dict) else None
    lines = ["".join(_leaves(block)) for block in blocks] if isinstance(blocks, list) else []
    return "\n".join(lines).strip()


def _leaves(node: Any) -> Iterator[str]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        if isinstance(node.get("text"), str):
            yield node["text"]
        elif node.get("type") == "linebreak":
            yield "\n"
        children = node.get("children")
        waiting += reversed(children) if isinstance(children, list) else ()


def _says_something(arguments: object) -> bool:
    return bool(arguments) and (not isinstance(arguments, str) or arguments.strip() not in ("", "{}"))


def _outcome(called: Called, result: object, told: str) -> str | None:
    """How a call came out; ``None`` while it runs."""
    facts = result if isinstance(result, dict) else None
    if isinstance(result, str) and result.lstrip().startswith("{"):
        facts = decode(_ANY, result.encode("utf-8", "replace"))
    facts = facts if isinstance(facts, dict) else {}
    status = str(called.status or "").lower()
    if status in _DECLINED or called.userDecision == "rejected" or facts.get("rejected") is True:
        return "rejected"
    code = next((facts[key] for key in _EXIT_CODES if type(facts.get(key)) is int), None)
    if status == "error" or called.error:
        return outcome(told or result_text(called.error), exit_code=code or None, is_error=True)
    if status in ("completed", "success", "") and (result is not None or status):
        return outcome(told, exit_code=code)
    return None


def _draws_on_the_web(bubble: Bubble) -> bool:
    """Whether pages were given to the agent that are not recorded."""
    context = decode(_ANY, bytes(bubble.context))
    facts = context if isinstance(context, dict) else {}
    mentions = facts.get("mentions")
    found = [facts.get(key) for key in _FROM_OUTSIDE] + [bubble.useWeb]
    found += [mentions.get(key) for key in _FROM_OUTSIDE] if isinstance(mentions, dict) else []
    return any(found)
