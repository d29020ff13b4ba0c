"""Fixtures: the command line in this process, and people who write to a gateway."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from gateway.stage import OWNERS, Stage
from tests.cli.conftest import Nacre, Outcome, nacre  # noqa: F401 - fixtures

_groups = count(-401, -1)


@pytest.fixture(scope="module")
def owners() -> Iterator[int]:
    """The owner's identities of a stage, each for one conversation."""
    return iter(OWNERS)


@pytest.fixture
def owner(owners: Iterator[int]) -> int:
    """An identity of the owner's, for one conversation."""
    return next(owners)


@pytest.fixture(scope="session")
def strangers() -> Iterator[int]:
    """Ids of people who are not admitted."""
    return count(7001)


@pytest.fixture
def stranger(strangers: Iterator[int]) -> int:
    """The id of a person who is not admitted."""
    return next(strangers)


@pytest.fixture
def paired(stage: Stage, strangers: Iterator[int]) -> int:
    """The id of a person whom the owner admitted."""
    user = next(strangers)
    stage.nacre("gateway", "pair", f"telegram:{user}")
    return user


@pytest.fixture
def group() -> int:
    return next(_groups)
