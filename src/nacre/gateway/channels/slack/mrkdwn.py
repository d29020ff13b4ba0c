"""Slack's markup of texts, which it calls mrkdwn: read and written."""

from __future__ import annotations

import re

_MARKED = re.compile(r"<([^<>\n]*)>")
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)
_FENCE = re.compile(r"^```[\w+#.-]*\n")
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_LINK = re.compile(r"\[([^\]\n]+)\]\((https?://[^\s()]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.M)


def readable(words: str, bot: str) -> str:
    """A text as people see it; a mention of the bot at its start says nothing and goes."""
    words = re.sub(rf"^\s*<@{re.escape(bot)}(\|[^<>]*)?>\s*", "", words) if bot else words
    words = _MARKED.sub(lambda found: _shown(found[1]), words)
    return words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _shown(marked: str) -> str:
    target, _, label = marked.partition("|")
    if target.startswith(("@", "#")):
        return f"{target[0]}{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:]}"
    address = target.removeprefix("mailto:").removeprefix("tel:")
    return address if not label or label in address else f"{label} ({address})"


def written(words: str) -> str:
    """Markdown as Slack shows it. Nothing in it is a mention or a hidden address: ``&``, ``<`` and ``>`` are escaped,
    and links show where they lead."""
    parts = _CODE.split(words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    return "".join(_FENCE.sub("```\n", part) if number % 2 else _prose(part) for number, part in enumerate(parts))


def _prose(words: str) -> str:
    words = _LINK.sub(lambda found: f"{found[1]} ({found[2]})" if found[1] != found[2] else found[2], words)
    words = _HEADING.sub(lambda found: f"*{found[1].replace('*', '').strip()}*", words)
    return _BOLD.sub(r"*\1*", words)
