"""Find a Chromium for the tests of the dashboard, and print where it is; on Debian, as root, install one.

Playwright's own browsers are not used: any Chromium or Chrome of this machine will do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "Chromium is not here: install it or Chrome, or name one, CHROMIUM=/path/to/it"
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def find() -> str | None:
    """The program, if there is one."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    return named or (str(MAC) if MAC.is_file() else None)


def install() -> None:
    """Install Debian's; raises OSError or CalledProcessError where that is impossible."""
    for arguments in (
        ["update", "-q"],
        ["install", "-y", "-q", "--no-install-recommends", "chromium"],
    ):
        subprocess.run(["apt-get", *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    if not find() and shutil.which("apt-get") and os.geteuid() == 0:
        try:
            install()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"Chromium could not be installed: {error}", file=sys.stderr)
    print(find() or MISSING)


if __name__ == "__main__":
    main()
