"""Inputs for the targets: the seeds of the corpora, cut, joined, repeated and spoiled, with tokens strewn in."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from nacre.testing import samples

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"


@cache
def seeds(target: str) -> tuple[bytes, ...]:
    """The corpus of a target; of an adapter, its sample besides."""
    folder = CORPUS / target
    sample = [samples()[target][1]] if target in samples() else []
    return (
        *(path.read_bytes() for path in sorted(folder.iterdir() if folder.is_dir() else ())),
        *sample,
    )


@cache
def tokens() -> tuple[bytes, ...]:
    """What the parsers look for, from the dictionary of the coverage-guided fuzzer."""
    lines = (HERE / "tokens.dict").read_text(encoding="ascii").splitlines()
    return tuple(ast.literal_eval(f"b{line}") for line in lines if line.startswith('"'))


@st.composite
def inputs(draw: st.DrawFn, target: str) -> bytes:
    """Bytes for a target: lines of its seeds and tokens, in any order, some of them spoiled."""
    lines = tuple(line for seed in seeds(target) for line in seed.splitlines(keepends=True))
    whole = draw(st.sampled_from((b"", *seeds(target))))
    parts = draw(
        st.lists(
            st.one_of(st.sampled_from(lines), st.sampled_from(tokens()), st.binary(max_size=12)),
            max_size=8,
        )
    )
    data = bytearray(whole + b"".join(parts))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        spoiled = draw(
            st.one_of(
                st.sampled_from(tokens()), st.binary(max_size=4), st.text(max_size=4).map(_encoded)
            )
        )
        data[at : at + draw(st.integers(0, 12))] = spoiled
    return bytes(data)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")
