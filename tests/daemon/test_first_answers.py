"""Concurrent first reads of a type are safe: msgspec builds the type only once."""

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
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
_ANSWERS = (
    "from nacre.base import json as json_values; from nacre.values.recall import RecallQuery, RecallResult",
    """json_values.decode(b'{"query": "who?"}', RecallResult); json_values.convert({"text": "who?"}, RecallQuery)""",
)
_LANGUAGES = "from nacre.learn.sentences import languages", "languages()"


@pytest.mark.parametrize(("imports", "work"), [_ANSWERS, _LANGUAGES], ids=["answers", "languages"])
def test_concurrent_first_reads_do_not_crash_the_process(imports: str, work: str) -> None:
    crowd = _CROWD.format(imports=imports, work=work)
    for _ in range(5):
        result = subprocess.run(
            [sys.executable, "-c", crowd], env=environment(), capture_output=True, text=True
        )
        assert (result.returncode, result.stderr) == (0, "")


def test_only_the_json_module_builds_msgspec_types() -> None:
    source = Path(nacre.__file__).parent
    own = source / "base" / "json.py"
    calls = [
        f"{file.relative_to(source)}:{call.lineno}"
        for file in source.rglob("*.py")
        if file != own
        for function in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and builds_type(call)
    ]
    assert calls == []


def builds_type(call: ast.Call) -> bool:
    """Return True if a call of msgspec builds a type."""
    name = ast.unparse(call.func)
    is_decoding = name == "msgspec.json.decode" and any(
        keyword.arg == "type" for keyword in call.keywords
    )
    return (
        name == "msgspec.convert"
        or is_decoding
        or (name == "msgspec.json.Decoder" and bool(call.args))
    )
