"""Text: comparison, words, stems, excerpts, regular expressions, wikilinks and model names."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.base.lazy import Module
from nacre.errors import InvalidQueryError

if TYPE_CHECKING:
    import tomllib

    import regex
else:
    tomllib = Module("tomllib")
    regex = Module("regex")

_MARKS = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "…": "..."}
)
_LAYOUT = re.compile(r"^\s*(?:[-*•]\s+|#+\s+)|`", re.MULTILINE)
_STRONG = re.compile(r"(?<!\S)\*\*(?=[^\s*/])([^*/]*[^\s*/])\*\*(?![\w/*])")
_END = re.compile(r"(?<=[\w\])}'\"）」』])[.!。！]+(?=\s|$)")
_SENTENCE = re.compile(r"(?:^|[.!?。！？]\s+)(\w)")


def to_bytes(text: str) -> bytes:
    """Encode a text in UTF-8. Unpaired surrogates become question marks."""
    return text.encode("utf-8", "replace")


def to_text(data: bytes) -> str:
    """Decode UTF-8. Invalid bytes become replacement characters."""
    return data.decode("utf-8", "replace")


def read_resource(module_file: str, name: str) -> str:
    """Read a text file inside a module's folder."""
    return (Path(module_file).parent / name).read_text(encoding="utf-8")


def read_table(module_file: str, name: str) -> dict[str, Any]:
    """Read a TOML file inside a module's folder."""
    return tomllib.loads(read_resource(module_file, name))


def numbered(name: str, is_taken: Callable[[str], object]) -> str:
    """Return ``name`` or, if it is taken, the first free name such as ``name-2``."""
    number, free = 1, name
    while is_taken(free):
        number += 1
        free = f"{name}-{number}"
    return free


def written(text: str) -> str:
    """Normalize a text's spaces, emphasis, quotes, dashes, final full stops and capitals.

    File names and patterns such as ``__init__.py`` and ``src/**/a`` stay unchanged.
    """
    text = _LAYOUT.sub("", unicodedata.normalize("NFC", text).translate(_MARKS))
    text = _STRONG.sub(r"\1", text)
    text = _SENTENCE.sub(lambda match: match[0].lower(), text.strip())
    return " ".join(_END.sub("", text).split())


# -- Words, identifiers, lengths and safe display --------------------------------------------------


CHARACTERS_PER_TOKEN = 4

# Scripts without spaces between words: Han, Kana, Hangul, Thai, Lao, Khmer, Burmese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0002fa1f]+"
)
_SIGNS = {"++": "plusplus", "#": "sharp"}
_SIGNED = re.compile(r"\b([A-Za-z])(\+\+|#)(?![A-Za-z_])")
_VOICED = "\u3099\u309a"
"""Combining marks of voiced kana. They turn a letter into a different letter."""
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
_INVISIBLE = re.compile(
    "\x1b\\[[0-9;?<=>]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[@-Z\\\\-_]"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\u2060\ufeff]"
)
_INVISIBLE_RANGES = (
    "\x80-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200e\u200f\u202a-\u202e\u2061-\u206f"
    "\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(
    f"[{_INVISIBLE_RANGES}]|(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])|[\u200c\u200d]{{2,}}"
)
"""Matches invisible characters and text direction marks, which can hide text or frame marks.

Joiners inside words are kept in scripts that need them.
"""

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
    """Remove terminal sequences, control characters and zero-width spaces, which could hide secrets
    from redaction.
    """
    if is_visible(text.encode("utf-8", "surrogatepass")):
        return text
    return _INVISIBLE.sub("", text)


def is_visible(data: bytes) -> bool:
    """Return True if :func:`visible` would leave this UTF-8 text unchanged."""
    odd = data.translate(None, _PLAIN)
    return not odd or (
        len(odd.translate(None, _CONTROLS)) == len(odd)
        and not any(mark in odd for mark in _ZERO_WIDTH)
    )


