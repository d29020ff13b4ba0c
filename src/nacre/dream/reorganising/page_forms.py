"""What a writer fills on pages: sections of a project's page and of the owner's profile, and what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import msgspec

from nacre.dream.reorganising.page import Section
from nacre.home.page_lines import is_current
from nacre.values.memory import Kind, Memory
from nacre.values.session import Speaker


class Line(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A line of a page, and the numbers of what it rests on."""

    text: str
    numbers: list[int]


class ProjectPage(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a writer makes of a project."""

    stage: list[Line]
    next_steps: list[Line]
    blockers: list[Line]
    constraints: list[Line]
    timeline: list[Line]
    notes: list[Line]


class ProfilePage(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a writer makes of the owner's own words."""

    profile: list[Line]
    preferences: list[Line]
    constraints: list[Line]
    relationships: list[Line]


@dataclass(frozen=True, slots=True)
class Form:
    """The sections of a page, in the order in which they stand there: field of the answer, heading, lines at most.

    ``ranks`` are fields: what rests on the same sources stands in the first of them alone. ``summary`` is a section
    that sums up others, and stands beside them; it has ``summary_characters`` at most.
    """

    prompt: str
    answer: type[msgspec.Struct]
    sections: tuple[tuple[str, str, int], ...]
    ranks: tuple[str, ...]
    summary: str
    summary_characters: int
    speakers: tuple[Speaker, ...]
    kinds: tuple[Kind, ...]

    @property
    def titles(self) -> frozenset[str]:
        """The headings of what the writer fills."""
        return frozenset(title for _, title, _ in self.sections)

    def takes(self, memory: Memory, project: str, today: date) -> bool:
        """Whether a line of such a page may rest on a memory: it holds, in its place, and somebody answers for it."""
        is_there = memory.project == (project or None) and is_current(memory, today)
        return is_there and memory.is_vouched and memory.speaker in self.speakers and memory.kind in self.kinds


OF_PROJECT = Form(
    "page-1", ProjectPage,
    (("stage", "Stage", 2), ("next_steps", "Next steps", 8), ("blockers", "Blockers", 6),
     ("constraints", "Constraints", 10), ("timeline", "Timeline", 8), ("notes", "Notes", 8)),
    ("blockers", "next_steps", "constraints", "timeline", "notes"), "stage", 400,
    (Speaker.OWNER, Speaker.AGENT), tuple(Kind),
)  # fmt: skip
OF_OWNER = Form(
    "profile-1", ProfilePage,
    (("profile", "Profile", 4), ("preferences", "Preferences", 20), ("constraints", "Constraints", 20),
     ("relationships", "Relationships", 20)),
    ("relationships", "constraints", "preferences"), "profile", 400,
    (Speaker.OWNER,), (Kind.PREFERENCE, Kind.FACT, Kind.LESSON, Kind.RELATIONSHIP, Kind.DECISION),
)  # fmt: skip
"""Bounds, and which section goes before which: seed facts 3.1. The profile holds nothing but the owner's own words."""


def form_of(project: str) -> Form:
    """The form of a project's page; that of the profile where ``project`` is empty."""
    return OF_PROJECT if project else OF_OWNER


def by_writer(form: Form, sections: Sequence[Section]) -> list[Section]:
    """Those sections of a page that a writer fills."""
    return [one for one in sections if one[0] in form.titles]


def by_rules(form: Form, sections: Sequence[Section]) -> list[Section]:
    """Those sections of a page that rules fill."""
    return [one for one in sections if one[0] not in form.titles]
