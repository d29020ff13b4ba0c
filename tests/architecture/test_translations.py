"""What nacre says is English; the dashboard translates it by tables, which fit what is really said."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from nacre.known_settings import SETTINGS

PROJECT = Path(__file__).parents[2]
TABLES = sorted((PROJECT / "web" / "src" / "i18n").glob("said.*.json"))


def core(form: str) -> str:
    """What stands between the first and last words of a form: what differs at its ends may be there or not."""
    return re.sub(r"^(?:\{\})+|(?:\{\})+$", "", re.sub(r"(?:\{\})+", "{}", form)).strip()


def said() -> set[str]:
    """The cores of all that the source says, and of each part between semicolons."""
    found = set()
    for path in [*PROJECT.glob("src/**/*.py"), *PROJECT.glob("plugins/*/src/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.JoinedStr):
                form = "".join(
                    part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
                )  # type: ignore[misc]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                form = node.value
            else:
                continue
            found |= {core(form), *map(core, form.split("; "))}
    return found


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_each_translated_message_occurs_in_the_source(table: Path) -> None:
    forms: dict[str, str] = json.loads(table.read_text(encoding="utf-8"))
    known = said()
    assert [form for form in forms if core(form) not in known] == []
    places = {form: re.findall(r"\{(\d?)\}", other) for form, other in forms.items()}
    assert [form for form, marks in places.items() if len(marks) > form.count("{}")] == []
    assert [
        form for form, marks in places.items() if "" in marks and len(marks) != form.count("{}")
    ] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_each_setting_is_explained_in_each_language(table: Path) -> None:
    forms: dict[str, str] = json.loads(table.read_text(encoding="utf-8"))
    patterns = [re.compile(re.escape(form).replace(r"\{\}", ".+")) for form in forms]
    assert [
        setting.key
        for setting in SETTINGS
        if not any(pattern.fullmatch(setting.summary) for pattern in patterns)
    ] == []


def test_translation_table_exists() -> None:
    assert [path.name for path in TABLES] == ["said.zh.json"]
