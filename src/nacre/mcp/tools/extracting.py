"""``memory_extract``: what a text or a session would teach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.errors import InvalidInput
from nacre.extraction.requests import ExtractRequest
from nacre.mcp import arguments
from nacre.mcp.answers import Answer, fitting, framed, indented
from nacre.mcp.desk import Desk
from nacre.text.passages import harmless, one_line
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.values.candidate import Candidate
    from nacre.views import Extracted


def extract(desk: Desk, asked: arguments.Extract) -> Answer:
    """Memories that extraction would make; none is stored."""
    if bool((asked.text or "").strip()) == bool(asked.session):
        raise InvalidInput("give either a text or a session", hint="memory_sessions with list shows sessions")
    desk.tell("reading")
    found: Extracted = desk.call(
        "extract", ExtractRequest(text=asked.text or "", session=asked.session, by_model=asked.by_model)
    )
    blocks = [_block(candidate) for candidate in found.candidates]
    shown = fitting(blocks, asked.budget)
    text = framed(
        "Nothing there that would be kept." if not blocks else "Would be kept; nothing was stored. "
        "memory_store keeps what is right and of use:",
        "\n".join(blocks[:shown]),
        f"{len(blocks) - shown} more: ask with a higher budget." if shown < len(blocks) else "",
        f"Rules did what the model did not: {one_line(harmless(found.problem))}." if found.problem else "",
    )  # fmt: skip
    records = [
        {"kind": one.kind.value, "subject": one.subject, "content": one.content, "importance": one.importance,
         "tags": list(one.tags), "trust": one.trust.value, "is_candidate": bool(one.held)}
        for one in found.candidates
    ]  # fmt: skip
    return Answer(text, {"candidates": records, "problem": found.problem})


def _block(candidate: Candidate) -> str:
    outside = ", UNTRUSTED" if candidate.trust is Trust.UNTRUSTED else ""
    maybe = ", only a candidate" if candidate.held else ""
    head = f"- {candidate.kind.value}, importance {candidate.importance}{outside}{maybe}: {harmless(candidate.subject)}"
    return f"{one_line(head)}\n{indented(candidate.content)}"
