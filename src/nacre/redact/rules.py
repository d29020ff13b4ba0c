"""The rule table, read once, with the indexes that say which rules a text calls for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from nacre.redact.values import CHECKS, LOOK_BACK, measure_entropy

RUN_BYTES = b"+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""What the runs that case-heeding rules look at are made of."""

HEAD = 3
"""Bytes of a run that select the rules worth trying."""

_FILLERS = tuple(bytes([byte]) for byte in RUN_BYTES)
_BOUNDARY = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"


@dataclass(frozen=True, slots=True)
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

    def accepts(self, match: re.Match[bytes]) -> bool:
        """Tell whether what the regex matched is a secret."""
        data, start = match.string, match.start()
        if self.before and not _compile_before(self.before).search(data[max(0, start - LOOK_BACK) : start]):
            return False
        start, end = secret_span(match)
        if self.entropy and measure_entropy(data[start:end]) < self.entropy:
            return False
        return CHECKS[self.value](data, start, end)


def secret_span(match: re.Match[bytes]) -> tuple[int, int]:
    """Return where the secret lies in what a rule matched, to the end of a character that the rule's length cut."""
    start, end = match.span(match.lastindex or 0)
    while end < len(match.string) and match.string[end] & 0xC0 == 0x80:
        end += 1
    return start, end


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The rules in order, and the numbers of those to try by what was seen in a text."""

    rules: tuple[Rule, ...]
    by_literal: Mapping[str, frozenset[int]]
    by_run_literal: Mapping[bytes, frozenset[int]]
    by_head: Mapping[bytes, tuple[bytes, ...]]
    gates: Mapping[str, str]


@cache
def load_table() -> RuleTable:
    """Read the rule table."""
    content = tomllib.loads(files("nacre.redact").joinpath("rules.toml").read_text(encoding="utf-8"))
    parts = {name: text.encode() for name, text in content["parts"].items()}
    rules = tuple(_parse_rule(row, parts) for row in content["rule"])
    by_literal = _number_literals(rules, ignore_case=True)
    # A literal that begins with another one is looked for where that one is: "key=" at "key".
    gates: dict[str, str] = {}
    for literal in sorted(by_literal, key=len, reverse=True):
        gate = next((other for other in by_literal if other != literal and literal.startswith(other)), None)
        if gate is not None:
            by_literal[gate] |= by_literal.pop(literal)
            gates[literal.decode()] = gate.decode()
    by_run_literal = _number_literals(rules, ignore_case=False)
    by_head: dict[bytes, tuple[bytes, ...]] = {}
    for literal in by_run_literal:
        for head in _list_heads(literal):
            by_head[head] = (*by_head.get(head, ()), literal)
    everywhere = {literal.decode(): numbers for literal, numbers in by_literal.items()}
    return RuleTable(rules, everywhere, by_run_literal, by_head, gates)


def _number_literals(rules: Sequence[Rule], *, ignore_case: bool) -> dict[bytes, frozenset[int]]:
    numbers: dict[bytes, frozenset[int]] = {}
    for number, rule in enumerate(rules):
        if rule.ignore_case == ignore_case:
            numbers |= {literal: numbers.get(literal, frozenset()) | {number} for literal in rule.literals}
    return numbers


def _list_heads(literal: bytes) -> list[bytes]:
    # In raw JSON the "n" of an escaped line break is glued to what follows it.
    glued = [literal[:HEAD], *(letter + literal[: HEAD - 1] for letter in (b"n", b"r", b"t"))]
    return [head + filler for head in glued for filler in (_FILLERS if len(head) < HEAD else (b"",))]


def _parse_rule(row: Mapping[str, Any], parts: Mapping[str, bytes]) -> Rule:
    options = {name: row[name] for name in ("entropy", "value", "ignore_case", "glued") if name in row}
    return Rule(
        name=row["name"],
        literals=tuple(literal.encode() for literal in row["literals"]),
        regex=_expand(row["regex"].encode(), parts),
        before=row.get("before", "").encode(),
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
def _compile_before(regex: bytes) -> re.Pattern[bytes]:
    return re.compile(regex)
