"""What is gathered for one context, and what is left of its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nacre.context import host_files
from nacre.context.frame import MOST_CHARACTERS, frame_characters, framed, line_of, says_otherwise, title, title_tokens
from nacre.context.sections import Allowance, fitting
from nacre.context.told import Told, told_before
from nacre.home.home import Home
from nacre.home.location import with_dependencies
from nacre.text.passages import count_tokens
from nacre.values.context import ContextItem, ContextRequest, LeftOut, Moment, Occasion, Part, SessionState
from nacre.values.memory import Memory
from nacre.values.recall import Filter, Lane
from nacre.values.review import LEAST_REVIEWED

OVER_BUDGET = "over the budget"
GIVEN = "given already"
ABOVE = "told above"
SAID = "said already"
SUPPRESSED = "suppressed here"
IN_DOUBT = "it may be out of date"
LOADED = "its host tells it by itself: a file of instructions says the same"
ELSEWHERE = "what belongs to projects: this folder belongs to none that is known, and the prompt names none"

_SUPPRESSED_AT = {Moment.START: "session-start", Moment.PROMPT: "prompt"}


@dataclass
class Draft:
    """A context in the making. ``budget_tokens`` is what items and headings may take together."""

    home: Home
    request: ContextRequest
    state: SessionState
    project: str | None
    budget_tokens: int
    items: list[ContextItem] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    lanes: tuple[Lane, ...] = ()
    gate: str = ""
    named: tuple[str, ...] = ()
    """The projects that a prompt names in a folder of no project: it is about those."""
    spaces: dict[str, str] = field(default_factory=dict)
    """Whose memories are, by their ids, where several spaces were asked."""

    def __post_init__(self) -> None:
        self.left_tokens = self.budget_tokens
        self.left_characters = MOST_CHARACTERS - frame_characters()
        self._allowance = Allowance(self.budget_tokens)

    def wants(self, part: Part) -> bool:
        """Whether a part is wanted at all."""
        return not self.request.parts or part in self.request.parts

    @property
    def has_begun(self) -> bool:
        """Whether it is for a session that is gone on with, and was told what it starts with."""
        return self.request.occasion is Occasion.RESUME and self.state.started > 0

    def room(self, part: Part) -> int:
        """The tokens that a section of its own may still take, without its heading."""
        tokens = self.left_tokens
        if not self.request.parts:
            tokens = min(tokens, self._allowance.of(part, self.budget_tokens - self.left_tokens))
        return tokens - (0 if self._has(part) else title_tokens(part))

    @cached_property
    def told(self) -> Told:
        """What this context tells, and what its session was told before."""
        return told_before(self.home, self.project, self.state)

    def add(self, item: ContextItem, words: str = "", subject: str | None = None) -> bool:
        """Tell something, if it fits; the heading of its part counts once. ``words``: what it says, if not the text;
        ``subject``: that of a memory.
        """
        heading = "" if self._has(item.part) else title(item.part)
        tokens = count_tokens(item.text + "\n") + count_tokens(heading)
        characters = len(item.text) + 1 + len(heading)
        if tokens > self.left_tokens or characters > self.left_characters:
            self.leave(item.part, item.ref, OVER_BUDGET, subject)
            return False
        self.left_tokens -= tokens
        self.left_characters -= characters
        self.items.append(item)
        self.told.add(words or item.text)
        return True

    def add_page(self, part: Part, lines: Sequence[str], why: str) -> None:
        """Tell a page, as far as its section has room."""
        kept = fitting(lines, min(self.room(part), self.left_characters // 4))
        if kept:
            text = "\n".join(kept)
            self.add(ContextItem(part, text, count_tokens(text), why=why))
        if lines and len(kept) < len(lines):
            self.leave(part, None, OVER_BUDGET)

    @cached_property
    def stale(self) -> dict[str, tuple[float, str]]:
        """Memories whose files were changed since, by id: how sure it is that they are out of date, and why."""
        return self.home.memories.stale()

    def _doubt(self, memory: Memory) -> tuple[float, str]:
        return self.stale.get(memory.id, (0.0, ""))

    def line(self, memory: Memory, newer: Sequence[str] = ()) -> str:
        """A memory in one line, with what speaks against it: files that were changed since, or ``newer`` memories."""
        doubt = self._doubt(memory)[1] or says_otherwise(newer)
        return line_of(memory, doubt=doubt, space=self.spaces.get(memory.id))

    def ranked(self, memory: Memory, score: float) -> float:
        """A score, less where a memory may be out of date: half of it where that is sure."""
        return score * (1 - self._doubt(memory)[0] / 2)

    def tell(self, part: Part, memory: Memory, score: float, why: str) -> bool:
        """Tell a memory, unless it is known already or not to be told now."""
        reason = self.reason_against(memory)
        if reason:
            self.leave(part, memory.id, reason, memory.subject)
            return False
        newer = [doubt.newer for doubt in self.home.reviews.doubts([memory.id], both_ways=True)]
        text = self.line(memory, newer)
        item = ContextItem(part, text, count_tokens(text), memory.id, memory.updated, score, why)
        return self.add(item, memory.content, memory.subject)

    def reason_against(self, memory: Memory) -> str:
        """Why a memory is not told, whatever the budget; empty where it may be."""
        if _SUPPRESSED_AT[self.request.moment] in memory.suppressed_contexts:
            return SUPPRESSED
        if self.request.moment is Moment.START and self._doubt(memory)[0] >= LEAST_REVIEWED:
            return IN_DOUBT
        if self.has_told(memory.id):
            return ABOVE
        if memory.id in self.state.given:
            return GIVEN
        if self.knows(memory.content):
            return SAID
        return LOADED if self._host_files.say(memory.content) else ""

    @cached_property
    def _host_files(self) -> host_files.HostFiles:
        tool = (self.request.session or "").partition(":")[0]
        return host_files.read_host_files(
            tool, self.request.folder, self.home.settings.user_home, self.home.settings.home
        )

    def knows(self, text: str) -> bool:
        """Whether a text was told in so many words, here or to this session before."""
        return self.told.says(text)

    def has_told(self, ref: str | None) -> bool:
        """Whether this context tells of a memory or turn already."""
        return ref is not None and any(item.ref == ref for item in self.items)

    def leave(self, part: Part, ref: str | None, why: str, subject: str | None = None) -> None:
        """Note what is not told; the ``subject`` of a memory."""
        self.left_out.append(LeftOut(part, ref, why, subject))

    def filter(self) -> Filter:
        """What is trusted, of this project, of those it depends on, and of what holds everywhere; without a project
        only the latter, and what is of a project that the prompt names. What waits in the inbox holds nowhere.
        """
        if self.project:
            return with_dependencies(self.home, Filter(projects=(self.project,), trusted=True, settled=True))
        others = self.home.memories.projects() - set(self.named)
        return Filter(exclude_projects=tuple(sorted(others)), trusted=True, settled=True)

    def text(self) -> str:
        """The block."""
        order = list(Part)
        self.items.sort(key=lambda item: order.index(item.part))
        return framed([(part, [item.text for item in self.items if item.part is part]) for part in order])

    def _has(self, part: Part) -> bool:
        return any(one.part is part for one in self.items)
