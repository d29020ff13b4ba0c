"""Memories that say the same in other words become one: a writer says which, code and a second look say whether.

A writer is shown clusters and names the members that say the same. Code checks what code can know; then the writer is
asked again, of the statement and its sources alone. What fails changes nothing, and waits for a person. Among what it
is asked stand pairs of which code knows that they say something else: where a writer takes one for the same, nothing of
that answer is used.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files

import msgspec

from nacre.dedup.coverage import adds
from nacre.dream.clusters import Cluster, fingerprint, may_be_one
from nacre.dream.repetitions import is_owners, weight
from nacre.dream.values import DreamAction, Step
from nacre.errors import AnswerUnusable, BudgetSpent, ModelRefused, ModelUnavailable
from nacre.llm.answers import ask, schema_of
from nacre.platform.ids import content_hash
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.text.passages import count_tokens, identifiers, one_line, shorten, title_of, visible
from nacre.values.memory import Kind, Memory
from nacre.values.model_calls import Prompt, Task
from nacre.values.review import Usage

MERGE, COMPARE = "merge-1", "compare-1"
TOKENS_TOGETHER = 3_072
"""Of the memories in one call (seed facts 1.4)."""

_NUMBER = re.compile(r"\d+")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[,_](?=\d{3})")
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_OF_CODE = re.compile(r"[/._\\@=()]|::")
_MOST_ADDED = 100
_TRAPS = 3
_REASON_CHARACTERS = 160
_ANSWER_TOKENS = 4_096
_MEMORY_FRAME = 40
FAILURES = (AnswerUnusable, ModelUnavailable, ModelRefused, BudgetSpent)


class Same(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Memories that say the same: the one whose words hold all of it, or words that do."""

    numbers: list[int]
    keep: int | None
    words: str | None
    why: str


