"""nacre's statements as PostgreSQL takes them.

Most statements are written so that both engines understand them, and stand once, in ``sql/queries``. What only one of
them can say stands for this one in ``sql/postgres_queries``, under the same name.
"""

from __future__ import annotations

import re
from functools import cache

from nacre.platform.sql_files import statements
from nacre.storage.sqlite.queries import with_columns, with_other

_COMMENT = re.compile(r"--[^\n]*")
_QUOTED_OR_NAME = re.compile(r"('(?:[^']|'')*')|(?<![:\w]):([a-z_]\w*)|(\?)")
_WRITES = re.compile(r"\b(?:INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b")
_TARGET = re.compile(r"\bON CONFLICT \(")
_LIST = re.compile(r"(FROM json_each\((?::\w+|\?)\))\)")
_COPIES = re.compile(r".*\bINSERT INTO (?!.*\b(?:VALUES|ON CONFLICT|RETURNING)\b)", re.DOTALL)
_LIMIT = re.compile(r"\bLIMIT (:\w+|\?|-1)")


@cache
def query(name: str) -> str:
    """The statement of that name, with psycopg's placeholders. Raises KeyError."""
    return translated(with_columns(statement(name)))


def statement(name: str) -> str:
    """The statement of that name, as it is written. Raises KeyError."""
    return _all()[name]


@cache
def _all() -> dict[str, str]:
    shared, own = statements("nacre.storage", "sql/queries"), statements("nacre.storage", "sql/postgres_queries")
    return with_other({**shared, **own})


@cache
def translated(sql: str) -> str:
    """``:name`` and ``?`` as psycopg's placeholders; keys that an insert may meet begin with the tenant; a limit below
    zero is none.

    What is compared with the values of a list is compared after these were cast, which ``OFFSET 0`` sees to: a cast
    may tell what it was given, so that row-level security keeps comparisons that hold one from using an index. Rows
    that a statement finds and inserts are told one by one: else Citus copies them, which row-level security forbids.
    """
    bare = _LIMIT.sub(r"LIMIT nacre.most(\1)", _COMMENT.sub("", sql).replace("%", "%%"))
    bare = _LIST.sub(r"\1 OFFSET 0)", bare)
    if _COPIES.match(bare):
        bare = f"{bare.rstrip(' ;')} RETURNING 1"
    return _TARGET.sub("ON CONFLICT (tenant, ", _QUOTED_OR_NAME.sub(_placeholder, bare))


@cache
def writes(sql: str) -> bool:
    """Whether a statement of nacre's writes."""
    return _WRITES.search(sql) is not None


def _placeholder(found: re.Match[str]) -> str:
    quoted, name, _ = found.groups()
    if quoted:
        return str(quoted)
    return f"%({name})s" if name else "%s"
