"""``MEMORY.md``: a page for people that lists memories by their kind, with links to their files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from nacre.platform.days import shown_day
from nacre.text.passages import count, harmless, one_line, shorten
from nacre.values.memory import Kind, Memory
from nacre.values.session import Trust

LISTING = "MEMORY.md"
MARKER = "<!-- Derived by nacre from the memories: what you change here is lost. Off: vault.listing = false -->"
"""The first line of every listing. A file without it is a person's own, and is never written to."""

MOST_A_KIND = 100
MOST_PROJECTS = 500

_TITLES = {
    Kind.TODO: "Open todos", Kind.DECISION: "Decisions", Kind.PREFERENCE: "Preferences", Kind.LESSON: "Lessons",
    Kind.FACT: "Facts", Kind.RELATIONSHIP: "People", Kind.EVENT: "Events",
}  # fmt: skip
_SUBJECT_CHARACTERS = 120
_MARKUP = re.compile(r"([\\\[\]`<>*_])")
_LINK = re.compile(r"[^\w./-]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory, and the path of its file from the page that lists it."""

    memory: Memory
    path: str


def is_derived(data: bytes) -> bool:
    """Whether a page is nacre's own."""
    return data.startswith(MARKER.encode())


def global_page(entries: Sequence[Entry], projects: Mapping[str, int]) -> str:
    """What belongs to no project, and the projects with the numbers of their memories."""
    known = sorted(projects.items())
    lines = [f"- [{_plain(name)}](projects/{_link(name)}/{LISTING}): {number:,}" for name, number in known]
    left = len(lines) - MOST_PROJECTS
    more = [f"- and {left:,} more in [projects/](projects/)"] if left > 0 else []
    number = len(entries) + sum(projects.values())
    told = f"{count(number, 'memory', 'memories')}{f'; of no project: {len(entries):,}' if projects else ''}."
    section = "\n".join(["## Projects", "", *lines[:MOST_PROJECTS], *more])
    return _page("What nacre remembers", told, entries, [section] if lines else [])


def project_page(project: str, entries: Sequence[Entry]) -> str:
    """What belongs to one project."""
    told = f"{count(len(entries), 'memory', 'memories')}."
    return _page(f"What nacre remembers of {_plain(project)}", told, entries, [])


def _page(title: str, told: str, entries: Sequence[Entry], more: Sequence[str]) -> str:
    """Sections by kind: open todos first, in each the newest first."""
    sections = [_section(kind, [one for one in entries if one.memory.kind is kind]) for kind in _TITLES]
    return "\n\n".join([MARKER, f"# {title}", told, *filter(None, sections), *more]) + "\n"


def _section(kind: Kind, entries: Sequence[Entry]) -> str:
    if not entries:
        return ""
    ranked = sorted(entries, key=lambda one: (one.memory.updated, one.memory.id), reverse=True)
    lines = [_line(one) for one in ranked[:MOST_A_KIND]]
    left = len(ranked) - len(lines)
    more = [f"- and {left:,} older ones in [{kind.value}/]({_link(_folder(ranked[-1]))})"] if left else []
    return "\n".join([f"## {_TITLES[kind]} ({len(entries):,})", "", *lines, *more])


def _folder(entry: Entry) -> str:
    return entry.path.rpartition("/")[0] + "/"


def _line(entry: Entry) -> str:
    memory = entry.memory
    facts = [f"{shown_day(memory.updated)}", f"importance {memory.importance}"]
    facts += ["from outside"] if memory.trust is Trust.UNTRUSTED else []
    facts += ["an agent's proposal"] if memory.proposed else []
    subject = _plain(shorten(memory.subject, _SUBJECT_CHARACTERS))
    return f"- [{subject}]({_link(entry.path)}) · {' · '.join(facts)}"


def _plain(text: str) -> str:
    """A text that no Markdown program takes for markup."""
    return _MARKUP.sub(r"\\\1", one_line(harmless(text)))


def _link(path: str) -> str:
    return _LINK.sub(lambda found: quote(found[0]), path)
