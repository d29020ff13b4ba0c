"""What nacre is interrupted in. A scenario is a line in ``SCENARIOS``: what is there before, and commands that follow.

Its memories have subjects of their own: by them a memory is known again, whatever its id. A step is a command line, or
a function that works with an open home where no command does the like.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from nacre.base.text import words
from nacre.care.proofs import prove_database, prove_full_text
from nacre.context import delivery
from nacre.context.build import build
from nacre.context.handoff import hand_over, improve, put_away
from nacre.context.hooks import write_state
from nacre.data import imports, undo
from nacre.data.export import ImportOptions
from nacre.data.undo import undo as undo_undo
from nacre.errors import ConflictError, NacreError, UnavailableError
from nacre.home import archive_packs
from nacre.home import change as changes
from nacre.home.consent import embedder_in_use
from nacre.home.home import Home, open_home
from nacre.home.projects import Handoffs
from nacre.home.spending import fold_notes, note, note_call
from nacre.learn.ingest import ingest
from nacre.memories import retire, vectors
from nacre.memories.projects import merge, rename
from nacre.recall.recall import recall, search_sessions
from nacre.review import consolidate as dreams
from nacre.review import contradictions
from nacre.review.dream import DreamRequest
from nacre.review.pages import mark
from nacre.review.run import carry_out, dream
from nacre.settings import Settings, load_settings
from nacre.setup.chores import Chore, do_waiting
from nacre.setup.chores import put as put_chore
from nacre.values.context import ContextRequest
from nacre.values.memory import Expiry, Kind, Link, Memory, Retirement
from nacre.values.models import Call, Trace
from nacre.values.recall import Mode, RecallQuery
from nacre.values.session import StoredSession, Task
from tests.app.conftest import WordEmbedder
from tests.fakes.model import ScriptedModel
from tests.trust.chats import answer_chats, answered, log_of


@dataclass(frozen=True, slots=True)
class Place:
    """A user's machine: a home folder, nacre's home in it."""

    user: Path

    @property
    def home(self) -> Path:
        """nacre's home."""
        return self.user / ".nacre"

    @property
    def vault(self) -> Path:
        """The folder of memories."""
        return self.home / "vault"


Command = Sequence[str]
Work = Callable[[Home], object]


@dataclass(frozen=True, slots=True)
class Hand:
    """What is done to files while no nacre runs."""

    do: Callable[[Place], object]


@dataclass(frozen=True, slots=True)
class Step:
    """A command, or work with an open home. ``is_whole``: after a crash all of it is there, or nothing."""

    run: Command | Work
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Scenario:
    """``before`` makes the home, ``by_hand`` is what a person does to its files just before ``steps`` begin.

    ``may_tell`` is part of a warning that nacre gives rightly. ``outside`` tells what there is beside memories that the
    steps change, in values that compare: as before them or as after them, never half. ``may_leave`` is the beginning of
    the name of a temporary file in the home, or of its path there, that stays until the command is given again.
    """

    name: str
    steps: tuple[Step, ...]
    before: tuple[Command | Work | Hand, ...] = ()
    by_hand: Hand | None = None
    may_tell: str | None = None
    outside: Callable[[Place], Any] | None = None
    may_leave: str | tuple[str, ...] | None = None


def said(role: str, text: str, number: int, session: str) -> dict[str, Any]:
    """A record of a Claude Code transcript."""
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{session}_{number}", "model": "model-1"}
    return {
        "type": role,
        "uuid": f"{session}-turn-{number}",
        "parentUuid": None,
        "sessionId": session,
        "timestamp": f"2026-11-18T09:{number:02d}:00.000Z",
        "cwd": "/code/harbour",
        "version": "2.1.0",
        "gitBranch": "main",
        "isSidechain": False,
        "message": message,
    }


TALKS = {
    "5e55-0001": (
        ("user", "Remember that the staging database is called heron and lives in Frankfurt."),
        ("assistant", "Noted: heron, in Frankfurt."),
        ("user", "From now on always run the linter before you commit anything."),
    ),
    "5e55-0002": (
        (
            "user",
            "We decided to use PostgreSQL for the harbour service because it needs transactions.",
        ),
        ("assistant", "Done: the harbour service runs on PostgreSQL."),
    ),
    "5e55-0003": (("user", "Remember that the quay camera is replaced every second spring."),),
}


def talk(*sessions: str, first: int = 0, last: int | None = None) -> Hand:
    """Transcripts where discovery finds them; their turns from ``first`` to ``last``."""

    def write(place: Place) -> None:
        folder = place.user / ".claude/projects/-code-harbour"
        folder.mkdir(parents=True, exist_ok=True)
        for session in sessions:
            lines = [
                said(role, text, number, session)
                for number, (role, text) in enumerate(TALKS[session])
            ]
            with (folder / f"{session}.jsonl").open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines[first:last])

    return Hand(write)


def stored(subject: str, content: str, *more: str) -> Command:
    """The command that stores a memory."""
    return ("store", content, "--subject", subject, *more)


GATE = stored("Gate", "The gate code is on the wall.", "--project", "harbour")
LUNCH = stored("Lunch", "Lunch is at noon on weekdays.", "--tag", "kitchen")
CRANE = stored("Crane", "The crane is inspected every June by two people.", "--kind", "decision")
OLD_BUILD = stored("Old build", "The build runs on Jenkins.", "--key", "build-system")
NEW_BUILD = stored("New build", "The build runs on Buildkite.", "--key", "build-system")
SOURCES = tuple(
    (f"Rope {number}", f"Rope number {number} hangs at bollard {number * 7}.")
    for number in range(12)
)


