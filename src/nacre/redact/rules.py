"""The rule table, read once, with the indexes that say which rules a text calls for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from nacre.redact.finders import FINDERS
from nacre.redact.hints import Hints
from nacre.redact.measures import measure_entropy
from nacre.redact.values import CHECKS, LOOK_BACK
from nacre.redact.views import BASE64_TEXT, VIEW_HINTS

RUN_BYTES = b"+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""What the runs that case-heeding rules look at are made of."""

HEAD = 3
"""Bytes of a run that select the rules worth trying."""

RUN_LITERAL = b"\0run"
"""Stands for a run that has a shape of its own and no literal to begin with."""

KEYED_LITERAL = b"\0keyed"
"""Stands for a run that begins with a short prefix and may be a key."""

SHAPED_RUN = re.compile(BASE64_TEXT + rb"|[0-9a-f]{32}-[0-9a-f]{8}-|[0-9]{6}-[0-9]{6}-[0-9]{6}-")
"""How such runs begin, and those that may be text in base64."""

SHAPED = frozenset(b"CDIJKLMNOPQRSTUVWXYZabcdef0123456789")
"""What their first, fifth and ninth bytes are, which is quicker to look at."""

PRIVATE_HINT = b"private"
"""The hint of what is marked as private, which is no rule of the table."""

_FOREIGN = re.compile(rb"[\x80-\xff]+")
_STRETCH = 4000
_FILLERS = tuple(bytes([byte]) for byte in RUN_BYTES)
_BOUNDARY = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One row of the rule table; `rules.toml` says what each field means."""

    name: str
    literals: tuple[bytes, ...]
    regex: bytes
    before: bytes = b""
    entropy: float = 0.0
    value: str = "any"
    ignore_case: bool = False
    glued: bool = False
    each: bytes = b""
    stop: bytes = b""
    reach: int = LOOK_BACK
    before_names: bool = False
    find: str = ""
    whole: bool = False

    def iter_secrets(self, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
        """Yield where the secrets lie in what the regex matched; nothing when it is none."""
        data = match.string
        if self.find:
            spans = FINDERS[self.find](data, match) if self._precedes(match) else iter(())
            yield from (span for span in spans if self._is_secret(data, *span))
        elif self.each:
            spans = self._iter_each(data, match) if self._precedes(match) else iter(())
            yield from (span for span in spans if self._is_secret(data, *span))
        elif self.before_names:
            before = self._precedes(match)
            if before and self._is_secret(data, *before):
                yield before
        elif before := self._precedes(match):
            start, end = secret_span(match)
            start = before[0] if self.whole else start
            if self._is_secret(data, start, end):
                yield start, end

    def _is_secret(self, data: bytes, start: int, end: int) -> bool:
        if not CHECKS[self.value](data, start, end):
            return False
        return not self.entropy or measure_entropy(data[start:end]) >= self.entropy

    def _precedes(self, match: re.Match[bytes]) -> tuple[int, int] | None:
        """Where what must stand before a match lies (its group, if it has one); ``None`` where it does not."""
        if not self.before:
            return match.span()
        data, start = match.string, match.start()
        floor = max(0, start - self.reach)
        if self.reach > LOOK_BACK:
            floor = max(floor, data.rfind(b"\n", floor, start) + 1)  # what lies so far back is on the same line
        found = _compile_part(self.before).search(data[floor:start])
        return (floor + found.start(found.lastindex or 0), floor + found.end(found.lastindex or 0)) if found else None

    def _iter_each(self, data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
        """Yield what `each` finds in the stretch around a match."""
        start, end = max(0, match.start() - self.reach), match.end() + _STRETCH
        for stop in _compile_part(self.stop).finditer(data, start, end):
            if stop.end() <= match.start():
                start = stop.end()
            elif stop.start() >= match.end():
                end = stop.start()
                break
        if self.reach == LOOK_BACK:
            start = match.end()
        for found in _compile_part(self.each).finditer(data, start, end):
            yield found.span(1)


def secret_span(match: re.Match[bytes]) -> tuple[int, int]:
    """Return where the secret lies in what a rule matched, to the end of a character that the rule's length cut."""
    start, end = match.span(match.lastindex or 0)
    while end < len(match.string) and match.string[end] & 0xC0 == 0x80:
        end += 1
    return start, end


