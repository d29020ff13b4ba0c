"""Files of instructions that hosts load: ``CLAUDE.md``, ``AGENTS.md``, ``GEMINI.md`` and their kin, as statements.

Who wrote them does not show: in a repository anybody with a checkout may have. So they come in as any other memory
does, untrusted unless the owner says otherwise. What nacre wrote into them stays out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from nacre.hosts import marked
from nacre.portability.sources.notes import kind_of, notes
from nacre.portability.sources.shape import shape, words_hash
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.text.passages import normalise
from nacre.values.memory import Kind

NAME = "instructions"

_NAMES = frozenset(
    {"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".cursorrules", "copilot-instructions.md"}
)
_FOLDERS = frozenset({"", ".claude", ".codex", ".gemini", ".github"})
"""Of a folder that was named, the instructions for the folder itself are read, and none of those further down."""


def _files(tree: Tree) -> list[str]:
    return [name for name in tree.names if _is_read(PurePosixPath(name))]


def _is_read(path: PurePosixPath) -> bool:
    above = "" if str(path.parent) == "." else str(path.parent)
    return path.name in _NAMES and above in _FOLDERS


def _recognise(tree: Tree) -> bool:
    return bool(_files(tree))


def _read(tree: Tree) -> Iterator[Item]:
    for name in tree.names if tree.single else _files(tree):
        text = tree.text(name)
        if text is None:
            yield Skipped(name, "it is too large, or no text")
            continue
        yield from _statements(tree, name, tree.clean(marked.drop_blocks(text)))


def _statements(tree: Tree, name: str, text: str) -> Iterator[Item]:
    file = tree.path_of(name)
    cwd = _project_of(file)
    said = {note.text: note for note in notes(text) if normalise(note.text)}
    if not said:
        yield Skipped(name, "it says nothing")
    for note in said.values():
        memory = shape(
            NAME, f"{file}#{words_hash(note.text)}", note.text, modified=tree.leaves[name].modified,
            subject=note.subject, kind=kind_of(note.headings, Kind.PREFERENCE), file=str(file),
        )  # fmt: skip
        yield Found(memory, cwd=cwd)


def _project_of(file: Path) -> str | None:
    """The repository that instructions are for; none where they lie in no repository, as those of a person do."""
    return next((str(above) for above in file.parents if (above / ".git").exists()), None)


SOURCE = ImportSource(NAME, "Instructions for agents", _recognise, _read)
