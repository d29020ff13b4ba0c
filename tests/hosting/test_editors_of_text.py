"""What nacre does to files of others: nothing but what it says, and all of it back."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.hosts import files
from nacre.hosts.files import UnparsableFileError
from nacre.hosts.host import Block, JsonHook, JsonItem, JsonKey, TomlServer, TomlTables

SERVER = {"command": "/opt/nacre/bin/nacre", "args": ["mcp"]}
KEY = JsonKey(("mcpServers", "nacre"), SERVER)
HOOK = JsonHook(
    ("hooks", "SessionStart"), {"hooks": [{"type": "command", "command": "/opt/nacre-hook a b"}]}
)
TABLE = TomlServer(("mcp_servers", "nacre"), {**SERVER, "startup_timeout_sec": 20})

SETTINGS = """\
// settings of mine
{
    "model": "x", // the quick one
    /* servers */
    "mcpServers": {
        "other": { "command": 'run', "args": [] }, // keep
    },
    unquoted: [1, 2,], // JSON5
    "last": null
    // the end
}
"""

names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=6)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.text(max_size=8)
    | st.floats(allow_nan=False, width=16)
)
values = st.recursive(
    leaves,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=3),
    max_leaves=12,
)


@st.composite
def documents(draw: Any) -> str:
    """A JSON text in one of many layouts, with comments, trailing commas and line ends of either kind."""
    line = draw(st.sampled_from(["\n", "\r\n"]))
    unit = draw(st.sampled_from(["", "  ", "    ", "\t"]))

    def gap(depth: int) -> str:
        comment = draw(st.sampled_from(["", "", "", " // note", " /* note */"]))
        if not unit:
            return " /* note */ " if comment else ""
        return comment + line + unit * depth

    def render(value: Any, depth: int) -> str:
        if isinstance(value, dict):
            inner = [f"{json.dumps(key)}: {render(item, depth + 1)}" for key, item in value.items()]
            return wrapped("{", inner, "}", depth)
        if isinstance(value, list):
            return wrapped("[", [render(item, depth + 1) for item in value], "]", depth)
        return json.dumps(value)

    def wrapped(begin: str, inner: list[str], end: str, depth: int) -> str:
        if not inner:
            return begin + end
        comma = "," if draw(st.booleans()) else ""
        body = "".join(
            gap(depth + 1) + item + ("," if at < len(inner) - 1 else comma)
            for at, item in enumerate(inner)
        )
        return begin + body + gap(depth) + end

    top = draw(st.dictionaries(names, values, max_size=4))
    if draw(st.booleans()):
        top["mcpServers"] = draw(
            st.dictionaries(names.filter(lambda name: name != "nacre"), values, max_size=2)
        )
    return render(top, 0) + draw(st.sampled_from(["", line]))


@settings(max_examples=60)
@given(documents())
def test_inserted_key_changes_nothing_else_and_is_idempotent(text: str) -> None:
    before = files.read_json_text(text)
    after = KEY.put(text)
    expected = {**before, "mcpServers": {**before.get("mcpServers", {}), "nacre": SERVER}}
    assert files.read_json_text(after) == expected
    assert KEY.put(after) == after
    assert [
        line for line in text.splitlines() if "note" in line and ":" not in line and "," not in line
    ] == [
        line
        for line in after.splitlines()
        if "note" in line and ":" not in line and "," not in line
    ] or "}" in text


@settings(max_examples=60)
@given(documents())
def test_removed_key_leaves_the_text_unchanged(text: str) -> None:
    if files.read_json_text(text).get("mcpServers") == {} or "mcpServers" in files.read_json_text(
        text
    ):
        return  # which empty objects were there is not in the text; the record of the wiring knows
    assert KEY.drop(KEY.put(text)) == text or files.read_json_text(text) == {}


@settings(max_examples=60)
@given(documents(), values)
def test_changing_a_value_and_back_restores_every_byte(text: str, value: Any) -> None:
    with_first = files.put(text, ("own",), {"a": 1})
    changed = files.put(with_first, ("own",), value)
    assert files.read_json_text(changed)["own"] == value
    assert files.put(changed, ("own",), {"a": 1}) == with_first


@given(st.text(max_size=40))
def test_arbitrary_file_is_parsed_or_refused(text: str) -> None:
    try:
        files.read_json_text(text)
        KEY.put(text)
    except UnparsableFileError:
        return


def test_comments_order_and_commas_are_preserved() -> None:
    after = KEY.put(SETTINGS)
    assert after == SETTINGS.replace(
        '"args": [] }, // keep\n',
        '"args": [] }, // keep\n        "nacre": {\n            "command": "/opt/nacre/bin/nacre",\n'
        '            "args": [\n                "mcp"\n            ]\n        },\n',
    )
    assert KEY.drop(after) == SETTINGS


def test_appended_member_leaves_comments_on_their_lines() -> None:
    text = '{\n  "a": 1 // one\n  // end\n}\n'
    after = files.put(text, ("b",), 2)
    assert after == '{\n  "a": 1, // one\n  "b": 2\n  // end\n}\n'
    assert files.drop(after, ("b",)) == text


def test_hook_is_inserted_once_and_existing_hooks_remain() -> None:
    others = {"matcher": "x", "hooks": [{"type": "command", "command": "mine"}]}
    old = {"hooks": [{"type": "command", "command": "/old/nacre-hook a b"}]}
    mixed = {
        "hooks": [
            {"type": "command", "command": "/older/nacre-hook a b"},
            {"type": "command", "command": "his"},
        ]
    }
    text = json.dumps({"hooks": {"SessionStart": [others, old, old, mixed]}}, indent=2)
    after = json.loads(HOOK.put(text))["hooks"]["SessionStart"]
    assert after == [others, {"hooks": [{"type": "command", "command": "his"}]}, HOOK.value]
    assert json.loads(HOOK.drop(HOOK.put(text)))["hooks"]["SessionStart"] == after[:2]


def test_list_item_is_inserted_once_and_removed() -> None:
    item = JsonItem(("permissions", "allow"), "mcp__nacre__memory_search")
    text = '{"permissions": {"allow": ["Bash(ls)"], "deny": []}}'
    after = item.put(item.put(text))
    assert json.loads(after)["permissions"]["allow"] == ["Bash(ls)", "mcp__nacre__memory_search"]
    assert item.drop(after) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        'model = "x"\n',
        '# mine\nmodel = "x" # why\n\n[mcp_servers.other]\ncommand = "y"\n',
        'model = "x"\r\n[a]\r\nb = """\r\n[mcp_servers.nacre]\r\n"""\r\n',
        '[mcp_servers]\n[mcp_servers.other]\ncommand = "y"\n',
        "[mcp_servers]\n",
    ],
)
def test_toml_table_is_inserted_and_removed_byte_for_byte(text: str) -> None:
    after = TABLE.put(text)
    assert tomllib.loads(after.replace("\r\n", "\n"))["mcp_servers"]["nacre"] == TABLE.value
    assert TABLE.put(after) == after
    assert TABLE.drop(after) == text


@pytest.mark.parametrize(
    "text", ['{"permissions": {"allow": []}}', '{"hooks": {"SessionStart": []}, "mcpServers": {}}']
)
def test_removal_without_an_insertion_changes_nothing(text: str) -> None:
    assert JsonItem(("permissions", "allow"), "mcp__nacre__memory_get").drop(text) == text
    assert HOOK.drop(text) == text
    assert KEY.drop(text) == text
    assert TABLE.drop("[mcp_servers]\n") == "[mcp_servers]\n"


def test_inline_table_is_changed_in_place() -> None:
    text = 'mcp_servers = { other = { command = "y" } } # mine\nmodel = "x"\n'
    after = TABLE.put(text)
    assert tomllib.loads(after)["mcp_servers"]["nacre"] == TABLE.value
    assert tomllib.loads(TABLE.drop(after)) == tomllib.loads(text)


def test_host_tables_between_the_marks_are_preserved() -> None:
    after = TABLE.put('model = "x"\n')
    rewritten = after.replace(
        "# nacre:end\n", '\n[projects."/code/hive"]\ntrust_level = "trusted"\n# nacre:end\n'
    )
    left = TABLE.drop(rewritten)
    assert tomllib.loads(left) == {
        "model": "x",
        "projects": {"/code/hive": {"trust_level": "trusted"}},
    }
    again = TABLE.put(rewritten)
    assert tomllib.loads(again)["projects"] == {"/code/hive": {"trust_level": "trusted"}}


def test_host_state_of_removed_hooks_is_removed() -> None:
    text = (
        'model = "x"\n\n[hooks.state."/u/.codex/hooks.json:session_start:0:0"]\ntrusted_hash = "sha256:ab"\n\n'
        '[hooks.state."/code/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:cd"\n'
    )
    left = TomlTables(("hooks", "state"), "/u/.codex/hooks.json:").drop(text)
    assert (
        left
        == 'model = "x"\n\n[hooks.state."/code/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:cd"\n'
    )


paragraphs = st.lists(
    st.sampled_from(["# Mine", "words", "", "- a list", "<!-- a note -->", "`code`"]), max_size=8
)


@given(paragraphs, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_block_is_inserted_into_text_and_removed_exactly(
    lines: list[str], line: str, has_end: bool
) -> None:
    text = "".join(item + line for item in lines) if has_end else line.join([*lines, "end"])
    block = Block("## Memory\n\nwords\n")
    after = block.put(text)
    assert block.put(after) == after
    assert after.startswith(text)
    assert block.drop(after) == text
    assert "\n" not in after.replace("\r\n", "") or line == "\n" or not lines


def test_duplicate_blocks_are_merged_and_partial_block_is_preserved() -> None:
    block = Block("new")
    once = block.put("# Mine\n")
    assert (
        block.put(once + "\n" + once.replace("# Mine\n", "").replace("new", "old")).rstrip()
        == once.rstrip()
    )
    torn = "# Mine\n<!-- nacre:start -->\nof the owner's, since no end is there\n"
    assert block.put(torn).startswith(torn)


def test_line_added_directly_after_a_block_is_preserved() -> None:
    block = Block("words")
    added = block.put("# Mine") + "- and this\n"
    assert block.put(added) == added
    assert block.drop(added).endswith("- and this\n")
    assert "nacre" not in block.drop(added)
