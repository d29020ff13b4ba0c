"""The interrupted scenarios. Each item of ``SCENARIOS`` has an initial state and the commands that follow.

Its memories have unique subjects, which identify them regardless of their ids. A step is a command line, or a function
that works with an open home if no command exists.
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
from nacre.context import hooks
from nacre.context.build import build
from nacre.context.handoff import hand_over, improve, put_away
from nacre.context.hooks import write_state
from nacre.data import imports, undo
from nacre.data.export import ImportOptions
from nacre.data.undo import undo as undo_undo
from nacre.errors import ConflictError, NacreError, UnavailableError
from nacre.home import archive
from nacre.home import change as changes
from nacre.home.home import Home, open_home
from nacre.home.projects import Handoffs
from nacre.home.spending import embedder_in_use, fold_notes, note
from nacre.learn.ingest import ingest
from nacre.memories import retire, vectors
from nacre.memories.projects import merge, rename
from nacre.recall.recall import recall, search_sessions
from nacre.review import consolidate as dreams
from nacre.review import queue
from nacre.review.dream import DreamRequest, carry_out, dream
from nacre.review.pages import mark
from nacre.settings import Settings, load_settings
from nacre.setup.chores import Chore, do_waiting
from nacre.setup.chores import put as put_chore
from nacre.values.context import ContextRequest
from nacre.values.memory import Expiry, Kind, Link, Memory, Retirement
from nacre.values.models import Call
from nacre.values.recall import LaneState, Mode, RecallQuery
from nacre.values.session import StoredSession
from tests.app.conftest import WordEmbedder
from tests.fakes.model import ScriptedModel
from tests.trust.chats import answer_chats, answered, log_of


@dataclass(frozen=True, slots=True)
class Place:
    """A user's machine: the user's folder with nacre's home in it."""

    user: Path

    @property
    def home(self) -> Path:
        """Return nacre's home."""
        return self.user / ".nacre"

    @property
    def vault(self) -> Path:
        """Return the folder of memories."""
        return self.home / "vault"


Command = Sequence[str]
Work = Callable[[Home], object]


@dataclass(frozen=True, slots=True)
class Hand:
    """A change of files while no nacre runs."""

    do: Callable[[Place], object]


@dataclass(frozen=True, slots=True)
class Step:
    """A command, or work with an open home. ``is_whole``: after a crash it is done completely or not at all."""

    run: Command | Work
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Scenario:
    """``before`` creates the home; ``by_hand`` changes files just before ``steps`` begin.

    ``may_tell`` is part of an expected warning. ``outside`` returns comparable values of the state outside the memories
    that the steps change: equal to the old or the new state, never half. ``may_leave`` is the prefix of the name, or of
    the path in the home, of a temporary file that remains until the command runs again.
    """

    name: str
    steps: tuple[Step, ...]
    before: tuple[Command | Work | Hand, ...] = ()
    by_hand: Hand | None = None
    may_tell: str | None = None
    outside: Callable[[Place], Any] | None = None
    may_leave: str | tuple[str, ...] | None = None


def transcript_record(role: str, text: str, number: int, session: str) -> dict[str, Any]:
    """Return a record of a Claude Code transcript."""
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
    """Transcripts in the agent's folder, with their turns from ``first`` to ``last``."""

    def write(place: Place) -> None:
        folder = place.user / ".claude/projects/-code-harbour"
        folder.mkdir(parents=True, exist_ok=True)
        for session in sessions:
            lines = [
                transcript_record(role, text, number, session)
                for number, (role, text) in enumerate(TALKS[session])
            ]
            with (folder / f"{session}.jsonl").open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines[first:last])

    return Hand(write)


def store_command(subject: str, content: str, *more: str) -> Command:
    """Return the command that stores a memory."""
    return ("store", content, "--subject", subject, *more)


GATE = store_command("Gate", "The gate code is on the wall.", "--project", "harbour")
LUNCH = store_command("Lunch", "Lunch is at noon on weekdays.", "--tag", "kitchen")
CRANE = store_command(
    "Crane", "The crane is inspected every June by two people.", "--kind", "decision"
)
OLD_BUILD = store_command("Old build", "The build runs on Jenkins.", "--key", "build-system")
NEW_BUILD = store_command("New build", "The build runs on Buildkite.", "--key", "build-system")
SOURCES = tuple(
    (f"Rope {number}", f"Rope number {number} hangs at bollard {number * 7}.")
    for number in range(12)
)


