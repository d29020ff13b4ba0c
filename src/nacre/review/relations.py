"""Questions to the writer in a dream. The answers merge and retire memories."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import chain

import msgspec

from nacre.base.frozen import frozen
from nacre.base.json import quoted
from nacre.base.text import count_tokens, one_line, shorten, title_of, visible
from nacre.base.times import shown_day
from nacre.llm.failures import Schema, ask, schema_of
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.review.consolidate import DreamAction, MemoriesById, Step
from nacre.review.pages import Cluster, fingerprint, last_stated, mark, unfit, weight
from nacre.store.memories import UsageById
from nacre.values.memory import Kind, Memory, by_id
from nacre.values.models import Prompt
from nacre.values.session import Task

SORT, COMPARE = "sort-1", "compare-1"
TOKENS_TOGETHER = 3_072
"""Maximum number of memory tokens in one call."""

_PROBES = 3
"""Number of test pairs in each call."""

_ANSWER_TOKENS = 4_096
_MEMORY_FRAME = 40
_REASON_CHARACTERS = 160
_PLAIN = str.maketrans("[]<>", "()()")


class Same(Schema):
    """Memories that say the same: the one whose words hold all of it, or words that do."""

    numbers: list[int]
    keep: int | None
    words: str | None
    why: str


class Over(Schema):
    """A memory that a later one has ended."""

    number: int
    by: int
    why: str


class Sorted(Schema):
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


class Compared(Schema):
    """What is found of one case."""

    number: int
    finding: Finding
    what: str


class Comparisons(Schema):
    """What is found of each case."""

    cases: list[Compared]


def sort_prompt(clusters: Sequence[Cluster], seconds: float) -> Prompt:
    """Return a prompt that asks which memories say the same and which memories are outdated."""
    lines: list[str] = []
    for cluster in clusters:
        start = sum(line.startswith("{") for line in lines) + 1
        lines += [
            "A cluster:",
            *(_as_member(memory, number) for number, memory in enumerate(cluster, start)),
            "",
        ]
    return prompt_of(SORT, "\n".join(lines).strip(), Sorted, seconds)


def compare_prompt(
    steps: Sequence[Step], memories: MemoriesById, probe: Cluster, seconds: float
) -> Prompt:
    """Return a prompt that verifies steps. It contains a test case that the writer must reject."""
    cases: list[dict[str, object]] = []
    for step in steps:
        into, ends = memories[step.into or ""].content, [memories[end].content for end in step.ends]
        cases.append(
            {"statement": step.words or into, "memories": [into, *ends]}
            if step.action is DreamAction.MERGE
            else {"earlier": ends[0], "later": into}
        )
    texts = [memory.content for memory in probe]
    at = probe_at(steps)
    cases[at:at] = [
        {"statement": texts[0], "memories": texts},
        {"earlier": texts[0], "later": texts[1]},
    ]
    return prompt_of(COMPARE, numbered(cases), Comparisons, seconds)


def is_right(step: Step, result: Compared | None) -> bool:
    """Return True if the verification confirms a step."""
    expected = Finding.SAME if step.action is DreamAction.MERGE else Finding.OVER
    return result is not None and result.finding is expected


def probe_at(steps: Sequence[Step]) -> int:
    """Return the position of the test case among the steps."""
    return int(steps[0].mark, 16) % (len(steps) + 1)


def verify_steps(steps: Sequence[Step], answer: Comparisons) -> list[Compared | None] | None:
    """Return the finding for each step.

    Return ``None`` if the writer accepted the false test case. Then the answer is unreliable.
    """
    by_number = {case.number: case for case in answer.cases}
    cases = [by_number.get(number) for number in range(1, len(steps) + 3)]
    at = probe_at(steps)
    same, over = cases[at], cases[at + 1]
    if same is None or over is None or same.finding is Finding.SAME or over.finding is Finding.OVER:
        return None
    return cases[:at] + cases[at + 2 :]


def probes_for(clusters: Sequence[Cluster]) -> list[Cluster]:
    """Choose test pairs with known answers. The same clusters always get the same pairs."""
    at = int(mark(chain.from_iterable(clusters))[:8], 16)
    pairs = known_pairs()
    chosen = [pairs[(at + step * (len(pairs) // _PROBES)) % len(pairs)] for step in range(_PROBES)]
    like = max(chain.from_iterable(clusters), key=lambda memory: (last_stated(memory), memory.id))
    day, project = last_stated(like), like.project
    return [
        tuple(
            Memory(f"probe {number}", Kind.FACT, title_of(text), text, day, day, project=project)
            for number, text in enumerate(pair)
        )
        for pair in chosen
    ]


def insert_probes(clusters: Sequence[Cluster], probes: Sequence[Cluster]) -> list[Cluster]:
    """Insert each probe at a position that depends on the clusters' contents."""
    shown = list(clusters)
    drawn = int(mark(chain.from_iterable(clusters)), 16)
    for probe in probes:
        drawn, at = divmod(drawn, len(shown) + 1)
        shown.insert(at, probe)
    return shown


