"""Checks if a match is a secret, and searches for private blocks and secrets in prose."""

from __future__ import annotations

import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

LOOK_BACK = 64
"""Maximum number of bytes before a literal or a secret that a rule considers."""

_MIN_KEY_BYTES = 16
_BYTE = re.compile(rb"0[xX][0-9a-fA-F]{1,2}|[0-9]+|'[^']+'")


class Candidate(bytes):
    """A possible secret, with up to ``LOOK_BACK`` bytes before it and the byte after it."""

    before = b""
    after = b""

    @classmethod
    def of(cls, data: bytes, start: int, end: int) -> Candidate:
        secret = cls(data[start:end])
        secret.before = data[max(0, start - LOOK_BACK) : start]
        secret.after = data[end : end + 1]
        return secret


def measure_entropy(secret: bytes) -> float:
    """Return the Shannon entropy of a secret in bits per byte."""
    size = len(secret)
    return -sum(count / size * math.log2(count / size) for count in Counter(secret).values())


def is_bytes(secret: bytes) -> bool:
    """Return True if a list of numbers or characters might be a key, unlike sorted lists such as
    code tables.
    """
    if b"," not in secret:
        return True
    values = _BYTE.findall(secret)
    numbers = [
        int(value, 16 if value[:2].lower() == b"0x" else 10)
        for value in values
        if value[:1] != b"'"
    ]
    if len(numbers) == len(values):
        return (
            len(values) >= _MIN_KEY_BYTES
            and max(numbers) < 256
            and len(set(values)) > 5
            and numbers != sorted(numbers)
        )
    return values != sorted(values)


# -- Checks: exclude placeholders and code, and require text like a password or key


_VARIABLE = re.compile(
    rb"arn:aws|(?:\xe2\x80\xa2|\xe2\x97\x8f){3}|:\w|\d+\.\d+$|[A-Za-z_][\w.]*\[(?:\d+|[A-Za-z_]\w*)?\]?$"
    rb"|\$(?:[{(]|\w+-?(?:$|\|))|!(?:reference|vault|[Rr]ef|[Ss]ub|GetAtt|secret|env\w*|include|unsafe)$|%\(|%[A-Za-z_]\w*%$|@[\w.]+@$|%s|[{<]"
    rb"|\?[A-Z_]{3}|ENC\[|\[[A-Z_ -]{3,24}\]?$|\[REDACTED|\[private\]|\*{3}"
    rb"|[^\s]{0,40}(?:\.{3}|\xe2\x80\xa6|x{4,}|X{4,}|\*{3,})$|[*.xX-]+$"
)
_PLACEHOLDER = re.compile(
    rb"""(?:your|votre[_-]|dein[er]?[_-]|ihre?[_-]|tus?[_-]|su[_-]|tu[oa][_-]|se?ua?[_-]|twoj|ersetze|rempla|reempla|substitu|sostitui
    |change[_-]?(?:me|this|it)|example|placeholder|dummy|insert|replace|enter[_-]|paste|todo|fixme|redacted
    |(?:my[-_]?|super[-_]?|top[-_]?)*secret[-_]?(?:password|key|token)$|my[-_]?password|(?:test|demo|sample|fake|my)[-_](?:api[-_])?(?:key|token|secret|pass(?:word)?)(?:[-_]?\d{1,3})?$|[a-z][a-z0-9+.-]{1,12}://|@[a-z.]+\(
    |wpa[23]?[-_](?:psk|personal|enterprise|eap|sae)$|same-origin|include$|omit$|undefined|(?:minio|rabbitmq|super|root|db|sys)?(?:admin|root|guest)$|postgres(?:ql)?$|mysql$|required|optional|disabled?|enabled?|passwor[dt]$|kennwort$|passphrase$|(?:sec)?string|boolean
    |process\.env|import\.meta|os\.(?:environ|getenv)|env[.:\[]|environ|secrets?\.|vars?\.|self\.|this\.|args\.|config\.
    |settings\.|options\.|params\.|req\.|ctx\.|--
    |(?-i:(?:pass(?:word|wd)?|secret|token)(?:[A-Z][a-z]+)+)$
    |(.)\1{3,}$)""",
    re.IGNORECASE | re.VERBOSE,
)
_SPEAKING_NAME = re.compile(
    rb"(?:[a-z]+[_.-])*(?:pass(?:word|wd|phrase)?|secret|token|key|credential|auth)s?$",
    re.IGNORECASE,
)
_JOINED = re.compile(rb"[A-Za-z]{2,}(?:[_-][A-Za-z0-9]{2,}){1,5}|[a-z]+(?:[A-Z][a-z]+){2,}")
_FOREIGN_WORDS = re.compile(rb"[\x80-\xff_ -]+")
_FOREIGN_PLACEHOLDER = re.compile(
    rb"(?:[A-Za-z\x80-\xff]+[_-])*(?:schl(?:\xc3\xbc|ue)ssel|passwort|kennwort|contrase(?:\xc3\xb1|n)a|clave|senha|chave|passe|cl(?:e|\xc3\xa9)|chiave"
    rb"|wachtwoord|sleutel|has(?:l|\xc5\x82)o|klucz|\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb[\x80-\xff]*|\xd1\x82\xd0\xbe\xd0\xba\xd0\xb5\xd0\xbd[\x80-\xff]*"
    rb"|\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87[\x80-\xff]*|token|jeton|anahtar[\w\x80-\xff]*)(?:[_-][A-Za-z\x80-\xff]+)*$",
    re.IGNORECASE,
)
"""Matches placeholders in other languages that contain a word for a secret."""
_CODE = re.compile(rb"[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)*(?:[|:=+/*?-].*)?$")
_WORDS = re.compile(rb"[A-Za-z]+(?:[|_.:/-][A-Za-z]*)*$")
_NUMBERED_NAME = re.compile(
    rb"(?:[a-z]+_|(?-i:[a-z]+(?=[A-Z])))*(?:arg|user|name|var|value|param|pass(?:word)?|secret|token|key)_?\d{1,2}$",
    re.IGNORECASE,
)
_WORD_WITH_DIGITS = re.compile(rb"[A-Za-z]+[0-9][A-Za-z0-9]*$")
_CONSTANT = re.compile(rb"[A-Z]+(?:_[A-Z0-9]+)+$")
_PATH = re.compile(
    rb"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@-]{0,40}){2,}$|[\w./-]+\.(?:json|ya?ml|toml|pem|txt|key|crt|py|[jt]sx?)$"
)
_UUID_OR_HASH = re.compile(
    rb"(?:sha\d{1,3}[:-])?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{7,128})$",
    re.IGNORECASE,
)
_PUBLIC = re.compile(
    rb"age1[a-z0-9]{50,}$|sha\d{1,3}[-:]|ssh-(?:rsa|ed25519)$|(?:[A-Za-z][A-Za-z0-9_.]*-){2,}[0-9a-f]{24,128}$"
)
_NON_SECRETS = (
    _VARIABLE,
    _PLACEHOLDER,
    _SPEAKING_NAME,
    _FOREIGN_PLACEHOLDER,
    _CONSTANT,
    _PATH,
    _PUBLIC,
)
_DIGIT, _LETTER = re.compile(rb"[0-9]"), re.compile(rb"[A-Za-z]")
_DOTENV_NAME = re.compile(rb"""(?:^|[\s;"'`]|\\n)[A-Z][A-Z0-9_]{2,60}=\\{0,3}["']?$""")
_ALPHANUMERIC = re.compile(rb"[A-Za-z0-9]")
_ANY_LETTER = re.compile(rb"[A-Za-z\xc3-\xd3]")
_PIECES = re.compile(rb"[A-Za-z0-9]{6,}")
_CAMEL = re.compile(rb"[a-z]?(?>(?:[A-Z]{0,8}[a-z]{2,}+[0-9]{0,4}+)+)[A-Z]{0,4}[0-9]{0,4}")
_CHANGES = re.compile(rb"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")


