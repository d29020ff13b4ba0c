"""Run what hosts would run, as they would: nacre's own programs alone, and so that nothing stays behind."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from nacre.settings import Settings

SAMPLE = {"session_id": "nacre-doctor", "hook_event_name": "SessionStart", "source": "startup", "prompt": ""}
"""What a hook is given."""

_HOOK_SECONDS = 5.0


def run_hook(
    settings: Settings, line: str, given: Mapping[str, str], project: Path | None, *, says_json: bool = True
) -> str | None:
    """Run a hook as the host does, without a shell: nacre's own lines need none. Returns what is wrong."""
    words = [line] if settings.platform == "win32" else shlex.split(line)
    if settings.platform != "win32" and not is_own(words, project):
        return f"it runs something else: {line}"
    try:
        done = subprocess.run(
            line if settings.platform == "win32" else words, env=quiet(settings), input=json.dumps(given),
            capture_output=True, text=True, errors="replace", timeout=_HOOK_SECONDS, check=False,
            cwd=project or settings.user_home,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer within {_HOOK_SECONDS:.0f} seconds: {line}"
    except OSError as error:
        return f"{error.strerror}: {line}"
    if done.returncode:
        said = " ".join(done.stderr.split())[-200:]
        return f"it ended with {done.returncode}{f' ({said})' if said else ''}: {line}"
    if says_json and done.stdout.strip():
        try:
            json.loads(done.stdout)
        except ValueError:
            return f"its answer is not JSON: {line}"
    return None


def quiet(settings: Settings) -> dict[str, str]:
    """The environment of a dry call: it leaves no daemon behind."""
    return {**settings.environ, "NACRE_DAEMON_ENABLED": "false"}


def is_own(words: Sequence[str], project: Path | None) -> bool:
    """Whether a command is nacre's. What a project brings along is not run: anybody may have put it there."""
    program = Path(next((word for word in words if Path(word).name != "env" and "=" not in word), ""))
    named = program.stem in ("nacre", "nacre-hook") or any(
        (first, second.partition(".")[0]) == ("-m", "nacre") for first, second in pairwise(words)
    )
    return named and not (project and program.resolve().is_relative_to(project) and not _is_interpreter(program))


def _is_interpreter(program: Path) -> bool:
    """Whether it is what runs this nacre, wherever that is installed."""
    return program.parent == Path(sys.executable).parent
