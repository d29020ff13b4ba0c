"""Build the distributions into a folder, install them into new environments, and test them there.

    python scripts/check_distribution.py dist             # from pip's configured index
    python scripts/check_distribution.py dist --offline   # with this environment's libraries

Tests the small and the full installation, and checks the limits below on size and number of packages.
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
    "conftest.py",
    "docs/quickstart.md",
    "host-plugins/src/index.ts",
    "plugins/nacre-code/pyproject.toml",
    "plugins/nacre-extras/pyproject.toml",
    "plugins/nacre-gateway/pyproject.toml",
    "plugins/nacre-server/pyproject.toml",
    "web/package.json",
    "web/src/main.tsx",
)
_PIP = [sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]


@dataclass(frozen=True)
class Installation:
    """An installation and its limits: MB (``du -sm`` without bytecode) and number of packages."""

    extra: str
    megabytes: int
    packages: int
    has_vectors: bool


SMALL = Installation("", 60, 20, has_vectors=False)
FULL = Installation("[full,gateway]", 210, 42, has_vectors=True)


def build(folder: Path) -> tuple[Path, Path]:
    """Build the wheel and the source distribution of nacre and its plugins."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.absolute())]
    subprocess.run(command, cwd=_ROOT, check=True, stderr=subprocess.DEVNULL)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    for plugin in (_ROOT / "plugins").iterdir():
        subprocess.run(command, cwd=plugin, check=True, stderr=subprocess.DEVNULL)
    return wheel, source


def check_contents(wheel: Path, source: Path) -> None:
    """Check the files and metadata in both distributions."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(packed.read(about).decode())
    missing = [name for name in _IN_WHEEL if name not in names]
    with tarfile.open(source) as packed_source:
        inside = {name.partition("/")[2] for name in packed_source.getnames()}
    missing += [name for name in _IN_SDIST if name not in inside]
    odd = sorted(
        name for name in names | inside if "node_modules" in name or name.endswith((".pyc", ".db"))
    )
    need(not missing, f"missing: {missing}")
    need(not odd, f"must not be published: {odd}")
    fields = (
        metadata["Name"],
        metadata["License-Expression"],
        metadata["Description-Content-Type"],
    )
    need(fields == ("nacre-memory", "Apache-2.0", "text/markdown"), f"wrong metadata: {fields}")


def check_dashboard(wheel: Path) -> None:
    """Check that the wheel contains the built dashboard."""
    with zipfile.ZipFile(wheel) as packed:
        need(
            "nacre/serve/static/index.html" in packed.namelist(),
            "the dashboard is missing: run make web",
        )


def environment(folder: Path) -> Path:
    """Create an environment and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(python: Path, wheel: Path, installation: Installation, *, offline: bool) -> None:
    """Install the wheel and its plugins. With ``offline``, use this environment's libraries."""
    pip = [*_PIP, "--python", str(python), "install"]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if offline:
        wheels = map(str, wheel.parent.glob("*.whl"))
        subprocess.run([*pip, "--no-index", "--no-deps", *wheels], env=environ, check=True)
        needs = sysconfig.get_path("purelib")
        (packages_of(python) / "needs.pth").write_text(f"{needs}\n", encoding="utf-8")
        return
    what = f"nacre-memory{installation.extra} @ {wheel.absolute().as_uri()}"
    subprocess.run(
        [*pip, "-c", str(_ROOT / "constraints.txt"), "-f", str(wheel.parent), what],
        env=environ,
        check=True,
    )


def packages_of(python: Path) -> Path:
    """Return the package folder of an environment."""
    return Path(asked(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))


def asked(python: Path, code: str, environ: dict[str, str] | None = None) -> str:
    """Return the output of a program that runs outside the checkout."""
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
    """Exit with a message unless a condition is true."""
    if not is_so:
        sys.exit(f"error: {message}")


def try_it(python: Path, installation: Installation, *, offline: bool) -> None:
    """Store a memory and recall it, with an empty home and folder."""
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
        need(Path(where).is_relative_to(packages_of(python)), f"another nacre is imported: {where}")
        run("store", "The ferry leaves from pier seven.")
        answer = json.loads(run("recall", "where does the ferry leave?", "--json"))
        need("pier seven" in str(answer["hits"]), f"not found: {answer}")
        lanes = {lane["name"]: lane["state"] for lane in answer["lanes"]}
        need(
            offline or (lanes["vector"] != "unavailable") == installation.has_vectors,
            f"lanes: {lanes}",
        )


def try_plugins(python: Path) -> None:
    """Show the help for the plugins' commands."""
    nacre = python.with_name("nacre")
    for command in (["gateway"], ["graph", "callers"]):
        subprocess.run(
            [nacre, *command, "--help"], cwd=python.parent, check=True, stdout=subprocess.DEVNULL
        )


def weigh(python: Path, installation: Installation) -> str:
    """Return a line about the size. Exit if it exceeds the limits."""
    packages = packages_of(python)
    files = [
        file for file in packages.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    ]
    ours = [file for file in files if not file.relative_to(packages).parts[0].startswith(_NOT_OURS)]
    megabytes = sum(-(-file.stat().st_size // 4096) * 4096 for file in ours) / (1 << 20)
    count = sum(not folder.name.startswith(_NOT_OURS) for folder in packages.glob("*.dist-info"))
    line = f"nacre-memory{installation.extra}: {megabytes:.0f} MB, {count} packages"
    need(
        megabytes <= installation.megabytes and count <= installation.packages, f"{line}: too large"
    )
    return line


def main() -> None:
    """Build, check, install and test the distributions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, help="folder for the wheel and the source distribution"
    )
    parser.add_argument(
        "--offline", action="store_true", help="use the libraries of this environment"
    )
    options = parser.parse_args()
    wheel, source = build(options.folder)
    check_contents(wheel, source)
    if not options.offline:
        check_dashboard(wheel)
    for installation in (FULL,) if options.offline else (SMALL, FULL):
        with tempfile.TemporaryDirectory() as folder:
            python = environment(Path(folder) / "env")
            install(python, wheel, installation, offline=options.offline)
            try_it(python, installation, offline=options.offline)
            if installation is FULL:
                try_plugins(python)
            print("tried" if options.offline else weigh(python, installation))
    print(f"{wheel} and {source.name} are ready; nothing was uploaded")


if __name__ == "__main__":
    main()
