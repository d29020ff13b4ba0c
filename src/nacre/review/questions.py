"""Questions to the writer during a dream, about similar memories and about pages."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, partial
from itertools import accumulate, chain, count

import msgspec

from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.base.json import quoted
from nacre.base.text import (
    count_tokens,
    normalise,
    one_line,
    read_resource,
    read_table,
    shorten,
    title_of,
    visible,
)
from nacre.base.times import shown_day
from nacre.home.home import Home
from nacre.home.projects import REFERENCE_CHARACTERS, as_line, references_of, rests_on_what_holds
from nacre.home.spending import name_for
from nacre.learn.extract import is_covered, may_be_shown
from nacre.llm.failures import Schema, ask, schema_of
from nacre.memories.vectors import embed_memories
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.review.consolidate import (
    DreamAction,
    MemoriesById,
    PageDraft,
    Section,
    Step,
    answers,
)
from nacre.review.pages import (
    SESSIONS_SHOWN,
    UNREADABLE,
    Cluster,
    Form,
    Page,
    SecondLook,
    activity,
    clusters,
    fingerprint,
    form_of,
    last_stated,
    latest,
    mark,
    plain_words,
    read_page,
    sessions_named,
    unfit,
    unlike_sources,
    weight,
)
from nacre.review.pages import Finding as LineFinding
from nacre.store.memories import UsageById
from nacre.values.memory import Kind, Memory, by_id
from nacre.values.models import Prompt
from nacre.values.reports import OnProgress
from nacre.values.session import Speaker, Task

SORT, COMPARE = "sort-1", "compare-1"
TOKENS_TOGETHER = 3_072
"""Maximum number of memory tokens in one call."""

_PROBES = 3
"""Number of test pairs in each call."""

_ANSWER_TOKENS = 4_096
_MEMORY_FRAME = 40
_REASON_CHARACTERS = 160
_PLAIN = str.maketrans("[]<>", "()()")


# The docstrings of these classes are sent to the writer, and are part of the recorded prompts.


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


def sort_prompt(clusters: Sequence[Cluster]) -> Prompt:
    """Return a prompt that asks which memories repeat each other, and which are outdated."""
    lines = []
    numbers = count(1)
    for cluster in clusters:
        members = [_as_member(memory, next(numbers)) for memory in cluster]
        lines += ["A cluster:", *members, ""]
    return prompt_of(SORT, "\n".join(lines).strip(), Sorted)


def with_probes(clusters: Sequence[Cluster]) -> tuple[list[Cluster], list[Cluster]]:
    """Insert pairs with known answers among the clusters, to test the writer.

    Return all clusters, and the pairs. The choice depends only on the clusters.
    """
    drawn, pairs = mark(chain.from_iterable(clusters)), known_pairs()
    first, place = int(drawn[:8], 16), int(drawn, 16)
    like = max(chain.from_iterable(clusters), key=lambda memory: (last_stated(memory), memory.id))
    day, project = last_stated(like), like.project
    order, probes = list(clusters), list[Cluster]()
    for number in range(_PROBES):
        pair = pairs[(first + number * (len(pairs) // _PROBES)) % len(pairs)]
        probe = tuple(
            Memory(f"probe {at}", Kind.FACT, title_of(text), text, day, day, project=project)
            for at, text in enumerate(pair)
        )
        place, at = divmod(place, len(order) + 1)
        order.insert(at, probe)
        probes.append(probe)
    return order, probes


@cache
def known_pairs() -> tuple[tuple[str, str], ...]:
    """Return pairs of statements that neither repeat nor contradict each other."""
    return tuple((left, right) for left, right in read_table(__file__, "probes.toml")["pairs"])


def batches(clusters: Sequence[Cluster]) -> list[list[Cluster]]:
    """Split the clusters into batches of at most ``TOKENS_TOGETHER`` tokens."""
    calls: list[list[Cluster]] = []
    tokens_left = 0
    for cluster in clusters:
        size = sum(count_tokens(memory.content) + _MEMORY_FRAME for memory in cluster)
        if not calls or size > tokens_left:
            calls.append([])
            tokens_left = TOKENS_TOGETHER
        calls[-1].append(cluster)
        tokens_left -= size
    return calls


def prompt_of(name: str, text: str, answer: type[msgspec.Struct]) -> Prompt:
    """Build a prompt with the instructions in the prompt file ``name``."""
    return Prompt(
        Task.DREAM,
        read_resource(__file__, f"prompts/{name}.md"),
        text,
        schema_of(answer),
        name=name.partition("-")[0],
        version=f"dream/{name}",
        output_tokens=_ANSWER_TOKENS,
    )


def numbered(cases: Iterable[Mapping[str, object]]) -> str:
    """Return each case as a numbered line of JSON."""
    return "\n".join(quoted({"number": number, **case}) for number, case in enumerate(cases, 1))


def _as_member(memory: Memory, number: int) -> str:
    fields = {
        "number": number,
        "kind": memory.kind,
        "said_by": memory.speaker,
        "said": shown_day(last_stated(memory)),
        "project": memory.project,
        "text": memory.content,
    }
    return quoted(fields)


def as_reason(redactor: Redactor, words: str, characters: int = _REASON_CHARACTERS) -> str:
    """Return a writer's reason without secrets and Markdown links, cut to ``characters``."""
    return shorten(redactor.clean(one_line(visible(words))).translate(_PLAIN), characters)


