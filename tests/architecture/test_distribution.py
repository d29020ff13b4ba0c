"""What is published can be built, installed and used; who publishes it has to fill in what only a person knows."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import nacre
from nacre.base.environment import NAME
from tests.cli.conftest import environment

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

RAN = "*(name for name, one in sys.modules.items() if type(one) is type(sys))"
"""The modules that ran (:mod:`nacre.base.late_modules`)."""


def test_built_distribution_is_complete_and_installable(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "scripts" / "check_distribution.py",
            tmp_path / "dist",
            "--offline",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "nacre_memory-" in done.stdout


def test_distribution_name_is_consistent_everywhere() -> None:
    assert PROJECT["name"] == NAME
    own = [
        item
        for wanted in PROJECT["optional-dependencies"].values()
        for item in wanted
        if item.startswith("nacre")
    ]
    plugins = {folder.name for folder in (ROOT / "plugins").iterdir()}
    assert own
    assert all(
        item.startswith(f"{NAME}[") for item in own if item.partition("==")[0] not in plugins
    )


@pytest.mark.parametrize("folder", ["src", "docs", "scripts", "tests", "benchmarks"])
def test_every_mentioned_extra_exists(folder: str) -> None:
    files = [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.md"), ROOT / "README.md"]
    named = {
        extra
        for file in files
        for found in re.findall(rf"{NAME}\[([a-z,]+)\]", file.read_text(encoding="utf-8"))
        for extra in found.split(",")
    }
    assert named <= PROJECT["optional-dependencies"].keys()


def test_changelog_names_the_version() -> None:
    assert f"\n## {nacre.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_published_files_contain_no_contact_addresses() -> None:
    for name in (
        "SECURITY.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "release/nacre-memory.rb",
        "pyproject.toml",
    ):
        assert not re.search(
            r"[\w.]+@[\w-]+\.[a-z]|https?://", (ROOT / name).read_text(encoding="utf-8")
        ), name


def test_version_is_printed_before_other_modules_load() -> None:
    code = "import sys; sys.argv = ['nacre', '--version']; from nacre.__main__ import main; main()"
    code += f"; print({RAN})"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    told, loaded = done.stdout.splitlines()
    assert told == f"nacre {nacre.__version__}"
    assert {"click", "typing", "nacre.cli.root", "nacre.errors"}.isdisjoint(loaded.split())


def test_importing_the_package_loads_no_submodules() -> None:
    code = f"import sys; before = {{*sys.modules}}; import nacre; print(*({{{RAN}}} - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    own = {"nacre", "nacre.base", "nacre.base.late_modules"}
    loaders = {
        "warnings",
        "importlib",
        "importlib._bootstrap",
        "importlib._bootstrap_external",
        "importlib.machinery",
    }
    assert own <= set(done.stdout.split()) <= own | loaders | {"__future__"}
