"""The records of a Claude Code transcript, as far as nacre reads them.

Bodies stay undecoded (``msgspec.Raw``) until a record turns out to be of interest: most of a transcript's bytes are
tool results, which are only skimmed. Everything a tool may write differently is optional.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from nacre.transcripts.adapter import Source
from nacre.transcripts.origins import Claims
from nacre.values.session import Tokens

T = TypeVar("T")

IGNORED = frozenset(
    "agent-color agent-name agent-setting api-request api-request-blob api-request-resumed api-request-shape "
    "artifact-autoreact-ledger artifact-comment-monitor atis-latch attribution-snapshot bridge-session "
    "content-replacement continued-in cost-state data-flow-incomplete data-flow-records derived-from dev-mods "
    "ended-by-model file-history-delta file-history-snapshot fork-context-ref frame-link history-suppression "
    "host-row hybrid-organization isolation-latch last-prompt memory-mode mode observer-ref permission-mode "
    "relocated repl-mode result resume-head-vouch session-owner started system tag teleported-from tool_result "
    "tool_use tools-used worktree-state".split()
)
"""Types of records that hold nothing to read: all that Claude Code 2.1.330 writes beside those that are."""


class Record(Claims, gc=False):
    """One line."""

    type: str = ""
    uuid: str | None = None
    sessionId: str | None = None  # noqa: N815
    agentId: str | None = None  # noqa: N815
    timestamp: str | None = None
    cwd: str | None = None
    gitBranch: str | None = None  # noqa: N815
    version: str | None = None
    isSidechain: bool | None = None  # noqa: N815
    isMeta: bool | None = None  # noqa: N815
    isCompactSummary: bool | None = None  # noqa: N815
    isApiErrorMessage: bool | None = None  # noqa: N815
    operation: str | None = None
    reason: str | None = None
    summary: str | None = None
    leafUuid: str | None = None  # noqa: N815
    aiTitle: str | None = None  # noqa: N815
    customTitle: str | None = None  # noqa: N815
    prUrl: str | None = None  # noqa: N815
    planContent: str | None = None  # noqa: N815
    sourceToolAssistantUUID: str | None = None  # noqa: N815
    message: msgspec.Raw = msgspec.Raw(b"null")
    content: msgspec.Raw = msgspec.Raw(b"null")
    attachment: msgspec.Raw = msgspec.Raw(b"null")
    data: msgspec.Raw = msgspec.Raw(b"null")
    toolUseResult: msgspec.Raw = msgspec.Raw(b"null")  # noqa: N815


class Message(Claims, gc=False):
    """The ``message`` of a user or assistant record; ``content`` is a string or a list of blocks."""

    content: msgspec.Raw = msgspec.Raw(b"null")
    id: str | None = None
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")


class Usage(msgspec.Struct, gc=False):
    """What a message cost; its records repeat it, and the last one knows best."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def tokens(self) -> Tokens:
        """The same in nacre's words."""
        fresh = (self.input_tokens or 0) + (self.cache_creation_input_tokens or 0)
        return Tokens(fresh, self.cache_read_input_tokens or 0, self.output_tokens or 0)


class Block(Claims, gc=False):
    """One block of a message's content."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"null")
    tool_use_id: str | None = None
    is_error: bool | None = None
    content: msgspec.Raw = msgspec.Raw(b"null")


class Progress(msgspec.Struct, gc=False):
    """The ``data`` of a progress record; ``message`` is a record of a sub-agent."""

    type: str = ""
    agentId: str | None = None  # noqa: N815
    message: msgspec.Raw = msgspec.Raw(b"null")


RECORD = msgspec.json.Decoder(Record)
BLOCKS = list[Block]

_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in (Record, Message, Usage, Progress, BLOCKS, str, dict)
}


def decode_raw(raw: msgspec.Raw, kind: type[T]) -> T | None:
    """Decode a body; ``None`` when it is absent or of another shape."""
    try:
        value: T = _DECODERS[kind].decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value


def is_string(raw: msgspec.Raw) -> bool:
    """Whether a body is a JSON string."""
    return bytes(memoryview(raw)[:1]) == b'"'


def plain_text(content: msgspec.Raw) -> str:
    """The text of a tool result: a string, or the text blocks of a list."""
    if is_string(content):
        return decode_raw(content, str) or ""
    return "\n".join(block.text for block in decode_raw(content, BLOCKS) or () if block.text)


def shows_image(content: msgspec.Raw) -> bool:
    """Whether a tool result holds a picture, whose words are not recorded."""
    if is_string(content) or b'"image"' not in bytes(content):
        return False
    return any(block.type == "image" for block in decode_raw(content, BLOCKS) or ())


def record_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """The file's lines; for a session teleported from the web, one object, the records in its ``loglines``."""
    if source.path.suffix != ".json":
        yield from source.lines()
        return
    try:
        logged = msgspec.json.decode(source.text().encode("utf-8", errors="replace"))["loglines"]
    except (msgspec.DecodeError, KeyError, TypeError, RecursionError):
        logged = None
    if not isinstance(logged, list):
        source.corrupt()
        return
    for number, record in enumerate(logged):
        yield number, msgspec.json.encode(record)
