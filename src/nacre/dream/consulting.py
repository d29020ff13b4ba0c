"""A writer says which memories say the same, and which are over; code and a second look say whether that is so.

What fails changes nothing, and waits for a person. Among what a writer is asked stand pairs of which code knows that
they say something else and both hold: where it takes one for the same, or for over, nothing of that answer is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nacre.dream.checks import mark, unfit
from nacre.dream.clusters import Cluster, fingerprint
from nacre.dream.questions import (
    Compared,
    Comparisons,
    Over,
    Same,
    Sorted,
    among,
    as_reason,
    compare_prompt,
    is_right,
    looked_at,
    probes_for,
    sort_prompt,
)
from nacre.dream.repetitions import weight
from nacre.dream.values import DreamAction, Step
from nacre.llm.answers import ask
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.text.passages import one_line, title_of, visible
from nacre.values.memory import Memory
from nacre.values.review import Usage

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
            steps, ask(self.model, compare_prompt(steps, memories, probes[0], self.seconds), Comparisons)
        )
        if looked is None:
            return Outcome(misled=1)
        good = [step for step, one in zip(steps, looked, strict=True) if is_right(step, one)]
        failed = [(step, self._told(one)) for step, one in zip(steps, looked, strict=True) if not is_right(step, one)]
        open_ = {one for step in good for one in (*step.ends, step.into)}
        settled = [fingerprint(one) for one in clusters if not open_.intersection(memory.id for memory in one)]
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
            ended = {one for other in good for one in other.ends}
            staying = {other.into for other in good}
            if ended & named or staying.intersection(step.ends) or (step.words and step.into in staying):
                continue
            why = unfit(step, memories) if any(named <= one for one in together) else "they were not shown together"
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
            DreamAction.SUPERSEDE, (earlier.id,), later.id, later.subject, as_reason(self.redactor, over.why),
            by=self.model.name, mark=mark((later, earlier)),
        )  # fmt: skip

    def _merging(self, same: Same, members: Sequence[Memory], shown: Sequence[Memory]) -> Step | None:
        if len(members) < 2:
            return None
        words = self.redactor.clean(visible(same.words or "").strip())
        kept = _members((same.keep,), shown) if same.keep is not None else []
        if kept and kept[0] in members:
            keeper, words = kept[0], ""
        elif words:
            keeper = max(members, key=lambda one: weight(one, self.usage))
        else:
            return None
        if not any("\n" in one.content for one in members):
            words = one_line(words)
        others = [one for one in members if one.id != keeper.id]
        return Step(
            DreamAction.MERGE, tuple(one.id for one in others), keeper.id,
            title_of(words) if words else keeper.subject, as_reason(self.redactor, same.why),
            words=words, by=self.model.name, mark=mark((keeper, *others)),
        )  # fmt: skip

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
