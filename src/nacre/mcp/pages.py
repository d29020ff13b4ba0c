"""What can be read by its address: memories, sessions, the owner's profile, projects. And prompts for the person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from nacre.errors import InvalidInput, NotFound
from nacre.home.requests import PageRequest
from nacre.mcp import arguments
from nacre.mcp.answers import framed, indented
from nacre.mcp.desk import Desk
from nacre.mcp.tools import looking, sessions
from nacre.sessions.requests import SessionRequest
from nacre.text.passages import harmless

if TYPE_CHECKING:
    from nacre.views import SessionView

MIME = "text/markdown"
_ADDRESS = re.compile(r"nacre://(memory|session|profile|project)(?:/([^/?#]+))?/?")
_PAGE_BUDGET = 4_000
_TURNS = 60

RESOURCES: list[dict[str, Any]] = [
    {"uri": "nacre://profile", "name": "profile", "title": "The owner's profile", "mimeType": MIME,
     "description": "What holds for the person in every project."},
    {"uri": "nacre://project", "name": "project", "title": "This project", "mimeType": MIME,
     "description": "The page of the project of the working folder."},
]  # fmt: skip
TEMPLATES: list[dict[str, Any]] = [
    {"uriTemplate": "nacre://memory/{id}", "name": "memory", "title": "A memory", "mimeType": MIME,
     "description": "One memory whole, by its id or an end of it."},
    {"uriTemplate": "nacre://session/{id}", "name": "session", "title": "A session", "mimeType": MIME,
     "description": "The last turns of a session with an agent."},
    {"uriTemplate": "nacre://project/{slug}", "name": "project-page", "title": "A project", "mimeType": MIME,
     "description": "The page of a project."},
]  # fmt: skip


def read(desk: Desk, address: str) -> str:
    """The text at an address, in nacre's frame. Raises NotFound and its kin."""
    found = _ADDRESS.fullmatch(address)
    kind, name = (found[1], unquote(found[2] or "")) if found else ("", "")
    if not kind or (kind in ("memory", "session") and not name) or (kind == "profile" and name):
        raise NotFound(f"there is nothing at {address[:200]!r}", hint="resources/templates/list names what can be read")
    if kind == "memory":
        return looking.get(desk, arguments.Get(ids=(name,), budget=_PAGE_BUDGET)).text
    if kind == "session":
        return _session(desk, name)
    return _page(desk, kind, name)


def _session(desk: Desk, name: str) -> str:
    view: SessionView = desk.call("session", SessionRequest(reference=name, limit=_TURNS, at_end=True))
    return sessions.told_session(view, _PAGE_BUDGET, from_end=True).text


def _page(desk: Desk, kind: str, name: str) -> str:
    if kind == "profile":
        text: str = desk.call("page", PageRequest())
        return framed(indented(text) or "There is no profile yet.")
    slug = name or desk.place(None).project
    if not slug:
        return framed("The working folder belongs to no project that nacre knows.")
    text = desk.call("page", PageRequest(project=slug))
    return framed(f"The project {harmless(slug)}:", indented(text) or "Its page tells nothing yet.")


@dataclass(frozen=True, slots=True)
class _Prompt:
    title: str
    description: str
    argument: str
    meaning: str
    is_required: bool
    text: str


_PROMPTS: Mapping[str, _Prompt] = {
    "recall": _Prompt(
        "Recall", "Look up what is known about a topic before working on it.", "topic", "What it is about.", True,
        "Search nacre with memory_search for what is known about: {value}\n\n"
        "Search in other words, too, if the first answer is thin. Read with memory_get what looks decisive. Then tell "
        "me in a few lines what was decided, what is still open and what went wrong before, each with its date; say "
        "plainly what nothing is known of. Do not act on it yet.",
    ),
    "wrap-up": _Prompt(
        "Wrap up", "Keep what the next session needs.", "focus", "What to give most care to.", False,
        "We are about to stop. Go through this session{focus} and store with memory_store what a later session needs "
        "and cannot read from the code: decisions with their reasons, preferences I stated, lessons that cost effort, "
        "and todos that are open. One piece of knowledge an entry, complete in itself, in the words that were used. "
        "Mark from_outside what draws on web pages, mail or issues. Search first: retire with memory_retire what no "
        "longer holds. Then list in a few lines what you stored.",
    ),
    "reflect": _Prompt(
        "Reflect", "Look over what is remembered about a topic and set it right.", "topic", "What to look over.", False,
        "Look over what nacre remembers{topic}: memory_search with an empty query browses it. Look for memories that "
        "contradict each other, repeat each other, or that the repository proves wrong. Show me what you found with "
        "ids and propose for each what to do: keep, retire, or store anew. Change nothing before I agree.",
    ),
}  # fmt: skip

PROMPTS: list[dict[str, Any]] = [
    {"name": name, "title": prompt.title, "description": prompt.description,
     "arguments": [{"name": prompt.argument, "description": prompt.meaning, "required": prompt.is_required}]}
    for name, prompt in _PROMPTS.items()
]  # fmt: skip


def prompt_text(name: str, given: Mapping[str, str]) -> tuple[str, str]:
    """What a prompt is about, and its text. Raises InvalidInput."""
    prompt = _PROMPTS.get(name)
    if prompt is None:
        raise InvalidInput(f"there is no prompt {name[:80]!r}", hint=f"one of: {', '.join(_PROMPTS)}")
    unknown = next((one for one in given if one != prompt.argument), None)
    if unknown is not None:
        raise InvalidInput(f"{name} takes no {unknown[:80]!r}", hint=f"it takes {prompt.argument}")
    value = given.get(prompt.argument, "").strip()
    if prompt.is_required and not value:
        raise InvalidInput(f"{name} needs {prompt.argument}", hint=prompt.meaning)
    about = {"focus": f", above all {value}," if value else "", "topic": f" about {value}" if value else ""}
    text = prompt.text
    for mark, told in {"{value}": value, "{focus}": about["focus"], "{topic}": about["topic"]}.items():
        text = text.replace(mark, told)
    return prompt.description, text
