"""What a secret must be besides matching its rule: neither placeholder nor code, and perhaps generated."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping

from nacre.redact.measures import is_bytes

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
    rb"(?:[a-z]+[_.-])*(?:pass(?:word|wd|phrase)?|secret|token|key|credential|auth)s?$", re.IGNORECASE
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
    rb"(?:sha\d{1,3}[:-])?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{7,128})$", re.IGNORECASE
)
_PUBLIC = re.compile(
    rb"age1[a-z0-9]{50,}$|sha\d{1,3}[-:]|ssh-(?:rsa|ed25519)$|(?:[A-Za-z][A-Za-z0-9_.]*-){2,}[0-9a-f]{24,128}$"
)
_NO_SECRETS = (_VARIABLE, _PLACEHOLDER, _SPEAKING_NAME, _SAYS_WHAT_GOES_THERE, _CONSTANT, _PATH, _PUBLIC)
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
_LABEL = re.compile(rb"[A-Z]{2,10}-[0-9]+$|[0-9]{4}-[0-9]{2}-[0-9]{2}|[A-Za-z]+[-_]?v?[0-9]+(?:\.[0-9]+)+(?:[-+].*)?$")
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
    is_long = len(body) >= _KEYED_BODY and (changes * 10 >= len(body) * 4 or not _CAPITAL.search(body))
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
    is_mixed = _DIGIT.search(secret) and _CAPITAL.search(secret) and _JOINT.search(secret, 1, len(secret) - 1)
    return _TITLED.fullmatch(secret) is not None or (bool(is_mixed) and _is_direct(data, start, end))


def _is_strong(data: bytes, start: int, end: int) -> bool:
    """Chosen, and not to be taken for a word with a number, a date, a version or the name of an issue."""
    secret = data[start:end]
    if _TITLED.fullmatch(secret):
        return True
    if len(secret) < 8 or not _DIGIT.search(secret) or _LABEL.match(secret) or not _is_chosen(data, start, end):
        return False
    return len(_CHANGES.findall(secret)) >= 2 or bool(_CHOSEN_SIGNS.search(secret)) or secret[-3:].isdigit()


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
    return _is_any(data, start, end) and bool(_DIGIT.search(secret)) and bool(_LETTER.search(secret))


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
    if _SAMPLE.search(secret) or _REFERENCE.match(secret) or _DATE.match(secret) or not _DIGIT.search(secret):
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
    return bool(_ANY_LETTER.search(secret)) and bool(_DIGIT.search(secret) or _CHOSEN_SIGNS.search(secret))


def _is_joined(data: bytes, start: int, end: int) -> bool:
    """Words written as one, as people do in passwords and programs in names; for sentences that are not of programs."""
    secret = data[start:end]
    return _JOINED.fullmatch(secret) is not None and not _is_known(secret) and not _STANDARD.match(secret)


def _is_phrase(data: bytes, start: int, end: int) -> bool:
    """Some words with a digit or sign among them that are no sentence."""
    words = data[start:end].split(b" ")
    if not 2 <= len(words) <= 6 or _SAMPLE.search(data, start, end) or _VARIABLE.match(data, start, end):
        return False
    return bool(_DIGIT.search(data, start, end)) and not any(_FUNCTION_WORD.fullmatch(word) for word in words)


def _is_words(data: bytes, start: int, end: int) -> bool:
    """Four words or more, hardly a sentence; for what is announced as a passphrase."""
    words = data[start:end].split()
    if len(words) < 4 or _VARIABLE.match(data, start, end) or _PLACEHOLDER.match(data, start, end):
        return False
    if any(_TECHNICAL.fullmatch(word.decode("utf-8", "replace")) for word in words):
        return False
    return all(word.isalnum() for word in words) and not any(_FUNCTION_WORD.fullmatch(word) for word in words)


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
    return _is_password(data, start, end) or (data.count(b"-", start, end) > 1 and _is_slug(data, start, end))


def _is_cell(data: bytes, start: int, end: int) -> bool:
    """What stands in a column of passwords."""
    return _is_direct(data, start, end) or _is_slug(data, start, end)


def _is_ciphered(data: bytes, start: int, end: int) -> bool:
    """Opaque, or as many changes and signs as nobody types."""
    secret = data[start:end]
    if b" " in secret:
        return False
    return _is_opaque(data, start, end) or (len(_CHANGES.findall(secret)) >= 4 and _is_strong(data, start, end))


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
    return not _CODE.match(secret) or _WORD_WITH_DIGITS.match(secret) is not None or _changes_often(secret)


def _is_unspeakable(secret: bytes) -> bool:
    """Tell whether letters are no words: a dozen of them or more with a vowel in less than every fourth."""
    is_plain = len(secret) >= 12 and secret.isalpha() and secret.islower()
    return is_plain and len(_VOWEL.findall(secret)) * 4 < len(secret)


def _is_random(data: bytes, start: int, end: int) -> bool:
    secret = data[start:end]
    if not _CHANGES.search(secret) or _IDENTITY.match(secret) or not _is_literal(data, start, end):
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
