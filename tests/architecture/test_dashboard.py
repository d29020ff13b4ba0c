"""What is written for the dashboard fits the catalogue and what it bundles."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from scripts.write_notices import HEADING, NOTICE, WEB, bundled

ROOT = Path(__file__).parents[2]


def test_typescript_types_match_the_catalogue() -> None:
    script = ROOT / "scripts" / "write_web_types.py"
    shown = subprocess.run(
        [sys.executable, script, "--show"], capture_output=True, text=True, check=True
    ).stdout
    written = (WEB / "src" / "api" / "types.ts").read_text(encoding="utf-8")
    assert shown == written, "run scripts/write_web_types.py"


def test_notice_lists_bundled_packages() -> None:
    section = NOTICE.read_text(encoding="utf-8").partition(HEADING)[2]
    named = dict(re.findall(r"^  (\S+) (\d\S*)$", section, re.MULTILINE))
    assert named == bundled(), "run scripts/write_notices.py"


def test_lock_file_contains_no_registry_addresses() -> None:
    assert '"resolved"' not in (WEB / "package-lock.json").read_text(encoding="utf-8")


def test_only_the_token_style_sheet_defines_colours() -> None:
    tokens = WEB / "src" / "styles" / "tokens.css"
    named = {
        path.relative_to(WEB).as_posix(): found
        for path in (WEB / "src").rglob("*.css")
        if path != tokens
        and (found := re.findall(r"#[0-9a-f]{3,8}\b|rgb\(|hsl\(", path.read_text(encoding="utf-8")))
    }
    assert named == {}
