"""The scenarios hold with the recorded answers of a large model, and the prompts match the
recordings."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import nacre
from nacre.errors import ModelUnavailableError
from nacre.llm.providers import ReplayingModel, file_name
from tests.llm.scenarios import SCENARIOS, Scenario

CASSETTES = Path(__file__).parent / "cassettes"
PACKAGE = Path(nacre.__file__).parent
RECORD = "record it: make cassettes MODEL=provider:model"
MOST_BYTES = 350_000


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_recorded_answers_lead_to_the_expected_result(scenario: Scenario, tmp_path: Path) -> None:
    folder = CASSETTES / scenario.name
    prompts, missing = [], ""
    try:
        prompts = scenario.run(ReplayingModel(folder), tmp_path)
    except ModelUnavailableError as error:
        missing = f"{error.message}; {RECORD}"
    if missing:
        pytest.fail(missing, pytrace=False)
    names = {path.name for path in folder.iterdir()}
    assert names == {file_name(prompt) for prompt in prompts}, f"unused cassettes; {RECORD}"


def test_each_prompt_has_a_cassette() -> None:
    latest: dict[str, Path] = {}
    for path in sorted(
        PACKAGE.rglob("prompts/*.md"), key=lambda path: int(path.stem.rpartition("-")[2])
    ):
        latest[str(path.parent / path.stem.rpartition("-")[0])] = path
    recorded = [json.loads(path.read_text("utf-8"))["prompt"] for path in CASSETTES.rglob("*.json")]
    prompts = [f"{prompt['system']}\n{prompt['shared']}" for prompt in recorded]
    missing = [
        path.name
        for path in latest.values()
        if not any(path.read_text("utf-8") in item for item in prompts)
    ]
    assert len(latest) >= 13
    assert not missing, f"no scenario was recorded with {', '.join(missing)}; {RECORD}"


def test_cassettes_name_their_model_and_are_small() -> None:
    folders = [path for path in CASSETTES.iterdir() if path.is_dir()]
    assert {path.name for path in folders} == set(SCENARIOS)
    cassettes = [path for folder in folders for path in folder.iterdir()]
    assert sum(path.stat().st_size for path in cassettes) < MOST_BYTES
    for path in cassettes:
        assert re.fullmatch(r"[^:\s]+:\S+", json.loads(path.read_text("utf-8"))["model"])
