"""Public benchmarks as haystacks: sessions with turns, and questions labelled with turns or sessions.

Ids of turns and sessions get a unique prefix, so that all haystacks can be merged into one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.dataset import load_cases
from nacre.base.frozen import frozen
from nacre.errors import NotFoundError

LOCOMO_CATEGORIES = {
    1: "1 multi-hop",
    2: "2 temporal",
    3: "3 open-domain",
    4: "4 single-hop",
    5: "5 adversarial",
}
ADVERSARIAL = LOCOMO_CATEGORIES[5]
"""Questions about the wrong person, which total figures exclude."""

ANSWERED, FOREIGN, NEAR_MISS = "answered", "foreign", "near miss"
_FOREIGN_SHARE = 4
"""One in this number of another home's questions is asked."""

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_TIME_FORMATS = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%Y-%m-%d", "%Y/%m/%d")


@frozen
class BenchTurn:
    """A turn. ``role`` is user or assistant, ``author`` a person's name in suites with several people."""

    id: str
    role: str
    author: str | None
    text: str
    time: datetime | None


@frozen
class BenchSession:
    """A session with its turns in order, and its project if the suite names it."""

    id: str
    turns: tuple[BenchTurn, ...]
    project: str | None = None


@frozen
class BenchQuestion:
    """A question. ``turns`` or ``sessions`` is empty if the suite does not label them."""

    text: str
    category: str
    turns: frozenset[str]
    sessions: frozenset[str]
    asked: datetime | None = None


@frozen
class Haystack:
    """The sessions in one home, and its questions."""

    id: str
    sessions: tuple[BenchSession, ...]
    questions: tuple[BenchQuestion, ...]
    absent: tuple[str, ...] = ()
    """Questions without an answer."""

    @property
    def asked(self) -> datetime:
        """The time at which questions without a date are asked: after the last turn."""
        times = [turn.time for session in self.sessions for turn in session.turns if turn.time]
        return max(times, default=datetime(2026, 1, 1, tzinfo=UTC))


@frozen
class Suite:
    """A benchmark."""

    name: str
    haystacks: tuple[Haystack, ...]


def load_suite(name: str, data: Path) -> Suite:
    """Read a suite from a folder with benchmarks, or from the package. Raises NotFoundError."""
    if name == "coding":
        return Suite(name, (_read_coding(),))
    if name == "pile":
        return Suite(name, (_pile(data),))
    if name == "paraphrased":
        return Suite(name, tuple(_paraphrased(load_suite("longmemeval", data))))
    patterns, read = _SUITES[name]
    files = sorted({path for pattern in patterns for path in data.glob(pattern)})
    haystacks = tuple(haystack for path in files for haystack in read(path))
    if not haystacks:
        raise NotFoundError(
            f"no {name} data in {data}", hint=f"expected {' or '.join(patterns)} there"
        )
    return Suite(name, haystacks)


def _pile(data: Path) -> Haystack:
    haystacks: list[Haystack] = []
    for name in _SUITES:
        try:
            haystacks += load_suite(name, data).haystacks
        except NotFoundError:
            continue
    if not haystacks:
        raise NotFoundError(
            f"no benchmark data in {data}", hint=f"expected any of {', '.join(_SUITES)} there"
        )
    sessions = {session.id: session for haystack in haystacks for session in haystack.sessions}
    questions = tuple(
        BenchQuestion(
            question.text,
            _pile_category(haystack, question),
            question.turns,
            question.sessions,
            question.asked or haystack.asked,
        )
        for haystack in haystacks
        for question in haystack.questions
    )
    return Haystack("pile", tuple(sessions.values()), questions)


def _pile_category(haystack: Haystack, question: BenchQuestion) -> str:
    return ADVERSARIAL if question.category == ADVERSARIAL else haystack.id.partition("/")[0]


