"""Names that an edit of a file removes or adds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_NAMES = 40
_CODE_NAME = re.compile(r"[A-Za-z_$][\w$]*[_A-Z][\w$]*(?<=[\w$]{5})|[A-Z][A-Z_\d]{4,}")
_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|default|public|private|protected|static|async|pub|abstract)\s+)*"
    r"(?:def|func|function|class|struct|interface|type|enum|trait|fn|module|macro)\s+"
    r"(?:\([^)]*\)\s*)?([A-Za-z_$][\w$]*)"
    r"|^(?:(?:export|const|let|var|val)\s+)*([A-Za-z]\w*[_A-Z]\w*)\s*(?::[^=\n]+)?:?=(?!=)"
    r"|(?:environ(?:\.get)?[(\[]|getenv\(|process\.env[.\[])[\"']?([A-Z][A-Z\d_]{3,})"
    r"|[\"'](--[a-z][\w-]+)[\"']",
    re.MULTILINE,
)
_PROSE = (".md", ".rst", ".txt", ".adoc")
_TASKS = {
    "makefile": ("make", re.compile(r"^([\w.-]+)(?:[ \t]+[\w.-]+)*[ \t]*:(?![=:])", re.MULTILINE)),
    "justfile": ("just", re.compile(r"^@?([\w-]+)[^:=\n]*:(?!=)", re.MULTILINE)),
    "package.json": ("run", re.compile(r'"([\w:.-]+)"\s*:\s*"')),
    "mise.toml": ("run", re.compile(r'^\[tasks\."?([\w:.-]+)"?\]', re.MULTILINE)),
    "taskfile.yml": ("task", re.compile(r"^ {2}([\w:.-]+):", re.MULTILINE)),
}
_OLD, _NEW = (
    ("old_string", "oldString", "old_str", "old"),
    ("new_string", "newString", "new_str", "new"),
)


def changed_names(arguments: Mapping[str, Any], paths: Sequence[str]) -> tuple[str, ...]:
    """Return the names that an edit removes (``-name``) or adds (``+name``), definitions first.

    A definition ends with ``()``. A task of a build file has its runner before the name
    (``-make lint``). A file that is written as a whole only adds names.
    """
    file = paths[0].replace("\\", "/").rpartition("/")[2].lower() if paths else ""
    removed: dict[str, None] = {}
    added: dict[str, None] = {}
    for old, new in _exchanges(arguments):
        is_all = bool(arguments.get("replace_all"))
        old_names, new_names = (_names(text, file, is_all=is_all) for text in (old, new))
        removed |= {name: None for name in old_names if name.removesuffix("()") not in new}
        added |= {name: None for name in new_names if name.removesuffix("()") not in old}
    both = [f"-{name}" for name in removed if name not in added]
    both += [f"+{name}" for name in added if name not in removed]
    return tuple(sorted(both, key=lambda name: not name.endswith("()") and " " not in name))[
        :MAX_NAMES
    ]


def _exchanges(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        values = edit if isinstance(edit, Mapping) else {}
        old, new = (
            next((value for key in keys if isinstance(value := values.get(key), str)), None)
            for keys in (_OLD, _NEW)
        )
        if old is not None and new is not None:
            yield old, new
    if isinstance(written := arguments.get("content"), str):
        yield "", written


def _names(text: str, file: str, *, is_all: bool) -> list[str]:
    """Return the names in a text. If ``is_all`` is True, all names count as definitions."""
    runner, task = _TASKS.get(file, ("", None))
    if task:
        return [f"{runner} {name}" for name in task.findall(text)]
    if file.endswith(_PROSE):
        return []
    defined = [name for names in _DEFINED.findall(text) for name in names if name]
    used = [name for name in _CODE_NAME.findall(text) if name not in defined]
    return [*(f"{name}()" for name in defined), *(f"{name}()" if is_all else name for name in used)]
