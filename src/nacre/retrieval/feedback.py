"""What a reply, or a person, says of the memories that were recalled for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nacre.embed.calibration import calibration_of
from nacre.errors import EmbedderUnavailable, QueryInvalid
from nacre.home.home import BUNDLED, Home
from nacre.indexing.vectors import passages
from nacre.memories.quality import (
    BY_WORDS,
    LEAST_REPLY,
    PERSON_SHARE,
    REPLY_CHARACTERS,
    REPLY_SHARE,
    Borders,
    quality_after,
    verdict,
)
from nacre.memories.scan import catch_up
from nacre.memories.store import get
from nacre.memories.usage import fold_usage, queue_reviews, session_name, today, use_together
from nacre.platform.ids import to_ms
from nacre.retrieval.cases import note_verdicts
from nacre.spending.embedders import embedder_of
from nacre.text.passages import STOP_WORDS, words
from nacre.values.memory import Memory
from nacre.values.review import FeedbackReport, Judged, Reason, Usage, Verdict


@dataclass(frozen=True, slots=True)
class _Measure:
    """How like texts are: ``holds`` is how much of a memory is in the reply, ``repeats`` how like two memories are."""

    borders: Borders
    holds: Callable[[Memory], float]
    repeats: Callable[[Memory, Memory], float]


def feedback(
    home: Home, reply: str, references: Sequence[str] = (), *, session: str | None = None,
    stored: Sequence[str] = (),
) -> FeedbackReport:  # fmt: skip
    """Judge memories by an agent's reply: used, not used, or corrected.

    They are those named, else those used in the host's session since the last feedback on it. ``stored`` names what
    the agent itself stored meanwhile. The reply is compared and not kept. Raises QueryInvalid where neither memories
    nor a session are named, NotFound, Conflict.
    """
    if not references and not session:
        raise QueryInvalid("nothing says which memories to judge", hint="name them, or the session they were used in")
    catch_up(home)
    fold_usage(home)
    memories = _named(home, references) if references else _used_in(home, session or "")
    corrections = _named(home, stored)
    said = home.redactor.clean(reply.strip()[:REPLY_CHARACTERS])
    if len(said) < LEAST_REPLY:
        return FeedbackReport(note=f"the reply has fewer than {LEAST_REPLY} characters, too few to judge by")
    if not memories:
        return FeedbackReport(note="no memory was used in that session since the last feedback")
    measure = _measure(home, said, [*memories, *corrections])
    heard = {}
    for memory in memories:
        anew = max((measure.repeats(memory, other) for other in corrections if other.id != memory.id), default=0.0)
        likeness = measure.holds(memory)
        heard[memory.id] = _Heard(verdict(likeness, anew, measure.borders), likeness)
    with home.database.transaction():
        judged = _judge(home, memories, heard, REPLY_SHARE)
        if session and not references:
            _settle(home, session_name(session), judged)
        note_verdicts(home, judged, session)
    return FeedbackReport(judged, measure.borders.name)


def judge(home: Home, references: Sequence[str], *, good: bool) -> FeedbackReport:
    """A person's own verdict; what they call bad also waits for review. Raises NotFound, Conflict."""
    catch_up(home)
    fold_usage(home)
    memories = _named(home, references)
    said = _Heard(Verdict.USED if good else Verdict.CORRECTED, None)
    with home.database.transaction():
        judged = _judge(home, memories, {memory.id: said for memory in memories}, PERSON_SHARE)
        for memory in memories if not good else ():
            at = to_ms(home.now()) or 0
            home.reviews.add(memory.id, Reason.MANUAL, "you called it bad", at, once=False)
        note_verdicts(home, judged, None)
    return FeedbackReport(judged, "person")


@dataclass(frozen=True, slots=True)
class _Heard:
    verdict: Verdict
    likeness: float | None


def _judge(
    home: Home, memories: Sequence[Memory], heard: dict[str, _Heard], share: float
) -> tuple[Judged, ...]:  # fmt: skip
    usage = home.usage.of([memory.id for memory in memories])
    judged = []
    for memory in memories:
        before, said = usage.get(memory.id, Usage()).quality, heard[memory.id]
        after = quality_after(before, said.verdict, memory.kind, share)
        home.usage.set_quality(memory.id, after)
        judged.append(Judged(memory.id, memory.subject, said.verdict, said.likeness, before, after))
    queue_reviews(home)
    return tuple(judged)


def _settle(home: Home, session: str, judged: Sequence[Judged]) -> None:
    """A reply is heard once on every use; what it used it used together."""
    home.session_uses.judge(session, [item.memory_id for item in judged])
    used = [item.memory_id for item in judged if item.verdict is Verdict.USED]
    use_together(home, session, used, today(home))


def _named(home: Home, references: Sequence[str]) -> list[Memory]:
    found = [get(home, reference) for reference in references]
    return list({memory.id: memory for memory in found}.values())


def _used_in(home: Home, session: str) -> list[Memory]:
    ids = home.session_uses.unjudged(session_name(session))
    active = {memory.id: memory for memory in home.memories.rows_of(ids).values()}
    return [active[memory_id] for memory_id in ids if memory_id in active]


def _measure(home: Home, reply: str, memories: Sequence[Memory]) -> _Measure:
    """By vectors where there is a model, else by words."""
    if home.settings.text("embedding.model") != "none":
        try:
            return _by_cosine(home, reply, memories)
        except EmbedderUnavailable:
            pass
    return _by_words(home, reply, memories)


def _by_cosine(home: Home, reply: str, memories: Sequence[Memory]) -> _Measure:
    """The best cosine of any passage with any passage, by the bundled model: what is heard stays on this machine."""
    embedder = embedder_of(home, BUNDLED)
    heard = embedder.embed(passages(reply))
    vectors = {memory.id: embedder.embed(passages(memory.content)) for memory in memories}
    known = calibration_of(embedder.name)
    return _Measure(
        Borders("cosine", known.used, known.corrected),
        lambda memory: float((vectors[memory.id] @ heard.T).max()),
        lambda one, other: float((vectors[one.id] @ vectors[other.id].T).max()),
    )


def _by_words(home: Home, reply: str, memories: Sequence[Memory]) -> _Measure:
    """The share of a memory's words, stemmed and without stop words; of the shorter one where two are compared."""
    search = home.memory_search

    def stems(text: str) -> set[str]:
        return {term.stem for term in search.terms([word for word in words(text) if word not in STOP_WORDS])}

    heard = stems(reply)
    held = {memory.id: stems(memory.content) for memory in memories}

    def repeats(one: Memory, other: Memory) -> float:
        least = min(len(held[one.id]), len(held[other.id]))
        return len(held[one.id] & held[other.id]) / max(1, least)

    return _Measure(BY_WORDS, lambda memory: len(held[memory.id] & heard) / max(1, len(held[memory.id])), repeats)
