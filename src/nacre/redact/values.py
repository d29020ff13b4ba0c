"""What a secret must be besides matching its rule: neither placeholder nor code, and perhaps generated."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping

LOOK_BACK = 64
"""Bytes before a literal or secret that a check may see."""

_VARIABLE = re.compile(
    rb"\$(?:[{(]|\w+$)|%\(|%[A-Za-z_]\w*%$|%s|[{<]|\[REDACTED|\*{3}|[^\s]{0,40}(?:\.{3}|\xe2\x80\xa6|x{4,}|X{4,}|\*{3,})$|[*.xX-]+$"
)
_PLACEHOLDER = re.compile(
    rb"""(?:your|change[_-]?(?:me|this|it)|example|placeholder|dummy|insert|replace|enter[_-]|paste|todo|fixme|redacted
    |same-origin|include$|omit$|undefined|required|optional|disabled?|enabled?|password$|passphrase$|(?:sec)?string|boolean
    |process\.env|import\.meta|os\.(?:environ|getenv)|env[.:\[]|environ|secrets?\.|vars?\.|self\.|this\.|args\.|config\.
    |settings\.|options\.|params\.|req\.|ctx\.|--
    |(.)\1{3,}$)""",
    re.IGNORECASE | re.VERBOSE,
)
_SPEAKING_NAME = re.compile(
    rb"(?:[a-z]+[_.-])*(?:pass(?:word|wd|phrase)?|secret|token|key|credential|auth)s?$", re.IGNORECASE
)
_CODE = re.compile(rb"[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)*(?:[:=+/*?-].*)?$")
_WORDS = re.compile(rb"[A-Za-z]+(?:[_.:/-][A-Za-z]*)*$")
_NUMBERED_NAME = re.compile(
    rb"(?:[a-z]+_)*(?:arg|user|name|var|value|param|pass(?:word)?|secret|token|key)_?\d{1,2}$", re.IGNORECASE
)
_WORD_WITH_DIGITS = re.compile(rb"[A-Za-z]+[0-9][A-Za-z0-9]*$")
_CONSTANT = re.compile(rb"[A-Z]+(?:_[A-Z0-9]+)+$")
_PATH = re.compile(
    rb"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@-]{0,40}){2,}$|[\w./-]+\.(?:json|ya?ml|toml|pem|txt|key|crt|py|[jt]sx?)$"
)
_UUID_OR_HASH = re.compile(
    rb"(?:sha\d{1,3}[:-])?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{7,128})$", re.IGNORECASE
)
_NO_SECRETS = (_VARIABLE, _PLACEHOLDER, _SPEAKING_NAME, _CONSTANT, _PATH)
_DIGIT, _LETTER = re.compile(rb"[0-9]"), re.compile(rb"[A-Za-z]")
_DOTENV_NAME = re.compile(rb"""(?:^|[\s;"'`]|\\n)[A-Z][A-Z0-9_]{2,60}=\\{0,3}["']?$""")
_PIECES = re.compile(rb"[A-Za-z0-9]{6,}")
_CAMEL = re.compile(rb"[a-z]?(?:[A-Z]{0,8}[a-z]{2,}+[0-9]{0,4}+)++[A-Z]{0,4}[0-9]{0,4}")
_CHANGES = re.compile(rb"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")


def _is_any(_data: bytes, _start: int, _end: int) -> bool:
    return True


def _is_inline(data: bytes, start: int, end: int) -> bool:
    return not _VARIABLE.match(data, start, end)


def _is_generated(data: bytes, start: int, end: int) -> bool:
    secret = data[start:end]
    return _is_inline(data, start, end) and bool(_DIGIT.search(secret)) and bool(_LETTER.search(secret))


def _is_literal(data: bytes, start: int, end: int) -> bool:
    secret = data[start:end]
    if any(shape.match(secret) for shape in _NO_SECRETS):
        return False
    if data[start - 1 : start] in (b'"', b"'", b"`", b">"):
        return True
    if data[end : end + 1] in (b"(", b"[", b"{"):
        return False
    if _DOTENV_NAME.search(data[max(0, start - LOOK_BACK) : start]):
        return True
    if _WORDS.match(secret) or _NUMBERED_NAME.match(secret):
        return False
    return not _CODE.match(secret) or _WORD_WITH_DIGITS.match(secret) is not None or _changes_often(secret)


def _is_random(data: bytes, start: int, end: int) -> bool:
    secret = data[start:end]
    if not _is_literal(data, start, end):
        return False
    if _DOTENV_NAME.search(data[max(0, start - LOOK_BACK) : start]):
        return any(_DIGIT.search(piece) and _LETTER.search(piece) for piece in _PIECES.findall(secret))
    return not _UUID_OR_HASH.match(secret) and _changes_often(secret)


def _changes_often(secret: bytes) -> bool:
    """Tell whether letters, capitals and digits alternate as they do in generated text and not in names."""
    pieces = [piece for piece in _PIECES.findall(secret) if not _is_camel(piece)]
    return any(len(_CHANGES.findall(piece)) >= max(3, len(piece) * 0.25) for piece in pieces)


def _is_camel(piece: bytes) -> bool:
    letters = piece.rstrip(b"0123456789")
    if letters.isalpha():
        return len(letters) >= 3 * sum(letter < 97 for letter in letters)
    return _CAMEL.fullmatch(piece) is not None


def measure_entropy(secret: bytes) -> float:
    """Return the Shannon entropy of a secret in bits per byte."""
    size = len(secret)
    return -sum(count / size * math.log2(count / size) for count in Counter(secret).values())


CHECKS: Mapping[str, Callable[[bytes, int, int], bool]] = {
    "any": _is_any,
    "inline": _is_inline,
    "generated": _is_generated,
    "literal": _is_literal,
    "random": _is_random,
}
"""Checks by the name the rule table gives them, of the text and where in it the secret lies."""
