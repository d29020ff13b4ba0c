"""What nacre asks a language model for, one scenario or more for each prompt, and what must come of it.

They are played with the cassettes of a model in ``test_cassettes.py``, and with real models in ``test_live.py``. What
they check has to hold with any model that is good enough: no words of an answer, but what nacre makes of it.
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
