"""What a model made of two statements, honestly or not: how much of it is let through."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nacre.memories.judge import Action, Choice, decide
from nacre.values.memory import Kind, Memory
from nacre.values.session import Speaker

DATA = json.loads((Path(__file__).parent / "unions.json").read_text(encoding="utf-8"))
AT = datetime(2026, 5, 1, tzinfo=UTC)


def said(memory_id: str, text: str) -> Memory:
    return Memory(
        id=memory_id,
        kind=Kind.FACT,
        subject=text,
        content=text,
        created=AT,
        updated=AT,
        speaker=Speaker.OWNER,
    )


def is_followed(action: Action, older: str, newer: str, merged: str | None = None) -> bool:
    choice = Choice("so it is", action.value, 1, merged)  # type: ignore[arg-type]
    return decide(choice, said("2", newer), [said("1", older)], "scripted:1").action is action


@pytest.mark.parametrize(
    ("sort", "action", "least", "most"),
    [
        ("honest", Action.UPDATE, 37, 42),
        ("more", Action.UPDATE, 0, 4),
        ("repetitions", Action.SKIP, 20, 26),
        ("resembling", Action.SKIP, 0, 1),
    ],
)
def test_union_keeping_both_texts_without_additions_is_accepted(
    sort: str, action: Action, least: int, most: int
) -> None:
    followed = [texts for texts in DATA[sort] if is_followed(action, *texts)]
    assert least <= len(followed) <= most, followed
