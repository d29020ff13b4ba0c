"""Memories that are written alike: one of them stays.

Whoever looks at what a dream did was not there: so only what reads the same is the same. Words in another order, in
another case, another sign or a small word more are another statement.
"""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import combinations
from typing import Any

import msgspec

from nacre.base.ids import bytes_hash, content_hash
from nacre.base.text import count, harmless, identifiers, shorten, words, written
from nacre.base.times import shown_day
from nacre.errors import MemoryInvalid, NacreError, VaultUnusable
from nacre.home.change import Page as change_Page
from nacre.home.change import page_path
from nacre.home.home import Home
from nacre.home.location import locate, without_secrets
from nacre.home.projects import (
    REFERENCE_CHARACTERS,
    as_line,
    is_current,
    is_session,
    memory_named,
    references_of,
    rests_on_what_holds,
)
from nacre.hosts.files import blocks_of, drop_blocks, put_block
from nacre.learn.sentences import language_of
from nacre.llm import minilm
from nacre.llm.local_model import calibration_of
from nacre.memories import projects
from nacre.memories.projects import evidence
from nacre.memories.statements import negations, new_word, read, swaps, whole_numbers
from nacre.memories.usage import is_protected
from nacre.recall.question import is_common_name
from nacre.review.consolidate import DreamAction, PageDraft, Promotion, Step
from nacre.sessions.topics import summarise
from nacre.values.memory import Expiry, Intent, Kind, Memory, SessionFilter, TombstoneKind
from nacre.values.review import Usage
from nacre.values.session import SessionKind, Speaker, StoredSession, Summary, Topic
from nacre.vault import files
from nacre.vault.documents import load, split
from nacre.vault.files import LEDGER, normalise_remote


def repeated(
    memories: Iterable[Memory], usage: Mapping[str, Usage], protected: Sequence[str]
) -> list[Step]:
    """What goes into another memory: of one kind and place, and written alike. What is protected may only stay."""
    groups: dict[tuple[object, ...], list[Memory]] = defaultdict(list)
    for memory in memories:
        groups[memory.kind, memory.project, memory.inbox, written(memory.content)].append(memory)
    found = []
    for group in groups.values():
        keeper, *others = sorted(
            group, key=lambda one: (is_protected(one, protected), *weight(one, usage)), reverse=True
        )
        ends = tuple(
            one.id for one in others if holds(keeper, one) and not is_protected(one, protected)
        )
        if ends:
            found.append(
                Step(DreamAction.MERGE, ends, keeper.id, keeper.subject, "they are written alike")
            )
    return found


def holds(keeper: Memory, one: Memory) -> bool:
    """Whether nothing is lost with a memory: it says nothing else, and neither more surely nor of another time."""
    is_as_sure = is_told_alike(keeper, one) and is_owners(keeper) >= is_owners(one)
    return is_as_sure and written(keeper.content) == written(one.content)


def is_told_alike(one: Memory, other: Memory) -> bool:
    """Whether two memories are as sure, hold as long, and are told to the same people in the same places."""
    keys = {one.canonical_key, other.canonical_key} - {None}
    return len(keys) < 2 and _told(one) == _told(other)


def _told(one: Memory) -> tuple[object, ...]:
    return (
        one.trust,
        one.proposed,
        one.scope,
        one.valid,
        one.expiry,
        one.expires_on,
        set(one.triggers),
        set(one.suppressed_contexts),
    )


def weight(memory: Memory, usage: Mapping[str, Usage]) -> tuple[Any, ...]:
    """Who stays, the highest: the owner's word, then what was said and recalled most, then the latest (seed facts
    1.4)."""
    used = usage.get(memory.id, Usage())
    said = len(memory.confirmed) + used.recall_count
    return memory.is_vouched, is_owners(memory), said, memory.last_said, memory.id


def is_owners(memory: Memory) -> bool:
    """Whether the owner said it."""
    return memory.speaker is Speaker.OWNER


# ----------------------------------------------------------------------------
# Memories that may say the same, in small groups: what a writer is to look at together.


MERGED = "merged"
"""The front-matter key of a memory whose words a writer made of several: who, when, of which, and why."""

MOST_TOGETHER = 8
"""Memories of a cluster (seed facts 1.4)."""

_MOST_SEEN = 20_000
_RESTS = timedelta(days=7)
"""So long nobody looks again at what was merged (seed facts 1.4)."""

_LONGEST = 1_500
_CLAIMS = frozenset({Kind.FACT, Kind.DECISION, Kind.PREFERENCE, Kind.LESSON, Kind.RELATIONSHIP})
_ASKED = 500

Cluster = tuple[Memory, ...]


def clusters(home: Home, memories: Sequence[Memory]) -> list[Cluster]:
    """Groups of vouched memories near in meaning, the nearest first: of one place, meant for as long, of kinds that may
    say the same.

    Every member is as near to every other as makes a model worth asking (``Calibration.ask_more``): with a chain of
    neighbours, its ends say different things (the seed's diameter floor). Empty without vectors.
    """
    protected = home.settings.texts("forgetting.protect")
    eligible = [memory for memory in memories if _is_eligible(memory, home.now(), protected)]
    by_row = _by_row(home, eligible[-_MOST_SEEN:])
    limits = calibration_of(home.vectors.model(), home.vectors.seen())
    pairs = home.vectors.near_pairs(list(by_row), least=limits.ask_more)
    near = [pair for pair in pairs if may_be_one(by_row[pair[0]], by_row[pair[1]])]
    return [tuple(by_row[row] for row in sorted(group)) for group in _linked_completely(near)]


def _is_eligible(memory: Memory, now: datetime, protected: Sequence[str]) -> bool:
    is_kept = memory.expiry is Expiry.CORE or is_protected(memory, protected)
    return (
        memory.is_vouched
        and not is_kept
        and len(memory.content) <= _LONGEST
        and not _rests(memory, now)
    )


def _by_row(home: Home, memories: Sequence[Memory]) -> dict[int, Memory]:
    found: dict[int, Memory] = {}
    for start in range(0, len(memories), _ASKED):
        found |= home.memories.rows_of([memory.id for memory in memories[start : start + _ASKED]])
    return found


