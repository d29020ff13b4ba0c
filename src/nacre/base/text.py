"""When two texts are written alike: they differ in layout alone."""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from importlib.resources import files
from typing import Any

import regex

from nacre.errors import QueryInvalid

_MARKS = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "…": "..."}
)
_LAYOUT = re.compile(r"^\s*(?:[-*•]\s+|#+\s+)|`", re.MULTILINE)
_STRONG = re.compile(r"(?<!\S)\*\*(?=[^\s*/])([^*/]*[^\s*/])\*\*(?![\w/*])")
_END = re.compile(r"(?<=[\w\])}'\"）」』])[.!。！]+(?=\s|$)")
_SENTENCE = re.compile(r"(?:^|[.!?。！？]\s+)(\w)")


def written(text: str) -> str:
    """A text without its layout: spaces, emphasis, kinds of quotes and dashes, the full stop after a word, the case of
    a first letter. Names of files and patterns (``__init__.py``, ``src/**/a``, ``cd ..``) stay as they are."""
    text = _LAYOUT.sub("", unicodedata.normalize("NFC", text).translate(_MARKS))
    text = _STRONG.sub(r"\1", text)
    text = _SENTENCE.sub(lambda found: found[0].lower(), text.strip())
    return " ".join(_END.sub("", text).split())


# ----------------------------------------------------------------------------
# Pure functions on text: what is searched for, how it is cut, how long it is.


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
    return not odd or (
        len(odd.translate(None, _CONTROLS)) == len(odd)
        and not any(mark in odd for mark in _ZERO_WIDTH)
    )


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
    first = (
        next((line for line in text.strip().splitlines() if line.strip()), "")
        .lstrip("#-*+> ")
        .strip()
    )
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
        text = unicodedata.normalize(
            "NFC", _ABOVE_ASCII.sub(_bare, unicodedata.normalize("NFKD", text))
        )
    return _WORD.findall(text.lower())


def _bare(match: re.Match[str]) -> str:
    return (
        ""
        if unicodedata.combining(match.group()) and match.group() not in _VOICED
        else match.group()
    )


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


# ----------------------------------------------------------------------------
# The part of a long text that a question is about.


EXCERPT_CHARACTERS = 280
_BEGINNING = 60
"""Characters of words by which they are looked for as they are."""


def excerpt(
    text: str, terms: Iterable[str], characters: int = EXCERPT_CHARACTERS, *, wanted: str = ""
) -> str:
    """The stretch of a text that holds most of the terms, on one line, with ellipses where it was cut; where the words
    ``wanted`` stand in it as they are, the stretch with these.
    """
    text = one_line(text)
    if len(text) <= characters:
        return text
    lowered = text.lower()
    beginning = one_line(wanted).lower()[:_BEGINNING]
    as_it_is = lowered.find(beginning) if beginning else -1
    if as_it_is >= 0:
        return _from(text, as_it_is, characters)
    places = sorted(place for term in dict.fromkeys(terms) for place in _places(lowered, term))
    if not places:
        return shorten(text, characters)
    reach = characters - 60
    counts = [bisect_left(places, start + reach) - number for number, start in enumerate(places)]
    return _from(text, places[counts.index(max(counts))], characters)


def _from(text: str, place: int, characters: int) -> str:
    start = max(0, place - 40)
    start = text.rfind(" ", 0, start) + 1 if start else 0
    cut = shorten(text[start:], characters - 1)
    return f"…{cut}" if start else cut


def _places(lowered: str, term: str) -> list[int]:
    beginning = term[: max(3, len(term) - 2)] if term.isascii() and len(term) > 4 else term
    found: list[int] = []
    at = lowered.find(beginning)
    while at >= 0 and len(found) < 20:
        found.append(at)
        at = lowered.find(beginning, at + 1)
    return found


# ----------------------------------------------------------------------------
# Regular expressions of people and agents: bounded in size as they are compiled, and in time as they
# search.


_COUNT = re.compile(r"\{((?:\s|#.*\n)*[0-9](?:[0-9]|\s|#.*\n)*)")
_MOST_CHARACTERS = 1_000
_MOST_SIZE = 1_000_000
"""A million nodes take 300 MB and a third of a second, and nothing ends that from outside."""