def opened_home(settings: Settings | None = None) -> Home:
    """The home that the environment names."""
    return open_home(settings or load_settings())


def _named(context: Home, subject: str) -> Memory:
    (found,) = context.memories.find_like(subject)
    return found


def store_ropes(context: Home) -> None:
    """Twelve memories in one write."""
    now = context.now()
    ropes = [
        Memory(context.ids(), Kind.FACT, subject, words, now, now) for subject, words in SOURCES
    ]
    with context.change("store") as change, change.transaction():
        change.put(ropes)


def consolidate(context: Home) -> None:
    """As a dream does: replacements are written first, then their sources retired, as one operation of many batches."""
    changes.BATCH = 5
    now = context.now()
    with context.change("dream", subject="ropes", why="they say one thing each") as change:
        sources = [_named(context, subject) for subject, _ in SOURCES]
        for number in range(3):
            part = sources[number * 4 : number * 4 + 4]
            subject = f"Ropes {number}"
            if context.memories.find_like(subject):
                continue
            words = " ".join(rope.content for rope in part)
            links = tuple(Link("builds_on", rope.id) for rope in part)
            change.put([Memory(context.ids(), Kind.FACT, subject, words, now, now, links=links)])
        gone = [
            replace(rope, retired=Retirement(now, "merged")) for rope in sources if not rope.retired
        ]
        change.apply()
        change.put(gone, [change.entry("retire", memory=rope.id) for rope in gone])


def import_many(context: Home) -> None:
    """A batch that is one transaction: fourteen memories, two of which change."""
    now = context.now()
    new = [
        Memory(
            context.ids(),
            Kind.FACT,
            f"Buoy {number}",
            f"Buoy {number} is {number} miles out.",
            now,
            now,
        )
        for number in range(12)
        if not context.memories.find_like(f"Buoy {number}")
    ]
    changed = [replace(_named(context, name), importance=9) for name in ("Gate", "Lunch")]
    with context.change("import") as change, change.transaction():
        change.put([*new, *changed], [change.entry("import", count=len(new))])


def store_what_is_over(context: Home) -> None:
    """Two memories that say the same, one that was meant for a while, one with a link to what is gone for good, and one
    that waits in the inbox."""
    now = context.now()
    long_ago = now - timedelta(days=200)
    gone = context.ids()
    found = [
        Memory(
            context.ids(),
            Kind.FACT,
            "Tide",
            "The tide is high at noon.",
            long_ago,
            long_ago,
            tags=("sea",),
        ),
        Memory(context.ids(), Kind.FACT, "tide", "The tide is high at noon!", now, now),
        Memory(
            context.ids(),
            Kind.FACT,
            "Crew",
            "The crew is away.",
            long_ago,
            long_ago,
            expiry=Expiry.TEMPORARY,
        ),
        Memory(
            context.ids(),
            Kind.FACT,
            "Berth",
            "The berth is paid.",
            now,
            now,
            links=(Link("part_of", gone),),
        ),
        Memory(
            context.ids(),
            Kind.FACT,
            "Charts",
            "Charts lie in /code/harbour/charts.",
            now,
            now,
            inbox=True,
        ),
    ]
    with context.change("import") as change, change.transaction():
        change.put(found, [change.entry("retire", memory=gone)])


def have_a_dream(context: Home) -> None:
    """End what is over, make one of what says the same, drop the link that leads nowhere, file what waits, and write
    the project's page."""
    dream(context, DreamRequest(tier=3, backfill=True, first=True))


def page_told(place: Place) -> bool:
    """Whether the project's page tells of its sessions."""
    return "## Recent activity" in (place.vault / "projects/harbour/project.md").read_text(
        encoding="utf-8"
    )


def store_what_says_the_same(context: Home) -> None:
    """Two memories that say the same in other words, and two of which the later one has ended the earlier one."""
    now = context.now()
    before = now - timedelta(days=30)
    found = [
        Memory(context.ids(), Kind.FACT, "Low water", "At ebb the boats lie dry.", now, now),
        Memory(
            context.ids(), Kind.FACT, "Ebb", "The boats lie dry at ebb, for six hours.", now, now
        ),
        Memory(
            context.ids(), Kind.FACT, "Ferry", "The ferry lands at the old pier.", before, before
        ),
        Memory(context.ids(), Kind.FACT, "Landing", "The ferry lands at the new pier.", now, now),
    ]
    with context.change("import") as change, change.transaction():
        change.put(found)


def merge_in_new_words(context: Home) -> None:
    """Do what a writer proposed, and a second look bore out."""
    everything = context.memories.in_any_state(sorted(context.memories.all_ids()))
    found = sorted(
        (one for one in everything if "ebb" in one.content or "ferry" in one.content),
        key=lambda it: it.id,
    )
    one, keeper, old, new = found
    words = "At ebb the boats lie dry for six hours."
    step = dreams.Step(
        dreams.DreamAction.MERGE,
        (one.id,),
        keeper.id,
        "Ebb",
        "the same boats",
        words,
        by="scripted:1",
        mark=mark((keeper, one)),
    )
    end = dreams.Step(
        dreams.DreamAction.SUPERSEDE,
        (old.id,),
        new.id,
        "Landing",
        "it moved",
        by="scripted:1",
        mark=mark((new, old)),
    )
    steps = tuple(
        it for it, ended in ((end, old), (step, one)) if not (ended.retired or ended.superseded_by)
    )
    carry_out(_at_noon(context), dreams.DreamPlan(steps, seen=4, most=20))


