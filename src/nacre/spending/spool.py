"""What is noted on the way and counted later: traces, and calls of models that somebody waits for.

Whoever notes something appends a line to a spool and waits for no database. Folding takes the spool away under another
name and brings its lines into the database in one transaction; a line that is there already is the same line, so that
a crash between loses none and doubles none.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from nacre.errors import StoreBusy
from nacre.home.home import Home
from nacre.platform import json_text, json_values, private_files
from nacre.platform.days import day_of
from nacre.platform.locks import FileLock
from nacre.values.spending import Call
from nacre.values.trace import Trace

SPOOL = "notes.jsonl"
MOST_TRACES = 2_000
CALLS_KEPT = timedelta(days=400)
_PATIENCE_SECONDS = 0.25
_MOST_BYTES = 20_000_000
"""Of a spool that nobody folds in: beyond it no traces are noted."""


def note_trace(home: Home, trace: Trace) -> None:
    """Note what a run went through; its texts are without secrets already."""
    if home.settings.whole("traces.keep_days"):
        _append(home, b'{"trace":' + _encoded(trace) + b"}", at_most=_MOST_BYTES)


def note_call(home: Home, call: Call) -> None:
    """Note a call of a model that nobody keeps waiting for a database."""
    _append(home, b'{"call":' + _encoded(call) + b"}")


def note_answer(home: Home, key: str, model: str, answer: str) -> None:
    """Note what a model answered, for the next time it is asked the same."""
    kept = {"key": key, "at": home.clock(), "model": model, "answer": answer}
    _append(home, b'{"answer":' + _encoded(kept) + b"}", at_most=_MOST_BYTES)


def noted_calls(home: Home) -> Iterator[Call]:
    """Calls that were noted and are not in the database yet, for who only reads."""
    for spool in (*_left(home), home.folder / SPOOL):
        with contextlib.suppress(OSError):
            for line in _lines(spool):
                with contextlib.suppress(msgspec.ValidationError):
                    if "call" in line:
                        yield json_values.convert(line["call"], Call)


def fold_notes(home: Home) -> None:
    """Bring what was noted into the database, and drop what is too old to be kept. Raises StoreBusy."""
    if home.database.unwritable:
        return
    taken = [*_left(home), *_take(home)]
    if not taken:
        return
    with home.database.transaction():
        for spool in taken:
            with contextlib.suppress(FileNotFoundError):  # whoever folded it meanwhile took it away
                _fold(home, spool)
        _prune(home)
    for spool in taken:
        spool.unlink(missing_ok=True)


def _fold(home: Home, spool: Path) -> None:
    for line in _lines(spool):
        for name, value in line.items():
            if name in _FOLDS:
                _FOLDS[name](home, value)


def _prune(home: Home) -> None:
    now = home.now()
    home.traces.prune(now - timedelta(days=home.settings.whole("traces.keep_days")), MOST_TRACES)
    answers_since = now - timedelta(days=home.settings.whole("models.cache_days"))
    home.spending.prune(day_of(now - CALLS_KEPT), answers_since)


def _encoded(value: object) -> bytes:
    """As JSON; half a character becomes a question mark."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False).encode("utf-8", "replace")


def _append(home: Home, line: bytes, at_most: int | None = None) -> None:
    """Nothing fails for what is only noted: on a full disk, or where another process holds the spool, it is dropped."""
    if home.database.unwritable:
        return
    with contextlib.suppress(StoreBusy, OSError), _lock(home):
        descriptor = private_files.open_file(home.folder / SPOOL, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with os.fdopen(descriptor, "ab") as file:
            if at_most is None or file.tell() < at_most:
                file.write(b"\n" + line)  # the line end comes first: a torn line spoils no other one


def _lines(spool: Path) -> Iterator[dict[str, Any]]:
    for line in spool.read_text(encoding="utf-8", errors="replace").split("\n"):
        with contextlib.suppress(ValueError):
            value = json_text.parse(line)
            if isinstance(value, dict):
                yield value


def _fold_trace(home: Home, value: object) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        home.traces.add(json_values.convert(value, Trace))


def _fold_call(home: Home, value: object) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        call = json_values.convert(value, Call)
        home.spending.add(call)
        if call.outcome == "done":
            home.spending.recover(call.model)


class _Answer(msgspec.Struct):
    key: str
    at: datetime
    model: str
    answer: str


def _fold_answer(home: Home, value: object) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        kept = json_values.convert(value, _Answer)
        home.spending.keep_answer(kept.key, kept.at, kept.model, kept.answer)


_FOLDS: dict[str, Callable[[Home, object], None]] = {
    "trace": _fold_trace, "call": _fold_call, "answer": _fold_answer,
}  # fmt: skip


def _left(home: Home) -> list[Path]:
    """Spools that were taken away and not deleted, the oldest first: what a crash leaves."""
    return sorted(path for path in home.folder.glob("notes.*.taken") if os.access(path, os.R_OK))


def _take(home: Home) -> list[Path]:
    spool = home.folder / SPOOL
    taken = spool.with_name(f"notes.{home.ids()}.taken")
    if not os.access(spool, os.R_OK):
        return []
    try:
        with _lock(home):
            spool.rename(taken)
    except (FileNotFoundError, StoreBusy):
        return []
    return [taken]


def _lock(home: Home) -> FileLock:
    return FileLock(home.folder / "notes.lock", _PATIENCE_SECONDS)
