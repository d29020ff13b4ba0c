"""Write src/nacre/serve/manifest.py, which lists the modules of operations and requests."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import generated

from nacre.serve.catalogue import operations_in

SOURCE = Path(__file__).parents[1] / "src/nacre"
HEAD = '''"""The module of each operation, and its request if that is in another module.

Written by scripts/write_manifest.py; do not edit it.
"""

from __future__ import annotations

PLACES = {
'''

rows = ""
for path in sorted(SOURCE.rglob("*.py")):
    if "\n@operation(" not in path.read_text(encoding="utf-8"):
        continue
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for name, operation in operations_in(import_module(f"nacre.{module}")).items():
        request = operation.request
        own = request.__module__.removeprefix("nacre.")
        place = f" {own}:{request.__name__}" if own not in (module, "base.request") else ""
        rows += f'    "{name}": "{module}{place}",\n'
generated.write(SOURCE / "serve/manifest.py", HEAD + rows + "}\n")
