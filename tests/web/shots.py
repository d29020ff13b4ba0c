"""Screenshots of every page in light, dark and phone layouts, of a home made from the examples.

python -m tests.web.shots FOLDER [PATH…]    # e.g. /tmp/shots / /memories
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.web import story
from tests.web.driving import DESKTOP, PAGES, PHONE, chromium, dashboard, nacre

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": DESKTOP, "color_scheme": "light"},
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone": {
        "viewport": PHONE,
        "color_scheme": "light",
        "device_scale_factor": 2,
        "has_touch": True,
    },
}


def paths(home: Path) -> list[str]:
    """Return the paths of all pages and of one memory, session and project."""
    import nacre as api

    with api.open_memory(home) as memory:
        memory_with_readings = memory.call("list", words="readings").memories[0]
        session = memory.call("sessions", limit=1).lines[0].session
    return [
        *PAGES,
        f"/memories/{memory_with_readings.id}",
        f"/sessions/{session.session.id}",
        f"/projects/{memory_with_readings.project}",
    ]


def shoot(folder: Path, home: Path, paths: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for look, options in LOOKS.items():
            with dashboard(browser, home, **options) as board:
                for path in paths:
                    name = path.strip("/").split("/")[0] or "today"
                    more = "-one" if path.count("/") > 1 else ""
                    board.show(path).screenshot(path=folder / f"{name}{more}-{look}.png")
                for problem in board.problems:
                    print(  # noqa: T201 - a program of its own
                        f"{look}: {problem}"
                    )


def main() -> None:
    folder, *selected = sys.argv[1:]
    os.environ["NACRE_EMBEDDING_MODEL"] = "none"
    os.environ["NACRE_GIT_BACKGROUND"] = "false"
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "home"
        story.make(home)
        try:
            shoot(Path(folder), home, selected or paths(home))
        finally:
            nacre("serve", "stop", home=home)


if __name__ == "__main__":
    main()