def may_be_one(one: Memory, other: Memory) -> bool:
    """Whether nothing but their words can tell two memories apart."""
    of_one_kind = one.kind is other.kind or {one.kind, other.kind} <= _CLAIMS
    return of_one_kind and one.shares_place(other) and is_told_alike(one, other)


def _rests(memory: Memory, now: datetime) -> bool:
    noted = memory.extra.get(MERGED)
    day = noted.get("at") if isinstance(noted, dict) else None
    try:
        return isinstance(day, str) and now - datetime.fromisoformat(day) < _RESTS
    except (TypeError, ValueError):
        return False


def _linked_completely(pairs: Sequence[tuple[int, int, float]]) -> Iterator[list[int]]:
    """Groups of two and more in which every pair is among ``pairs``, joined in their order."""
    joined = {frozenset(pair[:2]) for pair in pairs}
    group_of: dict[int, list[int]] = {}
    for one, other, _ in pairs:
        first, second = group_of.setdefault(one, [one]), group_of.setdefault(other, [other])
        if first is second or len(first) + len(second) > MOST_TOGETHER:
            continue
        if all(frozenset((mine, theirs)) in joined for mine in first for theirs in second):
            first += second
            group_of |= dict.fromkeys(second, first)
    seen: defaultdict[int, int] = defaultdict(int)
    for one, _, _ in pairs:
        group = group_of[one]
        seen[id(group)] += 1
        if seen[id(group)] == 1 and len(group) > 1:
            yield group


def fingerprint(cluster: Sequence[Memory]) -> str:
    """What tells a cluster from any other, and from itself with other words."""
    parts = sorted(f"{one.id}\0{one.kind}\0{one.content}" for one in cluster)
    return content_hash("\0".join(parts)).hex()[:16]


# ----------------------------------------------------------------------------
# What code can know of what a writer proposes: everything else is for a second look to judge.


_NUMBER = re.compile(r"\d+")
_WHOLE_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:[.,:/-]\d+)*")
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_OF_CODE = re.compile(r"[/._\\@=()]|::")
_MOST_ADDED = 100
_DENIAL = r"not|never|cannot|\w+n['’]t|nicht|nie|niemals|kein\w*|pas|jamais|nunca|jamás|não"
_DENIES = re.compile(rf"\b(?:{_DENIAL})\b|不|别|没|禁止", re.IGNORECASE)
_NARROWS = re.compile(
    rf"\b(?:{_DENIAL}|no|none|nobody|nothing|nowhere|neither|nor|without|avoid|leave out|only|except|lack\w*|ohne|nur"
    r"|sans|sin|sem)\b|不|别|没|无|禁止|只|仅",
    re.IGNORECASE,
)
"""What denies something, and all that may stand for a denial in a line that sums up."""


def mark(memories: Iterable[Memory]) -> str:
    """What a step rests on: it is void when this is another."""
    parts = [
        f"{memory.id}\0{memory.kind}\0{memory.content}\0{memory.speaker}\0{memory.trust}"
        for memory in memories
    ]
    return content_hash("\0".join(parts)).hex()[:16]


def unfit(step: Step, memories: Mapping[str, Memory]) -> str | None:
    """What speaks against a writer's step; ``None`` where nothing does that code can know."""
    named = [memories[one] for one in (step.into or "", *step.ends)]
    if step.mark != mark(named):
        return "they have changed since"
    if not all(may_be_one(named[0], one) for one in named[1:]):
        return "they are not of one place, trust and time"
    if any(is_owners(one) and not is_owners(named[0]) for one in named[1:]):
        return "an agent's words would stand for the owner's"
    return (
        _unlike_a_merge(step, named) if step.action is DreamAction.MERGE else _unlike_an_end(named)
    )


def _unlike_an_end(named: Sequence[Memory]) -> str | None:
    """What ends others was said after them. What happened stays true."""
    later, *earlier = named
    if any(one.kind in (Kind.EVENT, Kind.TODO) for one in named):
        return "what happened stays true, and a todo ends when it is done"
    if not all((said(one), one.id) < (said(later), later.id) for one in earlier):
        return "it was said later"
    return None


def said(memory: Memory) -> datetime:
    """When a memory was said last; that it was edited since says nothing."""
    return max((memory.created, *(one.at for one in memory.confirmed)))


def _unlike_a_merge(step: Step, named: Sequence[Memory]) -> str | None:
    """No number, option, path or name of code of any may be missing."""
    if step.words and len({one.speaker for one in named}) > 1:
        return "the owner and an agent said them"
    words, sources = step.words or named[0].content, [one.content for one in named]
    if len(words) > sum(map(len, sources)) + _MOST_ADDED:
        return "the words are more than all of theirs"
    for source in sources:
        if missing := _missing(source, words):
            return f"the words leave out {missing}"
    return _unlike_in_new_words(words, sources) if step.words else None


def unlike_sources(words: str, sources: Sequence[str]) -> str | None:
    """What a line says that sums up others has no number, option, path, name and no denial of its own; ``None`` where
    that is so. It loses no denial that all of them have."""
    there = "\n".join(sources)
    if (
        added := _new_number(words, there)
        or _missing(words, there)
        or _new_name(words, there)
        or swaps(words, sources)
    ):
        return f"the line adds {added}"
    if _DENIES.search(words) and not _NARROWS.search(there):
        return "the line adds a denial"
    is_denied = all(map(_DENIES.search, sources))
    return "the line loses a denial" if is_denied and not _NARROWS.search(words) else None


def _new_name(words: str, there: str) -> str | None:
    """A name within a sentence that the sources do not have in any form."""
    known = {word.stem for word in read(there).tokens}
    names = (one for one in read(words).tokens if one.is_name)
    return next(
        (
            one.text
            for one in names
            if one.stem not in known and one.text.lower() not in there.lower()
        ),
        None,
    )


