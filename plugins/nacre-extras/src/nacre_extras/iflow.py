"""iFlow CLI: ``~/.iflow/projects/<folder>/session-<id>.jsonl``.

The records resemble Claude Code's. While an answer is written, its calls are repeated in further
records. The results of calls have Gemini CLI's fields.
"""

from __future__ import annotations

from typing import Any

from nacre.base.plain import Values, mapping, string
from nacre.readers.adapter import Adapter, Head, Items, Root, Source, content_blocks
from nacre.values.session import Session
from nacre_extras.chat import HOST, Chat, tokens_of

_MAX_CALLS = 50


class _Reader(Chat):
    def __init__(self, source: Source) -> None:
        super().__init__(source, Session("iflow", source.path.stem))
        self.status: object = None

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
        self.status = mapping(record, "toolUseResult").get("status")
        blocks = content_blocks(message)
        seen = self.source.carry.get("calls", [])
        fresh = [block for block in blocks if block.get("id") not in seen]
        claims = (HOST,) if record.get("isSidechain") or record.get("isMeta") else ()
        yield from self.message(
            offset,
            {**message, "content": fresh},
            record.get("timestamp"),
            *claims,
            identity=string(record, "uuid"),
            model=string(message, "model"),
            tokens=tokens_of(mapping(message, "usage")),
            joins=self.can_grow,
        )
        ids = [block["id"] for block in fresh if isinstance(block.get("id"), str)]
        self.source.carry["calls"] = [*seen, *ids][-_MAX_CALLS:]

    def result(self, record: Values, output: Any, code: int | None = None) -> None:
        values = mapping(output)
        function = mapping(values, "responseParts", "functionResponse") or mapping(
            values, "functionResponse"
        )
        response = mapping(function, "response")
        failed = self.status not in (None, "success") or "error" in response
        words = string(response, "error", "output") or output
        super().result({**record, "is_error": failed or record.get("is_error")}, words, code)


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
    parse=lambda source: _Reader(source).read(),
    resume=("iflow", "--resume", "{id}"),
    versions="1.0.0*",
    reads="branch; version",
    leaves_out="title",
)
