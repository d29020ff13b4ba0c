"""``python -m benchmarks extraction`` computes its figures from labels and transcripts."""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import benchmarks

SHARED = Path(__file__).parents[3] / "shared" / "data"
REAL = SHARED / "bench" / "extraction"
OWNER = "user"
AGENT = "assistant"

KILN = (
    (OWNER, "The kiln controller drops its connection every night."),
    (AGENT, "The log shows the lease of the router running out."),
    (
        OWNER,
        "We decided to give the kiln controller a fixed address because the router forgets leases.",
    ),
    (AGENT, "Done."),
    (OWNER, "Always run the firmware tests before you flash the board."),
    (OWNER, "Remember that the kiln is called Vulcan."),
)
GLAZE = ((OWNER, "What is the time in Lisbon?"), (AGENT, "It is noon there."))


def transcript(folder: Path, name: str, messages: Any, session: str) -> None:
    lines = [
        {
            "session_id": session,
            "id": f"{session}-{at}",
            "role": role,
            "content": text,
            "timestamp": f"2026-11-18T09:{at:02d}:00Z",
        }
        for at, (role, text) in enumerate(messages)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def label(
    kind: Any, statement: str, *terms: Any, evidence: Any = (), weight: float = 1.0
) -> dict[str, Any]:
    return {
        "kind": kind,
        "subject_terms": [],
        "content_terms": list(terms),
        "statement": statement,
        "evidence": list(evidence),
        "importance": [5, 9],
        "weight": weight,
    }


def labels(
    folder: Path,
    slug: str,
    file: str,
    *expected: dict[str, Any],
    skip: Any = (),
    least: int = 0,
    most: int = 9,
    tool: str = "jsonl",
    session_id: str | None = None,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "session": {"tool": tool, "file": file, "session_id": session_id},
        "description": f"About {slug}",
        "must_extract": list(expected),
        "must_skip": [{"pattern": pattern, "reason": reason} for pattern, reason in skip],
        "acceptable_range": {"min": least, "max": most},
    }
    (folder / f"{slug}.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite with labels for a session with memories, a session without, and an unreadable file."""
    folder = tmp_path / "suite"
    transcript(folder, "kiln.jsonl", KILN, "kiln-1")
    transcript(folder, "glaze.jsonl", GLAZE, "glaze-1")
    (folder / "scan.bin").write_bytes(b"\x00\x01\x02 no words")
    labels(
        folder,
        "kiln",
        "kiln.jsonl",
        label(
            "decision", "The kiln controller has a fixed address.", ["kiln"], ["fixed", "static"]
        ),
        label(
            ["lesson"],
            "Firmware tests run before a board is flashed.",
            ["firmware"],
            ["flash"],
            weight=0.5,
        ),
        label(
            "fact",
            "The glaze is stored dry.",
            ["glaze"],
            evidence=["owner:1", "kiln-1-1", 2, "nowhere"],
        ),
        skip=[("(?i)vulcan", "a pet name")],
        most=2,
    )
    labels(folder, "glaze", "glaze.jsonl", most=1)
    labels(folder, "scan", "scan.bin", label("fact", "Nothing can be read.", ["nothing"]))
    return folder


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(benchmarks, ["extraction", "--no-vectors", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def figures(*arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return result


def by_slug(result: dict[str, Any]) -> dict[str, Any]:
    return {item["session"]: item for item in result["sessions"]}


def test_ingested_memories_are_scored_against_the_labels(suite: Path, user_home: Path) -> None:
    result = figures("--labels", str(suite))
    kiln = by_slug(result)["kiln"]
    assert [item["statement"] for item in kiln["found"]] == [
        "The kiln controller has a fixed address."
    ]
    assert [item["memory"]["kind"] for item in kiln["wrong_kind"]] == ["preference"]
    assert [missed["statement"] for missed in kiln["missed"]] == ["The glaze is stored dry."]
    assert [hit["reason"] for hit in kiln["skip_hits"]] == ["a pet name"]
    assert kiln["junk"] == [kiln["skip_hits"][0]["memory"]]
    assert (kiln["recall"], kiln["recall_any_kind"], kiln["off"]) == (1 / 2.5, 1.5 / 2.5, 1)
    assert by_slug(result)["glaze"]["score"] == 1.0
    assert not (user_home / ".nacre").exists()


def test_unreadable_session_counts_as_empty_and_is_named(suite: Path) -> None:
    result = figures("--labels", str(suite))
    assert by_slug(result)["scan"]["score"] == 0.0
    assert [item["session"] for item in result["unread"]] == ["scan"]
    assert "scan counts as empty" in run("--labels", str(suite))


def test_bundled_sessions_are_read_without_writing_to_the_home(
    user_home: Path,
) -> None:
    result = figures()
    assert result["overall"]["sessions"] == 12
    assert result["unread"] == []
    assert result["score"] > 0
    assert not (user_home / ".nacre").exists()


def test_perfect_model_answers_lose_nothing_in_extraction() -> None:
    result = figures("--model", "scripted-gold", "--no-vectors")
    assert result["score"] >= result["gold"] - 0.02


def test_missed_labels_are_shown_with_evidence_words(suite: Path) -> None:
    places = by_slug(figures("--labels", str(suite)))["kiln"]["missed"][0]["evidence"]
    words = [place["words"] for place in places]
    assert words == [KILN[0][1], KILN[1][1], KILN[1][1], None]
    output = run("--labels", str(suite), "--misses")
    for topic in ("Missed", "Found as another kind", "Should not exist", "Needless"):
        assert topic in output


def test_memory_near_a_missed_label_is_shown(suite: Path) -> None:
    labels(
        suite,
        "kiln",
        "kiln.jsonl",
        label("fact", "The volcano's name.", ["volcano"], evidence=["kiln-1-5"]),
    )
    near = by_slug(figures("--labels", str(suite)))["kiln"]["missed"][0]["near"]
    assert ["Vulcan" in memory["content"] for memory in near] == [True]
    assert "learned from there" in run("--labels", str(suite), "--misses")


def test_report_is_markdown_with_every_session(suite: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    run("--labels", str(suite), "--report", str(report))
    text = report.read_text(encoding="utf-8")
    assert "| kiln |" in text
    assert "## kiln" in text
    assert "- fact: The glaze is stored dry." in text


def test_transcript_folder_and_sessions_can_be_selected(suite: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "deep"
    elsewhere.mkdir(parents=True)
    (suite / "kiln.jsonl").rename(elsewhere / "kiln.jsonl")
    arguments = ("--labels", str(suite), "--transcripts", str(elsewhere.parent))
    assert list(by_slug(figures(*arguments, "--sessions", "kiln"))) == ["kiln"]
    run(*arguments, "--sessions", "kilm", code=3)
    run("--labels", str(tmp_path / "elsewhere"), code=3)


def test_later_measurement_is_compared_with_an_earlier_measurement(
    suite: Path, tmp_path: Path
) -> None:
    before = tmp_path / "before.json"
    run("--labels", str(suite), "--save", str(before))
    transcript(
        suite, "kiln.jsonl", (*KILN, (OWNER, "Remember that the glaze is stored dry.")), "kiln-1"
    )
    changes = figures("--labels", str(suite), "--compare", str(before))["changes"]
    assert [(item["session"], item["gained"], item["lost"]) for item in changes["sessions"]] == [
        ("kiln", ["The glaze is stored dry."], [])
    ]
    assert "+ The glaze is stored dry." in run("--labels", str(suite), "--compare", str(before))
    run("--labels", str(suite), "--compare", str(suite / "kiln.json"), code=2)


def test_score_below_the_threshold_is_a_failure(suite: Path) -> None:
    run("--labels", str(suite), "--fail-under", "99", code=1)
    run("--labels", str(suite), "--fail-under", "5")


def test_broken_labels_error_names_the_problem(suite: Path) -> None:
    (suite / "kiln.json").write_text(
        '{"session": {"tool": "jsonl"}, "must_extract": []}', encoding="utf-8"
    )
    assert (
        "kiln.json has no 'file'"
        in json.loads(run("--labels", str(suite), "--json", code=2))["error"]["message"]
    )


def test_devmembench_sessions_are_extracted_from_their_file(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    proxy = label("decision", "Varnish is the proxy.", ["varnish"], evidence=["owner:1"])
    labels(folder, "shop", "sessions.json", proxy, tool="devmembench", session_id="S01")
    result = figures("--labels", str(folder), "--transcripts", str(data / "devmembench"))
    assert result["unread"] == []
    evidence = by_slug(result)["shop"]["missed"][0]["evidence"]
    assert evidence == [{"at": "owner:1", "words": "Let us use FastAPI with Redis for caching."}]


def test_sessions_share_a_home_without_the_apart_option(suite: Path) -> None:
    transcript(suite, "again.jsonl", KILN, "kiln-2")
    labels(suite, "again", "again.jsonl", label("decision", "A fixed address.", ["fixed"]))
    counts = [len(session["memories"]) for session in figures("--labels", str(suite))["sessions"]]
    apart = [
        len(session["memories"])
        for session in figures("--labels", str(suite), "--apart")["sessions"]
    ]
    assert sorted(counts) == [0, 0, 0, 3]
    assert sorted(apart) == [0, 0, 3, 3]


def fixture(folder: Path, name: str, **more: Any) -> None:
    (folder / "expected").mkdir(parents=True, exist_ok=True)
    content = {
        "session": name,
        "description": "",
        "must_extract": [],
        "must_skip": [],
        "acceptable_range": {"min": 0, "max": 5},
        **more,
    }
    (folder / "expected" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def expected(kind: str, subject: str, *terms: str, least: int = 5, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "subject_contains": subject,
        "content_contains": list(terms),
        "min_importance": least,
        "reason": "",
        **more,
    }


def test_agenr_fixtures_are_scored_by_the_agenr_measure(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures"
    for name in ("01-kiln", "02-glaze", "03-strict"):
        transcript(folder, f"{name}.jsonl", GLAZE if "glaze" in name else KILN, name)
    fixture(
        folder,
        "01-kiln",
        must_extract=[expected("decision", "kiln", "fixed address", "mains", least=1)],
    )
    fixture(folder, "02-glaze", must_skip=[{"pattern": "lisbon", "reason": "small talk"}])
    fixture(
        folder,
        "03-strict",
        must_extract=[expected("event", "opera", "tickets", least=1)],
        must_skip=[{"pattern": "VULCAN", "reason": "a pet name"}],
        acceptable_range={"min": 0, "max": 2},
        importance_ceiling={"max_allowed": 1},
    )
    result = {item["session"]: item for item in figures("--labels", str(folder))["fixtures"]}
    kiln = result["01-kiln"]
    # Kind, subject, importance and one of two terms are right.
    assert kiln["expected"][0]["likeness"] == pytest.approx(0.2 + 0.3 + 0.15 + 0.2)
    assert (kiln["recall"], kiln["passed"]) == (1.0, True)
    assert (result["02-glaze"]["composite"], result["02-glaze"]["passed"]) == (1.0, True)
    strict = result["03-strict"]
    assert (strict["in_range"], strict["below_ceiling"], strict["passed"]) == (False, False, False)
    assert strict["expected"][0]["likeness"] == pytest.approx(0.2)
    precision = 1 - 1 / 3
    assert strict["precision"] == pytest.approx(precision)
    assert strict["composite"] == pytest.approx(2 * precision * 0.2 / (precision + 0.2) * 0.8 * 0.9)
    assert "2 of 3" in run("--labels", str(folder), "--misses")


# The reference scorer, available if its labels are next to the checkout.

needs_reference = pytest.mark.skipif(
    not (REAL / "score.py").exists(), reason="no labels next to this checkout"
)


@pytest.fixture
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_score", REAL / "score.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_agreement(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Check that all figures that both scorers compute are equal."""
    for name, mine in (
        ("recall", "recall"),
        ("recall_any_kind", "recall_any_kind"),
        ("must_recall", "must_recall"),
        ("precision", "precision"),
        ("score", "score"),
        ("big", "long"),
        ("out_of_range", "off"),
        ("hit_weight", "weight_found"),
        ("hit_weight_any", "weight_found_any_kind"),
        ("matched", "matched"),
        ("importance_ok", "importance_fits"),
        ("importance_n", "importance_judged"),
        ("labels", "labels"),
    ):
        assert ours[mine] == theirs[name], name
    for name, mine in (("duplicates", "duplicates"), ("skip_hits", "skip_hits"), ("n", "memories")):
        assert len(ours[mine]) == theirs[name], name
    assert {item["statement"] for item in ours["missed"]} == set(theirs["missed"])
    assert {item["statement"] for item in ours["wrong_kind"]} == set(theirs["wrong_kind"])


def agree(result: dict[str, Any], theirs: dict[str, Any]) -> None:
    for slug, ours in by_slug(result).items():
        assert_agreement(ours, theirs["sessions"][slug])
    renamed = {"long": "big"}
    for name, value in result["overall"].items():
        if name != "must_recall":
            assert value == theirs["overall"][renamed.get(name, name)], name
    assert {item["tool"]: item["score"] for item in result["by_tool"]} == {
        tool: totals["score"] for tool, totals in theirs["by_tool"].items()
    }
    assert {
        item["kind"]: (item["labels"], item["found"], item["found_any_kind"])
        for item in result["by_kind"]
    } == {
        kind: (item["labels"], item["hit"], item["hit_any_kind"])
        for kind, item in theirs["by_kind"].items()
    }
    assert result["unassigned"] == theirs["unassigned"]
    assert result["unknown_kinds"] == theirs["bad_kind"]


@needs_reference
def test_real_sessions_score_equals_the_reference_scorer(reference: ModuleType) -> None:
    result = figures(
        "--labels",
        str(REAL),
        "--transcripts",
        str(SHARED / "transcripts"),
        "--model",
        "scripted-gold",
    )
    memories = [
        {**memory, "file": item["session"]}
        for item in result["sessions"]
        for memory in item["memories"]
    ]
    assert memories
    agree(result, reference.evaluate(memories, reference.load_labels(REAL)))


def random_writer(
    draw: random.Random, labels: dict[str, Any]
) -> Callable[[], Iterator[dict[str, Any]]]:
    """Generate whole, broken, repeated and long memories of random kinds from the labels' terms."""

    def write() -> Iterator[dict[str, Any]]:
        for slug, item in labels.items():
            for _ in range(draw.randrange(14)):
                entries = draw.sample(
                    item["must_extract"], min(len(item["must_extract"]), draw.randrange(4))
                )
                words = [
                    draw.choice(group) for entry in entries for group in entry["content_terms"]
                ]
                words = [
                    word.title() if draw.random() < 0.3 else word
                    for word in words
                    if draw.random() < 0.95
                ]
                words += draw.sample(
                    ["flame graph", "0.0.1", "FileName", "CI", "a", "“quoted”", "—", "ci "], 3
                )
                draw.shuffle(words)
                kinds = ["fact", "decision", "preference", "lesson", "todo", "event", "opinion"]
                yield {
                    "kind": draw.choice(
                        [
                            *kinds,
                            *(
                                kind
                                for entry in entries
                                for kind in [entry["kind"]]
                                if kind in kinds
                            ),
                        ]
                    ),
                    "subject": " ".join(words[:2]),
                    "content": " ".join(words) + " filler" * draw.choice([0, 0, 0, 120]),
                    "importance": draw.choice([None, 3, 5, 7, 9]),
                    **draw.choice(
                        [
                            {"file": slug},
                            {"file": f"/code/{item['session']['file']}"},
                            {"file": Path(item["session"]["file"]).name},
                            {"session_id": slug},
                            {"session_id": f"tool:{item['session']['session_id'] or slug}"},
                            {"file": "/code/none.jsonl"},
                        ]
                    ),
                }

    return write


@needs_reference
@pytest.mark.parametrize("seed", range(12))
def test_random_memories_score_equals_the_reference_scorer(
    reference: ModuleType, tmp_path: Path, seed: int
) -> None:
    labels = reference.load_labels(REAL)
    memories = list(random_writer(random.Random(seed), labels)())  # noqa: S311 - a repeatable draw
    file = tmp_path / "memories.json"
    file.write_text(json.dumps({"memories": memories}), encoding="utf-8")
    agree(
        figures("--labels", str(REAL), "--memories", str(file)),
        reference.evaluate(memories, labels),
    )
