"""What models were asked and what that cost, how they fare, and what they answered: state."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from nacre.platform.ids import at_ms, to_ms
from nacre.storage.database import Database, in_transaction
from nacre.values.model_calls import Tokens
from nacre.values.spending import Call, Health, Refusal, Spent

MOST_ANSWERS = 2_000
MOST_CHARACTERS = 20_000_000
"""Of all answers together that are kept."""


class Spending:
    """Reads and writes the ledger of calls."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, call: Call) -> None:
        """Note a call; one that is noted already stays as it is."""
        self._db.run("insert_model_call", **_row(call))

    def finish(self, call: Call) -> None:
        """Note what a call really took."""
        self._db.run(
            "finish_model_call", id=call.id, input=call.tokens.input, output=call.tokens.output,
            cached=call.tokens.cached, written=call.tokens.written, cost=call.cost, seconds=call.seconds,
            outcome=call.outcome,
        )  # fmt: skip

    def in_background(
        self, day: date, task: str, is_priced: Callable[[str], bool] = lambda _: True
    ) -> tuple[int, int]:  # fmt: skip
        """What background calls of a day cost so far, of models that have a price in all, and of any for a task; those
        that run, what they may cost.
        """
        rows = self._db.all("sum_background_cost", day=day.isoformat(), task=task)
        return sum(cost for model, cost, _ in rows if is_priced(model)), sum(of_task for _, _, of_task in rows)

    def tokens_in_background(self, day: date, model: str, *, is_chat: bool = False) -> tuple[int, int]:
        """Tokens that background calls of a day took so far of a model and of others of its provider, and how many
        calls that were: those that answered in conversations, or all others."""
        provider = model.partition(":")[0]
        row = self._db.one("sum_background_tokens", day=day.isoformat(), provider=provider, is_chat=is_chat)
        return (row[0], row[1]) if row else (0, 0)

    def since(self, day: date) -> list[Spent]:
        """Calls since a day, by day, task, model, and whether they were background work."""
        return [
            Spent(
                date.fromisoformat(on), task, model, bool(background), calls, failed,
                Tokens(read, written, from_cache, to_cache), *sums,
            )
            for on, task, model, background, calls, failed, read, written, from_cache, to_cache, *sums
            in self._db.all("sum_model_calls", since=day.isoformat())
        ]  # fmt: skip

    def usual(self, task: str, model: str) -> tuple[int, float, float, float]:
        """Of the last calls of a task: how many, and the mean of tokens read, tokens written and seconds."""
        count, read, written, seconds = self._db.one("mean_model_calls", task=task, model=model) or (0, 0, 0, 0)
        return count, read or 0.0, written or 0.0, seconds or 0.0

    def refuse(self, day: date, task: str, model: str, reason: str) -> None:
        """Count a call that is not made."""
        self._db.run("count_model_refusal", day=day.isoformat(), task=task, model=model, reason=reason)

    def refusals(self, day: date) -> list[Refusal]:
        """Calls that were not made since a day."""
        return [
            Refusal(date.fromisoformat(on), task, model, reason, times)
            for on, task, model, reason, times in self._db.all("list_model_refusals", since=day.isoformat())
        ]

    def health(self, model: str) -> Health | None:
        """How a model that failed last fares."""
        row = self._db.one("get_model_health", model=model)
        return Health(row[0], at_ms(row[1]), row[2]) if row else None

    def fail(self, health: Health) -> None:
        """A model failed."""
        self._db.run("set_model_health", model=health.model, until=to_ms(health.until), told=health.told)

    def recover(self, model: str) -> None:
        """A model answers."""
        self._db.run("clear_model_health", model=model)

    def answer(self, key: str, since: datetime) -> str | None:
        """What was answered to a prompt, if that is not older."""
        row = self._db.one("find_model_answer", key=key, since=to_ms(since))
        return row[0] if row else None

    def keep_answer(self, key: str, at: datetime, model: str, answer: str) -> None:
        """Keep an answer."""
        self._db.run("insert_model_answer", key=key, at=to_ms(at), model=model, answer=answer)

    def drop_answer(self, key: str) -> None:
        """Keep an answer no longer."""
        self._db.run("delete_model_answer", key=key)

    def clear_answers(self) -> int:
        """Keep no answer; returns how many there were."""
        return self._db.run("clear_model_answers")

    @in_transaction
    def prune(self, calls_before: date, answers_since: datetime) -> None:
        """Delete calls of before a day, older answers, and the oldest of too many."""
        self._db.run("prune_model_calls", before=calls_before.isoformat())
        self._db.run("prune_model_refusals", before=calls_before.isoformat())
        self._db.run(
            "prune_model_answers", since=to_ms(answers_since), most=MOST_ANSWERS, most_characters=MOST_CHARACTERS
        )


def _row(call: Call) -> dict[str, Any]:
    return {
        "id": call.id, "at": to_ms(call.at), "day": call.day.isoformat(), "task": call.task, "model": call.model,
        "background": int(call.is_background), "input": call.tokens.input, "output": call.tokens.output,
        "cached": call.tokens.cached, "written": call.tokens.written, "cost": call.cost, "seconds": call.seconds,
        "outcome": call.outcome, "trace": call.trace,
    }  # fmt: skip
