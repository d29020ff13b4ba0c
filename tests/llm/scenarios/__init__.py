"""Scenarios for each prompt that nacre sends to a language model, and the results that they must have.

``test_cassettes.py`` plays them with recorded answers and ``test_live.py`` with real models. Their checks must hold
for every sufficiently capable model, so they check nacre's results and not the wording of an answer.
"""

from tests.llm.scenarios import dreaming, extracting, handing, recalling, storing
from tests.llm.stage import SCENARIOS, Scenario

__all__ = [
    "SCENARIOS",
    "Scenario",
    "dreaming",
    "extracting",
    "handing",
    "recalling",
    "storing",
]
