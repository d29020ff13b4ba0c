"""Write src/nacre/llm/characters.json: the classes of characters in BERT's uncased models.

The data comes from the library ``tokenizers``. With it, nacre creates the same tokens without the
library:

    python -m pip install tokenizers==0.23.3
    python scripts/write_characters.py

Numbers are runs of code points: first the distance to the previous run, then the length.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from tokenizers import normalizers, pre_tokenizers

_PAGE = Path(__file__).resolve().parent.parent / "src" / "nacre" / "llm" / "characters.json"
_SURROGATES = range(0xD800, 0xE000)


def runs(codes: Iterable[int]) -> list[int]:
    """Return sorted code points as runs."""
    numbers: list[int] = []
    end = 0
    for code in codes:
        if numbers and code == end:
            numbers[-1] += 1
        else:
            numbers += [code - end, 1]
        end = code + 1
    return numbers


def main() -> None:
    """Query the library and write the file."""
    normalizer = normalizers.BertNormalizer(lowercase=True)
    cutter = pre_tokenizers.BertPreTokenizer()
    dropped, space, apart = [], [], []
    for code in range(sys.maxunicode + 1):
        if code in _SURROGATES:
            continue
        normalised = normalizer.normalize_str(chr(code))
        bare = normalised.strip(" ")
        if not normalised:
            dropped.append(code)
        elif not bare:
            space.append(code)
        elif normalised != bare or len(cutter.pre_tokenize_str(f"a{bare}a")) > 1:
            apart.append(code)
    page = {"dropped": runs(dropped), "space": runs(space), "apart": runs(apart)}
    _PAGE.write_text(json.dumps(page, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
