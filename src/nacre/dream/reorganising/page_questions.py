"""What a writer is asked about a page, and what is made of its answer: lines that bear code's look and a second one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from nacre.dream.checks import unlike_sources
from nacre.dream.questions import known_pairs, prompt_of
from nacre.dream.reorganising.page import Section, plain_words
from nacre.dream.reorganising.page_forms import Form, Line
from nacre.home.page_lines import as_line
from nacre.llm.answers import ask
from nacre.platform.ids import content_hash
from nacre.platform.json_text import quoted
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.text.passages import normalise, one_line, visible
from nacre.values.model_calls import Prompt
from nacre.values.session import Speaker

BORNE = "borne-1"
_LINE_CHARACTERS = 240
_MOST_SOURCES = 8


class Finding(StrEnum):
    """What a second look makes of a line."""

    BORNE = "borne"
    NOT_BORNE = "not_borne"


class Looked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a second look finds of one line."""

    number: int
    finding: Finding
    what: str


class SecondLook(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a second look finds of each line."""

    cases: list[Looked]


@dataclass(frozen=True, slots=True)
class Source:
    """What a line may rest on, as a writer is shown it: a memory, or what was done in a session."""

    reference: str
    kind: str
    speaker: Speaker
    day: str
    text: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """A line that a writer proposes for a section, with what it rests on."""

    field: str
    words: str
    sources: tuple[Source, ...]

    @property
    def line(self) -> str:
        """As it stands on the page."""
        by_agent = any(one.speaker is not Speaker.OWNER for one in self.sources)
        return as_line(self.words, [one.reference for one in self.sources], by_agent=by_agent)


@dataclass(frozen=True, slots=True)
class Drafted:
    """What came of asking: sections, how many lines were proposed and did not bear a look, and whether the writer was
    misled; then nothing of its answer is used."""

    sections: tuple[Section, ...] = ()
    proposed: int = 0
    refused: int = 0
    is_misled: bool = False


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """One page: its form, what it may tell, and what a writer made of it before, each line with numbers of sources."""

    form: Form
    sources: Sequence[Source]
    before: Sequence[tuple[str, str, tuple[int, ...]]]
    model: LanguageModel
    redactor: Redactor
    seconds: float

    def answer(self) -> Drafted:
        """Ask for the page, and have it looked at again. Raises what a model raises; touches nothing of the home."""
        answered = ask(self.model, self.prompt(), self.form.answer)
        proposed = list(self._proposed(answered))
        good = [one for one in proposed if one.sources and not self._unfit(one)]
        borne = self._borne(good) if good else []
        if borne is None:
            return Drafted(proposed=len(proposed), is_misled=True)
        return Drafted(tuple(self._sections(borne)), len(proposed), len(proposed) - len(borne))

    def prompt(self) -> Prompt:
        """What asks for the page."""
        shown = [
            quoted({"number": number, "kind": one.kind, "said_by": one.speaker.value, "day": one.day, "text": one.text})
            for number, one in enumerate(self.sources, 1)
        ]
        lines = [
            quoted({"section": field, "text": words, "numbers": list(numbers)}) for field, words, numbers in self.before
        ]
        told = [*shown, *(["", "The page has these lines:", *lines] if lines else [])]
        return prompt_of(self.form.prompt, "\n".join(told), self.form.answer, self.seconds)

    def _proposed(self, answered: msgspec.Struct) -> Iterator[Proposed]:
        for field, _, _ in self.form.sections:
            for line in getattr(answered, field):
                words = self.redactor.clean(plain_words(one_line(visible(line.text)), _LINE_CHARACTERS)).strip("- ")
                yield Proposed(field, words, self._named(line))

    def _named(self, line: Line) -> tuple[Source, ...]:
        """What a line rests on; nothing where it names what was not shown, or as good as everything."""
        numbers = sorted(set(line.numbers))
        is_shown = all(1 <= number <= len(self.sources) for number in numbers)
        return (
            tuple(self.sources[number - 1] for number in numbers) if is_shown and len(numbers) <= _MOST_SOURCES else ()
        )

    def _unfit(self, one: Proposed) -> str | None:
        """What code can know against a line."""
        return (
            unlike_sources(one.words, [f"{source.day} {source.text}" for source in one.sources])
            if one.words
            else "it is empty"
        )

    def _borne(self, proposed: Sequence[Proposed]) -> list[Proposed] | None:
        """The lines that bear a second look; ``None`` where it took a line for borne out that surely is not."""
        at, probe = probe_beside([one.line for one in proposed])
        cases = [case_of(one) for one in proposed]
        like = {"said_by": Speaker.OWNER.value, "day": proposed[0].sources[0].day}
        cases[at:at] = [{"line": probe[0], "sources": [{**like, "text": probe[1]}]}]
        text = "\n".join(quoted({"number": number, **case}) for number, case in enumerate(cases, 1))
        answered = ask(self.model, prompt_of(BORNE, text, SecondLook, self.seconds), SecondLook)
        found = {one.number: one.finding for one in answered.cases}
        if found.get(at + 1) is not Finding.NOT_BORNE:
            return None
        numbers = [number for number in range(1, len(cases) + 1) if number != at + 1]
        return [
            one for number, one in zip(numbers, proposed, strict=True) if found.get(number) is Finding.BORNE
        ]  # fmt: skip

    def _sections(self, borne: Sequence[Proposed]) -> Iterator[Section]:
        kept = dict(each_once(self.form, borne))
        for field, title, most in self.form.sections:
            lines = kept.get(field, [])[:most]
            if field == self.form.summary:
                lines = [
                    one for at, one in enumerate(lines)
                    if sum(len(other.words) for other in lines[: at + 1]) <= self.form.summary_characters
                ]  # fmt: skip
            yield title, tuple(one.line for one in lines)


def case_of(one: Proposed) -> dict[str, object]:
    """A line as a second look is shown it."""
    sources = [{"said_by": source.speaker.value, "day": source.day, "text": source.text} for source in one.sources]
    return {"line": one.words, "sources": sources}


def probe_beside(texts: Sequence[str]) -> tuple[int, tuple[str, str]]:
    """Where among some texts a probe stands, and which one: a text, and another that does not bear it out."""
    drawn = int(content_hash("\0".join(texts)).hex()[:12], 16)
    pairs = known_pairs()
    return drawn % (len(texts) + 1), pairs[drawn // 7 % len(pairs)]


def each_once(form: Form, proposed: Sequence[Proposed]) -> Iterator[tuple[str, list[Proposed]]]:
    """The lines of each section, without those whose words, or whose sources, are told in one that goes before."""
    words: set[str] = set()
    told: set[frozenset[str]] = set()
    for field in (form.summary, *form.ranks):
        found = []
        for one in (one for one in proposed if one.field == field):
            named = frozenset(source.reference for source in one.sources)
            if normalise(one.words) not in words and named not in told:
                found.append(one)
                words.add(normalise(one.words))
                told |= set() if field == form.summary else {named}
        yield field, found