def undo_edit(context: Home) -> None:
    """Undo the edit that came last, unless that was done."""
    listed = [one.operation for one in undo.log(context, limit=30)]
    if not any(one.action == "undo" for one in listed):
        undo_undo(context, next(one.id for one in listed if one.action == "update"))


def merge_projects(context: Home) -> None:
    """Make the harbour, which has sessions and a page, a part of the pier; a second time it is one already."""
    with contextlib.suppress(ConflictError):
        merge(context, project="harbour", into="pier", reason="there is one quay")


def rename_project(context: Home) -> None:
    """Call the pier otherwise; a second time it is called so already."""
    with contextlib.suppress(ConflictError):
        rename(context, "pier", "Old Quay")


def dependencies_of(place: Place) -> int:
    """How many pages say that their project depends on another one, wherever they lie."""
    return sum(
        "dependencies: [crane]" in page.read_text("utf-8")
        for page in place.vault.glob("projects/*/project.md")
    )


def settle_conflicts(context: Home) -> None:
    """Let the newer one of each pair hold."""
    for pair in contradictions.list_pending(context):
        contradictions.resolve(
            context, pair, contradictions.Choice.KEEP_NEW, "the newer sign is right"
        )


def _at_noon(context: Home, **more: Any) -> Home:
    """The home at a time that does not pass: what is written again is called the same."""
    return replace(context, clock=lambda: datetime(2026, 11, 18, 12, tzinfo=UTC), **more)


def _harbour(context: Home) -> StoredSession:
    (session,) = context.sessions.find("claude-code:5e55-0001")
    return session


def hand_over_by_rules(context: Home) -> None:
    """A session is handed over, in the owner's words."""
    hand_over(_at_noon(context), _harbour(context))


def hand_over_by_model(context: Home) -> None:
    """A model writes it better."""
    answer = {
        "working_on": ["The staging database is called heron."],
        "key_findings": [],
        "open_threads": [],
        "important_facts": ["Always run the linter before you commit anything."],
    }
    improve(
        _at_noon(context, load_model=lambda *_: ScriptedModel([answer], repeats=True)),
        _harbour(context),
    )


def give_handoff(context: Home) -> None:
    """The next session is given it, and it is put away.

    Raises UnavailableError where it cannot be kept that the session was given it: nobody promises
    then that it is the only one. Given the command again minutes later, it is given it once more,
    or the session after it is.
    """
    home = _at_noon(context)
    earlier = home.clock().timestamp() - 2 * delivery.CLAIM_SECONDS
    for claim in (home.settings.home / "run/handoffs").glob("*"):
        os.utime(claim, (earlier, earlier))
    for session in ("claude-code:5e55-0009", "claude-code:5e55-0010"):
        block = build(home, ContextRequest(folder="/code/harbour", session=session))
        write_state(home.settings.home, session, block.state)
        if block.state:  # it had not begun before
            break
    if delivery.due(home, "harbour", None) and not any(delivery.iter_delivered(home)):
        raise UnavailableError(
            "what the session was given cannot be kept", hint="the next one is given it, too"
        )
    put_away(home)


def delete_handoff(context: Home) -> None:
    """A week later it is deleted."""
    at_noon = _at_noon(context)
    put_away(replace(at_noon, clock=lambda: at_noon.clock() + timedelta(days=8)))  # type: ignore[misc]


def handed_over(place: Place) -> list[tuple[str, str, bool]]:
    """What sessions handed over: the words, who wrote them, whether a session was given them."""
    return sorted(
        (one.content, one.by, bool(one.given)) for one in Handoffs(place.home).everything()
    )


def leave_chores(place: Place) -> None:
    """What hooks leave: a session ended, another one began."""
    for number, kind in (("1", "session-end"), ("2", "session-start")):
        session = f"claude-code:5e55-000{number}"
        transcript = str(place.user / f".claude/projects/-code-harbour/5e55-000{number}.jsonl")
        put_chore(
            place.home, Chore(kind, session, transcript, "/code/harbour", "startup", time.time())
        )


def do_chores(context: Home) -> None:
    """Do them all; what failed, or was begun and not ended, is tried again hours later."""
    now = datetime.now(UTC)
    for hours in range(5):
        do_waiting(replace(context, clock=lambda hours=hours: now + timedelta(hours=hours)))  # type: ignore[misc]


def unretire_all(context: Home) -> None:
    """Bring back what is still retired, and end what was to be kept out."""
    gone = [one.id for one in retire.list_retired(context)]
    rules = [rule.id for rule in retire.list_standing(context)]
    if gone or rules:
        retire.unretire(context, references=(*gone, *rules))


def import_in_small_batches(context: Home) -> None:
    """Import another tool's notes, a few at a time."""
    imports.BATCH = 4
    path = context.settings.user_home / "workspace"
    plan = imports.plan_import(context, ImportOptions(path=path, vectors=False))
    imports.carry_out(context, plan)