class Expression:
    """A regular expression that ignores case. Raises QueryInvalid for what is none, or too large."""

    def __init__(self, expression: str, seconds: float) -> None:
        if len(expression) > _MOST_CHARACTERS or _size(expression) > _MOST_SIZE:
            raise QueryInvalid(
                "the expression is too large", hint="fewer signs, and smaller counts in {…}"
            )
        try:
            self._compiled = regex.compile(expression, regex.IGNORECASE)
        except (regex.error, RecursionError) as error:
            raise QueryInvalid(
                f"invalid regular expression: {error}",
                hint="escape special characters with \\, or leave out --regex",
            ) from error
        self._seconds = seconds

    def search(self, text: str) -> Any:
        """The first place that matches, if any. Raises TimeoutError."""
        return self._compiled.search(text, timeout=self._seconds)


def _size(expression: str) -> int:
    """How many nodes it has at most, were all its counts within each other: each is compiled so many times. Between
    digits may stand spaces and comments, whose digits count, too."""
    counts = ("".join(filter(str.isdecimal, found)) for found in _COUNT.findall(expression))
    return len(expression) * math.prod(max(1, int(count)) for count in counts)


# ----------------------------------------------------------------------------
# English words without their endings, for whatever compares words itself.
#
# The full-text index has the stems of SQLite's Porter tokenizer, and what is looked up in it takes
# them from there.


_PLURALS = (("ies", "y"), ("sses", "ss"), ("s", ""))
_NO_PLURALS = ("ss", "us", "is")
_VERB_ENDINGS = (("ing", ""), ("ied", "y"), ("ed", ""))
_LEAST = 3
"""Letters that stay; a singular may have one less."""


def stem(word: str) -> str:
    """A lower-case word without the ending of a plural, then of a verb, then a silent e.

    "meetings", "meeting" and "meet" are one; what holds anything but letters stays as it is.
    """
    if len(word) <= _LEAST or not word.isalpha():
        return word
    word = singular(word)
    for ending, by in _VERB_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST:
            word = _undoubled(word[: -len(ending)] + by)
            break
    return word[:-1] if word.endswith("e") and len(word) > _LEAST else word


def singular(word: str) -> str:
    """A lower-case word without the ending of a plural: "policy" for "policies", "gb" for "gbs"."""
    if word.endswith(_NO_PLURALS):
        return word
    found = (
        word[: -len(ending)] + by
        for ending, by in _PLURALS
        if word.endswith(ending) and _leaves(word, ending)
    )
    return next(found, word)


def _leaves(word: str, ending: str) -> bool:
    return len(word) - len(ending) >= _LEAST - 1


def _undoubled(word: str) -> str:
    """ "plan" for the "plann" of "planned"; "call" and "miss" stay."""
    is_double = len(word) > _LEAST and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if is_double else word


# ----------------------------------------------------------------------------
# ``[[wikilinks]]`` in a text, and the form in which a name that is written and a name that is borne
# are the same.


_LINK = re.compile(r"\[\[([^\[\]\n]{1,300})\]\]")
_CODE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)|(`+)[^`\n]+\2", re.DOTALL | re.MULTILINE)
_NAME_END = re.compile(r"[#|]|\\\|")
_WORDS = re.compile(r"[^\W_]+")
_MOST = 500
"""Links of one text; a longer list is no prose."""


def name_key(name: str) -> str:
    """Words in lower case with hyphens between: ``Tide Gauge``, ``tide-gauge`` and ``design/Tide Gauge`` in part."""
    return "-".join(_WORDS.findall(unicodedata.normalize("NFKC", name).lower()))


def mentioned(text: str) -> list[str]:
    """The keys of the names that a text links, each once; what stands in code is no link.

    Of ``[[name#heading|shown]]`` the name counts, of a path from where the file lies (``../fact/name``) its end.
    """
    if "[[" not in text:
        return []
    links = _LINK.findall(_CODE.sub(" ", text))
    names = (_NAME_END.split(link, maxsplit=1)[0] for link in links)
    keys = (name_key(name.rpartition("/")[2] if name.startswith(".") else name) for name in names)
    return [key for key in dict.fromkeys(keys) if key][:_MOST]