@cache
def known_pairs() -> tuple[tuple[str, str], ...]:
    """Return pairs of different statements that are both valid."""
    table = tomllib.loads((files(__package__) / "probes.toml").read_text(encoding="utf-8"))
    return tuple((left, right) for left, right in table["pairs"])


def batches(clusters: Sequence[Cluster]) -> list[list[Cluster]]:
    """Split the clusters into calls of at most ``TOKENS_TOGETHER`` tokens."""
    calls: list[list[Cluster]] = []
    tokens_left = 0
    for cluster in clusters:
        size = size_of(cluster)
        if not calls or size > tokens_left:
            calls.append([])
            tokens_left = TOKENS_TOGETHER
        calls[-1].append(cluster)
        tokens_left -= size
    return calls


def size_of(cluster: Cluster) -> int:
    """Return the number of tokens of a cluster in a prompt."""
    return sum(count_tokens(memory.content) + _MEMORY_FRAME for memory in cluster)


def prompt_of(name: str, text: str, answer: type[msgspec.Struct], seconds: float) -> Prompt:
    """Return a prompt with the instructions from the file ``name``."""
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


def numbered(cases: Iterable[Mapping[str, object]]) -> str:
    """Return one numbered line of JSON for each case."""
    return "\n".join(quoted({"number": number, **case}) for number, case in enumerate(cases, 1))


def _as_member(memory: Memory, number: int) -> str:
    fields = {
        "number": number,
        "kind": memory.kind.value,
        "said_by": memory.speaker.value,
        "said": shown_day(last_stated(memory)),
        "project": memory.project,
        "text": memory.content,
    }
    return quoted(fields)


@cache
def as_reason(redactor: Redactor, words: str, characters: int = _REASON_CHARACTERS) -> str:
    """Return a writer's reason without secrets and Markdown links, for files that people read."""
    return shorten(redactor.clean(one_line(visible(words))).translate(_PLAIN), characters)


def words_of(name: str) -> str:
    """Return a prompt file's text."""
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8")


# -- Merging and retiring -----------------------------------------------------
# Code and a second call check each proposal. A person reviews rejected proposals. Probes, which are
# pairs known to differ and to be both valid, are mixed in. If the writer merges or retires a probe,
# the whole answer is discarded.


_DIFFERENCE_CHARACTERS = 120
Failed = tuple[Step, str]
"""A rejected step and the reason."""


@frozen
class Outcome:
    """The writer's verified answers about clusters of similar memories.

    ``steps``: accepted steps. ``refused``: rejected steps with reasons. ``settled``: fingerprints
    of answered clusters. ``misled``: number of answers discarded because the writer accepted a
    false test case.
    """

    steps: tuple[Step, ...] = ()
    refused: tuple[Failed, ...] = ()
    settled: tuple[str, ...] = ()
    misled: int = 0


