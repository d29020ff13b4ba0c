"""Write src/nacre/llm/characters.json: how BERT's uncased models normalise each character.

The data comes from the library ``tokenizers``. With it, nacre creates the same tokens without the
library:

    python -m pip install tokenizers==0.23.3
    python scripts/write_characters.py

Numbers are runs of code points: first the distance to the previous run, then the length. Hangul is
left out, because its syllables become their letters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from tokenizers import normalizers, pre_tokenizers

_PAGE = Path(__file__).resolve().parent.parent / "src" / "nacre" / "llm" / "characters.json"
_SURROGATES = range(0xD800, 0xE000)
_SYLLABLES = range(0xAC00, 0xD7A4)


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
    dropped, space, apart, becomes = [], [], [], {}
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
        if bare and bare != chr(code) and code not in _SYLLABLES:
            becomes[chr(code)] = bare
    page = {
        "dropped": runs(dropped),
        "space": runs(space),
        "apart": runs(apart),
        "becomes": becomes,
    }
    _PAGE.write_text(
        json.dumps(page, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