def _new_number(words: str, there: str) -> str | None:
    numbers = set(_WHOLE_NUMBER.findall(whole_numbers(there)))
    return next(
        (one for one in _WHOLE_NUMBER.findall(whole_numbers(words)) if one not in numbers), None
    )


def _unlike_in_new_words(words: str, sources: Sequence[str]) -> str | None:
    """What is written anew has no word with a topic, no number as a whole, no denial and no order of things of its
    own."""
    there = "\n".join(sources)
    new = _new_number(words, there)
    added = new or _missing(words, there) or new_word(words, sources) or swaps(words, sources)
    if added:
        return f"the words add {added}"
    return (
        "the words lose or add a denial"
        if bool(negations(words)) != bool(negations(there))
        else None
    )


def _missing(text: str, there: str) -> str | None:
    """What stands in a text to the letter and in another one not: a number, an option of a command, a path or a name of
    code. Whether other words say the same is for who reads."""
    text, there = whole_numbers(text), whole_numbers(there)
    numbers = {one.lstrip("0") for one in _NUMBER.findall(there)}
    options = set(_OPTION.findall(there))
    names = (one.rstrip(".") for one in identifiers(text) if _OF_CODE.search(one.rstrip(".")))
    absent = (
        *(one for one in _NUMBER.findall(text) if one.lstrip("0") not in numbers),
        *(one for one in _OPTION.findall(text) if one not in options),
        *(one for one in names if one.lower() not in there.lower()),
    )
    return next(iter(absent), None)


# ----------------------------------------------------------------------------
# A page of the vault: a person's text, and between two marks a part that nacre writes, in sections of
# lines.


PROFILE = "profile.md"
"""Where the owner's profile lies in the vault."""

UNREADABLE = (FileNotFoundError, UnicodeDecodeError, MemoryInvalid, VaultUnusable)

_NOTE = "*`nacre dream` writes this part anew; what you write outside of it stays.*"
_HEADING = "## "
_NO = frozenset({"false", "no", "off"})

Section = tuple[str, tuple[str, ...]]
"""A heading of nacre's part, and the lines below it."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it is, the part of it that nacre wrote, and whether its owner wants one. ``hash`` is ``None`` where
    there is no file yet."""

    text: str
    part: str
    hash: bytes | None
    is_wanted: bool

    @property
    def mark(self) -> str:
        """What tells this text from any other."""
        return self.hash.hex() if self.hash else ""


def path_of(project: str) -> str:
    """Where the page of a project lies; the profile where ``project`` is empty."""
    return page_path(project) if project else PROFILE


def read_page(home: Home, project: str) -> Page:
    """The page of a project, or the profile, which may not be there yet. Raises what ``UNREADABLE`` lists."""
    path = path_of(project)
    if not project and not home.vault.exists(path):
        return Page("", "", None, is_wanted=True)
    data = home.vault.read(path)
    text = data.decode("utf-8")
    front = load(split(text)[0] or "")
    return Page(
        text,
        "\n\n".join(blocks_of(text)).replace("\r\n", "\n"),
        bytes_hash(data),
        wants_dreams(front),
    )


def wants_dreams(front_matter: Mapping[str, Any]) -> bool:
    """Whether the owner of a page lets dreams change it: ``dreams: false`` forbids it."""
    return str(front_matter.get("dreams") or "").lower() not in _NO


def page_write(home: Home, project: str, words: str) -> Intent:
    """The write of a page: nacre's part at its place, else at the end, and not a byte more; without words it goes.

    The page is as planned.
    """
    page = read_page(home, project)
    former = page.text if page.hash else None
    text = put_block(page.text, words) if words else drop_blocks(page.text)
    return Intent("write", path_of(project), text, page.hash, former=former)


def sections_of(part: str) -> list[Section]:
    """The sections of nacre's part; what stands before the first heading is in none."""
    found: list[tuple[str, list[str]]] = []
    for line in part.splitlines():
        if line.startswith(_HEADING):
            found.append((line.removeprefix(_HEADING).strip(), []))
        elif line.startswith("- "):
            found = found or [("", [])]
            found[-1][1].append(line)
    return [(title, tuple(lines)) for title, lines in found]


def composed(sections: Sequence[Section]) -> str:
    """Nacre's part of a page; sections without lines are left out."""
    filled = [(title, lines) for title, lines in sections if lines]
    parts: list[str] = []
    for number, (title, lines) in enumerate(filled):
        parts += ["", f"{_HEADING}{title}", ""] if number else [f"{_HEADING}{title}", "", _NOTE, ""]
        parts += lines
    return "\n".join(parts)


def plain_words(text: str, characters: int) -> str:
    """Words as one line that is nothing but words in Markdown."""
    return shorten(harmless(text), characters).replace("<", "&lt;").replace("[[", "\\[\\[")


# ----------------------------------------------------------------------------
# Two projects that are one, by what their pages list: the one that goes becomes a part of the other.
#
# Code decides alone. No writer is asked: what a remote, a folder or an alias says is no question of
# understanding, and
# names that are merely alike are no evidence, however alike anybody finds them.


JOINS_A_NIGHT = 1
"""Projects that one dream joins to others: each touches all memories of one."""

_ENTRY = re.compile(rb'"action": ?"project-merge"')

Pages = Mapping[str, change_Page | None]


def joined(home: Home, project: str | None) -> list[Step]:
    """The projects to be joined, each into another one; with ``project``, only where it is one of both."""
    known = dict(_readable(home, projects.known_slugs(home)))
    weights = _weights(home, known)
    before = set(_joined_before(home))
    found = []
    for one, other in sorted(_pairs(known)):
        if project is None or project in (one, other):
            source, into = _direction(known, weights, one, other)
            step = _step(home, source, into, known)
            if step and not _is_brought_back(known, before, source, into):
                found.append(step)
        if len(found) == JOINS_A_NIGHT:
            break
    return found


def join_objection(home: Home, step: Step) -> str | None:
    """What speaks against joining two projects, as they are now; ``None`` where nothing does."""
    known = dict(_readable(home, (step.subject, step.project)))
    is_there = len(known) == 2 and step.subject in projects.known_slugs(home)
    present = _step(home, step.subject, step.project, known) if is_there else None
    if present is None:
        return "nothing says any more that they are one"
    return None if present.mark == step.mark else "one of their pages was edited since"


