"""What gets lost when one text stands for another: numbers, amounts, names, denials; and what does not."""

from __future__ import annotations

import pytest

from nacre.dedup.keeping import leaves_out, lost

KEPT = {
    "the same": ("Buoys are painted in May", "Buoys are painted in May"),
    "another order": ("The harbour lists 12 buoys at /srv/buoys", "At /srv/buoys, 12 buoys are listed by the harbour"),
    "a long number": ("The lock holds 1,200 boats", "1200 boats fit into the lock"),
    "a weekday at the beginning": ("Mondays are quiet at the lock", "The lock is quiet on mondays"),
    "a denial in other words": ("Never paint the buoys at night", "Do not paint the buoys at night"),
}
LOST = {
    "a number": ("The lock holds 12 boats", "The lock holds boats", "12"),
    "another unit": ("The lock opens for 15 minutes", "The lock opens for 15 hours", "15 minutes"),
    "a name": ("The lock is run by Ulla", "The lock is run", "Ulla"),
    "a name at the beginning": ("Ulla runs the lock", "The lock is run by somebody", "Ulla"),
    "a path": ("Tides lie in /srv/tides", "Tides lie on the server", "/srv/tides"),
    "an identifier": ("Call read_tide first", "Call it first", "read_tide"),
    "a version": ("It needs Python 3.12", "It needs Python", "3.12"),
    "a known thing": ("The tides are kept in postgres", "The tides are kept", "postgres"),
    "a denial": ("The lock is not run by night", "The lock is run by night", "a denial"),
    "a day": ("Locks close on the 2026-03-04", "Locks close", "2026-03-04"),
    "a Chinese denial": ("不要在晚上开闸", "在晚上开闸", "a denial"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_said_in_another_order_is_kept(name: str) -> None:
    text, kept = KEPT[name]
    assert lost(text, [kept]) is None


@pytest.mark.parametrize("name", LOST)
def test_what_is_left_out_is_named(name: str) -> None:
    text, kept, expected = LOST[name]
    assert lost(text, [kept]) == expected


def test_what_one_of_several_keeps_is_kept() -> None:
    assert lost("Ulla and Nils run 3 locks", ["Ulla runs a lock", "Nils runs 3 locks"]) is None


def test_a_text_without_most_of_the_words_leaves_most_out() -> None:
    long = "The keeper of the lock counts boats, sluices, ropes and lamps every evening"
    assert leaves_out(long, "The keeper is old") > 0.5
    assert leaves_out(long, long) == 0
    assert leaves_out("it is", "anything") == 0
