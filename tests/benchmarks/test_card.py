"""``python -m benchmarks card`` scores any MCP server or command by the marks in its answers."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import benchmarks
from benchmarks.card.systems import shown_marks

SERVER = Path(__file__).with_name("grep_server.py")


def card(system: str, data: Path, suite: str, *more: str) -> dict[str, Any]:
    arguments = ["card", "--system", system, "--suite", suite, "--data", str(data), "--json", *more]
    result = CliRunner().invoke(benchmarks, arguments)
    assert result.exit_code == 0, result.output
    measured: dict[str, Any] = json.loads(result.stdout)
    return measured


def describe(tmp_path: Path, text: str) -> str:
    path = tmp_path / "system.toml"
    path.write_text(f'program = "{sys.executable}"\ninstall = ""\n{text}', encoding="utf-8")
    return str(path)


def test_full_text_finds_turns_and_answers_near_misses(data: Path) -> None:
    result = card("fts5", data, "locomo")
    (setting,) = result["settings"]
    assert result["questions"] == {"answered": 3, "foreign": 0, "near miss": 1}
    assert setting["sessions"]["hit@1"] == 100.0
    assert setting["silent_near_miss"] == 0.0


def test_mcp_server_is_measured_with_and_without_its_uncertain_results(
    data: Path, tmp_path: Path
) -> None:
    server = shlex.join([sys.executable, str(SERVER)])
    system = describe(
        tmp_path,
        f"server = '''{server}'''\nweak = 'unsure:'\n"
        'store = { tool = "keep", arguments = { text = "{text}" } }\n'
        'search = { tool = "find", arguments = { query = "{question}", most = "{depth}" } }\n',
    )
    result = card(system, data, "locomo", "--out", str(tmp_path / "out"))
    every, certain = result["settings"]
    assert result["schema_tokens"] > 20
    assert every["turns"]["recall@10"] > certain["turns"]["recall@10"] > 0
    records = [json.loads(path.read_text()) for path in sorted((tmp_path / "out").rglob("*.json"))]
    repair = next(record for record in records if "repair" in record["text"])
    assert repair["gold_turns"] == ["zs1t2"]
    assert "zs1t2" in repair["turns"]
    assert "ninety euros" in repair["answer"]


def test_command_searches_files_of_sessions(data: Path, tmp_path: Path) -> None:
    search = (
        f"{sys.executable} -c 'import sys, pathlib; words = sys.argv[2].lower().split(); "
        "print(*(p.stem for p in sorted(pathlib.Path(sys.argv[1]).iterdir()) "
        "if any(len(w) > 4 and w in p.read_text().lower() for w in words)))' {home}/notes {question}"
    )
    system = describe(
        tmp_path,
        f'files = "{{home}}/notes/{{session}}.md"\nsearch = {{ command = """{search}""" }}\n',
    )
    (setting,) = card(system, data, "longmemeval")["settings"]
    assert setting["sessions"]["hit@1"] == 33.3
    assert setting["turns"]["hit@1"] == 0.0
    assert setting["silent_foreign"] == 100.0


def test_missing_system_is_refused_with_its_installation(data: Path) -> None:
    result = CliRunner().invoke(
        benchmarks, ["card", "--system", "no-such", "--suite", "locomo", "--data", str(data)]
    )
    assert result.exit_code == 3
    assert "nacre" in result.output


@pytest.mark.parametrize(
    ("answer", "turns", "sessions"),
    [
        ("[zs2t1] a\n- zs0: b zs2t0", ["zs2t1", "zs2t0"], ["zs2", "zs0"]),
        ("puzs2 zs", [], []),
    ],
)
def test_marks_are_read_in_order(answer: str, turns: list[str], sessions: list[str]) -> None:
    assert shown_marks(answer) == (turns, sessions)
