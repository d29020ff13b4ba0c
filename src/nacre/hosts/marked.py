"""What nacre adds to texts of people: a block between two marks, which are comments of the text's own kind."""

from __future__ import annotations

import re

MARKDOWN = ("<!-- nacre:start -->", "<!-- nacre:end -->")
TOML = ("# nacre:start", "# nacre:end")

_HEADER = re.compile(r"[ \t]*\[{1,2}[ \t]*([^\]\r\n]+?)[ \t]*\]")


def put_block(text: str, block: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """A text with one block of nacre's, at the place of the first that is there, else at the end."""
    line = newline(text)
    whole = line.join((marks[0], *block.strip("\n").split("\n"), marks[1]))
    spans = _spans(text, marks)
    if not spans:
        return _appended(text, whole, line)
    first, *others = spans
    for start, end in reversed(others):
        text = _cut(text, start, end)
    return text[: first[0]] + whole + text[first[1] :]


def drop_blocks(text: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """A text without nacre's blocks."""
    for start, end in reversed(_spans(text, marks)):
        text = _cut(text, start, end)
    return text


def blocks_of(text: str, marks: tuple[str, str] = MARKDOWN) -> list[str]:
    """What stands between the marks, each block by itself."""
    return [
        text[start:end].strip().removeprefix(marks[0]).removesuffix(marks[1]).strip()
        for start, end in _spans(text, marks)
    ]


def has_block(text: str, marks: tuple[str, str] = MARKDOWN) -> bool:
    """Whether a block of nacre's is there."""
    return bool(_spans(text, marks))


def drop_tables(text: str, names: tuple[str, ...]) -> str:
    """A TOML text without the marks of nacre, and without the tables of these names and those below them.

    By lines, not by marks: hosts that rewrite their own file put tables of theirs between the marks.
    """
    kept: list[str] = []
    is_own = False
    for line in text.splitlines(keepends=True):
        if line.strip() in TOML:
            is_own = is_own and line.strip() != TOML[1]
            if line.strip() == TOML[0] and kept and not kept[-1].strip():
                kept.pop()  # the empty line that was put before the block
            continue
        if found := _HEADER.match(line):
            is_own = _plain(found[1]).startswith(tuple(f"{name}." for name in names)) or _plain(found[1]) in names
        if not is_own:
            kept.append(line)
    return "".join(kept)


def newline(text: str) -> str:
    """The end of lines that a text has."""
    return "\r\n" if "\r\n" in text else "\n"


def _plain(name: str) -> str:
    return re.sub(r"[ \t\"']", "", name)


def _spans(text: str, marks: tuple[str, str]) -> list[tuple[int, int]]:
    """Where the blocks are. A start without an end is none: nobody knows where it should end.

    Something may stand behind the end, where a line was added to a text whose last one had no end.
    """
    start, end = map(re.escape, marks)
    pattern = rf"^[ \t]*{start}[ \t]*(?=\r?$)(?:(?!{start}).)*?^[ \t]*{end}"
    return [found.span() for found in re.finditer(pattern, text, re.MULTILINE | re.DOTALL)]


def _cut(text: str, start: int, end: int) -> str:
    """The text without a span, its line end, and the empty line that was put before it."""
    after, line = text[end:], newline(text)
    if not after:
        return text[:start].removesuffix(line).removesuffix(line)
    after = after[len(newline(after)) :] if after.startswith(("\r\n", "\n")) else after
    before = text[:start]
    if before.endswith(line * 2):
        before = before[: -len(line)]
    return before + after


def _appended(text: str, whole: str, line: str) -> str:
    """A text with a block at its end, after an empty line. Where its last line has no end, the block's has none."""
    if text and not text.endswith("\n"):
        return text + line * 2 + whole
    return text + (line if text else "") + whole + line