_KEY_PLACEHOLDER = re.compile(rb"[xX]{8}|\*{4}|(?i:your[-_]|placeholder|change[-_]?me|redacted)")
"""Matches a placeholder for a key. An example key with a vendor's prefix still counts as a key."""
_SAMPLE = re.compile(
    _KEY_PLACEHOLDER.pattern
    + rb"|EXAMPLE|1234567890abcdef|abcdefghijklmnop|(?i:0123456789abcdef|00010203|00112233)|SflKxwRJSMeKKF2QT4"
)
_WEAK = re.compile(rb"(?i:pass(?:word|wd)?|pwd|secret|user(?:name)?|token|key|foo|bar|test)$")
_IDENTITY = re.compile(
    rb"arn:|(?:toolu|msg|call|req|chatcmpl|resp|rs|fc|evt|cus|price|prod|run|thread|asst|file|step|item|ws|pi|ch|in|sub|seti|cs_test"
    rb"|wamid|pk_live|pk_test|pub|ssh-)[-_.]|AAAA[BC]3Nza|iVBORw0KGgo|sha\d{1,3}[-:]|h1:|r8_im"
)
_CHOSEN_SIGNS = re.compile(rb"[!#$%^&*@~+?=]")
_STANDARD = re.compile(
    rb"""(?:v?\d+(?:[.,:/-]\d+)*(?:[a-z]{1,5}|%|\+)?$          # numbers, versions, dates, times, sizes
    |(?:md|(?:scram-)?sha|oauth|base|utf|http|argon|bcrypt|scrypt|pbkdf|ipv|ed|rsa|aes|tls|ssl|hs|rs|http/|pkcs|win|ascii|int|uint
    |float|rfc|cve|iso|ntlmv|nist|py|python|node|web|ec|fido|gpt|phase|step|part|page|level|line|section|chapter
    |version|issue|pr|test|case|user|option|field|column|number|rule|section|type)[-_ .#]?v?\d[\w.-]{0,12}$
    |(?:x|es|k|s|p|h)\d{1,4}(?:[sv.-]\w{0,6})?$)""",
    re.IGNORECASE | re.VERBOSE,
)
_REFERRING = re.compile(
    rb"""(?:https?://|[\w.+-]+@[\w-]+\.[\w.-]+$                      # addresses
    |[\w-]*(?:->|\(|\[\]|=>|::|\$\{|\{\{)                      # code
    |[A-Za-z_]\w*(?:[.|][A-Za-z_]\w*)+$                        # names with dots or strokes: hosts, files, types
    |(?:~|\.{0,2})/|[A-Za-z0-9_-]+/[A-Za-z0-9_/.-]+$            # paths
    |--?[a-z]|\w+=|[\w.-]+:\d+(?:[|,].*)?$|<|%|&[a-z]+;|@[a-z]|\#[a-z]|\$[A-Z_a-z{(]|[a-z_]+\d?[,;])""",
    re.IGNORECASE | re.VERBOSE,
)
_KEYED = re.compile(
    rb"((?:[a-z][a-z0-9]{0,9}[-_])(?:[a-z0-9]{1,8}[-_]){0,2}?)"
    rb"([A-Za-z0-9]{20,}(?:[-_][\w-]*)?=*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w-]{40,}=*)"
)
_KEY_PREFIX = re.compile(
    rb"(?:(?:[^aeiou]|\b)sk|(?:\b|[-_]|\b[a-z0-9]{1,3})(?:pat|tok|sec|secret|apik?|(?:a|api[-_]?)key))[-_]"
)
"""Matches a prefix that announces a secret."""
_HASH_PIECE = re.compile(rb"(?<![A-Za-z0-9])[0-9a-f]{16,}(?![A-Za-z0-9])|[0-9a-f]{8}-[0-9a-f]{4}-")
_MIN_LONG_BODY_BYTES = 32
_LABEL = re.compile(
    rb"[A-Z]{2,10}-[0-9]+$|[0-9]{4}-[0-9]{2}-[0-9]{2}|[A-Za-z]+[-_]?v?[0-9]+(?:\.[0-9]+)+(?:[-+].*)?$"
)
_DATE = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ]|$)")
_VOWEL = re.compile(rb"[aeiouy]")
_QUOTES = (b'"', b"'", b"`")
_CAPITAL = re.compile(rb"[A-Z]")
_REFERENCE = re.compile(
    rb"[a-z]+-?[0-9]+(?:\.[0-9]+)+$|[a-z][a-z0-9+.-]*://|@[A-Za-z.]+\(|\.{0,2}/|[A-Za-z]:[\\/]|[^\s]*[(\[{]",
    re.IGNORECASE,
)
_PLAIN_PIECES = re.compile(rb"[A-Za-z0-9]+(?:[./_][A-Za-z0-9]+){1,3}")
_FUNCTION_WORD = re.compile(
    rb"the|an?|as|same|before|from|this|that|it|we|you|i|leave|see|ask|empty|of|is|to|in|at|least|must|be|for|and|or|with|than|your|no|not|chars?|characters?|password|passwort|der|die|das"
    rb"|und|mindestens|zeichen|de|la|el|le|les|y|et|e|o|con|mit|min(?:imum)?|max(?:imum)?|->|=>|==|&&|\|\||--.*|-[a-z]",
    re.IGNORECASE,
)
_SENTENCE_WORD = re.compile(
    rb"the|and|for|are|was|his|her|its|has|had|not|but|from|which|with|der|die|das|und|che|les|des"
)
_LETTERS = re.compile(rb"[a-z]+")
_MNEMONIC_SIZES = frozenset({12, 15, 18, 21, 24})
_RESOURCE = re.compile(rb"(?:[a-z]+-)+(?:[a-z]+|v?[0-9]{1,2})(?![\w-])")
_SLUG = re.compile(r"[^\W\d_]{2,}(?:-[^\W\d_]{2,}){1,5}")
_TECHNICAL = re.compile(
    r"pass(?:word|wd|phrase)?s?|pwd?|users?|names?|keys?|tokens?|secrets?|auth|creds?|credentials?|types?|files?|paths?|hash(?:ed)?|strings?|values?"
    r"|fields?|texts?|plain|read|write|only|not|set|unset|none|null|true|false|defaults?|var|env|data|id|url|host|port|db|admin|login|reset"
    r"|change|new|old|min|max|length|input|form|required|optional|case|sensitive|based?|encoded|encrypted|see|below|above|here|self|this|config"
    r"|settings?|args?|options?|params?|req|ctx|string|int|str|bool|get|is|has|my|your|placeholder|example|test|value|empty|code|page|view|prompt"
    r"|clave|chave|chiave|schluessel|passwort|kennwort|senha|wachtwoord|parola|contrasena|haslo|geheim|segreto|no|off|on|tls|ssh|ssl|api|app|web|by",
    re.IGNORECASE,
)
_NAME_AND_PASSWORD = re.compile(rb"[!-9;-~]{1,60}:[ -~\x80-\xff]{4,100}")
_EXPANDED = re.compile(rb"\$[({A-Z_]")
_JOINT = re.compile(rb"[._/=-]")
_TITLED = re.compile(rb"(?:[A-Z][a-z]+[._-]){1,3}[A-Z][a-z]+(?<!Int)(?<!Base)[0-9]{1,4}[!?*#+]?")
_PASSPHRASE = re.compile(rb"[A-Za-z]{3,}(?:-[A-Za-z]{3,}){3,}$")
_ENCODED = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")


