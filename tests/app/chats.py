"""Write conversations in the gateway's format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

OWNER = "telegram:5054"


def write_chat(
    home: Path,
    number: int,
    turns: Sequence[tuple[str, str]],
    *,
    key: str = OWNER,
    start: datetime,
    group: bool = False,
) -> str:
    """Write one session of a conversation and return its id.

    ``turns`` are pairs of a speaker (``owner``, ``agent`` or a name) and a text.
    """
    session = f"{number:08x}-0000-4000-8000-000000000000"
    channel = key.split(":")[2 if key.startswith("agent:") else 0]
    lines: list[dict[str, Any]] = [
        {
            "type": "session",
            "version": 1,
            "id": session,
            "timestamp": start.isoformat(),
            "key": key,
            "channel": channel,
            "chatType": "group" if group else "direct",
        }
    ]
    for place, (speaker, text) in enumerate(turns, start=1):
        message: dict[str, Any] = {
            "role": "assistant" if speaker == "agent" else "user",
            "content": text,
        }
        if speaker == "owner":
            message |= {"from": OWNER, "name": "Otto", "owner": True}
        elif speaker != "agent":
            message |= {"from": f"{channel}:{speaker}", "name": speaker}
        time = (start + timedelta(seconds=place)).isoformat(timespec="milliseconds")
        lines.append(
            {"type": "message", "id": f"{number}-{place}", "timestamp": time, "message": message}
        )
    path = home / "gateway" / "sessions" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return session