def opened_home(settings: Settings | None = None) -> Home:
    """Open the home named by the environment."""
    return open_home(settings or load_settings())


def _named(context: Home, subject: str) -> Memory:
    (memory,) = context.memories.find_like(subject)
    return memory


def store_ropes(context: Home) -> None:
    """Store twelve memories in one write."""
    now = context.now()
    ropes = [
        Memory(context.ids(), Kind.FACT, subject, words, now, now) for subject, words in SOURCES
    ]
    with context.change("store") as change, change.transaction():
        change.put(ropes)


def consolidate(context: Home) -> None:
    """Consolidate like a dream: write replacements, then retire their sources, in one operation of many batches."""
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
        retired = [
            replace(rope, retired=Retirement(now, "merged")) for rope in sources if not rope.retired
        ]
        change.apply()
        change.put(retired, [change.entry("retire", memory=rope.id) for rope in retired])


def import_many(context: Home) -> None:
    """Import in one transaction: twelve new memories and two changed ones."""
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


def store_outdated(context: Home) -> None:
    """Store two duplicates, a temporary memory, a memory with a dangling link, and one in the inbox."""
    now = context.now()
    long_ago = now - timedelta(days=200)
    missing = context.ids()
    memories = [
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
            links=(Link("part_of", missing),),
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
        change.put(memories, [change.entry("retire", memory=missing)])


def have_a_dream(context: Home) -> None:
    """Retire outdated memories, merge duplicates, and write the project's page."""
    dream(context, DreamRequest(tier=3, first=True))


def page_has_activity(place: Place) -> bool:
    """Return True if the project's page lists its sessions."""
    return "## Recent activity" in (place.vault / "projects/harbour/project.md").read_text(
        encoding="utf-8"
    )


def store_paraphrases(context: Home) -> None:
    """Store two memories with the same meaning, and two of which the later one contradicts the earlier."""
    now = context.now()
    before = now - timedelta(days=30)
    memories = [
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
        change.put(memories)


def merge_in_new_words(context: Home) -> None:
    """Apply a writer's proposals that a second check confirmed."""
    everything = context.memories.in_any_state(sorted(context.memories.all_ids()))
    memories = sorted(
        (item for item in everything if "ebb" in item.content or "ferry" in item.content),
        key=lambda it: it.id,
    )
    duplicate, keeper, old, new = memories
    words = "At ebb the boats lie dry for six hours."
    step = dreams.Step(
        dreams.DreamAction.MERGE,
        (duplicate.id,),
        keeper.id,
        "Ebb",
        "the same boats",
        words,
        by="scripted:1",
        mark=mark((keeper, duplicate)),
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
        it
        for it, ended in ((end, old), (step, duplicate))
        if not (ended.retired or ended.superseded_by)
    )
    carry_out(_at_noon(context), dreams.DreamPlan(steps, seen=4, most=20))


def undo_edit(context: Home) -> None:
    """Undo the last edit unless already undone."""
    listed = [item.operation for item in undo.log(context, limit=30)]
    if not any(item.action == "undo" for item in listed):
        undo_undo(context, next(item.id for item in listed if item.action == "update"))


def merge_projects(context: Home) -> None:
    """Merge the harbour, which has sessions and a page, into the pier unless already merged."""
    with contextlib.suppress(ConflictError):
        merge(context, project="harbour", into="pier", reason="there is one quay")


def rename_project(context: Home) -> None:
    """Rename the pier unless already renamed."""
    with contextlib.suppress(ConflictError):
        rename(context, "pier", "Old Quay")


def dependencies_of(place: Place) -> int:
    """Count the pages, in any folder, with a dependency on another project."""
    return sum(
        "dependencies: [crane]" in page.read_text("utf-8")
        for page in place.vault.glob("projects/*/project.md")
    )


def settle_conflicts(context: Home) -> None:
    """Keep the newer memory of each conflict."""
    for pair in queue.list_conflicts(context):
        queue.resolve(context, pair.id, queue.Choice.KEEP_NEW, "the newer sign is right")


def _at_noon(context: Home, **more: Any) -> Home:
    """Return the home with a fixed clock, so that repeated writes get the same names."""
    return replace(context, clock=lambda: datetime(2026, 11, 18, 12, tzinfo=UTC), **more)


def _harbour(context: Home) -> StoredSession:
    (session,) = context.sessions.find("claude-code:5e55-0001")
    return session


def hand_over_by_rules(context: Home) -> None:
    """Hand over a session, in the owner's words."""
    hand_over(_at_noon(context), _harbour(context))


def hand_over_by_model(context: Home) -> None:
    """Let a model improve the handoff."""
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
    """Give the handoff to the next session, and archive it.

    Raises UnavailableError if the delivery cannot be recorded: the handoff may then be given twice.
    Repeated minutes later, the command gives it again, to this session or the next.
    """
    home = _at_noon(context)
    earlier = home.clock().timestamp() - 2 * hooks.CLAIM_SECONDS
    for claim in (home.settings.home / "run/handoffs").glob("*"):
        os.utime(claim, (earlier, earlier))
    for session in ("claude-code:5e55-0009", "claude-code:5e55-0010"):
        block = build(home, ContextRequest(folder="/code/harbour", session=session))
        write_state(home.settings.home, session, block.state)
        if block.state:  # the session is new
            break
    if hooks.due_handoffs(home, "harbour", None) and not any(hooks.iter_delivered(home)):
        raise UnavailableError(
            "what the session was given cannot be kept", hint="the next one is given it, too"
        )
    put_away(home)


def delete_handoff(context: Home) -> None:
    """Delete the handoff a week later."""
    at_noon = _at_noon(context)
    put_away(replace(at_noon, clock=lambda: at_noon.clock() + timedelta(days=8)))  # type: ignore[misc]


def list_handoffs(place: Place) -> list[tuple[str, str, bool]]:
    """Return the handoffs: content, author, and whether they were delivered."""
    return sorted(
        (item.content, item.by, bool(item.given)) for item in Handoffs(place.home).everything()
    )


def leave_chores(place: Place) -> None:
    """Leave the chores of hooks for an ended and a started session."""
    for number, kind in (("1", "session-end"), ("2", "session-start")):
        session = f"claude-code:5e55-000{number}"
        transcript = str(place.user / f".claude/projects/-code-harbour/5e55-000{number}.jsonl")
        put_chore(
            place.home, Chore(kind, session, transcript, "/code/harbour", "startup", time.time())
        )


def do_chores(context: Home) -> None:
    """Do all chores; retry failed and unfinished ones hours later."""
    now = datetime.now(UTC)
    for hours in range(5):
        do_waiting(replace(context, clock=lambda hours=hours: now + timedelta(hours=hours)))  # type: ignore[misc]


def unretire_all(context: Home) -> None:
    """Restore all retired memories, and end standing retirements."""
    retired = [item.id for item in retire.list_retired(context)]
    rules = [rule.id for rule in retire.list_standing(context)]
    if retired or rules:
        retire.unretire(context, references=(*retired, *rules))


def import_in_small_batches(context: Home) -> None:
    """Import another tool's notes in small batches."""
    imports.BATCH = 4
    path = context.settings.user_home / "workspace"
    plan = imports.plan_import(context, ImportOptions(path=path, vectors=False))
    imports.carry_out(context, plan)


def ingest_with_vectors(context: Home) -> None:
    """Ingest with vectors and comparison by meaning, with a fake embedder."""
    settings = load_settings(environ={**os.environ, "NACRE_EMBEDDING_MODEL": "minilm"})
    home = open_home(settings, load_embedder=lambda _: WordEmbedder())
    try:
        ingest(home)
    finally:
        home.database.close()


class Salted(WordEmbedder):
    """A fake model: its vectors differ from every other model's, and its name sets their size."""

    def __init__(self, name: str, dimensions: int) -> None:
        super().__init__(name)
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed each word together with the model's name."""
        return super().embed(
            [" ".join(f"{self.name}{word}" for word in words(text)) for text in texts]
        )


FIRST, SECOND = "ollama:first", "openai:text-embedding-3-small"
"""A local model, and a remote one that needs consent, which is a setting, too."""


def _salted(settings: Settings) -> Salted:
    return Salted("first", 384) if settings["embedding.model"] == FIRST else Salted("second", 256)


@contextlib.contextmanager
def home_with_vectors() -> Iterator[Home]:
    """Open the home with the model of its settings; texts are embedded a few at a time."""
    vectors.STEP_TURNS = vectors.STEP_MEMORIES = 2
    environ = {name: value for name, value in os.environ.items() if name != "NACRE_EMBEDDING_MODEL"}
    home = open_home(load_settings(environ=environ), load_embedder=_salted)
    try:
        yield home
    finally:
        home.database.close()


def ingest_by_the_first_model(_: Home) -> None:
    """Ingest with the model that the switch replaces."""
    with home_with_vectors() as home:
        ingest(home)


def switch_vectors(_: Home) -> None:
    """Switch to the second model, or resume the switch."""
    with home_with_vectors() as home:
        vectors.switch(home, name=SECOND)


def switch_back(_: Home) -> None:
    """Switch back to the first model, or resume the switch."""
    with home_with_vectors() as home:
        vectors.switch(home, name=FIRST)


def vector_state(_: Place) -> dict[str, Any]:
    """Return the setting, the vectors in use and their hits. Recall reports missing vectors, and they can be
    completed."""
    questions = ("is the gate code on the wall?", "is lunch at noon on weekdays?")
    with home_with_vectors() as home:
        in_use, embedder = home.vectors, embedder_in_use(home)
        wrong = []
        if in_use.model() != embedder.name or any(in_use.missing()):
            answers = [
                recall(home, RecallQuery(q, mode=Mode.VECTOR, update=False)) for q in questions
            ]
            states = [answer.lanes[1].state for answer in answers]
            wrong += ["recall does not report them"] if LaneState.RAN in states else []
            vectors.resume(home)
        wrong += [f"{in_use.model()} made them"] if in_use.model() != embedder.name else []
        wrong += [f"{sum(in_use.missing())} missing"] if any(in_use.missing()) else []
        for row, memory in home.memories.rows_of(home.memories.all_ids()).items():
            vector = embedder.embed([f"{memory.subject}. {memory.content}"])[0]
            wrong += [memory.subject] if in_use.memory_cosines(vector)[row] < OWN else []
        for row, text in in_use.turns_after(0, 100):
            wrong += (
                [text]
                if in_use.cosines_of_turns(embedder.embed([text])[0], [row])[row] < OWN
                else []
            )
        answers_by_question = {
            question: recall(home, RecallQuery(question, mode=Mode.VECTOR, update=False))
            for question in questions
        }
        return {
            "by": in_use.setting(),
            "set": home.settings["embedding.model"],
            "wrong": wrong,
            "hosts": home.settings["embedding.sends_to"],
            "lanes": {
                question: answer.lanes[1].state for question, answer in answers_by_question.items()
            },
            "hits": {
                question: [hit.memory.subject for hit in answer.hits[:1]]
                for question, answer in answers_by_question.items()
            },
        }


OWN = 0.99
"""The minimum cosine of a text to its stored vector, which keeps eight bits per number."""


@Hand
def edit_by_hand(place: Place) -> None:
    """Edit, move, delete and write notes like a person between two commands."""
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
    """Another machine, without a home."""
    shutil.rmtree(place.home)


@Hand
def notes_of_another_tool(place: Place) -> None:
    """Another tool's memory: a curated page and a diary."""
    folder = place.user / "workspace/memory"
    folder.mkdir(parents=True)
    lines = (f"- The mooring at pier {number} holds {number * 3} boats.\n" for number in range(7))
    (folder.parent / "MEMORY.md").write_text("# Harbour\n\n" + "".join(lines))
    (folder / "2026-11-02.md").write_text(
        "- We painted the north jetty green.\n- The tug came back from the yard.\n"
    )


def config_file(place: Place) -> Any:
    """Return the text of the settings file."""
    config = place.home / "config.toml"
    return config.read_text() if config.exists() else None


def exports(place: Place) -> dict[str, Any]:
    """Return the content of existing exports, backups and database copies, or that they are incomplete."""
    return {name: _inside(place.user / name) for name in EXPORTS if (place.user / name).exists()}


EXPORTS = ("memories.jsonl", "memories.md", "vault.zip", "home.zip")


def _inside(path: Path) -> Any:
    """Return the content of a file in comparable form; raises nothing."""
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


def restored_home(place: Place) -> Any:
    """Return the files of the home restored to another folder, if it exists."""
    other = place.user / "other"
    memories = sorted(path.relative_to(other).as_posix() for path in other.rglob("*.md"))
    return {
        "there": other.exists(),
        "memories": memories,
        "database": (other / "nacre.db").exists(),
    }


def history_contains_secret(place: Place) -> bool:
    """Return True if any git object contains the removed text."""
    names = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"],
        cwd=place.vault,
        check=True,
        capture_output=True,
    )
    objects = subprocess.run(
        ["git", "cat-file", "--batch"],
        cwd=place.vault,
        check=True,
        capture_output=True,
        input=names.stdout,
    )
    return b"on the wall" in objects.stdout


@Hand
def begin_remote(place: Place) -> None:
    """Create a remote repository for sync."""
    remote = place.user / "remote.git"
    _git(place.user, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    _git(place.vault, "remote", "add", "origin", str(remote))


@Hand
def change_elsewhere(place: Place) -> None:
    """Edit one memory and delete another on another machine with plain git."""
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
    """Make all transcripts old, and continue one in a copy, like a resumed session."""
    folder = place.user / TALK_FILES
    for path in folder.iterdir():
        os.utime(path, (OLD, OLD))
    resumed = folder / "5e55-0009.jsonl"
    line = transcript_record("user", "The copy goes on about the harbour master.", 30, "5e55-0001")
    resumed.write_bytes(
        (folder / "5e55-0001.jsonl").read_bytes() + json.dumps(line).encode() + b"\n"
    )


def damage_packs(context: Home) -> None:
    """Lose some bytes of archived transcripts, both of existing and of deleted ones."""
    for path in archive.folder_of(context).glob("*/*.pack"):
        data = bytearray(path.read_bytes())
        data[-12:-4] = bytes(8)
        path.write_bytes(data)


@Hand
def delete_a_transcript(place: Place) -> None:
    """Delete a transcript, as the tool does after some weeks."""
    (place.user / TALK_FILES / "5e55-0001.jsonl").unlink()


def archive_contents(place: Place) -> dict[str, Any]:
    """Return the archive's contents by transcript, and the existing transcripts, which are never incomplete."""
    context = opened_home()
    contents: dict[str, Any] = {"unknown packs": []}
    expected = set()
    for state in context.archive.all():
        name = Path(state.path).name
        expected.add(state.pack)
        try:
            texts = [payload.text for _, payload in archive.payloads(context, state)]
            contents[name] = (
                hashlib.sha256(b"".join(texts)).hexdigest()[:8] if state.pack else "nothing"
            )
        except NacreError:
            contents[name] = "nothing"  # damaged
    folder = archive.folder_of(context)
    packs = [path.relative_to(folder).as_posix() for path in folder.glob("*/*.pack")]
    waiting = {archive.place_for(context, due.tool, due.path) for due in context.archive.due()}
    expected |= {place.relative_to(folder).as_posix() for place in waiting}
    contents["unknown packs"] = [name for name in packs if name not in expected]
    context.database.close()
    for path in [*place.user.glob(f"{TALK_FILES}/*"), *place.user.glob("old/*")]:
        if not path.name.startswith("."):  # leftovers of a kill are overwritten with the file
            contents[f"{path.parent.name}/{path.name}"] = hashlib.sha256(
                path.read_bytes()
            ).hexdigest()[:8]
    return contents


def searchable(place: Place) -> dict[str, Any]:
    """Return the turns found by words, and the faults of the index."""
    context = opened_home()
    results: dict[str, Any] = {
        words: sorted(
            hit.turn.id
            for hit in search_sessions(context, RecallQuery(words, mode=Mode.LEXICAL)).turns
        )
        for words in ("heron", "harbour", "linter", "camera", "pier", "PostgreSQL")
    }
    results["wrong"] = [
        item.sentence
        for proof in (prove_database, prove_full_text)
        for item in proof(context)
        if item.mend or item.repair
    ]
    context.database.close()
    return results


def note_calls(context: Home) -> None:
    """Record a model's calls without folding them in, except one."""
    noted = datetime(2026, 11, 20, 9, tzinfo=UTC)
    for number in range(1, 5):
        at = noted + timedelta(seconds=number)
        note(
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


def recorded_calls(place: Place) -> dict[str, Any]:
    """Return the recorded calls, each once, with their costs."""
    context = opened_home()
    fold_notes(context)
    rows = context.database.rows("SELECT id, cost FROM model_calls ORDER BY id")
    context.database.close()
    return {"calls": rows}


@Hand
def go_on_with_restored(place: Place) -> None:
    """Resume a restored session in the tool."""
    with (place.user / TALK_FILES / "5e55-0001.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            json.dumps(
                transcript_record("user", "We decided to rename heron to crane.", 40, "5e55-0001")
            )
            + "\n"
        )


OWN_MEMORY = ".claude/projects/-code-harbour/memory"
OWN_FACT = "---\nname: {0}\ndescription: {0}\ntype: project\n---\nThe {0} is painted every spring by the crew.\n"


@Hand
def remember_in_a_host(place: Place) -> None:
    """Claude Code with the user's settings and its own memory."""
    folder = place.user / OWN_MEMORY
    folder.mkdir(parents=True)
    (place.user / ".claude/settings.json").write_text('{\n  "model": "opus" // mine\n}\n')
    for name in ("jetty", "slipway", "boathouse"):
        (folder / f"{name}.md").write_text(OWN_FACT.format(name))
        os.utime(folder / f"{name}.md", (OLD, OLD))


def in_hosts(place: Place) -> dict[str, Any]:
    """Return the complete files of a host, and the modification times of its memory."""
    memory = {path.name: path.stat().st_mtime for path in (place.user / OWN_MEMORY).iterdir()}
    files = [place.user / ".claude/settings.json", *(place.user / OWN_MEMORY).iterdir()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:8] for path in files} | {
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
"""Commands that warm up a process for all scenarios."""

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
                store_command("Linter", "Always run the linter before you commit."),
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
            outside=vector_state,
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
                store_command("Heron", "The heron database is backed up at night."),
                talk("5e55-0001", "5e55-0002"),
                ("ingest",),
                (
                    "admin",
                    "commit",
                ),
                hand_over_by_rules,
            ),
            outside=list_handoffs,
            may_leave="archive/",
        ),
        Scenario(
            "dream",
            _steps(have_a_dream, is_whole=False),
            before=(
                GATE,
                talk("5e55-0001", "5e55-0002", "5e55-0003"),
                ("ingest",),
                store_outdated,
            ),
            outside=page_has_activity,
        ),
        Scenario(
            "dream of a writer",
            _steps(merge_in_new_words, is_whole=False),
            before=(
                GATE,
                store_paraphrases,
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
                store_command("Pier", "The pier has nine lamps.", "--project", "pier"),
                store_command("Hook", "The hook of the crane is red.", "--project", "crane"),
                ("project", "depend", "harbour", "crane"),
            ),
            outside=dependencies_of,
        ),
        Scenario(
            "settle a conflict",
            _steps(settle_conflicts),
            before=(
                store_command("Uploads", "Uploads may be 10 MB", "--project", "harbour"),
                store_command(
                    "Upload limit", "Uploads have changed to 25 MB", "--project", "harbour"
                ),
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
            outside=list_handoffs,
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
            outside=history_contains_secret,
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
            before=(GATE, notes_of_another_tool),
        ),
        Scenario(
            "export",
            _steps(
                ("data", "export", "~/memories.jsonl", "--force"),
                ("data", "export", "~/vault.zip"),
            ),
            before=(GATE, ("data", "export", "~/memories.jsonl"), LUNCH),
            outside=exports,
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
            outside=exports,
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
            outside=restored_home,
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
                is_whole=False,  # which deletes the rest
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
            outside=archive_contents,
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
            outside=archive_contents,
        ),
        Scenario(
            "restore a session",
            _steps(
                ("sessions", "restore", "5e55-0001", "--to", "~/old"),
                ("sessions", "restore", "5e55-0001"),
                is_whole=False,
            ),
            before=(talk("5e55-0001", "5e55-0002"), ("ingest",), delete_a_transcript),
            outside=archive_contents,
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
            outside=archive_contents,
        ),
        Scenario(
            "isolate a host",
            _steps(
                ("init", "--host", "claude-code", "--own-memory", "isolate", "--yes"),
                ("init", "--uninstall", "--yes"),
                is_whole=False,
            ),
            before=(GATE, ("config", "set", "daemon.enabled", "false"), remember_in_a_host),
            outside=in_hosts,
            may_leave="hosts/",
        ),
        Scenario(
            "fold in what was noted",
            _steps(fold_notes),
            before=(GATE, note_calls),
            outside=recorded_calls,
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
            outside=recorded_calls,
        ),
    )
}