Step = tuple[int, int, bytes]
"""The number of a rule, which of its literals it is looked for at, and this, if it is longer than what was found."""


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The rules in order, and what to try by what was seen in a text.

    ``by_literal`` has the steps for each literal, of which ``anywhere`` are those of rules that ignore case.
    ``hints`` finds these, but for the ``foreign``, each with the part of it that is not ASCII. ``by_head`` leads from
    the beginning of a run to the other literals.
    """

    rules: tuple[Rule, ...]
    by_literal: Mapping[bytes, tuple[Step, ...]]
    anywhere: frozenset[bytes]
    hints: Hints
    foreign: Mapping[bytes, bytes]
    by_head: Mapping[bytes, tuple[bytes, ...]]


@cache
def load_table() -> RuleTable:
    """Read the rule table."""
    content = tomllib.loads(files("nacre.redact").joinpath("rules.toml").read_text(encoding="utf-8"))
    parts = {name: text.encode() for name, text in content["parts"].items()}
    names = {f"@{name}": tuple(words) for name, words in content["names"].items()}
    names |= {"@run": ("\0run",), "@keyed": ("\0keyed",)}
    tokens = _list_token_rows(content["tokens"])
    rows = [*content["block"], *tokens, *content["rule"], *_list_command_rows(content["command"])]
    rules = tuple(_parse_rule(row, parts, names) for row in rows)
    anywhere = _list_steps(rules, ignore_case=True)
    # A literal that begins with another one is looked for where that one is: "key=" at "key".
    for literal in sorted(anywhere, key=len, reverse=True):
        gate = next((other for other in anywhere if other != literal and literal.startswith(other)), None)
        if gate is not None:
            anywhere[gate] += tuple((number, index, literal) for number, index, _ in anywhere.pop(literal))
    in_runs = _list_steps(rules, ignore_case=False)
    by_head: dict[bytes, tuple[bytes, ...]] = {}
    for literal in in_runs:
        for head in _list_heads(literal):
            by_head[head] = (*by_head.get(head, ()), literal)
    hints = Hints((*anywhere, PRIVATE_HINT, *VIEW_HINTS))
    foreign = {literal: _FOREIGN.findall(literal)[0] for literal in hints.blind}
    return RuleTable(rules, in_runs | anywhere, frozenset(anywhere), hints, foreign, by_head)


def _list_steps(rules: Sequence[Rule], *, ignore_case: bool) -> dict[bytes, tuple[Step, ...]]:
    steps: dict[bytes, tuple[Step, ...]] = {}
    for number, rule in enumerate(rules):
        if rule.ignore_case == ignore_case:
            for index, literal in enumerate(rule.literals):
                steps[literal] = (*steps.get(literal, ()), (number, index, b""))
    return steps


def _list_heads(literal: bytes) -> list[bytes]:
    # In raw JSON the "n" of an escaped line break is glued to what follows it, in a diff the sign of its line.
    heads = [literal[:HEAD], *(letter + literal[: HEAD - 1] for letter in (b"n", b"r", b"t", b"+"))]
    while any(len(head) < HEAD for head in heads):
        heads = [head + filler for head in heads for filler in (_FILLERS if len(head) < HEAD else (b"",))]
    return heads


_PREFIX = re.compile(r"(?:[A-Za-z0-9_-]|\\[.+])+(?![?*+{])")


def _list_token_rows(tokens: Mapping[str, str | Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Rules for the tokens of providers, looked for at what their regexes begin with."""
    for name, token in tokens.items():
        row = {"regex": token} if isinstance(token, str) else token
        prefix = _PREFIX.match(row["regex"])
        yield {"name": name, "literals": [prefix[0].replace("\\", "")] if prefix else [], **row}


_FORMS = {
    "attached": ("attached-password", r"""(?:<argument>)""", "account"),
    "apart": ("option-password", r"""[ \t=]{1,4}<argument>""", "argument"),
    "sure": ("option-password", r"""[ \t=]{1,4}<argument>""", "account"),
    "account": (
        "account-password",
        r"""(?:[ \t]{1,4}|=)?(?:<quote>)?[^\s:%"'`]{0,80}[:%,]([^\s"'`\\]{3,200})""",
        "account",
    ),
}


def _list_command_rows(commands: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Rules for what commands take, one for each form and flag."""
    tools: dict[tuple[str, str], list[str]] = {}
    for command in commands:
        for flag in command["flags"]:
            tools.setdefault((command["form"], flag), []).append(command["tool"])
    for (form, flag), those in tools.items():
        name, regex, value = _FORMS[form]
        literal = flag if flag.startswith(("/", "-user")) else f" {flag}"
        yield {
            "name": name, "literals": [literal], "value": value, "reach": 260,
            "regex": rf"""{re.escape(literal)}(?:(?<=["'].{{{len(literal)}}})([^"'\r\n]{{4,100}})(?=["'])|{regex})""",
            "before": rf"(?i:(?<![\w-])(?:{'|'.join(those)})\b[^\n|;]{{0,250}})$", "ignore_case": True,
        }  # fmt: skip


def _parse_rule(row: Mapping[str, Any], parts: Mapping[str, bytes], names: Mapping[str, Sequence[str]]) -> Rule:
    options = {
        name: row[name]
        for name in ("entropy", "value", "ignore_case", "glued", "reach", "find", "whole")
        if name in row
    }
    before = _expand(row.get("before", "").encode(), parts)
    return Rule(
        name=row["name"],
        literals=tuple(word.encode() for literal in row["literals"] for word in names.get(literal, (literal,))),
        regex=_expand(row["regex"].encode(), parts),
        before=before,
        each=_expand(row.get("each", "").encode(), parts),
        stop=row.get("stop", "").encode(),
        before_names=bool(re.compile(before).groups),
        **options,
    )


def _expand(regex: bytes, parts: Mapping[str, bytes]) -> bytes:
    previous = b""
    while previous != regex:
        previous = regex
        for name, part in parts.items():
            regex = regex.replace(b"<%s>" % name.encode(), part)
    return regex


@cache
def compile_rule(rule: Rule) -> re.Pattern[bytes]:
    """Compile a rule; only the rules that a text calls for are ever compiled."""
    bounded = rule.regex if rule.glued or rule.ignore_case else _BOUNDARY + rule.regex
    return re.compile(bounded, re.IGNORECASE if rule.ignore_case else re.NOFLAG)


@cache
def compile_any(literal: bytes) -> re.Pattern[bytes]:
    """Compile all rules that begin with a literal to one: where it does not match, none of them does."""
    return _compile_together(tuple(sorted({number for number, _, _ in load_table().by_literal[literal]})))


@cache
def _compile_together(numbers: Sequence[int]) -> re.Pattern[bytes]:
    rules = load_table().rules
    return re.compile(b"|".join(b"(?:" + rules[number].regex + b")" for number in numbers), re.IGNORECASE)


@cache
def _compile_part(regex: bytes) -> re.Pattern[bytes]:
    return re.compile(regex, re.IGNORECASE)
