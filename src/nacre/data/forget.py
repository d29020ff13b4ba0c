"""Permanent deletion, called forgetting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.base.request import Request
from nacre.base.text import to_text
from nacre.data.scrub import list_copies, rename
from nacre.errors import (
    EditConflictError,
    GitUnavailableError,
    InvalidMemoryError,
    InvalidQueryError,
    NotFoundError,
    UnusableRepositoryError,
    UnusableVaultError,
    refuse_several,
)
from nacre.home.change import Change, page_path
from nacre.home.home import Home
from nacre.home.operations import apply_intents
from nacre.home.projects import REFERENCE_CHARACTERS, references_of
from nacre.home.spending import fold_notes
from nacre.learn import discovery
from nacre.learn.ingest import jobs_for, read_changed
from nacre.memories import erasure
from nacre.memories.edit import catch_up
from nacre.memories.store import get
from nacre.memories.tombstones import (
    ALLOW_AGAIN,
    FORGET,
    Affected,
    Barred,
    Pattern,
    excerpt_of,
    forgetting_in,
    heed_ledger,
    is_in_path,
    is_shared,
    memory_texts,
    project_value,
    standing_tombstones,
    survey,
    tombstones_of,
    turn_texts,
    turn_value,
    words_value,
)
from nacre.memories.usage import fold_usage
from nacre.operations import operation
from nacre.readers.nacre_chat import sessions_folder
from nacre.values.codec import stamp
from nacre.values.memory import (
    Excerpt,
    ForgetPlan,
    ForgetReport,
    Forgotten,
    Tombstone,
    TombstoneKind,
    TurnPlace,
    Unreached,
)
from nacre.vault import files
from nacre.vault.documents import values_of

# -- Removing matches from file names and links ----------------------------------------------------


def clear_reasons(change: Change, match: Pattern) -> None:
    """Remove the reason from each link whose reason matches a pattern."""
    home = change.home
    for memory in [*home.memories.everything()]:
        links = tuple(
            replace(link, reason=None) if match.search(link.reason or "") else link
            for link in memory.links
        )
        if links != memory.links:
            with suppress(
                EditConflictError
            ):  # another process is editing the file, which the report lists
                change.set_links(replace(memory, links=links))


def rename_files(change: Change, match: Pattern) -> None:
    """Rename memory files whose name, but not whose subject, still matches a pattern."""
    home = change.home
    misnamed = []
    for path, file in home.files.indexed().items():
        memory = home.memories.find(file.memory) if is_in_path(match, path) else None
        if memory and not match.search(memory.subject):
            misnamed.append((file, memory))
    for path in rename(change, misnamed):
        home.vault.forget(path)


# -- Requests --------------------------------------------------------------------------------------


class ForgetRequest(Request):
    """The content to forget. Select the content with one field, or with ``project`` and ``before``."""

    sessions: Annotated[tuple[str, ...], bounds("Sessions, by their ids.")] = ()
    memories: Annotated[tuple[str, ...], bounds("Memories, by their ids or subjects.")] = ()
    project: Annotated[str | None, bounds("A whole project, by its slug.")] = None
    match: Annotated[str | None, bounds("Everything that contains this text.")] = None
    regex: Annotated[bool, bounds("The text is a regular expression.")] = False
    before: Annotated[datetime | None, bounds("Everything from before this day.")] = None

    @property
    def how(self) -> str:
        """The name of the criterion that selects the content."""
        ways = {
            "session": self.sessions,
            "memory": self.memories,
            "match": self.match is not None,
            "before" if self.before else "project": self.project or self.before,
        }
        chosen = [way for way, value in ways.items() if value]
        if len(chosen) != 1:
            raise InvalidQueryError(
                "nothing selected: give a session, memory, text, project or day",
                hint="nacre forget --session ID | --memory ID | --match TEXT | --project P | --before DATE",
            )
        return chosen[0]


# -- Remaining copies ------------------------------------------------------------------------------
# Places that nacre cannot change and that might still contain forgotten content, each with a remedy.


_DELETE_HINT = "delete it, or keep it knowingly"
_PROFILE = "profile.md"
_MAX_SEARCHED_BYTES = 64 * 1024 * 1024


def pattern_of(request: ForgetRequest | ForgetPlan) -> Pattern | None:
    """Return the text pattern to forget, if any. Raises InvalidQueryError if it is invalid."""
    return None if request.match is None else Pattern(request.match, is_regex=request.regex)


def unreached(home: Home, plan: ForgetPlan) -> tuple[Unreached, ...]:
    """Return places, such as backups, that may still contain the forgotten content."""
    match = pattern_of(plan)
    transcripts = [file for file in plan.files if Path(file).exists()]
    remedy = "delete the host's file yourself; nacre no longer reads it"
    return (
        *(Unreached("transcript", file, remedy) for file in transcripts),
        *_git(home),
        *_copies(home),
        *_pages(home, plan),
        *(_quoting(home, match) if match else ()),
        Unreached(
            "copies elsewhere",
            "exports, backups on other disks, file system snapshots",
            "other machines delete it at their next sync; delete other copies yourself",
        ),
    )


def _git(home: Home) -> Iterator[Unreached]:
    if home.database.server or not home.repository.exists:
        return
    yield Unreached("git history", str(home.vault.root), "nacre admin scrub --history")
    with suppress(GitUnavailableError, UnusableRepositoryError):
        for url in home.repository.git.remote_urls().values():
            yield Unreached("git remote", url, "rewrite or delete its history and every clone")


def _copies(home: Home) -> Iterator[Unreached]:
    for file in (*list_copies(home), *home.settings.database.parent.glob("*.db.mov*")):
        yield Unreached("older database", str(file), _DELETE_HINT)
    for file in sorted((home.settings.home / "archive").glob("*/*.damaged")):
        yield Unreached("damaged part of the archive", str(file), _DELETE_HINT)
    folder = home.settings.home / "backups"
    if folder.is_dir() and any(folder.iterdir()):
        yield Unreached("backup", str(folder), _DELETE_HINT)
    if home.database.server:
        yield Unreached(
            "the server's disk",
            "deleted data until it is overwritten; its log and backups",
            "ask the administrator to run VACUUM FULL and to expire older backups (docs/forgetting.md)",
        )


def _pages(home: Home, plan: ForgetPlan) -> Iterator[Unreached]:
    forgotten = {memory.id[-REFERENCE_CHARACTERS:] for memory in plan.memories}
    for path in (*map(page_path, sorted(home.files.slugs())), _PROFILE):
        try:
            text = to_text(home.vault.read(path))
        except (OSError, UnusableVaultError):
            continue
        if any(forgotten.intersection(references_of(line)) for line in text.splitlines()):
            yield Unreached(
                "summary",
                str(home.vault.root / path),
                "nacre dream --tier 3 --no-writer removes the line",
            )


def _quoting(home: Home, match: Pattern) -> Iterator[Unreached]:
    home_path, database = home.settings.home, home.settings.database
    for file in sorted(home_path.rglob("*")):
        inside = file.relative_to(home_path).parts
        if (
            ".git" in inside
            or inside[0] in ("archive", "backups")
            or file.name.startswith(database.name)
        ):
            continue
        if file.is_symlink() or not file.is_file():
            continue
        with suppress(OSError):
            is_searched = file.stat().st_size <= _MAX_SEARCHED_BYTES
            if is_searched and match.search(file.read_text(encoding="utf-8", errors="replace")):
                yield Unreached("still contains it", str(file), "edit or delete the file")
    for path in erasure.still_saying(home, match):
        yield Unreached("still contains it", str(home.vault.root / path), "rewrite it")
    for session in home.erasing.sessions():
        if match.search(f"{session.cwd or ''}\n{session.branch or ''}"):
            yield Unreached(
                "session's folder or branch",
                session.id,
                "nacre forget --session ID removes the session",
            )


# -- Forgetting ------------------------------------------------------------------------------------
# A plan is shown and confirmed, recorded as tombstones, and carried out. Tombstones are stored before anything is
# deleted, so that the next command can complete an interrupted run.


_MAX_EXCERPTS = 200


@frozen
class Deletion:
    """A planned deletion.

    Its tombstones include the secret hash key and must not leave the process.
    """

    plan: ForgetPlan
    tombstones: tuple[Tombstone, ...]


@operation("forget-plan", owners=("regex",), command="forget")
def plan(home: Home, request: ForgetRequest) -> ForgetPlan:
    """Return the effects of forgetting without changing anything.

    Raises InvalidQueryError, NotFoundError, ConflictError.
    """
    return prepare(home, request).plan


def prepare(home: Home, request: ForgetRequest) -> Deletion:
    """Plan a deletion for :func:`forget`, without deleting anything.

    Raises InvalidQueryError, NotFoundError, or ConflictError for an ambiguous id.
    """
    how = request.how
    catch_up(home)
    # The gateway's database can contain messages that are not ingested yet.
    transcripts = sessions_folder(home.settings.home).glob("*.jsonl")
    if jobs := jobs_for(home, discovery.look(home, transcripts).files):
        read_changed(home, jobs)
    key = _key(home)
    targets, excerpts = _AIMS[how](home, request, bytes.fromhex(key.value))
    barred = Barred([key, *targets])
    affected = survey(home, barred)
    match = pattern_of(request)
    traces = 0
    if match:  # traces that quote the text, including unanswered questions
        fold_notes(home)
        quotes = [text for text in home.spending.texts() if match.search(text)]
        traces = len(quotes) + len(home.questions.matching(lambda text: bool(match.search(text))))
    planned = replace(
        _planned(home, how, affected),
        excerpts=tuple(excerpts),
        match=request.match,
        regex=request.regex,
        traces=traces,
        held=erasure.count_forgotten(home, barred, match),
        project=request.project if how == "project" else None,
    )
    return Deletion(planned, _tombstones(home, how, affected, targets, key))


def forget(home: Home, deletion: Deletion) -> ForgetReport:
    """Delete the planned content. If the deletion is interrupted, the next command completes it.

    The report lists places that still contain the content. Raises OwnerOnlyError.
    """
    home.actor.require_owner("nacre forget")
    fold_usage(home)
    planned = deletion.plan
    match = pattern_of(planned)
    if match:
        erasure.withdraw_matching(home, match)
        erasure.erase_matching(home, match)
    with home.change(FORGET) as change:
        if match:
            apply_intents(home)
            erasure.clear_words(home, (), match)
            clear_reasons(change, match)
            rename_files(change, match)
            home.erasing.clear_journal(match.search)
            candidates = (candidate.memory for candidate in home.candidates.with_words())
            home.candidates.delete(
                [
                    candidate.id
                    for candidate in candidates
                    if excerpt_of(match, memory_texts(candidate)) is not None
                ]
            )
            erasure.clear_traces(home, lambda text: match.search(text) is not None)
            erasure.erase_quoting(home, match)
        with change.transaction():
            change.append([_entry(change, deletion)])
            home.tombstones.set("erase", "1")
    erasure.apply_tombstones(home)
    if planned.project:
        home.database.run("delete_code_project", project=planned.project)
    run = change.operation.id
    is_done = not home.files.has_intents() and run not in home.tombstones.due()
    return ForgetReport(
        run, planned, is_done and erasure.erase_written_bytes(home), unreached(home, planned)
    )


@operation("forgotten")
def forgotten(home: Home) -> list[Forgotten]:
    """Complete interrupted runs, and return past runs, latest first."""
    catch_up(home)
    erasure.erase_written_bytes(home)
    entries = list(forgetting_in(home.ledger()))
    holding = {
        tombstone.run
        for tombstone in standing_tombstones(entries)
        if tombstone.kind is not TombstoneKind.KEY
    }
    runs: dict[str, list[files.LedgerEntry]] = {}
    for item in entries:
        if item.action == FORGET:
            runs.setdefault(str(item.details.get("run") or item.op), []).append(item)
    return [_forgotten_run(run, items, holding) for run, items in sorted(runs.items())[::-1]]


@operation("forget-allow-again", writes=True, owners=True, command="forget --allow-again")
def allow_again(
    home: Home,
    reference: Annotated[str, bounds("The id of a deletion (or its end), a session or a memory.")],
) -> Forgotten:
    """Allow nacre to read forgotten content again, if a transcript still contains the content.

    Raises NotFoundError, ConflictError.
    """
    runs = {run.run: run for run in forgotten(home) if not run.is_allowed}
    of, owner = _matching_runs(home, reference.strip(), runs)
    with home.vault_lock:
        with home.change(ALLOW_AGAIN) as change, change.transaction():
            change.note(ALLOW_AGAIN, of=of, **owner)
        heed_ledger(home)
        home.erasing.delete_held_cursors()
    return runs[of[-1]]


_Aim = tuple[list[Tombstone], list[Excerpt]]
"""The tombstones for a request, and excerpts of the matches."""


def _sessions_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:  # noqa: ARG001 - shared signature
    references = request.sessions
    return [Tombstone(TombstoneKind.SESSION, _session_id(home, name)) for name in references], []


def _session_id(home: Home, reference: str) -> str:
    sessions = home.sessions.find(reference.strip())
    refuse_several((session.session.id for session in sessions), reference, "sessions")
    if sessions:
        return sessions[0].session.id
    remains = home.memories.known_of(reference.strip()) or home.handoffs.of_session(
        reference.strip()
    )
    if remains:  # the transcript is deleted, but memories or handoffs from the session exist
        return reference.strip()
    raise NotFoundError(f"there is no session {reference!r}", hint="nacre sessions list shows ids")


def _memories_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:
    ids = home.erasing.alike([get(home, reference).id for reference in request.memories])
    memories = home.memories.in_any_state(ids)
    turns_by_session: dict[str, set[str]] = {}
    for memory in memories:
        again = ((confirmation.session, confirmation.turns) for confirmation in memory.confirmed)
        source, file = memory.source, home.files.file_of(memory.id)
        stored_ids = set(source.turns)
        with suppress(OSError, LookupError, InvalidMemoryError):
            if file:  # the index leaves out edited messages
                stored_ids.update(values_of(to_text(home.vault.read(file.path)))["source"]["turns"])
        for session, turn_ids in ((source.session, stored_ids), *again):
            if session:
                turns_by_session.setdefault(session, set()).update(turn_ids)
    turns = [
        tombstone
        for session, turn_ids in turns_by_session.items()
        for tombstone in _turns_of(home, key, session, turn_ids)
    ]
    return [Tombstone(TombstoneKind.MEMORY, memory.id) for memory in memories] + turns, []


def _project_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:
    slug = request.project or ""
    sessions = [stored.id for stored in home.erasing.sessions() if stored.project == slug]
    memories = [memory.id for memory in home.memories.everything() if memory.project == slug]
    if not sessions and not memories:
        raise NotFoundError(
            f"there is no project {slug!r}", hint="nacre list shows the projects of memories"
        )
    until = home.now() + timedelta(seconds=1)
    return [
        *(Tombstone(TombstoneKind.SESSION, session) for session in sessions),
        *(Tombstone(TombstoneKind.MEMORY, memory) for memory in memories),
        _before(until, key, slug),
    ], []


def _time_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:
    if request.before is None or request.before > home.now():
        raise InvalidQueryError(
            "that day is in the future", hint="nacre forget --project P forgets a whole project"
        )
    return [_before(request.before, key, request.project)], []


def _text_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:
    match = Pattern(request.match or "", is_regex=request.regex)
    sessions = {session.row: session for session in home.erasing.sessions()}
    excerpts, rows = [], []
    for turn in home.erasing.turn_texts():
        excerpt = excerpt_of(match, turn_texts(turn))
        if excerpt is not None:
            rows.append(turn.row)
            excerpts.append(Excerpt(sessions[turn.session].id, excerpt))
    turns = [_turn_tombstone(key, place) for place in _in_pieces(home, rows)]
    memories = []
    for memory in home.memories.everything():
        excerpt = excerpt_of(match, memory_texts(memory))
        if excerpt is not None:
            memories.append(Tombstone(TombstoneKind.MEMORY, memory.id))
            excerpts.append(Excerpt(memory.id, excerpt))
    texts = {
        session.title
        for session in sessions.values()
        if session.title and match.search(session.title)
    }
    for handoff in (*home.handoffs.everything(), *home.handoffs.damaged()):
        excerpt = excerpt_of(match, [handoff.content])
        if excerpt is not None:
            texts.add(handoff.content)
            excerpts.append(Excerpt(handoff.id, excerpt))
    words = [Tombstone(TombstoneKind.WORDS, words_value(key, text)) for text in sorted(texts)]
    return turns + memories + words, excerpts[:_MAX_EXCERPTS]


_AIMS: dict[str, Callable[[Home, ForgetRequest, bytes], _Aim]] = {
    "session": _sessions_aim,
    "memory": _memories_aim,
    "project": _project_aim,
    "before": _time_aim,
    "match": _text_aim,
}


def _tombstones(
    home: Home, how: str, affected: Affected, targets: Sequence[Tombstone], key: Tombstone
) -> tuple[Tombstone, ...]:
    secret = bytes.fromhex(key.value)
    stones = [*targets, key]
    for session in affected.sessions:
        if how != "match":
            stones.append(Tombstone(TombstoneKind.SESSION, session.id))
        for place in home.erasing.places_in(session.row):
            # A copy in another session counts as the same turn.
            if how == "match" or is_shared(place):
                stones.append(_turn_tombstone(secret, place))
    for rows in affected.turns.values():
        stones += [_turn_tombstone(secret, place) for place in _in_pieces(home, rows)]
    for memory in affected.memories:
        words = words_value(secret, memory.content)
        stones.append(Tombstone(TombstoneKind.MEMORY, memory.id))
        stones.append(Tombstone(TombstoneKind.WORDS, words, owner=memory.id))
    return tuple({(stone.kind, stone.value): stone for stone in stones}.values())


def _planned(home: Home, how: str, affected: Affected) -> ForgetPlan:
    gone_ids = {memory.id for memory in affected.memories}
    retired = {memory.id for memory in affected.retired}
    losing = [
        memory
        for memory in affected.changed
        if memory.id not in retired
        and (before := home.memories.find(memory.id))
        and (before.source, before.confirmed) != (memory.source, memory.confirmed)
    ]
    files = {
        session.file for session in (*affected.sessions, *affected.turns, *affected.untitled)
    } | {memory.source.file for memory in affected.memories}
    return ForgetPlan(
        how=how,
        sessions={session.id: session.turns for session in affected.sessions},
        parts={session.id: len(rows) for session, rows in affected.turns.items()},
        memories=affected.memories,
        losing=tuple(memory for memory in losing if memory.id not in gone_ids),
        released=tuple(affected.retired),
        untitled=tuple(session.id for session in affected.untitled),
        handoffs=tuple(handoff.id for handoff in affected.handoffs),
        files=tuple(sorted(file for file in files if file)),
    )


def _turns_of(home: Home, key: bytes, session_id: str, turn_ids: set[str]) -> Iterator[Tombstone]:
    tool, _, native_id = session_id.partition(":")
    sessions = [
        session for session in home.sessions.find(session_id) if session.session.id == session_id
    ]
    places = [
        place
        for session in sessions
        for place in home.erasing.places_in(session.row)
        if place.id in turn_ids
    ]
    for place in places:
        yield _turn_tombstone(key, place)
    for turn_id in sorted(turn_ids - {place.id for place in places}):
        yield Tombstone(
            TombstoneKind.TURN, turn_value(key, tool, native_id, turn_id), owner=session_id
        )


def _turn_tombstone(key: bytes, place: TurnPlace) -> Tombstone:
    owner = f"{place.tool}:{place.session_id}"
    native_id = "" if is_shared(place) else place.session_id
    value = turn_value(key, place.tool, native_id, place.id)
    return Tombstone(TombstoneKind.TURN, value, owner=owner)


def _in_pieces(home: Home, rows: Sequence[int]) -> Iterator[TurnPlace]:
    for start in range(0, len(rows), 500):
        yield from home.erasing.places_of(rows[start : start + 500])


def _before(moment: datetime, key: bytes, project: str | None) -> Tombstone:
    scope = f" {project_value(key, project)}" if project else ""
    return Tombstone(TombstoneKind.BEFORE, f"{stamp(moment)}{scope}")


def _key(home: Home) -> Tombstone:
    """Return the hash key that all machines share. The first deletion creates it."""
    keys = sorted(stone.value for stone in home.tombstones.all() if stone.kind is TombstoneKind.KEY)
    key = keys[0] if keys else content_hash(home.ids() + home.ids()).hex()
    return Tombstone(TombstoneKind.KEY, key)


def _entry(change: Change, deletion: Deletion) -> files.LedgerEntry:
    stones = deletion.tombstones
    sessions: dict[str, list[str]] = {
        stone.value: [] for stone in stones if stone.kind is TombstoneKind.SESSION
    }
    turns: dict[str, list[str]] = {}
    memories: dict[str, list[str]] = {}
    details: dict[str, Any] = {"run": change.operation.id, "how": deletion.plan.how}
    for stone in stones:
        match stone.kind:
            case TombstoneKind.TURN:
                owners = sessions if stone.owner in sessions else turns
                owners.setdefault(stone.owner, []).append(stone.value)
            case TombstoneKind.MEMORY:
                memories.setdefault(stone.value, [])
            case TombstoneKind.WORDS if stone.owner:
                memories.setdefault(stone.owner, []).append(stone.value)
            case TombstoneKind.WORDS:
                details.setdefault("words", []).append(stone.value)
            case TombstoneKind.KEY | TombstoneKind.BEFORE:
                details[stone.kind.value] = stone.value
    groups = {"sessions": sessions, "turns": turns, "memories": memories}
    details |= {name: values for name, values in groups.items() if values}
    return replace(change.entry(FORGET), details=details)


def _forgotten_run(run: str, items: Sequence[files.LedgerEntry], holding: set[str]) -> Forgotten:
    of: dict[TombstoneKind, set[str]] = {kind: set() for kind in TombstoneKind}
    for item in items:
        for stone in tombstones_of(item):
            of[stone.kind].add(stone.value)
    before = next((value.partition(" ")[0] for value in of[TombstoneKind.BEFORE]), None)
    how = next((str(item.details["how"]) for item in items if item.details.get("how")), "")
    return Forgotten(
        run=run,
        at=min(item.at for item in items).astimezone(UTC),
        how=how,
        sessions=tuple(sorted(of[TombstoneKind.SESSION])),
        turns=len(of[TombstoneKind.TURN]),
        memories=len(of[TombstoneKind.MEMORY]),
        before=datetime.fromisoformat(before) if before and how == "before" else None,
        is_allowed=run not in holding,
    )


def _matching_runs(
    home: Home, reference: str, runs: dict[str, Forgotten]
) -> tuple[list[str], dict[str, str]]:
    matching = [
        run for run in runs if run == reference or (len(reference) >= 4 and run.endswith(reference))
    ]
    refuse_several(matching, reference, "deletions")
    if matching:
        return matching, {}
    stones = [stone for stone in home.tombstones.all() if stone.value == reference]
    for kind, name in ((TombstoneKind.SESSION, "session"), (TombstoneKind.MEMORY, "memory")):
        if of := sorted({stone.run for stone in stones if stone.kind is kind}):
            return of, {name: reference}
    raise NotFoundError(
        f"no deletion matches {reference!r}",
        hint="nacre forget --list shows them",
    )


# -- Operations ----------------------------------------------------------------------------------


@operation("forget", writes=True, takes_long=True, owners=True)
def forget_answers(home: Home, request: ForgetRequest) -> ForgetReport:
    """Delete content permanently. The report lists places that could not be reached.

    Raises InvalidQueryError, NotFoundError, ConflictError.
    """
    return forget(home, prepare(home, request))
