"""The full text of many turns moves out of the database into shards, and follows what is deleted.

A turn is searchable in the transaction that stores it. Once there are some thousand, their full text goes into a shard,
a folder of files beside the database, where a search among a million takes milliseconds. Shards are derived: one that
is lost, damaged or of another format is made anew. The database names them, so that a crash leaves at most a folder
that nobody names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nacre.home.home import Home
from nacre.platform.installed import is_installed
from nacre.platform.locks import FileLock
from nacre.storage.search.shard_build import Sharding
from nacre.storage.search.shard_set import ShardPlace
from nacre.storage.search.shards import IDENTITY, ShardTurn
from nacre.values.reports import OnProgress, Progress

LOCK = "index.lock"
_LARGEST = 250_000
"""Rows in a shard: so many are made anew when one turn of it is forgotten, in about half a minute."""

_SMALL_KEPT = 7
"""Small shards at the end; then they become one."""

_MOST_MOVED = 500
"""Sessions whose project was learned late: beyond, shards are made anew."""

_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class _Range:
    """Turns that become a shard, and the shards whose place it takes."""

    first: int
    last: int
    replaced: tuple[str, ...] = ()


def fill_shards(home: Home, notify: OnProgress = lambda _: None) -> int:
    """Move the full text of turns into shards once there are enough, and mend shards; returns how many were made.

    Without Tantivy the turns of all shards go back into the database. Does nothing while another process does it. An
    interruption loses the shard that is being made.
    """
    if home.database.is_server or not (_is_due(home) if is_possible() else home.shards.places()):
        return 0
    lock = index_lock(home)
    if not lock.acquire():
        return 0
    try:
        return _fill(home, notify) if is_possible() else _take_back(home)
    finally:
        lock.release()


def _take_back(home: Home) -> int:
    work = Sharding(home.database_file)
    for place in home.shards.places():
        work.take_back(place, home.sessions.index_again)
        home.shards.remove([place.name])
    return 0


def purge_shards(home: Home) -> None:
    """Leave no word of a deleted turn in any shard. Raises StoreBusy while another process makes shards."""
    work = Sharding(home.database_file)
    if not home.shards.places():
        home.shards.sweep()
        return
    with index_lock(home):
        for place in home.shards.places():
            if work.present(place) == place.rows:
                continue
            if is_possible():
                _replace(home, _Range(place.first, place.last, (place.name,)))
            else:
                work.take_back(place, home.sessions.index_again)
                home.shards.remove([place.name])
        home.shards.sweep()
        shards, _ = home.shards.open(home.shards.places())
        work.drop_names(lambda name: any(shard.holds_name(name) for shard in shards))


def index_lock(home: Home) -> FileLock:
    """Held by whoever makes or removes shards."""
    return FileLock(home.settings.home / LOCK, _PATIENCE_SECONDS)


def is_possible() -> bool:
    """Whether Tantivy is installed."""
    return is_installed("tantivy")


def _is_due(home: Home) -> bool:
    least = home.settings.whole("index.fresh_turns")
    work = Sharding(home.database_file)
    return work.is_waiting(least) or bool(home.shards.unreadable()) or len(home.shards.moved()) > _MOST_MOVED


def _fill(home: Home, notify: OnProgress) -> int:
    work = Sharding(home.database_file)
    home.shards.sweep()
    wanted = [_Range(place.first, place.last, (place.name,)) for place in _to_mend(home)]
    if work.is_waiting(home.settings.whole("index.fresh_turns")):
        work.forget_text_in_shards()
        wanted += _ranges(home, work)
    total, done = work.count([(one.first, one.last) for one in wanted]), 0

    def told(rows: int) -> None:
        nonlocal done
        done += rows
        notify(Progress("indexing", done, total))

    for one in wanted:
        _replace(home, one, told)
    work.forget_text_in_shards()
    return len(wanted)


def _to_mend(home: Home) -> list[ShardPlace]:
    """Shards that cannot be read; all of them, when too many sessions have other projects than they know."""
    if len(home.shards.moved()) <= _MOST_MOVED:
        return home.shards.unreadable()
    with home.database.transaction():
        home.database.run("clear_sessions_moved")
    return home.shards.places()


def _ranges(home: Home, work: Sharding) -> list[_Range]:
    """What is in no shard yet, in parts that are not too large; before it the small shards, once they are many."""
    places = home.shards.places()
    fresh = [
        _Range(first, last) for first, last in work.ranges(max((place.last for place in places), default=0), _LARGEST)
    ]
    small = [place for place in places if place.rows <= _LARGEST // 2]
    if len(small) < _SMALL_KEPT:
        return fresh
    merged: list[list[ShardPlace]] = [[]]
    for place in small:
        if merged[-1] and place.last - merged[-1][0].first >= _LARGEST:
            merged.append([])
        merged[-1].append(place)
    names = [tuple(place.name for place in group) for group in merged]
    joined = [_Range(group[0].first, group[-1].last, own) for group, own in zip(merged, names, strict=True)]
    return [*(one for one in joined if len(one.replaced) > 1), *fresh]


def _replace(home: Home, wanted: _Range, told: Callable[[int], None] = lambda _: None) -> None:
    """Make a shard and let it take its place."""
    work = Sharding(home.database_file)
    shards = home.shards
    name = shards.new_name()
    counted = _Counted()
    shards.write(name, counted.through(work.turns(wanted.first, wanted.last, told)))
    with home.database.transaction():
        for old in wanted.replaced:
            home.database.run("delete_shard", shard=old)
        if counted.rows:
            home.database.run(
                "insert_shard", shard=name, identity=IDENTITY, first=wanted.first, last=wanted.last,
                rows=counted.rows, words=counted.words,
            )  # fmt: skip
    shards.remove(wanted.replaced if counted.rows else [*wanted.replaced, name])


class _Counted:
    """Counts turns and words on their way."""

    def __init__(self) -> None:
        self.rows = self.words = 0

    def through(self, turns: Iterator[ShardTurn]) -> Iterator[ShardTurn]:
        """The same turns."""
        for turn in turns:
            self.rows += 1
            self.words += len(turn.words)
            yield turn
