"""Pure functions on text: what is searched for, how it is cut, how long it is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

CHARACTERS_PER_TOKEN = 4

# Scripts written without spaces: Han, Kana, Hangul, Thai, Lao, Khmer, Burmese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0002fa1f]+"
)
_SIGNS = {"++": "plusplus", "#": "sharp"}
_SIGNED = re.compile(r"\b([A-Za-z])(\+\+|#)(?![A-Za-z_])")
_VOICED = "\u3099\u309a"
"""The marks of voiced kana, which make other letters."""
_ABOVE_ASCII = re.compile(r"[^\x00-\x7f]")
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_IDENTIFIER = re.compile(
    r"""
    (?:(?<![\w.@~-])[\w.@~-]+)?[/\\][\w./\\@~+-]+  # paths; the look behind keeps long tokens linear
    | \b\w+(?:::\w+)+                   # qualified names
    | \b[A-Za-z]\w*(?:[._-]\w+)+\b      # dotted, snake and kebab case
    | \b[a-z]+(?:[A-Z][a-z0-9]*)+\b     # camelCase
    | \b(?:[A-Z][a-z0-9]+){2,}\b        # PascalCase
    | \b[A-Z][A-Z0-9_]{3,}\b            # CONSTANTS and error codes
    | \b(?=\w*\d)(?=\w*[A-Za-z])\w{4,}\b  # hashes, ticket numbers
    """,
    re.VERBOSE,
)
_PUNCTUATION = ".,;:!?()[]{}<>\"'`*“”‘’…"
_IDENTIFIER_CHARACTERS = 120
_SPACES = re.compile(r"\s+")
_INVISIBLE = re.compile(
    "\x1b\\[[0-9;?<=>]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[@-Z\\\\-_]"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\u2060\ufeff]"
)
_NEVER_SEEN = (
    "\x80-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200e\u200f\u202a-\u202e\u2061-\u206f"
    "\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(
    f"[{_NEVER_SEEN}]|(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])|[\u200c\u200d]{{2,}}"
)
"""What turns the direction of a line, and characters that only a model sees: texts are hidden in them, and marks of
frames hide behind them. Joiners stay within words of scripts that are written with them."""

FRAME_MARK = re.compile(
    r"[<\uff1c\ufe64](?=\|\w+\|>|(?:/\s*|\s+/?\s*(?=[^<]{0,200}>))?(?:antml|assistant|developer|environment|function|hook_context"
    r"|human|instructions|invoke|nacre-context|system|tool|untrusted|user)(?![a-z0-9]))",
    re.I,
)
_OWN_FRAME = re.compile(r"nacre-context", re.I)
_CONTROLS = bytes(code for code in [*range(32), 127] if code not in (9, 10, 13))
_PLAIN = bytes(code for code in range(128) if code not in _CONTROLS)
_ZERO_WIDTH = tuple(character.encode() for character in "\u200b\u2060\ufeff")


def visible(text: str) -> str:
    """A text without what nobody sees: terminal sequences, control characters, zero-width spaces.

    Coloured output hides a token's beginning from redaction, and would colour whatever shows it again.
    """
    if is_visible(text.encode("utf-8", "surrogatepass")):
        return text
    return _INVISIBLE.sub("", text)


def is_visible(data: bytes) -> bool:
    """Whether the UTF-8 of a text holds nothing that :func:`visible` takes out."""
    odd = data.translate(None, _PLAIN)
    return not odd or (len(odd.translate(None, _CONTROLS)) == len(odd) and not any(mark in odd for mark in _ZERO_WIDTH))


_MAY_DISGUISE = re.compile(f"[{_NEVER_SEEN}\u200c\u200d\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
_DISGUISES = re.compile(
    rf"(?<=[\w.+/=~-])(?:{_UNSEEN.pattern})++(?=[\w.+/=~-])|[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]{{8}}"
)


def is_disguised(text: str) -> bool:
    """Whether characters that nobody sees stand within words, or words are written in wide letters."""
    return not text.isascii() and bool(_MAY_DISGUISE.search(text) and _DISGUISES.search(text))


def undisguised(text: str) -> str:
    """A text as whoever reads it, or has it read to them, takes it: without what nobody sees, in ordinary letters."""
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", visible(text)))


def normalise(text: str) -> str:
    """Lower case, single spaces, no punctuation: two texts that say the same in the same words become equal."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def harmless(text: str) -> str:
    """A text in which everything is seen and nothing reads as a mark of a frame: neither of nacre's own, nor of an
    agent's prompt."""
    text = visible(text)
    if not text.isascii():
        text = _UNSEEN.sub("", text)
    return _OWN_FRAME.sub("nacre_context", FRAME_MARK.sub("&lt;", text))


