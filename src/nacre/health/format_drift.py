"""Has a tool's format changed? Records that no adapter knows, and sessions in which the owner suddenly says nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile

from nacre.home.home import Home
from nacre.values.reports import Check
from nacre.values.session import Heard

FEWEST_NEW = 4
"""So many sessions in a row without the owner's words, at least: fewer happen by chance, or have only begun."""

FEWEST_BEFORE = 8
"""So many sessions before them say what is usual with a tool; of fewer, nothing is said."""

ODDS = 0.001
"""How unlikely the row must be, if all were as before."""

_COMPARED = 80
_NAMED = 5


@dataclass(slots=True)
class _Odd:
    unknown: Counter[str] = field(default_factory=Counter)
    corrupt: int = 0
    versions: set[str] = field(default_factory=set)


def format_checks(home: Home) -> Iterator[Check]:
    """What was not understood, by tool and with the tool's versions, then tools that the canary warns of."""
    for tool, odd in sorted(_odd_records(home).items()):
        told = f"{tool} {', '.join(sorted(odd.versions))}" if odd.versions else tool
        if odd.unknown:
            listed = ", ".join(f"{record} ({count})" for record, count in sorted(odd.unknown.items())[:_NAMED])
            more = f" and {len(odd.unknown) - _NAMED} more kinds" if len(odd.unknown) > _NAMED else ""
            detail = f"unknown records in {told}: {listed}{more}"
            yield Check(f"format {tool}", "warning", detail, "a newer nacre may know them")
        if odd.corrupt:
            lines = f"{odd.corrupt} lines of {told} could not be understood, or were too long to be read"
            yield Check(f"format {tool}", "warning", lines, None)
    yield from _canary(home.sessions.heard(_COMPARED))


def _odd_records(home: Home) -> dict[str, _Odd]:
    found: dict[str, _Odd] = {}
    versions = home.sessions.versions()
    for file in home.sessions.seen_files():
        if not file.unknown and not file.corrupt:
            continue
        odd = found.setdefault(file.tool, _Odd())
        odd.unknown.update(file.unknown)
        odd.corrupt += file.corrupt
        if file.path in versions:
            odd.versions.add(versions[file.path])
    return found


def _canary(sessions: Sequence[Heard]) -> Iterator[Check]:
    for tool, group in groupby(sessions, key=lambda one: one.tool):
        listed = list(group)
        silent = list(takewhile(lambda one: not one.owner_spoke, listed))
        before = listed[len(silent) :]
        if not is_sudden(len(silent), len(before), sum(one.owner_spoke for one in before)):
            continue
        versions = sorted({one.version for one in silent if one.version})
        told = f"{tool} {', '.join(versions)}" if versions else tool
        spoke = sum(one.owner_spoke for one in before)
        yield Check(
            f"format {tool}", "warning",
            f"the last {len(silent)} sessions of {told} hold no words of yours; {spoke} of {len(before)} before did",
            f"its format may have changed: look at one (nacre sessions list --tool {tool}), and for a newer nacre",
        )  # fmt: skip


def is_sudden(silent: int, before: int, spoke: int) -> bool:
    """Whether so many sessions in a row without the owner's words are no accident.

    Of ``before`` sessions, the owner spoke in ``spoke``: by Laplace's rule the next one is silent with a chance of
    ``1 - (spoke + 1) / (before + 2)``, and all of the row with that to the power of its length. A tool in whose
    sessions the owner seldom speaks is never warned of.
    """
    if silent < FEWEST_NEW or before < FEWEST_BEFORE:
        return False
    return float((1 - (spoke + 1) / (before + 2)) ** silent) < ODDS
