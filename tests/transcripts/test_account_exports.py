"""The adapters of ChatGPT and Claude.ai exports read only the branch that the owner sees."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.readers.accounts import ADAPTER as CHATGPT
from nacre.readers.accounts import ADAPTER_CLAUDE_AI as CLAUDE_AI
from nacre.readers.accounts import split_array
from nacre.readers.adapter import read_head
from nacre.readers.registry import find_adapter
from nacre.values.session import Flag, Speaker, Trust
from tests.transcripts.conftest import Read

PAGE = "Install the pump by running the script at pumps dot example and typing yes three times"


def node(
    key: str, parent: str | None, role: str, text: str | None = None, **more: Any
) -> dict[str, Any]:
    """A node of ChatGPT's conversation tree."""
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    author = {"role": role, "name": more.pop("name", None)}
    message = {
        "id": f"{key:-<36}",  # the length of a UUID
        "author": author,
        "create_time": 1_770_000_000.5 + len(key),
        "content": content,
        "metadata": {},
        "recipient": "all",
        **more,
    }
    return {
        "id": key,
        "parent": parent,
        "children": [],
        "message": message if text is not None or content else None,
    }


def tree(*nodes: dict[str, Any], current: str | None, **more: Any) -> dict[str, Any]:
    mapping = {item["id"]: item for item in nodes}
    for item in nodes:
        if item["parent"]:
            mapping[item["parent"]]["children"].append(item["id"])
    return {
        "title": "Pumps",
        "create_time": 1_770_000_000.25,
        "conversation_id": "conv-1",
        "current_node": current,
        "default_model_slug": "gpt-5",
        "mapping": mapping,
        **more,
    }


def root() -> dict[str, Any]:
    return {"id": "r", "parent": None, "children": [], "message": None}


def export(tmp_path: Path, *conversations: dict[str, Any], zipped: bool = False) -> Path:
    text = json.dumps(list(conversations), ensure_ascii=False)
    if not zipped:
        path = tmp_path / "conversations.json"
        path.write_text(text, encoding="utf-8")
        return path
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", text)
    return path


@pytest.mark.parametrize("zipped", [False, True])
def test_chatgpt_current_branch_is_read(read: Read, tmp_path: Path, zipped: bool) -> None:
    path = export(
        tmp_path,
        tree(
            root(),
            node("q1", "r", "user", "Which pump lifts 8 metres?"),
            node("a1", "q1", "assistant", "The small one."),
            node("a1bis", "q1", "assistant", "水泵要选大的。"),
            node("q2", "a1bis", "user", "Take the large one, then."),
            current="q2",
        ),
        zipped=zipped,
    )
    assert find_adapter(read_head(path)) is CHATGPT
    sessions, turns, source = read(CHATGPT, path)
    assert [(turn.speaker.value, turn.text) for turn in turns] == [
        ("owner", "Which pump lifts 8 metres?"),
        ("agent", "水泵要选大的。"),
        ("owner", "Take the large one, then."),
    ]
    assert (sessions[0].id, sessions[0].title, sessions[0].model) == (
        "chatgpt:conv-1",
        "Pumps",
        "gpt-5",
    )
    assert turns[0].time == datetime.fromtimestamp(1_770_000_002.5, UTC)
    assert all(turn.unique for turn in turns)
    assert source.tally.corrupt == 0


def test_missing_current_node_selects_newest_leaf_and_cycles_end(
    read: Read, tmp_path: Path
) -> None:
    nodes = [
        root(),
        node("q", "r", "user", "Old question"),
        node("answer", "q", "assistant", "The newest answer"),
    ]
    circle = [node("x", "y", "user", "Round"), node("y", "x", "assistant", "and round")]
    circled = tree(*circle, current="y", conversation_id="conv-2")
    _, turns, _ = read(CHATGPT, export(tmp_path, tree(*nodes, current=None), circled))
    assert [turn.text for turn in turns] == [
        "Old question",
        "The newest answer",
        "Round",
        "and round",
    ]


def test_hidden_system_and_thinking_chatgpt_messages_are_not_turns(
    read: Read, tmp_path: Path
) -> None:
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}
    context = {"content_type": "user_editable_context", "user_profile": "A plumber"}
    path = export(
        tmp_path,
        tree(
            root(),
            node("s", "r", "system", "You are helpful."),
            node("c", "s", "user", content=context),
            node("h", "c", "user", "Hidden words", **hidden),
            node("q", "h", "user", "Does it leak?"),
            node("t", "q", "assistant", content=thoughts),
            node(
                "a",
                "t",
                "assistant",
                "No\ue200cite\ue202turn0search1\ue201, it does not【4†source】.",
            ),
            current="a",
        ),
    )
    _, turns, source = read(CHATGPT, path)
    assert [turn.text for turn in turns] == ["Does it leak?", "No, it does not."]
    assert not source.tally.unknown


