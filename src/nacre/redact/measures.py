"""Measures of a secret that need no list of words: its entropy, and arrays of bytes."""

from __future__ import annotations

import math
import re
from collections import Counter

_KEY_BYTES = 16
_BYTE = re.compile(rb"0[xX][0-9a-fA-F]{1,2}|[0-9]+|'[^']+'")


def measure_entropy(secret: bytes) -> float:
    """Return the Shannon entropy of a secret in bits per byte."""
    size = len(secret)
    return -sum(count / size * math.log2(count / size) for count in Counter(secret).values())


def is_bytes(data: bytes, start: int, end: int) -> bool:
    """Tell whether numbers or characters are the bytes of a secret: no ordered list of codes, no number above 255."""
    if b"," not in data[start:end]:
        return True
    values = _BYTE.findall(data, start, end)
    numbers = [int(value, 16 if value[:2].lower() == b"0x" else 10) for value in values if value[:1] != b"'"]
    if len(numbers) == len(values):
        return len(values) >= _KEY_BYTES and max(numbers) < 256 and len(set(values)) > 5 and numbers != sorted(numbers)
    return values != sorted(values)
