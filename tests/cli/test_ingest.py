"""``ingest`` and ``quickstart`` report the read and the skipped files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nacre.base.lazy import zstd
from nacre.setup import setup
from tests.cli.conftest import SESSION, SOURCE, TALK, Nacre, said, write_transcript


def test_ingest_without_a_path_reads_discovered_transcripts(nacre: Nacre, transcript: Path) -> None:
    report = nacre("ingest", "--json").json
    assert (report["files"], report["sessions"], report["turns"]) == (1, 1, len(TALK))
    assert report["memories"]
    assert report["bytes_read"] == transcript.stat().st_size
    assert report["tools"] == {"claude-code": 1}


def test_second_ingest_finds_nothing_new(nacre: Nacre, transcript: Path) -> None:
    assert "Read 1 file" in nacre("ingest").out
    again = nacre("ingest")
    assert again.out.startswith("Nothing new: 1 transcript read earlier.")
    assert nacre("ingest", "--json").json["skipped"] == 1
    assert nacre("ingest", "--force", "--json").json["files"] == 1


def test_dry_run_lists_unread_files_and_reads_nothing(nacre: Nacre, transcript: Path) -> None:
    size = transcript.stat().st_size
    answer = nacre("ingest", "--dry-run", "--json").json
    assert (answer["files"], answer["bytes"], answer["tools"]) == (1, size, {"claude-code": 1})
    assert "Would read 1 file" in nacre("ingest", "--dry-run").out
    assert nacre("sessions", "list", "--json").json["lines"] == []
    nacre("ingest")
    assert nacre("ingest", "--dry-run").out.startswith("Nothing new to read.")
    with transcript.open("a", encoding="utf-8") as file:
        file.write('{"type": "summary"}\n')
    answer = nacre("ingest", "--dry-run", "--json").json
    assert answer["files"] == 1
    assert 0 < answer["bytes"] < size


def test_missing_transcripts_suggest_a_path(nacre: Nacre) -> None:
    answer = nacre("ingest")
    assert "No transcripts were found on this machine." in answer.out
    assert "nacre ingest PATH" in answer.out


def test_files_in_unknown_formats_are_named_with_their_tool(
    nacre: Nacre, user_home: Path, tmp_path: Path
) -> None:
    for number in range(4):
        write_transcript(
            user_home / ".codex" / "sessions" / "2027" / f"rollout-{number}.jsonl",
            [{"edition": 9, "body": {"words": "The lamp is wet."}}],
        )
    names = ", ".join(f"rollout-{number}.jsonl" for number in range(4))
    text = f"not understood: 4 files of Codex CLI ({names})"
    answer = " ".join(nacre("ingest").out.split())
    assert "Nothing could be read." in answer
    assert text in answer
    assert "update nacre" in answer
    assert "wet" not in answer
    foreign = write_transcript(tmp_path / "heron" / "talk.jsonl", [{"heron": 1}])
    answer = " ".join(nacre("ingest", str(foreign.parent)).out.split())
    assert "not understood: 1 file of an unknown tool (talk.jsonl)" in answer
    answer = " ".join(nacre("quickstart").out.split())
    assert "No agent transcripts could be read on this machine" in answer
    assert text in answer


def test_compressed_rollout_is_read_wherever_it_is(
    nacre: Nacre, user_home: Path, tmp_path: Path
) -> None:
    def pack(folder: Path, session: str, words: str) -> Path:
        stamp = "2026-03-01T09:00:00.000Z"
        meta = {"id": session, "timestamp": stamp, "cwd": "/code/mill", "source": "cli"}
        prompt = {"type": "user_message", "message": words}
        path = write_transcript(
            folder / f"rollout-2026-03-01T09-00-00-{session}.jsonl",
            [
                {"timestamp": stamp, "type": "session_meta", "payload": meta},
                {"timestamp": stamp, "type": "event_msg", "payload": prompt},
            ],
        )
        packed = path.with_name(f"{path.name}.zst")
        packed.write_bytes(zstd().compress(path.read_bytes()))
        path.unlink()
        return packed

    session = "5a0b0000-0000-4000-8000-00000000000{}"
    rollout = pack(user_home / ".codex" / "sessions" / "2026", session.format(1), "Turn the mill.")
    other_rollout = pack(tmp_path / "elsewhere", session.format(2), "Oil the mill.")
    assert nacre("ingest", "--json").json["turns"] == 1
    assert nacre("ingest", str(other_rollout), "--json").json["turns"] == 1
    nacre("config", "set", "archive.enabled", "false")
    nacre("admin", "db", "rebuild")
    assert len(nacre("sessions", "list", "--json").json["lines"]) == 2
    plain = rollout.with_suffix("")
    plain.write_bytes(zstd().decompress(rollout.read_bytes()))
    assert nacre("ingest", "--json").json["turns"] == 0
    rollout.unlink()
    assert nacre("ingest", "--json").json["turns"] == 0
    assert len(nacre("sessions", "list", "--json").json["lines"]) == 2


def test_only_the_named_files_and_folders_are_read(
    nacre: Nacre, transcript: Path, tmp_path: Path
) -> None:
    other = "8a3b0000-0000-4000-8000-000000000002"
    elsewhere = write_transcript(
        tmp_path / "other" / f"{other}.jsonl",
        [said("user", "Hello from another folder of mine", 1, session=other)],
    )
    assert nacre("ingest", str(elsewhere.parent), "--json").json["files"] == 1
    sessions = nacre("sessions", "list", "--json").json["lines"]
    assert [line["session"]["session"]["native_id"] for line in sessions] == [other]


def test_ingest_without_extraction_writes_no_memories(nacre: Nacre, transcript: Path) -> None:
    assert nacre("ingest", "--no-extract", "--json").json["memories"] == []
    assert nacre("search", "PostgreSQL", "--json").json["turns"]


@pytest.mark.embedding
def test_vectors_are_created_and_can_be_postponed(nacre: Nacre, transcript: Path) -> None:
    first = nacre("ingest", "--no-vectors", "--json").json
    assert first["vectors_made"] == 0
    answer = nacre("recall", "which database is billing on?")
    assert "degraded: vector partial" in answer.out
    second = nacre("ingest", "--json").json
    assert second["vectors_made"] > 0
    answer = nacre("recall", "which database is billing on?", "--json").json
    assert {lane["name"]: lane["state"] for lane in answer["lanes"]} == {
        "lexical": "ran",
        "vector": "ran",
    }


@pytest.mark.embedding
def test_quickstart_answers_before_making_the_remaining_vectors(
    nacre: Nacre, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup.run_quickstart, "__kwdefaults__", {"seconds_for_vectors": 0.0})
    assert "have no vectors until the daemon is done" in " ".join(nacre("quickstart").out.split())
    nacre("ingest")
    answer = nacre("recall", "which database is billing on?")
    assert "degraded" not in answer.out


@pytest.mark.parametrize(
    "content", [b"", os.urandom(2000), b"\x00" * 2000], ids=["empty", "binary", "zeros"]
)
def test_named_file_that_is_not_a_transcript_is_reported(
    nacre: Nacre, transcript: Path, tmp_path: Path, content: bytes
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(content)
    answer = nacre("ingest", str(bad), str(transcript), code=1)
    assert "Read 1 file" in answer.out
    assert f"{bad}: not a transcript that nacre knows" in answer.out.replace("\n    ", " ")
    report = nacre("ingest", str(bad), str(transcript), "--json", code=1).json
    assert [problem["path"] for problem in report["problems"]] == [str(bad)]


def test_unrecognised_file_in_a_folder_is_skipped(nacre: Nacre, transcript: Path) -> None:
    (transcript.parent / "notes.jsonl").write_bytes(b"\x00\x01\x02 not json")
    report = nacre("ingest", str(transcript.parent), "--json").json
    assert (report["files"], report["unrecognised"], report["problems"]) == (1, 1, [])


def test_corrupt_lines_are_counted_and_the_rest_is_read(nacre: Nacre, transcript: Path) -> None:
    text = transcript.read_text(encoding="utf-8")
    transcript.write_text('{"type": "user", "mess\n' + text + "\n%%%\n", encoding="utf-8")
    report = nacre("ingest", "--json").json
    assert report["turns"] == len(TALK)
    assert report["corrupt"] == 2


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)
def test_unreadable_paths_are_reported_and_others_are_read(nacre: Nacre, transcript: Path) -> None:
    closed = write_transcript(transcript.parent / "closed.jsonl", [said("user", "Secret plans", 1)])
    closed.chmod(0)
    folder = transcript.parent.parent / "-closed"
    folder.mkdir(mode=0)
    report = nacre("ingest", "--json", code=1).json
    assert report["files"] == 1
    assert {problem["path"] for problem in report["problems"]} == {str(closed), str(folder)}
    assert nacre("ingest", str(closed), "--json", code=1).json["problems"]
    folder.chmod(0o700)


def test_unreadable_file_is_reported_and_others_are_read(
    nacre: Nacre, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everything, so the test simulates the refusal where files are opened."""
    closed = write_transcript(transcript.parent / "closed.jsonl", [said("user", "Secret plans", 1)])
    original = Path.open

    def refuse(path: Path, *arguments: object, **options: object) -> object:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return original(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    report = nacre("ingest", "--json", code=1).json
    assert report["problems"][0]["path"] == str(closed)
    assert report["files"] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all names are text")
def test_file_with_non_text_name_is_reported_and_others_read(
    nacre: Nacre, transcript: Path
) -> None:
    odd = os.fsdecode(os.fsencode(transcript.parent) + b"/dusk-\xff.jsonl")
    Path(odd).write_bytes(transcript.read_bytes())
    report = nacre("ingest", "--no-vectors", "--json", code=1).json
    assert report["files"] == 1
    assert "dusk-\ufffd.jsonl" in report["problems"][0]["path"]


PLUGIN = """
from nacre.values.session import Session, Speaker, Turn
from nacre.readers.adapter import Adapter


def parse(source):
    yield Session("heron", source.path.stem)
    for at, line in source.lines():
        yield Turn(str(at), Speaker.OWNER, [line.decode()][line.count(b"%")].removeprefix("heron "))


def sniff(head):
    return head.data.startswith(b"heron ")


ADAPTER = Adapter("heron", "Heron", sniff, parse, roots=lambda places: ())
"""


def install(site: Path, plugin: str) -> dict[str, str]:
    """Install a package with an adapter; return the environment that finds it."""
    facts = site / "nacre_heron-1.0.dist-info"
    facts.mkdir(parents=True)
    (site / "nacre_heron.py").write_text(plugin, encoding="utf-8")
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: nacre-heron\nVersion: 1.0\n", encoding="utf-8"
    )
    (facts / "entry_points.txt").write_text(
        "[nacre.readers]\nheron = nacre_heron:ADAPTER\n", encoding="utf-8"
    )
    return {"PYTHONPATH": os.pathsep.join((str(SOURCE), str(site)))}


