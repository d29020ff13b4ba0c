"""Asks: the words in which a model is asked, from files with a version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import accumulate

from nacre.extraction.by_model import layout
from nacre.extraction.by_model.answer import Answer, Changes, Outdateds
from nacre.extraction.by_model.later import Held, numbers
from nacre.extraction.by_model.layout import Chunk, as_data, framed
from nacre.llm.answers import schema_of
from nacre.platform.days import day_of, shown_day
from nacre.platform.json_text import quoted
from nacre.text.passages import one_line
from nacre.values.memory import Memory
from nacre.values.model_calls import Capabilities, Prompt, Task
from nacre.values.session import Session

VERSION, LATER_VERSION = "6", "1"
WHOLE, CHUNK, SEVERAL = "whole", "chunk", "several"
MEMORIES, CHANGES, LATER = "memories", "changes", "later"
"""What a prompt asks for."""

_EVIDENCE = (
    "Each names the turns that show it, by their numbers (the owner's turn, and the agent's that it answers), and "
    "quotes one of them letter by letter."
)
_CLOSING = f"Answer with the memories of this session; an empty list if there are none. {_EVIDENCE}"
_CLOSING_SEVERAL = (
    f"Answer with the memories of all these sessions in one list; an empty one if there are none. {_EVIDENCE} The "
    "turns of one memory are of one session."
)
_CLOSING_CHANGES = "Answer with the known memories that no longer hold as they stand; an empty list if there are none."
_ASKING_TOKENS = 2_500
_LEAST_CHUNK = 3_000
CHARACTERS_A_TOKEN = 3
"""Of code, which has more tokens than prose."""

_OF_WINDOW = 8
"""The part of a window that what is known may take."""

_OUTPUT = {WHOLE: 8_192, CHUNK: 4_096, SEVERAL: 8_192}


def for_transcript(
    way: str, session: Session, chunk: Chunk, known: Sequence[Memory], able: Capabilities, seconds: float
) -> Prompt:  # fmt: skip
    """What asks for the memories of a session (``whole``) or of a part of one (``chunk``), beside what is ``known``."""
    return _asking(way, f"{_head(session)}{chunk.text}\n\n{_CLOSING}", known, able, seconds)


def for_sessions(
    shown: Sequence[tuple[Session, Chunk]], known: Sequence[Memory], able: Capabilities, seconds: float
) -> Prompt:
    """What asks for the memories of several sessions at once, each with its numbers."""
    text = "\n\n".join(f"{_head(session)}{chunk.text}" for session, chunk in shown)
    return _asking(SEVERAL, f"{text}\n\n{_CLOSING_SEVERAL}", known, able, seconds)


def for_changes(
    shown: Sequence[tuple[Session, Chunk]], known: Sequence[Memory], able: Capabilities, seconds: float
) -> Prompt:
    """What asks which ``known`` memories no longer hold as they stand, once these sessions are over."""
    text = "\n\n".join(f"{_head(session)}{chunk.text}" for session, chunk in shown)
    return Prompt(
        task=Task.EXTRACTION, system=_words(CHANGES), shared=f"{_listed(known)}\n",
        text=f"{text}\n\n{_CLOSING_CHANGES}", answer=schema_of(Changes), name=CHANGES, version=f"changes/{VERSION}",
        output_tokens=_room_for_answer(CHUNK, able), timeout_seconds=seconds,
    )  # fmt: skip


def for_later(held: Sequence[Held], able: Capabilities, seconds: float) -> Prompt:
    """What asks which memories no longer hold as they stand, each beside what was said later."""
    text = "\n\n".join("\n".join(map(quoted, block)) for block in _beside(held))
    return Prompt(
        task=Task.EXTRACTION, system=_words(LATER, LATER_VERSION), text=text, answer=schema_of(Outdateds), name=LATER,
        version=f"later/{LATER_VERSION}", output_tokens=_room_for_answer(CHUNK, able), timeout_seconds=seconds,
    )  # fmt: skip


def _beside(held: Sequence[Held]) -> Iterator[list[dict[str, object]]]:
    """Each memory, and below it what was said later; ``also`` are the numbers of what stands further up already."""
    number_of = numbers(held)
    shown: set[int] = set()
    for number, (memory, sayings) in enumerate(((one.memory, one.sayings) for one in held), 1):
        own = {number_of[one]: one for one in sayings}
        also = sorted(own.keys() & shown)
        told = {"memory": number, "kind": memory.kind.value, "day": _day(memory.last_said), "text": memory.content}
        fresh: list[dict[str, object]] = [
            {"number": at, "day": _day(one.at), "speaker": one.speaker.value, "said": one.text}
            for at, one in own.items() if at not in shown
        ]  # fmt: skip
        shown |= own.keys()
        yield [{**told, **({"also": also} if also else {})}, *fresh]


def _day(at: datetime) -> str:
    return shown_day(at)


def _asking(way: str, text: str, known: Sequence[Memory], able: Capabilities, seconds: float) -> Prompt:
    return Prompt(
        task=Task.EXTRACTION, system=_words("system"), shared=f"{_words(way)}{_known_already(known)}", text=text,
        answer=schema_of(Answer), name=MEMORIES, version=f"extraction/{VERSION}",
        output_tokens=_room_for_answer(way, able), timeout_seconds=seconds,
    )  # fmt: skip


def chunk_size(able: Capabilities) -> int:
    """Characters of a part of a session: 12,000, of a known model as many as a digest has room for, or what a small
    window has room for beside the words that ask.
    """
    left = able.window - _room_for_answer(CHUNK, able) - _ASKING_TOKENS
    most = layout.DIGEST_TOKENS * CHARACTERS_A_TOKEN if able.known else layout.CHUNK
    return max(_LEAST_CHUNK, min(most, left * CHARACTERS_A_TOKEN))


def _room_for_answer(way: str, able: Capabilities) -> int:
    return min(_OUTPUT[way], able.output, able.window // 4)


def room_for(able: Capabilities, output_tokens: int) -> int:
    """Tokens of a window that are left for what is shown, beside the words that ask and the answer."""
    return max(_LEAST_CHUNK // CHARACTERS_A_TOKEN, able.window - output_tokens - _ASKING_TOKENS)


def with_room(memories: Sequence[Memory], able: Capabilities) -> tuple[Memory, ...]:
    """The first of the memories that are known, as many as an eighth of a window holds."""
    ends = accumulate(len(_line(one)) for one in memories)
    room = able.window * CHARACTERS_A_TOKEN // _OF_WINDOW
    return tuple(one for one, end in zip(memories, ends, strict=True) if end <= room)


def _known_already(memories: Sequence[Memory]) -> str:
    """Memories that are stored, as they stand in a prompt; nothing without any."""
    if not memories:
        return ""
    return f"{_words('known')}{_listed(memories)}\n"


def _listed(memories: Sequence[Memory]) -> str:
    return framed("memories", "\n".join(f"[k{number}] {_line(one)}" for number, one in enumerate(memories, 1)))


def _line(memory: Memory) -> str:
    return f"{memory.kind.value}, {day_of(memory.last_said)}: {as_data(one_line(memory.content))}"


def _head(session: Session) -> str:
    began = f", begun on {shown_day(session.started)}" if session.started else ""
    return f"A session of {as_data(one_line(session.tool))}{began}.\n\n"


@cache
def _words(name: str, version: str = VERSION) -> str:
    return (files(__package__) / "prompts" / f"{name}-{version}.md").read_text(encoding="utf-8")
