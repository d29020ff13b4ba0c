"""Measures of a secret that need no list of words: its entropy, and arrays of bytes."""

from __future__ import annotations

import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

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
    numbers = [
        int(value, 16 if value[:2].lower() == b"0x" else 10)
        for value in values
        if value[:1] != b"'"
    ]
    if len(numbers) == len(values):
        return (
            len(values) >= _KEY_BYTES
            and max(numbers) < 256
            and len(set(values)) > 5
            and numbers != sorted(numbers)
        )
    return values != sorted(values)


# ----------------------------------------------------------------------------
# What a secret must be besides matching its rule: neither placeholder nor code, and perhaps
# generated.


LOOK_BACK = 64
"""Bytes before a literal or secret that a check may see."""

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
_SAYS_WHAT_GOES_THERE = re.compile(
    rb"(?:[A-Za-z\x80-\xff]+[_-])*(?:schl(?:\xc3\xbc|ue)ssel|passwort|kennwort|contrase(?:\xc3\xb1|n)a|clave|senha|chave|passe|cl(?:e|\xc3\xa9)|chiave"
    rb"|wachtwoord|sleutel|has(?:l|\xc5\x82)o|klucz|\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb[\x80-\xff]*|\xd1\x82\xd0\xbe\xd0\xba\xd0\xb5\xd0\xbd[\x80-\xff]*"
    rb"|\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87[\x80-\xff]*|token|jeton|anahtar[\w\x80-\xff]*)(?:[_-][A-Za-z\x80-\xff]+)*$",
    re.IGNORECASE,
)
"""Placeholders in other languages: words of letters, one of which names a secret."""
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
_NO_SECRETS = (
    _VARIABLE,
    _PLACEHOLDER,
    _SPEAKING_NAME,
    _SAYS_WHAT_GOES_THERE,
    _CONSTANT,
    _PATH,
    _PUBLIC,
)
_DIGIT, _LETTER = re.compile(rb"[0-9]"), re.compile(rb"[A-Za-z]")
_DOTENV_NAME = re.compile(rb"""(?:^|[\s;"'`]|\\n)[A-Z][A-Z0-9_]{2,60}=\\{0,3}["']?$""")
_WRITTEN = re.compile(rb"[A-Za-z0-9]")
_ANY_LETTER = re.compile(rb"[A-Za-z\xc3-\xd3]")
_PIECES = re.compile(rb"[A-Za-z0-9]{6,}")
_CAMEL = re.compile(rb"[a-z]?(?>(?:[A-Z]{0,8}[a-z]{2,}+[0-9]{0,4}+)+)[A-Z]{0,4}[0-9]{0,4}")
_CHANGES = re.compile(rb"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")


