"""The database itself: integrity, full text, vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nacre.errors import NacreError
from nacre.health.proofs.finding import FAILURE, REBUILD, WARNING, Finding, Proof, deep_repair
from nacre.home.home import Home
from nacre.spending.embedders import embedder_in_use
from nacre.storage.maintenance.soundness import Soundness


def prove_database(home: Home) -> Proof:
    """SQLite finds nothing wrong with the file, nor with what refers to what."""
    sound = Soundness(home.database_file)
    found = [Finding(FAILURE, f"SQLite: {text}", REBUILD) for text in home.database_file.check()[:20]]
    found += [Finding(FAILURE, f"a row of {table} cannot be read", REBUILD) for table in sound.unreadable()]
    found += [
        Finding(FAILURE, f"{count} rows of {table} belong to nothing", REBUILD) for table, count in sound.strays()
    ]
    return Proof("database", f"{sound.pages():,} pages", found)


def prove_full_text(home: Home) -> Proof:
    """Every memory and every turn is in the full text, and nothing else is."""
    sound = Soundness(home.database_file)
    memories, turns = sound.memories_unindexed(), sound.turns_unindexed()
    found: list[Finding] = []
    if memories:
        told = f"{len(memories)} memories cannot be found by their words"
        found.append(Finding(FAILURE, told, deep_repair(), _reindex_memories(memories)))
    if turns:
        told = f"{len(turns)} turns cannot be found by their words"
        found.append(Finding(FAILURE, told, deep_repair(), lambda home: home.sessions.index_again(turns)))
    for table, rows in sound.text_without_rows().items():
        told = f"{len(rows)} texts in {table} belong to nothing"
        found.append(Finding(FAILURE, told, deep_repair(), _forget_text(table, rows)))
    return Proof("full text", f"{sound.texts():,} texts", found)


def _reindex_memories(ids: Sequence[str]) -> Callable[[Home], None]:
    def mend(home: Home) -> None:
        with home.database.transaction():
            for memory in filter(None, map(home.memories.find, ids)):
                home.memories.put(memory)

    return mend


def _forget_text(table: str, rows: Sequence[int]) -> Callable[[Home], None]:
    def mend(home: Home) -> None:
        with home.database.transaction():
            Soundness(home.database_file).forget_text(table, rows)

    return mend


def prove_vectors(home: Home) -> Proof:
    """Every text has a vector, all of one size and of the model that is set."""
    if home.settings.text("embedding.model") == "none":
        return Proof("vectors", "off")
    try:
        made_by, embedder = home.vectors.model(), embedder_in_use(home)
        waiting = sum(home.vectors.missing())
    except NacreError as error:
        return Proof("vectors", "not looked at", [Finding(WARNING, error.message, error.hint or "nacre doctor")])
    sound = Soundness(home.database_file)
    found: list[Finding] = []
    if made_by is not None and made_by != embedder.name:
        told = f"the vectors were made by {made_by}, and the model is {embedder.name}"
        found.append(Finding(FAILURE, told, "nacre ingest makes them anew"))
    elif waiting:
        found.append(Finding(WARNING, f"{waiting:,} texts have no vector yet", "nacre ingest"))
    size = embedder.dimensions or home.vectors.dimensions()  # some models tell only with an answer
    wrong = sound.vectors_of_other_size(size)
    if wrong:
        told = f"{wrong} vectors are not of the model's size"
        found.append(Finding(FAILURE, told, f"{deep_repair()}, then nacre ingest", _drop_vectors))
    elif sound.bits_missing():
        told = f"the quick index of passages lacks {sound.bits_missing()} of them"
        found.append(Finding(FAILURE, told, f"{deep_repair()}, then nacre ingest", _drop_vectors))
    return Proof("vectors", f"{home.vectors.count_memories():,} memories, {home.vectors.count():,} passages", found)


def _drop_vectors(home: Home) -> None:
    """Vectors are derived: the next ingest makes them again."""
    name, setting = home.vectors.model() or "", home.vectors.setting()
    home.vectors.begin("")
    home.vectors.begin(name, setting)
