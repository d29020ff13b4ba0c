"""Generate texts with secrets and look-alikes from patterns and a seed.

No secret is real, and none is in the source, so that secret scanners of code hosts find nothing.
"""

from __future__ import annotations

import json
import random
import re
import string
import tomllib
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.dataset import DATA
from nacre.base.frozen import frozen
from nacre.errors import InvalidInputError

SEED = 20_261_120
TOKEN_CONTEXTS = 5
VALUE_CONTEXTS = 4
TEXT_COPIES = 3
HARMLESS_COPIES = 9

_LOWER, _UPPER, _DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALPHABETS = {
    "alnum": string.ascii_letters + _DIGITS,
    "letters": string.ascii_letters,
    "letterslow": _LOWER,
    "lower": _LOWER + _DIGITS,
    "upper": _UPPER + _DIGITS,
    "digits": _DIGITS,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "url64": f"{string.ascii_letters}{_DIGITS}-_",
    "b64": f"{string.ascii_letters}{_DIGITS}+/",
    "base32": _UPPER + "234567",
    "base32low": _LOWER + "234567",
    "crockford": "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
    "mixed": string.ascii_letters + _DIGITS + "!@#%^&*(-_=+)",
    "dna": "ACGT",
    "protein": "ACDEFGHIKLMNPQRSTVWY",
}
_WORDS = (
    "amber anchor atlas birch canyon cedar cobalt comet copper coral delta ember falcon fjord garnet glacier harbor "
    "hazel heron indigo juniper kestrel lantern lagoon maple meadow nimbus oasis orchid osprey pepper quartz raven "
    "saffron sierra tundra velvet walnut willow zephyr"
).split()
_LEET = str.maketrans("aeo", "430")
_SYMBOLS = "!#$%*+?_-"
_SLOT = re.compile(
    r"<(?:(\d+):(\w+)|block:([A-Z ]+)|(word|Word|WORD|password|passphrase|uuid|jwt|digits1))>"
)
_MARKED = re.compile("«(.*?)»", re.DOTALL)


@frozen
class Sample:
    """A text, its secrets (none if harmless), and the family in which it is counted."""

    text: str
    family: str
    secrets: tuple[str, ...] = ()


def build(seed: int = SEED) -> list[Sample]:
    """Return the labelled set for a seed."""
    maker = _Maker(random.Random(seed))  # noqa: S311 - the same texts each time
    return [*maker.tokens(), *maker.values(), *maker.texts(), *maker.harmless()]


