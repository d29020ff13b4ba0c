"""The model of what a cluster takes, held against what it was not made from."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import benchmarks
from benchmarks.load.sheet import Measured, Prices, Use, needs


@pytest.mark.parametrize(("turns", "measured"), [(30_000, 94.8), (1_000_000, 325.0)])
def test_how_long_a_recall_takes_is_foretold_within_a_tenth(turns: int, measured: float) -> None:
    assert Measured().alone_ms(turns) == pytest.approx(measured, rel=0.1)


def test_what_a_space_takes_on_disk_is_foretold_within_a_tenth() -> None:
    assert Measured().disk(30_000) / 30_000 == pytest.approx(2_200, rel=0.1)


def test_twice_the_people_take_twice_as_much_and_copies_are_counted() -> None:
    one, two = (needs(people, Measured(), Use(), Prices()) for people in (100_000, 200_000))
    assert two.disk_gb == pytest.approx(2 * one.disk_gb)
    assert two.usd == pytest.approx(2 * one.usd)
    assert one.disk_gb == pytest.approx(2 * 100_000 * Measured().disk(300 * 230) / (1 << 30))
    assert one.per_second == pytest.approx(100_000 * 60 * 0.15 / 3600)


def test_the_command_tells_it_for_the_people_that_are_named() -> None:
    asked = ["sheet", "--people", "500", "--turns", "1000", "--json"]
    done = CliRunner().invoke(benchmarks, asked)
    assert done.exit_code == 0, done.output
    assert [one["people"] for one in json.loads(done.stdout)["needs"]] == [500]
