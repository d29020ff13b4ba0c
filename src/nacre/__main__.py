"""Entry point of ``nacre`` and ``python -m nacre``."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from nacre import __version__
from nacre.cli import root
from nacre.serve import statusline


def main() -> None:
    """Run the command line.

    Exit codes: 0 success, 1 failure, 2 usage error, 3 not found, 4 conflict, 5 unavailable.
    """
    if sys.argv[1:] in (
        ["--version"],
        ["-V"],
    ):  # scripts and shell prompts should not wait for the imports below
        print(f"nacre {__version__}")  # noqa: T201 - the command line is not loaded
        return
    for name in ("SIGTERM", "SIGHUP"):
        if (
            getattr(signal, name, None)
            and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL
        ):
            signal.signal(getattr(signal, name), _end)
    umask = os.umask(0o077)  # files that git and SQLite create are private too
    if sys.argv[1:] == ["statusline"]:
        statusline.main()
    try:
        root.cli.main(sys.argv[1:], umask=umask)
    except KeyboardInterrupt:  # interrupted before the command line is loaded
        sys.exit(130)
    except SystemExit as end:
        _leave(end.code if isinstance(end.code, int) else 0)


def _end(number: int, _: object) -> None:
    # The cleanup also ends agent commands that nacre has started.
    raise SystemExit(128 + number)


def _leave(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    # Skip the cleanup: freeing the embedding model would take 70 ms.
    os._exit(code)


if __name__ == "__main__":
    main()