def ingest_with_vectors(context: Home) -> None:
    """Ingest where texts are embedded, and memories compared by meaning; a stand-in embeds, which needs no model."""
    settings = load_settings(environ={**os.environ, "NACRE_EMBEDDING_MODEL": "minilm"})
    home = open_home(settings, load_embedder=lambda _: WordEmbedder())
    try:
        ingest(home)
    finally:
        home.database.close()


class Salted(WordEmbedder):
    """A model of its own: the same words have other vectors than by any other, and as many as the name says."""

    def __init__(self, name: str, dimensions: int) -> None:
        super().__init__(name)
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Of each word with the model's name before it."""
        return super().embed(
            [" ".join(f"{self.name}{word}" for word in words(text)) for text in texts]
        )


FIRST, SECOND = "ollama:first", "openai:text-embedding-3-small"
"""A model on this machine, and one to which texts may go after a yes alone, which is a setting, too."""


def _salted(settings: Settings) -> Salted:
    return Salted("first", 384) if settings["embedding.model"] == FIRST else Salted("second", 256)


@contextlib.contextmanager
def home_with_vectors() -> Iterator[Home]:
    """The home, where texts are embedded a few at a time by the model that its settings name."""
    vectors.STEP_TURNS = vectors.STEP_MEMORIES = 2
    environ = {name: value for name, value in os.environ.items() if name != "NACRE_EMBEDDING_MODEL"}
    home = open_home(load_settings(environ=environ), load_embedder=_salted)
    try:
        yield home
    finally:
        home.database.close()


def ingest_by_the_first_model(_: Home) -> None:
    """Read, and make the vectors that the switch is to replace."""
    with home_with_vectors() as home:
        ingest(home)


def switch_vectors(_: Home) -> None:
    """Go over to the second model, or on with that."""
    with home_with_vectors() as home:
        vectors.switch(home, name=SECOND)


def switch_back(_: Home) -> None:
    """Go back to the first model, or on with that."""
    with home_with_vectors() as home:
        vectors.switch(home, name=FIRST)


def searched(_: Place) -> dict[str, Any]:
    """By which model recall goes by meaning, what it finds, and whether any vector in use is missing or another's."""
    with home_with_vectors() as home:
        vectors, embedder = home.vectors, embedder_in_use(home)
        wrong = [f"{vectors.model()} made them"] if vectors.model() != embedder.name else []
        wrong += [f"{sum(vectors.missing())} missing"] if any(vectors.missing()) else []
        for row, memory in home.memories.rows_of(home.memories.all_ids()).items():
            vector = embedder.embed([f"{memory.subject}. {memory.content}"])[0]
            wrong += [memory.subject] if vectors.memory_cosines(vector)[row] < OWN else []
        for row, text in vectors.turns_after(0, 100):
            wrong += (
                [text]
                if vectors.cosines_of_turns(embedder.embed([text])[0], [row])[row] < OWN
                else []
            )
        found = {
            question: recall(home, RecallQuery(question, mode=Mode.VECTOR, update=False))
            for question in ("is the gate code on the wall?", "is lunch at noon on weekdays?")
        }
        return {
            "by": vectors.setting(),
            "set": home.settings["embedding.model"],
            "wrong": wrong,
            "hosts": home.settings["embedding.sends_to"],
            "lanes": {question: answer.lanes[1].state for question, answer in found.items()},
            "hits": {
                question: [hit.memory.subject for hit in answer.hits[:1]]
                for question, answer in found.items()
            },
        }


OWN = 0.99
"""A text's cosine to its own vector, of which eight bits a number are kept."""


@Hand
def edit_by_hand(place: Place) -> None:
    """What people do between two commands: edit, move to another folder, delete, write a note of their own."""
    gate = place.vault / "projects/harbour/fact/gate.md"
    gate.write_text(gate.read_text().replace("on the wall", "with the porter"))
    lunch = place.vault / "global/fact/lunch.md"
    (place.vault / "global/event").mkdir()
    lunch.rename(place.vault / "global/event/lunch.md")
    (place.vault / "global/decision/crane.md").unlink()
    (place.vault / "global/fact/note.md").write_text("# Ferry\n\nThe ferry leaves at seven.\n")
    copied = (place.vault / "global/fact/old-build.md").read_text().replace("Old b", "Copied b")
    (place.vault / "global/fact/old-build copy.md").write_text(copied.replace("Jenkins", "Bamboo"))


@Hand
def new_home(place: Place) -> None:
    """Another machine: there is no home yet."""
    shutil.rmtree(place.home)


@Hand
def notes_of_another(place: Place) -> None:
    """What another agent tool remembered: a curated page, and a diary."""
    folder = place.user / "workspace/memory"
    folder.mkdir(parents=True)
    lines = (f"- The mooring at pier {number} holds {number * 3} boats.\n" for number in range(7))
    (folder.parent / "MEMORY.md").write_text("# Harbour\n\n" + "".join(lines))
    (folder / "2026-11-02.md").write_text(
        "- We painted the north jetty green.\n- The tug came back from the yard.\n"
    )


def config_file(place: Place) -> Any:
    """What the settings file says."""
    config = place.home / "config.toml"
    return config.read_text() if config.exists() else None


def written(place: Place) -> dict[str, Any]:
    """Exports, backups and copies of the database that have their name: what is in them, or that they are half."""
    return {name: _inside(place.user / name) for name in KEPT if (place.user / name).exists()}


