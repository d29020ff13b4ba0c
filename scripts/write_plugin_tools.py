"""Write descriptions of all tools in ``nacre mcp`` for the OpenClaw plugin."""

from __future__ import annotations

import json
from pathlib import Path

from nacre.serve.mcp import described, offered

PATH = Path(__file__).parents[1] / "src" / "nacre" / "hosts" / "plugins" / "openclaw" / "tools.json"


def main() -> None:
    """Write all tools. The plugin selects some of them."""
    core = offered(everything=False)
    rest = [offer for offer in offered(everything=True) if offer not in core]
    tools = [*described(core), *described(rest, everything=True)]
    PATH.write_text(json.dumps(tools, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
