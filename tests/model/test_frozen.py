"""Classes of ``nacre.platform.fast_dataclass`` are what the standard library would have made of them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any

import msgspec
import pytest

from nacre.platform import fast_dataclass


def described(dataclass: Callable[..., Any]) -> Any:
    @dataclass(frozen=True, slots=True)
    class Boat:
        """A boat."""

        name: str
        sails: tuple[str, ...] = ()
        crew: list[str] = field(default_factory=list)
        wet: bool = field(default=False, compare=False)
        secret: str = field(default="", repr=False)

        @property
        def size(self) -> int:
            return len(self.sails)

    return Boat


OURS, THEIRS = described(fast_dataclass.dataclass), described(dataclasses.dataclass)


@fast_dataclass.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@pytest.mark.parametrize("ask", [
    lambda boat: repr(boat("a", crew=["b"], secret="c")),
    lambda boat: boat("a", wet=True) == boat("a"),
    lambda boat: boat("a") == boat("b"),
    lambda boat: boat("a") == "a",
    lambda boat: boat("a").crew is boat("a").crew,
    lambda boat: dataclasses.asdict(boat("a", ("b",))),
    lambda boat: dataclasses.astuple(dataclasses.replace(boat("a"), sails=("b", "c"), wet=True)),
    lambda boat: [(one.name, one.type, one.default, one.compare) for one in dataclasses.fields(boat)],
    lambda boat: boat.__match_args__,
    lambda boat: boat.__slots__,
    lambda boat: (boat.__doc__, boat("a", ("b",)).size, hasattr(boat("a"), "__dict__")),
    lambda boat: msgspec.json.encode(boat("a", crew=["b"])),
    lambda boat: repr(msgspec.convert({"name": "a", "sails": ["b"]}, boat)),
    lambda boat: copy.copy(boat("a", crew=["b"])).crew,
])  # fmt: skip
def test_what_is_made_is_what_the_standard_library_makes(ask: Callable[[Any], Any]) -> None:
    assert ask(OURS) == ask(THEIRS)


def test_equal_ones_have_one_hash_and_a_list_has_none() -> None:
    assert hash(Point(1)) == hash(Point(1, 0))
    assert len({Point(1), Point(1, 0), Point(2)}) == 2
    with pytest.raises(TypeError):
        hash(OURS("a"))


def test_nothing_is_changed_once_it_is_made() -> None:
    point = Point(1)
    for change in (lambda: setattr(point, "x", 2), lambda: delattr(point, "x"), lambda: setattr(point, "z", 2)):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            change()
    assert point == Point(1)


def test_it_goes_through_a_pickle_and_a_deep_copy() -> None:
    assert pickle.loads(pickle.dumps(Point(3, 4))) == Point(3, 4) == copy.deepcopy(Point(3, 4))  # noqa: S301 - our own


@pytest.mark.parametrize("arguments", [{}, {"y": 1}, {"x": 1, "z": 2}])
def test_wrong_arguments_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Point(**arguments)


def test_what_it_cannot_make_it_refuses() -> None:
    with pytest.raises(TypeError):
        fast_dataclass.dataclass(frozen=True, slots=False)
    with pytest.raises(TypeError):

        @fast_dataclass.dataclass(frozen=True, slots=True)
        class Odd:
            x: int

            def __post_init__(self) -> None: ...
