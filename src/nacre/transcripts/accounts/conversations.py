"""Exports of whole accounts: one JSON array of conversations, as a file or inside the zip the service sends.

Such files grow to gigabytes, so one conversation is in memory at a time.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from nacre.errors import TranscriptUnreadable
from nacre.platform.zips import BROKEN
from nacre.transcripts.adapter import HEAD_BYTES, Head, Source
from nacre.transcripts.objects import decode

MAX_CONVERSATION_BYTES = 256 * 1024 * 1024
MAX_EXPORT_BYTES = 16 * 1024 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_MEMBER = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[{}]', re.DOTALL)
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def conversations(source: Source) -> Iterator[dict[str, Any]]:
    """Every conversation of an export; what is torn or no object is counted. Raises TranscriptUnreadable."""
    try:
        for raw in _all_objects(source):
            value = decode(_ANY, raw)
            if isinstance(value, dict):
                yield value
            else:
                source.corrupt()
    except BROKEN as error:
        raise TranscriptUnreadable(
            f"{source.path} is a broken zip: {error}", hint="download the export again"
        ) from error


def first_text(head: Head) -> str:
    """The beginning of an export's conversations, also where they lie in a zip; empty when there are none."""
    if not head.data.startswith(b"PK\x03\x04"):
        return head.text
    try:
        with zipfile.ZipFile(head.path) as archive:
            name = next(iter(_members(archive)), None)
            if name is None:
                return ""
            with archive.open(name) as file:
                return file.read(HEAD_BYTES).decode("utf-8", errors="replace")
    except BROKEN:
        return ""


def split_array(blocks: Iterator[bytes]) -> Iterator[bytes | None]:
    """The outermost objects of a JSON text that comes in blocks; ``None`` at the end for one that is torn."""
    buffer, at, depth, start = b"", 0, 0, -1
    for block in blocks:
        buffer += block
        while token := _TOKEN.search(buffer, at):
            if token.group(1) == b"" and buffer[token.start()] == 0x22:
                break  # a string goes on in the next block
            if buffer[token.start()] == 0x7B:
                start = token.start() if depth == 0 else start
                depth += 1
            elif buffer[token.start()] == 0x7D and depth:
                depth -= 1
                if depth == 0:
                    yield buffer[start : token.end()]
                    start = -1
            at = token.end()
        kept = start if start >= 0 else (token.start() if token else len(buffer))
        at = (token.start() if token else len(buffer)) - kept
        buffer, start = buffer[kept:], 0 if start >= 0 else -1
        if len(buffer) > MAX_CONVERSATION_BYTES:
            break
    if start >= 0:
        yield None


def _all_objects(source: Source) -> Iterator[bytes]:
    with source.path.open("rb") as file:
        for blocks in _streams(file, source.path):
            for raw in split_array(blocks):
                if raw is None:
                    source.corrupt()
                else:
                    yield raw


def _streams(file: IO[bytes], path: Path) -> Iterator[Iterator[bytes]]:
    if file.read(4) != b"PK\x03\x04":
        file.seek(0)
        yield _blocks(file, path)
        return
    with zipfile.ZipFile(file) as archive:
        for name in _members(archive):
            with archive.open(name) as member:
                yield _blocks(member, path)


def _members(archive: zipfile.ZipFile) -> list[str]:
    return sorted(name for name in archive.namelist() if _MEMBER.fullmatch(name))


def _blocks(file: IO[bytes], path: Path) -> Iterator[bytes]:
    read = 0
    while block := file.read(_BLOCK_BYTES):
        read += len(block)
        if read > MAX_EXPORT_BYTES:
            raise TranscriptUnreadable(f"{path} holds more than {MAX_EXPORT_BYTES // 1_000_000_000} GB")
        yield block
