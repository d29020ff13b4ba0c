"""Recorded answers can be replayed without the model and contain no secret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nacre.errors import ModelUnavailableError
from nacre.llm.providers import RecordingModel, ReplayingModel
from nacre.redact.redactor import Redactor
from tests.canary import SECRET
from tests.fakes.model import ScriptedModel
from tests.llm.conftest import PROMPT


def test_answer_is_replayed_for_the_same_prompt(tmp_path: Path) -> None:
    recording = RecordingModel(
        ScriptedModel([{"word": "hull"}]), tmp_path / "tapes", Redactor().clean
    )
    first = recording.complete(replace(PROMPT, version="parts/1"))
    replaying = ReplayingModel(tmp_path / "tapes")
    again = replaying.complete(replace(PROMPT, version="parts/1", timeout_seconds=3))
    assert (again.text, again.tokens, again.model) == (first.text, first.tokens, first.model)
    assert again.is_repeated
    [path] = (tmp_path / "tapes").iterdir()
    assert path.name.startswith("parts-1-")


@pytest.mark.parametrize("change", ["system", "shared", "text"])
def test_changed_prompt_has_no_recorded_answer(tmp_path: Path, change: str) -> None:
    RecordingModel(ScriptedModel([{"word": "hull"}]), tmp_path, Redactor().clean).complete(PROMPT)
    with pytest.raises(ModelUnavailableError, match="no cassette"):
        ReplayingModel(tmp_path).complete(replace(PROMPT, **{change: "Something else."}))


def test_cassette_contains_no_secret(tmp_path: Path) -> None:
    model = ScriptedModel([f'{{"word": "{SECRET}"}}'])
    prompt = replace(PROMPT, text=f"export API_TOKEN={SECRET}", shared=f"token: {SECRET}")
    RecordingModel(model, tmp_path, Redactor().clean).complete(prompt)
    [path] = tmp_path.iterdir()
    assert SECRET not in path.read_text()
    assert ReplayingModel(tmp_path).complete(prompt).is_repeated
