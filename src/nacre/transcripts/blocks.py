"""Message content as tools write it: a string, one block, or a list of blocks."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from nacre.transcripts.objects import decode
from nacre.transcripts.origins import Claims

T = TypeVar("T")

ABSENT = msgspec.Raw(b"null")

_TEXTS = frozenset({"", "text", "input_text", "output_text", "inputText", "outputText", "markdown"})


class Block(Claims, gc=False):
    """One block of content; what a kind of block does not have stays empty."""

    type: str | None = None
    text: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = ABSENT

    @property
    def is_text(self) -> bool:
        """Whether the block is words, not thinking, an image or a call."""
        return bool(self.text) and (self.type or "") in _TEXTS


_CONTENT = msgspec.json.Decoder(str | Block | list[Block | str] | None)
_ANY = msgspec.json.Decoder(Any)


def blocks_of(content: msgspec.Raw) -> list[Block]:
    """The blocks of a message; a string is one block of text, and what has another shape has none."""
    value = decode(_CONTENT, bytes(content))
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [Block(type="text", text=item) if isinstance(item, str) else item for item in items]


def text_of(content: msgspec.Raw, *, separator: str = "\n\n") -> str:
    """The words of a message, without thinking, images and calls."""
    return separator.join(block.text for block in blocks_of(content) if block.text and block.is_text)


def plain(raw: msgspec.Raw) -> Any:
    """A body as plain values, whatever its shape; ``None`` when it cannot be decoded."""
    return decode(_ANY, bytes(raw))
