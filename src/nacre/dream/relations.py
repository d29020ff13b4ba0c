"""A writer says how memories stand to each other that nothing connects: the questions of reflection, answered by it.

An answer becomes a link or nothing, never a memory, and no memory ends by it. Each pair is asked about twice, the other
way round the second time, and only what is answered alike counts. Beside the pairs stands one of which code knows that
it has nothing in common: where the writer connects that, nothing of its answer is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from nacre.dream.checks import mark, said
from nacre.dream.questions import as_reason, known_pairs, prompt_of, words_of
from nacre.dream.repetitions import is_owners
from nacre.dream.values import DreamAction, Step
from nacre.dream.writer import answers
from nacre.extraction.coverage import may_be_shown
from nacre.home.home import Home
from nacre.llm.answers import ask
from nacre.platform.days import shown_day
from nacre.platform.ids import content_hash
from nacre.platform.json_text import quoted
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.review.reflection import unconnected
from nacre.text.passages import count_tokens, shorten
from nacre.values.memory import Memory
from nacre.values.model_calls import Prompt, Tokens
from nacre.values.reports import OnProgress
from nacre.values.review import Relates

RELATE = "relate-1"
MOST_PAIRS = 48
"""Most pairs that one dream asks about; the rest waits."""

MOST_OF_ONE = 3
"""Most pairs of one memory in one dream: a memory near to everything would be linked to all of it."""

_TOGETHER = 12
_TEXT_CHARACTERS = 600
_PAIR_TOKENS = 80
_ANSWER_TOKENS = 100
_MISLED = "{} of {} answers of the writer are not used: it connected what has nothing in common"
_MARKED = "link "


class Relation(StrEnum):
    """How one memory stands to another one, or that it does not."""

    RELATED_TO = "related_to"
    DEPENDS_ON = "depends_on"
    SPECIALIZES = "specializes"
    PART_OF = "part_of"
    BUILDS_ON = "builds_on"
    ELABORATES = "elaborates"
    ALTERNATIVE_TO = "alternative_to"
    CONTRADICTS = "contradicts"
    NONE = "none"


_EITHER_WAY = frozenset({Relation.RELATED_TO, Relation.ALTERNATIVE_TO, Relation.CONTRADICTS, Relation.NONE})


class Side(StrEnum):
    """One of the two memories of a case."""

    A = "a"
    B = "b"


class Related(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename={"leads_from": "from"}):
    """How the two of a case stand to each other."""

    number: int
    relation: Relation
    leads_from: Side
    why: str


class Relations(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How the two of each case stand to each other."""

    cases: list[Related]


Pair = tuple[Memory, Memory]
"""Two memories that nothing connects, the one that was said later first."""


@dataclass(frozen=True, slots=True)
class RelationsAsked:
    """Links to draw, marks of pairs about which nothing is left to ask, how many wait, and what went wrong."""

    steps: tuple[Step, ...] = ()
    settled: tuple[str, ...] = ()
    unasked: int = 0
    note: str | None = None


def wanted_pairs(home: Home, memories: Iterable[Memory], asked: Iterable[str], writer: str) -> list[Pair]:
    """The pairs of some memories that are worth asking about, and were not as they are now."""
    present = {one.id for one in memories}
    known = set(asked)
    often: Counter[str] = Counter()
    found = []
    for question in unconnected(home):
        pair = (question.first, question.second)
        if (
            not all(one.id in present and often[one.id] < MOST_OF_ONE for one in pair)
            or settled_mark(mark(pair)) in known
        ):
            continue
        if all(may_be_shown(home, one, writer) for one in pair):
            often.update(one.id for one in pair)
            found.append(pair)
    return found


def settled_mark(pair: str) -> str:
    """The note that a pair was asked about, by its mark."""
    return f"{_MARKED}{pair}"


def asked_for_relations(
    home: Home, model: LanguageModel, wanted: Sequence[Pair], on_progress: OnProgress | None
) -> RelationsAsked:  # fmt: skip
    """What a writer says of some pairs. Nothing is changed."""
    chosen = wanted[:MOST_PAIRS]
    parts = [chosen[start : start + _TOGETHER] for start in range(0, len(chosen), _TOGETHER)]
    seconds = home.settings.number("models.timeout_seconds")
    questions = [PairsQuestion(part, model, home.redactor, seconds).answer for part in parts]
    found, failed = answers(home, questions, on_progress)
    misled = sum(one is not None and one.is_misled for one in found)
    good = [(part, one) for part, one in zip(parts, found, strict=True) if one and not one.is_misled]
    steps = tuple(step for _, one in good for step in one.steps)
    linked = {step.mark for step in steps}
    settled = tuple(settled_mark(mark(pair)) for part, _ in good for pair in part if mark(pair) not in linked)
    note = failed or (_MISLED.format(misled, len(parts)) if misled else None)
    return RelationsAsked(steps, settled, len(wanted) - len(chosen), note)