def test_third_party_adapter_is_loaded_through_its_entry_point(
    process: Nacre, tmp_path: Path
) -> None:
    environ = install(tmp_path / "site", PLUGIN)
    talk = tmp_path / "talk.txt"
    talk.write_text("heron The reeds by the weir are cut in March.\n", encoding="utf-8")
    odd = tmp_path / "odd.txt"
    odd.write_text("heron An index % out of its list\n", encoding="utf-8")
    report = process(
        "ingest", str(talk), str(odd), "--no-vectors", "--json", code=1, environ=environ
    ).json
    assert report["tools"] == {"heron": 1}
    assert [problem["path"] for problem in report["problems"]] == [str(odd)]
    assert "IndexError" in report["problems"][0]["message"]
    hits = process("search", "reeds", "--mode", "lexical", "--json", environ=environ).json["turns"]
    assert [hit["session"]["tool"] for hit in hits] == ["heron"]


def test_adapter_failing_discovery_does_not_stop_others(
    process: Nacre, transcript: Path, tmp_path: Path
) -> None:
    environ = install(tmp_path / "site", PLUGIN.replace("places: ()", 'places: {}["places"]'))
    report = process("ingest", "--no-vectors", "--json", code=1, environ=environ).json
    assert report["tools"] == {"claude-code": 1}
    assert [problem["path"] for problem in report["problems"]] == ["Heron"]