def _step(home: Home, source: str, into: str, known: Pages) -> Step | None:
    page, other = known[source], known[into]
    found = evidence(home, (source, page), (into, other))
    is_wanted = all(wants_dreams(one.values) for one in (page, other) if one)
    if not found or not is_wanted or projects.objection(home, source, into):
        return None
    mark = ":".join(one.hash.hex() if one else "" for one in (page, other))
    return Step(DreamAction.JOIN, (), None, source, "; ".join(found), mark=mark, project=into)


def _readable(home: Home, slugs: Iterable[str]) -> Iterator[tuple[str, change_Page | None]]:
    for slug in slugs:
        try:
            yield slug, projects.page_of(home, slug)
        except NacreError:  # a person has to mend it first
            continue


def _pairs(known: Pages) -> set[tuple[str, str]]:
    """The projects that may be one: pages that list the same, or one of which names the other."""
    holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for slug, page in known.items():
        facts = projects.facts(page)
        holders["name", slug].add(slug)
        for key, name in (("remotes", "remote"), ("roots", "root"), ("aliases", "name")):
            for value in facts.get(key, ()):
                holders[name, value].add(slug)
        for root in facts.get("roots", ()):
            if os.path.isfile(os.path.join(root, ".git")):
                holders["root", locate(root).root or root].add(slug)
    return {pair for slugs in holders.values() for pair in combinations(sorted(slugs), 2)}


def _direction(
    known: Pages, weights: Mapping[str, tuple[int, str]], one: str, other: str
) -> tuple[str, str]:
    """Which goes into which: the one that the other's page names as its own, else the smaller, else the younger."""
    is_named = one in projects.facts(known[other]).get("aliases", ())
    names_it = other in projects.facts(known[one]).get("aliases", ())
    if is_named != names_it:
        return (one, other) if is_named else (other, one)
    (size, made), (its_size, its_made) = weights[one], weights[other]
    goes_first = (size, its_made) < (its_size, made)
    return (one, other) if goes_first else (other, one)


def _weights(home: Home, known: Pages) -> dict[str, tuple[int, str]]:
    """How much each project holds, and its id, which begins with the time at which it was made."""
    memories, sessions = home.project_contents.memories(), home.project_contents.sessions()
    sizes = {
        slug: memories.get(slug, (0, None))[0] + sessions.get(slug, (0, None))[0] for slug in known
    }
    return {
        slug: (sizes[slug], str(page.values.get("id") or "") if page else "")
        for slug, page in known.items()
    }


def _is_brought_back(known: Pages, before: set[tuple[str, str]], source: str, into: str) -> bool:
    """Whether both were joined once, and that was taken back: what the page of the one that stayed says no more."""
    was_joined = {(source, into), (into, source)} & before
    is_taken_back = known[source] is not None and source not in projects.facts(known[into]).get(
        "aliases", ()
    )
    return bool(was_joined) and is_taken_back


def _joined_before(home: Home) -> Iterator[tuple[str, str]]:
    try:
        data = home.vault.read(LEDGER)
    except FileNotFoundError:
        return
    for entry in files.read_about(data, _ENTRY):
        if entry.action == projects.MERGE:
            yield str(entry.details.get("project")), str(entry.details.get("into"))


# ----------------------------------------------------------------------------
# Which known projects a text names: by a name that can mean nothing else, a path below a root, a
# remote.


_LEAST_CHARACTERS = 3
_LEAST_PARTS = 2
_PATH = re.compile(r"(?<![\w.:/\\~-])(?:~[/\\]|/|[A-Za-z]:[/\\])[^\s\"'`<>()\[\],;:*?]+")
_ADDRESS = re.compile(r"[^\s\"'`<>()\[\],;]+")
_SORTS = "project|repo|repository|codebase|Projekt|projet|proyecto|progetto|projeto"
_BESIDE = "项目|仓库|代码库|プロジェクト|リポジトリ"

Named = tuple[str, str]
"""A project's slug, and what in the text names it; empty where that may mean something else."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A name of a project: where a text holds it, and where it can mean nothing else."""

    held: re.Pattern[str]
    sure: re.Pattern[str]
    name: str
    slug: str


@dataclass(frozen=True)
class ProjectNames:
    """Whatever resolves to the known projects, as a text may spell it."""

    home: Home

    def named(self, text: str) -> dict[str, str]:
        """The projects that a text names, each with what names it; that is empty where it may mean something else."""
        found: dict[str, str] = {}
        for slug, said in (*self._by_remote(text), *self._by_path(text), *self._by_name(text)):
            found[slug] = found.get(slug) or said
        return found

    def _by_name(self, text: str) -> Iterator[Named]:
        for one in self._names:
            if one.held.search(text):
                is_sure = one.sure.search(text) and not self._is_spoken_of_elsewhere(one)
                yield one.slug, f"names {one.name}" if is_sure else ""

    def _is_spoken_of_elsewhere(self, name: _Name) -> bool:
        """Whether memories of another project hold a name: that of a library, of a service that others call."""
        if name not in self._spoken_of:
            others = (text for project, text in self._filed if project != name.slug)
            self._spoken_of[name] = any(map(name.held.search, others))
        return self._spoken_of[name]

    def _by_path(self, text: str) -> Iterator[Named]:
        user_home = _plain_path(str(self.home.settings.user_home))
        for said in _PATH.findall(text):
            path = _plain_path(user_home + said[1:] if said.startswith("~") else said)
            above = [
                root
                for root in self._roots
                if f"{path}/".startswith(f"{root[0]}/") and root[0] != user_home
            ]
            nearest = max((root for root, _ in above), key=len, default=None)
            yield from (
                (slug, f"names a path of it, below {root}")
                for root, slug in above
                if root == nearest
            )

    def _by_remote(self, text: str) -> Iterator[Named]:
        for said in _ADDRESS.findall(text):
            if "/" in said and "." in said:
                remote = normalise_remote(said.rstrip("."))
                known = [one for one in self._remotes if f"{remote}/".startswith(f"{one[0]}/")]
                yield from ((slug, f"names its repository, {url}") for url, slug in known)

    @cached_property
    def _keys(self) -> dict[str, list[tuple[str, str]]]:
        keys: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, value, slug in self.home.files.project_keys():
            keys[key].append((value, slug))
        return keys

    @cached_property
    def _names(self) -> list[_Name]:
        found = self._keys.get("alias", [])
        return [
            _name(name, slug)
            for name, slug in found
            if len(name) >= _LEAST_CHARACTERS and _tells(name)
        ]

    @cached_property
    def _roots(self) -> list[tuple[str, str]]:
        found = [(_plain_path(root), slug) for root, slug in self._keys.get("root", [])]
        return [one for one in found if one[0].count("/") >= _LEAST_PARTS]

    @cached_property
    def _remotes(self) -> list[tuple[str, str]]:
        return [(normalise_remote(remote), slug) for remote, slug in self._keys.get("remote", [])]

    @cached_property
    def _spoken_of(self) -> dict[_Name, bool]:
        return {}

    @cached_property
    def _filed(self) -> list[tuple[str, str]]:
        return [
            (memory.project, f"{memory.subject}\n{memory.content}")
            for memory in self.home.memories.everything()
            if memory.project and not memory.inbox
        ]


