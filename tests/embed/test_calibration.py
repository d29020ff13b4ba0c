"""What the cosines of a model mean is known for the bundled model, and assumed for others."""

from __future__ import annotations

from nacre.embed.calibration import calibration_of
from nacre.embed.minilm import MODEL_NAME


def test_the_bundled_model_has_a_table_of_its_own() -> None:
    assert calibration_of(MODEL_NAME) != calibration_of("nobody-measured-it")


def test_a_model_nobody_measured_counts_like_no_model() -> None:
    assert calibration_of("nobody-measured-it") == calibration_of(None)


def test_thresholds_stand_in_their_order() -> None:
    for known in (calibration_of(MODEL_NAME), calibration_of(None)):
        assert known.unrelated < known.link < known.alike < known.same < 1
        assert known.unrelated < known.used < known.corrected < 1
        assert (known.meaning(known.unrelated), known.meaning(known.related)) == (0, 1)