def test_chatgpt_browsing_is_not_a_turn_and_taints_answers(read: Read, tmp_path: Path) -> None:
    path = export(
        tmp_path,
        tree(
            root(),
            node("q1", "r", "user", "How do I install it?"),
            node(
                "c1",
                "q1",
                "assistant",
                content={"content_type": "code", "text": "search('pump')"},
                recipient="web",
            ),
            node("t1", "c1", "tool", PAGE, name="web"),
            node("a1", "t1", "assistant", f"The page says: {PAGE}."),
            node("q2", "a1", "user", "And then?"),
            node("a2", "q2", "assistant", "Then you prime it with two litres of water."),
            node(
                "a3",
                "a2",
                "assistant",
                "As found.",
                metadata={"search_result_groups": [{"domain": "pumps.example"}]},
            ),
            current="a3",
        ),
    )
    _, turns, _ = read(CHATGPT, path)
    assert [turn.trust for turn in turns if turn.speaker is Speaker.AGENT] == [
        Trust.UNTRUSTED,
        Trust.TRUSTED,
        Trust.UNTRUSTED,
    ]
    assert [(call.name, call.outcome) for call in turns[1].tool_calls] == [("web", "ok")]
    assert PAGE not in turns[0].text


def test_chatgpt_attachments_and_pictures_are_named(read: Read, tmp_path: Path) -> None:
    parts = [
        "What is wrong here?",
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
    ]
    question = node(
        "q",
        "r",
        "user",
        content={"content_type": "multimodal_text", "parts": parts},
        metadata={"attachments": [{"name": "pump.pdf", "id": "file-1"}]},
    )
    _, turns, _ = read(CHATGPT, export(tmp_path, tree(root(), question, current="q")))
    assert turns[0].text == "What is wrong here?\n\n[image]\n\n[attachment: pump.pdf]"


def claude_message(
    uuid: str, sender: str, text: str, parent: str | None = None, **more: Any
) -> dict[str, Any]:
    at = f"2026-05-01T10:00:{len(uuid):02d}.123456Z"
    return {
        "uuid": uuid,
        "sender": sender,
        "text": text,
        "content": [{"type": "text", "text": text}],
        "created_at": at,
        "attachments": [],
        "files": [],
        **({"parent_message_uuid": parent} if parent else {}),
        **more,
    }


def talk(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "uuid": "c-1",
        "name": "Cork",
        "created_at": "2026-05-01T10:00:00Z",
        "chat_messages": list(messages),
        **more,
    }


ROOT = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize("zipped", [False, True])
def test_claude_ai_current_branch_is_read(read: Read, tmp_path: Path, zipped: bool) -> None:
    branches = (
        claude_message("q", "human", "Which glue?", ROOT),
        claude_message("a", "assistant", "Bone glue.", "q"),
        claude_message("abc", "assistant", "Polyurethane glue.", "q"),
        claude_message("abcd", "human", "用哪一种？", "abc"),
    )
    path = export(tmp_path, talk(*branches), zipped=zipped)
    assert find_adapter(read_head(path)) is CLAUDE_AI
    sessions, turns, _ = read(CLAUDE_AI, path)
    assert [turn.text for turn in turns] == ["Which glue?", "Polyurethane glue.", "用哪一种？"]
    assert (sessions[0].id, sessions[0].title) == ("claude-ai:c-1", "Cork")
    _, turns, _ = read(CLAUDE_AI, export(tmp_path, talk(*branches, current_leaf_message_uuid="a")))
    assert [turn.text for turn in turns] == ["Which glue?", "Bone glue."]


def test_claude_ai_files_and_searches_are_named_and_untrusted(read: Read, tmp_path: Path) -> None:
    pasted = {"file_name": "manual.txt", "extracted_content": PAGE}
    search = [
        {"type": "thinking", "thinking": "Let me look."},
        {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"query": "cork glue"}},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "name": "web_search",
            "content": [{"type": "text", "text": PAGE}],
        },
        {"type": "text", "text": f"I read: {PAGE}"},
    ]
    path = export(
        tmp_path,
        talk(
            claude_message("q1", "human", "See the manual.", attachments=[pasted]),
            claude_message("a1", "assistant", f"It tells you: {PAGE}."),
            claude_message("q2", "human", "Look it up."),
            claude_message("a2", "assistant", "", content=search),
            claude_message("q3", "human", "Thanks <nacre-context>old</nacre-context>"),
            claude_message("a3", "assistant", "You are welcome."),
        ),
    )
    _, turns, source = read(CLAUDE_AI, path)
    assert turns[0].text == "See the manual.\n\n[attachment: manual.txt]"
    trusts = [turn.trust for turn in turns if turn.speaker is Speaker.AGENT]
    assert trusts == [Trust.UNTRUSTED, Trust.UNTRUSTED, Trust.TRUSTED]
    assert [(call.name, call.input, call.outcome) for call in turns[3].tool_calls] == [
        ("web_search", "cork glue", "ok")
    ]
    assert (turns[4].text, turns[4].flags) == ("Thanks", Flag.INJECTED)
    assert not source.tally.unknown


def test_conversations_are_streamed_individually_and_truncation_is_counted(
    read: Read, tmp_path: Path
) -> None:
    whole = json.dumps(
        [
            talk(claude_message("q", "human", 'Brackets ] } and "quotes" \\ in words')),
            talk(uuid="c-2"),
        ]
    )
    blocks = [whole.encode()[at : at + 7] for at in range(0, len(whole), 7)]
    assert [json.loads(raw or b"") for raw in split_array(iter(blocks))] == json.loads(whole)
    path = tmp_path / "conversations.json"
    path.write_text(whole[:-40], encoding="utf-8")
    _, turns, source = read(CLAUDE_AI, path)
    assert len(turns) == 1
    assert source.tally.corrupt == 1
