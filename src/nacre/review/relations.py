"""What a writer is asked in a dream, and what it may answer: prompts, shapes of answers, probes."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files

import msgspec

from nacre.base.ids import content_hash
from nacre.base.json import quoted
from nacre.base.text import count_tokens, one_line, shorten, title_of, visible
from nacre.base.times import shown_day
from nacre.home.home import Home
from nacre.learn.extract import may_be_shown
from nacre.llm.failures import ask, schema_of
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.review.consolidate import DreamAction, Step, answers
from nacre.review.pages import Cluster, fingerprint, is_owners, mark, said, unfit, weight
from nacre.review.queue import unconnected
from nacre.values.memory import Kind, Memory
from nacre.values.models import Prompt, Tokens
from nacre.values.reports import OnProgress
from nacre.values.review import Relates, Usage
from nacre.values.session import Task

SORT, COMPARE = "sort-1", "compare-1"
TOKENS_TOGETHER = 3_072
"""Of the memories in one call (seed facts 1.4)."""

_PROBES = 3
"""Pairs beside the clusters of a call."""

_ANSWER_TOKENS = 4_096
_MEMORY_FRAME = 40
_REASON_CHARACTERS = 160
_PLAIN = str.maketrans("[]<>", "()()")


class Same(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Memories that say the same: the one whose words hold all of it, or words that do."""

    numbers: list[int]
    keep: int | None
    words: str | None
    why: str


