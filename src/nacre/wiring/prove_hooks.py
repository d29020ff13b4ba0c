"""Prove that hooks run and answer, and that Codex trusts them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nacre.hosts import codex
from nacre.settings import Settings
from nacre.values.reports import FAILURE, OK, WARNING, Check
from nacre.values.wiring import WiringWish
from nacre.wiring.codex_trust import UNSEEN, trust_in
from nacre.wiring.dry_runs import SAMPLE, run_hook
from nacre.wiring.ways import init_command, program_of
from nacre.wiring.written import Written

_MOST_RUNS = 3
_NOTED_SECONDS = 1.0
_LOOK_SECONDS = 0.02


def prove_hooks(settings: Settings, wish: WiringWish, written: Written) -> Iterator[Check]:
    """A finding for the hooks of a host, and where Codex has them, whether it trusts them."""
    slowest, failed, late, traces = 0.0, [], 0, 0
    for event, line in written.hooks:
        tried = _tried(settings, wish, event, line)
        slowest = max(slowest, tried.seconds)
        failed += [f"{event}: {tried.problem}"] if tried.problem else []
        late += tried.is_late
        traces += bool(tried.how)
    if failed:
        yield Check("hooks", FAILURE, failed[0] + (f" (and {len(failed) - 1} more)" if failed[1:] else ""))
    elif written.hooks and not traces:
        yield Check("hooks", FAILURE, f"they run, and none left a line in {_log(settings)}: {written.hooks[0][1]}")
    elif late:
        told = f"they run; {late} of {len(written.hooks)} had no answer in time, however often, and said nothing"
        yield Check("hooks", WARNING, told, "is this machine very busy? nacre doctor tells how the home is")
    elif written.hooks:
        yield Check("hooks", OK, f"{len(written.hooks)} answer, the slowest in {slowest * 1000:.0f} ms")
    if wish.host == codex.NAME and written.hooks and program_of(settings, "codex"):
        yield from _trusted(settings, wish)


def _tried(settings: Settings, wish: WiringWish, event: str, line: str) -> _Tried:
    """Run a hook, in no project: no session is to miss what it is told. One that comes late is run again: what it loads
    is in the system's memory then."""
    given = {**SAMPLE, "hook_event_name": event, "cwd": str(settings.home)}
    tried = _Tried(None, "", 0.0)
    for _ in range(_MOST_RUNS):
        began, noted = time.monotonic(), _log_size(settings)
        problem = run_hook(settings, line, given, wish.project)
        tried = _Tried(problem, "" if problem else _how(settings, noted), time.monotonic() - began)
        if not tried.is_late:
            break
    return tried


@dataclass(frozen=True, slots=True)
class _Tried:
    """A run of a hook: what is wrong, how it was answered, as its log tells, and for how long it ran."""

    problem: str | None
    how: str
    seconds: float

    @property
    def is_late(self) -> bool:
        """Whether it said nothing for want of time."""
        return not self.problem and self.how in ("late", "failed", "")


def _trusted(settings: Settings, wish: WiringWish) -> Iterator[Check]:
    found = trust_in(settings, wish)
    hint = f"{init_command(wish, '--trust-hooks')}, or open codex and type /hooks"
    if found is None:
        yield Check("trust", WARNING, "Codex cannot be asked whether it trusts the hooks", "open codex and type /hooks")
    elif not found.seen:
        yield Check("trust", WARNING, f"Codex sees none of the hooks{f': {UNSEEN}' if wish.project else ''}", hint)
    elif found.untrusted:
        yield Check("trust", WARNING, f"Codex runs {found.untrusted} of the hooks once you trust them", hint)
    else:
        yield Check("trust", OK, "Codex trusts the hooks")


def _log(settings: Settings) -> Path:
    return settings.home / "logs" / "hooks.jsonl"


def _log_size(settings: Settings) -> int:
    return _log(settings).stat().st_size if _log(settings).exists() else 0


def _how(settings: Settings, since: int) -> str:
    """How the last run of a hook was answered, as its log tells; empty where it left no line."""
    until = time.monotonic() + _NOTED_SECONDS  # the daemon notes it once the hook has its answer
    while _log_size(settings) == since and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    try:
        data = _log(settings).read_bytes()
        fresh = data[since if since <= len(data) else 0 :].splitlines()
        return str(json.loads(fresh[-1])["how"]) if fresh else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""
