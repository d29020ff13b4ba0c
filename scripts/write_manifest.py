"""Write src/nacre/serve/manifest.py: the module and the request of each operation."""

from __future__ import annotations

import textwrap
from importlib import import_module
from pathlib import Path

from nacre.base.request import Nothing
from nacre.serve.catalogue import operations_in

SOURCE = Path(__file__).parents[1] / "src" / "nacre"
HEAD = '''"""The operations of each module, and their requests. Written by scripts/write_manifest.py; do not edit."""

from __future__ import annotations

MODULES = {
'''

rows = ""
for path in sorted(SOURCE.rglob("*.py")):
    if "\n@operation(" not in path.read_text(encoding="utf-8"):
        continue
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    words = []
    for name, operation in operations_in(import_module(f"nacre.{module}")).items():
        request = operation.request
        place = request.__module__.removeprefix("nacre.")
        where = "" if place == module else f"{place}:"
        words.append(name if request is Nothing else f"{name}:{where}{request.__name__}")
    lines = textwrap.wrap(" ".join(words), 88, break_long_words=False, break_on_hyphens=False)
    quoted = [f'"{line} "' for line in lines[:-1]] + [f'"{lines[-1]}"']
    text = quoted[0] if len(quoted) == 1 else "(\n        " + "\n        ".join(quoted) + "\n    )"
    rows += f'    "{module}": {text},\n'
(SOURCE / "serve" / "manifest.py").write_text(HEAD + rows + "}\n", encoding="utf-8")
