"""Write src/nacre/serve/manifest.py: the module of each operation."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "nacre"
MARK = re.compile(r'^@operation\(\s*"([\w-]+)"', re.MULTILINE)
HEAD = '''"""The module of each operation. Written by scripts/write_manifest.py; do not edit it by hand."""

from __future__ import annotations

MODULES = {
'''


text = HEAD
for path in sorted(SOURCE.rglob("*.py")):
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for name in MARK.findall(path.read_text(encoding="utf-8")):
        text += f'    "{name}": "{module}",\n'
(SOURCE / "serve" / "manifest.py").write_text(text + "}\n", encoding="utf-8")
