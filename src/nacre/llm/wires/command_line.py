"""A coding agent's own command as a model: one question on its standard input, one answer on its output."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from nacre.llm import failures
from nacre.llm.cancellable import Calls, CutOff
from nacre.llm.failures import CallTarget
from nacre.platform.environment import OWN_CALL_VARIABLE
from nacre.values.model_calls import OWN_CALL, Capabilities, Completion, Prompt

_DROPPED = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID")
"""What says that a session is going on: the command would take itself for a part of it."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command left: its output, and its last words of errors where it failed."""

    text: str
    failed: str = ""


Arguments = Callable[[Prompt, Path], Sequence[str]]
Reads = Callable[[Output, CallTarget], Completion]


class CommandModel:
    """A model by the agent's command ``program``; implements LanguageModel.

    ``arguments`` makes the command line for a prompt and the empty folder it runs in, ``read`` the answer. The question
    begins with a mark and the environment has a variable: nacre reads no session with that mark, and does nothing
    where the variable is set, so that it never learns from its own calls. Raises ModelRefused where there is no such
    program on PATH.
    """

    def __init__(
        self, asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str], *, program: str,
        arguments: Arguments, read: Reads,
    ) -> None:  # fmt: skip
        self.name = asked.name
        self.capabilities = capabilities
        found = shutil.which(program, path=environ.get("PATH"))
        if found is None:
            raise failures.no_program(asked, program)
        self._asked = asked
        self._program = found
        self._environ = {name: value for name, value in environ.items() if name not in _DROPPED}
        self._environ[OWN_CALL_VARIABLE] = "1"
        self._arguments = arguments
        self._read = read
        self._calls = Calls()
        self._lock = Lock()
        self._running: set[subprocess.Popen[bytes]] = set()

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailable, ModelRefused."""
        text = "\n\n".join(part for part in (OWN_CALL, prompt.system, prompt.shared, prompt.text) if part)
        with tempfile.TemporaryDirectory(prefix="nacre-call-", ignore_cleanup_errors=True) as folder:
            command = [self._program, *self._arguments(prompt, Path(folder))]
            output = self._run(command, text, folder, prompt.timeout_seconds)
        return self._read(output, self._asked)

    def close(self) -> None:
        """Cut off what runs."""
        self._calls.close()
        with self._lock:
            for process in self._running:
                _kill(process)

    def _run(self, command: Sequence[str], text: str, folder: str, seconds: float) -> Output:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
            env=self._environ, start_new_session=True,
        )  # fmt: skip
        with self._lock:
            self._running.add(process)
        try:
            out, err = self._calls.run(lambda: process.communicate(text.encode(errors="replace")), seconds)
        except TimeoutError:
            raise failures.late(self._asked, seconds) from None
        except CutOff:
            raise failures.cut_off(self._asked) from None
        except OSError as error:
            raise failures.broken(self._asked) from error
        finally:
            _kill(process)  # also what it started, and left
            with self._lock:
                self._running.discard(process)
        said = (err.strip() or out.strip())[-2_000:].decode("utf-8", errors="replace")
        return Output(out.decode("utf-8", errors="replace"), (said or "no word") if process.returncode else "")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
