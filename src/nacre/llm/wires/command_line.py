"""A coding agent's own command as a model: one question on its standard input, one answer on its output."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO, Any, TypeVar

import msgspec

from nacre.llm import failures
from nacre.llm.cancellable import Calls, CutOff
from nacre.llm.failures import CallTarget
from nacre.llm.wires.schemas import told
from nacre.platform.environment import OWN_CALL_VARIABLE, of_the_owner
from nacre.values.model_calls import OWN_CALL, OWN_CONVERSATION, Capabilities, Completion, Prompt

E = TypeVar("E")

INSTRUCTIONS = "You answer the question of a program, with JSON and nothing else."
"""Instead of the words by which a command makes its model a coding agent: those are thousands of tokens a call."""

_LOOK_SECONDS = 0.05
"""The pause between two looks at what a command has written so far."""

_GONE_SECONDS = 5.0
"""So long a process that was killed is waited for."""

_ENTRYPOINT = "CLAUDE_CODE_ENTRYPOINT"


@dataclass(frozen=True, slots=True)
class Output:
    """What a command left: its output, and its last words of errors where it failed."""

    text: str
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a command is called for one question: its arguments, the variables that it is given besides, and the folder
    that it runs in, where that is not an empty one of its own."""

    arguments: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


Invokes = Callable[[Prompt, Path], Invocation]
Reads = Callable[[Output, CallTarget], Completion]


class CommandModel:
    """A model by the agent's command ``program``; implements LanguageModel.

    ``invoke`` makes the command line for a prompt and a folder of its own, beside the empty one that the command runs
    in; ``read`` makes the answer, or raises what went wrong. ``complaint`` finds what the command said went wrong, in
    the output of one that was still trying when its time was over. ``piece`` is what a line of output adds to an answer
    in plain text, for a command that writes as its model does.

    The question begins with a mark and the environment has a variable: nacre reads no session with that mark, and does
    nothing where the variable is set, so that it never learns from its own calls. No variable says that an agent runs
    this: the command would take itself for a part of that session. Raises ModelRefused where there is no such program
    on PATH.
    """

    def __init__(
        self, asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str], *, program: str,
        invoke: Invokes, read: Reads, complaint: Callable[[str], str] = lambda _: "",
        piece: Callable[[str], str] | None = None,
    ) -> None:  # fmt: skip
        self.name = asked.name
        self.capabilities = capabilities
        found = shutil.which(program, path=environ.get("PATH"))
        if found is None:
            raise failures.no_program(asked, program)
        self._asked = asked
        self._program = found
        self._environ = {name: value for name, value in of_the_owner(environ).items() if name != _ENTRYPOINT}
        self._environ[OWN_CALL_VARIABLE] = "1"
        self._invoke = invoke
        self._read = read
        self._complaint = complaint
        self._piece = piece
        self._calls = Calls()
        self._lock = Lock()
        self._running: set[_Asked] = set()

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailable, ModelRefused."""
        form = told(prompt) if self.capabilities.answers == "text" else ""
        head = (OWN_CALL, prompt.system, form) if prompt.answer else (OWN_CONVERSATION,)
        text = "\n\n".join(part for part in (*head, prompt.shared, prompt.text) if part)
        with tempfile.TemporaryDirectory(prefix="nacre-call-", ignore_cleanup_errors=True) as made:
            folder = Path(made)
            (folder / "empty").mkdir()
            call = self._invoke(prompt, folder)
            output = self._run(replace(call, folder=call.folder or folder / "empty"), text, prompt)
        return self._read(output, self._asked)

    def close(self) -> None:
        """Cut off what runs."""
        self._calls.close()
        with self._lock:
            for asked in self._running:
                asked.end()

    def _run(self, call: Invocation, text: str, prompt: Prompt) -> Output:
        seconds = prompt.timeout_seconds
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, self._heard(out, prompt):
            asked = _Asked(
                [self._program, *call.arguments], stdout=out, stderr=err, cwd=call.folder,
                env={**self._environ, **call.environ},
            )  # fmt: skip
            with self._lock:
                self._running.add(asked)
            try:
                status = self._calls.run(lambda: asked.answer(text.encode(errors="replace")), seconds)
            except TimeoutError:
                said = self._complaint(f"{_written(out)}\n{_written(err)}")
                if said:
                    raise failures.program_failed(self._asked, said) from None
                raise failures.late(self._asked, seconds) from None
            except CutOff:
                raise failures.cut_off(self._asked) from None
            except OSError as error:
                raise failures.broken(self._asked) from error
            finally:
                asked.end()  # also what it started, and left
                with self._lock:
                    self._running.discard(asked)
            if status < 0:
                raise failures.ended(self._asked)
            said = _written(out)
            failed = (_written(err).strip() or said.strip())[-2_000:] or "no word"
            return Output(said, failed if status else "")

    @contextmanager
    def _heard(self, out: IO[bytes], prompt: Prompt) -> Iterator[None]:
        """Tell the pieces of an answer while they are written; what is left is told in the end."""
        read, hear = self._piece, prompt.hear
        if read is None or hear is None or os.name != "posix":  # elsewhere a look would move where the command writes
            yield
            return
        over = Event()

        def follow() -> None:
            at, rest, is_last = 0, b"", False
            while not is_last:
                is_last = over.wait(_LOOK_SECONDS)
                while part := os.pread(out.fileno(), 65_536, at):
                    at += len(part)
                    *lines, rest = (rest + part).split(b"\n")
                    for piece in filter(None, (read(line.decode(errors="replace")) for line in lines)):
                        hear(piece)

        following = Thread(target=follow, name="nacre-pieces", daemon=True)
        following.start()
        try:
            yield
        finally:
            over.set()
            following.join()


def instructions(prompt: Prompt) -> str:
    """The system prompt that a command is given: the prompt's own, where it wants plain text."""
    return INSTRUCTIONS if prompt.answer else prompt.system or "You answer in plain text."


def events_in(text: str, decoder: msgspec.json.Decoder[E]) -> Iterator[E]:
    """What a program puts out as JSON, a line each; lines that are none, which it prints in between, are left out."""
    for line in text.splitlines():
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, RecursionError):
            continue


def link(theirs: Path, names: Iterable[str], ours: Path) -> None:
    """Make a folder for one call in which nothing is the owner's but these files, as far as they are there. They are
    links: a sign-in that is renewed meanwhile is renewed where it lies.
    """
    ours.mkdir(parents=True)
    for name in names:
        if (theirs / name).is_file():
            with suppress(OSError):  # Windows may not let us: then nobody is signed in there
                (ours / name).symlink_to(theirs / name)


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


class _Asked:
    """A process that is asked once. It begins in the thread that waits for it: a signal that takes down the asking one
    finds either nothing that runs, or what it has to end.
    """

    def __init__(self, command: Sequence[str], **where: Any) -> None:
        self._command = command
        self._where = where
        self._lock = Lock()
        self._is_over = False
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, question: bytes) -> int:
        """Ask, and wait for its status. Raises OSError, CutOff where it was ended before it began."""
        with self._lock:
            if self._is_over:
                raise CutOff
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, start_new_session=True, **self._where
            )
        self._process.communicate(question)
        return self._process.returncode

    def end(self) -> None:
        """Kill it and what it started, and wait until it is gone."""
        with self._lock:
            self._is_over = True
            process = self._process
        if process is None:
            return
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        with suppress(subprocess.TimeoutExpired):  # the disk may hold even a killed one
            process.wait(_GONE_SECONDS)
