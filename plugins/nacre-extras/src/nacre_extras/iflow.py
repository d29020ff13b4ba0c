"""iFlow CLI: ``~/.iflow/projects/<folder>/session-<id>.jsonl``.

Records are like Claude Code's, but with Gemini CLI's results. While an answer grows, later records
repeat its calls.
"""

from __future__ import annotations

from nacre.base.plain import Values, mapping, string
from nacre.readers.adapter import Adapter, Head, Items, Root, Source, content_blocks
from nacre.readers.conversation import tokens_of
from nacre.readers.messages import HOST, Chat, message_of, say
from nacre.values.session import Session

_MAX_CALLS = 50


class _Reader(Chat):
    def __init__(self, source: Source) -> None:
        super().__init__(source, Session("iflow", source.path.stem))

    def take(self, offset: int, record: Values) -> Items:
        message = mapping(record, "message")
        if record.get("type") not in ("user", "assistant"):
            self.source.unknown(str(record.get("type")))
            return
        self.talk.learn(
            native_id=string(record, "sessionId"),
            cwd=string(record, "cwd"),
            branch=string(record, "gitBranch"),
            tool_version=string(record, "version"),
        )
        status = mapping(record, "toolUseResult").get("status")
        blocks = [_plain_result(block, status) for block in content_blocks(message)]
        known_ids = self.source.carry.get("calls", [])
        fresh = [block for block in blocks if block.get("id") not in known_ids]
        answer = message_of(
            self.source,
            {**message, "content": fresh},
            record.get("timestamp"),
            id=string(record, "uuid"),
            model=string(message, "model"),
            tokens=tokens_of(mapping(message, "usage")),
        )
        answer.claims += [HOST] if record.get("isSidechain") or record.get("isMeta") else []
        yield from say(self.talk, answer, offset, joins=self.can_grow)
        ids = [block["id"] for block in fresh if isinstance(block.get("id"), str)]
        self.source.carry["calls"] = [*known_ids, *ids][-_MAX_CALLS:]


def _plain_result(block: Values, status: object) -> Values:
    if block.get("type") != "tool_result":
        return block
    output = block.get("content")
    function = mapping(output, "responseParts", "functionResponse") or mapping(
        output, "functionResponse"
    )
    response = mapping(function, "response")
    failed = status not in (None, "success") or "error" in response or block.get("is_error") is True
    words = string(response, "error", "output") or output
    return {**block, "content": words, "is_error": failed}


def _sniff(head: Head) -> bool:
    return any(
        str(record.get("sessionId")).startswith("session-") and "message" in record
        for record in head.objects
    )


ADAPTER = Adapter(
    tool="iflow",
    label="iFlow CLI",
    roots=lambda places: [Root(places.home / ".iflow/projects", ("*/session-*.jsonl",))],
    sniff=_sniff,
    parse=_Reader,
    resume=("iflow", "--resume", "{id}"),
    versions="1.0.0*",
    reads="branch; version",
    leaves_out="title",
)
