"""The fields of a Protocol Buffers message, without a schema: https://protobuf.dev/programming-guides/encoding/"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _FIXED_8, _LENGTH, _FIXED_4 = 0, 1, 2, 5
_MOST_BYTES_OF_VARINT = 10


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its number, and its bytes where it has a length; numbers have none."""

    number: int
    data: bytes = b""

    @property
    def text(self) -> str:
        """The bytes as text; empty when they are none."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return ""


def read_fields(data: bytes) -> list[Field] | None:
    """All fields of a message in order; ``None`` when the bytes are no message from end to end."""
    try:
        return list(_fields(data))
    except (IndexError, ValueError):
        return None


def _fields(data: bytes) -> Iterator[Field]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        length = 0
        if kind == _VARINT:
            _, at = _varint(data, at)
        elif kind == _LENGTH:
            length, at = _varint(data, at)
        elif kind in (_FIXED_8, _FIXED_4):
            at += 8 if kind == _FIXED_8 else 4
        else:
            raise ValueError("no such kind of field")
        if number == 0 or at + length > len(data):
            raise ValueError("a field ends behind its message")
        yield Field(number, data[at : at + length])
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(_MOST_BYTES_OF_VARINT):
        byte = data[at + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("a number without an end")