@frozen
class Consultation:
    """Questions to a writer about clusters of similar memories.

    ``usage``: usage of each memory. It decides which memory is kept if the writer does not.
    """

    model: LanguageModel
    redactor: Redactor
    usage: UsageById
    seconds: float

    def about(self, clusters: Sequence[Cluster]) -> Outcome:
        """Ask about clusters in one call and verify the answer. Raises the model's errors.

        Nothing is changed.
        """
        probes = probes_for(clusters)
        order = insert_probes(clusters, probes)
        shown = list(chain.from_iterable(order))
        answer = ask(self.model, sort_prompt(order, self.seconds), Sorted)
        probe_ids = {memory.id for memory in chain.from_iterable(probes)}
        if any(memory.id in probe_ids for memory in _members(_named(answer), shown)):
            return Outcome(misled=1)
        steps, refused = self._sift(answer, shown, clusters)
        memories = by_id(shown)
        if not steps:
            return Outcome(refused=tuple(refused), settled=tuple(map(fingerprint, clusters)))
        looked = verify_steps(
            steps,
            ask(self.model, compare_prompt(steps, memories, probes[0], self.seconds), Comparisons),
        )
        if looked is None:
            return Outcome(misled=1)
        good: list[Step] = []
        for step, result in zip(steps, looked, strict=True):
            if is_right(step, result):
                good.append(step)
            elif result is None:
                refused.append((step, "it was not checked a second time"))
            else:
                difference = as_reason(self.redactor, result.what, _DIFFERENCE_CHARACTERS)
                why = f"the second check says: {result.finding} {difference}".rstrip()
                refused.append((step, why))
        open_ = {memory_id for step in good for memory_id in (*step.ends, step.into)}
        settled = [
            fingerprint(cluster)
            for cluster in clusters
            if not open_.intersection(memory.id for memory in cluster)
        ]
        return Outcome(tuple(good), tuple(refused), tuple(settled))

    def _sift(
        self, answer: Sorted, shown: Sequence[Memory], clusters: Sequence[Cluster]
    ) -> tuple[list[Step], list[Failed]]:
        """Check the proposals in an answer. Return the accepted steps and the rejected steps.

        Outdated memories are retired before memories are merged. Only one step can change a memory.
        """
        good: list[Step] = []
        refused: list[Failed] = []
        memories = by_id(shown)
        together = [{memory.id for memory in cluster} for cluster in clusters]
        over = {memory.id for memory in _members([over.number for over in answer.over], shown)}
        mergings = (self._merging(same, over, shown) for same in answer.merges)
        for step in filter(None, (*self._endings(answer, shown), *mergings)):
            named = {*step.ends, step.into or ""}
            ended = {end for other in good for end in other.ends}
            staying = {other.into for other in good}
            is_twice = ended & named or staying.intersection(step.ends)
            if is_twice or (step.words and step.into in staying):
                continue
            why: str | None = "they were not shown together"
            if any(named <= ids for ids in together):
                why = unfit(step, memories)
            refused += [(step, why)] if why else []
            good += [] if why else [step]
        return good, refused

    def _endings(self, answer: Sorted, shown: Sequence[Memory]) -> Iterator[Step]:
        for over in answer.over:
            members = _members((over.number, over.by), shown)
            if len(members) == 2:
                earlier, later = members
                yield Step(
                    DreamAction.SUPERSEDE,
                    (earlier.id,),
                    later.id,
                    later.subject,
                    as_reason(self.redactor, over.why),
                    by=self.model.name,
                    mark=mark((later, earlier)),
                )

    def _merging(self, same: Same, over: Collection[str], shown: Sequence[Memory]) -> Step | None:
        members = [memory for memory in _members(same.numbers, shown) if memory.id not in over]
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
            tuple(other.id for other in others),
            keeper.id,
            title_of(words) if words else keeper.subject,
            as_reason(self.redactor, same.why),
            words=words,
            by=self.model.name,
            mark=mark((keeper, *others)),
        )


def _named(answer: Sorted) -> Iterator[int]:
    yield from (number for same in answer.merges for number in same.numbers)
    yield from (number for over in answer.over for number in (over.number, over.by))


def _members(numbers: Iterable[int], shown: Sequence[Memory]) -> list[Memory]:
    return [shown[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(shown)]