def one_line(text: str) -> str:
    """All white space runs become one space."""
    return _SPACES.sub(" ", text).strip()


def shorten(text: str, characters: int) -> str:
    """Cut at a word, with an ellipsis, to at most ``characters``."""
    text = one_line(text)
    if len(text) <= characters:
        return text
    cut = text[: characters - 1]
    at = cut.rfind(" ")
    return (cut[:at] if at > characters * 0.6 else cut).rstrip(" ,;:.-–—") + "…"


def title_of(text: str, characters: int = 80) -> str:
    """The first sentence of a text, shortened: what a memory without a subject is called."""
    first = next((line for line in text.strip().splitlines() if line.strip()), "").lstrip("#-*+> ").strip()
    for mark in (". ", "。", "; ", ": "):
        head, found, _ = first.partition(mark)
        if found and len(head) >= 12:
            first = head
            break
    return shorten(first, characters).rstrip(".。") or "Untitled"


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: ``3 memories``; ``many`` is ``one`` with an s where it is left out."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def count_tokens(text: str) -> int:
    """Tokens a language model will count, estimated: four characters each, or one where a script has no spaces."""
    unspaced = sum(len(run) for run in _UNSPACED.findall(text)) if not text.isascii() else 0
    return unspaced + -(-(len(text) - unspaced) // CHARACTERS_PER_TOKEN)


def is_unspaced(text: str) -> bool:
    """Whether most letters of a text belong to scripts without spaces, a word of which is about two characters."""
    if text.isascii():
        return False
    unspaced = sum(len(run) for run in _UNSPACED.findall(text))
    return unspaced > sum(character.isalpha() for character in text) / 2


def segment(text: str) -> str:
    """Make a text searchable word by word.

    Half-width and full-width characters become ordinary ones, each run of an unspaced script its overlapping pairs of
    characters, and the signs of a name like ``C++`` or ``F#`` letters, since full text has no signs.
    """
    if "#" in text or "++" in text:
        text = _SIGNED.sub(lambda match: f"{match[1]}{_SIGNS[match[2]]} ", text)
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    if not _UNSPACED.search(text):
        return text
    return _UNSPACED.sub(lambda match: f" {' '.join(_pairs(match.group()))} ", text)


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


def words(text: str) -> list[str]:
    """The words of a text as the index sees them (before stemming): segmented, lower case, without diacritics."""
    text = segment(text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ABOVE_ASCII.sub(_bare, unicodedata.normalize("NFKD", text)))
    return _WORD.findall(text.lower())


def _bare(match: re.Match[str]) -> str:
    return "" if unicodedata.combining(match.group()) and match.group() not in _VOICED else match.group()


def identifiers(text: str) -> list[str]:
    """Paths, names of code, error codes and hashes in a text, each once, in order.

    Plain words, nearly all there are, are passed over before the expression looks at anything.
    """
    found: dict[str, None] = {}
    for token in dict.fromkeys(text.split()):
        if len(token) < 3 or (token.isalpha() and token[1:].islower()):
            continue
        bare = token.strip(_PUNCTUATION)
        if len(bare) < 3 or (bare.isalpha() and bare[1:].islower()):
            continue
        for match in _IDENTIFIER.finditer(bare):
            name = match.group()[:_IDENTIFIER_CHARACTERS]
            if _WORD.search(name):
                found[name] = None
    return list(found)


def pieces(text: str, characters: int) -> list[str]:
    """Cut a text into pieces of at most ``characters``, at paragraphs, lines or sentences where there are any."""
    text = text.strip()
    found: list[str] = []
    while len(text) > characters:
        cut = _cut(text, characters)
        found.append(text[:cut].strip())
        text = text[cut:].lstrip()
    return [piece for piece in [*found, text] if piece]


def _cut(text: str, characters: int) -> int:
    least = characters // 2
    for border in ("\n\n", "\n", ". ", "。", " "):
        at = text.rfind(border, least, characters)
        if at > 0:
            return at + len(border)
    return characters


STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but
    by can could did do does doing done down during each few for from further get got had has have having he her here
    hers him his how i if in into is it its itself just let like me might more most my no nor not now of off on once
    only or other our ours out over own please same shall she should so some such tell than that the their theirs
    them then there these they this those through to too under until up us very was we were what when where which
    while who whom why will with would you your yours ve ll re s t d m don didn doesn isn wasn won
    的 了 是 在 我 你 他 她 它 我们 你们 他们 什么 怎么 为什么
    哪 哪个 哪里 吗 呢 吧 和 与 或 也 都 就 还 这 那 这个 那个 有 没有""".split()
)
"""Words that say nothing about what is looked for (English and Chinese)."""
