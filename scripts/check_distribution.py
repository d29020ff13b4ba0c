"""Build what is published into a folder, install it into environments of their own, and try it there.

    python scripts/check_distribution.py dist             # from whatever index pip is set up with
    python scripts/check_distribution.py dist --offline   # with the libraries of this environment

The small installation is tried, and the full one; each may take so much room and so many packages as stands below.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_NOT_OURS = ("pip", "setuptools")
_IN_WHEEL = (
    "nacre/py.typed",
    "nacre/llm/minilm/model.onnx",
    "nacre/llm/minilm/tokenizer.json",
    "nacre/llm/characters.json",
    "nacre/hosts/plugins/openclaw/package.json",
)
_IN_SDIST = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "NOTICE",
    "Makefile",
    "constraints.txt",
    "pyproject.toml",
    "src/nacre/__main__.py",
    "tests/conftest.py",
    "docs/quickstart.md",
    "plugins/src/index.ts",
    "web/package.json",
    "web/src/main.tsx",
)
_PIP = [sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]


@dataclass(frozen=True)
class Installation:
    """One way to install it, and what it may come to: MB as ``du -sm`` counts them, without bytecode, and packages."""

    extra: str
    megabytes: int
    packages: int
    has_vectors: bool


SMALL = Installation("", 60, 20, has_vectors=False)
FULL = Installation("[full]", 195, 32, has_vectors=True)


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.absolute())]
    subprocess.run(command, cwd=_ROOT, check=True, stderr=subprocess.DEVNULL)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def check_contents(wheel: Path, source: Path) -> None:
    """What has to be in them is, and what they say of themselves is whole."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(packed.read(about).decode())
    missing = [name for name in _IN_WHEEL if name not in names]
    with tarfile.open(source) as packed_source:
        inside = {name.partition("/")[2] for name in packed_source.getnames()}
    missing += [name for name in _IN_SDIST if name not in inside]
    odd = sorted(
        name for name in names | inside if "node_modules" in name or name.endswith((".pyc", ".db"))
    )
    need(not missing, f"missing: {missing}")
    need(not odd, f"not to be published: {odd}")
    said = (told["Name"], told["License-Expression"], told["Description-Content-Type"])
    need(said == ("nacre-memory", "Apache-2.0", "text/markdown"), f"it says of itself: {said}")


def check_dashboard(wheel: Path) -> None:
    """What is published holds the built dashboard; a checkout may not have built it."""
    with zipfile.ZipFile(wheel) as packed:
        need(
            "nacre/serve/static/index.html" in packed.namelist(),
            "the dashboard is missing: make web",
        )


def environment(folder: Path) -> Path:
    """A new environment; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(python: Path, wheel: Path, wanted: Installation, *, offline: bool) -> None:
    """Install the wheel; offline, what it needs is taken from this environment."""
    pip = [*_PIP, "--python", str(python), "install"]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if offline:
        subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], env=environ, check=True)
        needs = sysconfig.get_path("purelib")
        (packages_of(python) / "needs.pth").write_text(f"{needs}\n", encoding="utf-8")
        return
    what = f"nacre-memory{wanted.extra} @ {wheel.absolute().as_uri()}"
    subprocess.run([*pip, "-c", str(_ROOT / "constraints.txt"), what], env=environ, check=True)


def packages_of(python: Path) -> Path:
    """Where an environment has its packages."""
    return Path(asked(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))


def asked(python: Path, code: str, environ: dict[str, str] | None = None) -> str:
    """What a program prints, run from a folder without a nacre."""
    done = subprocess.run(
        [python, "-c", code],
        env=environ,
        cwd=python.parent,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def need(is_so: bool, message: str) -> None:
    """End with a message where something is not so."""
    if not is_so:
        sys.exit(f"error: {message}")


def try_it(python: Path, wanted: Installation, *, offline: bool) -> None:
    """Store a memory and find it, from a home and a folder that are empty."""
    nacre = str(python.with_name("nacre"))
    with tempfile.TemporaryDirectory() as home:
        environ = {"HOME": home, "PATH": os.environ["PATH"], "NACRE_DAEMON_ENABLED": "false"}

        def run(*words: str) -> str:
            done = subprocess.run(
                [nacre, *words], env=environ, cwd=home, check=True, capture_output=True, text=True
            )
            return done.stdout

        version = run("--version").split()[-1]
        need(
            version in _ROOT.joinpath("CHANGELOG.md").read_text(encoding="utf-8"),
            f"CHANGELOG.md has no {version}",
        )
        where = asked(python, "import nacre; print(nacre.__file__)", environ)
        need(Path(where).is_relative_to(packages_of(python)), f"another nacre runs: {where}")
        run("store", "The ferry leaves from pier seven.")
        found = json.loads(run("recall", "where does the ferry leave?", "--json"))
        need("pier seven" in str(found["hits"]), f"not found: {found}")
        lanes = {lane["name"]: lane["state"] for lane in found["lanes"]}
        need(offline or (lanes["vector"] != "unavailable") == wanted.has_vectors, f"lanes: {lanes}")


def weigh(python: Path, wanted: Installation) -> str:
    """How large it is, where that is not too large."""
    packages = packages_of(python)
    files = [
        file for file in packages.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    ]
    ours = [file for file in files if not file.relative_to(packages).parts[0].startswith(_NOT_OURS)]
    megabytes = sum(-(-file.stat().st_size // 4096) * 4096 for file in ours) / (1 << 20)
    count = sum(not one.name.startswith(_NOT_OURS) for one in packages.glob("*.dist-info"))
    told = f"nacre-memory{wanted.extra}: {megabytes:.0f} MB, {count} packages"
    need(megabytes <= wanted.megabytes and count <= wanted.packages, f"{told}: too much")
    return told


def main() -> None:
    """Build, look into it, install and try it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the wheel and the source distribution go")
    parser.add_argument(
        "--offline", action="store_true", help="take the libraries of this environment"
    )
    given = parser.parse_args()
    wheel, source = build(given.folder)
    check_contents(wheel, source)
    if not given.offline:
        check_dashboard(wheel)
    for wanted in (FULL,) if given.offline else (SMALL, FULL):
        with tempfile.TemporaryDirectory() as folder:
            python = environment(Path(folder) / "env")
            install(python, wheel, wanted, offline=given.offline)
            try_it(python, wanted, offline=given.offline)
            print("tried" if given.offline else weigh(python, wanted))
    print(f"{wheel} and {source.name} are ready; nothing was uploaded")


if __name__ == "__main__":
    main()
