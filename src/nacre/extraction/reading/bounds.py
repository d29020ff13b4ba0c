"""Prepares: turns whose texts expressions can be let loose on."""

from __future__ import annotations

import re
from dataclasses import replace

from nacre.text.passages import pieces
from nacre.values.session import Turn

LONGEST_TURN = 32_000
"""Characters of a turn that are looked at: of a longer one, which holds a paste, half of them at either end."""

LONGEST_LINE = 4_000
"""Characters of a line; a longer one is taken for several. Expressions go back over what they passed in a line."""

_LONG_LINE = re.compile(r"[^\n]{4001,}")


def bounded(turn: Turn) -> Turn:
    """A turn whose text expressions can be let loose on: pastes cut in the middle, endless lines in pieces."""
    text = turn.text
    if len(text) <= LONGEST_LINE:
        return turn
    if len(text) > LONGEST_TURN:
        text = f"{text[: LONGEST_TURN // 2]}\n\n{text[-LONGEST_TURN // 2 :]}"
    return replace(turn, text=_LONG_LINE.sub(lambda line: "\n".join(pieces(line.group(), LONGEST_LINE)), text))