class Merges(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a writer answers."""

    merges: list[Same]


class Finding(StrEnum):
    """What a second look makes of a statement and those whose place it is to take."""

    SAME = "same"
    LOSES = "loses"
    ADDS = "adds"
    DIFFERS = "differs"


class Compared(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is found of one case."""

    number: int
    finding: Finding
    what: str


class Comparisons(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is found of each case."""

    cases: list[Compared]


_SAME = Compared(0, Finding.SAME, "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of some clusters: steps to take, those that failed with the reason, and fingerprints of what is answered.

    ``misled`` counts answers that were not used, since the writer took something else for the same.
    """

    steps: tuple[Step, ...] = ()
    refused: tuple[tuple[Step, str], ...] = ()
    settled: tuple[str, ...] = ()
    misled: int = 0


@dataclass(frozen=True, slots=True)
class Merger:
    """Has a writer merge clusters, a few in each call. ``usage`` tells who stays where the writer does not."""

    model: LanguageModel
    redactor: Redactor
    usage: Mapping[str, Usage]
    seconds: float

    def merge(self, clusters: Sequence[Cluster]) -> Outcome:
        """Ask about some clusters. Raises what a model raises; touches nothing of the home."""
        traps = probes_for(clusters)
        shown = [one for cluster in (*clusters, *traps) for one in cluster]
        answer = ask(self.model, merge_prompt((*clusters, *traps), self.seconds), Merges)
        of_traps = range(len(shown) - 2 * len(traps) + 1, len(shown) + 1)
        if any(number in of_traps for same in answer.merges for number in same.numbers):
            return Outcome(misled=1)
        steps, refused = [], []
        taken: set[str] = set()
        for same in answer.merges:
            members = [shown[number - 1] for number in dict.fromkeys(same.numbers) if 1 <= number <= len(shown)]
            step = self._step(same, members, shown)
            if len(members) < 2 or step is None or taken & {one.id for one in members}:
                continue
            taken |= {one.id for one in members}
            why = unfit(step, {one.id: one for one in members}) or _scattered(members, clusters)
            if why:
                refused.append((step, why))
            else:
                steps.append(step)
        good, failed, is_misled = self._compared(steps, {one.id: one for one in shown}, traps[0])
        if is_misled:
            return Outcome(misled=1)
        open_ = {one for step in good for one in (*step.ends, step.into)}
        settled = [fingerprint(one) for one in clusters if not open_.intersection(memory.id for memory in one)]
        return Outcome(tuple(good), (*refused, *failed), tuple(settled))

    def _step(self, same: Same, members: Sequence[Memory], shown: Sequence[Memory]) -> Step | None:
        """What a writer means by an answer; ``None`` where it means nothing."""
        if not members:
            return None
        words = self.redactor.clean(visible(same.words or "").strip())
        if same.keep is not None and 1 <= same.keep <= len(shown) and shown[same.keep - 1] in members:
            keeper, words = shown[same.keep - 1], ""
        elif words:
            keeper = max(members, key=lambda one: weight(one, self.usage))
        else:
            return None
        if not any("\n" in one.content for one in members):
            words = one_line(words)
        ends = tuple(one.id for one in members if one.id != keeper.id)
        why = shorten(self.redactor.clean(visible(same.why)), _REASON_CHARACTERS)
        return Step(
            DreamAction.MERGE, ends, keeper.id, title_of(words) if words else keeper.subject, why, words=words,
            by=self.model.name, mark=mark((keeper, *(one for one in members if one is not keeper))),
        )  # fmt: skip

    def _compared(
        self, steps: Sequence[Step], memories: Mapping[str, Memory], trap: Cluster
    ) -> tuple[list[Step], list[tuple[Step, str]], bool]:
        """The steps that a second look bears out, the others with what it found, and whether it found a trap right."""
        if not steps:
            return [], [], False
        answer = ask(self.model, compare_prompt(steps, memories, trap, self.seconds), Comparisons)
        found = {one.number: one for one in answer.cases}
        if found.get(len(steps) + 1, _SAME).finding is Finding.SAME:
            return [], [], True
        good, failed = [], []
        for number, step in enumerate(steps, 1):
            one = found.get(number)
            if one and one.finding is Finding.SAME:
                good.append(step)
            else:
                told = f"a second look says: {one.finding} {shorten(visible(one.what), 120)}".rstrip() if one else ""
                failed.append((step, self.redactor.clean(told) or "nobody compared it with its sources"))
        return good, failed, False


def probes_for(clusters: Sequence[Cluster]) -> list[Cluster]:
    """Pairs of which code knows that they say something else: three to stand beside some clusters, always the same
    ones beside the same."""
    at = int(mark(one for cluster in clusters for one in cluster)[:8], 16)
    pairs = _probes()
    chosen = [pairs[(at + step * (len(pairs) // _TRAPS)) % len(pairs)] for step in range(_TRAPS)]
    day = max(one.created for cluster in clusters for one in cluster)
    return [
        tuple(Memory(f"probe {number}", Kind.FACT, title_of(text), text, day, day) for number, text in enumerate(pair))
        for pair in chosen
    ]


@cache
def _probes() -> tuple[tuple[str, str], ...]:
    written = tomllib.loads((files(__package__) / "probes.toml").read_text(encoding="utf-8"))
    return tuple((one, other) for one, other in written["pairs"])


def _scattered(members: Sequence[Memory], clusters: Sequence[Cluster]) -> str | None:
    ids = {one.id for one in members}
    return None if any(ids <= {one.id for one in cluster} for cluster in clusters) else "they were not shown together"


def mark(memories: Iterable[Memory]) -> str:
    """What a step rests on: it is void when this is another."""
    parts = [f"{one.id}\0{one.kind}\0{one.content}\0{one.speaker}\0{one.trust}" for one in memories]
    return content_hash("\0".join(parts)).hex()[:16]


def unfit(step: Step, memories: Mapping[str, Memory]) -> str | None:
    """What speaks against a merge by a writer, as far as code can tell; ``None`` where nothing does.

    No number, option, path or name of code of any source may be missing, none be new, and nobody's word becomes
    another's.
    """
    sources = [memories[one] for one in (step.into or "", *step.ends)]
    keeper, others = sources[0], sources[1:]
    if step.mark != mark(sources):
        return "they have changed since"
    if not all(may_be_one(keeper, one) for one in others):
        return "they are not of one place, trust and time"
    if any(is_owners(one) and not is_owners(keeper) for one in others):
        return "the owner's words would count as the agent's"
    if step.words and len({one.speaker for one in sources}) > 1:
        return "the owner and an agent said them"
    return _ill_worded(step.words or keeper.content, [one.content for one in sources], is_new=bool(step.words))


def _ill_worded(words: str, sources: Sequence[str], *, is_new: bool) -> str | None:
    if len(words) > sum(map(len, sources)) + _MOST_ADDED:
        return "the words are more than all of theirs"
    whole = "\n".join(sources)
    for one in sources:
        if missing := _missing(one, words):
            return f"the words leave out {missing}"
    added = _missing(words, whole) or (adds(words, sources) if is_new else None)
    return f"the words add {added}" if added else None


def _missing(text: str, there: str) -> str | None:
    """What stands in a text to the letter and in another one not: a number, an option of a command, a path or a name of
    code. Whether other words say the same is for who reads."""
    text, there = _BETWEEN_DIGITS.sub("", text), _BETWEEN_DIGITS.sub("", there)
    numbers = {one.lstrip("0") for one in _NUMBER.findall(there)}
    options = set(_OPTION.findall(there))
    names = (one.rstrip(".") for one in identifiers(text) if _OF_CODE.search(one.rstrip(".")))
    absent = (
        *(one for one in _NUMBER.findall(text) if one.lstrip("0") not in numbers),
        *(one for one in _OPTION.findall(text) if one not in options),
        *(one for one in names if one.lower() not in there.lower()),
    )
    return next(iter(absent), None)


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


def merge_prompt(clusters: Sequence[Cluster], seconds: float) -> Prompt:
    """What asks which members of some clusters say the same."""
    lines: list[str] = []
    for cluster in clusters:
        start = sum(line.startswith("{") for line in lines) + 1
        lines += ["A cluster:", *(_as_data(one, number) for number, one in enumerate(cluster, start)), ""]
    return _prompt(MERGE, "\n".join(lines).strip(), Merges, seconds)


def compare_prompt(
    steps: Sequence[Step], memories: Mapping[str, Memory], trap: Cluster, seconds: float
) -> Prompt:  # fmt: skip
    """What asks whether each step's statement holds what its sources say, and last whether one of two that say
    something else stands for both."""
    cases = []
    for number, step in enumerate(steps, 1):
        keeper = memories[step.into or ""]
        sources = [keeper.content, *(memories[one].content for one in step.ends)]
        cases.append(_line({"number": number, "statement": step.words or keeper.content, "memories": sources}))
    texts = [one.content for one in trap]
    cases.append(_line({"number": len(steps) + 1, "statement": texts[0], "memories": texts}))
    return _prompt(COMPARE, "\n".join(cases), Comparisons, seconds)


def _prompt(name: str, text: str, answer: type[msgspec.Struct], seconds: float) -> Prompt:
    return Prompt(
        Task.DREAM, words_of(name), text, schema_of(answer), name=name.partition("-")[0], version=f"dream/{name}",
        output_tokens=_ANSWER_TOKENS, timeout_seconds=seconds,
    )  # fmt: skip


def _as_data(memory: Memory, number: int) -> str:
    told = {
        "number": number, "kind": memory.kind.value, "said_by": memory.speaker.value,
        "said": memory.created.date().isoformat(), "subject": memory.subject, "text": memory.content,
    }  # fmt: skip
    return _line(told)


def _line(told: Mapping[str, object]) -> str:
    """One line of JSON: nothing that it holds can end the quotation it stands in."""
    return json.dumps(told, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def words_of(name: str) -> str:
    """The prompt in a file of ``prompts/``."""
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8")
