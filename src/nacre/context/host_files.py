"""What a host tells its agent by itself: files of instructions. What stands there is not told again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nacre.hosts import isolation
from nacre.text.passages import normalise

_CLAUDE = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
_IN_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "claude-code": _CLAUDE, "codex": ("AGENTS.md",), "copilot-cli": ("AGENTS.md", ".github/copilot-instructions.md"),
    "cursor": ("AGENTS.md", ".cursorrules"), "gemini-cli": ("GEMINI.md",),
    "opencode": ("AGENTS.md", *_CLAUDE),
}  # fmt: skip
"""By tool: what it loads from the folder of a session and those above it."""

_OF_USER: Mapping[str, tuple[str, ...]] = {
    "claude-code": (".claude/CLAUDE.md",), "codex": (".codex/AGENTS.md",), "gemini-cli": (".gemini/GEMINI.md",),
    "opencode": (".config/opencode/AGENTS.md", ".claude/CLAUDE.md"),
}  # fmt: skip
_OWN_MEMORY = {"openclaw": ("MEMORY.md", "USER.md")}
"""The same, of a memory of the host's own, which nacre may have turned off."""

_AUTO_MEMORY = ".claude/projects/{slug}/memory/MEMORY.md"
_NOT_IN_SLUGS = re.compile(r"[^A-Za-z0-9]")

_MOST_CHARACTERS = 60_000
_MOST_FOLDERS = 8
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_MARKS = " -*+#>.!?。！？"
_PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?=[-*+]\s|\d+[.)]\s|#)")


@dataclass(frozen=True, slots=True)
class HostFiles:
    """The sentences of what a host loads."""

    sentences: frozenset[str] = frozenset()

    def say(self, content: str) -> bool:
        """Whether all sentences of a memory stand there, word by word: what differs by a word may say the opposite."""
        wanted = _sentences(content)
        return bool(wanted) and wanted <= self.sentences


def read_host_files(tool: str, folder: str | None, user_home: Path, home: Path) -> HostFiles:
    """What a tool loads by itself for a session in a folder. What cannot be read is left out."""
    left = _MOST_CHARACTERS
    sentences: set[str] = set()
    has_own = tool not in isolation.load(home).hosts
    for path in dict.fromkeys(_paths(tool, folder, user_home, has_own=has_own)):
        text = _text(path)[:left]
        left -= len(text)
        sentences |= _sentences(text)
    return HostFiles(frozenset(sentences))


def _paths(tool: str, folder: str | None, user_home: Path, *, has_own: bool) -> Iterator[Path]:
    for name in _OF_USER.get(tool, ()):
        yield user_home / name
    if not folder:
        return
    if tool == "claude-code" and has_own:
        yield user_home / _AUTO_MEMORY.format(slug=_NOT_IN_SLUGS.sub("-", folder))
    for above in [Path(folder), *Path(folder).parents][:_MOST_FOLDERS]:
        if above == user_home:
            return
        for name in (*_IN_FOLDERS.get(tool, ()), *(_OWN_MEMORY.get(tool, ()) if has_own else ())):
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


def _sentences(text: str) -> frozenset[str]:
    """The sentences of a text, and of its lists, in plain words."""
    found = (normalise(one).strip(_MARKS) for paragraph in _PARAGRAPH.split(text) for one in _END.split(paragraph))
    return frozenset(one for one in found if one)
