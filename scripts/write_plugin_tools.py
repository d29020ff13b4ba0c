"""Write descriptions of all tools in ``nacre mcp`` for the OpenClaw plugin."""

from __future__ import annotations

import json
from pathlib import Path

from nacre.serve.mcp import describe_tools, offered_tools

PATH = Path(__file__).parents[1] / "src" / "nacre" / "hosts" / "plugins" / "openclaw" / "tools.json"


def main() -> None:
    """Write all tools. The plugin selects some of them."""
    tools = describe_tools(offered_tools(everything=True))
    PATH.write_text(json.dumps(tools, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
