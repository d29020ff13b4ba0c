"""Classes of ``@frozen`` behave as those of ``dataclass(frozen=True, slots=True)``."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

import pytest

from nacre.base.frozen import frozen

T = TypeVar("T")
MAKERS: dict[str, Callable[[type], type]] = {
    "frozen": frozen,
    "dataclass": dataclass(frozen=True, slots=True),
}


@frozen
class Pair(Generic[T]):
    """A class of a module, which can be pickled."""

    left: T
    right: T


@frozen
class Empty:
    """A class without fields."""


@pytest.fixture(params=MAKERS)
def point(request: pytest.FixtureRequest) -> Any:
    make = MAKERS[request.param]

    @make
    class Point:
        """A point with each kind of field."""

        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, hash=False)
        secret: str = field(default="s", repr=False, compare=False)
        total: int = field(init=False, default=0)
        names: tuple[str, ...] = field(init=False, default_factory=tuple)
        set: tuple[int, ...] = ()
        unit: str = field(default="m", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.x + self.y)

        @property
        def double(self) -> int:
            return 2 * self.x

    return Point


def test_frozen_fills_defaults_and_runs_post_init(point: Any) -> None:
    made = point(1, tags=["a"], unit="cm")
    assert (made.x, made.y, made.tags, made.unit, made.total) == (1, 2, ["a"], "cm", 3)
    assert (made.names, made.secret, made.double) == ((), "s", 2)
    assert point(1).tags is not point(1).tags
    assert asdict(point(1))["total"] == 3
    assert [item.name for item in fields(point)][:2] == ["x", "y"]
    assert point.__match_args__[:2] == ("x", "y")
    assert not hasattr(made, "__dict__")


def test_frozen_compares_hashes_and_shows_fields(point: Any) -> None:
    assert point(1) == point(1, secret="other")
    assert point(1) != point(1, tags=["a"])
    assert point(1) != (1, 2)
    assert hash(point(1)) == hash(point(1, tags=["a"]))
    assert len({point(1), point(2)}) == 2
    assert repr(point(1)).endswith("Point(x=1, y=2, tags=[], total=3, names=(), set=(), unit='m')")


def test_frozen_refuses_changes_and_wrong_arguments(point: Any) -> None:
    made = point(1)
    with pytest.raises(FrozenInstanceError):
        made.x = 2
    with pytest.raises(FrozenInstanceError):
        del made.x
    for arguments in ((), (1, 2, [], "s", (), "cm")):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            point(*arguments)
    with pytest.raises(TypeError, match="total"):
        point(1, total=4)
    with pytest.raises((TypeError, ValueError)):
        replace(made, total=4)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_frozen_keeps_own_methods_and_extends_parents(make: Callable[[type], type]) -> None:
    @make
    class Parent:
        x: int

        def __repr__(self) -> str:
            return f"<{self.x}>"

        def __eq__(self, other: object) -> bool:
            return True

    @make
    class Child(Parent):
        y: int = 2

    made: Any = Child(1)  # type: ignore[call-arg]
    assert (made.x, made.y) == (1, 2)
    assert repr(Parent(1)) == "<1>"  # type: ignore[call-arg]
    assert Parent(1) == 3  # type: ignore[call-arg]
    assert hash(Parent(1)) == hash(Parent(1))  # type: ignore[call-arg]
    assert Child(1) != Child(1, 3)  # type: ignore[call-arg]


def test_frozen_can_be_copied_and_pickled() -> None:
    made = Pair([1], [2])
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), copy.copy(made)):  # noqa: S301
        assert copied == made
    assert copy.deepcopy(made).left is not made.left
    assert copy.copy(Empty()) == Empty() == replace(Empty())
    assert hash(Empty()) == hash(Empty())
    with pytest.raises(TypeError):
        hash(made)
