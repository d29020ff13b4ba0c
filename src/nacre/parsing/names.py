"""Names that are kept: of files, of sessions, of turns. What looks like a secret in one is taken out of it.

A name is a key: two files must not become one. So what was changed ends in a hash of what it was.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from nacre.redact.redactor import Redactor

_PLAIN_ID = re.compile(r"[A-Za-z0-9_.:|-]{1,39}")
_MOST_REMEMBERED = 4096


@lru_cache(_MOST_REMEMBERED)
def kept_name(redactor: Redactor, name: str) -> str:
    """A path, or the id of a session, which may come from the name of a file, as it is stored."""
    clean = redactor.clean(name)
    if clean == name:
        return name
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{clean}#{digest}"


def kept_id(redactor: Redactor, name: str) -> str:
    """A tool's own id of a turn. It is short and random as a rule, and then it is what it says."""
    return name if _PLAIN_ID.fullmatch(name) else kept_name(redactor, name)
