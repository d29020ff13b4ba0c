"""What a writer is asked in a dream, and what it may answer: prompts, shapes of answers, probes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files

import msgspec

from nacre.dream.checks import mark, said
from nacre.dream.clusters import Cluster
from nacre.dream.values import DreamAction, Step
from nacre.llm.answers import schema_of
from nacre.platform.days import shown_day
from nacre.platform.json_text import quoted
from nacre.redact.redactor import Redactor
from nacre.text.passages import count_tokens, one_line, shorten, title_of, visible
from nacre.values.memory import Kind, Memory
from nacre.values.model_calls import Prompt, Task

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
        lines += ["A cluster:", *(_as_member(one, number) for number, one in enumerate(cluster, start)), ""]
    return prompt_of(SORT, "\n".join(lines).strip(), Sorted, seconds)


def compare_prompt(
    steps: Sequence[Step], memories: Mapping[str, Memory], probe: Cluster, seconds: float
) -> Prompt:  # fmt: skip
    """What asks whether each step is right, and somewhere among them the same of two that say something else and both
    hold."""
    cases = [_case(step, memories) for step in steps]
    texts = [one.content for one in probe]
    at = probe_at(steps)
    cases[at:at] = [{"statement": texts[0], "memories": texts}, {"earlier": texts[0], "later": texts[1]}]
    lines = [quoted({"number": number, **case}) for number, case in enumerate(cases, 1)]
    return prompt_of(COMPARE, "\n".join(lines), Comparisons, seconds)


def _case(step: Step, memories: Mapping[str, Memory]) -> dict[str, object]:
    into, ends = memories[step.into or ""].content, [memories[one].content for one in step.ends]
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
    found = {one.number: one for one in answer.cases}
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
    like = max((one for cluster in clusters for one in cluster), key=lambda one: (said(one), one.id))
    return [tuple(_as_probe(number, text, like) for number, text in enumerate(pair)) for pair in chosen]


def _as_probe(number: int, text: str, like: Memory) -> Memory:
    day = said(like)
    return Memory(f"probe {number}", Kind.FACT, title_of(text), text, day, day, project=like.project)


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
        Task.DREAM, words_of(name), text, schema_of(answer), name=name.partition("-")[0], version=f"dream/{name}",
        output_tokens=_ANSWER_TOKENS, timeout_seconds=seconds,
    )  # fmt: skip


def _as_member(memory: Memory, number: int) -> str:
    told = {
        "number": number, "kind": memory.kind.value, "said_by": memory.speaker.value,
        "said": shown_day(said(memory)), "project": memory.project, "text": memory.content,
    }  # fmt: skip
    return quoted(told)


@cache
def as_reason(redactor: Redactor, words: str, characters: int = _REASON_CHARACTERS) -> str:
    """What a writer says of a step, as it stands in files that people read as Markdown: it links to nothing."""
    return shorten(redactor.clean(one_line(visible(words))).translate(_PLAIN), characters)


def words_of(name: str) -> str:
    """The prompt in a file of ``prompts/``."""
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8")