def questions_of(
    haystack: Haystack, other: Haystack, every: int = 1
) -> Iterator[tuple[str, BenchQuestion]]:
    """Yield the questions for a home, and whether it answers them."""
    answered = [
        question
        for question in haystack.questions
        if question.category != ADVERSARIAL and (question.turns or question.sessions)
    ]
    near = [question for question in haystack.questions if question.category == ADVERSARIAL]
    absent = [BenchQuestion(text, "absent", frozenset(), frozenset()) for text in haystack.absent]
    foreign = [
        question
        for question in other.questions[::_FOREIGN_SHARE]
        if other.id != haystack.id and question.category != ADVERSARIAL
    ]
    for question in answered[::every]:
        yield ANSWERED, question
    for sort, questions in ((FOREIGN, foreign), (NEAR_MISS, near + absent)):
        for question in questions[::every]:
            yield sort, replace(question, turns=frozenset(), sessions=frozenset())


# LoCoMo: two friends, about thirty sessions, evidence in turns.


def _read_locomo(path: Path) -> Iterator[Haystack]:
    for sample in json.loads(path.read_text(encoding="utf-8")):
        name = f"locomo/{sample['sample_id']}"
        sessions = tuple(_locomo_sessions(name, sample["conversation"]))
        turn_ids = {turn.id for session in sessions for turn in session.turns}
        questions = tuple(_locomo_question(name, question, turn_ids) for question in sample["qa"])
        yield Haystack(name, sessions, questions)


def _locomo_sessions(name: str, conversation: Mapping[str, Any]) -> Iterator[BenchSession]:
    numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        time = parse_date(conversation.get(f"session_{number}_date_time"))
        turns = tuple(
            BenchTurn(
                id=f"{name}/{turn['dia_id']}",
                role="user" if turn["speaker"] == conversation["speaker_a"] else "assistant",
                author=turn["speaker"],
                text=_with_photo(turn),
                time=time,
            )
            for turn in conversation[f"session_{number}"]
        )
        yield BenchSession(f"{name}/D{number}", turns)


def _with_photo(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shares a photo: {caption}]" if caption else str(turn["text"])


def _locomo_question(name: str, question: Mapping[str, Any], turn_ids: set[str]) -> BenchQuestion:
    turns = (
        frozenset(f"{name}/{place}" for place in parse_evidence(question.get("evidence") or ()))
        & turn_ids
    )
    sessions = frozenset(turn.rpartition(":")[0] for turn in turns)
    return BenchQuestion(
        str(question["question"]), LOCOMO_CATEGORIES[question["category"]], turns, sessions
    )


def parse_evidence(evidence: Iterable[object]) -> list[str]:
    """Return turn ids ``D<session>:<turn>`` in LoCoMo's evidence. A string can have several ids, or doubled colons."""
    return [
        f"D{int(session)}:{int(turn)}"
        for item in evidence
        for session, turn in _EVIDENCE.findall(str(item))
    ]


# LongMemEval: one person and an assistant. Answers are labelled with sessions, and with turns where
# one is marked.


def _read_longmemeval(path: Path) -> Iterator[Haystack]:
    for sample in json.loads(path.read_text(encoding="utf-8")):
        marked: set[str] = set()
        sessions = tuple(
            _longmemeval_session(f"longmemeval/{session_id}", turns, parse_date(date), marked)
            for session_id, date, turns in zip(
                sample["haystack_session_ids"],
                sample["haystack_dates"],
                sample["haystack_sessions"],
                strict=True,
            )
        )
        time = parse_date(sample.get("question_date"))
        questions = tuple(
            BenchQuestion(
                text, sample["question_type"], _marked_in(gold, sessions, marked), gold, time
            )
            for text, gold in _longmemeval_questions(sample)
        )
        yield Haystack(f"longmemeval/{sample['question_id']}", sessions, questions)


def _longmemeval_session(
    name: str, turns: Sequence[Mapping[str, Any]], time: datetime | None, marked: set[str]
) -> BenchSession:
    marked.update(f"{name}:{at}" for at, turn in enumerate(turns) if turn.get("has_answer"))
    return BenchSession(
        name,
        tuple(
            BenchTurn(f"{name}:{at}", turn["role"], None, turn["content"], time)
            for at, turn in enumerate(turns)
        ),
    )


