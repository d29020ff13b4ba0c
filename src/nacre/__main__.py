"""``nacre`` and ``python -m nacre``."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from nacre import __version__
from nacre.cli import root
from nacre.serve import statusline


def main() -> None:
    """Run the command line; exits with 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 5 unavailable."""
    if sys.argv[1:] in (
        ["--version"],
        ["-V"],
    ):  # asked by scripts and prompts, who should not wait for the rest
        print(f"nacre {__version__}")  # noqa: T201 - the command line is not loaded
        return
    for name in ("SIGTERM", "SIGHUP"):
        if (
            getattr(signal, name, None)
            and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL
        ):
            signal.signal(getattr(signal, name), _end)
    umask = os.umask(0o077)  # what git and SQLite make for nacre is the owner's alone, too
    if sys.argv[1:] == ["statusline"]:
        statusline.main()
    try:
        root.cli.main(sys.argv[1:], umask=umask)
    except KeyboardInterrupt:  # before the command line is loaded
        sys.exit(130)
    except SystemExit as end:
        _leave(end.code if isinstance(end.code, int) else 0)


def _end(number: int, _: object) -> None:
    """What runs is taken apart as after Ctrl-C: an agent's command that was asked does not go on alone."""
    raise SystemExit(128 + number)


def _leave(code: int) -> None:
    """End at once: home and streams are closed, and taking the embedding model apart would cost 70 ms."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
