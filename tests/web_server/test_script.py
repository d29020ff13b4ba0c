"""The page about REST says what is so, and its script runs."""

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
    found = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", PAGE, re.DOTALL)
    assert found
    script = tmp_path / "script.py"
    script.write_text(found[1], encoding="utf-8")
    environ = environment({"NACRE_URL": site().base, "NACRE_HOME": str(home()), "NO_PROXY": "*"})
    for outcome in ("stored", "known"):
        done = subprocess.run(
            [sys.executable, str(script)], env=environ, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        said = re.sub(r"\d{4}-\d\d-\d\d", "2026-11-22", done.stdout)
        assert said == found[2].replace("stored", outcome)


def test_page_lists_every_resource() -> None:
    rows = re.findall(r"^\| `(\w+) (\S+)` \| `([\w-]+)` \|$", PAGE, re.MULTILINE)
    assert rows == [
        (one.method, one.path.replace(":path", ""), one.operation) for one in resources()
    ]