def tokens_for_relations(wanted: Sequence[Pair]) -> tuple[int, Tokens]:
    """The most calls and tokens that asking about pairs takes."""
    chosen = wanted[:MOST_PAIRS]
    calls = 2 * -(-len(chosen) // _TOGETHER)
    shown = sum(count_tokens(shorten(one.content, _TEXT_CHARACTERS)) for pair in chosen for one in pair)
    asking = calls * count_tokens(words_of(RELATE)) + 2 * (shown + _PAIR_TOKENS * len(chosen))
    return calls, Tokens(asking, _ANSWER_TOKENS * len(chosen))


@dataclass(frozen=True, slots=True)
class PairsAnswered:
    """Of some pairs: links to draw, or that the writer was misled."""

    steps: tuple[Step, ...] = ()
    is_misled: bool = False


@dataclass(frozen=True, slots=True)
class PairsQuestion:
    """Has a writer say of some pairs, twice, how their memories stand to each other."""

    pairs: Sequence[Pair]
    model: LanguageModel
    redactor: Redactor
    seconds: float

    def answer(self) -> PairsAnswered:
        """Ask. Raises what a model raises; touches nothing of the home."""
        first = self._asked(self.pairs)
        if first is None:
            return PairsAnswered(is_misled=True)
        found = [(pair, one) for pair, one in zip(self.pairs, first, strict=True) if one]
        open_ = [(pair, one) for pair, one in found if one.relation is not Relation.NONE]
        if not open_:
            return PairsAnswered()
        second = self._asked([(pair[1], pair[0]) for pair, _ in open_])
        if second is None:
            return PairsAnswered(is_misled=True)
        steps = (self._step(pair, one, again) for (pair, one), again in zip(open_, second, strict=True))
        return PairsAnswered(tuple(step for step in steps if step))

    def _asked(self, pairs: Sequence[Pair]) -> list[Related | None] | None:
        """What is found of each pair; ``None`` where the writer connected the two that have nothing in common."""
        at, _ = probe_beside(pairs)
        answered = ask(self.model, self.prompt(pairs), Relations)
        found: dict[int, Related] = {one.number: one for one in answered.cases}
        tried = found.get(at + 1)
        if tried is None or tried.relation is not Relation.NONE:
            return None
        return [found.get(number) for number in range(1, len(pairs) + 2) if number != at + 1]

    def prompt(self, pairs: Sequence[Pair]) -> Prompt:
        """What asks about some pairs, with one beside them that has nothing in common."""
        at, probe = probe_beside(pairs)
        cases = [{"a": _shown(one), "b": _shown(other)} for one, other in pairs]
        like = _shown(pairs[0][0])
        cases[at:at] = [{side: {**like, "text": text} for side, text in zip("ab", probe, strict=True)}]
        lines = [quoted({"number": number, **case}) for number, case in enumerate(cases, 1)]
        return prompt_of(RELATE, "\n".join(lines), Relations, self.seconds)

    def _step(self, pair: Pair, one: Related, again: Related | None) -> Step | None:
        """The link that both answers ask for; none where they differ, or code knows better."""
        if again is None or again.relation is not one.relation:
            return None
        is_later = one.leads_from is Side.A
        if one.relation in _EITHER_WAY:
            is_later = True
        elif is_later is not (again.leads_from is Side.B):
            return None
        source, target = pair if is_later else (pair[1], pair[0])
        why = as_reason(self.redactor, one.why)
        step = Step(
            DreamAction.LINK, (), source.id, source.subject, why or one.relation.value, (target.id,),
            words=one.relation.value, by=self.model.name, mark=mark(pair),
        )  # fmt: skip
        return None if link_objection(step, {memory.id: memory for memory in pair}) else step


def link_objection(step: Step, present: Mapping[str, Memory]) -> str | None:
    """The objection to a link, by the memories as they are; ``None`` if there is none."""
    pair = [present.get(one) for one in (step.into or "", *step.links)]
    source, target = pair if len(pair) == 2 else (None, None)
    if source is None or target is None or not (source.is_active and target.is_active):
        return "they are not there any more"
    if step.mark not in (mark((source, target)), mark((target, source))):
        return "they have changed since"
    if step.words not in list(Relates) or source.id == target.id or not source.shares_place(target):
        return "it is no link between two memories of one place"
    if not (source.is_vouched and target.is_vouched):
        return "nobody answers for one of them"
    if {source.id, target.id} & {link.to for one in (source, target) for link in one.links}:
        return "they are linked already"
    if step.words == Relates.CONTRADICTS and is_owners(target) and not is_owners(source):
        return "an agent's words would put the owner's in doubt"
    return None


def probe_beside(pairs: Sequence[Pair]) -> tuple[int, tuple[str, str]]:
    """Where among some pairs a probe stands, and which one: texts about two things."""
    drawn = int(content_hash("\0".join(mark(pair) for pair in pairs)).hex()[:12], 16)
    known = known_pairs()
    one = drawn // 7 % len(known)
    return drawn % (len(pairs) + 1), (known[one][0], known[(one + len(known) // 2) % len(known)][0])


def _shown(memory: Memory) -> dict[str, object]:
    return {
        "kind": memory.kind.value, "said_by": memory.speaker.value, "day": shown_day(said(memory)),
        "text": shorten(memory.content, _TEXT_CHARACTERS),
    }  # fmt: skip