def _longmemeval_questions(sample: Mapping[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield questions. The original has one question for each haystack, the shared-haystack edition several."""
    texts, golds = sample.get("questions"), sample["answer_session_ids"]
    if texts is None:
        texts, golds = [sample["question"]], [golds]
    for text, gold in zip(texts, golds, strict=True):
        yield text, frozenset(f"longmemeval/{session_id}" for session_id in gold)


def _marked_in(
    gold: frozenset[str], sessions: Sequence[BenchSession], marked: set[str]
) -> frozenset[str]:
    return frozenset(
        turn.id
        for session in sessions
        if session.id in gold
        for turn in session.turns
        if turn.id in marked
    )


def _paraphrased(original: Suite) -> Iterator[Haystack]:
    questions_of: dict[str, list[BenchQuestion]] = {}
    for question in load_cases(None, "paraphrased", dict[str, Any])["questions"]:
        turn = f"longmemeval/{question['turn']}"
        questions_of.setdefault(f"longmemeval/{question['haystack']}", []).append(
            BenchQuestion(
                question["question"],
                "paraphrased",
                frozenset({turn}),
                frozenset({turn.rpartition(":")[0]}),
            )
        )
    for haystack in original.haystacks:
        if haystack.id in questions_of:
            yield Haystack(haystack.id, haystack.sessions, tuple(questions_of[haystack.id]))


# DevMemBench: short coding sessions. Answers are labelled with sessions.


def _read_devmembench(path: Path) -> Iterator[Haystack]:
    sessions = tuple(
        BenchSession(
            f"devmembench/{session['sessionId']}",
            tuple(
                BenchTurn(
                    f"devmembench/{session['sessionId']}:{at}",
                    message["role"],
                    None,
                    message["content"],
                    parse_date(session.get("metadata", {}).get("date")),
                )
                for at, message in enumerate(session["messages"])
            ),
            session.get("metadata", {}).get("project"),
        )
        for session in json.loads(path.read_text(encoding="utf-8"))
    )
    questions = tuple(
        BenchQuestion(
            question["question"],
            question["questionType"],
            frozenset(),
            frozenset(f"devmembench/{session_id}" for session_id in question["haystackSessionIds"]),
        )
        for file in sorted(path.parent.glob("questions*.json"))
        for question in json.loads(file.read_text(encoding="utf-8"))
    )
    absent = tuple(question.text for question in questions if not question.sessions)
    yield Haystack("devmembench/all", sessions, questions, absent)


# Coding: our own suite, in the package.


def _read_coding() -> Haystack:
    data = load_cases(None, "coding", dict[str, Any])
    sessions = tuple(
        BenchSession(
            session["id"],
            tuple(
                BenchTurn(
                    f"{session['id']}:{at}",
                    turn["role"],
                    None,
                    turn["text"],
                    parse_date(session["date"]),
                )
                for at, turn in enumerate(session["turns"])
            ),
            session["project"],
        )
        for session in data["sessions"]
    )
    questions = tuple(
        BenchQuestion(
            question["question"],
            question["category"],
            frozenset(question["turns"]),
            frozenset(turn.partition(":")[0] for turn in question["turns"]),
            parse_date(question["asked"]),
        )
        for question in data["questions"]
    )
    return Haystack("coding/all", sessions, questions, tuple(data["absent"]))


def parse_date(text: str | None) -> datetime | None:
    """Parse a date in any suite's format as UTC. Return ``None`` if it is invalid."""
    for form in _TIME_FORMATS if text else ():
        try:
            return datetime.strptime(str(text).strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


_Reader = Callable[[Path], Iterator[Haystack]]
_SUITES: dict[str, tuple[tuple[str, ...], _Reader]] = {
    "locomo": (("locomo*.json", "locomo/*.json"), _read_locomo),
    "longmemeval": (("longmemeval*.json", "longmemeval/*.json"), _read_longmemeval),
    "devmembench": (("devmembench/sessions.json",), _read_devmembench),
}

SUITES = (*_SUITES, "paraphrased", "coding", "pile")
