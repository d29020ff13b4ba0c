"""What the cosines of a model mean is known for the bundled model, and assumed for others."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from nacre.llm.calibration import Calibration, calibration_of, probes, seen_by
from nacre.llm.local_model import load_minilm
from nacre.llm.minilm import MODEL_NAME


def _cosines(calibration: Calibration) -> list[float]:
    return [value for value in astuple(calibration) if not isinstance(value, bool)]


def test_bundled_model_has_its_own_calibration_table() -> None:
    assert calibration_of(MODEL_NAME) != calibration_of("nobody-measured-it")


def test_unmeasured_model_is_calibrated_like_no_model() -> None:
    assert calibration_of("nobody-measured-it") == calibration_of(None)


def test_thresholds_are_ordered() -> None:
    for known in (calibration_of(MODEL_NAME), calibration_of(None)):
        assert known.unrelated < known.link < 1
        assert known.unrelated < known.used < known.corrected < 1
        assert (known.meaning(known.unrelated), known.meaning(known.related)) == (0, 1)


def test_model_equal_to_the_bundled_model_gets_its_calibration() -> None:
    embedder = load_minilm()
    questions, passages = (embedder.embed(texts) for texts in zip(*probes(), strict=True))
    moved = calibration_of("nobody-measured-it", seen_by(questions, passages))
    assert np.allclose(_cosines(moved), _cosines(calibration_of(MODEL_NAME)), atol=0.005)


def test_model_with_uniformly_high_cosines_gets_shifted_thresholds() -> None:
    known = calibration_of(MODEL_NAME)
    moved = calibration_of("nobody-measured-it", (0.7 + 0.3 * 0.0563, 0.7 + 0.3 * 0.7256))
    assert np.allclose(
        _cosines(moved), [0.7 + 0.3 * cosine for cosine in _cosines(known)], atol=0.005
    )


@pytest.mark.parametrize(
    "seen", [(0.5, 0.5), (0.9, 0.2), (-1.0, 0.5), (0.2, 1.0), (float("nan"), 0.5)]
)
def test_model_that_cannot_distinguish_probes_counts_as_unknown(
    seen: tuple[float, float],
) -> None:
    found: Calibration = calibration_of("nobody-measured-it", seen)
    assert found == calibration_of(None)
