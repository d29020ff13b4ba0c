"""Threads that read values of one type for the first time at once: what msgspec keeps of a dataclass is made once."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nacre
from tests.cli.conftest import environment

_CROWD = """
import sys, threading
sys.setswitchinterval(1e-6)
{imports}

together = threading.Barrier(8)

def read():
    together.wait()
    for _ in range(2):
        {work}

threads = [threading.Thread(target=read) for _ in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
"""
_ANSWERS = (
    "from nacre.base import json as json_values; from nacre.values.recall import RecallQuery, RecallResult",
    """json_values.decode(b'{"query": "who?"}', RecallResult); json_values.from_plain({"text": "who?"}, RecallQuery)""",
)
_LANGUAGES = "from nacre.learn.sentences import languages", "languages()"


@pytest.mark.parametrize(("imports", "work"), [_ANSWERS, _LANGUAGES], ids=["answers", "languages"])
def test_concurrent_first_reads_do_not_crash_the_process(imports: str, work: str) -> None:
    crowd = _CROWD.format(imports=imports, work=work)
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", crowd], env=environment(), capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_only_the_json_module_builds_msgspec_types() -> None:
    source = Path(nacre.__file__).parent
    own = source / "base" / "json.py"
    found = [
        f"{file.relative_to(source)}:{call.lineno}"
        for file in source.rglob("*.py")
        if file != own
        for function in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and learns(call)
    ]
    assert found == []


def learns(call: ast.Call) -> bool:
    """Whether a call of msgspec names a type."""
    name = ast.unparse(call.func)
    is_decoding = name == "msgspec.json.decode" and any(
        keyword.arg == "type" for keyword in call.keywords
    )
    return (
        name == "msgspec.convert"
        or is_decoding
        or (name == "msgspec.json.Decoder" and bool(call.args))
    )