def called(subject: str, path: str | None, aliases: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """What a memory is called: keys with the name as it is written, and whether that is an alias.

    It is called by its subject, by its file, by the path of that in the vault, and by its aliases.
    """
    whole = (path or "").removesuffix(".md")
    own = (subject, whole.rpartition("/")[2], whole)
    names = [(name, False) for name in own] + [(name, True) for name in aliases]
    found: dict[str, tuple[str, bool]] = {}
    for name, is_alias in names:
        if key := name_key(name):
            found.setdefault(key, (name, is_alias))
    return found


def aliases_in(value: object) -> list[str]:
    """The names in a front matter's ``aliases``: a list, or a text with commas."""
    listed = (
        value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    )
    return [name.strip() for name in listed if isinstance(name, str) and name.strip()]


# ----------------------------------------------------------------------------
# Which models may run on the owner's own machine, by what transcripts call them.


_TAGGED = re.compile(
    r"[^:]+:(?!\d+$|(?:free|nitro|floor|online|extended|beta|thinking|exacto|low|medium|high)$|.*cloud$)[^:]+"
)
"""Ollama's end in a tag, as ``tinystories:8b-q4_K_M``; so do some in the cloud: releases of Bedrock (``:0``), variants
of OpenRouter (``:free``), Ollama's own cloud (``:120b-cloud``). What was tuned for somebody has several signs."""

OWN = "local:"
"""Before a model's name: it ran at a provider of the owner's own, which follows, and a slash."""

_IN_THE_CLOUD = re.compile(r"[^:]+:(?:.+-)?cloud")
"""Ollama on the owner's machine answers as these are called, and has its own cloud do it."""

_HOSTED = re.compile(r".*(?::(?:free|nitro|floor|online|exacto)|[:-]cloud|-v\d+:\d+)")
"""Signs by which a name says that the model ran at a provider, whatever its weights: those of OpenRouter, of Ollama's
cloud and of Bedrock."""


def has_open_weights(model: str) -> bool:
    """Whether a model is of a family that people run on machines of their own, and has no sign of a host."""
    name = model.lower()
    return bool(_families().search(name)) and not is_hosted(name)


def is_hosted(model: str) -> bool:
    """Whether a model's name says that it ran at a provider, whatever its weights."""
    name = model.lower()
    own = name.rpartition("/")[2]
    return (
        bool(_HOSTED.fullmatch(name))
        or _has_host(name)
        or any(fnmatch(own, one) for one in _words("hosted"))
    )


def is_called_local(model: str) -> bool:
    """Whether a model has a name as those have that run on the owner's machine."""
    name = model.lower()
    is_local = (
        bool(_TAGGED.fullmatch(name)) or name.endswith(".gguf") or _is_of_local_provider(name)
    )
    return is_local and not _has_host(name)


def answered_by(model: str | None, provider: str | None) -> str | None:
    """What a model is called whose transcript names its provider, too: where that is not known to answer elsewhere,
    both are, as the model's own name need not say whose it is.
    """
    if (
        not (model and provider)
        or _IN_THE_CLOUD.fullmatch(model.lower())
        or _is_elsewhere(provider)
    ):
        return model
    name = model if model.lower().startswith(f"{provider.lower()}/") else f"{provider}/{model}"
    return name if _is_of_local_provider(name.lower()) else f"{OWN}{name}"


def noted(before: str | None, now: str | None) -> str | None:
    """The model that a session is noted with, where another one answers: the later one, but never instead of one that
    is more likely to be the owner's own.
    """
    if not (before and now):
        return now or before
    return before if _likely_local(before) >= max(1, _likely_local(now)) else now


def _likely_local(model: str) -> int:
    return 2 if has_open_weights(model) else int(is_called_local(model))


def _is_elsewhere(provider: str) -> bool:
    """Whether a provider only answers over the network; so may one whose name was taken out of a transcript."""
    name = _plain(re.split("[/:]", provider, maxsplit=1)[0])
    return provider.startswith(("[", "<")) or name in {
        _plain(one) for one in _words("hosts") | _words("elsewhere")
    }


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def _has_host(name: str) -> bool:
    return re.split("[/:]", name, maxsplit=1)[0] in _words("hosts")


def _is_of_local_provider(name: str) -> bool:
    """Whether what a name has before its first slash is a provider on the owner's machine."""
    provider, slash, _ = name.partition("/")
    return bool(slash) and any(fnmatch(provider, one) for one in _words("local"))


@cache
def _words(kind: str) -> frozenset[str]:
    told = tomllib.loads((files(__package__) / "open_weights.toml").read_text(encoding="utf-8"))
    return frozenset(told[kind])


@cache
def _families() -> re.Pattern[str]:
    names = "|".join(re.escape(one).replace(r"\-", r"[^a-z0-9]?") for one in _words("families"))
    return re.compile(rf"(?<![a-z])(?:{names})(?![a-z])")
