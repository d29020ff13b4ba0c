"""Zstandard: part of Python from 3.14 on, its backport before that. Loaded when something is packed or unpacked."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from nacre.errors import ArchiveDamaged, Unavailable

LEVEL = 9
"""A tenth smaller than what level 3 makes; level 19 gains less than that and takes ten times as long."""

_PACKAGE = "compression" if sys.version_info >= (3, 14) else "backports"


def is_installed() -> bool:
    """Whether there is anything to pack with."""
    return find_spec(_PACKAGE) is not None and find_spec(f"{_PACKAGE}.zstd") is not None


def compress(data: bytes, base: bytes) -> bytes:
    """One frame. ``base`` is text that looks alike, and must be given again to read it; it may be empty."""
    return bytes(_zstd().compress(data, level=LEVEL, zstd_dict=_prefix(base)))


def decompress(frame: bytes, base: bytes, most: int) -> bytes:
    """What a frame holds, at most so many bytes. Raises ArchiveDamaged."""
    zstd = _zstd()
    reader = zstd.ZstdDecompressor(zstd_dict=_prefix(base))
    try:
        data = reader.decompress(frame, max_length=most + 1)
    except (zstd.ZstdError, EOFError) as error:
        raise ArchiveDamaged(f"a segment cannot be unpacked: {error}") from error
    if len(data) != most or not reader.eof:
        raise ArchiveDamaged("a segment holds another number of bytes than it says")
    return bytes(data)


def _prefix(base: bytes) -> Any:
    return _zstd().ZstdDict(base, is_raw=True).as_prefix if len(base) >= _LEAST_BASE else None


_LEAST_BASE = 8
"""Zstandard takes no shorter one."""


@cache
def _zstd() -> Any:
    try:
        return import_module(f"{_PACKAGE}.zstd")
    except ImportError as error:
        raise Unavailable("Zstandard is missing", hint="pip install backports.zstd") from error