# -- Merging and retiring -----------------------------------------------------
# Code and a second call check each proposal, and a person reviews the rejected ones. Each call also
# contains probes: pairs of different statements that are both valid. If the writer merges or retires
# one of these, its whole answer is discarded.


_DIFFERENCE_CHARACTERS = 120
Failed = tuple[Step, str]
"""A rejected step and the reason."""


@frozen
class Outcome:
    """The writer's verified answers about clusters.

    ``refused``: rejected steps, with reasons. ``settled``: fingerprints of answered clusters.
    ``misled``: number of answers discarded because the writer accepted a false test pair.
    """

    steps: tuple[Step, ...] = ()
    refused: tuple[Failed, ...] = ()
    settled: tuple[str, ...] = ()
    misled: int = 0


@frozen
class Consultation:
    """Questions to a writer about clusters.

    If the writer does not name the memory to keep, ``usage`` helps to choose it.
    """

    model: LanguageModel
    redactor: Redactor
    usage: UsageById

    def about(self, clusters: Sequence[Cluster]) -> Outcome:
        """Ask about clusters in one call, and verify the answer in another.

        Raises the model's errors.
        """
        order, probes = with_probes(clusters)
        ordered = list(chain.from_iterable(order))
        answer = ask(self.model, sort_prompt(order), Sorted)
        named = [number for same in answer.merges for number in same.numbers]
        named += chain.from_iterable((over.number, over.by) for over in answer.over)
        probe_ids = {memory.id for memory in chain.from_iterable(probes)}
        if any(memory.id in probe_ids for memory in _members(named, ordered)):
            return Outcome(misled=1)
        steps, refused = self._sift(answer, ordered, clusters)
        verified = self._verify(steps, by_id(ordered), probes[0]) if steps else ([], [])
        if verified is None:
            return Outcome(misled=1)
        good, objected = verified
        open_ = {memory_id for step in good for memory_id in step.memories}
        settled = [
            fingerprint(cluster)
            for cluster in clusters
            if not open_.intersection(memory.id for memory in cluster)
        ]
        return Outcome(tuple(good), (*refused, *objected), tuple(settled))

    def _verify(
        self, steps: Sequence[Step], memories: MemoriesById, probe: Cluster
    ) -> tuple[list[Step], list[Failed]] | None:
        cases: list[tuple[Step | None, dict[str, object]]] = []
        for step in steps:
            into, *ends = (memories[key].content for key in (step.into or "", *step.ends))
            if step.action is DreamAction.MERGE:
                cases.append((step, {"statement": step.words or into, "memories": [into, *ends]}))
            else:
                cases.append((step, {"earlier": ends[0], "later": into}))
        first, second = (memory.content for memory in probe)
        at = int(steps[0].mark, 16) % (len(cases) + 1)
        cases[at:at] = [
            (None, {"statement": first, "memories": [first, second]}),
            (None, {"earlier": first, "later": second}),
        ]
        prompt = prompt_of(COMPARE, numbered(case for _, case in cases), Comparisons)
        results = {case.number: case for case in ask(self.model, prompt, Comparisons).cases}
        good = []
        refused = []
        for number, (tested, _) in enumerate(cases, 1):
            result = results.get(number)
            if tested is None:
                # The writer must reject the test pair.
                if result is None or result.finding in (Finding.SAME, Finding.OVER):
                    return None
            elif result is None:
                refused.append((tested, "the second check skipped it"))
            elif result.finding is (
                Finding.SAME if tested.action is DreamAction.MERGE else Finding.OVER
            ):
                good.append(tested)
            else:
                difference = as_reason(self.redactor, result.what, _DIFFERENCE_CHARACTERS)
                why = f"the second check says: {result.finding} {difference}".rstrip()
                refused.append((tested, why))
        return good, refused

    def _sift(
        self, answer: Sorted, memories: Sequence[Memory], clusters: Sequence[Cluster]
    ) -> tuple[list[Step], list[Failed]]:
        good: list[Step] = []
        refused = []
        by_memory_id = by_id(memories)
        together = [{memory.id for memory in cluster} for cluster in clusters]
        over = {memory.id for memory in _members([over.number for over in answer.over], memories)}
        mergings = (self._merging(same, over, memories) for same in answer.merges)
        # Only one step may change a memory. Outdated memories come before merges.
        for step in filter(None, (*self._endings(answer, memories), *mergings)):
            named = set(step.memories)
            ended = {end for other in good for end in other.ends}
            staying = {other.into for other in good}
            is_twice = ended & named or staying.intersection(step.ends)
            if is_twice or (step.words and step.into in staying):
                continue
            why: str | None = "the memories are from different clusters"
            if any(named <= ids for ids in together):
                why = unfit(step, by_memory_id)
            refused += [(step, why)] if why else []
            good += [] if why else [step]
        return good, refused

    def _endings(self, answer: Sorted, memories: Sequence[Memory]) -> Iterator[Step]:
        for over in answer.over:
            members = _members((over.number, over.by), memories)
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

    def _merging(
        self, same: Same, over: Collection[str], memories: Sequence[Memory]
    ) -> Step | None:
        members = [memory for memory in _members(same.numbers, memories) if memory.id not in over]
        if len(members) < 2:
            return None
        words = self.redactor.clean(visible(same.words or "").strip())
        chosen = _members((same.keep,), memories) if same.keep is not None else []
        if chosen and chosen[0] in members:
            keeper, words = chosen[0], ""
        elif words:
            keeper = max(members, key=lambda member: weight(member, self.usage))
        else:
            return None
        if not any("\n" in member.content for member in members):
            words = one_line(words)
        merged_memories = [member for member in members if member.id != keeper.id]
        return Step(
            DreamAction.MERGE,
            tuple(other.id for other in merged_memories),
            keeper.id,
            title_of(words) if words else keeper.subject,
            as_reason(self.redactor, same.why),
            words=words,
            by=self.model.name,
            mark=mark((keeper, *merged_memories)),
        )


