"""Secrets that people tell each other: words that follow a name such as "password", in any language.

The words after the name are walked one by one. The nearer a word stands, and the plainer it is announced ("is", a colon,
quotes), the less it has to look like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nacre.redact.values import CHECKS

_WINDOW = 600
_MOST_WORDS = 9
_FAR = 99
_PASSWORD_LEAST, _KEY_LEAST, _KEY_SURE = 6, 16, 20

_TOKEN = re.compile(
    r"""[ \t]{0,4}(?:
    (?:(?<![\w"'`])\\{0,7}["'`]|[“”„»「『‘＂]|«[ ]?)(?P<quoted>[^"'`“”»「」『』«\r\n\\]{4,100})\\{0,7}(?:["'`“”」』«＂’]|[ ]?»)(?![A-Za-z0-9])
    |(?P<link>:=|=>|[:=](?!//)|：|—|–|→|->)
    |(?P<stop>[。！？\r\n\\{\[]|["'],)
    |(?P<skip>[*_`(（]{1,3}|</?\w{1,8}>|["'`“”»「『‘＂、，’」』）,])
    |(?P<foreign>(?:(?![。！？：、，（）「」『』—–→“”„‘’＂])[\u0800-\uffff])+)
    |(?P<word>(?:[!#-&(-;=-\[\]-_a-~\x80-\xaa\xac-\xba\xbc-\u07ff]|<(?!/)|(?<=[A-Za-z])['’](?=[A-Za-z]))+)
    )""",
    re.VERBOSE,
)
_CLOSED = re.compile(r"""(?:\\{0,7}["'`]|[”»’])(?=[\s:=,)>*]|$)""")
_LINK = re.compile(
    r"(?:is|was|are|to|ist|lautet|est|es|jest|wynosi|er|olarak|è|é|e'|à|är|heißt|là|será|sarebbe|brzmi|zní|je|este|adalah|είναι|є|هي|هو"
    r"|היא|это|c['’]est|on|sein|wäre|seria|era|fue|quedó|ficou|będzie|wordt|luidt|blir|became|becomes|reads|says|contains|enthält|contient|contiene|contém)$",
    re.IGNORECASE,
)
_FOREIGN_LINK = re.compile(r"(?:是|为|為|は|が|を|に|成|成了|了|用|는|은|을|를|이|가|คือ|है)$")
_FILLER = re.compile(
    r"(?:now|just|still|currently|actually|changed|set|reset|updated|rotated|again|to|as|désormais|maintenant|jetzt|nun|ab|sofort"
    r"|wieder|ahora|adesso|ora|agora|nu|teraz|теперь|сейчас|şimdi|most|the|une?|ein|een|un|una|uma)$",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"(?:.*[-_])?(?:ids?|kid|hash(?:es)?|h?mac|sha[-_]?\d*|md5|digests?|fingerprint|fingerabdruck|empreinte|huella|impronta|odcisk|отпечаток"
    r"|commits?|checksum|prüfsumme|public|öffentlich\w*|públic\w*|publi\w*|pubbli\w*|публичн\w*|request|version|signature|length|nonce|etag"
    r"|uuid)$|指纹|公钥|公開|ハッシュ|摘要|指紋",
    re.IGNORECASE,
)
"""Words after which comes something else than a key."""

_KEY_OF_NOTE = re.compile(
    rb"(?:api|secret|auth|access|client|app|signing|encryption|admin|bot|private|personal|webhook|licen[sc]e|application|deploy|service|sdk"
    rb"|sending|routing|ingest|master)[ ._-]?$",
    re.IGNORECASE,
)
_KEY_OF_OTHERS = re.compile(
    rb"(?:public|primary|foreign|websocket|cache|next|starting|idempotency|request|host|partition|sort|object|page|row|hash|rsa|gpg|pgp|lookup"
    rb"|index|build|candidate|composite|shift|arrow)[ _-]?(?:(?:api|app|access|auth|client|session|sdk)[ _-]?){0,2}$|:$",
    re.IGNORECASE,
)
_BARE_NAME = re.compile(rb"(?:key|token)s?$", re.IGNORECASE)
_BARE_HASH = re.compile(r"[0-9a-f]{7,}$")
_NAME_OF_KEY = re.compile(r"(?:key|token|secret)s?$", re.IGNORECASE)
_PHRASE = re.compile(
    rb"""[^\r\n:=]{0,40}[:=][ \t]{0,3}(?:\\{0,7}["'`])?([^\s"'`\\][^"'`\r\n\\,.;]{12,90}?)(?=[ ]-[ ]|["'`,.;\r\n\\]|$)"""
)
_END = re.compile(r"[ \t]?(?:[.,;()\r\n\\-]|$)")
_CODE = re.compile(r"[\w\]]\(|^[\[<{]|^[a-z_]+=\w{16}|^SHA256:")


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

    def passes(self, check: str) -> bool:
        """Whether the word passes one of :data:`CHECKS`."""
        data = (("'" if self.is_quoted else "") + self.text).encode("utf-8", "surrogatepass")
        return CHECKS[check](data, int(self.is_quoted), len(data))


def said_password(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The word after a name that is the password."""
    begins = match.end() < len(data) and data[match.end() - 1] > 127 and data[match.end()] < 128
    phrase = _PHRASE.match(data, match.end()) if match[0].lower().endswith(b"phrase") else None
    if phrase and CHECKS["words"](data, *phrase.span(1)):
        yield phrase.span(1)
        return
    yield from _walk(data, match.end(), _is_password, starts_announced=begins and data[match.end()] > 32)


def said_key(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The word after a name that is the key."""
    before = data[max(0, match.start() - 40) : match.start()]
    if _KEY_OF_OTHERS.search(before):
        return
    is_plain = _BARE_NAME.match(match[0]) and not _KEY_OF_NOTE.search(before)
    yield from _walk(data, match.end(), _is_named_key if is_plain else _is_key, other=_OTHER)


def _is_password(word: Word) -> bool:
    if word.is_quoted:
        if " " in word.text:
            return word.announced == 0 and word.passes("phrase" if word.is_assigned else "argument")
        if word.announced == 0 or word.number == 0:
            return word.passes("chosen") or word.passes("titled") or word.passes("slug")
        return word.passes("strong")
    if word.announced == 0 and len(word.text) >= _PASSWORD_LEAST and (word.passes("chosen") or word.passes("titled")):
        return True
    if word.announced == 0 and word.is_assigned and word.is_last and _is_slug(word):
        return True
    if word.number == 0 and len(word.text) > _PASSWORD_LEAST and word.passes("titled"):
        return True
    return not _BARE_HASH.match(word.text) and word.passes("strong")


def _is_slug(word: Word) -> bool:
    """Whether the word is a slug. Right behind the name two words are too few, and underscores are those of code."""
    if word.number:
        return word._replace(text=word.text.replace("_", "-")).passes("slug")
    return word.text.count("-") > 1 and word.passes("slug")


def _is_key(word: Word) -> bool:
    if len(word.text) < _KEY_LEAST or _NAME_OF_KEY.search(word.text):
        return False
    return word.passes("opaque" if len(word.text) >= _KEY_SURE or word.announced == 0 else "random")


def _is_named_key(word: Word) -> bool:
    """For a name such as "key", which many things have that are no secrets."""
    if len(word.text) < _KEY_LEAST or _NAME_OF_KEY.search(word.text):
        return False
    if word.announced == _FAR and word.number == 0:
        is_told = _BARE_HASH.fullmatch(word.text) is not None
    else:
        is_told = word.announced == 0 and word.number > 0 and not word.is_assigned
    return word.passes("random") or (is_told and word.passes("opaque"))


def _walk(
    data: bytes,
    start: int,
    judge: Callable[[Word], bool],
    *,
    other: re.Pattern[str] | None = None,
    starts_announced: bool = False,
) -> Iterator[tuple[int, int]]:
    end = min(len(data), start + _WINDOW)
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end -= 1
    text = data[start:end].decode("utf-8", "surrogatepass")
    found = _find(text, judge, other, 0 if starts_announced else _FAR)
    if found:
        place = start + len(text[: found[0]].encode("utf-8", "surrogatepass"))
        yield place, place + len(text[slice(*found)].encode("utf-8", "surrogatepass"))


def _find(
    text: str, judge: Callable[[Word], bool], other: re.Pattern[str] | None, announced: int
) -> tuple[int, int] | None:
    closed = _CLOSED.match(text)
    position, number, is_assigned = closed.end() if closed else 0, 0, False
    while number < _MOST_WORDS:
        token = _TOKEN.match(text, position)
        if token is None or token["stop"]:
            break
        position, kind = token.end(), token.lastgroup
        if kind == "link":
            announced, is_assigned = 0, True
        elif kind == "foreign":
            if other and other.search(token[0]):
                break
            announced, is_assigned = (0, False) if _FOREIGN_LINK.search(token[0]) else (announced + 1, is_assigned)
            number += 1
        elif kind != "skip":
            first, last = _trim(token[kind], token.start(kind), is_quoted=kind == "quoted")
            ends = last < position or _END.match(text, position) is not None
            word = Word(text[first:last], number, announced, is_assigned, kind == "quoted", ends)
            if not (kind == "word" and _CODE.search(token[kind])) and judge(word):
                return first, last
            if other and other.match(word.text):
                break
            number += 1
            if text[last:position].startswith((":", "=")):
                announced, is_assigned = 0, True
            elif _LINK.match(word.text):
                announced, is_assigned = 0, False
            elif not _FILLER.match(word.text):
                announced += 1
            if text[last:position].startswith((".", "!", "?", ";")) and not text[position : position + 1].strip():
                break
    return None


def _trim(word: str, first: int, *, is_quoted: bool) -> tuple[int, int]:
    """Where a word lies without what stands around it."""
    core = word.strip() if is_quoted else word.rstrip(",;:.)]}>*`_").lstrip("(*_`")
    first += word.index(core)
    return first, first + len(core)
