"""Extraction of claims from memories with a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.home.home import Home
from nacre.home.location import redact
from nacre.llm.failures import ask
from nacre.memories.compare import MOST_HINTS, ClaimAnswer, claim_of, claim_prompt
from nacre.protocols import LanguageModel
from nacre.values.memory import Claim, Memory


def tell_claim(
    home: Home, model: LanguageModel, memory: Memory, *, also_known: Sequence[str] = ()
) -> Claim | None:
    """Extract a memory's claim with a model. Return ``None`` if there is no claim.

    ``also_known`` contains entities of claims that are not saved yet. Raises the model's errors.
    """
    entities = dict.fromkeys((*also_known, *home.claims.entities(MOST_HINTS)))
    claim = claim_of(ask(model, claim_prompt(memory, list(entities)), ClaimAnswer))
    return redact(home.redactor, replace(memory, claim=claim)).claim if claim else None
