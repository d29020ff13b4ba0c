"""``make lint`` refuses source that outgrows the house."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_house.py"
FINE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


def breaches(source: Path) -> list[str]:
    told = subprocess.run([sys.executable, SCRIPT, "--source", source], capture_output=True, text=True, check=False)
    assert told.returncode == (1 if told.stderr else 0), told.stderr
    return told.stderr.splitlines()


def write(source: Path, files: dict[str, str]) -> Path:
    for name, text in {"pkg/__init__.py": FINE, **files}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    return source


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({f"pkg/m{number}.py": "" for number in range(26)}, "pkg: 26 modules"),
        ({"pkg/long.py": "x = 1\n" * 451}, "pkg/long.py: 451 lines"),
        ({"pkg/big.py": "def h():\n" + "    x = 1\n" * 40}, "one function in twenty is longer than"),
        (
            {"pkg/local.py": "".join(f"def h{number}():\n    import os\n" for number in range(41))},
            "41 imports inside functions",
        ),
        ({"pkg/bare.py": "def h():\n    import os  # noqa: PLC0415\n"}, "needs a reason"),
        ({"pkg/a.py": "import pkg.b\n", "pkg/b.py": "import pkg.a\n"}, "a circle of imports"),
        ({"pkg/a.py": "import pkg.b\n", "pkg/b.py": "def h():\n    import pkg.a\n"}, "a circle of imports"),
        ({"pkg/a.py": "import pkg.b\n", "pkg/b.py": 'a = Module("pkg.a")\n'}, "a circle of imports"),
    ],
)
def test_each_rule_is_held(tmp_path: Path, files: dict[str, str], told: str) -> None:
    assert breaches(write(tmp_path, {})) == []
    found = breaches(write(tmp_path, files))
    assert len(found) == 1
    assert told in found[0]
