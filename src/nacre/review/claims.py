"""Extraction of memories' claims by a model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from nacre.errors import EditConflictError, ModelRefusedError, UnavailableError, UnusableAnswerError
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.location import redacted
from nacre.home.spending import model_for
from nacre.llm.failures import ask, schema_of
from nacre.memories.compare import MOST_HINTS, ClaimAnswer, claim_of, claim_prompt
from nacre.memories.edit import catch_up
from nacre.protocols import LanguageModel
from nacre.values.memory import Claim, Memory
from nacre.values.models import Prompt
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Task

CLAIMED = "claim"
"""Operation name of written claims in the ledger."""

BATCH = 10
"""Claims written together (seed facts 1.11)."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """Counts of memories that got a claim, have none, failed, and are left; ``note`` says why it stopped
    early.
    """

    claimed: int = 0
    claimless: int = 0
    failed: int = 0
    left: int = 0
    note: str | None = None


def tell_claim(
    home: Home, model: LanguageModel, memory: Memory, *, also_known: Sequence[str] = ()
) -> Claim | None:
    """Extract a memory's claim with a model; ``None`` if it has none. Raises errors of the call.

    ``also_known`` are entities of unsaved claims.
    """
    answer = ask(model, _prompt(home, memory, also_known), ClaimAnswer)
    claim = claim_of(answer)
    return redacted(home.redactor, replace(memory, claim=claim)).claim if claim else None


def _prompt(home: Home, memory: Memory, also_known: Sequence[str] = ()) -> Prompt:
    entities = dict.fromkeys((*also_known, *home.claims.entities(MOST_HINTS)))
    return claim_prompt(memory, list(entities), schema_of(ClaimAnswer))


def backfill(
    home: Home,
    *,
    limit: int | None = None,
    batch_size: int = BATCH,
    on_progress: OnProgress | None = None,
) -> Backfill:
    """Extract missing claims, of the latest memories first. Raises ModelRefusedError.

    Each batch is saved; if the model stops answering, the rest is left. Existing memories are not judged, but
    later ones are judged against these claims.
    """
    catch_up(home)
    model = _model(home)
    unclaimed = home.claims.unclaimed(limit)
    run = _BackfillRun(home, model)
    with closing(model):
        for start in range(0, len(unclaimed), batch_size):
            if run.note:
                break
            run.batch(unclaimed[start : start + batch_size])
            if on_progress:
                on_progress(Progress("claims", run.asked, len(unclaimed)))
    left = len(unclaimed) - run.asked
    return Backfill(run.claimed, run.claimless, run.failed, left, run.note)


@dataclass
class _BackfillRun:
    """A running backfill with its unsaved claims."""

    home: Home
    model: LanguageModel
    told: list[tuple[Memory, Claim | None]] = field(default_factory=list)
    asked: int = 0
    claimed: int = 0
    claimless: int = 0
    failed: int = 0
    note: str | None = None

    def batch(self, ids: Sequence[str]) -> None:
        """Extract claims of a batch, and save them even if interrupted."""
        try:
            for memory in self.home.memories.in_any_state(ids):
                if self.note is None:
                    self.extract(memory)
        finally:
            self.keep()

    def extract(self, memory: Memory) -> None:
        """Ask the model; count an unusable answer, and stop if it is unavailable."""
        try:
            names = dict.fromkeys(claim.entity for _, claim in self.told if claim)
            self.told.append(
                (memory, tell_claim(self.home, self.model, memory, also_known=tuple(names)))
            )
        except UnusableAnswerError:
            self.failed += 1
        except UnavailableError as error:
            self.note = error.message
            return
        self.asked += 1

    def keep(self) -> None:
        """Save the claims of memories that are unchanged."""
        claims, self.told = self.told, []
        if not claims:
            return
        home = self.home
        with home.change(CLAIMED, why="inferred by a model") as change:
            catch_up(home)
            with change.transaction():
                for memory, claim in claims:
                    self._keep(change, memory, claim)

    def _keep(self, change: Change, memory: Memory, claim: Claim | None) -> None:
        present = self.home.memories.find(memory.id)
        if present is None or present.content != memory.content or present.claim:
            self.failed += 1
        elif claim is None:
            self.home.claims.claimless(memory.id)
            self.claimless += 1
        else:
            try:
                change.set_claim(replace(present, claim=claim))
                self.claimed += 1
            except EditConflictError as error:
                self.home.problems.append(error.message)
                self.failed += 1


def _model(home: Home) -> LanguageModel:
    """Open the model for claims. Raises ModelRefusedError if none is configured."""
    model = model_for(home, Task.CLAIMS, background=False)
    if model is None:
        raise ModelRefusedError("no language model is set", hint="nacre writer setup")
    return model
