"""Secrets that people tell each other: words that follow a name such as "password", in any language.

The words after the name are looked at one by one. The nearer a word stands, and the plainer it is announced ("is", a
colon, quotes), the less it has to look like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nacre.redact.values import CHECKS

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
    "primari", "primair", "étrang", "estrang", "foráne", "foranea", "extern", "estern", "únic", "públic", "pubblic",
    "compuest",
)  # fmt: skip
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
_WORDS = re.compile(
    rb"""(?:[ ]for[ ][^:\r\n]{1,60})?[ \t]{0,2}[:=][ \t]{1,3}([a-z]{3,12}(?:[ ][a-z]{3,12}){3,6})
    (?=[.,;\r\n\\]|[ ]-|$)""",
    re.VERBOSE,
)
_END = re.compile(r"[ \t]?(?:[.,;()\r\n\\-]|$)")
_CODE = re.compile(r"[\w\]]\(|^[\[<{]|^[a-z_]+=[\w-]{16}|^SHA256:|\}[;,)]")


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
    phrase = (_PHRASE if match[0].lower().endswith(b"phrase") else _WORDS).match(data, match.end())
    if phrase and CHECKS["words"](data, *phrase.span(1)):
        yield phrase.span(1)
    else:
        # 密码heron-71: nothing stands between; "pw heron-71": nobody writes so of passwords in general.
        is_said = _IS_SHORT.match(data, match.end())
        is_glued = bool(is_said) or match[0].lower() in _SHORT_NAMES or _GLUED.match(data, match.end() - 1) is not None
        walk = _Walk(
            _is_password,
            announced=0 if is_glued else _FAR,
            ends=_is_about,
            is_foreign=not match[0].lower().startswith((b"pass", b"pw", b"psk")),
        )
        yield from _iter_said(data, is_said.end() if is_said else match.end(), walk)


def said_key(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The word after a name that is the key."""
    before = data[max(0, match.start() - 40) : match.start()]
    line_end = data.find(b"\n", match.end(), match.end() + _WINDOW)
    if not _LONG_WORD.search(data, match.end(), line_end if line_end >= 0 else match.end() + _WINDOW):
        return
    if not _KEY_OF_OTHERS.search(before):
        is_plain = _BARE_NAME.match(match[0]) and not _KEY_OF_NOTE.search(before)
        yield from _iter_said(data, match.end(), _Walk(_is_plain_key if is_plain else _is_key, ends=_is_other))


def _iter_said(data: bytes, start: int, walk: _Walk) -> Iterator[tuple[int, int]]:
    text = data[start : start + _WINDOW].decode("utf-8", _ESCAPED)
    found = walk.find(text)
    if found:
        place = start + len(text[: found[0]].encode("utf-8", _ESCAPED))
        yield place, place + len(text[slice(*found)].encode("utf-8", _ESCAPED))


def _is_password(word: Word) -> bool:
    is_near = word.announced == 0 or word.number == 0
    if word.is_quoted and " " in word.text:
        return word.announced == 0 and word.passes("phrase" if word.is_assigned else "argument")
    if word.is_quoted:
        return any(map(word.passes, ("chosen", "titled", "slug"))) if is_near else word.passes("strong")
    if not _PASSWORD_LEAST <= len(word.text) <= _PASSWORD_MOST:
        return False
    if word.announced == 0 and (word.passes("chosen") or _is_slug(word)):
        return True
    if word.is_foreign and is_near and word.passes("joined"):
        return True
    return (is_near and word.passes("titled")) or (not _BARE_HASH.match(word.text) and word.passes("strong"))


def _is_about(text: str) -> bool:
    return text in _ABOUT or text.startswith(_ABOUT_ROOTS)


def _is_other(text: str) -> bool:
    parts = text.replace("_", "-").split("-")
    return any(part in _OTHERS or part.startswith((*_OTHER_ROOTS, *_ABOUT_ROOTS)) for part in parts)


def _is_noun(text: str) -> bool:
    """Whether a word right behind "password" or "key" makes a compound of it, which is no secret."""
    is_word = len(text) > 2 and text.isalpha() and text.islower() and not text.endswith(("ed", "ly"))
    return is_word and text not in _NO_NOUNS | _LINKS | _FILLERS


def _is_slug(word: Word) -> bool:
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

    __slots__ = ("_announced", "_ends", "_is_assigned", "_is_compound", "_is_foreign", "_judge", "_number")

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
                word = self._judged(text[first:last], token, is_last=_END.match(text, last) is not None)
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
        is_code = token["word"] and _CODE.search(token["word"])
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