@pytest.mark.parametrize("plugin", ["import nothing_of_that_name", "", "ADAPTER = 5", "def"])
def test_unloadable_adapter_is_named(
    process: Nacre, transcript: Path, tmp_path: Path, plugin: str
) -> None:
    answer = process("ingest", code=5, environ=install(tmp_path / "site", plugin))
    assert "nacre_heron:ADAPTER" in answer.err
    assert "hint: fix or uninstall" in answer.err
    assert len(answer.err.splitlines()) == 2


def test_nonexistent_path_is_not_found(nacre: Nacre, tmp_path: Path) -> None:
    answer = nacre("ingest", str(tmp_path / "nowhere"), code=3)
    assert (
        answer.err
        == f"error: there is no file or folder {tmp_path / 'nowhere'}\nhint: check the path\n"
    )


def test_quickstart_tells_the_story_of_the_sessions_in_forty_lines(
    terminal: Nacre, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    answer = terminal("quickstart", environ={"COLUMNS": "80", "NO_COLOR": "1"}).out
    assert "Your agents' transcripts were found on this machine." in answer
    assert "1 session: claude-code (1)" in answer
    sections = ("Latest sessions", "Decisions", "Questions that nacre can answer", "Next steps")
    places = [answer.index(f"\n{name}") for name in sections]
    assert places == sorted(places)
    assert "nacre init " in answer.partition("Next steps")[2]
    assert "Without a model, nacre keeps only your explicit statements" in answer
    lines = answer.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_quickstart_shows_the_numbers_of_the_home(nacre: Nacre) -> None:
    output = " ".join(nacre("quickstart").out.split())
    status = nacre("quickstart", "--json").json["status"]
    assert f"{status['memories']} memories, {status['sessions']} sessions: " in output
    assert len(nacre("list", "--json", "--all").json["memories"]) == status["memories"]
    assert "Candidates (nacre review keeps or drops them)" in output
    assert 0 < len(status["story"]["candidates"]) <= 5


def test_quickstart_on_a_fresh_machine_uses_the_examples(nacre: Nacre) -> None:
    result = nacre("quickstart", "--json").json
    assert result["source"] == "examples"
    status, story = result["status"], result["status"]["story"]
    assert len(status["sources"]) == 3
    assert len(result["report"]["memories"]) >= len(story["decisions"]) == 2
    assert len(story["questions"]) == 3
    for question, confidence in story["questions"].items():
        assert confidence in ("sure", "likely")
        assert nacre("recall", question, "--json").json["hits"][0]["evidence"]
    assert "so these are example sessions" in nacre("quickstart").out


def test_source_session_of_a_memory_can_be_shown(nacre: Nacre, learned: dict[str, object]) -> None:
    memory = nacre("list", "--json").json["memories"][0]
    assert (
        nacre("sessions", "show", memory["source"]["session"], "--json").json["session"]["session"][
            "native_id"
        ]
        == SESSION
    )


PICTURES = 9_000_000
TOO_LONG = 70_000_000


def with_pictures(path: Path, size: int, *, alone: bool = False) -> Path:
    """A transcript whose first record has a given number of bytes of pictures."""
    talk = b"" if alone else path.read_bytes()
    first = write_transcript(path, [said("user", "Look at these pictures.", 60)]).read_bytes()
    path.write_bytes(b'{"pictures": "' + b"A" * size + b'", ' + first[1:] + talk)
    return path


@pytest.mark.parametrize("alone", [False, True])
def test_transcript_starting_with_large_pictures_is_read(
    nacre: Nacre, transcript: Path, alone: bool
) -> None:
    with_pictures(transcript, PICTURES, alone=alone)
    report = nacre("ingest", "--json").json
    assert (report["files"], report["turns"]) == (1, 1 if alone else len(TALK) + 1)
    assert report["oversized"] == 0


def test_overlong_line_is_reported_and_the_rest_is_read(nacre: Nacre, transcript: Path) -> None:
    with_pictures(transcript, TOO_LONG)
    answer = nacre("ingest")
    assert "Read 1 file" in answer.out
    assert "Skipped 1 line that cannot be parsed (1 too long). All other" in " ".join(
        answer.out.split()
    )
    assert nacre("ingest", "--force", "--json").json["oversized"] == 1
    assert "unreadable or too long lines (" in " ".join(nacre("admin", "doctor").out.split())


def test_transcript_with_a_single_overlong_line_is_a_problem(
    nacre: Nacre, transcript: Path
) -> None:
    with_pictures(transcript, TOO_LONG, alone=True)
    answer = nacre("ingest", code=1)
    assert "No transcripts" not in answer.out
    assert f"{transcript}: has only lines of" in " ".join(answer.out.split())


def test_growing_overlong_line_is_counted_once(nacre: Nacre, transcript: Path) -> None:
    talk = transcript.read_bytes()
    transcript.write_bytes(talk + b'{"pictures": "' + b"A" * TOO_LONG)
    assert nacre("ingest", "--json").json["oversized"] == 1
    with transcript.open("ab") as file:
        file.write(b'A"}\n' + talk.splitlines(keepends=True)[0].replace(b'"uuid"', b'"late"'))
    report = nacre("ingest", "--json").json
    assert (report["corrupt"], report["turns"]) == (0, 1)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(("identities", "learned"), [("[]", 0), ('["telegram:42"]', 1)])
def test_only_configured_chat_senders_are_learned_from(
    nacre: Nacre, user_home: Path, workers: str, identities: str, learned: int
) -> None:
    folder = user_home / ".openclaw" / "agents" / "main" / "sessions"
    for number in (1, 2):
        name = f"7d9c1a00-aaaa-4bbb-8ccc-dddd0000111{number}"
        head = f"[Telegram Ines id:4{number} +{number}m 2026-11-18 09:00 UTC]"
        words = f"{head} Always bake the rye of oven {number} before noon."
        write_transcript(
            folder / f"{name}.jsonl",
            [
                {
                    "type": "session",
                    "version": 3,
                    "id": name,
                    "timestamp": "2026-11-18T09:00:00.000Z",
                    "cwd": "/oven",
                },
                {
                    "type": "message",
                    "id": f"0000000{number}",
                    "timestamp": "2026-11-18T09:00:01.000Z",
                    "message": {"role": "user", "content": [{"type": "text", "text": words}]},
                },
            ],
        )
    nacre("config", "set", "ingest.workers", workers)
    nacre("config", "set", "owner.identities", identities)
    assert len(nacre("ingest", "--json").json["memories"]) == learned
    assert "oven 1" not in nacre("list").out
    checks = {check["name"]: check for check in nacre("admin", "doctor", "--json").json["checks"]}
    assert ("chats" in checks) is not bool(learned)
    if not learned:
        assert "Ines (2)" in checks["chats"]["detail"], (
            "the interval before the time is not part of the name"
        )
        assert "owner.identities" in checks["chats"]["hint"]