def _is_any(secret: bytes) -> bool:
    return secret.startswith(b"-----") or not _KEY_PLACEHOLDER.search(secret)


def _is_keyed(secret: bytes) -> bool:
    match = _KEYED.fullmatch(secret)
    if match is None or _IDENTITY.match(secret) or _KEY_PLACEHOLDER.search(secret):
        return False
    head, body = match.groups()
    if _HASH_PIECE.search(body):
        return _KEY_PREFIX.search(head) is not None
    changes = len(_CHANGES.findall(body))
    if not _DIGIT.search(body) or changes * 4 < len(body):
        return False
    is_long = len(body) >= _MIN_LONG_BODY_BYTES and (
        changes * 10 >= len(body) * 4 or not _CAPITAL.search(body)
    )
    return is_long or _KEY_PREFIX.search(head) is not None


def _is_non_secret(secret: bytes) -> bool:
    for shape in _NON_SECRETS:  # noqa: SIM110 - `any` takes twice as long, for every possible secret
        if shape.match(secret):
            return True
    return False


def _is_inline(secret: bytes) -> bool:
    return not _VARIABLE.match(secret) and not _WEAK.match(secret)


def _is_account(secret: bytes) -> bool:
    return _is_inline(secret) and not _PLACEHOLDER.match(secret)


def _is_chosen(secret: bytes) -> bool:
    if (
        _SAMPLE.search(secret)
        or _is_non_secret(secret)
        or _STANDARD.match(secret)
        or _REFERRING.match(secret)
        or _NUMBERED_NAME.match(secret)
    ):
        return False
    core = secret.rstrip(b"!?.,;:*_").lstrip(b"*_")
    has_letter = _ANY_LETTER.search(core) is not None
    if has_letter and (_DIGIT.search(core) or _CHOSEN_SIGNS.search(core) or _changes_often(core)):
        return True
    return _PASSPHRASE.match(secret) is not None


def _is_titled(secret: bytes) -> bool:
    """Return True for title-case words with a number, common in passwords and rare in code."""
    if _STANDARD.match(secret):
        return False
    is_mixed = (
        _DIGIT.search(secret)
        and _CAPITAL.search(secret)
        and _JOINT.search(secret, 1, len(secret) - 1)
    )
    return _TITLED.fullmatch(secret) is not None or (bool(is_mixed) and _is_direct(secret))


def _is_strong(secret: bytes) -> bool:
    if _TITLED.fullmatch(secret):
        return True
    if (
        len(secret) < 8
        or not _DIGIT.search(secret)
        or _LABEL.match(secret)
        or not _is_chosen(secret)
    ):
        return False
    return (
        len(_CHANGES.findall(secret)) >= 2
        or bool(_CHOSEN_SIGNS.search(secret))
        or secret[-3:].isdigit()
    )


def _is_password(secret: Candidate) -> bool:
    if _is_literal(secret):
        return True
    return secret.count(b".") == 0 and bool(_DIGIT.search(secret)) and _is_chosen(secret)


