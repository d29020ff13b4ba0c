"""A slice of the fuzzing, the same in every run; ``make fuzz`` goes on for longer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.inputs import CORPUS, inputs, seeds
from tests.fuzz.targets import DATABASES, STORES, TARGETS

_QUICK = {
    "databases": 50,
    "ledger": 500,
    "names": 500,
    "document": 400,
    "time-words": 400,
    "question": 400,
}
_USUAL, _FOLDERS = 120, 80


def test_every_database_adapter_has_a_sample_database() -> None:
    assert STORES.keys() == DATABASES


def test_every_corpus_belongs_to_a_target() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= TARGETS.keys()


@pytest.mark.parametrize("target", TARGETS)
def test_every_seed_satisfies_its_parser_contract(target: str) -> None:
    assert seeds(target)
    for seed in seeds(target):
        TARGETS[target](seed)


@pytest.mark.parametrize("target", TARGETS)
def test_arbitrary_input_satisfies_the_parser_contract(target: str) -> None:
    @settings(
        max_examples=_QUICK.get(target, _FOLDERS if target.startswith("import-") else _USUAL),
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs(target))
    def holds(data: bytes) -> None:
        TARGETS[target](data)

    holds()