def _tells(name: str) -> bool:
    """Whether a name is more than words of everyday work."""
    return bool(words(name)) and not is_common_name(name)


def _name(name: str, slug: str) -> _Name:
    """A name as whole words, no part of a longer name or of a path.

    One that is a word of English, too ("honey", "phoenix"), is sure only where it is marked as a name.
    """
    whole = rf"(?<![\w/\\.@~-]){re.escape(name)}(?![\w-]|[./\\]\w)"
    held = re.compile(whole, re.IGNORECASE)
    if name.lower() not in minilm.vocabulary():
        return _Name(held, held, name, slug)
    beside = rf"{whole}(?:\s+(?:{_SORTS})\b|\s*(?:{_BESIDE}))|\b(?:{_SORTS})\s+{whole}|(?:{_BESIDE})\s*{whole}"
    return _Name(held, re.compile(rf"`{re.escape(name)}`|{beside}", re.IGNORECASE), name, slug)


def _plain_path(path: str) -> str:
    return path.replace("\\", "/").rstrip("/.")


# ----------------------------------------------------------------------------
# What a writer fills on pages: sections of a project's page and of the owner's profile, and what they
# rest on.


class Line(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A line of a page, and the numbers of what it rests on."""

    text: str
    numbers: list[int]


class ProjectPage(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a writer makes of a project."""

    stage: list[Line]
    next_steps: list[Line]
    blockers: list[Line]
    constraints: list[Line]
    timeline: list[Line]
    notes: list[Line]


class ProfilePage(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a writer makes of the owner's own words."""

    profile: list[Line]
    preferences: list[Line]
    constraints: list[Line]
    relationships: list[Line]


@dataclass(frozen=True, slots=True)
class Form:
    """The sections of a page, in the order in which they stand there: field of the answer, heading, lines at most.

    ``ranks`` are fields: what rests on the same sources stands in the first of them alone. ``summary`` is a section
    that sums up others, and stands beside them; it has ``summary_characters`` at most.
    """

    prompt: str
    answer: type[msgspec.Struct]
    sections: tuple[tuple[str, str, int], ...]
    ranks: tuple[str, ...]
    summary: str
    summary_characters: int
    speakers: tuple[Speaker, ...]
    kinds: tuple[Kind, ...]

    @property
    def titles(self) -> frozenset[str]:
        """The headings of what the writer fills."""
        return frozenset(title for _, title, _ in self.sections)

    def takes(self, memory: Memory, project: str, today: date) -> bool:
        """Whether a line of such a page may rest on a memory: it holds, in its place, and somebody answers for it."""
        is_there = memory.project == (project or None) and is_current(memory, today)
        return (
            is_there
            and memory.is_vouched
            and memory.speaker in self.speakers
            and memory.kind in self.kinds
        )


OF_PROJECT = Form(
    "page-1",
    ProjectPage,
    (
        ("stage", "Stage", 2),
        ("next_steps", "Next steps", 8),
        ("blockers", "Blockers", 6),
        ("constraints", "Constraints", 10),
        ("timeline", "Timeline", 8),
        ("notes", "Notes", 8),
    ),
    ("blockers", "next_steps", "constraints", "timeline", "notes"),
    "stage",
    400,
    (Speaker.OWNER, Speaker.AGENT),
    tuple(Kind),
)
OF_OWNER = Form(
    "profile-1",
    ProfilePage,
    (
        ("profile", "Profile", 4),
        ("preferences", "Preferences", 20),
        ("constraints", "Constraints", 20),
        ("relationships", "Relationships", 20),
    ),
    ("relationships", "constraints", "preferences"),
    "profile",
    400,
    (Speaker.OWNER,),
    (Kind.PREFERENCE, Kind.FACT, Kind.LESSON, Kind.RELATIONSHIP, Kind.DECISION),
)
"""Bounds, and which section goes before which: seed facts 3.1. The profile holds nothing but the owner's own words."""


def form_of(project: str) -> Form:
    """The form of a project's page; that of the profile where ``project`` is empty."""
    return OF_PROJECT if project else OF_OWNER


def by_writer(form: Form, sections: Sequence[Section]) -> list[Section]:
    """Those sections of a page that a writer fills."""
    return [section for section in sections if section[0] in form.titles]


def by_rules(form: Form, sections: Sequence[Section]) -> list[Section]:
    """Those sections of a page that rules fill."""
    return [section for section in sections if section[0] not in form.titles]


# ----------------------------------------------------------------------------
# What speaks against a page as a dream would have it: an edit, a secret, lines lost, lines that
# nothing bears out.


SESSIONS_SHOWN = 10
MOST_LOST = 0.25
"""So much of what nacre told on a page may go without anything in its place (DESIGN 7)."""

DAY = len("- 2026-11-18")
"""Characters of a line that say when."""


def mark_of(home: Home, page: Page, project: str, words: str) -> str:
    """What a page's step rests on: the page as it is, and the memories that a writer's lines name."""
    lines = _lines_of(by_writer(form_of(project), sections_of(words)))
    named = {memory.id: memory for line in lines for memory in _memories(home, line)}
    return f"{page.mark} {mark(named[one] for one in sorted(named))}" if named else page.mark


def page_objection(home: Home, step: Step) -> str | None:
    """What speaks against a page as a step would have it, as it is now; ``None`` where nothing does.

    Nobody edited it, nothing in it is secret, each new line names a source that bears it out, and nothing that it told
    is lost but for a quarter.
    """
    try:
        page = read_page(home, step.project)
    except UNREADABLE:
        return "the page cannot be read"
    if page.mark != step.mark.partition(" ")[0]:
        return "it was edited since"
    if not page.is_wanted:
        return "its front matter says dreams: false"
    if without_secrets(home.redactor, page.text + step.words) is None:
        return "the page holds what looks like a secret"
    if step.mark != mark_of(home, page, step.project, step.words):
        return "memories that it tells of have changed since"
    if not _is_borne_out(home, step, page):
        return "it would tell what no source says any more"
    before, lost = _lost(home, step, page)
    if lost > MOST_LOST * before:
        return f"{lost} of the {before} lines that nacre wrote would be lost"
    return None


def _is_borne_out(home: Home, step: Step, page: Page) -> bool:
    form, sections = form_of(step.project), sections_of(step.words)
    before, after = (
        by_source(by_rules(form, sections_of(page.part))),
        by_source(by_rules(form, sections)),
    )
    kept = {
        one for one in after if after[one] == before.get(one) and stays(home, step.project, one)
    }
    if not all(_bears_out(home, step.project, source) for source in after.keys() - kept):
        return False
    return all(
        may_stand(home, form, step.project, line) for line in _lines_of(by_writer(form, sections))
    )


def may_stand(home: Home, form: Form, project: str, line: str) -> bool:
    """Whether a line of a writer's rests on something, and all of it holds and belongs to the page."""
    named = references_of(line)
    memories = _memories(home, line)
    sessions = [one for one in named if is_session(one)]
    if not named or len(memories) + len(sessions) < len(named) or (sessions and not project):
        return False
    today = home.today()
    return all(form.takes(memory, project, today) for memory in memories) and all(
        stays(home, project, session) for session in sessions
    )


def _memories(home: Home, line: str) -> list[Memory]:
    named = (memory_named(home, one) for one in references_of(line) if not is_session(one))
    return [one for one in named if one]


def _lines_of(sections: Iterable[Section]) -> list[str]:
    return [line for _, lines in sections for line in lines]


def by_source(sections: Iterable[Section]) -> dict[str, str]:
    """Lines that rules wrote, by what they name as their source; one that names none stands for itself."""
    return {" ".join(references_of(line)) or line: line for line in _lines_of(sections)}


def sessions_named(home: Home, source: str) -> list[StoredSession]:
    """The sessions of this machine that a line may mean; none where its source is a memory, or on another machine."""
    return home.sessions.find(source) if is_session(source) else []


def stays(home: Home, project: str, source: str) -> bool:
    """Whether what was told of a session may stay: it was not forgotten, nor is it known to be another project's."""
    if not is_session(source) or any(
        session.project != project for session in sessions_named(home, source)
    ):
        return False
    forgotten = (one.value for one in home.tombstones.all() if one.kind is TombstoneKind.SESSION)
    return not any(one.startswith(source) for one in forgotten)


def _bears_out(home: Home, project: str, source: str) -> bool:
    if is_session(source):
        return [session.project for session in sessions_named(home, source)] == [project]
    return any(is_decision(home, memory, project) for memory in home.memories.find_like(source))


def is_decision(home: Home, memory: Memory, project: str) -> bool:
    """Whether a memory is a decision of the owner's that holds."""
    is_owners = (
        memory.kind is Kind.DECISION and memory.speaker is Speaker.OWNER and memory.is_vouched
    )
    return is_owners and is_current(memory, home.today()) and memory.project == project


def _lost(home: Home, step: Step, page: Page) -> tuple[int, int]:
    """How many lines nacre told on a page, and how many of them would go with nothing in their place."""
    form, was, becomes = form_of(step.project), sections_of(page.part), sections_of(step.words)
    before, after = by_source(by_rules(form, was)), by_source(by_rules(form, becomes))
    written = _lines_of(by_writer(form, was))
    named = {one for line in _lines_of(becomes) for one in references_of(line)}
    gone = [
        line
        for line in written
        if not named.intersection(references_of(line)) and rests_on_what_holds(home, line)
    ]
    return len(before) + len(written), len(_lost_by_rules(home, before, after)) + len(gone)


def _lost_by_rules(
    home: Home, before: Mapping[str, str], after: Mapping[str, str]
) -> Sequence[str]:
    """What a page told and does not any more, though nothing newer took its place and no memory of it is left."""
    days = [line[:DAY] for source, line in after.items() if is_session(source)]
    oldest = min(days) if len(days) >= SESSIONS_SHOWN else ""
    return [
        source
        for source, line in before.items()
        if source not in after
        and not (is_session(source) and (line[:DAY] <= oldest or sessions_named(home, source)))
        and not (source != line and home.memories.find_like(source))
    ]


# ----------------------------------------------------------------------------
# Which projects' sessions are worth telling on their pages: six signals, three gates (seed facts
# 2.4).


MOST_READ = 30
"""Sessions of a project that are looked at, the latest: from five on their number weighs no more."""

LEAST_SCORE, LEAST_SESSIONS, LEAST_QUERIES = 0.5, 2, 2

_WEIGHTS = {
    "relevance": 0.30,
    "frequency": 0.24,
    "diversity": 0.15,
    "recency": 0.15,
    "consolidation": 0.10,
    "richness": 0.06,
}
_ENOUGH = 5
_ENOUGH_WORK = 20
_RECENT_DAYS = 30
_TOPICS_READ = 10
_TOPIC_CHARACTERS = 15
_OPENING_WORDS = 3
_DECIDES = re.compile(
    r"\b(?:decid\w+|cho(?:ose|se)|prefer\w*|instead|rather|always|never|must|agreed|entschie\w+|statt|immer|nie)\b"
    r"|决定|改用|必须|決め|代わりに",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A session of a project, what was done in it, and what the owner asked for, the main thing first."""

    stored: StoredSession
    summary: Summary
    topics: tuple[Topic, ...]


def latest(home: Home, project: str, since: datetime | None, limit: int = MOST_READ) -> list[Told]:
    """The latest sessions of a project that the owner held, whose transcripts are still there; the newest first.

    ``since``: only what ended after it.
    """
    wanted = SessionFilter(project=project, kind=SessionKind.MAIN, since=since)
    newest = home.sessions.newest(wanted, limit=limit)
    return [
        _told_promotion(home, one)
        for one in newest
        if one.ended and (since is None or one.ended > since) and _is_there(home, one)
    ]


def _is_there(home: Home, stored: StoredSession) -> bool:
    """Whether what a session says can be read again: its transcript lies where it was, or in the archive."""
    file = stored.file
    return bool(file) and (os.path.exists(file or "") or home.archive.find(file or "") is not None)


def _told_promotion(home: Home, stored: StoredSession) -> Told:
    turns = [turn.turn for turn in home.sessions.turns_of(stored.row)]
    summary = summarise(stored.session, turns)
    topics = (
        topic
        for topic in summary.topics
        if topic.speaker is Speaker.OWNER and len(topic.text) >= _TOPIC_CHARACTERS
    )
    return Told(stored, summary, tuple(topics))


def weighed(project: str, told: Sequence[Told], now: datetime) -> Promotion:
    """The signals of a project's sessions, and which gates they do not pass."""
    topics = [topic.text for one in told for topic in one.topics]
    queries = len({" ".join(words(text)[:_OPENING_WORDS]) for text in topics})
    tools = _distinct(use.name for one in told for use in one.summary.tools)
    ended = max((one.stored.ended for one in told if one.stored.ended), default=now)
    signals = {
        "relevance": min(1.0, 1.5 * len(topics) / (len(topics) + max(1, tools))),
        "frequency": min(1.0, len(told) / _ENOUGH),
        "diversity": min(1.0, queries / _ENOUGH),
        "recency": math.exp(-max(0.0, (now - ended) / timedelta(days=1)) / _RECENT_DAYS),
        "consolidation": min(1.0, _work(told, tools) / _ENOUGH_WORK),
        "richness": _richness(topics[:_TOPICS_READ]),
    }
    score = sum(weight * signals[name] for name, weight in _WEIGHTS.items())
    gates = (
        (score >= LEAST_SCORE, f"its score is {score:.2f}, not {LEAST_SCORE:.2f}"),
        (len(told) >= LEAST_SESSIONS, f"sessions: {len(told)} of {LEAST_SESSIONS}"),
        (queries >= LEAST_QUERIES, f"different requests: {queries} of {LEAST_QUERIES}"),
    )
    rounded = {name: round(value, 2) for name, value in signals.items()}
    failed = tuple(why for is_passed, why in gates if not is_passed)
    return Promotion(project, len(told), **rounded, score=round(score, 2), failed=failed)


def _work(told: Sequence[Told], tools: int) -> int:
    files = _distinct(file.path for one in told for file in one.summary.files)
    commits = _distinct(commit for one in told for commit in one.summary.commits)
    return files + tools + commits + sum(len(one.summary.errors) for one in told)


def _distinct(names: Iterable[str]) -> int:
    return len(set(names))


def _richness(topics: Sequence[str]) -> float:
    """How much the requests tell: code, words of deciding, names of files."""
    hits = [
        ("`" in text) + bool(_DECIDES.search(text)) + any(map(_is_file, identifiers(text)))
        for text in topics
    ]
    return sum(min(1.0, count / 2) for count in hits) / len(hits) if hits else 0.0


def _is_file(name: str) -> bool:
    return "/" in name or "." in name


# ----------------------------------------------------------------------------
# Projects' pages: a part of nacre's own tells what was done lately and what was decided, and what a
# writer made of the
# project's memories; the rest is a person's.


DECISIONS_SHOWN = 12
WINDOW = timedelta(days=90)
"""A page that tells of no session yet begins with those that ended so lately; with a backfill, with all."""

_ASKED_CHARACTERS, _DECISION_CHARACTERS = 200, 300
_FILES, _COMMITS = 3, 3
_FILE_CHARACTERS = 80
_PATH_PAGES = re.compile(r"(?!/|~|[A-Za-z]:|\.\.)[\w.@+ /\\\[\]-]+")
_ENDS = tuple('.?!…:。？！)"”')


def promoted(
    home: Home,
    memories: Sequence[Memory],
    project: str | None,
    drafts: Mapping[str, PageDraft],
    *,
    backfill: bool,
) -> tuple[list[Step], list[Promotion]]:
    """The pages to write: of projects with sessions since theirs was written, those with a draft of a writer's, those
    with lines of a writer's that hold no more; and what was found of each project with new sessions.

    ``memories`` are the active ones; ``drafts`` are by project, that of the profile under the empty one.
    """
    steps, promotions = [], []
    for slug in sorted({file.slug for file in home.files.projects()}):
        if project in (None, slug):
            of_it = [memory for memory in memories if memory.project == slug]
            found, step = _promotion(home, slug, of_it, drafts.get(slug), backfill=backfill)
            promotions += [found] if found else []
            steps += [step] if step else []
    profile = _profile(home, drafts.get("")) if project is None else None
    return [*steps, *([profile] if profile else [])], promotions


def _promotion(
    home: Home, slug: str, memories: Sequence[Memory], draft: PageDraft | None, *, backfill: bool
) -> tuple[Promotion | None, Step | None]:
    try:
        page = read_page(home, slug)
    except UNREADABLE:
        return None, None
    told = latest(home, slug, _since(home, page, backfill=backfill))
    found = weighed(slug, told, home.now()) if told else None
    is_worth = found is not None and not found.failed
    written = _written(home, page, slug, draft)
    if not (is_worth or draft or written != _written_before(page, slug)):
        return found, None
    words = home.redactor.clean(_part(home, slug, memories, page, written, is_worth=is_worth))
    if words == page.part or not (words or _written_before(page, slug)):
        return found, None
    days = f"{count(len(told), 'session')} up to {_day(told[0].stored.ended)}" if told else ""
    why = [f"{days}, score {found.score:.2f}"] if found and is_worth else []
    return _settled(home, page, slug, words, draft, why, found)


def _settled(
    home: Home,
    page: Page,
    slug: str,
    words: str,
    draft: PageDraft | None,
    why: Sequence[str],
    found: Promotion | None,
) -> tuple[Promotion | None, Step | None]:
    """The step that writes a page, unless something speaks against it; then what was found says that."""
    told = "; ".join([*why, *([draft.why] if draft else [])]) or "what it rests on holds no more"
    step = Step(
        DreamAction.PAGE,
        (),
        None,
        path_of(slug),
        told,
        words=words,
        by=draft.by if draft else "",
        mark=mark_of(home, page, slug, words),
        project=slug,
    )
    against = page_objection(home, step)
    if against:
        return (replace(found, failed=(against,)) if found else None), None
    return (found if found and not found.failed else None), step


def _profile(home: Home, draft: PageDraft | None) -> Step | None:
    """The step that writes the owner's profile, or takes from it what holds no more."""
    try:
        page = read_page(home, "")
    except UNREADABLE:
        return None
    written = _written(home, page, "", draft)
    words = home.redactor.clean(composed(written))
    if words == page.part or not (draft or page.part):
        return None
    return _settled(home, page, "", words, draft, (), None)[1]


def _written(home: Home, page: Page, project: str, draft: PageDraft | None) -> list[Section]:
    """What a writer made of a page, now or before: of that, what still holds."""
    form = form_of(project)
    if draft:
        return by_writer(form, draft.sections)
    return [
        (title, tuple(line for line in lines if may_stand(home, form, project, line)))
        for title, lines in _written_before(page, project)
    ]


def _written_before(page: Page, project: str) -> list[Section]:
    return by_writer(form_of(project), sections_of(page.part))


def _since(home: Home, page: Page, *, backfill: bool) -> datetime | None:
    """When the latest session ended that the page tells of; ``None`` where all count."""
    if backfill:
        return None
    told = [
        session.ended for source in _ruled_before(page) for session in sessions_named(home, source)
    ]
    return max((one for one in told if one), default=home.now() - WINDOW)


def _ruled_before(page: Page) -> dict[str, str]:
    return by_source(by_rules(form_of("project"), sections_of(page.part)))


def _part(
    home: Home,
    slug: str,
    memories: Sequence[Memory],
    page: Page,
    written: Sequence[Section],
    *,
    is_worth: bool,
) -> str:
    """Nacre's part of a page: what a writer made of it, the latest sessions, and the latest decisions."""
    told = activity(home, slug, page, latest(home, slug, None, SESSIONS_SHOWN) if is_worth else [])
    decisions = [memory for memory in memories if is_decision(home, memory, slug)]
    decisions = sorted(decisions, key=lambda decision: decision.last_said, reverse=True)[
        :DECISIONS_SHOWN
    ]
    if not told and not any(lines for _, lines in written):
        return ""
    decided = tuple(_decision_line(decision) for decision in decisions)
    return composed([*written, ("Recent activity", tuple(told)), ("Decisions", decided)])


def activity(home: Home, slug: str, page: Page, sessions: Sequence[Told]) -> list[str]:
    """Lines of the latest sessions, the newest first: those given, and what a page told before.

    That stays for as long as it is among the latest: another machine may have told it.
    """
    fresh = by_source(
        [("", tuple(_session_line(home, session) for session in sessions if session.topics))]
    )
    before = _ruled_before(page)
    kept = {
        source: line
        for source, line in before.items()
        if source not in fresh and stays(home, slug, source)
    }
    return sorted((fresh | kept).values(), key=lambda line: line[:DAY], reverse=True)[
        :SESSIONS_SHOWN
    ]


def _session_line(home: Home, told: Told) -> str:
    said = [_sentence(_asked(told.topics[0].text))]
    files = [shown for file in told.summary.modified if (shown := _file(file.path))]
    done = [f"changed {_some(files, _FILES)}"] if files else []
    if commits := told.summary.commits:
        done.append(f"{'commits' if len(commits) > 1 else 'commit'} {_some(commits, _COMMITS)}")
    if done:
        said.append(_sentence(f"{done[0][:1].upper()}{'; '.join(done)[1:]}"))
    return as_line(f"{_day(told.stored.ended)}: {' '.join(said)}", [_reference(home, told)])


def _sentence(text: str) -> str:
    return text if text.endswith(_ENDS) else f"{text}."


def _asked(text: str) -> str:
    """What was asked for, without greetings and the like."""
    bare = language_of(text).trim(text) or text
    return plain_words(bare[:1].upper() + bare[1:], _ASKED_CHARACTERS)


def _decision_line(memory: Memory) -> str:
    said = _sentence(plain_words(memory.content, _DECISION_CHARACTERS))
    return as_line(f"{_day(memory.last_said)}: {said}", [memory.id[-REFERENCE_CHARACTERS:]])


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _file(path: str) -> str:
    """A file below the project's folder as code; empty for another, or one whose name is no plain name."""
    return f"`{path}`" if len(path) <= _FILE_CHARACTERS and _PATH_PAGES.fullmatch(path) else ""


def _reference(home: Home, told: Told) -> str:
    session = told.stored.session
    short = f"{session.tool}:{session.native_id[:REFERENCE_CHARACTERS]}"
    return short if len(home.sessions.find(short)) == 1 else session.id


def _day(moment: datetime | None) -> str:
    return shown_day(moment) if moment else "?"
