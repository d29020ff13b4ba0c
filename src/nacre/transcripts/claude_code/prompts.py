"""What in a Claude Code prompt the owner typed, and what the harness put there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from nacre.transcripts.claude_code.forms import Answer, answered
from nacre.transcripts.claude_code.records import BLOCKS, Block, decode_raw, is_string
from nacre.transcripts.claude_code.sessions import TOOL
from nacre.transcripts.injected import clean
from nacre.transcripts.phrases import is_tools
from nacre.values.session import Flag

Asked = Mapping[str, Sequence[str]]
"""The questions of a form, each with its options."""

_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]{0,40}\]")
_PLAN = "Implement the following plan:"
_FEEDBACK = "\n\nUser feedback on this plan: "
_PROMPT_COMMAND = "<command-message>"
"""Commands that are prompts begin so; those for the host itself, as ``/model``, begin with their name."""
_QUEUED_COMMAND = re.compile(r"/[\w:-]+(?: |$)")
_TITLE_CHARACTERS = 200
_ANSWERED = re.compile(r'"((?:[^"\\]|\\.)+)"\s*=\s*"((?:[^"\\]|\\.)*)"')
_LISTED = re.compile(r'^- "([^\n]+)"\n[ \t]+Answer: ([^\n]+)$', re.MULTILINE)
_REJECTED = "The user doesn't want to proceed"
_REJECTION_WORDS = re.compile(r"the user said:\s*\n(.*)", re.DOTALL)


def content_of(content: msgspec.Raw) -> tuple[str, list[Block], list[Block]]:
    """The text a message's content holds, the tool results in it, and the blocks of which the text is."""
    if is_string(content):
        return decode_raw(content, str) or "", [], []
    blocks = decode_raw(content, BLOCKS) or []
    said = [block for block in blocks if block.type == "text" and block.text and _is_said(block.text)]
    texts = [block.text for block in said if block.text]
    return "\n\n".join(texts), [block for block in blocks if block.type == "tool_result"], said


def _is_said(text: str) -> bool:
    return not text.startswith("<ide_")


def interruption(text: str) -> tuple[str, str]:
    """The host's note that the owner stopped the agent, if a prompt begins with one, and the rest."""
    note = _INTERRUPTED.match(text)
    return (note[0], text[note.end() :].strip()) if note else ("", text)


def plan_of(text: str, accepted: str | None = None) -> tuple[str, str, str]:
    """What the owner chose, the plan, and what they said of it: the agent wrote it, and the host hands it over as the
    first prompt. Where the record names the plan that was ``accepted``, what follows it is the host's, and the
    owner's words at its end.
    """
    head, _, rest = text.partition("\n\n")
    plan, words = rest.strip(), ""
    if head.strip() != _PLAN or not plan:
        return "", "", ""
    if accepted and plan.startswith(accepted.strip()):
        words = plan.removeprefix(accepted.strip()).partition(_FEEDBACK)[2].strip()
        plan = accepted.strip()
    title = plan.partition("\n")[0]
    return f"{_PLAN}\n\n{title[:_TITLE_CHARACTERS]}", plan, words


def rejection(content: msgspec.Raw, beside: msgspec.Raw) -> str | None:
    """What the owner said when declining a call, as the host tells it in place of its result; ``None`` where nobody
    declined it. The host tells it in a string, and keeps no more than a string ``beside`` it: what holds blocks or an
    object, a tool put out that ran.
    """
    output = (decode_raw(content, str) or "") if is_string(content) else ""
    if not output.startswith(_REJECTED) or not (is_string(beside) or bytes(beside) == b"null"):
        return None
    words = _REJECTION_WORDS.search(output)
    return words[1].strip() if words else ""


def answers_in(output: str, asked: Asked, beside: msgspec.Raw) -> list[Answer]:
    """Questions of a form that was ``asked`` with the owner's answers: those ``beside`` the result where the host keeps
    them there, else as it tells them. A question may hold what looks like another one with its answer.
    """
    kept = (decode_raw(beside, dict) or {}).get("answers")
    pairs = list(kept.items()) if isinstance(kept, dict) else _ANSWERED.findall(output)
    return _of_those_asked(pairs, asked)


def listed_answers(text: str, asked: Asked) -> list[Answer]:
    """The same as the host lists them when the owner would rather talk, or is done; the rest of that is the host's."""
    return _of_those_asked(_LISTED.findall(text), asked)


def _of_those_asked(pairs: Iterable[tuple[str, object]], asked: Asked) -> list[Answer]:
    """Those of questions that were asked: of one that comes twice nobody can tell which answer is the owner's."""
    found = [(question, answer) for question, answer in pairs if question in asked]
    times = Counter(question for question, _ in found)
    return [
        answered(question, answer, asked[question]) for question, answer in found
        if times[question] == 1 and isinstance(answer, str) and answer.strip()
    ]  # fmt: skip


def typed_ahead(text: str) -> tuple[str, Flag]:
    """What the owner typed while the agent worked. A command alone is told of where it runs."""
    words, flags = typed(text)
    command = _QUEUED_COMMAND.match(words)
    if not command:
        return words, flags
    return ("", Flag.META) if command[0] == words else (words, flags | Flag.COMMAND)


def typed(text: str) -> tuple[str, Flag]:
    """What the owner typed in a prompt, and whether it was a command; empty for what the harness wrote."""
    cleaned = clean(text)
    text = cleaned.text
    flags = Flag.INJECTED if cleaned.injected else Flag.NONE
    command = _inside(text, "command-name") if text.startswith("<command-") else None
    if command is not None:
        words = _inside(text, "command-args")
        if not (words or text.startswith(_PROMPT_COMMAND)):
            return "", Flag.META
        return f"/{command.removeprefix('/')} {words or ''}".rstrip(), flags | Flag.COMMAND
    shell = _inside(text, "bash-input") if text.startswith("<bash-input>") else None
    if shell is not None:
        return f"! {shell}", flags | Flag.META
    return ("", Flag.META) if is_tools(TOOL, text) else (text, flags)


def _inside(text: str, tag: str) -> str | None:
    """What the first pair of tags encloses; an expression would look for the end again from every beginning."""
    _, _, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside.strip() if closed else None
