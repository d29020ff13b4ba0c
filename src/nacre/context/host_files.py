"""What a host tells its agent by itself: files of instructions. What stands there is not told again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from nacre.platform.fast_dataclass import dataclass
from nacre.text.passages import STOP_WORDS, words
from nacre.text.stems import stem

_CLAUDE = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
_IN_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "claude-code": _CLAUDE, "codex": ("AGENTS.md",), "copilot-cli": ("AGENTS.md", ".github/copilot-instructions.md"),
    "cursor": ("AGENTS.md", ".cursorrules"), "gemini-cli": ("GEMINI.md",), "openclaw": ("MEMORY.md", "USER.md"),
    "opencode": ("AGENTS.md", *_CLAUDE),
}  # fmt: skip
"""By tool: what it loads from the folder of a session and those above it."""

_OF_USER: Mapping[str, tuple[str, ...]] = {
    "claude-code": (".claude/CLAUDE.md",), "codex": (".codex/AGENTS.md",), "gemini-cli": (".gemini/GEMINI.md",),
    "opencode": (".config/opencode/AGENTS.md", ".claude/CLAUDE.md"),
}  # fmt: skip
_AUTO_MEMORY = ".claude/projects/{slug}/memory/MEMORY.md"
_NOT_IN_SLUGS = re.compile(r"[^A-Za-z0-9]")

_MOST_CHARACTERS = 60_000
_MOST_FOLDERS = 8
_PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?=[-*+]\s|\d+[.)]\s|#)")
_SAID_SHARE = 0.8
"""Of a memory's words stand in one paragraph that says it."""

_FEWEST = 3


@dataclass(frozen=True, slots=True)
class HostFiles:
    """The words of what a host loads, paragraph by paragraph, and all of them together."""

    paragraphs: tuple[frozenset[str], ...] = ()
    words: frozenset[str] = frozenset()

    def say(self, content: str) -> bool:
        """Whether one of the paragraphs says what a memory says."""
        wanted = _stems(content)
        least = max(_FEWEST, _SAID_SHARE * len(wanted))
        if len(wanted & self.words) < least:
            return False
        return any(len(wanted & paragraph) >= least for paragraph in self.paragraphs)


def read_host_files(tool: str, folder: str | None, user_home: Path) -> HostFiles:
    """What a tool loads by itself for a session in a folder. What cannot be read is left out."""
    left = _MOST_CHARACTERS
    paragraphs: list[frozenset[str]] = []
    for path in dict.fromkeys(_paths(tool, folder, user_home)):
        text = _text(path)[:left]
        left -= len(text)
        paragraphs += [_stems(one) for one in _PARAGRAPH.split(text)]
    return HostFiles(tuple(paragraphs), frozenset[str]().union(*paragraphs))


def _paths(tool: str, folder: str | None, user_home: Path) -> Iterator[Path]:
    for name in _OF_USER.get(tool, ()):
        yield user_home / name
    if not folder:
        return
    if tool == "claude-code":
        yield user_home / _AUTO_MEMORY.format(slug=_NOT_IN_SLUGS.sub("-", folder))
    for above in [Path(folder), *Path(folder).parents][:_MOST_FOLDERS]:
        if above == user_home:
            return
        for name in _IN_FOLDERS.get(tool, ()):
            yield above / name
        if (above / ".git").exists():
            return


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_CHARACTERS)
    except OSError:
        return ""


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text) if word not in STOP_WORDS)