_FILLED_IN = re.compile(rb"[xX]{8}|\*{4}|(?i:your[-_]|placeholder|change[-_]?me|redacted)")
"""Stands in a place that a key is to be written into. A sample with a vendor's prefix is taken for a key."""
_SAMPLE = re.compile(
    _FILLED_IN.pattern
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
"""Segments of a prefix that say that a secret follows."""
_HASH_PIECE = re.compile(rb"(?<![A-Za-z0-9])[0-9a-f]{16,}(?![A-Za-z0-9])|[0-9a-f]{8}-[0-9a-f]{4}-")
_KEYED_BODY = 32
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


def _is_any(data: bytes, start: int, end: int) -> bool:
    return data[start : start + 5] == b"-----" or not _FILLED_IN.search(data, start, end)


def _is_keyed(data: bytes, start: int, end: int) -> bool:
    """Tell whether a short prefix and a generated body make a key, and not the id of something."""
    found = _KEYED.fullmatch(data, start, end)
    if found is None or _IDENTITY.match(data, start, end) or _FILLED_IN.search(data, start, end):
        return False
    head, body = found.groups()
    if _HASH_PIECE.search(body):
        return _KEY_PREFIX.search(head) is not None
    changes = len(_CHANGES.findall(body))
    if not _DIGIT.search(body) or changes * 4 < len(body):
        return False
    is_long = len(body) >= _KEYED_BODY and (
        changes * 10 >= len(body) * 4 or not _CAPITAL.search(body)
    )
    return is_long or _KEY_PREFIX.search(head) is not None


def _is_known(secret: bytes) -> bool:
    for shape in _NO_SECRETS:  # noqa: SIM110 - `any` takes twice as long, for all that looks like a secret
        if shape.match(secret):
            return True
    return False


def _is_inline(data: bytes, start: int, end: int) -> bool:
    return not _VARIABLE.match(data, start, end) and not _WEAK.match(data, start, end)


def _is_account(data: bytes, start: int, end: int) -> bool:
    return _is_inline(data, start, end) and not _PLACEHOLDER.match(data, start, end)


def _is_chosen(data: bytes, start: int, end: int) -> bool:
    """Tell whether this may be a password a person chose: digits or signs among letters, and nothing else known."""
    secret = data[start:end]
    if (
        _SAMPLE.search(secret)
        or _is_known(secret)
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


def _is_titled(data: bytes, start: int, end: int) -> bool:
    """Words in title case with a number behind, as people choose them and no name in code is written."""
    secret = data[start:end]
    if _STANDARD.match(secret):
        return False
    is_mixed = (
        _DIGIT.search(secret)
        and _CAPITAL.search(secret)
        and _JOINT.search(secret, 1, len(secret) - 1)
    )
    return _TITLED.fullmatch(secret) is not None or (
        bool(is_mixed) and _is_direct(data, start, end)
    )


def _is_strong(data: bytes, start: int, end: int) -> bool:
    """Chosen, and not to be taken for a word with a number, a date, a version or the name of an issue."""
    secret = data[start:end]
    if _TITLED.fullmatch(secret):
        return True
    if (
        len(secret) < 8
        or not _DIGIT.search(secret)
        or _LABEL.match(secret)
        or not _is_chosen(data, start, end)
    ):
        return False
    return (
        len(_CHANGES.findall(secret)) >= 2
        or bool(_CHOSEN_SIGNS.search(secret))
        or secret[-3:].isdigit()
    )


def _is_password(data: bytes, start: int, end: int) -> bool:
    """A literal, or chosen where it might be code but for its digits."""
    if _is_literal(data, start, end):
        return True
    secret = data[start:end]
    return b"." not in secret and bool(_DIGIT.search(secret)) and _is_chosen(data, start, end)


def _is_hidden(data: bytes, start: int, end: int) -> bool:
    """A password, and not the name of what holds it."""
    return _is_password(data, start, end) and not _RESOURCE.match(data, start, end)


def _is_opaque(data: bytes, start: int, end: int) -> bool:
    """Random, or a UUID or hash: for names that leave no doubt."""
    secret = data[start:end]
    if len(secret) < 16 or not _is_literal(data, start, end):
        return False
    if _UUID_OR_HASH.match(secret):
        return bool(_LETTER.search(secret)) and len(set(secret)) > 7
    return _changes_often(secret)


def _is_mixed(data: bytes, start: int, end: int) -> bool:
    secret = data[start:end]
    return (
        _is_any(data, start, end) and bool(_DIGIT.search(secret)) and bool(_LETTER.search(secret))
    )


def _is_encoded(data: bytes, start: int, end: int) -> bool:
    """Base64, with digits or capitals among its letters, as no plain word has."""
    secret = data[start:end]
    return _ENCODED.match(secret) is not None and (
        b"=" in secret or _changes_often(secret) or _is_mixed(data, start, end)
    )


def _is_direct(data: bytes, start: int, end: int) -> bool:
    """Chosen, or the like of a path or host name with digits and capitals, as no path or host name has; for what stands
    where only a password can stand."""
    secret = data[start:end]
    if b" " in secret or len(secret) < 6:
        return False
    if _is_chosen(data, start, end):
        return True
    if (
        _SAMPLE.search(secret)
        or _REFERENCE.match(secret)
        or _DATE.match(secret)
        or not _DIGIT.search(secret)
    ):
        return False
    if b"=" in secret[1:-1] or b"-" in secret:
        return not _is_known(secret)
    return bool(_CAPITAL.search(secret)) and _PLAIN_PIECES.fullmatch(secret) is not None


def _is_argument(data: bytes, start: int, end: int) -> bool:
    """Chosen; in quotes anything with a digit or sign that is no variable or placeholder."""
    if data[start - 1 : start] not in _QUOTES:
        return _is_chosen(data, start, end)
    secret = data[start:end]
    if not _is_account(data, start, end) or _SAMPLE.search(secret) or len(secret) < 6:
        return False
    if _PATH.match(secret) or _SPEAKING_NAME.match(secret) or _NUMBERED_NAME.match(secret):
        return False
    return bool(_ANY_LETTER.search(secret)) and bool(
        _DIGIT.search(secret) or _CHOSEN_SIGNS.search(secret)
    )


def _is_joined(data: bytes, start: int, end: int) -> bool:
    """Words written as one, as people do in passwords and programs in names; for sentences that are not of programs."""
    secret = data[start:end]
    return (
        _JOINED.fullmatch(secret) is not None
        and not _is_known(secret)
        and not _STANDARD.match(secret)
    )


def _is_phrase(data: bytes, start: int, end: int) -> bool:
    """Some words with a digit or sign among them that are no sentence."""
    words = data[start:end].split(b" ")
    if (
        not 2 <= len(words) <= 6
        or _SAMPLE.search(data, start, end)
        or _VARIABLE.match(data, start, end)
    ):
        return False
    return bool(_DIGIT.search(data, start, end)) and not any(
        _FUNCTION_WORD.fullmatch(word) for word in words
    )


def _is_words(data: bytes, start: int, end: int) -> bool:
    """Four words or more, hardly a sentence; for what is announced as a passphrase."""
    words = data[start:end].split()
    if len(words) < 4 or _VARIABLE.match(data, start, end) or _PLACEHOLDER.match(data, start, end):
        return False
    if any(_TECHNICAL.fullmatch(word.decode("utf-8", "replace")) for word in words):
        return False
    return all(word.isalnum() for word in words) and not any(
        _FUNCTION_WORD.fullmatch(word) for word in words
    )


def _is_slug(data: bytes, start: int, end: int) -> bool:
    """Small words joined by dashes, none of which is a word of programmers; only for what is announced as
    a password."""
    word = data[start:end].decode("utf-8", "replace")
    if not word.islower() or not _SLUG.fullmatch(word) or _is_known(data[start:end]):
        return False
    parts = word.split("-")
    return not any(_TECHNICAL.fullmatch(part) for part in parts if len(part) > 2 or len(parts) < 3)


def _is_worded(data: bytes, start: int, end: int) -> bool:
    """A password, which may be a slug of three words."""
    return _is_password(data, start, end) or (
        data.count(b"-", start, end) > 1 and _is_slug(data, start, end)
    )


def _is_cell(data: bytes, start: int, end: int) -> bool:
    """What stands in a column of passwords."""
    return _is_direct(data, start, end) or _is_slug(data, start, end)


def _is_ciphered(data: bytes, start: int, end: int) -> bool:
    """Opaque, or as many changes and signs as nobody types."""
    secret = data[start:end]
    if b" " in secret:
        return False
    return _is_opaque(data, start, end) or (
        len(_CHANGES.findall(secret)) >= 4 and _is_strong(data, start, end)
    )


def _is_piped(data: bytes, start: int, end: int) -> bool:
    """What is written to a command that reads a secret."""
    if b"$" in data[start:end] and _EXPANDED.search(data, start, end):
        return False
    return _is_argument(data, start, end) or _is_opaque(data, start, end)


def _is_basic(data: bytes, start: int, end: int) -> bool:
    """A name and a password in base64."""
    try:
        plain = binascii.a2b_base64(data[start:end] + b"==")
    except binascii.Error:
        return False
    return _NAME_AND_PASSWORD.fullmatch(plain) is not None


def _is_mnemonic(data: bytes, start: int, end: int) -> bool:
    """As many words as a seed phrase has, hardly one twice, and none that stands in every sentence but in no list of
    such words."""
    words = _LETTERS.findall(data[start:end].lower())
    if len(words) not in _MNEMONIC_SIZES or len(set(words)) < len(words) - 1:
        return False
    return not any(_SENTENCE_WORD.fullmatch(word) for word in words)


def _is_code(data: bytes, start: int, end: int) -> bool:
    """Groups of letters and digits, all alike in length, with a digit in most."""
    groups = re.split(rb"[ -]", data[start:end])
    with_digits = sum(_DIGIT.search(group) is not None for group in groups)
    return len({len(group) for group in groups}) == 1 and with_digits * 2 > len(groups)


def _is_generated(data: bytes, start: int, end: int) -> bool:
    secret = data[start:end]
    if _SAMPLE.search(secret) or not _is_inline(data, start, end):
        return False
    return bool(_DIGIT.search(secret)) and bool(_LETTER.search(secret))


def _is_literal(data: bytes, start: int, end: int) -> bool:
    secret = data[start:end]
    if _SAMPLE.search(secret) or _is_known(secret) or _FOREIGN_WORDS.fullmatch(secret):
        return False
    if data[start - 1 : start] in (b'"', b"'", b"`", b">"):
        return _WRITTEN.search(secret) is not None
    if data[end : end + 1] in (b"(", b"[", b"{"):
        return False
    if _DOTENV_NAME.search(data[max(0, start - LOOK_BACK) : start]):
        return True
    if _is_unspeakable(secret):
        return True
    if _WORDS.match(secret) or _NUMBERED_NAME.match(secret):
        return False
    return (
        not _CODE.match(secret)
        or _WORD_WITH_DIGITS.match(secret) is not None
        or _changes_often(secret)
    )


def _is_unspeakable(secret: bytes) -> bool:
    """Tell whether letters are no words: a dozen of them or more with a vowel in less than every fourth."""
    is_plain = len(secret) >= 12 and secret.isalpha() and secret.islower()
    return is_plain and len(_VOWEL.findall(secret)) * 4 < len(secret)


def _is_random(data: bytes, start: int, end: int) -> bool:
    secret = data[start:end]
    if not _CHANGES.search(secret) or _IDENTITY.match(secret) or not _is_literal(data, start, end):
        return False
    if _DOTENV_NAME.search(data[max(0, start - LOOK_BACK) : start]):
        return any(
            _DIGIT.search(piece) and _LETTER.search(piece) for piece in _PIECES.findall(secret)
        )
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


CHECKS: Mapping[str, Callable[[bytes, int, int], bool]] = {
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
"""Checks by the name the rule table gives them, of the text and where in it the secret lies."""


# ----------------------------------------------------------------------------
# ``<private>…</private>``: what its speaker does not want kept, wherever it stands.
#
# Also in code fences, across lines, in any case, nested, and escaped as JSON and HTML write it. A
# block that never ends
# runs to the end of the text: better to lose words than to keep what was marked.


PRIVATE = "private"
"""The name under which such blocks are counted; they become ``[private]``."""

_TAG = re.compile(
    rb"(?:<|&lt;|\\{1,4}u003c)(?:%(blank)s){0,6}(?P<end>\\{0,4}/)?(?:%(blank)s){0,6}private"
    rb"(?:(?:%(blank)s){1,6}[\w-]{1,40}=[^<>]{0,200})?(?:%(blank)s){0,6}(?:>|&gt;|\\{1,4}u003e)"
    % {b"blank": rb"[ \t\r\n]|\\{1,4}[nrt]"},
    re.IGNORECASE,
)

_OPENINGS = (b"<", b"&lt;", b"u003c")
_BEFORE = 40  # the longest of them, and blanks


def may_begin(data: bytes, place: int) -> bool:
    """Whether a block may begin where "private" is in a text."""
    before = data[max(0, place - _BEFORE) : place].lower()
    return any(opening in before for opening in _OPENINGS)


def iter_blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the outermost private blocks lie, tags and all. An end without a beginning is no block."""
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


# ----------------------------------------------------------------------------
# Secrets that people tell each other: words that follow a name such as "password", in any language.
#
# The words after the name are looked at one by one. The nearer a word stands, and the plainer it is
# announced ("is", a
# colon, quotes), the less it has to look like a secret.


_WINDOW = 600
_MOST_WORDS = 9
_FAR = 99
_ESCAPED = "surrogateescape"
"""How bytes that are no UTF-8 are kept: a text that was decoded may hold any."""

_PASSWORD_LEAST, _KEY_LEAST, _KEY_SURE = 6, 16, 20
_PASSWORD_MOST = 200

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
"""Words that announce what a name stands for."""

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
"""Words that may stand between."""

_NO_NOUNS = frozenset(
    "for of to on in at over there here from by with via we i you he she they it that which as and or will has had"
    " have should must can may might does also today only below above back then already behind under inside not value"
    " string itself van voor op bij".split()
)
_COPULAS = frozenset("is was are were".split())
_BRAND = re.compile(r"\d{1,2}[A-Z][a-z]+")
"""Words that form no compound with the name before them, as "manager" does; what then says what the compound is."""

_OTHERS = frozenset(
    "id ids kid hash hashes mac hmac digest digests fingerprint fingerabdruck empreinte huella impronta"
    " odcisk отпечаток commit commits checksum prüfsumme request version signature length nonce etag uuid".split()
)
_OTHER_ROOTS = ("sha", "md5", "publi", "públi", "pubbli", "öffentlich", "публичн")
"""Words after which comes something else than a key, and how others begin."""

_ABOUT = frozenset(
    "must cannot can't can’t darf muss müssen doit peut debe deve pode può musi może moet kan mag должен"
    " нельзя hash hashed hashes gehasht policy policies".split()
)
_ABOUT_ROOTS = (
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
"""Words that make it a sentence about passwords, or of another kind of key."""

_KEY_OF_NOTE = re.compile(
    rb"(?:api|secret|auth|access|client|app|signing|encryption|admin|bot|private|personal|webhook|licen[sc]e|application|deploy|service|sdk"
    rb"|sending|routing|ingest|master|zugriffs|zugangs|dienst)[ ._-]?$",
    re.IGNORECASE,
)
_KEY_OF_OTHERS = re.compile(
    rb"(?:public|primary|foreign|websocket|cache|next|starting|idempotency|request|host|partition|sort|object|page|row|hash"
    rb"|rsa|gpg|pgp|lookup|index|build|composite|shift)[ _-]?(?:(?:api|app|access|auth|client|sdk)[ _-]?){0,2}$|:$",
    re.IGNORECASE,
)
_BARE_NAME = re.compile(rb"(?:key|token)s?$", re.IGNORECASE)
_BARE_HASH = re.compile(r"[0-9a-f]{7,}(?:-[0-9a-f]{4,}){0,4}$")
_LONG_WORD = re.compile(rb"(?<![A-Za-z0-9])(?=[!-/:-~]{0,80}+[0-9])[A-Za-z0-9_./+=~-]{16}")
_GLUED = re.compile(rb"[\x80-\xff][!-~]")
_NO_KEY = re.compile(r"(?:key|token|secret)s?$|\.(?-i:[a-z]{2,4})$", re.IGNORECASE)
"""How the name of a key ends, and that of a file."""

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
    """A word after a name."""

    text: str
    number: int
    """How many words stand between."""
    announced: int
    """How many words ago it was announced."""
    is_assigned: bool
    """Whether a colon or the like announced it."""
    is_quoted: bool
    is_last: bool
    """Whether its clause ends there."""
    is_foreign: bool = False
    """Whether the name is none that programs use: no name of theirs follows it."""

    def passes(self, check: str) -> bool:
        """Whether the word passes one of :data:`CHECKS`."""
        data = (("'" if self.is_quoted else "") + self.text).encode("utf-8", _ESCAPED)
        return CHECKS[check](data, int(self.is_quoted), len(data))


def said_password(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The word after a name that is the password."""
    phrase = (_PHRASE if match[0].lower().endswith(b"phrase") else _WORDS_SAID).match(
        data, match.end()
    )
    if phrase and CHECKS["words"](data, *phrase.span(1)):
        yield phrase.span(1)
    else:
        # 密码heron-71: nothing stands between; "pw heron-71": nobody writes so of passwords in general.
        is_said = _IS_SHORT.match(data, match.end())
        is_glued = (
            bool(is_said)
            or match[0].lower() in _SHORT_NAMES
            or _GLUED.match(data, match.end() - 1) is not None
        )
        walk = _Walk(
            _is_password_said,
            announced=0 if is_glued else _FAR,
            ends=_is_about,
            is_foreign=not match[0].lower().startswith((b"pass", b"pw", b"psk")),
        )
        yield from _iter_said(data, is_said.end() if is_said else match.end(), walk)


def said_key(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The word after a name that is the key."""
    before = data[max(0, match.start() - 40) : match.start()]
    line_end = data.find(b"\n", match.end(), match.end() + _WINDOW)
    if not _LONG_WORD.search(
        data, match.end(), line_end if line_end >= 0 else match.end() + _WINDOW
    ):
        return
    if not _KEY_OF_OTHERS.search(before):
        is_plain = _BARE_NAME.match(match[0]) and not _KEY_OF_NOTE.search(before)
        yield from _iter_said(
            data, match.end(), _Walk(_is_plain_key if is_plain else _is_key, ends=_is_other)
        )


def _iter_said(data: bytes, start: int, walk: _Walk) -> Iterator[tuple[int, int]]:
    text = data[start : start + _WINDOW].decode("utf-8", _ESCAPED)
    found = walk.find(text)
    if found:
        place = start + len(text[: found[0]].encode("utf-8", _ESCAPED))
        yield place, place + len(text[slice(*found)].encode("utf-8", _ESCAPED))


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
    if not _PASSWORD_LEAST <= len(word.text) <= _PASSWORD_MOST:
        return False
    if word.announced == 0 and (word.passes("chosen") or _is_slug_said(word)):
        return True
    if word.is_foreign and is_near and word.passes("joined"):
        return True
    return (is_near and word.passes("titled")) or (
        not _BARE_HASH.match(word.text) and word.passes("strong")
    )


def _is_about(text: str) -> bool:
    return text in _ABOUT or text.startswith(_ABOUT_ROOTS)


def _is_other(text: str) -> bool:
    parts = text.replace("_", "-").split("-")
    return any(part in _OTHERS or part.startswith((*_OTHER_ROOTS, *_ABOUT_ROOTS)) for part in parts)


def _is_noun(text: str) -> bool:
    """Whether a word right behind "password" or "key" makes a compound of it, which is no secret."""
    is_word = (
        len(text) > 2 and text.isalpha() and text.islower() and not text.endswith(("ed", "ly"))
    )
    return is_word and text not in _NO_NOUNS | _LINKS | _FILLERS


def _is_slug_said(word: Word) -> bool:
    """Whether the word is a slug. Right behind the name two words are too few, and underscores are those of code."""
    if not word.is_assigned or not word.is_last:
        return False
    if word.number:
        return word._replace(text=word.text.replace("_", "-")).passes("slug")
    return word.text.count("-") > 1 and word.passes("slug")


def _is_key(word: Word) -> bool:
    if len(word.text) < _KEY_LEAST or _NO_KEY.search(word.text):
        return False
    return word.passes("opaque" if len(word.text) >= _KEY_SURE or word.announced == 0 else "random")


def _is_plain_key(word: Word) -> bool:
    """For a name such as "key", which many things have that are no secrets."""
    if len(word.text) < _KEY_LEAST or _NO_KEY.search(word.text):
        return False
    if word.announced == _FAR and word.number == 0:
        is_told = _BARE_HASH.fullmatch(word.text) is not None
    else:
        is_told = word.announced == 0 and word.number > 0 and not word.is_assigned
    return word.passes("random") or (is_told and word.passes("opaque"))


class _Walk:
    """A walk over the words after a name, up to the secret or the end of the sentence."""

    __slots__ = (
        "_announced",
        "_ends",
        "_is_assigned",
        "_is_compound",
        "_is_foreign",
        "_judge",
        "_number",
    )

    def __init__(
        self,
        judge: Callable[[Word], bool],
        *,
        ends: Callable[[str], bool],
        announced: int = _FAR,
        is_foreign: bool = False,
    ) -> None:
        """Take what tells whether a word is the secret, and after which words something else comes."""
        self._judge, self._announced, self._ends = judge, announced, ends
        self._number, self._is_assigned, self._is_foreign = 0, False, is_foreign
        self._is_compound = False

    def find(self, text: str) -> tuple[int, int] | None:
        """Where the secret lies."""
        closed = _CLOSED.match(text)
        position = closed.end() if closed else 0
        while self._number < _MOST_WORDS:
            token = _TOKEN.match(text, position)
            if token is None or token["stop"]:
                break
            position = token.end()
            if token["link"]:
                self._announced, self._is_assigned = 0, True
            elif token["foreign"]:
                if not self._passes_foreign(token["foreign"]):
                    break
            elif not token["skip"]:
                first, last = _trim(token)
                word = self._judged(
                    text[first:last], token, is_last=_END.match(text, last) is not None
                )
                if word is None:
                    return first, last
                if not self._passes(word, text[last:position], text[position : position + 1]):
                    break
        return None

    def _judged(self, text: str, token: re.Match[str], *, is_last: bool) -> Word | None:
        """The word, unless it is the secret."""
        word = Word(
            text,
            self._number,
            self._announced,
            self._is_assigned,
            token["quoted"] is not None,
            is_last,
            self._is_foreign,
        )
        is_code = token["word"] and _CODE_SAID.search(token["word"])
        is_brand = self._is_compound and _BRAND.fullmatch(text)
        return None if not (is_code or is_brand) and self._judge(word) else word

    def _passes_foreign(self, text: str) -> bool:
        """Pass words that no blanks part. Tell whether to go on."""
        if _FOREIGN_LINK.search(text):
            self._announced, self._is_assigned = 0, False
        else:
            self._announced += 1
        self._number += 1
        return not _FOREIGN_OTHER.search(text)

    def _passes(self, word: Word, behind: str, following: str) -> bool:
        """Pass a word and the signs behind it. Tell whether to go on."""
        text = word.text.lower()
        if self._is_compound and text in _COPULAS:
            return False
        if not self._number and self._announced == _FAR and not self._is_foreign:
            self._is_compound = _is_noun(word.text)
        self._number += 1
        if behind.startswith((":", "=")):
            self._announced, self._is_assigned = 0, True
        elif text in _LINKS:
            self._announced, self._is_assigned = 0, text == "lautet"
        elif text not in _FILLERS:
            self._announced += 1
        if self._ends(text):
            return False
        return not behind.startswith((".", "!", "?", ";")) or bool(following.strip())


def _trim(token: re.Match[str]) -> tuple[int, int]:
    """Where a word lies without what stands around it."""
    kind = "quoted" if token["quoted"] else "word"
    word = token[kind]
    core = word.strip() if kind == "quoted" else word.rstrip(",;:.)]}>*`_").lstrip("(*_`")
    first = token.start(kind) + word.index(core)
    return first, first + len(core)


# ----------------------------------------------------------------------------
# Passwords near a word for one that no sentence joins to it, and passphrases.
#
# People write "the db password went from Oakland#1994 to 8tRz!vPq2Lm", and answer "what's the
# password?" with a line that
# holds nothing else. A shape that only a chosen password has is enough here, or the place of an
# answer.


_BEFORE_NEAR, _BEHIND, _LINE = 120, 240, 400
_LINES_OF_AN_ANSWER = 4

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
"""A name and a password, as people write them: with blanks around the stroke."""

_ASKED = re.compile(r"(?:^|[?:：？。])\s*$")
_ANSWER = re.compile(
    r"""[ \t>]{0,4}(?:[\[(]?\d[\d:., /-]{3,20}[\])]?[ ]{0,2})?               # when it was said
    (?:[*_]{0,2}[^\W\d_][\w -]{0,24}[*_]{0,2}[:>：][*_]{0,2}[ \t]{0,2})?     # by whom
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
"""Words of a sentence about a passphrase. Articles are none of them: passphrases have those, too."""


def near_password(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The words around a name for a password that have the shape of one, and the line that answers it."""
    start, end = max(0, match.start() - _BEFORE_NEAR), match.end() + _BEHIND
    for found in _CANDIDATE.finditer(data, start, end):
        if is_unmistakable(found[0]):
            yield found.span()
    for found in _PAIR.finditer(data, start, end):
        if CHECKS["direct"](data, *found.span(1)):
            yield found.span(1)
    yield from _iter_answers(data, match.end())


def said_phrase(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The words that a passphrase is made of, behind "is" or a colon."""
    text = data[match.end() : match.end() + _LINE].decode("utf-8", _ESCAPED)
    link = _LINK.match(text)
    words = _WORDS_NEAR.match(text, link.end()) if link else None
    if words and not _TALK.intersection(words[1].lower().split()):
        yield _bytes_of(text, *words.span(1), match.end())


def is_unmistakable(word: bytes) -> bool:
    """Whether a word has a shape that people choose for passwords, and that names, code and versions do not have."""
    if _ADDRESS.match(word) or _CHORD.match(word):
        return False
    if _TITLED_NEAR.fullmatch(word) or _LEET.fullmatch(word):
        return True
    return bool(_SIGN.search(word)) and CHECKS["chosen"](word, 0, len(word))


def _iter_answers(data: bytes, place: int) -> Iterator[tuple[int, int]]:
    """The only word of a line below a question, or below a line that ends with the name."""
    lines = data[place : place + _LINE * _LINES_OF_AN_ANSWER].split(b"\n", _LINES_OF_AN_ANSWER + 1)
    if len(lines) == 1 or not _ASKED.search(lines[0].decode("utf-8", _ESCAPED)):
        return
    place += len(lines[0]) + 1
    for line in lines[1 : _LINES_OF_AN_ANSWER + 1]:
        text = line.decode("utf-8", _ESCAPED)
        answer = _ANSWER.match(text.rstrip("\r"))
        if answer:
            span = _bytes_of(text, *answer.span(1), place)
            if CHECKS["direct"](data, *span):
                yield span
                return
        if line.strip():
            return
        place += len(line) + 1


def _bytes_of(text: str, start: int, end: int, place: int) -> tuple[int, int]:
    """Where in the bytes a part of a text lies that begins at a place there."""
    first = place + len(text[:start].encode("utf-8", _ESCAPED))
    return first, first + len(text[start:end].encode("utf-8", _ESCAPED))
