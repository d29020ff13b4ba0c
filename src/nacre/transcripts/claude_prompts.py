"""What in a Claude Code prompt the owner typed, and what the harness put there."""

from __future__ import annotations

import msgspec

from nacre.model.session import Flag
from nacre.transcripts.claude_records import BLOCKS, Block, decode_raw, is_string
from nacre.transcripts.injected import clean

_NOISE = (
    "<local-command", "<bash-stdout", "<bash-stderr", "<task-notification", "<ide_", "<command-message>caveat",
    "[Request interrupted", "Caveat: The messages below", "This session is being continued from a previous",
)  # fmt: skip


def content_of(content: msgspec.Raw) -> tuple[str, list[Block]]:
    """The text a message's content holds, and the tool results in it."""
    if is_string(content):
        return decode_raw(content, str) or "", []
    blocks = decode_raw(content, BLOCKS) or []
    texts = [block.text for block in blocks if block.type == "text" and block.text and _is_said(block.text)]
    return "\n\n".join(texts), [block for block in blocks if block.type == "tool_result"]


def _is_said(text: str) -> bool:
    return not text.startswith(("<ide_", "[Request interrupted"))


def typed(text: str) -> tuple[str, Flag]:
    """What the owner typed in a prompt, and whether it was a command; empty for what the harness wrote."""
    cleaned = clean(text)
    text = cleaned.text
    flags = Flag.INJECTED if cleaned.injected else Flag.NONE
    command = _inside(text, "command-name") if text.startswith("<command-") else None
    if command is not None:
        words = _inside(text, "command-args")
        return (f"/{command.removeprefix('/')} {words}", flags | Flag.COMMAND) if words else ("", Flag.META)
    shell = _inside(text, "bash-input") if text.startswith("<bash-input>") else None
    if shell is not None:
        return f"! {shell}", flags | Flag.META
    return ("", Flag.META) if text.startswith(_NOISE) else (text, flags)


def _inside(text: str, tag: str) -> str | None:
    """What the first pair of tags encloses; an expression would look for the end again from every beginning."""
    _, _, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside.strip() if closed else None
