"""Six short sessions about two invented projects, in the formats of three tools, for a first look at nacre."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

_TOOLS = ("claude-code", "codex", "openclaw")
_ID_CHARACTERS = 36


@dataclass(frozen=True, slots=True)
class ExampleFile:
    """One transcript: ``name`` is ``<tool>/<file name as the tool writes it>``."""

    name: str
    data: bytes

    @property
    def session(self) -> str:
        """The session in it, as ``<tool>:<id>``: all three tools end the file's name with the id."""
        tool, _, file = self.name.partition("/")
        return f"{tool}:{file.removesuffix('.jsonl')[-_ID_CHARACTERS:]}"


def example_files() -> Iterator[ExampleFile]:
    """The example transcripts, read from the package wherever it is installed, a zip file included."""
    root = resources.files(__name__)
    for tool in _TOOLS:
        for entry in sorted(root.joinpath(tool).iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".jsonl"):
                yield ExampleFile(f"{tool}/{entry.name}", entry.read_bytes())
