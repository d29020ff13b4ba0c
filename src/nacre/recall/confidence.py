"""Is anything worth showing? Decided on absolute signals, never on ranks.

``cosine`` belongs to the embedding model: the borders are for the bundled MiniLM, where questions about something else
stay under .33 and statements that answer lie above .43 in nineteen of twenty cases (measured on chat facts and on
statements from coding sessions). ``coverage`` is the share of the question's weight found in a hit.
"""

from __future__ import annotations

from dataclasses import dataclass

BORDER = 0.5
SURE_COSINE = 0.36
SURE_COVERAGE = 0.6
SURE_COVERAGE_ALONE = 0.32
LEAST_COSINE = 0.2
_SHARE_OF_BOTH = 0.7


@dataclass(frozen=True, slots=True)
class Signals:
    """The absolute signals of one hit; ``cosine`` is ``None`` when no vector was compared."""

    coverage: float
    cosine: float | None


def confidence(signals: Signals) -> float:
    """0 to 1; BORDER lies between showing a hit and keeping silent.

    Meaning alone suffices when it is strong; words alone when no vector was compared, or when they are nearly all
    there and the meaning does not speak against it; two weaker signals add up.
    """
    if signals.cosine is None:
        return min(1.0, signals.coverage / SURE_COVERAGE_ALONE * BORDER)
    by_meaning = min(1.0, max(0.0, signals.cosine) / SURE_COSINE * BORDER)
    by_words = min(1.0, signals.coverage / SURE_COVERAGE * BORDER)
    both = _SHARE_OF_BOTH * (by_meaning + by_words)
    return max(by_meaning, both, by_words if signals.cosine >= LEAST_COSINE else 0.0)


def is_worth_showing(signals: Signals) -> bool:
    """Whether a hit is likely to answer at all."""
    return confidence(signals) >= BORDER
