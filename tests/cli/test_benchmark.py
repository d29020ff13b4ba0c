"""``nacre admin benchmark``: what is installed runs, what is not says where it is."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import benchmarks
from tests.cli.conftest import Nacre


@pytest.mark.parametrize("name", benchmarks.list_commands(None))
def test_a_benchmark_for_developers_says_where_it_is(nacre: Nacre, name: str) -> None:
    told = nacre("admin", "benchmark", name, "--misses", code=2).err
    assert f"the benchmark '{name}' is for developing nacre, and not installed with it" in told
    assert f"run from a checkout: python -m benchmarks {name}" in told


def test_a_name_that_no_benchmark_has_is_a_plain_error(nacre: Nacre) -> None:
    assert (
        "there is no command 'sped'; did you mean speed?"
        in nacre("admin", "benchmark", "sped", code=2).err
    )
