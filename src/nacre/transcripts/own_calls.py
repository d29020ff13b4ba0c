"""Sessions that nacre began itself, by asking a model through an agent's own command: they are not read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nacre.values.model_calls import OWN_CALL
from nacre.values.session import Session, Speaker, Turn

TOOLS = ("claude-code", "codex")
HEAD_BYTES = 262_144
_MARK = OWN_CALL.partition("]")[0] + "]"
_BEGINS = re.compile(rb'(?<!\\)"' + re.escape(_MARK.encode()))


def may_be_own(head: bytes) -> bool:
    """Whether some text in the first bytes of a transcript begins as nacre's questions do."""
    return _BEGINS.search(head) is not None


def is_own_call(items: Iterable[Session | Turn]) -> bool:
    """Whether the first that was said is a question of nacre's. A session that quotes one later on is a session."""
    for item in items:
        if isinstance(item, Turn) and item.speaker is Speaker.OWNER:
            return item.text.lstrip().startswith(_MARK)
    return False
