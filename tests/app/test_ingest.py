"""Ingest turns transcripts into sessions and memories exactly once, even if files change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from nacre.errors import NotFoundError
from nacre.home import parsing as reading
from nacre.learn.ingest import IngestOptions, ingest
from nacre.readers import adapter as files
from nacre.readers.adapter import Adapter
from nacre.values.memory import Kind, SessionFilter
from nacre.values.session import Session, Speaker, Turn
from tests.app.conftest import WordEmbedder, World, says


def test_discovered_session_is_searchable_by_its_tools_ids(world: World) -> None:
    world.transcript(
        "s1",
        says("user", "Why does the invoice total differ by one cent?", uuid="u1"),
        says("assistant", "The rounding happens before the tax is added.", uuid="a1"),
    )
    with world.open() as memory:
        report = memory.ingest()
        hit = memory.search_sessions("rounding of the tax").turns[0]
    assert (report.files, report.sessions, report.turns, report.skipped) == (1, 1, 2, 0)
    assert (hit.session.native_id, hit.turn.id, hit.session.tool) == (
        "5e55-0001",
        "a1",
        "claude-code",
    )
    assert hit.project == "acme-billing"
    assert hit.turn.speaker is Speaker.AGENT


def test_second_ingest_reads_only_new_turns(world: World) -> None:
    world.transcript("s1", says("user", "First question about the parser.", uuid="u1"))
    with world.open() as memory:
        memory.ingest()
        assert memory.ingest().skipped == 1
        world.transcript("s1", says("user", "Second question about the printer.", uuid="u2"))
        report = memory.ingest()
        assert (report.files, report.turns) == (1, 1)
        assert [hit.turn.id for hit in memory.search_sessions("printer questionnaire").turns][
            :1
        ] == ["u2"]


def test_growing_message_stays_one_turn_in_its_place(world: World) -> None:
    first = says("assistant", "Let me look at the lexer.", uuid="a1")
    world.transcript("s1", says("user", "Fix the lexer please.", uuid="u1"), first)
    with world.open() as memory:
        memory.ingest()
        more = says("assistant", "The lexer drops tabs.", uuid="a2")
        more["message"]["id"] = first["message"]["id"]
        world.transcript("s1", more, says("user", "Thanks, that was it.", uuid="u2"))
        memory.ingest()
    context = world.context()
    turns = context.sessions.turns_of(context.sessions.find("5e55-0001")[0].row)
    assert [(item.turn.id, item.turn.text) for item in turns] == [
        ("u1", "Fix the lexer please."),
        ("a1", "Let me look at the lexer.\n\nThe lexer drops tabs."),
        ("u2", "Thanks, that was it."),
    ]


def test_resumed_session_stores_repeated_records_once(world: World) -> None:
    first, second = "0b6f6f3e-0000-4000-8000-000000000001", "0b6f6f3e-0000-4000-8000-000000000002"
    old = [
        says("user", "We talked about caching.", uuid=first),
        says("assistant", "Yes, about eviction.", uuid=second),
    ]
    world.transcript("s1", *old)
    copied = [{**record, "sessionId": "5e55-0002"} for record in old]
    world.transcript(
        "s2", *copied, says("user", "Let us go on with eviction.", uuid="u2", session="5e55-0002")
    )
    with world.open() as memory:
        assert memory.ingest().turns == 3
        turn_ids = [hit.turn.id for hit in memory.search_sessions("eviction caching").turns]
    assert sorted(turn_ids) == [first, second, "u2"]


def test_incomplete_last_line_is_read_when_complete(world: World) -> None:
    path = world.transcript("s1", says("user", "The first line is whole.", uuid="u1"))
    line = json.dumps(says("user", "The second line is torn.", uuid="u2"))
    with path.open("a") as file:
        file.write(line[:60])
    with world.open() as memory:
        assert memory.ingest().turns == 1
        with path.open("a") as file:
            file.write(line[60:] + "\n")
        report = memory.ingest()
        assert (report.turns, report.corrupt) == (1, 0)


def test_invalid_file_does_not_stop_other_files(world: World) -> None:
    world.transcript("good", says("user", "The good file talks about turtles.", uuid="u1"))
    folder = world.user_home / ".claude/projects/-work-acme"
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "binary.jsonl").write_bytes(bytes(range(256)) * 40)
    (folder / "gone.jsonl").symlink_to(folder / "nowhere.jsonl")
    with world.open() as memory:
        report = memory.ingest()
        assert memory.search_sessions("turtles").turns
    assert report.files == 1
    assert report.unrecognised == 2
    assert [problem.path.rsplit("/", 1)[-1] for problem in report.problems] == ["gone.jsonl"]


def test_unknown_records_and_corrupt_lines_are_counted_and_shown(world: World) -> None:
    path = world.transcript(
        "s1",
        says("user", "A word about drift.", uuid="u1"),
        {"type": "hologram", "sessionId": "5e55-0001"},
    )
    with path.open("a") as file:
        file.write('{"type": "user", "message": {"content"\n')
    with world.open() as memory:
        report = memory.ingest()
    assert report.unknown == {"hologram": 1}
    assert report.corrupt == 1


def test_ingest_of_a_missing_path_fails(world: World) -> None:
    with world.open() as memory, pytest.raises(NotFoundError, match="no file or folder"):
        memory.ingest(world.user_home / "nowhere")


def test_secrets_of_a_transcript_never_reach_the_home(world: World) -> None:
    token = "ghp_" + "Zx9" * 12
    call = says("assistant", f"I will use {token} for that.", uuid="a1")
    call["message"]["content"].append(
        {
            "type": "tool_use",
            "id": "t1",
            "name": "Bash",
            "input": {"command": f"curl -H 'Authorization: Bearer {token}'"},
        }
    )
    world.transcript(
        "s1",
        says(
            "user", f"Remember that the deploy token is {token} for the staging cluster.", uuid="u1"
        ),
        call,
        {"type": "custom-title", "customTitle": f"token {token}", "sessionId": "5e55-0001"},
    )
    with world.open() as memory:
        memory.ingest()
        assert memory.search_sessions("deploy token").turns
    for file in world.home.rglob("*"):
        if file.is_file():
            assert token.encode() not in file.read_bytes(), file
    assert all(token not in text for text in world.embedder.embedded)


def test_evidence_of_a_long_message_is_the_relevant_excerpt(world: World) -> None:
    rule = "we never deploy the gateway of the harbour before the tide turns"
    before = " ".join(
        f"The gateway of harbour {number} is one, and we deploy it as the others."
        for number in range(12)
    )
    with world.open() as memory:
        world.transcript("s1", says("user", f"{before} Remember: {rule}.", uuid="u1"))
        memory.ingest()
        (tide,) = [item for item in memory.list() if "tide" in item.content]
        (evidence,) = memory.call("look", reference=tide.id).evidence
    assert rule in evidence.excerpt


def test_owners_plain_statement_becomes_a_memory_with_evidence(world: World) -> None:
    world.transcript(
        "s1",
        says("user", "Remember that the staging cluster is rebuilt every Sunday night.", uuid="u1"),
        says("assistant", "I will keep that in mind.", uuid="a1"),
    )
    with world.open() as memory:
        report = memory.ingest()
        hit = memory.recall("when is the staging cluster rebuilt?").hits[0]
    assert len(report.memories) == 1
    assert "every Sunday night" in hit.memory.content
    assert hit.memory.project == "acme-billing"
    assert hit.memory.source.session == "claude-code:5e55-0001"
    assert [(item.turn_id, item.speaker) for item in hit.evidence] == [("u1", Speaker.OWNER)]


def test_same_statement_in_two_sessions_becomes_one_memory(world: World) -> None:
    for number in (1, 2):
        world.transcript(
            f"s{number}",
            says(
                "user",
                "Always write the commit message in the imperative mood.",
                uuid=f"u{number}",
                session=f"5e55-000{number}",
            ),
        )
    with world.open() as memory:
        report = memory.ingest()
        assert (len(report.memories), report.duplicates) == (1, 1)
        assert memory.list()[0].kind is Kind.PREFERENCE


def test_sub_agents_summaries_and_injected_context_teach_nothing(world: World) -> None:
    statement = "Remember that the moon base uses decimal time everywhere."
    world.transcript("s1", says("user", statement, uuid="u1", isSidechain=True, agentId="abc"))
    world.transcript(
        "s2", says("user", statement, uuid="u2", session="5e55-0002", isCompactSummary=True)
    )
    world.transcript(
        "s3",
        says(
            "user",
            f"<nacre-context>{statement}</nacre-context>\nWhat time is it?",
            uuid="u3",
            session="5e55-0003",
        ),
    )
    with world.open() as memory:
        assert memory.ingest().memories == ()
        assert [
            hit.turn.id
            for hit in memory.search_sessions("decimal time moon base").turns
            if "moon" in hit.turn.text
        ]


def test_interrupted_embedding_continues_with_the_next_ingest(world: World) -> None:
    world.transcript(
        "s1",
        *[says("user", f"Question number {n} about topic {n}.", uuid=f"u{n}") for n in range(300)],
    )

    class Interrupted(WordEmbedder):
        def embed(self, texts):  # type: ignore[no-untyped-def]
            if len(texts) > 1 and len(self.embedded) > 100:
                raise KeyboardInterrupt
            return super().embed(texts)

    world.embedder = Interrupted()
    with world.open() as memory:
        report = memory.ingest()
        assert report.vectors_left > 0
        assert report.vectors_note == "interrupted; the next ingest continues"
        result = memory.search_sessions("topic 250")
        assert result.turns
        assert [(lane.name, lane.state.value) for lane in result.degraded] == [
            ("vector", "partial")
        ]
    world.embedder = WordEmbedder()
    with world.open() as memory:
        report = memory.ingest()
        assert report.vectors_left == 0
        assert memory.search_sessions("topic 250").degraded == ()
        assert len(world.embedder.embedded) < 300


def test_repeated_text_is_embedded_once(world: World) -> None:
    world.transcript(
        "s1", *[says("user", "Please run the whole test suite.", uuid=f"u{n}") for n in range(5)]
    )
    with world.open() as memory:
        memory.ingest()
    assert world.embedder.embedded.count("Please run the whole test suite.") == 1


def test_vectors_of_two_models_are_never_mixed(world: World) -> None:
    world.transcript("s1", says("user", "The kettle is in the kitchen.", uuid="u1"))
    with world.open() as memory:
        memory.ingest()
    world.embedder = WordEmbedder("words-2")
    with world.open() as memory:
        lanes = {lane.name: lane for lane in memory.search_sessions("kettle").lanes}
        assert lanes["vector"].state.value == "unavailable"
        assert "words-1" in str(lanes["vector"].note)
        memory.ingest()
        assert memory.search_sessions("kettle").degraded == ()


def test_long_turns_are_found_by_text_in_their_middle(world: World) -> None:
    filler = "We walked through the meadow and looked at the sky. " * 60
    long = filler + "The flux capacitor needs twelve volts. " + filler
    world.transcript(
        "s1", says("user", long, uuid="u1"), says("user", "Something else entirely.", uuid="u2")
    )
    with world.open() as memory:
        memory.ingest()
        hit = memory.search_sessions("voltage of the flux capacitor", mode="vector").turns[0]
    assert hit.turn.id == "u1"
    query = "flux capacitor"
    with world.open() as memory:
        assert query in memory.search_sessions(query).turns[0].excerpt


@pytest.mark.parametrize(
    ("place", "tool"),
    [
        (".claude/projects/-work-x/5e55.jsonl", "claude-code"),
        (".claude/projects/-work-x/5e55/subagents/agent-a1.jsonl", "claude-code"),
        (".codex/sessions/2026/11/18/rollout-2026-11-18T09-00-00-5e55.jsonl", "codex"),
        (".codex/archived_sessions/rollout-2026-11-18T09-00-00-5e55.jsonl", "codex"),
        (".openclaw/agents/main/sessions/5e55.jsonl", "openclaw"),
        (".openclaw/agents/main/sessions/5e55.jsonl.reset.2026-11-18T09-00-00.000Z", "openclaw"),
        (".openclaw/agents/main/sessions/5e55.jsonl.deleted.2026-11-18T09-00-00.000Z", "openclaw"),
        (".pi/agent/sessions/--work-x--/2026-11-18_5e55.jsonl", "openclaw"),
    ],
)
def test_transcripts_are_found_in_each_tools_folder(world: World, place: str, tool: str) -> None:
    stamp = "2026-11-18T09:00:00.000Z"
    records = {
        "claude-code": [says("user", "The lantern hangs by the door.", uuid="u1")],
        "codex": [
            {
                "timestamp": stamp,
                "type": "session_meta",
                "payload": {"id": "5e55", "cwd": "/code/x"},
            },
            {
                "timestamp": stamp,
                "type": "event_msg",
                "payload": {"type": "user_message", "message": "The lantern hangs by the door."},
            },
        ],
        "openclaw": [
            {"type": "session", "version": 3, "id": "5e55", "timestamp": stamp, "cwd": "/code/x"},
            {
                "type": "message",
                "id": "aaaa0001",
                "timestamp": stamp,
                "message": {"role": "user", "content": "The lantern hangs by the door."},
            },
        ],
    }
    path = world.user_home / place
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records[tool]))
    with world.open() as memory:
        report = memory.ingest()
        assert report.tools == {tool: 1}
        assert memory.search_sessions("lantern").turns[0].session.tool == tool


def command(text: str, *, uuid: str = "a1") -> dict[str, object]:
    """Return a tool call of the agent that runs a command."""
    record = says("assistant", "Let me run that.", uuid=uuid)
    record["message"]["content"].append(
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": text}}
    )
    return record


@pytest.mark.parametrize("visible_length", [4, 15, 30])
def test_secret_in_a_truncated_command_leaves_no_fragment(
    world: World, visible_length: int
) -> None:
    token = "ghp_" + "Zx9" * 12
    world.transcript(
        "s1",
        says("user", "Run it.", uuid="u1"),
        command("echo ".ljust(299 - visible_length, "x") + " " + token),
    )
    with world.open() as memory:
        memory.ingest()
    context = world.context()
    calls = [call for item in context.sessions.turns_of(1) for call in item.turn.tool_calls]
    assert [call.name for call in calls] == ["Bash"]
    assert "ghp_" not in calls[0].input
    assert len(calls[0].input) <= reading.INPUT_CHARACTERS


@pytest.mark.parametrize("visible_length", [4, 15, 30])
def test_secret_in_a_truncated_error_leaves_no_fragment(world: World, visible_length: int) -> None:
    token = "ghp_" + "Zx9" * 12
    text = "x" * (192 - visible_length) + " " + token
    result = says("user", "", uuid="u2")
    result["message"]["content"] = [
        {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": text}
    ]
    world.transcript("s1", says("user", "Run it.", uuid="u1"), command("deploy"), result)
    with world.open() as memory:
        memory.ingest()
    calls = [call for item in world.context().sessions.turns_of(1) for call in item.turn.tool_calls]
    assert str(calls[0].outcome).startswith("error: xxx")
    assert "ghp_" not in str(calls[0].outcome)
    assert len(str(calls[0].outcome)) <= reading.OUTCOME_CHARACTERS


def test_secret_in_an_author_name_is_redacted(world: World) -> None:
    token = "ghp_" + "Zx9" * 12
    talk = world.user_home / "talk.jsonl"
    lines = [
        {"role": "user", "content": "Hello there.", "name": token},
        {"role": "assistant", "content": "Hello."},
    ]
    talk.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with world.open() as memory:
        assert memory.ingest(talk).turns == 2
    assert all(token not in author for author in world.context().sessions.authors())


@pytest.mark.parametrize(
    "stamp",
    [
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        1e300,
        -1e15,
        10**40,
        "9" * 400,
        "\u00b2",
    ],
)
def test_time_outside_the_calendar_is_ignored(world: World, stamp: object) -> None:
    talk = world.user_home / "talk.jsonl"
    lines = [
        {"role": "user", "content": "The pump runs dry.", "timestamp": stamp},
        {"role": "assistant", "content": "Fill it.", "timestamp": stamp},
    ]
    talk.write_text("".join(json.dumps(line) + "\n" for line in lines))
    world.transcript("s1", says("user", "The good file talks about turtles.", uuid="u1"))
    with world.open() as memory:
        report = memory.ingest(talk, world.user_home)
        assert (report.files, report.turns, report.problems) == (2, 3, ())
        assert memory.search_sessions("pump").turns[0].turn.time is None


def test_notes_and_talks_with_impossible_dates_are_read(world: World) -> None:
    note = world.user_home / "note.md"
    note.write_text("---\ndate: 0001-01-01T00:00:00+14:00\n---\n# Pump\n\nIt runs dry.\n")
    talk = world.user_home / "9999-12-31 23_59 talk.md"
    talk.write_text(
        "".join(
            f"[{h}:00:00] {name}: Word {h}.\n" for h, name in ((1, "Ann"), (2, "Bo"), (30, "Ann"))
        )
    )
    with world.open() as memory:
        report = memory.ingest(note, talk)
    assert (report.files, report.problems) == (2, ())


def test_adapter_error_is_reported_without_secrets(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_" + "Zx9" * 12

    def fail(_: object) -> object:
        raise LookupError(f"no such record: {token}")

    world.transcript("s1", says("user", "Hello.", uuid="u1"))
    monkeypatch.setattr(reading, "find_adapter", fail)
    with world.open() as memory:
        report = memory.ingest()
    assert "no such record: [REDACTED:" in report.problems[0].message


@pytest.mark.parametrize(
    ("turn", "problem_text"),
    [
        (
            Turn("\ud800", Speaker.OWNER, "half \udc00 a character", author="\ud800"),
            ["half ? a character"],
        ),
        (Turn("a\0b", Speaker.OWNER, "a zero \0 within"), ["a zero  within"]),
        (Turn("t", Speaker.OWNER, "no zone", time=datetime(2026, 11, 18, 9)), None),  # noqa: DTZ001 - the test needs a time without a zone
        (Turn("t", Speaker.OWNER, None), None),  # type: ignore[arg-type]
        (None, None),
    ],
)
def test_invalid_adapter_output_affects_only_its_own_file(
    world: World, monkeypatch: pytest.MonkeyPatch, turn: Turn | None, problem_text: list[str] | None
) -> None:
    def parse(_: object) -> Iterator[Any]:
        yield Session("heron", "reeds\ud800", title="\ud800")
        yield turn

    heron = Adapter("heron", "Heron", lambda _: True, parse)
    path = world.user_home / "talk.heron"
    path.write_text("anything")
    world.transcript("s1", says("user", "The good file talks about turtles.", uuid="u1"))
    find_adapter = reading.find_adapter
    monkeypatch.setattr(
        reading, "find_adapter", lambda head: heron if head.path == path else find_adapter(head)
    )
    report = ingest(world.context(), IngestOptions(paths=(path, world.user_home)))
    sessions = world.context().sessions
    cwds = [
        item.turn.text
        for session in sessions.newest(SessionFilter(tool="heron"))
        for item in sessions.turns_of(session.row)
    ]
    assert cwds == (problem_text or [])
    assert [problem.path for problem in report.problems] == ([] if problem_text else [str(path)])
    assert report.tools["claude-code"] == 1


def test_overlong_line_is_counted_and_others_are_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 100_000)
    world.transcript(
        "s1",
        says("user", "The first line is short.", uuid="u1"),
        says("user", "long " * 1_000_000, uuid="u2"),
        says("user", "The third line is short.", uuid="u3"),
    )
    with world.open() as memory:
        report = memory.ingest()
        assert (report.turns, report.corrupt) == (2, 1)
        assert {hit.turn.id for hit in memory.search_sessions("line short").turns} == {"u1", "u3"}
        world.transcript("s1", says("user", "The fourth line is short.", uuid="u4"))
        assert memory.ingest().turns == 1


def test_interrupted_ingest_keeps_later_commits_durable(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    world.transcript("s1", says("user", "Hello.", uuid="u1"))
    context = world.context()
    monkeypatch.setattr(context.sessions, "upsert", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ingest(context)
    assert context.database.rows("PRAGMA synchronous") == [(2,)]


def test_ingest_counts_pending_recalls(world: World) -> None:
    with world.open() as memory:
        memory.store("We deploy on Fridays.")
        memory.recall("when do we deploy?")
        assert (world.home / "usage.jsonl").exists()
        memory.ingest()
        assert not (world.home / "usage.jsonl").exists()


def test_edited_note_contains_only_its_current_sections(world: World) -> None:
    note = world.user_home / "notes.md"
    note.write_text(
        "# Pump\n\nThe pump needs oil.\n\n# Gate\n\nThe gate squeaks.\n\n# Roof\n\nThe roof leaks.\n"
    )

    def note_turns() -> list[str]:
        context = world.context()
        session = context.sessions.newest()[0]
        turns = [item.turn.text for item in context.sessions.turns_of(session.row)]
        assert session.turns == len(turns)
        return [text.splitlines()[-1] for text in turns]

    with world.open() as memory:
        memory.ingest(note)
        note.write_text("# Pump\n\nThe pump needs water.\n\n# Gate\n\nThe gate squeaks.\n")
        assert memory.ingest(note).turns == 1
        assert sorted(note_turns()) == ["The gate squeaks.", "The pump needs water."]
        assert [
            hit.turn.text for hit in memory.search_sessions("oil leaks", mode="lexical").turns
        ] == []
    assert ingest(world.context(), IngestOptions(paths=(note,), force=True)).turns == 0
    assert sorted(note_turns()) == ["The gate squeaks.", "The pump needs water."]


def test_corrected_first_words_keep_a_talk_one_session(world: World) -> None:
    talk = world.user_home / "talk.md"
    lines = [
        "[00:01] Ann: We meat on Monday.",
        "[00:05] Bo: Yes, on Monday.",
        "[00:09] Ann: Bring the plans.",
    ]
    talk.write_text("\n".join(lines))
    with world.open() as memory:
        memory.ingest(talk)
        talk.write_text("\n".join(["[00:01] Ann: We meet on Monday.", *lines[1:]]))
        memory.ingest(talk)
        assert memory.search_sessions("meat", mode="lexical").turns == ()
    assert [
        (session.session.tool, session.turns) for session in world.context().sessions.newest()
    ] == [("plaud", 3)]


def test_text_added_to_a_shortened_talk_is_learned(world: World) -> None:
    talk = world.user_home / "2026-11-18 talk.md"
    lines = [f"[00:0{n}] {'Ann' if n % 2 else 'Bo'}: Word {n}." for n in range(1, 7)]
    talk.write_text("\n".join(lines))
    with world.open() as memory:
        memory.ingest(talk)
        talk.write_text("\n".join(lines[:4]))
        assert memory.ingest(talk).turns == 0
        talk.write_text(
            "\n".join(
                [*lines[:4], "[00:09] Ann: Remember that the fence is painted every third spring."]
            )
        )
        report = memory.ingest(talk)
    assert (report.turns, len(report.memories)) == (1, 1)


def test_non_uuid_turn_ids_are_unique_per_session(world: World) -> None:
    for number in (1, 2):
        world.transcript(
            f"s{number}",
            says(
                "user",
                f"The parrot of session {number} is loud.",
                uuid="D1:1",
                session=f"5e55-000{number}",
            ),
        )
    with world.open() as memory:
        assert memory.ingest().turns == 2
        assert len(memory.search_sessions("parrot").turns) == 2


def test_note_statements_under_headings_are_learned(world: World) -> None:
    note = world.user_home / "notes" / "mill.md"
    note.parent.mkdir()
    note.write_text(
        "# The mill\n\nRemember that the mill stone is dressed every second spring.\n\n## Else\n\nNothing.\n"
    )
    with world.open() as memory:
        memory.ingest(note)
        assert ["every second spring" in item.content for item in memory.list()] == [True]
        assert memory.search_sessions("mill stone").turns


@pytest.mark.parametrize("is_copy_first", [False, True])
def test_exported_copies_of_a_session_are_the_session(world: World, is_copy_first: bool) -> None:
    words = "We decided to keep the oar list in CSV, because the rowers edit it in a sheet."
    folder = world.user_home / "boats/.specstory/history"
    folder.mkdir(parents=True)
    for name in ("a.md", "b-oar-list.md"):
        (folder / name).write_text(
            "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n"
            "<!-- Claude Code Session 5e55-0001 (2026-11-20 09:00:00Z) -->\n\n"
            f"_**User (2026-11-20 09:00:00Z)**_\n\n{words}\n\n---\n\n_**Agent**_\n\nDone.\n"
        )
    cwd = str(world.user_home / "boats")
    world.transcript(
        "s1",
        says("user", words, uuid="u1", cwd=cwd),
        says("assistant", "Done.", uuid="a1", cwd=cwd),
    )

    def sessions() -> list[tuple[str, int]]:
        return [(row.session.id, row.turns) for row in world.context().sessions.newest()]

    with world.open() as memory:
        if is_copy_first:
            memory.ingest(folder)
            assert sessions() == [("markdown:5e55-0001", 2)]
        memory.ingest()
        memory.ingest(folder)
        assert sessions() == [("claude-code:5e55-0001", 2)]
        assert [item.content for item in memory.list()] == [words]
