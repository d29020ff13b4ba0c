"""The client of the documentation talks to the webhook."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from pathlib import Path

from gateway.sites import SECRET, run, webhook

PAGE = Path(__file__).parents[5] / "docs" / "gateway-channels.md"


def test_documented_client_receives_answers(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    (tmp_path / "ask.py").write_text(found[1], encoding="utf-8")
    assert sum(bool(line.strip()) for line in found[1].splitlines()) <= 25

    async def work() -> str:
        async with webhook(tmp_path, clock=time.time) as site:
            asking = await asyncio.create_subprocess_exec(
                sys.executable,
                str(tmp_path / "ask.py"),
                "what",
                "now?",
                stdout=asyncio.subprocess.PIPE,
                env={"HOOK_URL": f"{site.address}/hook", "HOOK_SECRET": SECRET, "NO_PROXY": "*"},
            )
            await site.inbox.wait_for(lambda: bool(site.inbox.messages))
            (message,) = site.inbox.messages
            assert (message.text, message.sender.id) == ("what now?", "otto")
            await site.answer("From before", reply_to="older", key="k0")
            await site.answer_until_heard("Tea", reply_to=message.id)
            said, _ = await asking.communicate()
            return said.decode()

    assert run(work()).split("\n") == ["earlier: From before", "Tea", ""]