def _is_hidden(secret: Candidate) -> bool:
    return _is_password(secret) and not _RESOURCE.match(secret)


def _is_opaque(secret: Candidate) -> bool:
    """Return True for random text, a UUID or a hash, which is a secret only if its name says so."""
    if len(secret) < 16 or not _is_literal(secret):
        return False
    if _UUID_OR_HASH.match(secret):
        return bool(_LETTER.search(secret)) and len(set(secret)) > 7
    return _changes_often(secret)


def _is_mixed(secret: bytes) -> bool:
    return _is_any(secret) and bool(_DIGIT.search(secret)) and bool(_LETTER.search(secret))


def _is_encoded(secret: bytes) -> bool:
    return _ENCODED.match(secret) is not None and (
        b"=" in secret or _changes_often(secret) or _is_mixed(secret)
    )


def _is_direct(secret: bytes) -> bool:
    if b" " in secret or len(secret) < 6:
        return False
    if _is_chosen(secret):
        return True
    if (
        _SAMPLE.search(secret)
        or _REFERENCE.match(secret)
        or _DATE.match(secret)
        or not _DIGIT.search(secret)
    ):
        return False
    if b"=" in secret[1:-1] or b"-" in secret:
        return not _is_non_secret(secret)
    return bool(_CAPITAL.search(secret)) and _PLAIN_PIECES.fullmatch(secret) is not None


def _is_argument(secret: Candidate) -> bool:
    if secret.before[-1:] not in _QUOTES:
        return _is_chosen(secret)
    if not _is_account(secret) or _SAMPLE.search(secret) or len(secret) < 6:
        return False
    if _PATH.match(secret) or _SPEAKING_NAME.match(secret) or _NUMBERED_NAME.match(secret):
        return False
    return bool(_ANY_LETTER.search(secret)) and bool(
        _DIGIT.search(secret) or _CHOSEN_SIGNS.search(secret)
    )


def _is_joined(secret: bytes) -> bool:
    return (
        _JOINED.fullmatch(secret) is not None
        and not _is_non_secret(secret)
        and not _STANDARD.match(secret)
    )


def _is_phrase(secret: bytes) -> bool:
    words = secret.split(b" ")
    if not 2 <= len(words) <= 6 or _SAMPLE.search(secret) or _VARIABLE.match(secret):
        return False
    return bool(_DIGIT.search(secret)) and not any(_FUNCTION_WORD.fullmatch(word) for word in words)


def _is_words(secret: bytes) -> bool:
    words = secret.split()
    if len(words) < 4 or _VARIABLE.match(secret) or _PLACEHOLDER.match(secret):
        return False
    if any(_TECHNICAL.fullmatch(word.decode("utf-8", "replace")) for word in words):
        return False
    return all(word.isalnum() for word in words) and not any(
        _FUNCTION_WORD.fullmatch(word) for word in words
    )


def _is_slug(secret: bytes) -> bool:
    word = secret.decode("utf-8", "replace")
    if not word.islower() or not _SLUG.fullmatch(word) or _is_non_secret(secret):
        return False
    parts = word.split("-")
    return not any(_TECHNICAL.fullmatch(part) for part in parts if len(part) > 2 or len(parts) < 3)


def _is_worded(secret: Candidate) -> bool:
    return _is_password(secret) or (secret.count(b"-") > 1 and _is_slug(secret))


def _is_cell(secret: bytes) -> bool:
    return _is_direct(secret) or _is_slug(secret)


def _is_ciphered(secret: Candidate) -> bool:
    if secret.count(b" "):
        return False
    return _is_opaque(secret) or (len(_CHANGES.findall(secret)) >= 4 and _is_strong(secret))


def _is_piped(secret: Candidate) -> bool:
    if _EXPANDED.search(secret):
        return False
    return _is_argument(secret) or _is_opaque(secret)


def _is_basic(secret: bytes) -> bool:
    try:
        plain = binascii.a2b_base64(secret + b"==")
    except binascii.Error:
        return False
    return _NAME_AND_PASSWORD.fullmatch(plain) is not None


def _is_mnemonic(secret: bytes) -> bool:
    """Return True for a possible seed phrase. The word lists do not contain words such as "the"."""
    words = _LETTERS.findall(secret.lower())
    if len(words) not in _MNEMONIC_SIZES or len(set(words)) < len(words) - 1:
        return False
    return not any(_SENTENCE_WORD.fullmatch(word) for word in words)


def _is_code(secret: bytes) -> bool:
    groups = re.split(rb"[ -]", secret)
    with_digits = sum(_DIGIT.search(group) is not None for group in groups)
    return len({len(group) for group in groups}) == 1 and with_digits * 2 > len(groups)


def _is_generated(secret: bytes) -> bool:
    if _SAMPLE.search(secret) or not _is_inline(secret):
        return False
    return bool(_DIGIT.search(secret)) and bool(_LETTER.search(secret))


def _is_literal(secret: Candidate) -> bool:
    if _SAMPLE.search(secret) or _is_non_secret(secret) or _FOREIGN_WORDS.fullmatch(secret):
        return False
    if secret.before[-1:] in (b'"', b"'", b"`", b">"):
        return _ALPHANUMERIC.search(secret) is not None
    if secret.after in (b"(", b"[", b"{"):
        return False
    if _DOTENV_NAME.search(secret.before):
        return True
    if (  # at least twelve letters, less than a quarter of them vowels
        len(secret) >= 12
        and secret.isalpha()
        and secret.islower()
        and len(_VOWEL.findall(secret)) * 4 < len(secret)
    ):
        return True
    if _WORDS.match(secret) or _NUMBERED_NAME.match(secret):
        return False
    return (
        not _CODE.match(secret)
        or _WORD_WITH_DIGITS.match(secret) is not None
        or _changes_often(secret)
    )


def _is_random(secret: Candidate) -> bool:
    if not _CHANGES.search(secret) or _IDENTITY.match(secret) or not _is_literal(secret):
        return False
    if _DOTENV_NAME.search(secret.before):
        return any(
            _DIGIT.search(piece) and _LETTER.search(piece) for piece in _PIECES.findall(secret)
        )
    return not _UUID_OR_HASH.match(secret) and _changes_often(secret)


