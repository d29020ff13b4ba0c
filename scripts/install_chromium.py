"""Find a Chromium for the dashboard's tests and print its path.

On Debian, as root, install it if necessary.

Any Chromium or Chrome works. Playwright's browsers are not used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "Chromium is not installed: install it or Chrome, or set CHROMIUM=/path/to/it"
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def find() -> str | None:
    """Return the program's path, or ``None``."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    return named or (str(MAC) if MAC.is_file() else None)


def install() -> None:
    """Install Debian's package. Raises OSError, CalledProcessError."""
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
