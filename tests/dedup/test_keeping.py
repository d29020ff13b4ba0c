"""What gets lost when one text stands for another: numbers, amounts, names, denials; and what does not."""

from __future__ import annotations

import pytest

from nacre.memories.statements import adds, leaves_out, lost, swaps

KEPT = {
    "the same": ("Buoys are painted in May", "Buoys are painted in May"),
    "another order": (
        "The harbour lists 12 buoys at /srv/buoys",
        "At /srv/buoys, 12 buoys are listed by the harbour",
    ),
    "a long number": ("The lock holds 1,200 boats", "1200 boats fit into the lock"),
    "a weekday at the beginning": ("Mondays are quiet at the lock", "The lock is quiet on mondays"),
    "a denial in other words": (
        "Never paint the buoys at night",
        "Do not paint the buoys at night",
    ),
    "a denial without a verb": ("Nobody paints buoys by night", "Buoys are not painted by night"),
    "a compound in two words": ("Nils is the on-call keeper", "Nils is the keeper who is on call"),
    "a compound in one word": ("The log-book lies in the tower", "The logbook lies in the tower"),
    "a number in letters": ("The lock has 3 keepers", "The lock has three keepers"),
    "a number in digits": ("The lock has three keepers", "The lock has 3 keepers"),
    "a number in letters behind a name": (
        "Two boats fit into the lock",
        "At the lock of ALMEN two boats fit in",
    ),
    "a number at the end": (
        "The lock is open from nine to five",
        "From nine to five and no longer the lock is open",
    ),
    "an hour of the afternoon": ("The lock closes at 5:30 pm", "The lock closes at 17:30"),
    "an hour of the night": ("The lock closes at 2 am", "The lock closes at 02:00"),
    "a verb at the beginning": ("Painting buoys takes a week", "It takes a week to paint buoys"),
}
LOST = {
    "a number": ("The lock holds 12 boats", "The lock holds boats", "12"),
    "another unit": ("The lock opens for 15 minutes", "The lock opens for 15 hours", "15 minutes"),
    "a name": ("The lock is run by Ulla", "The lock is run", "Ulla"),
    "a name at the beginning": ("Ulla runs the lock", "The lock is run by somebody", "Ulla"),
    "a path": ("Tides lie in /srv/tides", "Tides lie on the server", "/srv/tides"),
    "an identifier": ("Call read_tide first", "Call it first", "read_tide"),
    "a version": ("It needs Python 3.12", "It needs Python", "3.12"),
    "a denial": ("The lock is not run by night", "The lock is run by night", "a negation"),
    "a day": ("Locks close on the 2026-03-04", "Locks close", "2026-03-04"),
    "nobody": ("Nobody runs the lock by night", "The lock runs by night", "a negation"),
    "another half of the day": (
        "The lock closes at 5:30 am",
        "The lock closes at 5:30 pm",
        "5:30 am",
    ),
    "another long number": ("It has 1234567 stones", "It has 1234568 stones", "1234567"),
    "another number in letters": (
        "It is open from nine to six",
        "It is open from nine to five",
        "six",
    ),
    "another compound": (
        "The keeper on-site is Nils",
        "The keeper on the bridge is Nils",
        "on-site",
    ),
    "a Chinese denial": ("不要在晚上开闸", "在晚上开闸", "a negation"),
}


@pytest.mark.parametrize("name", KEPT)
def test_reordered_content_is_kept(name: str) -> None:
    text, kept = KEPT[name]
    assert lost(text, [kept]) is None


@pytest.mark.parametrize("name", LOST)
def test_omitted_content_is_named(name: str) -> None:
    text, kept, expected = LOST[name]
    assert lost(text, [kept]) == expected


def test_content_kept_by_any_of_several_texts_is_kept() -> None:
    assert lost("Ulla and Nils run 3 locks", ["Ulla runs a lock", "Nils runs 3 locks"]) is None


def test_text_without_most_words_leaves_most_out() -> None:
    long = "The keeper of the lock counts boats, sluices, ropes and lamps every evening"
    assert leaves_out(long, "The keeper is old") > 0.5
    assert leaves_out(long, long) == 0
    assert leaves_out("it is", "anything") == 0


ONE, OTHER = "The lock of Almen opens at dawn", "Nils will paint the gates of the lock"
ADDED = {
    "a quality": (
        "Nils will safely paint the gates of the lock of Almen, which opens at dawn",
        "safely",
    ),
    "a purpose": (
        "The lock of Almen opens at dawn so that boats pass; Nils will paint its gates",
        "boats",
    ),
    "a reason": (
        "Nils will paint the gates of the lock of Almen, which opens at dawn because of fog",
        "fog",
    ),
    "a doubt": ("The lock of Almen might open at dawn; Nils will paint its gates", "a guess"),
    "the past": (
        "The lock of Almen used to open at dawn, and Nils will paint its gates",
        "a guess",
    ),
    "a change": ("The lock of Almen now opens at dawn, and Nils will paint its gates", "a change"),
    "an end": ("Nils will paint the gates of the lock of Almen, dawn is no more", "a negation"),
    "an only": (
        "The lock of Almen only opens at dawn, and Nils will paint its gates",
        "that nothing else applies",
    ),
    "a denial": (
        "The lock of Almen opens at dawn and not for Nils, who will paint its gates",
        "a negation",
    ),
    "an hour": ("The lock of Almen opens at dawn, at 5:30; Nils will paint its gates", "5:30"),
}
JOINED = (
    "The lock of Almen opens at dawn, and Nils will paint its gates",
    "Nils will paint the gates of the lock of Almen, which opens at dawn",
    "The lock of Almen, whose gates will be painted by Nils, is opened at dawn",
)


@pytest.mark.parametrize("name", ADDED)
def test_added_content_is_named(name: str) -> None:
    text, expected = ADDED[name]
    assert adds(text, [ONE, OTHER]) == expected


@pytest.mark.parametrize("text", JOINED)
def test_combining_two_statements_adds_nothing(text: str) -> None:
    assert adds(text, [ONE, OTHER]) is None


SWAPPED = (
    ("The gate asks the hub", "The hub asks the gate"),
    ("Nils relieves Ulla on Fridays", "On Fridays, Ulla relieves Nils"),
)
UNSWAPPED = (
    ("The gate is asked by the hub", "The hub asks the gate"),
    ("Ships pass the gates of the lock", "The lock has gates, which ships pass"),
    ("Boats of the harbour lists Nils", "Nils lists the boats of the harbour"),
    (
        "The gate asks the hub, and the hub asks the gate",
        "The hub asks the gate, and the gate asks the hub",
    ),
)


@pytest.mark.parametrize(("text", "other"), SWAPPED)
def test_swapped_subject_and_object_are_detected(text: str, other: str) -> None:
    assert swaps(text, [other])
    assert swaps(text, [text]) is None


@pytest.mark.parametrize(("text", "other"), UNSWAPPED)
def test_reordered_equal_content_is_not_a_swap(text: str, other: str) -> None:
    assert swaps(text, [other]) is None