def _changes_often(secret: bytes) -> bool:
    pieces = [piece for piece in _PIECES.findall(secret) if not _is_camel(piece)]
    return any(len(_CHANGES.findall(piece)) >= max(3, len(piece) * 0.25) for piece in pieces)


def _is_camel(piece: bytes) -> bool:
    letters = piece.rstrip(b"0123456789")
    if letters.isalpha():
        return len(letters) >= 3 * sum(letter < 97 for letter in letters)
    return _CAMEL.fullmatch(piece) is not None


CHECKS: Mapping[str, Callable[[Candidate], bool]] = {
    "any": _is_any,
    "keyed": _is_keyed,
    "bytes": is_bytes,
    "inline": _is_inline,
    "generated": _is_generated,
    "literal": _is_literal,
    "random": _is_random,
    "mixed": _is_mixed,
    "account": _is_account,
    "chosen": _is_chosen,
    "strong": _is_strong,
    "password": _is_password,
    "hidden": _is_hidden,
    "opaque": _is_opaque,
    "encoded": _is_encoded,
    "direct": _is_direct,
    "argument": _is_argument,
    "joined": _is_joined,
    "phrase": _is_phrase,
    "slug": _is_slug,
    "words": _is_words,
    "worded": _is_worded,
    "cell": _is_cell,
    "ciphered": _is_ciphered,
    "piped": _is_piped,
    "basic": _is_basic,
    "titled": _is_titled,
    "mnemonic": _is_mnemonic,
    "code": _is_code,
}
"""The checks of possible secrets, by their names in the rule table."""


# -- Private blocks ``<private>…</private>`` -----------------------------------
# Blocks are found inside code fences, across lines, in any letter case, nested, and escaped as in
# JSON and HTML. A block without an end tag extends to the end of the text, because losing words is
# safer than storing private words.


PRIVATE = "private"
"""Name of the rule for private blocks, which are replaced by ``[private]``."""

_TAG = re.compile(
    rb"(?:<|&lt;|\\{1,4}u003c)(?:%(blank)s){0,6}(?P<end>\\{0,4}/)?(?:%(blank)s){0,6}private"
    rb"(?:(?:%(blank)s){1,6}[\w-]{1,40}=[^<>]{0,200})?(?:%(blank)s){0,6}(?:>|&gt;|\\{1,4}u003e)"
    % {b"blank": rb"[ \t\r\n]|\\{1,4}[nrt]"},
    re.IGNORECASE,
)

_OPENINGS = (b"<", b"&lt;", b"u003c")
_MAX_OPENING_BYTES = 40  # the longest opening with blanks


def may_begin(data: bytes, place: int) -> bool:
    """Return True if the word "private" at an offset might be part of a start tag."""
    before = data[max(0, place - _MAX_OPENING_BYTES) : place].lower()
    return any(opening in before for opening in _OPENINGS)