KEPT = ("memories.jsonl", "memories.md", "vault.zip", "home.zip")


def _inside(path: Path) -> Any:
    """What a file holds that compares with another one of its sort; raises nothing."""
    try:
        if path.suffix == ".jsonl":
            lines = [json.loads(line) for line in path.read_bytes().splitlines()]
            sealed = hashlib.sha256(
                b"".join(path.read_bytes().splitlines(keepends=True)[:-1])
            ).hexdigest()
            subjects = sorted(
                line["front"]["subject"] for line in lines if line["type"] == "memory"
            )
            return subjects if lines[-1]["sha256"] == sealed else "half"
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                return archive.testzip() or sorted(
                    name for name in archive.namelist() if name.endswith(".md")
                )
        if path.suffix == ".db":
            with contextlib.closing(
                apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            ) as copy:
                sound = copy.execute("PRAGMA integrity_check").fetchall()
                return (
                    sound
                    and copy.execute("SELECT subject FROM memories ORDER BY subject").fetchall()
                )
        return sorted(line for line in path.read_text().splitlines() if line.startswith("#"))
    except (ValueError, KeyError, IndexError, zipfile.BadZipFile, apsw.Error) as error:
        return f"half: {error}"


def restored_beside(place: Place) -> Any:
    """The home that was restored beside the one in use: its files, where it is there."""
    other = place.user / "other"
    found = sorted(path.relative_to(other).as_posix() for path in other.rglob("*.md"))
    return {"there": other.exists(), "memories": found, "database": (other / "nacre.db").exists()}


def leaked(place: Place) -> bool:
    """Whether any object that git keeps says what is to be taken out."""
    names = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"],
        cwd=place.vault,
        check=True,
        capture_output=True,
    )
    told = subprocess.run(
        ["git", "cat-file", "--batch"],
        cwd=place.vault,
        check=True,
        capture_output=True,
        input=names.stdout,
    )
    return b"on the wall" in told.stdout


@Hand
def begin_remote(place: Place) -> None:
    """A repository to keep in step with."""
    remote = place.user / "remote.git"
    _git(place.user, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    _git(place.vault, "remote", "add", "origin", str(remote))


@Hand
def change_elsewhere(place: Place) -> None:
    """Another machine, with a plain git: it edits one memory, and takes one away."""
    other = place.user / "other"
    _git(place.user, "clone", "--quiet", str(place.user / "remote.git"), str(other))
    gate = other / "projects/harbour/fact/gate.md"
    gate.write_text(gate.read_text().replace("on the wall", "with the porter"))
    (other / "global/decision/crane.md").unlink()
    _git(
        other,
        "-c",
        "user.name=Jo",
        "-c",
        "user.email=jo@example.org",
        "commit",
        "--quiet",
        "-a",
        "-m",
        "porter",
    )
    _git(other, "push", "--quiet")


TALK_FILES = ".claude/projects/-code-harbour"
OLD = 1_700_000_000


@Hand
def age_all(place: Place) -> None:
    """What was said so far was said long ago; it goes on in a copy, as of a session that was resumed."""
    folder = place.user / TALK_FILES
    for path in folder.iterdir():
        os.utime(path, (OLD, OLD))
    resumed = folder / "5e55-0009.jsonl"
    line = said("user", "The copy goes on about the harbour master.", 30, "5e55-0001")
    resumed.write_bytes(
        (folder / "5e55-0001.jsonl").read_bytes() + json.dumps(line).encode() + b"\n"
    )


def damage_packs(context: Home) -> None:
    """A disk that lost some bytes of what is archived: of transcripts that are there, and of one that is gone."""
    for path in archive_packs.folder_of(context).glob("*/*.pack"):
        data = bytearray(path.read_bytes())
        data[-12:-4] = bytes(8)
        path.write_bytes(data)


@Hand
def delete_a_transcript(place: Place) -> None:
    """As a tool does after some weeks."""
    (place.user / TALK_FILES / "5e55-0001.jsonl").unlink()


def kept(place: Place) -> dict[str, Any]:
    """What the archive holds, by transcript; and the transcripts that are there, which are never half."""
    context = opened_home()
    found: dict[str, Any] = {"unknown packs": []}
    known = set()
    for state in context.archive.all():
        name = Path(state.path).name
        known.add(state.pack)
        try:
            texts = [payload.text for _, payload in archive_packs.payloads(context, state)]
            found[name] = (
                hashlib.sha256(b"".join(texts)).hexdigest()[:8] if state.pack else "nothing"
            )
        except NacreError:
            found[name] = "nothing"  # it is damaged
    folder = archive_packs.folder_of(context)
    packs = [path.relative_to(folder).as_posix() for path in folder.glob("*/*.pack")]
    waiting = {
        archive_packs.place_for(context, due.tool, due.path) for due in context.archive.due()
    }
    known |= {place.relative_to(folder).as_posix() for place in waiting}
    found["unknown packs"] = [name for name in packs if name not in known]
    context.database.close()
    for path in [*place.user.glob(f"{TALK_FILES}/*"), *place.user.glob("old/*")]:
        if not path.name.startswith("."):  # what a kill left is written anew with the file
            found[f"{path.parent.name}/{path.name}"] = hashlib.sha256(
                path.read_bytes()
            ).hexdigest()[:8]
    return found


def searchable(place: Place) -> dict[str, Any]:
    """Which turns are found, by words, and what is wrong with the index."""
    context = opened_home()
    found: dict[str, Any] = {
        words: sorted(
            hit.turn.id
            for hit in search_sessions(context, RecallQuery(words, mode=Mode.LEXICAL)).turns
        )
        for words in ("heron", "harbour", "linter", "camera", "pier", "PostgreSQL")
    }
    found["wrong"] = [
        one.sentence
        for proof in (prove_database, prove_full_text)
        for one in proof(context).findings
    ]
    context.database.close()
    return found


def note_calls(context: Home) -> None:
    """Calls of a model, and a run, that are noted and not folded in yet; one call was folded in before."""
    noted = datetime(2026, 11, 20, 9, tzinfo=UTC)
    for number in range(1, 5):
        at = noted + timedelta(seconds=number)
        note_call(
            context,
            Call(
                f"call-{number}",
                at,
                at.date(),
                "dedup",
                "m:1",
                is_background=True,
                cost=100,
                outcome="done",
            ),
        )
        if number == 1:
            fold_notes(context)
    note(context, Trace("run-1", Task.EXTRACTION, noted, "m:1", "a session", "found nothing"))


def counted(place: Place) -> dict[str, Any]:
    """What is folded in or waits for it, each once; and what all of it cost."""
    context = opened_home()
    fold_notes(context)
    rows = context.database.rows("SELECT id, cost FROM model_calls ORDER BY id")
    runs = [trace.id for trace in context.traces.latest(None, None, 100)]
    context.database.close()
    return {"calls": rows, "runs": [run for run in runs if run.startswith("run-")]}


@Hand
def go_on_with_restored(place: Place) -> None:
    """The tool resumes a session that was restored."""
    with (place.user / TALK_FILES / "5e55-0001.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            json.dumps(said("user", "We decided to rename heron to crane.", 40, "5e55-0001")) + "\n"
        )


OWN_MEMORY = ".claude/projects/-code-harbour/memory"
OWN_FACT = "---\nname: {0}\ndescription: {0}\ntype: project\n---\nThe {0} is painted every spring by the crew.\n"


@Hand
def remember_in_a_host(place: Place) -> None:
    """Claude Code with settings of its user, and with a memory of its own."""
    folder = place.user / OWN_MEMORY
    folder.mkdir(parents=True)
    (place.user / ".claude/settings.json").write_text('{\n  "model": "opus" // mine\n}\n')
    for name in ("jetty", "slipway", "boathouse"):
        (folder / f"{name}.md").write_text(OWN_FACT.format(name))
        os.utime(folder / f"{name}.md", (OLD, OLD))


def in_hosts(place: Place) -> dict[str, Any]:
    """Files of a host, whole as they are; and when its memory was written."""
    memory = {path.name: path.stat().st_mtime for path in (place.user / OWN_MEMORY).iterdir()}
    named = [place.user / ".claude/settings.json", *(place.user / OWN_MEMORY).iterdir()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:8] for path in named} | {
        "written": memory
    }


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _steps(*runs: Command | Work, is_whole: bool = True) -> tuple[Step, ...]:
    return tuple(Step(run, is_whole) for run in runs)