def read_samples(path: Path) -> list[Sample]:
    """Read JSON lines with ``text``, ``family``, and ``secrets`` or ``secret``.

    Raises InvalidInputError.
    """
    samples = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            samples.append(_sample(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = 'e.g. {"text": "KEY=abc", "family": "dotenv", "secrets": ["abc"]}'
            raise InvalidInputError(
                f"{path}, line {number}: not a labelled text: {error}", hint=hint
            ) from error
    return samples


def write_samples(path: Path, samples: list[Sample]) -> None:
    """Write a labelled set for :func:`read_samples`."""
    lines = (
        {"text": sample.text, "family": sample.family, "secrets": list(sample.secrets)}
        for sample in samples
    )
    path.write_text(
        "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), encoding="utf-8"
    )


def _sample(record: Mapping[str, Any]) -> Sample:
    secrets = record.get("secrets", record.get("secret")) or []
    listed = [secrets] if isinstance(secrets, str) else [str(secret) for secret in secrets]
    text = record["text"]
    if not isinstance(text, str):
        raise TypeError("text is not a string")
    return Sample(
        text, str(record.get("family") or ("secret" if listed else "harmless")), tuple(listed)
    )


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((DATA / "redaction" / name).read_text(encoding="utf-8"))


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._forms = _table("forms.toml")
        self._contexts = _table("contexts.toml")

    def tokens(self) -> Iterator[Sample]:
        for family, patterns in self._forms["tokens"].items():
            for context in self._draw(self._contexts["tokens"], TOKEN_CONTEXTS * len(patterns)):
                secret = self._fill(self._chance.choice(patterns))
                yield self._dressed(self._fill(context.replace("<secret>", f"«{secret}»")), family)

    def values(self) -> Iterator[Sample]:
        for family, rows in self._forms["values"].items():
            for name, pattern in rows:
                for context in self._draw(self._contexts["values"], VALUE_CONTEXTS):
                    named = _named(context, name)
                    yield self._dressed(
                        self._fill(named.replace("<secret>", f"«{self._fill(pattern)}»")), family
                    )

    def texts(self) -> Iterator[Sample]:
        for family, patterns in self._forms["texts"].items():
            for pattern in patterns * TEXT_COPIES:
                filled = self._fill(pattern)
                yield self._dressed(filled if "«" in filled else f"«{filled}»", family)

    def harmless(self) -> Iterator[Sample]:
        for family, patterns in _table("harmless.toml").items():
            for pattern in patterns:
                for text in {self._fill(pattern): None for _ in range(HARMLESS_COPIES)}:
                    yield Sample(self._surrounded(text), f"harmless {family}")

    def _dressed(self, marked: str, family: str) -> Sample:
        """Return a text as in transcripts: by itself, among other lines, in JSON, in nested JSON, or in a diff."""
        secrets = tuple(_MARKED.findall(marked))
        text = _MARKED.sub(lambda match: match[1], marked)
        dress = self._chance.choices(
            (str, self._surrounded, _in_json, _in_json_twice, _as_diff), (10, 6, 3, 2, 2)
        )[0]
        dressed = dress(text)
        return Sample(dressed, family, tuple(_as_dressed(secret, dress) for secret in secrets))

    def _surrounded(self, text: str) -> str:
        first, last = self._chance.choice(_WORDS), self._chance.choice(_WORDS)
        return f"Then I looked at {first}:\n\n{text}\n\nand {last} was fine after that."

    def _draw(self, contexts: list[str], number: int) -> list[str]:
        return self._chance.sample(contexts, min(number, len(contexts)))

    def _fill(self, pattern: str) -> str:
        return _SLOT.sub(self._slot, pattern)

    def _slot(self, match: re.Match[str]) -> str:
        size, alphabet, label, name = match.groups()
        if alphabet == "words":
            return " ".join(self._chance.choice(_WORDS) for _ in range(int(size)))
        if size:
            return self._random(int(size), ALPHABETS[alphabet])
        return self._block(label) if label else self._made(name)

    def _made(self, name: str) -> str:
        chance, word = self._chance, self._chance.choice(_WORDS)
        made: dict[str, Callable[[], str]] = {
            "word": lambda: word,
            "Word": word.capitalize,
            "WORD": word.upper,
            "password": self._password,
            "passphrase": lambda: "-".join(chance.sample(_WORDS, 4)),
            "uuid": lambda: str(uuid.UUID(int=chance.getrandbits(128), version=4)),
            "jwt": self._jwt,
            "digits1": lambda: chance.choice("123456789"),
        }
        return made[name]()

    def _jwt(self) -> str:
        letters = ALPHABETS["url64"]
        return f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{self._random(60, letters)}.{self._random(43, letters)}"

    def _password(self) -> str:
        chance, word = self._chance, self._chance.choice(_WORDS)
        shapes: tuple[Callable[[], str], ...] = (
            lambda: f"{word.capitalize()}{chance.randint(10, 9999)}{chance.choice(_SYMBOLS)}",
            lambda: f"{word}{chance.randint(100, 99999)}",
            lambda: f"{word}-{chance.choice(_WORDS)}-{chance.randint(2, 99)}",
            lambda: f"{word.translate(_LEET)}{chance.choice('!#*')}{chance.randint(1, 9)}x",
            lambda: self._random(chance.randint(10, 24), ALPHABETS["alnum"]),
            lambda: self._random(chance.randint(12, 20), ALPHABETS["alnum"] + "!#%*_-"),
        )
        return chance.choice(shapes)()

    def _random(self, size: int, alphabet: str) -> str:
        edge = [letter for letter in alphabet if letter.isalnum()]
        middle = [self._chance.choice(alphabet) for _ in range(size - 2)]
        return "".join((self._chance.choice(edge), *middle, self._chance.choice(edge)))[:size]

    def _block(self, label: str) -> str:
        rows = "\n".join(
            self._random(64, ALPHABETS["b64"]) for _ in range(self._chance.randint(4, 14))
        )
        return f"-----BEGIN {label}-----\n{rows}\n-----END {label}-----"


def _named(context: str, name: str) -> str:
    first, *rest = name.lower().split("_")
    camel = first + "".join(part.capitalize() for part in rest)
    return (
        context.replace("<NAME>", name.upper())
        .replace("<name>", name.lower())
        .replace("<camel>", camel)
    )


def _in_json(text: str) -> str:
    return json.dumps({"type": "text", "text": text}, ensure_ascii=False)


def _in_json_twice(text: str) -> str:
    return json.dumps({"role": "user", "content": _in_json(text)})


def _as_diff(text: str) -> str:
    return "@@ -1,2 +1,9 @@\n" + "".join(f"+{line}\n" for line in text.split("\n"))


def _as_dressed(secret: str, dress: Callable[[str], str]) -> str:
    if dress is _as_diff:
        return "\n+".join(secret.split("\n"))
    once = json.dumps(secret, ensure_ascii=False)[1:-1]
    if dress is _in_json:
        return once
    return json.dumps(once)[1:-1] if dress is _in_json_twice else secret