def iter_blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of the outermost private blocks, including their tags. A block without an end
    tag reaches to the end of the text.
    """
    depth = start = 0
    for tag in _TAG.finditer(data):
        if not tag["end"]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield start, tag.end()
    if depth:
        yield start, len(data)


# -- Secrets in sentences: words after a name such as "password", in any language
# The words after the name are checked in order. A word that is close to the name and clearly
# announced ("is", a colon, quotes) need not look as much like a secret.


_WINDOW_CHARACTERS = 600
_MAX_WORDS = 9
_NOT_ANNOUNCED = 99
_DECODE_ERRORS = "surrogateescape"
"""Error handler that preserves invalid UTF-8 bytes."""

_MIN_PASSWORD_CHARACTERS, _MIN_KEY_CHARACTERS, _SURE_KEY_CHARACTERS = 6, 16, 20
_MAX_PASSWORD_CHARACTERS = 200

_TOKEN = re.compile(
    r"""[ \t]{0,4}(?:
    (?:(?<![\w"'`])\\{0,7}["'`]|[“”„»「『‘＂]|«[ ]?)(?P<quoted>[^"'`“”»「」『』«\r\n\\]{4,100})
        \\{0,7}(?:["'`“”」』«＂’]|[ ]?»)(?![A-Za-z0-9])
    |(?P<link>:=|=>|[:=](?!//)|：|—|–|→|->)
    |(?P<stop>[。！？\r\n\\{\[]|["'],)
    |(?P<skip>[*_`(（]{1,3}|</?\w{1,8}>|["'`“”»「『‘＂、，’」』）,])
    |(?P<foreign>(?:(?![。！？：、，（）「」『』—–→“”„‘’＂])[\u0800-\uffff])+)
    |(?P<word>(?:[!#-&(-;=-\[\]-_a-~\x80-\xaa\xac-\xba\xbc-\u07ff]|<(?!/)|(?<=[A-Za-z])['’](?=[A-Za-z]))+)
    )""",
    re.VERBOSE,
)
_CLOSED = re.compile(r"""(?:\\{0,7}["'`]|[”»’])(?=[\s:=,)>*]|$)""")
_LINKS = frozenset(
    "is was are to ist lautet est es jest wynosi er olarak è é e' à är heißt là será sarebbe brzmi zní je"
    " este adalah είναι є هي هو היא это c'est c’est on sein wäre seria era fue quedó ficou będzie wordt"
    " luidt blir became becomes reads says contains enthält contient contiene contém".split()
)
"""Words that announce a value after a name."""

_FOREIGN_OTHER = re.compile(
    "指纹|公钥|公開|ハッシュ|摘要|指紋|管理|策略|规则|規則|长度|長度|字段|强度|ポリシー|マネージャ"
)
_FOREIGN_LINK = re.compile(r"(?:是|为|為|は|が|を|に|成|成了|了|用|는|은|을|를|이|가|คือ|है)$")
_FILLERS = frozenset(
    "now just still currently actually changed set reset updated rotated again as most the désormais"
    " maintenant jetzt nun ab sofort wieder ahora adesso ora agora nu teraz теперь сейчас şimdi un une"
    " noch immer still schon weiterhin"
    " ein een una uma".split()
)
"""Words that can stand between a name and its secret."""

_NON_NOUNS = frozenset(
    "for of to on in at over there here from by with via we i you he she they it that which as and or will has had"
    " have should must can may might does also today only below above back then already behind under inside not value"
    " string itself van voor op bij".split()
)
_COPULAS = frozenset("is was are were".split())
_BRAND = re.compile(r"\d{1,2}[A-Z][a-z]+")
"""Matches a brand name after words such as "key manager", which is not a secret."""

_NON_KEY_WORDS = frozenset(
    "id ids kid hash hashes mac hmac digest digests fingerprint fingerabdruck empreinte huella impronta"
    " odcisk отпечаток commit commits checksum prüfsumme request version signature length nonce etag uuid".split()
)
_NON_KEY_ROOTS = ("sha", "md5", "publi", "públi", "pubbli", "öffentlich", "публичн")
"""Stems of words that introduce some value other than a key."""

_TOPIC_WORDS = frozenset(
    "must cannot can't can’t darf muss müssen doit peut debe deve pode può musi może moet kan mag должен"
    " нельзя hash hashed hashes gehasht policy policies".split()
)
_TOPIC_ROOTS = (
    "primari",
    "primair",
    "étrang",
    "estrang",
    "foráne",
    "foranea",
    "extern",
    "estern",
    "únic",
    "públic",
    "pubblic",
    "compuest",
)
"""Stems of words in sentences about passwords in general or about other kinds of keys."""

_SECRET_KEY_PREFIX = re.compile(
    rb"(?:api|secret|auth|access|client|app|signing|encryption|admin|bot|private|personal|webhook|licen[sc]e|application|deploy|service|sdk"
    rb"|sending|routing|ingest|master|zugriffs|zugangs|dienst)[ ._-]?$",
    re.IGNORECASE,
)
_OTHER_KEY_PREFIX = re.compile(
    rb"(?:public|primary|foreign|websocket|cache|next|starting|idempotency|request|host|partition|sort|object|page|row|hash"
    rb"|rsa|gpg|pgp|lookup|index|build|composite|shift)[ _-]?(?:(?:api|app|access|auth|client|sdk)[ _-]?){0,2}$|:$",
    re.IGNORECASE,
)
_BARE_NAME = re.compile(rb"(?:key|token)s?$", re.IGNORECASE)
_BARE_HASH = re.compile(r"[0-9a-f]{7,}(?:-[0-9a-f]{4,}){0,4}$")
_LONG_WORD = re.compile(rb"(?<![A-Za-z0-9])(?=[!-/:-~]{0,80}+[0-9])[A-Za-z0-9_./+=~-]{16}")
_GLUED = re.compile(rb"[\x80-\xff][!-~]")
_NON_KEY_END = re.compile(r"(?:key|token|secret)s?$|\.(?-i:[a-z]{2,4})$", re.IGNORECASE)
"""Matches the end of a key's or a file's name."""

_IS_SHORT = re.compile(rb"(?:'|\xe2\x80\x99)s(?=[ ])")
_SHORT_NAMES = frozenset((b"pw", b"pwd", b"psk", b"mdp"))
_PHRASE = re.compile(
    rb"""[^\r\n:=]{0,40}[:=][ \t]{0,3}(?:\\{0,7}["'`])?([^\s"'`\\][^"'`\r\n\\,.;]{12,90}?)(?=[ ]-[ ]|["'`,.;\r\n\\]|$)
    """,
    re.VERBOSE,
)
_WORDS_SAID = re.compile(
    rb"""(?:[ ]for[ ][^:\r\n]{1,60})?[ \t]{0,2}[:=][ \t]{1,3}([a-z]{3,12}(?:[ ][a-z]{3,12}){3,6})
    (?=[.,;\r\n\\]|[ ]-|$)""",
    re.VERBOSE,
)
_END = re.compile(r"[ \t]?(?:[.,;()\r\n\\-]|$)")
_CODE_SAID = re.compile(r"[\w\]]\(|^[\[<{]|^[a-z_]+=[\w-]{16}|^SHA256:|\}[;,)]")


class Word(NamedTuple):
    """A word that follows the name of a secret in a sentence."""

    text: str
    number: int
    """Number of words between the name and this word."""
    announced: int
    """Number of words after a word such as "is", which announces the secret."""
    is_assigned: bool
    """True if a colon or similar symbol precedes the word."""
    is_quoted: bool
    is_last: bool
    """True if the clause ends after the word."""
    is_foreign: bool = False
    """True if the name is a foreign word, which occurs in prose and not in code."""

    def passes(self, check: str) -> bool:
        secret = Candidate(self.text.encode("utf-8", _DECODE_ERRORS))
        secret.before = b"'" if self.is_quoted else b""
        return CHECKS[check](secret)


def said_password(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the span of the password in a sentence in which a word such as "password" matched."""
    phrase = (_PHRASE if match[0].lower().endswith(b"phrase") else _WORDS_SAID).match(
        data, match.end()
    )
    if phrase and _is_words(phrase[1]):
        yield phrase.span(1)
    else:
        # There is no separator in 密码heron-71, and "pw heron-71" always states a password.
        possessive = _IS_SHORT.match(data, match.end())
        is_glued = (
            bool(possessive)
            or match[0].lower() in _SHORT_NAMES
            or _GLUED.match(data, match.end() - 1) is not None
        )
        yield from _iter_said(
            data,
            possessive.end() if possessive else match.end(),
            _is_password_said,
            _is_about,
            0 if is_glued else _NOT_ANNOUNCED,
            is_foreign=not match[0].lower().startswith((b"pass", b"pw", b"psk")),
        )


def said_key(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the span of the key in a sentence in which a word such as "key" matched."""
    before = data[max(0, match.start() - 40) : match.start()]
    line_end = data.find(b"\n", match.end(), match.end() + _WINDOW_CHARACTERS)
    if not _LONG_WORD.search(
        data, match.end(), line_end if line_end >= 0 else match.end() + _WINDOW_CHARACTERS
    ):
        return
    if not _OTHER_KEY_PREFIX.search(before):
        is_plain = _BARE_NAME.match(match[0]) and not _SECRET_KEY_PREFIX.search(before)
        judge = _is_plain_key if is_plain else _is_key
        yield from _iter_said(data, match.end(), judge, _is_other)


def _iter_said(
    data: bytes,
    start: int,
    judge: Callable[[Word], bool],
    ends: Callable[[str], bool],
    announced: int = _NOT_ANNOUNCED,
    *,
    is_foreign: bool = False,
) -> Iterator[tuple[int, int]]:
    text = data[start : start + _WINDOW_CHARACTERS].decode("utf-8", _DECODE_ERRORS)
    for word, first, last in _iter_words(text, ends, announced, is_foreign=is_foreign):
        if judge(word):
            yield _bytes_of(text, first, last, start)
            return


def _is_password_said(word: Word) -> bool:
    is_near = word.announced == 0 or word.number == 0
    if word.is_quoted and " " in word.text:
        return word.announced == 0 and word.passes("phrase" if word.is_assigned else "argument")
    if word.is_quoted:
        return (
            any(map(word.passes, ("chosen", "titled", "slug")))
            if is_near
            else word.passes("strong")
        )
    if not _MIN_PASSWORD_CHARACTERS <= len(word.text) <= _MAX_PASSWORD_CHARACTERS:
        return False
    if word.announced == 0 and (word.passes("chosen") or _is_slug_said(word)):
        return True
    if word.is_foreign and is_near and word.passes("joined"):
        return True
    return (is_near and word.passes("titled")) or (
        not _BARE_HASH.match(word.text) and word.passes("strong")
    )


def _is_about(text: str) -> bool:
    return text in _TOPIC_WORDS or text.startswith(_TOPIC_ROOTS)


def _is_other(text: str) -> bool:
    parts = text.replace("_", "-").split("-")
    return any(
        part in _NON_KEY_WORDS or part.startswith((*_NON_KEY_ROOTS, *_TOPIC_ROOTS))
        for part in parts
    )


def _is_noun(text: str) -> bool:
    is_word = (
        len(text) > 2 and text.isalpha() and text.islower() and not text.endswith(("ed", "ly"))
    )
    return is_word and text not in _NON_NOUNS | _LINKS | _FILLERS


def _is_slug_said(word: Word) -> bool:
    if not word.is_assigned or not word.is_last:
        return False
    if word.number:
        return word._replace(text=word.text.replace("_", "-")).passes("slug")
    return word.text.count("-") > 1 and word.passes("slug")


def _is_key(word: Word) -> bool:
    if len(word.text) < _MIN_KEY_CHARACTERS or _NON_KEY_END.search(word.text):
        return False
    return word.passes(
        "opaque" if len(word.text) >= _SURE_KEY_CHARACTERS or word.announced == 0 else "random"
    )


def _is_plain_key(word: Word) -> bool:
    if len(word.text) < _MIN_KEY_CHARACTERS or _NON_KEY_END.search(word.text):
        return False
    if word.announced == _NOT_ANNOUNCED and word.number == 0:
        is_announced = _BARE_HASH.fullmatch(word.text) is not None
    else:
        is_announced = word.announced == 0 and word.number > 0 and not word.is_assigned
    return word.passes("random") or (is_announced and word.passes("opaque"))


def _iter_words(
    text: str, ends: Callable[[str], bool], announced: int, *, is_foreign: bool
) -> Iterator[tuple[Word, int, int]]:
    number, is_assigned, is_compound = 0, False, False
    for token in _iter_tokens(text):
        if number == _MAX_WORDS:
            return
        if token["link"]:
            announced, is_assigned = 0, True
            continue
        word, behind = token["foreign"], ""
        if not word:
            first, last = _trim(token)
            word, behind = text[first:last], text[last : token.end()]
            is_code = token["word"] and _CODE_SAID.search(token["word"])
            if not (is_code or (is_compound and _BRAND.fullmatch(word))):
                is_quoted, is_last = token["quoted"] is not None, bool(_END.match(text, last))
                facts = Word(word, number, announced, is_assigned, is_quoted, is_last, is_foreign)
                yield facts, first, last
        lower, following = word.lower(), text[token.end() : token.end() + 1]
        if (
            ends(lower)
            or _FOREIGN_OTHER.search(word)
            or (is_compound and lower in _COPULAS)
            or (behind.startswith((".", "!", "?", ";")) and not following.strip())
        ):
            return
        is_bare = not number and announced == _NOT_ANNOUNCED and not is_foreign
        is_compound = is_compound or (is_bare and _is_noun(word))
        number += 1
        if behind.startswith((":", "=")):
            announced, is_assigned = 0, True
        elif lower in _LINKS or _FOREIGN_LINK.search(word):
            announced, is_assigned = 0, lower == "lautet"
        elif lower not in _FILLERS:
            announced += 1


def _iter_tokens(text: str) -> Iterator[re.Match[str]]:
    closed = _CLOSED.match(text)
    position = closed.end() if closed else 0
    while (token := _TOKEN.match(text, position)) and not token["stop"]:
        if not token["skip"]:
            yield token
        position = token.end()


def _trim(token: re.Match[str]) -> tuple[int, int]:
    kind = "quoted" if token["quoted"] else "word"
    word = token[kind]
    core = word.strip() if kind == "quoted" else word.rstrip(",;:.)]}>*`_").lstrip("(*_`")
    first = token.start(kind) + word.index(core)
    return first, first + len(core)


# -- Passwords near a name without a connecting sentence, and passphrases ------
# Examples are "the db password went from Oakland#1994 to 8tRz!vPq2Lm", and an answer to "what's the
# password?" on a separate line. Here, a word only has to look like a chosen password or stand
# where an answer would.


_BYTES_BEFORE, _BYTES_AFTER, _LINE = 120, 240, 400
_MAX_ANSWER_LINES = 4

_CANDIDATE = re.compile(
    rb"""(?<![^\s"'`(\[,:;=>|*\x80-\xff])
    (?=[^\s]{0,40}?[A-Z])(?=[^\s]{0,40}?[a-z])(?=[^\s]{0,40}?[0-9!$@*&^~])
    [A-Za-z0-9](?:[A-Za-z0-9._-]|(?!&[a-z]{2,6};)[!$@*&^~?#%+](?=[A-Za-z0-9])){6,39}[A-Za-z0-9!$?#%+_]
    (?=[\s"'`)\],.;:|*?!\x80-\xff]|$)""",
    re.VERBOSE,
)
_SIGN = re.compile(rb"[A-Za-z0-9][!$*&^~@][A-Za-z0-9]|[0-9][!$?]$|[a-z]{3}[+#][A-Z][a-z]")
_ADDRESS = re.compile(rb"[\w.+-]+@(?:[a-z0-9-]+\.)*[a-z0-9-]+$|[\w./-]+@\^?~?v?\d[\w.-]*$")
_CHORD = re.compile(rb"(?:ctrl|cmd|alt|shift|option|meta|sheet)\w*[!+&]", re.IGNORECASE)
_TITLED_NEAR = re.compile(rb"(?=.*[0-9])[A-Z][a-z]{3,}(?:[._-][A-Z][a-z]{2,}){1,3}[._-]?[0-9]{1,4}")
_LEET = re.compile(rb"[a-z]+[0-9]+[a-z]+(?:[0-9]+[a-z]*)*[A-Z][a-z]+[0-9]*[a-z]*")
_PAIR = re.compile(
    rb"""(?<![\w./-])[\w.@+-]{2,40}[ ]/[ ](?=[^\s]{0,40}?[A-Za-z])(?=[^\s]{0,40}?[0-9])
    ([A-Za-z0-9][!-.:-~]{5,39}[A-Za-z0-9!?#$*+])(?=[\s),.;"'`]|$)""",
    re.VERBOSE,
)
"""Matches a name and a password separated by a slash between spaces."""

_QUESTION_END = re.compile(r"(?:^|[?:：？。])\s*$")
_ANSWER = re.compile(
    r"""[ \t>]{0,4}(?:[\[(]?\d[\d:., /-]{3,20}[\])]?[ ]{0,2})?               # time
    (?:[*_]{0,2}[^\W\d_][\w -]{0,24}[*_]{0,2}[:>：][*_]{0,2}[ \t]{0,2})?     # speaker
    (?:\w{1,12},?[ ]){0,2}(?:(?:->|→|=)[ ])?                                # "yes, it's →"
    [`"']?([^\s`"'\\<>{}()\[\]]{6,64}?)[`"']?(?:[ ][^\x00-\x7f]{1,4})?[ \t.]{0,2}$""",
    re.VERBOSE,
)
_LINK = re.compile(
    r"""[^\r\n.;:=!?]{0,40}?(?:[:=：是は]|[ ](?:it|that)['’]s(?=[ ])|[ ]c['’]est(?=[ ])
    |[ ](?:is|was|ist|lautet|heißt|est|es|jest|to|è|é|är|olarak)(?=[ ]))[ \t]{0,3}""",
    re.VERBOSE | re.IGNORECASE,
)
_WORDS_NEAR = re.compile(
    r"""(?:\\{0,7}["'`]|[“”„]|«[ ]?)?((?:[\w'-]{1,16}[ ]){2,9}[\w'-]{2,16}?)
    (?=[ ]?(?:["'`.,;:!?()\r\n\\»“”—]|$)|[ ]-)""",
    re.VERBOSE,
)
_TALK = frozenset(
    "not no is are was be been being must should can cannot may might will would have has had do does did you we i it "
    "they this these that those which what who when where if unless until while because but so then only also already "
    "still never always please required optional empty blank wrong incorrect invalid missing needed stored saved kept "
    "set used unset read prompted asked entered typed generated encrypted protected same see ask leave least most min "
    "max chars characters words from for in with without by via of or and as too very longer shorter than per nicht "
    "kein keine muss soll wird ist sind leer falsch im vom und oder mit wenn pas doit dans pour avec est vide et ou "
    "si debe para por con non deve vuota nel nella sono o".split()
)
"""Words in sentences about passphrases, without articles because passphrases contain them too."""


def near_password(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the spans of likely passwords close to a match, or in an answer on a later line."""
    start, end = max(0, match.start() - _BYTES_BEFORE), match.end() + _BYTES_AFTER
    for nearby in _CANDIDATE.finditer(data, start, end):
        if is_unmistakable(nearby[0]):
            yield nearby.span()
    for nearby in _PAIR.finditer(data, start, end):
        if _is_direct(nearby[1]):
            yield nearby.span(1)
    yield from _iter_answers(data, match.end())


def said_phrase(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the span of a passphrase that follows a match and "is" or a colon."""
    text = data[match.end() : match.end() + _LINE].decode("utf-8", _DECODE_ERRORS)
    link = _LINK.match(text)
    words = _WORDS_NEAR.match(text, link.end()) if link else None
    if words and not _TALK.intersection(words[1].lower().split()):
        yield _bytes_of(text, *words.span(1), match.end())


def is_unmistakable(word: bytes) -> bool:
    """Return True if a word looks like a password, and not like a name, code or a version."""
    if _ADDRESS.match(word) or _CHORD.match(word):
        return False
    if _TITLED_NEAR.fullmatch(word) or _LEET.fullmatch(word):
        return True
    return bool(_SIGN.search(word)) and _is_chosen(word)


def _iter_answers(data: bytes, place: int) -> Iterator[tuple[int, int]]:
    lines = data[place : place + _LINE * _MAX_ANSWER_LINES].split(b"\n", _MAX_ANSWER_LINES + 1)
    if len(lines) == 1 or not _QUESTION_END.search(lines[0].decode("utf-8", _DECODE_ERRORS)):
        return
    place += len(lines[0]) + 1
    for line in lines[1 : _MAX_ANSWER_LINES + 1]:
        text = line.decode("utf-8", _DECODE_ERRORS)
        answer = _ANSWER.match(text.rstrip("\r"))
        if answer:
            span = _bytes_of(text, *answer.span(1), place)
            if _is_direct(data[slice(*span)]):
                yield span
                return
        if line.strip():
            return
        place += len(line) + 1


def _bytes_of(text: str, start: int, end: int, place: int) -> tuple[int, int]:
    first = place + len(text[:start].encode("utf-8", _DECODE_ERRORS))
    return first, first + len(text[start:end].encode("utf-8", _DECODE_ERRORS))
