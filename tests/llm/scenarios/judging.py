"""What memories claim, which of them are at odds, and which todos are done, as a model judges."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from nacre.home.home import Home
from nacre.home.spending import model_for
from nacre.llm.failures import REPAIR
from nacre.memories.decision import StoreRequest
from nacre.memories.store import get, store
from nacre.review import contradictions
from nacre.review.claims import tell_claim
from nacre.review.contradictions import judge_waiting
from nacre.setup.models import try_model
from nacre.values.memory import Claim, Kind
from nacre.values.models import Prompt
from nacre.values.session import Task
from tests.llm.stage import Partly, Stage, scenario


@scenario()
def a_model_answers_at_all(stage: Stage) -> None:
    with stage.open(Task.TEST) as context:
        assert try_model(context, "scenario:1").answer.lower() == "mercury"


def put(context: Home, text: str, kind: Kind = Kind.FACT) -> str:
    return store(context, StoreRequest(content=text, kind=kind, project="acme")).memory_id


def claims_of(context: Home, *memories: str) -> dict[str, Claim | None]:
    """The claims of memories, each of which is asked with the entities of those before it."""
    claims: dict[str, Claim | None] = {}
    model = model_for(context, Task.CLAIMS, background=False)
    assert model
    with closing(model):
        for memory in memories:
            known = dict.fromkeys(claim.entity for claim in claims.values() if claim)
            claims[memory] = tell_claim(
                context, model, get(context, memory), also_known=tuple(known)
            )
    return claims


@scenario()
def memories_say_what_they_claim(stage: Stage) -> None:
    with stage.open(Task.CLAIMS) as context:
        told = [
            "Since spring I live in Porto.",
            "The billing service keeps its ledger in PostgreSQL 18.",
            "To start the press: open the left valve, wait until the gauge stands still, close it, pull the lever.",
            "Deployments of the billing service happen on Tuesdays only.",
        ]
        home, ledger, press, day = reversed([put(context, text) for text in reversed(told)])
        claims = claims_of(context, day, press, ledger, home)
    for one, entity, said in (
        (home, "owner", "porto"),
        (ledger, "billing", "postgresql"),
        (day, "billing", "tuesday"),
    ):
        claim = claims[one]
        assert claim
        assert entity in claim.entity
        assert said in claim.object.lower()
    assert claims[press] is None
    assert claims[ledger].entity == claims[day].entity  # type: ignore[union-attr]
    assert claims[ledger].attribute != claims[day].attribute  # type: ignore[union-attr]


@scenario()
def an_answer_of_another_shape_is_mended(stage: Stage) -> None:
    """The first answer is a script's; the model is told what is wrong with it."""

    def at_first(prompt: Prompt) -> Any:
        return None if REPAIR in prompt.text else {"entity": "owner", "claim": "lives in Porto"}

    with stage.open(Task.CLAIMS, model=Partly(stage.model, at_first)) as context:
        home = put(context, "Since spring I live in Porto.")
        claim = claims_of(context, home)[home]
    assert claim
    assert claim.entity == "owner"
    assert "Porto" in claim.object


def put_before(stage: Stage, days: int, *texts: str, kind: Kind = Kind.FACT) -> list[str]:
    """Memories of so many days ago, which no model was asked about."""
    with stage.open() as context:
        ids = [put(context, text, kind) for text in texts]
    stage.world.clock.pass_days(days)
    return ids


@scenario()
def what_has_moved_is_no_longer_where_it_was(stage: Stage) -> None:
    older, other = put_before(
        stage,
        60,
        "The wiki of the choir runs on the small server under the stairs.",
        "The wiki of the choir lists all scores by composer.",
    )
    with stage.open(Task.CLAIMS, Task.CONTRADICTION) as context:
        newer = put(
            context,
            "The choir's wiki is a rented one at a hoster in Turku; the small server went to a school.",
        )
        report = judge_waiting(context)
        assert (report.waiting, report.note) == (0, None)
        assert get(context, older).superseded_by == newer
        assert not get(context, other).superseded_by


@scenario()
def what_cannot_both_hold_waits_for_a_person(stage: Stage) -> None:
    [older] = put_before(
        stage, 0, "Guests of the gallery see pictures without signing in.", kind=Kind.DECISION
    )
    with stage.open(Task.CONTRADICTION) as context:
        newer = put(
            context, "Nobody sees pictures of the gallery without an account.", Kind.DECISION
        )
        judge_waiting(context)
        [pair] = contradictions.list_pending(context)
        assert (pair.older.id, pair.newer.id) == (older, newer)
        assert pair.judged
        assert not get(context, older).superseded_by
        contradictions.resolve(context, pair, contradictions.Choice.KEEP_NEW)
        assert get(context, older).superseded_by == newer
        assert contradictions.list_pending(context) == []


@scenario()
def what_holds_side_by_side_is_no_conflict(stage: Stage) -> None:
    olds = put_before(
        stage,
        3,
        "The staging server of the gallery is rebuilt every Sunday night.",
        "Mira looks after the servers of the gallery during the week.",
    )
    with stage.open(Task.CONTRADICTION) as context:
        put(
            context,
            "The production server of the gallery is never rebuilt, it is patched in place by Mira.",
        )
        report = judge_waiting(context)
        assert (report.waiting, report.superseded, report.conflicts) == (0, 0, 0)
        assert not any(get(context, one).superseded_by for one in olds)


@scenario()
def a_todo_that_is_done_is_closed_and_the_others_stay_open(stage: Stage) -> None:
    with stage.open(Task.TODOS) as context:
        key = put(
            context, "Rotate the upload key of the gallery before the end of November.", Kind.TODO
        )
        driver = put(context, "Update the driver of the label printer.", Kind.TODO)
        backup = put(context, "Try to restore the gallery from a backup.", Kind.TODO)
        stage.world.clock.pass_days(2)
        put(
            context,
            "The upload key of the gallery was rotated on 22 November. The driver of the label printer is downloaded "
            "and not installed yet; the backup of the gallery will be tried next week.",
            Kind.EVENT,
        )
        report = judge_waiting(context)
        assert report.todos == 1
        assert get(context, key).superseded_by
        assert not get(context, driver).superseded_by
        assert not get(context, backup).superseded_by
