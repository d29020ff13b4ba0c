"""A tiny invented benchmark in the formats of the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def locomo_turn(place: str, speaker: str, text: str, **more: str) -> dict[str, str]:
    return {"dia_id": place, "speaker": speaker, "text": text, **more}


LOCOMO: list[dict[str, Any]] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                locomo_turn("D1:1", "Ada", "Hello Bo, how was your week?"),
                locomo_turn("D1:2", "Bo", "I adopted a tortoise called Pebble."),
                locomo_turn(
                    "D1:3", "Ada", "Lovely! I started pottery lessons.", blip_caption="a green vase"
                ),
                locomo_turn("D1:4", "Bo", "Pottery sounds calm."),
            ],
            "session_2_date_time": "9:00 am on 1 June, 2023",
            "session_2": [
                locomo_turn("D2:1", "Ada", "My kiln broke yesterday."),
                locomo_turn("D2:2", "Bo", "Oh no. I am training for a triathlon in Lisbon."),
                locomo_turn("D2:3", "Ada", "The repair costs ninety euros."),
            ],
            "session_3_date_time": "9:00 am on 1 July, 2023",
            "session_3": [],
        },
        "qa": [
            {"question": "What pet did Bo adopt?", "evidence": ["D1:2"], "category": 4},
            {
                "question": "What does Ada do for fun and what broke?",
                "evidence": ["D1:3; D2:1"],
                "category": 1,
            },
            {
                "question": "What did the repair cost?",
                "evidence": ["D:2:3", "D", "D9:1"],
                "category": 4,
            },
            {"question": "Would Ada like opera?", "evidence": [], "category": 3},
            {
                "question": "Which triathlon does Ada train for?",
                "evidence": ["D2:2"],
                "category": 5,
            },
        ],
    }
]

LONGMEMEVAL: list[dict[str, Any]] = [
    {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "Which bike did I buy?",
        "question_date": "2023/12/18 (Mon) 04:17",
        "answer_session_ids": ["s1"],
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/07/12 (Wed) 10:14", "2023/08/02 (Wed) 05:58"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I bought a folding bike today.", "has_answer": True},
                {"role": "assistant", "content": "Folding bikes are handy on trains."},
            ],
            [
                {"role": "user", "content": "How do I bake rye bread?"},
                {"role": "assistant", "content": "Slowly."},
            ],
        ],
    },
    {
        "question_id": "q2",
        "question_type": "knowledge-update",
        "questions": ["Where do I live now?", "What do I brew?"],
        "question_date": "2023/12/18 (Mon) 04:17",
        "answer_session_ids": [["s3"], ["s4"]],
        "haystack_session_ids": ["s3", "s4"],
        "haystack_dates": ["2023/07/12 (Wed) 10:14", "2023/08/02 (Wed) 05:58"],
        "haystack_sessions": [
            [{"role": "user", "content": "I moved to Trondheim, where do I live cheaply?"}],
            [{"role": "user", "content": "My first stout is fermenting, what do I brew next?"}],
        ],
    },
]

DEV_SESSIONS: list[dict[str, Any]] = [
    {
        "sessionId": "S01",
        "metadata": {"date": "2025-01-15", "project": "shop-api"},
        "messages": [
            {"role": "user", "content": "Let us use FastAPI with Redis for caching."},
            {"role": "assistant", "content": "FastAPI and Redis it is."},
        ],
    },
    {
        "sessionId": "S02",
        "metadata": {"date": "2025-01-16", "project": "dashboard"},
        "messages": [
            {"role": "user", "content": "The charts are drawn with D3, cached in the browser."}
        ],
    },
]

DEV_QUESTIONS: list[dict[str, Any]] = [
    {
        "questionId": "Q1",
        "questionType": "stack",
        "question": "What draws the charts?",
        "haystackSessionIds": ["S02"],
    },
    {
        "questionId": "Q2",
        "questionType": "stack",
        "question": "How is shop-api cached?",
        "haystackSessionIds": ["S01"],
    },
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for name in ("longmemeval", "devmembench"):
        (folder / name).mkdir(parents=True)
    for name, content in (
        ("locomo-tiny.json", LOCOMO),
        ("longmemeval/tiny.json", LONGMEMEVAL),
        ("devmembench/sessions.json", DEV_SESSIONS),
        ("devmembench/questions-tiny.json", DEV_QUESTIONS),
    ):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder
