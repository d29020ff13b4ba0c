"""Words as full text keeps them, on every engine: SQLite's tokenizer, diacritics dropped, Porter stems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

_OPTIONS = ["unicode61", "remove_diacritics", "2"]


def stemmer(connection: apsw.Connection) -> Callable[[str], list[str]]:
    """What makes the stems of a text, with the tokenizer of a connection."""
    tokenize: Any = connection.fts5_tokenizer("porter", _OPTIONS)

    def stems(text: str) -> list[str]:
        found: list[str] = tokenize(
            text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_DOCUMENT, None,
            include_offsets=False, include_colocated=False,
        )  # fmt: skip
        return found

    return stems