WARM: tuple[Command | Work | Hand, ...] = (
    GATE,
    OLD_BUILD,
    NEW_BUILD,
    ("retire", "Gate"),
    ("retire", "--restore", "Gate"),
    talk("5e55-0001"),
    ("ingest",),
    (
        "admin",
        "commit",
    ),
    ("recall", "gate"),
)
"""What makes a process ready for all that the scenarios do."""

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("first store", _steps(GATE)),
        Scenario("store", _steps(LUNCH, CRANE), before=(GATE,)),
        Scenario(
            "edit",
            _steps(
                ("edit", "Gate", "--content", "The gate code is in the safe.", "--importance", "9"),
                ("edit", "Lunch", "--kind", "event"),
                ("project", "page", "identity", "You work for Grace, who sails."),
                ("project", "page", "profile", "--remove"),
            ),
            before=(
                GATE,
                LUNCH,
                ("project", "page", "identity", "You work for Ada."),
                ("project", "page", "profile", "Always answer briefly."),
            ),
        ),
        Scenario("supersede", _steps(NEW_BUILD), before=(OLD_BUILD,)),
        Scenario(
            "retire",
            _steps(("retire", "Gate", "Lunch", "--reason", "outdated")),
            before=(GATE, LUNCH, CRANE),
        ),
        Scenario(
            "unretire",
            _steps(("retire", "--restore", "Gate")),
            before=(GATE, LUNCH, ("retire", "Gate")),
        ),
        Scenario(
            "ingest",
            _steps(("ingest",), is_whole=False),
            before=(
                LUNCH,
                talk("5e55-0001", "5e55-0002", "5e55-0003"),
            ),
        ),
        Scenario(
            "ingest more",
            _steps(("ingest",), is_whole=False),
            before=(
                talk("5e55-0001", last=1),
                talk("5e55-0002"),
                ("ingest",),
                talk("5e55-0001", first=1),
                talk("5e55-0003"),
            ),
        ),
        Scenario("batch", _steps(import_many), before=(GATE, LUNCH)),
        Scenario("consolidate", _steps(consolidate, is_whole=False), before=(store_ropes,)),
        Scenario(
            "edit by hand",
            _steps(("list",), is_whole=False),
            before=(GATE, LUNCH, CRANE, OLD_BUILD),
            by_hand=edit_by_hand,
            may_tell="read as a separate memory",
        ),
        Scenario(
            "vectors",
            _steps(ingest_with_vectors, is_whole=False),
            before=(
                stored("Linter", "Always run the linter before you commit."),
                talk("5e55-0001", "5e55-0002"),
            ),
        ),
        Scenario(
            "switch vectors",
            _steps(switch_vectors, switch_back, is_whole=False),
            before=(
                GATE,
                LUNCH,
                CRANE,
                talk("5e55-0001", "5e55-0002", "5e55-0003"),
                ("config", "set", "embedding.model", FIRST),
                ingest_by_the_first_model,
            ),
            outside=searched,
            may_leave=".config.toml.",
        ),
        Scenario(
            "commit",
            _steps(
                (
                    "admin",
                    "commit",
                )
            ),
            before=(GATE, LUNCH, ("retire", "Lunch")),
        ),
        Scenario(
            "commit more",
            _steps(
                CRANE,
                (
                    "admin",
                    "commit",
                ),
            ),
            before=(
                GATE,
                (
                    "admin",
                    "commit",
                ),
                LUNCH,
            ),
        ),
        Scenario(
            "sync",
            _steps(("sync",), is_whole=False),
            before=(
                GATE,
                CRANE,
                (
                    "admin",
                    "commit",
                ),
                begin_remote,
                ("sync",),
                LUNCH,
                ("edit", "Gate", "--importance", "9"),
                change_elsewhere,
            ),
        ),
        Scenario(
            "forget",
            _steps(("forget", "--match", "heron", "--yes"), is_whole=False),
            before=(
                GATE,
                stored("Heron", "The heron database is backed up at night."),
                talk("5e55-0001", "5e55-0002"),
                ("ingest",),
                (
                    "admin",
                    "commit",
                ),
                hand_over_by_rules,
            ),
            outside=handed_over,
            may_leave="archive/",
        ),
        Scenario(
            "dream",
            _steps(have_a_dream, is_whole=False),
            before=(
                GATE,
                talk("5e55-0001", "5e55-0002", "5e55-0003"),
                ("ingest",),
                store_what_is_over,
            ),
            outside=page_told,
        ),
        Scenario(
            "dream of a writer",
            _steps(merge_in_new_words, is_whole=False),
            before=(
                GATE,
                store_what_says_the_same,
            ),
        ),
        Scenario(
            "undo",
            _steps(undo_edit),
            before=(
                GATE,
                LUNCH,
                ("edit", "Gate", "--content", "The gate code is in the safe.", "--kind", "event"),
            ),
        ),
        Scenario(
            "merge and rename projects",
            _steps(merge_projects, rename_project),
            before=(
                GATE,
                talk("5e55-0001", "5e55-0002"),
                ("ingest",),
                stored("Pier", "The pier has nine lamps.", "--project", "pier"),
                stored("Hook", "The hook of the crane is red.", "--project", "crane"),
                ("project", "depend", "harbour", "crane"),
            ),
            outside=dependencies_of,
        ),
        Scenario(
            "settle a conflict",
            _steps(settle_conflicts),
            before=(
                stored("Uploads", "Uploads may be 10 MB", "--project", "harbour"),
                stored("Upload limit", "Uploads have changed to 25 MB", "--project", "harbour"),
            ),
        ),
        Scenario(
            "hand over",
            _steps(
                hand_over_by_rules,
                hand_over_by_model,
                give_handoff,
                delete_handoff,
            ),
            before=(
                ("config", "set", "models.handoff", "scripted:1"),
                ("config", "set", "models.background", "true"),
                talk("5e55-0001"),
                ("ingest",),
            ),
            outside=handed_over,
            may_leave=("run/sessions/.", "handoffs/"),
        ),
        Scenario(
            "chores",
            _steps(do_chores, is_whole=False),
            before=(
                GATE,
                talk("5e55-0001", "5e55-0002"),
            ),
            by_hand=Hand(leave_chores),
            may_leave=("run/chores/.", "handoffs/"),
        ),
        Scenario(
            "scrub",
            _steps(("admin", "scrub", "--yes"), is_whole=False),
            before=(
                GATE,
                LUNCH,
                talk("5e55-0001"),
                ("ingest",),
                ("config", "set", "redaction.patterns", '["on the wall"]'),
            ),
        ),
        Scenario(
            "scrub history",
            _steps(("admin", "scrub", "--history", "--yes"), is_whole=False),
            before=(
                GATE,
                LUNCH,
                (
                    "admin",
                    "commit",
                ),
                ("edit", "Gate", "--importance", "9"),
                (
                    "admin",
                    "commit",
                ),
                talk("5e55-0001"),
                ("ingest",),
                ("config", "set", "redaction.patterns", '["on the wall"]'),
            ),
            outside=leaked,
            may_leave=".rewrite-",
        ),
        Scenario(
            "retire by pattern",
            _steps(
                ("retire", "Rope *", "--persist", "--reason", "sold", "--yes"),
                is_whole=False,
            ),
            before=(store_ropes, GATE),
        ),
        Scenario(
            "unretire many",
            _steps(unretire_all, is_whole=False),
            before=(
                GATE,
                LUNCH,
                CRANE,
                ("retire", "Gate", "Lunch", "--persist"),
            ),
        ),
        Scenario(
            "import own",
            _steps(("data", "import", "~/memories.jsonl", "--trust"), is_whole=False),
            before=(
                GATE,
                OLD_BUILD,
                NEW_BUILD,
                store_ropes,
                talk("5e55-0001"),
                ("ingest",),
                ("retire", "Gate"),
                ("data", "export", "~/memories.jsonl", "--sessions", "--include-retired"),
                new_home,
                CRANE,
            ),
        ),
        Scenario(
            "import another's",
            _steps(import_in_small_batches, is_whole=False),
            before=(GATE, notes_of_another),
        ),
        Scenario(
            "export",
            _steps(
                ("data", "export", "~/memories.jsonl", "--force"),
                ("data", "export", "~/vault.zip"),
                ("data", "export", "~/memories.md"),
            ),
            before=(GATE, ("data", "export", "~/memories.jsonl"), LUNCH),
            outside=written,
        ),
        Scenario(
            "back up",
            _steps(
                ("data", "backup", "create", "~/home.zip", "--force"),
            ),
            before=(
                GATE,
                ("data", "backup", "create", "~/home.zip"),
                LUNCH,
                (
                    "admin",
                    "commit",
                ),
            ),
            outside=written,
        ),
        Scenario(
            "restore",
            _steps(("data", "backup", "restore", "~/home.zip", "--force")),
            before=(
                GATE,
                LUNCH,
                (
                    "admin",
                    "commit",
                ),
                ("data", "backup", "create", "~/home.zip"),
                CRANE,
                ("retire", "Gate"),
            ),
        ),
        Scenario(
            "restore beside",
            _steps(("data", "backup", "restore", "~/home.zip", "--to", "~/other")),
            before=(
                GATE,
                LUNCH,
                ("data", "backup", "create", "~/home.zip"),
            ),
            outside=restored_beside,
        ),
        Scenario(
            "settings",
            _steps(
                ("config", "set", "recall.limit", "20"),
                ("config", "set", "recall.turns", "5"),
            ),
            before=(GATE, ("config", "set", "recall.limit", "12")),
            outside=config_file,
            may_leave=".config.toml.",
        ),
        Scenario(
            "forget what was said",
            _steps(
                ("forget", "--match", "heron", "--yes"),
                ("ingest",),
                is_whole=False,  # which erases what is left
            ),
            before=(
                talk("5e55-0001", "5e55-0002"),
                ("ingest",),
                talk("5e55-0003"),
                ("ingest",),
            ),
            outside=searchable,
            may_leave="archive/",
        ),
        Scenario(
            "prune the archive",
            _steps(
                ("ingest",),
                is_whole=False,
            ),
            before=(
                talk("5e55-0001", "5e55-0002", "5e55-0003"),
                age_all,
                ("ingest",),
                ("config", "set", "archive.keep_days", "30"),
            ),
            outside=kept,
            may_leave="archive/",
        ),
        Scenario(
            "mend the archive",
            _steps(
                ("ingest",),
                damage_packs,
                ("admin", "doctor", "--deep", "--repair"),
                is_whole=False,
            ),
            before=(
                talk("5e55-0001", "5e55-0002", "5e55-0003"),
                age_all,
                ("ingest",),
                delete_a_transcript,
            ),
            outside=kept,
        ),
        Scenario(
            "restore a session",
            _steps(
                ("sessions", "restore", "5e55-0001", "--to", "~/old"),
                ("sessions", "restore", "5e55-0001"),
                is_whole=False,
            ),
            before=(talk("5e55-0001", "5e55-0002"), ("ingest",), delete_a_transcript),
            outside=kept,
        ),
        Scenario(
            "go on with what was restored",
            _steps(("ingest",), is_whole=False),
            before=(
                talk("5e55-0001", "5e55-0002"),
                ("ingest",),
                delete_a_transcript,
                ("sessions", "restore", "5e55-0001"),
            ),
            by_hand=go_on_with_restored,
            outside=kept,
        ),
        Scenario(
            "isolate a host",
            _steps(
                ("init", "--host", "claude-code", "--plain", "--own-memory", "isolate", "--yes"),
                ("init", "--uninstall", "--yes"),
                is_whole=False,
            ),
            before=(GATE, ("config", "set", "daemon.enabled", "false"), remember_in_a_host),
            outside=in_hosts,
            may_leave="hosts/",
        ),
        Scenario(
            "fold in what was noted", _steps(fold_notes), before=(GATE, note_calls), outside=counted
        ),
        Scenario(
            "answer chats",
            _steps(answer_chats, is_whole=False),
            before=(
                GATE,
                ("config", "set", "gateway.debounce_seconds", "0"),
            ),
            by_hand=Hand(lambda place: log_of(place.user).path.unlink(missing_ok=True)),
            outside=lambda place: answered(place.user),
        ),
        Scenario(
            "rebuild",
            _steps(("admin", "db", "rebuild", "--yes"), is_whole=False),
            before=(
                GATE,
                OLD_BUILD,
                NEW_BUILD,
                talk("5e55-0001"),
                ("ingest",),
                ("retire", "Gate"),
                note_calls,
            ),
            outside=counted,
        ),
    )
}