_MAY_DISGUISE = re.compile(
    f"[{_INVISIBLE_RANGES}\u200c\u200d\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]"
)
_DISGUISES = re.compile(
    rf"(?<=[\w.+/=~-])(?:{_UNSEEN.pattern})++(?=[\w.+/=~-])|[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]{{8}}"
)


def is_disguised(text: str) -> bool:
    """Return True if a text hides words behind invisible characters or full-width letters."""
    return not text.isascii() and bool(_MAY_DISGUISE.search(text) and _DISGUISES.search(text))


def undisguised(text: str) -> str:
    """Return a text as people see it, without invisible characters or full-width letters."""
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", visible(text)))


def normalise(text: str) -> str:
    """Reduce a text to lower-case words and single spaces, for comparison."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def harmless(text: str) -> str:
    """Make a text safe for a prompt: remove invisible characters and escape tags."""
    text = visible(text)
    if not text.isascii():
        text = _UNSEEN.sub("", text)
    return _OWN_FRAME.sub("nacre_context", FRAME_MARK.sub("&lt;", text))


def one_line(text: str) -> str:
    """Replace each run of whitespace with a space."""
    return " ".join(text.split())


def shorten(text: str, characters: int) -> str:
    """Shorten a text to at most ``characters`` with an ellipsis, if possible after a whole word."""
    text = one_line(text)
    if len(text) <= characters:
        return text
    cut = text[: characters - 1]
    at = cut.rfind(" ")
    return (cut[:at] if at > characters * 0.6 else cut).rstrip(" ,;:.-–—") + "…"


def title_of(text: str) -> str:
    """Return the shortened first sentence of a memory as its title."""
    first = next(iter(text.strip().splitlines()), "").lstrip("#-*+> ").strip()
    for mark in (". ", "。", "; ", ": "):
        head, separator, _ = first.partition(mark)
        if separator and len(head) >= 12:
            first = head
            break
    return shorten(first, 80).rstrip(".。") or "Untitled"


def count(number: int, noun: str, many: str = "") -> str:
    """Format a number with its noun, such as ``3 memories``. ``many`` is an irregular plural."""
    ies = noun.endswith("y") and noun[-2] not in "aeiou"
    plural = many or (f"{noun[:-1]}ies" if ies else f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"


def count_tokens(text: str) -> int:
    """Estimate a text's tokens: four characters each, or one each in scripts without spaces."""
    unspaced = sum(len(run) for run in _UNSPACED.findall(text)) if not text.isascii() else 0
    return unspaced + -(-(len(text) - unspaced) // CHARACTERS_PER_TOKEN)


def is_unspaced(text: str) -> bool:
    """Return True if most letters belong to scripts without spaces between words."""
    if text.isascii():
        return False
    unspaced = sum(len(run) for run in _UNSPACED.findall(text))
    return unspaced > sum(character.isalpha() for character in text) / 2


def segment(text: str) -> str:
    """Prepare a text for the full-text index.

    Scripts without spaces are split into overlapping pairs of characters, and the signs in ``C++``
    and ``F#`` are spelled out.
    """
    if "#" in text or "++" in text:
        text = _SIGNED.sub(lambda match: f"{match[1]}{_SIGNS[match[2]]} ", text)
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    if not _UNSPACED.search(text):
        return text
    return _UNSPACED.sub(lambda match: f" {' '.join(_pairs(match[0]))} ", text)


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


def words(text: str) -> list[str]:
    """Return the words of a text in lower case and without diacritics, split by :func:`segment`."""
    text = segment(text)
    if not text.isascii():
        text = unicodedata.normalize(
            "NFC", _ABOVE_ASCII.sub(_bare, unicodedata.normalize("NFKD", text))
        )
    return _WORD.findall(text.lower())


def _bare(match: re.Match[str]) -> str:
    return "" if unicodedata.combining(match[0]) and match[0] not in _VOICED else match[0]


def stems(text: str) -> str:
    """Return the stems of a text's words, each between spaces."""
    return f" {' '.join(map(stem, words(text)))} "


def identifiers(text: str) -> list[str]:
    """Return the distinct paths, code names, error codes and hashes in a text."""
    names: dict[str, None] = {}
    for token in dict.fromkeys(text.split()):
        bare = token.strip(_PUNCTUATION)
        if len(bare) < 3 or (bare.isalpha() and bare[1:].islower()):
            continue
        for match in _IDENTIFIER.finditer(bare):
            name = match[0][:_IDENTIFIER_CHARACTERS]
            if _WORD.search(name):
                names[name] = None
    return list(names)


def pieces(text: str, characters: int) -> list[str]:
    """Split a text into pieces of at most ``characters``, if possible between paragraphs or
    sentences.
    """
    text = text.strip()
    result = []
    while len(text) > characters:
        cut = _cut(text, characters)
        result.append(text[:cut].strip())
        text = text[cut:].lstrip()
    return [piece for piece in [*result, text] if piece]


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
"""English and Chinese words ignored in questions."""


# -- Excerpts --------------------------------------------------------------------------------------


EXCERPT_CHARACTERS = 420
_REACH = 0.6
"""Share of an excerpt in which the query's terms are counted. The rest completes a sentence."""

_BEFORE = 80
"""Maximum number of characters between the start of an excerpt and the first match."""

_SENTENCE_END = re.compile(r"[.!?]+[\"'”’)*`]*(?=\s)|[。！？]+[”’）]*")
_LITERAL_CHARACTERS = 60
"""Maximum number of characters of a phrase that are searched for literally."""


def excerpt(
    text: str,
    terms: Iterable[str],
    characters: int = EXCERPT_CHARACTERS,
    *,
    phrase: str = "",
    answer: re.Pattern[str] | None = None,
) -> str:
    """Return an excerpt of a text in one line, with ellipses at the cuts.

    It contains ``phrase`` or as many terms as possible, preferably in whole sentences.
    """
    text = one_line(text)
    if len(text) <= characters:
        return text
    lowered = text.lower()
    literal = one_line(phrase).lower()[:_LITERAL_CHARACTERS]
    literal_at = lowered.find(literal) if literal else -1
    if literal_at >= 0:
        return _from(text, literal_at, characters)
    reach = round(characters * _REACH)
    places = sorted((at, term) for term in set(terms) for at in _places(lowered, term)) or [(0, "")]
    ends = [bisect_left(places, (start + reach, "")) for start, _ in places]
    counts = [len({term for _, term in places[at:end]}) for at, end in enumerate(ends)]
    most = max(counts)
    best = [start for (start, _), held in zip(places, counts, strict=True) if held == most]
    fitting = (start for start in best if answer and answer.search(text, start, start + reach))
    return _from(text, next(fitting, best[0]), characters)


def _from(text: str, place: int, characters: int) -> str:
    start = max(0, place - _BEFORE)
    if start:
        ends = [match.end() for match in _SENTENCE_END.finditer(text, start, place)]
        start = ends[-1] if ends else max(start, text.rfind(" ", start, place - _BEFORE // 2) + 1)
    following = text[start:].lstrip()
    cut = shorten(following, characters - 1)
    ends = [match.end() for match in _SENTENCE_END.finditer(following, 0, characters - 2)]
    if len(following) >= characters and max(ends, default=0) > characters * _REACH:
        cut = f"{following[: ends[-1]]} …"
    return f"…{cut}" if start else cut


def _places(lowered: str, term: str) -> list[int]:
    beginning = term[: max(3, len(term) - 2)] if term.isascii() and len(term) > 4 else term
    return [match.start() for match in islice(re.finditer(re.escape(beginning), lowered), 10)]


# -- Regular expressions of users and agents -------------------------------------------------------
# Their size and search time are limited.


_COUNT = re.compile(r"\{((?:\s|#.*\n)*[0-9](?:[0-9]|\s|#.*\n)*)")
_MAX_EXPRESSION_CHARACTERS = 1_000
_MAX_EXPRESSION_NODES = 1_000_000
"""Maximum size of an expression. Compiling it uses 300 MB and a third of a second, and cannot be interrupted."""


class Expression:
    """A case-insensitive regular expression with limited size and search time.

    Raises InvalidQueryError if it is invalid or too large.
    """

    def __init__(self, expression: str, seconds: float) -> None:
        if (
            len(expression) > _MAX_EXPRESSION_CHARACTERS
            or _size(expression) > _MAX_EXPRESSION_NODES
        ):
            raise InvalidQueryError(
                "the expression is too large", hint="use fewer characters and smaller counts in {…}"
            )
        try:
            self._compiled = regex.compile(expression, regex.IGNORECASE)
        except (regex.error, RecursionError) as error:
            raise InvalidQueryError(
                f"invalid regular expression: {error}",
                hint="escape special characters with \\, or leave out --regex",
            ) from error
        self._seconds = seconds

    def search(self, text: str) -> Any:
        """Return the first match in a text, if any. Raises TimeoutError."""
        return self._compiled.search(text, timeout=self._seconds)


def _size(expression: str) -> int:
    """Return an upper bound of the compiled size, assuming that repetitions such as ``{3}`` are
    nested.
    """
    counts = ("".join(filter(str.isdecimal, count)) for count in _COUNT.findall(expression))
    return len(expression) * math.prod(max(1, int(count)) for count in counts)


# -- English stems ---------------------------------------------------------------------------------
# The full-text index uses stems from SQLite's Porter tokenizer instead.


_PLURALS = (("ies", "y"), ("sses", "ss"), ("s", ""))
_NO_PLURALS = ("ss", "us", "is")
_VERB_ENDINGS = (("ing", ""), ("ied", "y"), ("ed", ""))
_MIN_LETTERS = 3
"""Minimum number of letters left without the ending. For plurals, it is one less."""


def stem(word: str) -> str:
    """Reduce a lower-case English word to a stem, which "meetings", "meeting" and "meet" share."""
    if len(word) <= _MIN_LETTERS or not word.isalpha():
        return word
    word = singular(word)
    for ending, by in _VERB_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_LETTERS:
            word = word[: -len(ending)] + by
            # "plann" (from "planned") becomes "plan", but "call" and "miss" stay.
            if len(word) > _MIN_LETTERS and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > _MIN_LETTERS else word


def singular(word: str) -> str:
    """Remove the plural ending of a lower-case word: "policies" becomes "policy"."""
    if word.endswith(_NO_PLURALS):
        return word
    candidates = (
        word[: -len(ending)] + by
        for ending, by in _PLURALS
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_LETTERS - 1
    )
    return next(candidates, word)


# -- Wikilinks and names ---------------------------------------------------------------------------


_LINK = re.compile(r"\[\[([^\[\]\n]{1,300})\]\]")
_CODE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)|(`+)[^`\n]+\2", re.DOTALL | re.MULTILINE)
_NAME_END = re.compile(r"[#|]|\\\|")
_MAX_LINKS = 500
"""Maximum number of links in a text. A text with more is not prose."""


def name_key(name: str) -> str:
    """Normalize a name: ``Tide Gauge`` becomes ``tide-gauge``."""
    return normalise(name).replace(" ", "-")


def mentioned(text: str) -> list[str]:
    """Return the normalized names in a text's wikilinks, except in code.

    ``[[name#heading|shown]]`` and the relative ``[[../fact/name]]`` both link to ``name``.
    """
    if "[[" not in text:
        return []
    links = _LINK.findall(_CODE.sub(" ", text))
    names = (_NAME_END.split(link, maxsplit=1)[0] for link in links)
    keys = (name_key(name.rpartition("/")[2] if name.startswith(".") else name) for name in names)
    return [key for key in dict.fromkeys(keys) if key][:_MAX_LINKS]


def called(subject: str, path: str | None, aliases: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """Return the original of each normalized name of a memory, and True if it is an alias.

    The subject, file name and vault path are also names.
    """
    stem = (path or "").removesuffix(".md")
    own = (subject, stem.rpartition("/")[2], stem)
    names = [(name, False) for name in own] + [(name, True) for name in aliases]
    keys: dict[str, tuple[str, bool]] = {}
    for name, is_alias in names:
        if key := name_key(name):
            keys.setdefault(key, (name, is_alias))
    return keys


def aliases_in(value: object) -> list[str]:
    """Return the names in the ``aliases`` of front matter: a list, or a text with commas."""
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [name.strip() for name in names if isinstance(name, str) and name.strip()]


# -- Names of models -------------------------------------------------------------------------------
# A model's name can show whether the model runs on the user's machine.


_TAGGED = re.compile(
    r"[^:]+:(?!\d+$|(?:free|nitro|floor|online|extended|beta|thinking|exacto|low|medium|high)$|.*cloud$)[^:]+"
)
"""Matches a name with an Ollama tag, such as ``tinystories:8b-q4_K_M``.

It excludes similar names of hosted models: Bedrock releases (``:0``), OpenRouter variants
(``:free``), Ollama's cloud (``:120b-cloud``), and fine-tuned models with several colons.
"""

OWN = "local:"
"""Prefix of models of a provider that the user set up: ``local:PROVIDER/MODEL``."""

_IN_THE_CLOUD = re.compile(r"[^:]+:(?:.+-)?cloud")
"""Matches models that Ollama on the user's machine forwards to its cloud."""

_HOSTED = re.compile(r".*(?::(?:free|nitro|floor|online|exacto)|[:-]cloud|-v\d+:\d+)")
"""Matches models hosted by OpenRouter, Ollama's cloud or Bedrock."""


def has_open_weights(model: str) -> bool:
    """Return True if people run a model themselves, unless its name shows a hosting service."""
    name = model.lower()
    return bool(_families().search(name)) and not is_hosted(name)


def is_hosted(model: str) -> bool:
    """Return True if a model's name shows that it runs at a hosting service."""
    name = model.lower()
    own = name.rpartition("/")[2]
    return (
        bool(_HOSTED.fullmatch(name))
        or _has_host(name)
        or any(fnmatch(own, pattern) for pattern in _words("hosted"))
    )


def is_called_local(model: str) -> bool:
    """Return True if a model's name suggests that it runs on the user's machine."""
    name = model.lower()
    is_local = (
        bool(_TAGGED.fullmatch(name)) or name.endswith(".gguf") or _is_of_local_provider(name)
    )
    return is_local and not _has_host(name)


def answered_by(model: str | None, provider: str | None) -> str | None:
    """Return the model's name, with the provider unless the provider is known to be remote."""
    if (
        not (model and provider)
        or _IN_THE_CLOUD.fullmatch(model.lower())
        or _is_elsewhere(provider)
    ):
        return model
    name = model if model.lower().startswith(f"{provider.lower()}/") else f"{provider}/{model}"
    return name if _is_of_local_provider(name.lower()) else f"{OWN}{name}"


def noted(before: str | None, now: str | None) -> str | None:
    """Return the model to record for a session: the new one, unless the old is likelier local."""
    if not (before and now):
        return now or before
    return before if _likely_local(before) >= max(1, _likely_local(now)) else now


def _likely_local(model: str) -> int:
    return 2 if has_open_weights(model) else int(is_called_local(model))


@cache
def _is_elsewhere(provider: str) -> bool:
    name = _plain(re.split("[/:]", provider, maxsplit=1)[0])
    # A redacted name begins with a bracket.
    return provider.startswith(("[", "<")) or name in {
        _plain(host) for host in _words("hosts") | _words("elsewhere")
    }


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def _has_host(name: str) -> bool:
    return re.split("[/:]", name, maxsplit=1)[0] in _words("hosts")


def _is_of_local_provider(name: str) -> bool:
    provider, slash, _ = name.partition("/")
    return bool(slash) and any(fnmatch(provider, pattern) for pattern in _words("local"))


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(read_table(__file__, "open_weights.toml")[kind])


@cache
def _families() -> re.Pattern[str]:
    names = "|".join(
        re.escape(family).replace(r"\-", r"[^a-z0-9]?") for family in _words("families")
    )
    return re.compile(rf"(?<![a-z])(?:{names})(?![a-z])")
