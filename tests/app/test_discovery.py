"""Transcripts are found in each tool's default folders and in project folders."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from nacre.learn.ingest import IngestOptions, ingest
from nacre.readers.adapter import Places
from nacre.readers.registry import adapters
from tests.app.conftest import World
from tests.app.shapes import SHAPES, Agent, Owner, adapter_of, write

TALK = (Owner("When do the boats leave?"), Agent("At nine."), Owner("Then we row at eight."))
MAC = "Library/Application Support"
TASK = "globalStorage/saoudrizwan.claude-dev/tasks/1795000000000"
CHAT = "workspaceStorage/0a1b/chatSessions"

PLACES = [
    ("linux", {}, ".copilot/session-state/0c/events.jsonl", "copilot-cli"),
    ("linux", {"COPILOT_HOME": "/H/co"}, "co/session-state/0c/events.jsonl", "copilot-cli"),
    (
        "linux",
        {"XDG_CONFIG_HOME": "/H/xdg"},
        "xdg/.copilot/session-state/0c/events.jsonl",
        "copilot-cli",
    ),
    ("linux", {}, ".gemini/tmp/acme/chats/session-2026-11-18T09-00-6e111111.json", "gemini-cli"),
    ("linux", {}, ".gemini/tmp/acme/chats/6e111111/abcdef.jsonl", "gemini-cli/log"),
    (
        "linux",
        {"GEMINI_CLI_HOME": "/H/g"},
        "g/.gemini/tmp/acme/chats/session-1.jsonl",
        "gemini-cli/log",
    ),
    ("linux", {}, ".continue/sessions/c0.json", "continue"),
    ("linux", {"CONTINUE_GLOBAL_DIR": "/H/con"}, "con/sessions/c0.json", "continue"),
    ("linux", {}, f".config/Code/User/{CHAT}/c0.json", "copilot-chat"),
    ("linux", {"XDG_CONFIG_HOME": "/H/xdg"}, f"xdg/VSCodium/User/{CHAT}/c0.json", "copilot-chat"),
    (
        "linux",
        {},
        ".config/Code/User/globalStorage/emptyWindowChatSessions/c0.json",
        "copilot-chat",
    ),
    (
        "linux",
        {},
        ".vscode-server/data/User/globalStorage/emptyWindowChatSessions/c0.json",
        "copilot-chat",
    ),
    ("linux", {"VSCODE_PORTABLE": "/H/p"}, f"p/user-data/User/{CHAT}/c0.json", "copilot-chat"),
    ("darwin", {}, f"{MAC}/Code/User/{CHAT}/c0.json", "copilot-chat"),
    ("darwin", {}, f"{MAC}/Cursor/User/{TASK}/ui_messages.json", "cline"),
    (
        "win32",
        {"APPDATA": "/H/AppData/Roaming"},
        f"AppData/Roaming/Code/User/{TASK}/ui_messages.json",
        "cline",
    ),
    (
        "win32",
        {},
        f"AppData/Roaming/Code - Insiders/User/{TASK}/api_conversation_history.json",
        "cline/history",
    ),
    ("linux", {}, ".cline/data/tasks/1795000000000/ui_messages.json", "cline"),
    ("linux", {}, ".cursor/projects/code-acme/agent-transcripts/c0/c0.jsonl", "cursor-transcripts"),
    (
        "linux",
        {},
        ".cursor/projects/code-acme/agent-transcripts/c0/subagents/c1.jsonl",
        "cursor-transcripts",
    ),
    ("linux", {}, ".aider.chat.history.md", "aider"),
    ("linux", {"AIDER_CHAT_HISTORY_FILE": "/H/notes/talk.md"}, "notes/talk.md", "aider"),
    ("linux", {}, ".local/share/amp/threads/T-0a0a.json", "amp"),
    (
        "linux",
        {},
        ".gemini/antigravity-ide/brain/0a/.system_generated/logs/transcript.jsonl",
        "antigravity",
    ),
    ("darwin", {}, ".local/share/goose/sessions/20261118_1.jsonl", "goose-files"),
    ("linux", {"GOOSE_PATH_ROOT": "/H/g"}, "g/data/sessions/20261118_1.jsonl", "goose-files"),
    ("win32", {}, "AppData/Roaming/Block/goose/data/sessions/20261118_1.jsonl", "goose-files"),
    (
        "darwin",
        {},
        f"{MAC}/Kiro/User/globalStorage/kiro.kiroagent/workspace-sessions/L2E_/c0.json",
        "kiro",
    ),
]


@pytest.mark.parametrize(("platform", "environ", "path", "shape"), PLACES)
def test_transcript_is_found_in_each_tools_default_folder(
    platform: str, environ: dict[str, str], path: str, shape: str, world: World
) -> None:
    variables = {name: value.replace("/H", str(world.user_home)) for name, value in environ.items()}
    render = SHAPES[shape][1](TALK)
    text = (
        render
        if isinstance(render, str)
        else "".join(json.dumps(record) + "\n" for record in render)
    )
    file = world.user_home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    world.environ.update(variables)
    context = world.context()
    object.__setattr__(context.settings, "platform", platform)
    report = ingest(context, IngestOptions(vectors=False))
    assert (report.files, report.sessions, report.turns, report.problems) == (1, 1, len(TALK), ())
    context.database.close()


@pytest.mark.parametrize("is_known_first", [True, False])
@pytest.mark.parametrize("inner", ["", "/docs"])
def test_hashed_folder_is_found_among_other_sessions_folders(
    inner: str, is_known_first: bool, world: World
) -> None:
    folder = hashlib.sha256(b"/code/acme").hexdigest()
    write(world.user_home / ".gemini/tmp" / folder, "gemini-cli", TALK)
    context = world.context()
    if not is_known_first:
        ingest(context, IngestOptions(vectors=False))
    session = write(world.user_home / ".copilot", "copilot-cli", TALK)
    text = session.read_text(encoding="utf-8").replace("/code/acme", f"/code/acme{inner}")
    session.write_text(text, encoding="utf-8")
    ingest(context, IngestOptions(vectors=False))
    folders = {
        line.session.tool: (line.session.cwd, line.project) for line in context.sessions.newest()
    }
    assert folders["gemini-cli"] == ("/code/acme", "acme")
    context.database.close()


def test_roo_code_is_distinguished_from_cline_by_its_folder(world: World) -> None:
    write(
        world.user_home / ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline",
        "cline",
        TALK,
    )
    context = world.context()
    assert ingest(context, IngestOptions(vectors=False)).tools == {"roo-code": 1}
    context.database.close()


def test_aider_is_read_in_project_folders_of_other_tools(world: World, tmp_path: Path) -> None:
    repository = tmp_path / "boats"
    (repository / ".git").mkdir(parents=True)
    write(repository, "aider", TALK)
    session = write(world.user_home / ".copilot", "copilot-cli", TALK)
    (repository / "docs").mkdir()
    text = session.read_text(encoding="utf-8").replace("/code/acme", str(repository / "docs"))
    session.write_text(text, encoding="utf-8")
    context = world.context()
    assert ingest(context, IngestOptions(vectors=False)).tools == {"copilot-cli": 1, "aider": 1}
    assert ingest(context, IngestOptions(vectors=False)).skipped == 2
    projects = {line.session.tool: line.project for line in context.sessions.newest()}
    assert projects == {"copilot-cli": "boats", "aider": "boats"}
    context.database.close()


def test_configured_folder_is_read_for_every_tool(world: World, tmp_path: Path) -> None:
    for shape in SHAPES:
        write(tmp_path / "kept" / shape, shape, TALK)
    world.environ["NACRE_INGEST_ROOTS"] = json.dumps([str(tmp_path / "kept")])
    context = world.context()
    report = ingest(context, IngestOptions(vectors=False))
    assert (report.problems, report.unrecognised, report.corrupt, report.unknown) == ((), 0, 0, {})
    assert set(report.tools) == {adapters()[adapter_of(shape)].tool for shape in SHAPES}
    context.database.close()


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_every_adapter_has_default_folders_without_environment_variables(
    platform: str, tmp_path: Path
) -> None:
    for adapter in adapters().values():
        for root in adapter.roots(Places(tmp_path, {}, platform)):
            assert root.folder.is_relative_to(tmp_path)
            assert root.patterns
