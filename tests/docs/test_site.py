"""The site of the documentation is whole: every page, a reference from the code, no broken link, nothing borrowed."""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape
from importlib.util import find_spec
from pathlib import Path

import pytest

from nacre.api import MemoryHome
from nacre.cli.root import SECTIONS
from nacre.known_settings import SETTINGS
from nacre.serve.mcp import offered_tools

PROJECT = Path(__file__).parents[2]
MISSING = [name for name in ("sphinx", "myst_parser", "furo") if find_spec(name) is None]

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"make docs installs what is missing: {', '.join(MISSING)}"
)


def build(target: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROJECT / "scripts" / "build_docs.py", *arguments, target]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("docs") / "site"
    done = build(target)
    assert done.returncode == 0, done.stderr
    return target


def test_every_documentation_page_is_built_and_in_the_navigation(site: Path) -> None:
    entrance = (site / "index.html").read_text(encoding="utf-8")
    for page in (PROJECT / "docs").glob("*.md"):
        assert (site / "docs" / f"{page.stem}.html").is_file()
        assert page.name == "README.md" or f'href="docs/{page.stem}.html"' in entrance, page.name
    assert len([*(site / "docs" / "decisions").glob("0*.html")]) == len(
        [*(PROJECT / "docs" / "decisions").glob("0*")]
    )


def test_reference_has_every_command_setting_tool_and_method(site: Path) -> None:
    pages = {
        page.name: page.read_text(encoding="utf-8") for page in (site / "reference").rglob("*.html")
    }
    for title, entries in SECTIONS.items():
        for name in entries:
            assert f'id="nacre-{name}"' in pages[f"{title.lower()}.html"], name
    assert [
        setting.key for setting in SETTINGS if escape(setting.key) not in pages["settings.html"]
    ] == []
    assert [
        tool.name
        for tool in offered_tools(everything=True)
        if f">{tool.name}<" not in pages["tools.html"]
    ] == []
    methods = [name for name in vars(MemoryHome) if not name.startswith("_") and name != "path"]
    assert [
        name
        for name in methods
        if f'id="memory-{name.replace("_", "-")}"' not in pages["python.html"]
    ] == []


def test_pages_load_no_external_resources(site: Path) -> None:
    loaded = re.compile(r"<(?:script|img|iframe)[^>]+src=\"([^\"]+)|<link[^>]+href=\"([^\"]+)")
    for page in site.rglob("*.html"):
        found = [
            item
            for pair in loaded.findall(page.read_text(encoding="utf-8"))
            for item in pair
            if item
        ]
        assert found
        assert [
            item for item in found if re.match(r"\w+:|//", item) and not item.startswith("data:")
        ] == [], page.name
    for style in site.rglob("*.css"):
        assert not re.search(
            r"url\(['\"]?(?:https?:)?//|@import ['\"]?http", style.read_text(encoding="utf-8")
        ), style


def test_broken_link_fails_the_build(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    (source / "docs" / "README.md").write_text("# Map\n\n## Start\n\n- [There](there.md): a page\n")
    (source / "docs" / "there.md").write_text("# There\n")
    for link, code in {
        "there.md#there": 0,
        "missing.md": 1,
        "there.md#missing": 1,
        "missing.svg": 1,
    }.items():
        (source / "README.md").write_text(f"# Entrance\n\n[there](docs/{link})\n")
        done = build(tmp_path / "site", "--source", source)
        assert done.returncode == code, link
        assert ("missing" in done.stderr) == bool(code)
