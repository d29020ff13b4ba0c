"""The script on the REST documentation page runs, and the page is correct."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from nacre.serve.rest import resources
from tests.cli.conftest import environment
from tests.daemon.conftest import home
from tests.web_server.conftest import Site

PAGE = (Path(__file__).parents[2] / "docs" / "rest.md").read_text(encoding="utf-8")


def test_documented_script_runs_with_the_documented_output(
    site: Callable[..., Site], tmp_path: Path
) -> None:
    match = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", PAGE, re.DOTALL)
    assert match
    script = tmp_path / "script.py"
    script.write_text(match[1], encoding="utf-8")
    environ = environment({"NACRE_URL": site().base, "NACRE_HOME": str(home()), "NO_PROXY": "*"})
    for outcome in ("stored", "known"):
        result = subprocess.run(
            [sys.executable, str(script)], env=environ, capture_output=True, text=True, timeout=60
        )
        assert result.returncode == 0, result.stderr
        output = re.sub(r"\d{4}-\d\d-\d\d", "2026-11-22", result.stdout)
        assert output == match[2].replace("stored", outcome)


def test_page_lists_every_resource() -> None:
    rows = re.findall(r"^\| `GET (\S+)` \| `([\w-]+)` \|$", PAGE, re.MULTILINE)
    assert rows == [
        (resource.path.replace(":path", ""), resource.operation) for resource in resources()
    ]