def _members(numbers: Iterable[int], memories: Sequence[Memory]) -> list[Memory]:
    return [
        memories[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(memories)
    ]


# -- Pages ----------------------------------------------------------------------


BORNE = "borne-1"
_LINE_CHARACTERS = 240
_SUMMARY_CHARACTERS = 400
_MAX_SOURCES = 8


@frozen
class Source:
    """A memory or a description of a session, as shown to the writer."""

    reference: str
    kind: str
    speaker: Speaker
    day: str
    text: str

    @property
    def statement(self) -> dict[str, object]:
        """The source's fields for a prompt, without its kind."""
        return {"said_by": self.speaker, "day": self.day, "text": self.text}


@frozen
class Proposed:
    """A line that the writer proposes for a section, and its sources."""

    field: str
    words: str
    sources: tuple[Source, ...]

    @property
    def line(self) -> str:
        """The line as Markdown for the page."""
        by_agent = any(source.speaker is not Speaker.OWNER for source in self.sources)
        return as_line(self.words, [source.reference for source in self.sources], by_agent=by_agent)


@frozen
class PageAnswer:
    """The writer's verified answer about a page.

    ``refused``: number of rejected lines. ``is_misled``: whether the writer accepted a false test
    line.
    """

    sections: tuple[Section, ...] = ()
    refused: int = 0
    is_misled: bool = False


@frozen
class PageQuestion:
    """A question to the writer about a project's page or the profile.

    ``before``: section, text and source numbers of existing lines. ``marks``: fingerprints of the
    memories shown.
    """

    project: str
    sources: tuple[Source, ...]
    before: tuple[tuple[str, str, tuple[int, ...]], ...]
    marks: tuple[str, ...]

    @property
    def form(self) -> Form:
        return form_of(self.project)

    def answer(self, model: LanguageModel, redactor: Redactor) -> PageAnswer:
        """Ask for the page, and verify the answer. Raises the model's errors."""
        answer = ask(model, self._prompt(), self.form.answer)
        proposed = list(self._proposed(answer, redactor))
        good = [
            line
            for line in proposed
            if line.words
            and line.sources
            and not unlike_sources(line.words, [f"{each.day} {each.text}" for each in line.sources])
        ]
        supported = _confirmed_lines(model, good) if good else []
        if supported is None:
            return PageAnswer(is_misled=True)
        return PageAnswer(tuple(self._sections(supported)), len(proposed) - len(supported))

    def _prompt(self) -> Prompt:
        text = numbered({"kind": source.kind, **source.statement} for source in self.sources)
        lines = [
            quoted({"section": field, "text": words, "numbers": list(numbers)})
            for field, words, numbers in self.before
        ]
        parts = [text, *(["", "The page has these lines:", *lines] if lines else [])]
        return prompt_of(self.form.prompt, "\n".join(parts), self.form.answer)

    def _proposed(self, answer: msgspec.Struct, redactor: Redactor) -> Iterator[Proposed]:
        for field, _, _ in self.form.sections:
            for line in getattr(answer, field):
                plain = plain_words(one_line(visible(line.text)), _LINE_CHARACTERS)
                words, numbers = redactor.clean(plain).strip("- "), sorted(set(line.numbers))
                is_shown = all(1 <= number <= len(self.sources) for number in numbers)
                if not is_shown or len(numbers) > _MAX_SOURCES:
                    numbers = []  # reject lines that cite unknown or too many sources
                sources = tuple(self.sources[number - 1] for number in numbers)
                yield Proposed(field, words, sources)

    def _sections(self, supported: Sequence[Proposed]) -> Iterator[Section]:
        form = self.form
        lines_by_field: dict[str, list[Proposed]] = {field: [] for field, _, _ in form.sections}
        words = set()
        used_sources = set()
        summary = form.ranks[0]
        for line in sorted(supported, key=lambda line: form.ranks.index(line.field)):
            references = frozenset(source.reference for source in line.sources)
            if normalise(line.words) not in words and references not in used_sources:
                lines_by_field[line.field].append(line)
                words.add(normalise(line.words))
                used_sources |= set() if line.field == summary else {references}
        for field, title, most in form.sections:
            lines = lines_by_field[field][:most]
            if field == summary:
                sizes = accumulate(len(line.words) for line in lines)
                lines = lines[: sum(size <= _SUMMARY_CHARACTERS for size in sizes)]
            yield title, tuple(line.line for line in lines)


def _confirmed_lines(model: LanguageModel, proposed: Sequence[Proposed]) -> list[Proposed] | None:
    drawn = int(content_hash("\0".join(line.line for line in proposed)).hex()[:12], 16)
    at, pairs = drawn % (len(proposed) + 1), known_pairs()
    statement, source_text = pairs[drawn // 7 % len(pairs)]
    false_source = Source("", "", Speaker.OWNER, proposed[0].sources[0].day, source_text)
    lines = [*proposed]
    lines.insert(at, Proposed("", statement, (false_source,)))
    cases = numbered(
        {"line": line.words, "sources": [source.statement for source in line.sources]}
        for line in lines
    )
    answer = ask(model, prompt_of(BORNE, cases, SecondLook), SecondLook)
    findings = {case.number - 1: case.finding for case in answer.cases}
    # The writer must reject the false line.
    if findings.get(at) is not LineFinding.NOT_BORNE:
        return None
    return [line for number, line in enumerate(lines) if findings.get(number) is LineFinding.BORNE]


# -- Asking about pages -------------------------------------------------------


MOST_PAGES = 8
"""Maximum number of pages per dream."""

LEAST_KNOWN, LEAST_NEW = 5, 3
"""Minimum number of memories to ask about a page, and of changes to ask again."""

TOKENS_SHOWN = 6_000
"""Maximum number of tokens for the memories in one question."""

_LOOKED = "dream pages"
_TEXT_CHARACTERS = 500
_FRAME_TOKENS = 30

_MISLED = "{} of {} pages by the writer are not used: it accepted a statement that its sources do not support"
_SOURCE_MARK_CHARACTERS = 8


@frozen
class Consulted:
    """A writer's answers about pages.

    ``looked``: the pages, with fingerprints of their sources. ``unasked``: number of postponed
    questions. ``note``: the reason why answers are missing.
    """

    drafts: Mapping[str, PageDraft]
    looked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unasked: int = 0
    note: str | None = None


def wanted_pages(
    home: Home, memories: Iterable[Memory], project: str | None, writer: str
) -> list[PageQuestion]:
    """Return questions about pages whose sources changed enough, most changed first."""
    looked = _read_looked(home)
    slugs = sorted({file.slug for file in home.files.projects()})
    candidates = list(memories)
    pages = []
    for slug in [name for name in ("", *slugs) if project in (None, name)]:
        page = _page_question(home, slug, candidates, writer)
        changes = len({*page.marks} ^ {*looked.get(slug, ())}) if page else 0
        if page and changes >= LEAST_NEW:
            pages.append((changes, page))
    return [page for _, page in sorted(pages, key=lambda item: (-item[0], item[1].project))]


def note_looked(home: Home, looked: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Record the pages that the writer was asked about. Requires a transaction."""
    added = {project: list(marks) for project, marks in looked}
    if added:
        home.usage.set_value(_LOOKED, json.dumps({**_read_looked(home), **added}))


def _read_looked(home: Home) -> dict[str, list[str]]:
    return dict(json.loads(home.usage.value(_LOOKED) or "{}"))


def _page_question(
    home: Home, project: str, memories: Sequence[Memory], writer: str
) -> PageQuestion | None:
    try:
        page = read_page(home, project)
    except UNREADABLE:
        return None
    form, today = form_of(project), home.today()
    eligible = [
        memory
        for memory in memories
        if form.takes(memory, project, today)
        and not (memory.triggers or memory.suppressed_contexts)
        and may_be_shown(home, memory, writer)
    ]
    if len(eligible) < LEAST_KNOWN or not page.is_wanted:
        return None
    named = {name for _, line in _lines_before(page, form) for name in references_of(line)}
    chosen = _memories_to_show(eligible, named)
    marks = tuple(mark([memory])[:_SOURCE_MARK_CHARACTERS] for memory in chosen)
    sources = (
        *map(_source, chosen),
        *(_of_sessions(home, project, page, writer) if project else ()),
    )
    return PageQuestion(
        project, sources, tuple(_valid_written_lines(home, page, form, sources)), marks
    )


def _memories_to_show(memories: Sequence[Memory], named: set[str]) -> list[Memory]:
    by_day = sorted(memories, key=lambda memory: (memory.last_said, memory.id), reverse=True)
    by_weight = sorted(by_day, key=lambda memory: -memory.importance)
    on_page = [memory for memory in by_day if memory.id[-REFERENCE_CHARACTERS:] in named]
    alternating = (memory for pair in zip(by_weight, by_day, strict=True) for memory in pair)
    chosen = []
    tokens_left = TOKENS_SHOWN
    for memory in by_id((*on_page, *alternating)).values():
        tokens_left -= count_tokens(_source(memory).text) + _FRAME_TOKENS
        if tokens_left >= 0:
            chosen.append(memory)
    return sorted(chosen, key=lambda memory: (memory.last_said, memory.id))


def _source(memory: Memory) -> Source:
    text = shorten(memory.content, _TEXT_CHARACTERS)
    subject = "" if memory.subject.rstrip("…") in text else f"{memory.subject}: "
    day = memory.created if memory.kind is Kind.EVENT else memory.last_said
    return Source(
        memory.id[-REFERENCE_CHARACTERS:],
        memory.kind,
        memory.speaker,
        shown_day(day),
        f"{subject}{text}",
    )


def _lines_before(page: Page, form: Form) -> list[tuple[str, str]]:
    fields = {title: field for field, title, _ in form.sections}
    return [(fields[title], line) for title, lines in form.written(page.part) for line in lines]


def _of_sessions(home: Home, project: str, page: Page, writer: str) -> Iterator[Source]:
    for line in activity(home, project, page, latest(home, project, None, SESSIONS_SHOWN)):
        (reference,) = references_of(line)
        sessions = sessions_named(home, reference)
        if sessions and all(is_covered(home.settings, session, writer) for session in sessions):
            day, _, words = home.redactor.clean(
                line.removeprefix("- ").rpartition(" (")[0]
            ).partition(": ")
            yield Source(reference, "session", Speaker.OWNER, day, words)


def _valid_written_lines(
    home: Home, page: Page, form: Form, sources: Sequence[Source]
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    numbers = {source.reference: number for number, source in enumerate(sources, 1)}
    for field, line in _lines_before(page, form):
        named = references_of(line)
        if named and all(source in numbers for source in named) and rests_on_what_holds(home, line):
            yield (
                field,
                line.removeprefix("- ").rpartition(" (")[0],
                tuple(numbers[source] for source in named),
            )


def consult(
    home: Home,
    model: LanguageModel,
    memories: Sequence[Memory],
    project: str | None,
    on_progress: OnProgress,
) -> Consulted:
    """Ask the writer about pages."""
    pages = wanted_pages(home, memories, project, name_for(home, Task.DREAM))
    questions = [partial(page.answer, model, home.redactor) for page in pages[:MOST_PAGES]]
    results, problem = answers(home, questions, on_progress)
    replies = [(page, reply) for page, reply in zip(pages, results, strict=False) if reply]
    drafts = {}
    for page, reply in replies:
        if number := sum(len(lines) for _, lines in reply.sections):
            refusals = f", {reply.refused} more failed the check" if reply.refused else ""
            why = f"lines by the writer: {number}, from {len(page.sources)} sources{refusals}"
            drafts[page.project] = PageDraft(reply.sections, model.name, why)
    misled = sum(reply.is_misled for _, reply in replies)
    return Consulted(
        drafts,
        looked=tuple((page.project, page.marks) for page, reply in replies if not reply.is_misled),
        unasked=max(0, len(pages) - MOST_PAGES),
        note=problem or (_MISLED.format(misled, len(replies)) if misled else None),
    )


# -- Clusters of similar memories ---------------------------------------------


MOST_CLUSTERS = 120
"""Maximum number of clusters per dream."""

_ASKED_KEY = "dream asked"
_MAX_ASKED = 4_000


def ask_about_clusters(
    home: Home,
    model: LanguageModel,
    memories: Sequence[Memory],
    usage: UsageById,
    on_progress: OnProgress,
) -> tuple[Outcome, int, str | None]:
    """Ask the writer about clusters that it has not answered yet.

    Return the outcome, the number of postponed clusters, and any problem as text.
    """
    chosen, unasked, note = clusters_to_ask(home, memories, name_for(home, Task.DREAM))
    consultation = Consultation(model, home.redactor, usage)
    questions = [partial(consultation.about, part) for part in batches(chosen)]
    results, problem = answers(home, questions, on_progress)
    outcomes = [result for result in results if result]
    outcome = Outcome(
        tuple(chain.from_iterable(result.steps for result in outcomes)),
        tuple(chain.from_iterable(result.refused for result in outcomes)),
        tuple(chain.from_iterable(result.settled for result in outcomes)),
        sum(result.misled for result in outcomes),
    )
    if outcome.misled and not problem:
        problem = _MISLED_MERGING.format(outcome.misled, len(questions))
    return outcome, unasked, problem or note


_MISLED_MERGING = "{} of {} answers of the writer are not used: it mistook different statements for equal or outdated"


def clusters_to_ask(
    home: Home, memories: Sequence[Memory], writer: str
) -> tuple[list[Cluster], int, str | None]:
    """Return the clusters to ask about, the number of postponed clusters, and any problem."""
    embed_memories(home)
    if home.vectors.model() is None:
        return [], 0, "similarity needs vectors: run nacre writer embedding"
    settled = set(list_settled(home))
    eligible = [
        cluster
        for cluster in clusters(home, memories)
        if fingerprint(cluster) not in settled
        and all(may_be_shown(home, memory, writer) for memory in cluster)
    ]
    return eligible[:MOST_CLUSTERS], max(0, len(eligible) - MOST_CLUSTERS), None


def list_settled(home: Home) -> list[str]:
    """Return fingerprints of the clusters that the writer has answered."""
    return list(json.loads(home.usage.value(_ASKED_KEY) or "[]"))


def note_settled(home: Home, settled: Sequence[str]) -> None:
    """Record the clusters that the writer has answered. Requires a transaction."""
    if settled:
        home.usage.set_value(_ASKED_KEY, json.dumps([*list_settled(home), *settled][-_MAX_ASKED:]))
