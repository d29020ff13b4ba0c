"""What memories claim: a model tells it, front matter keeps it, the index finds by it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal

from nacre.errors import AnswerUnusable, EditConflict, ModelRefused, Unavailable
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.location import redacted
from nacre.home.spending import model_for, tracing
from nacre.llm.failures import ask, schema_of
from nacre.memories.compare import MOST_HINTS, ClaimAnswer, claim_of, claim_prompt
from nacre.memories.edit import catch_up
from nacre.protocols import LanguageModel
from nacre.values.memory import Claim, Memory
from nacre.values.models import Prompt, Tokens, TraceKind
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Task

CLAIMED = "claim"
"""What the ledger calls the writing of claims."""

BATCH = 10
"""So many claims are written together (seed facts 1.11)."""

_CHARACTERS_A_TOKEN = 4
_TOKENS_AN_ANSWER = 60


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill did: memories that got a claim, that claim nothing, that changed meanwhile or got no answer of
    use, and that are left; ``note`` is why it stopped early."""

    claimed: int = 0
    claimless: int = 0
    failed: int = 0
    left: int = 0
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a backfill would cost: memories, tokens, US dollars (``None`` where the model's price is not known)."""

    memories: int
    model: str
    tokens: Tokens
    cost: Decimal | None


def tell_claim(
    home: Home, model: LanguageModel, memory: Memory, *, also_known: Sequence[str] = ()
) -> Claim | None:
    """What a memory claims, as a model tells it; ``None`` where that is nothing. Raises what a model's call raises.

    ``also_known`` are entities of claims that are not kept yet.
    """
    answer = ask(model, _prompt(home, memory, also_known), ClaimAnswer)
    claim = claim_of(answer)
    return redacted(home.redactor, replace(memory, claim=claim)).claim if claim else None


def _prompt(home: Home, memory: Memory, also_known: Sequence[str] = ()) -> Prompt:
    known = dict.fromkeys((*also_known, *home.claims.entities(MOST_HINTS)))
    return claim_prompt(memory, list(known), schema_of(ClaimAnswer))


def estimate(home: Home, limit: int | None = None) -> Estimate:
    """What a backfill would cost. Raises ModelRefused."""
    catch_up(home)
    memories = home.memories.in_any_state(home.claims.unclaimed(limit))
    with closing(_model(home)) as model:
        name, price = model.name, model.capabilities.price
    prompts = [_prompt(home, memory) for memory in memories]
    read = sum(len(prompt.system) + len(prompt.shared) + len(prompt.text) for prompt in prompts)
    tokens = Tokens(read // _CHARACTERS_A_TOKEN, _TOKENS_AN_ANSWER * len(prompts))
    return Estimate(len(memories), name, tokens, tokens.cost(price) if price else None)


def backfill(
    home: Home,
    *,
    limit: int | None = None,
    batch_size: int = BATCH,
    on_progress: OnProgress | None = None,
) -> Backfill:
    """Have a model tell the claims of memories that have none, the latest first. Raises ModelRefused.

    What was told is kept after each batch; where the model does not answer any more, the rest is left. Nothing is
    judged: what is stored from then on is judged against these claims.
    """
    catch_up(home)
    model = _model(home)
    wanted = home.claims.unclaimed(limit)
    total = _Telling(home, model)
    with closing(model):
        for start in range(0, len(wanted), batch_size):
            if total.note:
                break
            total.batch(wanted[start : start + batch_size])
            if on_progress:
                on_progress(Progress("claims", total.asked, len(wanted)))
    left = len(wanted) - total.asked
    return Backfill(total.claimed, total.claimless, total.failed, left, total.note)


@dataclass
class _Telling:
    """A backfill that goes on: what was told and is not kept yet, and what became of the rest."""

    home: Home
    model: LanguageModel
    told: list[tuple[Memory, Claim | None]] = field(default_factory=list)
    asked: int = 0
    claimed: int = 0
    claimless: int = 0
    failed: int = 0
    note: str | None = None

    def batch(self, ids: Sequence[str]) -> None:
        """Some memories; what was told is kept, also when it is interrupted."""
        try:
            with tracing(self.home, TraceKind.CLAIMS, f"claims of {len(ids)} memories"):
                for memory in self.home.memories.in_any_state(ids):
                    if self.note is None:
                        self.tell(memory)
        finally:
            self.keep()

    def tell(self, memory: Memory) -> None:
        """Ask the model; an answer that cannot be used is counted, and one that does not come ends it all."""
        try:
            names = dict.fromkeys(claim.entity for _, claim in self.told if claim)
            self.told.append(
                (memory, tell_claim(self.home, self.model, memory, also_known=tuple(names)))
            )
        except AnswerUnusable:
            self.failed += 1
        except Unavailable as error:
            self.note = error.message
            return
        self.asked += 1

    def keep(self) -> None:
        """Write what was told of memories that are still what they were."""
        told, self.told = self.told, []
        if not told:
            return
        home = self.home
        with home.change(CLAIMED, why="told by a model") as change:
            catch_up(home)
            with change.transaction():
                for memory, claim in told:
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
            except EditConflict as error:
                self.home.problems.append(error.message)
                self.failed += 1


def _model(home: Home) -> LanguageModel:
    """The model that is asked for claims. Raises ModelRefused where none is set."""
    model = model_for(home, Task.CLAIMS, background=False)
    if model is None:
        raise ModelRefused("no language model is set", hint="nacre setup")
    return model