class Over(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory that a later one has ended."""

    number: int
    by: int
    why: str


class Sorted(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a writer answers of some clusters."""

    merges: list[Same]
    over: list[Over]


class Finding(StrEnum):
    """What a second look makes of a statement and those whose place it is to take, or of an earlier and a later one."""

    SAME = "same"
    LOSES = "loses"
    ADDS = "adds"
    DIFFERS = "differs"
    OVER = "over"
    HOLDS = "holds"


class Compared(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is found of one case."""

    number: int
    finding: Finding
    what: str


class Comparisons(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is found of each case."""

    cases: list[Compared]


def sort_prompt(clusters: Sequence[Cluster], seconds: float) -> Prompt:
    """What asks which members of some clusters say the same, and which are over."""
    lines: list[str] = []
    for cluster in clusters:
        start = sum(line.startswith("{") for line in lines) + 1
        lines += [
            "A cluster:",
            *(_as_member(one, number) for number, one in enumerate(cluster, start)),
            "",
        ]
    return prompt_of(SORT, "\n".join(lines).strip(), Sorted, seconds)


def compare_prompt(
    steps: Sequence[Step], memories: Mapping[str, Memory], probe: Cluster, seconds: float
) -> Prompt:
    """What asks whether each step is right, and somewhere among them the same of two that say something else and both
    hold."""
    cases = [_case(step, memories) for step in steps]
    texts = [one.content for one in probe]
    at = probe_at(steps)
    cases[at:at] = [
        {"statement": texts[0], "memories": texts},
        {"earlier": texts[0], "later": texts[1]},
    ]
    lines = [quoted({"number": number, **case}) for number, case in enumerate(cases, 1)]
    return prompt_of(COMPARE, "\n".join(lines), Comparisons, seconds)


def _case(step: Step, memories: Mapping[str, Memory]) -> dict[str, object]:
    into, ends = memories[step.into or ""].content, [memories[end].content for end in step.ends]
    if step.action is DreamAction.MERGE:
        return {"statement": step.words or into, "memories": [into, *ends]}
    return {"earlier": ends[0], "later": into}


def is_right(step: Step, found: Compared | None) -> bool:
    """Whether a second look bears a step out."""
    wanted = Finding.SAME if step.action is DreamAction.MERGE else Finding.OVER
    return found is not None and found.finding is wanted


def probe_at(steps: Sequence[Step]) -> int:
    """Before which of some steps the probe stands when they are looked at again."""
    return int(steps[0].mark, 16) % (len(steps) + 1)


def looked_at(steps: Sequence[Step], answer: Comparisons) -> list[Compared | None] | None:
    """What a second look found of each step; ``None`` where it took the probe for the same, or for over."""
    found = {case.number: case for case in answer.cases}
    cases = [found.get(number) for number in range(1, len(steps) + 3)]
    at = probe_at(steps)
    same, over = cases[at], cases[at + 1]
    if same is None or over is None or same.finding is Finding.SAME or over.finding is Finding.OVER:
        return None
    return cases[:at] + cases[at + 2 :]


def probes_for(clusters: Sequence[Cluster]) -> list[Cluster]:
    """Pairs of which code knows that they say something else and both hold, to stand beside some clusters: always the
    same ones beside the same."""
    at = int(mark(one for cluster in clusters for one in cluster)[:8], 16)
    pairs = known_pairs()
    chosen = [pairs[(at + step * (len(pairs) // _PROBES)) % len(pairs)] for step in range(_PROBES)]
    like = max(
        (one for cluster in clusters for one in cluster), key=lambda one: (said(one), one.id)
    )
    return [
        tuple(_as_probe(number, text, like) for number, text in enumerate(pair)) for pair in chosen
    ]


def _as_probe(number: int, text: str, like: Memory) -> Memory:
    day = said(like)
    return Memory(
        f"probe {number}", Kind.FACT, title_of(text), text, day, day, project=like.project
    )


def among(clusters: Sequence[Cluster], probes: Sequence[Cluster]) -> list[Cluster]:
    """Clusters with probes between them, at places that their contents draw."""
    shown = list(clusters)
    drawn = int(mark(one for cluster in clusters for one in cluster), 16)
    for probe in probes:
        drawn, at = divmod(drawn, len(shown) + 1)
        shown.insert(at, probe)
    return shown


@cache
def known_pairs() -> tuple[tuple[str, str], ...]:
    """Pairs of texts of which code knows that they say something else and both hold."""
    written = tomllib.loads((files(__package__) / "probes.toml").read_text(encoding="utf-8"))
    return tuple((one, other) for one, other in written["pairs"])


def batches(clusters: Sequence[Cluster]) -> list[list[Cluster]]:
    """The clusters, some in each call."""
    found: list[list[Cluster]] = []
    left = 0
    for cluster in clusters:
        size = size_of(cluster)
        if not found or size > left:
            found.append([])
            left = TOKENS_TOGETHER
        found[-1].append(cluster)
        left -= size
    return found


def size_of(cluster: Cluster) -> int:
    """Tokens of a cluster in a prompt."""
    return sum(count_tokens(one.content) + _MEMORY_FRAME for one in cluster)


def prompt_of(name: str, text: str, answer: type[msgspec.Struct], seconds: float) -> Prompt:
    """A prompt of a dream, by the name of its file."""
    return Prompt(
        Task.DREAM,
        words_of(name),
        text,
        schema_of(answer),
        name=name.partition("-")[0],
        version=f"dream/{name}",
        output_tokens=_ANSWER_TOKENS,
        timeout_seconds=seconds,
    )


def _as_member(memory: Memory, number: int) -> str:
    told = {
        "number": number,
        "kind": memory.kind.value,
        "said_by": memory.speaker.value,
        "said": shown_day(said(memory)),
        "project": memory.project,
        "text": memory.content,
    }
    return quoted(told)


@cache
def as_reason(redactor: Redactor, words: str, characters: int = _REASON_CHARACTERS) -> str:
    """What a writer says of a step, as it stands in files that people read as Markdown: it links to nothing."""
    return shorten(redactor.clean(one_line(visible(words))).translate(_PLAIN), characters)


def words_of(name: str) -> str:
    """The prompt in a file of ``prompts/``."""
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------
# A writer says which memories say the same, and which are over; code and a second look say whether
# that is so.
#
# What fails changes nothing, and waits for a person. Among what a writer is asked stand pairs of
# which code knows that
# they say something else and both hold: where it takes one for the same, or for over, nothing of that
# answer is used.


_WHAT_CHARACTERS = 120
Failed = tuple[Step, str]
"""A step that is not taken, and why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of some clusters: steps to take, those that failed with the reason, and fingerprints of what is answered.

    ``misled`` counts answers that were not used, since the writer took a probe for what it is not.
    """

    steps: tuple[Step, ...] = ()
    refused: tuple[Failed, ...] = ()
    settled: tuple[str, ...] = ()
    misled: int = 0


@dataclass(frozen=True, slots=True)
class Consultation:
    """Has a writer look at clusters, a few in each call. ``usage`` tells who stays where the writer does not."""

    model: LanguageModel
    redactor: Redactor
    usage: Mapping[str, Usage]
    seconds: float

    def about(self, clusters: Sequence[Cluster]) -> Outcome:
        """Ask about some clusters. Raises what a model raises; touches nothing of the home."""
        probes = probes_for(clusters)
        order = among(clusters, probes)
        shown = [one for cluster in order for one in cluster]
        answer = ask(self.model, sort_prompt(order, self.seconds), Sorted)
        tried = {one.id for probe in probes for one in probe}
        if any(one.id in tried for one in _members(_named(answer), shown)):
            return Outcome(misled=1)
        steps, refused = self._sifted(answer, shown, clusters)
        memories = {one.id: one for one in shown}
        if not steps:
            return Outcome(refused=tuple(refused), settled=tuple(map(fingerprint, clusters)))
        looked = looked_at(
            steps,
            ask(self.model, compare_prompt(steps, memories, probes[0], self.seconds), Comparisons),
        )
        if looked is None:
            return Outcome(misled=1)
        good = [step for step, one in zip(steps, looked, strict=True) if is_right(step, one)]
        failed = [
            (step, self._told(one))
            for step, one in zip(steps, looked, strict=True)
            if not is_right(step, one)
        ]
        open_ = {one for step in good for one in (*step.ends, step.into)}
        settled = [
            fingerprint(cluster)
            for cluster in clusters
            if not open_.intersection(memory.id for memory in cluster)
        ]
        return Outcome(tuple(good), (*refused, *failed), tuple(settled))

    def _sifted(
        self, answer: Sorted, shown: Sequence[Memory], clusters: Sequence[Cluster]
    ) -> tuple[list[Step], list[Failed]]:
        """What a writer proposes, as far as code knows nothing against it, and the rest: first what is over, then what
        says the same. No memory is in two steps that change it."""
        good: list[Step] = []
        refused: list[Failed] = []
        memories = {one.id: one for one in shown}
        together = [{one.id for one in cluster} for cluster in clusters]
        for step in (*self._endings(answer, shown), *self._mergings(answer, shown)):
            named = {*step.ends, step.into or ""}
            ended = {end for other in good for end in other.ends}
            staying = {other.into for other in good}
            if (
                ended & named
                or staying.intersection(step.ends)
                or (step.words and step.into in staying)
            ):
                continue
            why = (
                unfit(step, memories)
                if any(named <= one for one in together)
                else "they were not shown together"
            )
            refused += [(step, why)] if why else []
            good += [] if why else [step]
        return good, refused

    def _endings(self, answer: Sorted, shown: Sequence[Memory]) -> Iterator[Step]:
        for over in answer.over:
            if step := self._ending(over, shown):
                yield step

    def _mergings(self, answer: Sorted, shown: Sequence[Memory]) -> Iterator[Step]:
        over = {one.id for one in _members([over.number for over in answer.over], shown)}
        for same in answer.merges:
            members = [one for one in _members(same.numbers, shown) if one.id not in over]
            if step := self._merging(same, members, shown):
                yield step

    def _ending(self, over: Over, shown: Sequence[Memory]) -> Step | None:
        members = _members((over.number, over.by), shown)
        if len(members) != 2:
            return None
        earlier, later = members
        return Step(
            DreamAction.SUPERSEDE,
            (earlier.id,),
            later.id,
            later.subject,
            as_reason(self.redactor, over.why),
            by=self.model.name,
            mark=mark((later, earlier)),
        )

    def _merging(
        self, same: Same, members: Sequence[Memory], shown: Sequence[Memory]
    ) -> Step | None:
        if len(members) < 2:
            return None
        words = self.redactor.clean(visible(same.words or "").strip())
        kept = _members((same.keep,), shown) if same.keep is not None else []
        if kept and kept[0] in members:
            keeper, words = kept[0], ""
        elif words:
            keeper = max(members, key=lambda member: weight(member, self.usage))
        else:
            return None
        if not any("\n" in member.content for member in members):
            words = one_line(words)
        others = [member for member in members if member.id != keeper.id]
        return Step(
            DreamAction.MERGE,
            tuple(one.id for one in others),
            keeper.id,
            title_of(words) if words else keeper.subject,
            as_reason(self.redactor, same.why),
            words=words,
            by=self.model.name,
            mark=mark((keeper, *others)),
        )

    def _told(self, found: Compared | None) -> str:
        if found is None:
            return "nobody looked at it again"
        what = as_reason(self.redactor, found.what, _WHAT_CHARACTERS)
        return f"a second look says: {found.finding} {what}".rstrip()


def _named(answer: Sorted) -> Iterator[int]:
    yield from (number for same in answer.merges for number in same.numbers)
    yield from (number for over in answer.over for number in (over.number, over.by))


def _members(numbers: Iterable[int], shown: Sequence[Memory]) -> list[Memory]:
    return [shown[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(shown)]


# ----------------------------------------------------------------------------
# A writer says how memories stand to each other that nothing connects: the questions of reflection,
# answered by it.
#
# An answer becomes a link or nothing, never a memory, and no memory ends by it. Each pair is asked
# about twice, the other
# way round the second time, and only what is answered alike counts. Beside the pairs stands one of
# which code knows that
# it has nothing in common: where the writer connects that, nothing of its answer is used.


RELATE = "relate-1"
MOST_PAIRS = 48
"""Most pairs that one dream asks about; the rest waits."""

MOST_OF_ONE = 3
"""Most pairs of one memory in one dream: a memory near to everything would be linked to all of it."""

_TOGETHER = 12
_TEXT_CHARACTERS = 600
_PAIR_TOKENS = 80
_ANSWER_TOKENS_RELATIONS = 100
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


_EITHER_WAY = frozenset(
    {Relation.RELATED_TO, Relation.ALTERNATIVE_TO, Relation.CONTRADICTS, Relation.NONE}
)


class Side(StrEnum):
    """One of the two memories of a case."""

    A = "a"
    B = "b"


class Related(
    msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename={"leads_from": "from"}
):
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


def wanted_pairs(
    home: Home, memories: Iterable[Memory], asked: Iterable[str], writer: str
) -> list[Pair]:
    """The pairs of some memories that are worth asking about, and were not as they are now."""
    present = {memory.id for memory in memories}
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
) -> RelationsAsked:
    """What a writer says of some pairs. Nothing is changed."""
    chosen = wanted[:MOST_PAIRS]
    parts = [chosen[start : start + _TOGETHER] for start in range(0, len(chosen), _TOGETHER)]
    seconds = home.settings.number("models.timeout_seconds")
    questions = [PairsQuestion(part, model, home.redactor, seconds).answer for part in parts]
    found, failed = answers(home, questions, on_progress)
    misled = sum(one is not None and one.is_misled for one in found)
    good = [
        (part, one) for part, one in zip(parts, found, strict=True) if one and not one.is_misled
    ]
    steps = tuple(step for _, one in good for step in one.steps)
    linked = {step.mark for step in steps}
    settled = tuple(
        settled_mark(mark(pair)) for part, _ in good for pair in part if mark(pair) not in linked
    )
    note = failed or (_MISLED.format(misled, len(parts)) if misled else None)
    return RelationsAsked(steps, settled, len(wanted) - len(chosen), note)


def tokens_for_relations(wanted: Sequence[Pair]) -> tuple[int, Tokens]:
    """The most calls and tokens that asking about pairs takes."""
    chosen = wanted[:MOST_PAIRS]
    calls = 2 * -(-len(chosen) // _TOGETHER)
    shown = sum(
        count_tokens(shorten(one.content, _TEXT_CHARACTERS)) for pair in chosen for one in pair
    )
    asking = calls * count_tokens(words_of(RELATE)) + 2 * (shown + _PAIR_TOKENS * len(chosen))
    return calls, Tokens(asking, _ANSWER_TOKENS_RELATIONS * len(chosen))


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
        steps = (
            self._step(pair, one, again) for (pair, one), again in zip(open_, second, strict=True)
        )
        return PairsAnswered(tuple(step for step in steps if step))

    def _asked(self, pairs: Sequence[Pair]) -> list[Related | None] | None:
        """What is found of each pair; ``None`` where the writer connected the two that have nothing in common."""
        at, _ = probe_beside(pairs)
        answered = ask(self.model, self.prompt(pairs), Relations)
        found: dict[int, Related] = {case.number: case for case in answered.cases}
        tried = found.get(at + 1)
        if tried is None or tried.relation is not Relation.NONE:
            return None
        return [found.get(number) for number in range(1, len(pairs) + 2) if number != at + 1]

    def prompt(self, pairs: Sequence[Pair]) -> Prompt:
        """What asks about some pairs, with one beside them that has nothing in common."""
        at, probe = probe_beside(pairs)
        cases = [{"a": _shown(one), "b": _shown(other)} for one, other in pairs]
        like = _shown(pairs[0][0])
        cases[at:at] = [
            {side: {**like, "text": text} for side, text in zip("ab", probe, strict=True)}
        ]
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
            DreamAction.LINK,
            (),
            source.id,
            source.subject,
            why or one.relation.value,
            (target.id,),
            words=one.relation.value,
            by=self.model.name,
            mark=mark(pair),
        )
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
        "kind": memory.kind.value,
        "said_by": memory.speaker.value,
        "day": shown_day(said(memory)),
        "text": shorten(memory.content, _TEXT_CHARACTERS),
    }
