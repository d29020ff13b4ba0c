"""``nacre init`` writes settings of agents, and uninstalling restores the original files."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nacre.base.link import LOCK
from nacre.base.locks import FileLock, is_held
from nacre.cli.root import cli
from nacre.hosts import connect
from nacre.hosts.registry import ALL_HOSTS
from tests.cli.conftest import Nacre, Outcome, command, environment
from tests.processes import Processes

SETTINGS = '{\n\t"model": "opus",\n\t"permissions": {"allow": ["Bash(ls)"]}\n}\n'
MODIFIED = '{\r\n  // mine\r\n  "mcpServers": { "other": { "command": "x" } },\r\n}'
PRIOR = {
    ".claude.json": '{"numStartups": 3,"projects":{}}',
    ".claude/settings.json": SETTINGS,
    ".codex/config.toml": 'model = "gpt-5" # mine\n\n[mcp_servers.other]\ncommand = "x"\n',
    ".codex/AGENTS.md": "# Mine\r\n\r\nBe brief.",
    ".cursor/mcp.json": MODIFIED,
    ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "ring"}]}}',
    ".gemini/settings.json": "\ufeff" + SETTINGS,
    ".config/opencode/opencode.json": "{}\n",
    ".openclaw/openclaw.json": "{plugins: {load: {paths: ['/opt/other']}}, gateway: {port: 18000,},}\n",
    ".codeium/windsurf/memories/global_rules.md": "- short answers\n",
    ".config/Code/User/mcp.json": MODIFIED.replace("mcpServers", "servers"),
    "code/.mcp.json": MODIFIED,
    "code/AGENTS.md": "# House rules\n",
    "code/.clinerules": "Tests first.\n",
    "code/.vscode/mcp.json": "",
    "code/.claude/settings.local.json": '{"permissions": {"allow": []}, "hooks": {"Stop": []}}',
}
WIRINGS = [
    *((name, "user") for name, host in ALL_HOSTS.items() if host.by_user),
    *((name, "project") for name, host in ALL_HOSTS.items() if host.by_project),
]

Tree = dict[str, tuple[bytes, int]]


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the agents of this machine, but not nacre."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")


@pytest.fixture
def project(user_home: Path) -> Path:
    folder = user_home / "code"
    folder.mkdir()
    return folder


@pytest.fixture
def prior(user_home: Path, project: Path) -> Tree:
    """Files that the owner already has, some of them private."""
    for name, text in PRIOR.items():
        path = user_home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o640 if name.startswith("code/") else 0o600)
    return tree(user_home)


def tree(folder: Path) -> Tree:
    """Return all files below a folder with their modes, and the folders, but not nacre's home."""
    entries = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not name.startswith(".nacre"):
            entries[name] = (
                b"" if path.is_dir() else path.read_bytes(),
                stat.S_IMODE(path.stat().st_mode),
            )
    return entries


def options(host: str, scope: str) -> list[str]:
    return [
        "--host",
        host,
        *(["--project", str(Path(os.environ["HOME"]) / "code")] if scope == "project" else []),
    ]


@pytest.mark.parametrize(("host", "scope"), WIRINGS)
def test_host_setup_is_idempotent_and_removed_byte_for_byte(
    nacre: Nacre, user_home: Path, prior: Tree, host: str, scope: str
) -> None:
    answer = nacre("init", *options(host, scope), "--yes", "--json").json
    wired = tree(user_home)
    assert answer["done"]
    assert wired != prior
    assert nacre("init", *options(host, scope), "--yes", "--json").json["backups"] == []
    assert tree(user_home) == wired
    nacre("init", *options(host, scope), "--uninstall", "--yes")
    assert tree(user_home) == prior
    assert not (user_home / ".nacre" / "hosts").exists()


@pytest.mark.parametrize(("host", "scope"), WIRINGS)
def test_host_without_files_is_connected_and_removed_completely(
    nacre: Nacre, user_home: Path, project: Path, host: str, scope: str
) -> None:
    nacre("init", *options(host, scope), "--yes")
    written = tree(user_home)
    assert any("nacre" in content.decode() for content, _ in written.values()), written
    is_private = {mode for name, (_, mode) in written.items() if not name.startswith("code")} <= {
        0o600,
        0o700,
    }
    assert is_private, written
    nacre("init", "--uninstall", "--yes")
    assert list(tree(user_home)) == ["code"]


def test_hosts_in_the_current_repository_are_found(
    nacre: Nacre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (".git", ".cursor", ".claude", "src"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "src")
    hosts = nacre("init", "--dry-run", "--json").json["hosts"]
    assert [host["host"] for host in hosts] == ["claude-code", "cursor"]
    assert {"claude-code", "cursor"} <= set(nacre("status", "--json").json["not_wired"])
    (idle,) = nacre("admin", "doctor", "hosts", "--json").json["checks"]
    assert idle["name"] == "not wired"


def test_status_mentions_hooks_only_if_hooks_start_the_daemon(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    def daemon_status() -> str:
        return nacre("serve", "status", code=1).out

    nacre("init", "--host", "claude-code", "--yes")
    assert "hooks" not in daemon_status()
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "true")
    assert "as do hooks" in daemon_status()
    nacre("init", "--uninstall", "--yes")
    assert "hooks" not in daemon_status()


def test_foreign_entries_and_file_modes_are_preserved(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    nacre("init", "--host", "claude-code,codex,cursor", "--yes")
    settings = json.loads((user_home / ".claude/settings.json").read_text())
    assert settings["model"] == "opus"
    assert settings["permissions"]["allow"][0] == "Bash(ls)"
    config = tomllib.loads((user_home / ".codex/config.toml").read_text())
    assert config["mcp_servers"]["other"] == {"command": "x"}
    assert Path(config["mcp_servers"]["nacre"]["command"]).is_absolute()
    cursor = (user_home / ".cursor/mcp.json").read_bytes()
    assert cursor.startswith(
        b'{\r\n  // mine\r\n  "mcpServers": { "other": { "command": "x" }, "nacre": {'
    )
    assert stat.S_IMODE((user_home / ".cursor/mcp.json").stat().st_mode) == 0o600
    hooks = json.loads((user_home / ".cursor/hooks.json").read_text())["hooks"]
    assert hooks["stop"][0] == {"command": "ring"}
    assert "cursor sessionStart" in hooks["sessionStart"][0]["command"]


def test_changed_files_have_private_backups(nacre: Nacre, user_home: Path, prior: Tree) -> None:
    answer = nacre("init", "--host", "codex", "--yes", "--json").json
    copies = [Path(path) for path in answer["backups"]]
    assert {path.name.split(".nacre-")[0] for path in copies} == {"config.toml", "AGENTS.md"}
    for path in copies:
        name = path.relative_to(user_home).as_posix().split(".nacre-")[0]
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == prior[name]


def test_later_user_edits_survive_uninstall(nacre: Nacre, user_home: Path, prior: Tree) -> None:
    nacre("init", "--host", "claude-code,codex", "--yes")
    settings, config = user_home / ".claude/settings.json", user_home / ".codex/config.toml"
    settings.write_text(settings.read_text().replace('"opus"', '"sonnet"'))
    theirs = '\n[projects."/code"]\ntrust_level = "trusted"\n'
    config.write_text(config.read_text().replace("# nacre:end", f"{theirs}# nacre:end"))
    nacre("init", "--uninstall", "--yes")
    assert settings.read_text() == SETTINGS.replace("opus", "sonnet")
    assert tomllib.loads(config.read_text()) == {
        "model": "gpt-5",
        "mcp_servers": {"other": {"command": "x"}},
        "projects": {"/code": {"trust_level": "trusted"}},
    }


def test_moved_programs_and_duplicate_entries_are_repaired(
    nacre: Nacre, user_home: Path, prior: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    nacre("init", "--host", "cursor", "--yes")
    hooks, good = user_home / ".cursor/hooks.json", tree(user_home)
    answer: dict[str, Any] = json.loads(hooks.read_text())
    line = answer["hooks"]["stop"][-1]["command"]
    answer["hooks"]["stop"] += [{"command": "/old/bin/nacre-hook cursor stop"}, {"command": line}]
    del answer["hooks"]["sessionStart"]
    hooks.write_text(json.dumps(answer))
    assert (
        nacre("admin", "doctor", "hosts", "--json", code=1).json["checks"][0]["state"] == "failure"
    )
    nacre("init", "--host", "cursor", "--yes")
    mended = json.loads(hooks.read_text())["hooks"]
    assert [hook["command"] for hook in mended["stop"]] == ["ring", line]
    assert len(mended["sessionStart"]) == 1
    assert (
        json.loads(hooks.read_text())["hooks"].keys()
        == json.loads(good[".cursor/hooks.json"][0])["hooks"].keys()
    )


@pytest.mark.parametrize(
    ("host", "path"), [("claude-code", ".claude/settings.json"), ("codex", ".codex/hooks.json")]
)
def test_frequent_events_use_the_shell_hook(
    nacre: Nacre, user_home: Path, prior: Tree, host: str, path: str
) -> None:
    nacre("init", "--host", host, "--tool-hook", "--yes")
    groups = json.loads((user_home / path).read_text())["hooks"]
    lines = {event: groups[event][-1]["hooks"][0]["command"] for event in groups}
    programs = {
        event: Path(shlex.split(line)[0])
        for event, line in lines.items()
        if f" {host} {event}" in line
    }
    quick = {event for event, program in programs.items() if program.name == "nacre-hook.sh"}
    assert quick == {"UserPromptSubmit", "PreToolUse", "Stop"}
    assert all(os.access(programs[event], os.X_OK) for event in quick)
    assert programs.keys() - quick >= {"SessionStart"}


OWN_SERVERS = {
    ".codex/config.toml": '[mcp_servers.nacre]\ncommand = "/mine/nacre"\nargs = ["mcp"]\n',
    ".cursor/mcp.json": '{"mcpServers": {"nacre": {"command": "/mine/nacre", "args": ["mcp"]}}}',
    ".gemini/settings.json": '{"mcpServers": {"nacre": {"httpUrl": "http://127.0.0.1:8765/mcp"}}}',
    ".continue/mcpServers/nacre.yaml": "name: nacre\nmcpServers:\n  - name: nacre\n    command: /mine/nacre\n",
    ".claude.json": '{"mcpServers": {"nacre": {"command": "/mine/nacre", "args": ["mcp"], "env": {"A": "b"}}}}',
}


def test_mcp_server_written_by_the_owner_is_preserved(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    for name, text in OWN_SERVERS.items():
        (user_home / name).parent.mkdir(parents=True, exist_ok=True)
        (user_home / name).write_text(text)
    before, hosts = tree(user_home), "codex,cursor,gemini-cli,continue,claude-code"
    answer = nacre("init", "--host", hosts, "--yes", "--json").json
    assert {item["path"] for item in answer["kept"]} == {
        str(user_home / name) for name in OWN_SERVERS
    }
    for name in OWN_SERVERS.keys() - {".gemini/settings.json"}:
        assert (user_home / name).read_text() == OWN_SERVERS[name]
    assert "gemini-cli BeforeAgent" in (user_home / ".gemini/settings.json").read_text()
    assert "/mine/nacre" in nacre("init", "--host", "codex", "--yes").out
    nacre("init", "--uninstall", "--yes")
    assert tree(user_home) == before


def test_changing_setup_options_replaces_only_differing_entries(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    nacre("init", "--host", "codex", "--yes")
    config = user_home / ".codex/config.toml"
    trusted = (
        f'\n[hooks.state."{user_home}/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:ab"\n'
    )
    config.write_text(config.read_text() + trusted)
    record = user_home / ".nacre/hosts/wiring.json"
    record.write_text(record.read_text().replace('"slot": false', '"slot": true'))
    nacre("init", "--host", "codex", "--tool-hook", "--yes")
    assert config.read_text().endswith(trusted)
    ((group,),) = [json.loads((user_home / ".codex/hooks.json").read_text())["hooks"]["PreToolUse"]]
    assert group["matcher"] == "^(Bash|apply_patch)$"
    nacre("init", "--host", "codex", "--yes")
    assert "PreToolUse" not in (user_home / ".codex/hooks.json").read_text()


def test_uninstall_works_after_a_lost_record(nacre: Nacre, user_home: Path, prior: Tree) -> None:
    nacre("init", "--host", "claude-code,codex,gemini-cli", "--yes")
    (user_home / ".nacre/hosts/wiring.json").unlink()
    nacre("init", "--host", "claude-code,codex,gemini-cli", "--yes")
    nacre("init", "--host", "claude-code,codex,gemini-cli", "--uninstall", "--yes")
    after = tree(user_home)
    assert {name: after[name] for name in prior} == prior


def test_unparsable_file_is_left_alone_and_others_are_changed(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    damaged = user_home / ".cursor/mcp.json"
    damaged.write_text('{"mcpServers": {"a": }')
    answer = nacre("init", "--host", "cursor", "--yes", "--json", code=1).json
    assert [(item["path"], item["reason"]) for item in answer["left_alone"]] == [
        (str(damaged), "line 1, column 22: a value is missing")
    ]
    assert damaged.read_text() == '{"mcpServers": {"a": }'
    assert "nacre" in (user_home / ".cursor/hooks.json").read_text()


def test_second_init_waits_for_the_lock(
    nacre: Nacre,
    processes: Processes,
    user_home: Path,
    prior: Tree,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = command("init", "--host", "codex,cursor,gemini-cli", "--yes", "--json")
    both = [
        processes.start(wire, env=environment(), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [json.loads(item.communicate(timeout=120)[0]) for item in both]
    assert [item.returncode for item in both] == [0, 0]
    assert sorted(any(file["action"] != "none" for file in item["files"]) for item in answers) == [
        False,
        True,
    ]
    assert [item["left_alone"] for item in answers] == [[], []]
    wired = tree(user_home)
    monkeypatch.setattr(connect, "PATIENCE_SECONDS", 0.05)
    with FileLock(user_home / ".nacre" / "init.lock"):
        busy = nacre("init", "--uninstall", "--yes", code=5)
    assert "init.lock" in busy.err
    assert tree(user_home) == wired
    nacre("init", "--uninstall", "--yes")
    assert tree(user_home) == prior


def test_links_leaving_the_home_are_not_written_through(
    nacre: Nacre, project: Path, tmp_path: Path, user_home: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("theirs\n")
    (project / "AGENTS.md").symlink_to(outside)
    (project / ".codex").symlink_to(user_home)
    (project / ".mcp.json").symlink_to(tmp_path / "nowhere")
    hosts = ("--host", "codex", "--host", "generic")
    answer = nacre("init", *hosts, "--project", str(project), "--yes", "--json", code=1).json
    names = {Path(item["path"]).name for item in answer["left_alone"]}
    assert names == {"AGENTS.md", ".mcp.json", "config.toml", "hooks.json"}
    assert outside.read_text() == "theirs\n"
    assert not (user_home / "config.toml").exists()


@pytest.mark.parametrize("is_linked", [True, False])
def test_protected_or_broken_settings_are_left_alone(
    nacre: Nacre, user_home: Path, tmp_path: Path, is_linked: bool
) -> None:
    outside = tmp_path / "settings.json"
    outside.write_text('{"a":1}' if is_linked else '{"a":')
    settings = user_home / ".claude/settings.json"
    settings.parent.mkdir()
    settings.symlink_to(outside) if is_linked else outside.rename(settings)
    before = settings.read_text()
    answer = nacre("init", "--host", "claude-code", "--yes", "--json", code=1).json
    assert [item["path"] for item in answer["left_alone"]] == [str(settings)]
    assert "--host claude-code" in answer["left_alone"][0]["hint"]
    again = nacre("init", "--uninstall", "--yes", "--json", code=None).json
    assert len(again["left_alone"]) == (0 if is_linked else 1)
    assert settings.read_text() == before


def test_a_link_within_the_home_is_followed_and_stays(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    target = user_home / "dotfiles.json"
    (user_home / ".gemini/settings.json").rename(target)
    (user_home / ".gemini/settings.json").symlink_to(target)
    nacre("init", "--host", "gemini-cli", "--yes")
    assert (user_home / ".gemini/settings.json").is_symlink()
    assert b"mcpServers" in target.read_bytes()
    nacre("init", "--uninstall", "--yes")
    assert target.read_bytes() == prior[".gemini/settings.json"][0]


def test_backups_of_project_files_are_stored_outside_the_repository(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    project = user_home / "code"
    answer = nacre(
        "init", "--host", "codex,generic", "--project", str(project), "--yes", "--json"
    ).json
    copies = [Path(path) for path in answer["backups"]]
    assert {path.name.split(".nacre-")[0] for path in copies} == {"AGENTS.md", ".mcp.json"}
    assert not list(project.rglob("*.bak"))
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in copies} == {0o700}
    (project / "AGENTS.md").write_text((project / "AGENTS.md").read_text() + "- and this\n")
    result = nacre("init", "--uninstall", "--yes", "--json").json
    assert [Path(path).name for path in result["old_copies"]] == [
        path.name for path in copies if path.name.startswith("AGENTS")
    ]
    assert (project / "AGENTS.md").read_text() == "# House rules\n- and this\n"


def test_dry_run_shows_changes_and_writes_nothing(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    output = nacre("init", "--host", "codex", "--dry-run").out
    assert "would change ~/.codex/config.toml" in output
    assert "  +[mcp_servers.nacre]" in output
    assert tree(user_home) == prior
    assert not (user_home / ".nacre").exists()


def test_secrets_of_host_settings_are_not_shown(nacre: Nacre, user_home: Path) -> None:
    key = "sk-ant-api03-" + "k" * 80 + "AA"
    (user_home / ".claude.json").write_text(json.dumps({"numStartups": 3, "primaryApiKey": key}))
    outcome = nacre("init", "--host", "claude-code", "--dry-run")
    result = nacre("init", "--host", "claude-code", "--yes", "--json")
    assert key not in outcome.out + result.out
    assert "numStartups" in outcome.out
    assert key in (user_home / ".claude.json").read_text()


def test_entry_shared_by_hosts_remains_until_last_uninstall(nacre: Nacre, project: Path) -> None:
    for host in ("codex", "generic", "opencode"):
        nacre("init", "--host", host, "--project", str(project), "--yes")
    agents = project / "AGENTS.md"
    assert agents.read_text().count("nacre:start") == 1
    for host in ("codex", "opencode"):
        nacre("init", "--host", host, "--project", str(project), "--uninstall", "--yes")
        assert agents.read_text().count("nacre:start") == 1
    nacre("init", "--host", "generic", "--project", str(project), "--uninstall", "--yes")
    assert not agents.exists()


def test_non_default_home_is_pinned(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_HOME", str(user_home / "my memory"))
    nacre("init", "--host", "codex", "--yes")
    server = tomllib.loads((user_home / ".codex/config.toml").read_text())["mcp_servers"]["nacre"]
    assert server["args"][-2:] == ["--home", str(user_home / "my memory")]
    hooks = json.loads((user_home / ".codex/hooks.json").read_text())["hooks"]
    assert f"--home '{user_home}/my memory' codex Stop" in hooks["Stop"][0]["hooks"][0]["command"]


def test_claude_code_settings_keep_their_layout(nacre: Nacre, user_home: Path, prior: Tree) -> None:
    before = tree(user_home)
    nacre("init", "--host", "claude-code", "--tool-hook", "--yes")
    text = (user_home / ".claude/settings.json").read_text()
    assert text.startswith('{\n\t"model": "opus",\n\t"permissions": {"allow": ["Bash(ls)", "mcp__')
    settings = json.loads(text)
    assert settings["permissions"]["allow"] == [
        "Bash(ls)",
        "mcp__nacre__memory_search",
        "mcp__nacre__memory_get",
        "mcp__nacre__memory_store",
    ]
    (group,) = settings["hooks"]["PreToolUse"]
    assert group["matcher"].split("|") == ["Bash", "Edit", "MultiEdit", "NotebookEdit", "Write"]
    server = json.loads((user_home / ".claude.json").read_text())["mcpServers"]["nacre"]
    assert "alwaysLoad" not in server  # memory_search is always loaded because of its own marker
    skill = (user_home / ".claude/skills/nacre-memory/SKILL.md").read_text()
    assert skill.startswith("---\nname: nacre-memory\n")
    nacre("init", "--uninstall", "--yes")
    assert tree(user_home) == before


CODEX = """\
#!{python}
# Trusts hooks as Codex does: it sees those of a project only in a folder it trusts, and writes its settings anew.
import json, os, sys, tomllib
home = os.path.join(os.environ["HOME"], ".codex")
config = os.path.join(home, "config.toml")
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    held = tomllib.load(open(config, "rb"))
    state, answer = held.get("hooks", {{}}).get("state", {{}}), {{}}
    if asked["method"] == "hooks/list":
        hooks, (folder,) = [], asked["params"]["cwds"]
        for place in {{home, *([folder + "/.codex"] if folder in held.get("projects", {{}}) else [])}}:
            path = place + "/hooks.json"
            for event, groups in json.load(open(path))["hooks"].items() if os.path.exists(path) else ():
                key, command = path + ":" + event + ":0:0", groups[0]["hooks"][0]["command"]
                trusted = state.get(key, {{}}).get("trusted_hash") == command
                status = "trusted" if trusted else "untrusted"
                hooks.append({{"key": key, "command": command, "currentHash": command, "trustStatus": status}})
        answer = {{"data": [{{"cwd": folder, "hooks": hooks}}]}}
    if asked["method"] == "config/batchWrite":
        text = open(config).read()
        for key, value in asked["params"]["edits"][0]["value"].items():
            text += "\\n[hooks.state.%s]\\ntrusted_hash = %s\\n" % (json.dumps(key), json.dumps(value["trusted_hash"]))
        os.remove(config)
        os.close(os.open(config, os.O_CREAT, 0o600))
        open(config, "w").write(text)
    print(json.dumps({{"id": asked["id"], "result": answer}}), flush=True)
"""


def test_codex_hooks_are_trusted_and_removed_completely(
    nacre: Nacre, user_home: Path, prior: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, project, config = (
        user_home / "bin" / "codex",
        user_home / "code",
        user_home / ".codex/config.toml",
    )
    program.parent.mkdir()
    program.write_text(CODEX.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    config.chmod(0o644)
    before = tree(user_home)
    assert nacre("init", "--host", "codex", "--yes", "--trust-hooks", "--json").json["trusted"]
    assert config.read_text().count("trusted_hash") == 5
    assert stat.S_IMODE(config.stat().st_mode) == 0o644
    assert nacre("init", "--host", "codex", "--yes", "--json").json["notes"] == []
    in_project = ["init", "--host", "codex", "--project", str(project), "--yes", "--trust-hooks"]
    assert "does not trust the folder" in nacre(*in_project).err
    assert "run twice" in nacre(*in_project).out
    config.write_text(config.read_text() + f'\n[projects."{project}"]\ntrust_level = "trusted"\n')
    assert nacre(*in_project, "--json").json["trusted"]
    nacre("init", "--host", "codex", "--project", str(project), "--uninstall", "--yes")
    assert config.read_text().count("trusted_hash") == 5
    nacre("init", "--uninstall", "--yes")
    assert tomllib.loads(config.read_text()).keys() == {"model", "mcp_servers", "projects"}
    assert {
        name: item for name, item in tree(user_home).items() if ".codex/config" not in name
    } == {name: item for name, item in before.items() if ".codex/config" not in name}


def test_settings_are_written_if_claude_is_missing(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    nacre("init", "--host", "claude-code", "--yes")
    assert "SessionStart" in json.loads((user_home / ".claude/settings.json").read_text())["hooks"]


def test_non_interactive_init_requires_confirmation(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    for hosts_option in ([], ["--host", "codex"], ["--uninstall"]):
        error = nacre("init", *hosts_option, "--json", code=2).error
        assert "not interactive" in error["message"]
    assert tree(user_home) == prior


def test_openclaw_keeps_its_memory_unless_slot_is_given(
    nacre: Nacre, user_home: Path, prior: Tree
) -> None:
    nacre("init", "--host", "openclaw", "--yes")
    written = (user_home / ".openclaw/openclaw.json").read_text()
    assert "'/opt/other', \"" in written
    assert "slots" not in written
    manifest = user_home / ".nacre/hosts/openclaw/nacre/openclaw.plugin.json"
    assert "kind" not in json.loads(manifest.read_text())
    nacre("init", "--host", "openclaw", "--slot", "--yes")
    assert '"slots": {' in (user_home / ".openclaw/openclaw.json").read_text()
    assert json.loads(manifest.read_text())["kind"] == "memory"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "emacs"], "there is no host 'emacs'"),
        (["--host", "generic"], "generic can only be connected for a project"),
        (["--host", "codex", "--project", "/no/such/folder"], "there is no folder"),
        ([], "no agent was found"),
    ],
)
def test_impossible_arguments_are_refused_with_a_hint(
    nacre: Nacre, arguments: list[str], says: str
) -> None:
    error = nacre("init", *arguments, "--yes", "--json", code=2).error
    assert says in error["message"]
    assert error["hint"]


@pytest.mark.skipif("mcp" not in cli.list_commands(None), reason="there is no nacre mcp yet")
def test_doctor_checks_written_settings_and_reports_differences(
    process: Nacre, user_home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process("init", "--host", "cursor,continue,opencode", "--yes")
    process("init", "--host", "codex", "--project", str(project), "--yes")
    monkeypatch.delenv("NACRE_DAEMON_ENABLED")
    checks = {
        check["name"]: check
        for check in process("admin", "doctor", "hosts", "--json", code=None).json["checks"]
    }
    assert checks["cursor hooks"]["state"] != "failure", checks
    assert checks["cursor tools"]["state"] != "failure", checks
    assert checks["continue tools"]["state"] != "failure", checks
    assert checks["opencode plugin"]["state"] != "failure", checks
    lines = (user_home / ".nacre/logs/hooks.jsonl").read_text().splitlines()
    assert "daemon" in {json.loads(line)["how"] for line in lines}, "a daemon runs during the check"
    assert not is_held(user_home / ".nacre" / LOCK), "the daemon is stopped afterwards"
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    hooks = project / ".codex/hooks.json"
    hooks.write_text(
        hooks.read_text()
        .replace("nacre.serve.hook_process", "nacre.gone")
        .replace("nacre-hook", "nacre-gone")
    )
    broken = {
        check["name"]: check
        for check in process("admin", "doctor", "hosts", "--json", code=1).json["checks"]
    }
    code_check = broken["codex in code files"]
    assert f"{hooks} differs from nacre's settings" in code_check["detail"]
    assert code_check["hint"] == f"nacre init --host codex --project {project}"


def test_doctor_does_not_run_commands_of_a_project(
    process: Nacre, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    process("init", "--host", "generic", "--project", str(project), "--yes")
    trap = project / "nacre"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    trap.chmod(0o755)
    (project / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"nacre": {"command": str(trap), "args": ["mcp"]}}})
    )
    checks = process("admin", "doctor", "hosts", "--json", code=1).json["checks"]
    assert any("runs something else" in check["detail"] for check in checks)
    assert not (tmp_path / "ran").exists()


def test_setup_by_another_nacre_version_is_reported_as_outdated(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    nacre("init", "--host", "roo", "--yes")
    record, rule = user_home / ".nacre/hosts/wiring.json", user_home / ".roo/rules/nacre.md"
    wiring = json.loads(record.read_text())
    record.write_text(json.dumps({**wiring, "nacre": "0.0.9"}))
    rule.write_text("nacre, as it was put once\n")
    roo_check = {
        check["name"]: check
        for check in nacre("admin", "doctor", "hosts", "--json", code=None).json["checks"]
    }["roo files"]
    assert roo_check["state"] == "warning"
    assert roo_check["detail"].startswith("nacre 0.0.9 wrote it, but this is ")
    assert roo_check["hint"] == "nacre init --host roo"
    line = {check["name"]: check for check in nacre("admin", "doctor", "--json").json["checks"]}[
        "hosts"
    ]
    assert line["hint"] == "nacre init updates them"
    nacre("init", "--host", "roo", "--yes")
    assert json.loads(record.read_text())["nacre"] == wiring["nacre"]


def test_doctor_tests_the_server_written_by_the_owner(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    settings = user_home / ".codeium/windsurf/mcp_config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        '{"mcpServers": {"nacre": {"command": "/mine/nacre", "args": ["--token", "hush"]}}}'
    )
    nacre("init", "--host", "windsurf", "--yes")
    listed_checks = nacre("admin", "doctor", "hosts", "--json", code=1).json["checks"]
    checks = {item["name"]: item for item in listed_checks}
    assert checks["windsurf server"]["state"] == "warning"
    assert "hush" not in checks["windsurf server"]["detail"]
    assert "remove it" in checks["windsurf tools"]["hint"]
    assert "windsurf files" not in checks


def test_doctor_summarises_a_changed_setup_in_a_single_line(nacre: Nacre, user_home: Path) -> None:
    nacre("init", "--host", "gemini-cli", "--yes")
    checks = {check["name"]: check for check in nacre("admin", "doctor", "--json").json["checks"]}
    assert checks["hosts"]["state"] == "ok"
    (user_home / ".gemini/settings.json").write_text("{}")
    checks = {check["name"]: check for check in nacre("admin", "doctor", "--json").json["checks"]}
    assert (checks["hosts"]["state"], checks["hosts"]["hint"]) == (
        "warning",
        "nacre admin doctor hosts",
    )


def test_new_user_sees_all_changes_and_consents_once(
    dialog: Callable[..., Outcome], user_home: Path, prior: Tree
) -> None:
    outcome = dialog(
        "init",
        answers=[("Do this?", said) for said in ("99", "d", "y")],
        environ={"PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
    )
    assert outcome.code == 0, outcome.out
    outline, refused, whole = outcome.out.split("Do this?")[:3]
    listed = outline.partition("To do")[2].splitlines()
    changes = [line.split()[:2] for line in listed if ": " in line]
    assert ["change", "~/.cursor/mcp.json"] in changes
    assert [change for change in changes if ".codex" in change[1]] == [
        ["change", "~/.codex/config.toml"],
        ["write", "~/.codex/hooks.json"],
        ["change", "~/.codex/AGENTS.md"],
    ]
    assert "mcp_servers" not in outline
    assert "'99' is not a choice" in refused
    assert "+[mcp_servers.nacre]" in whole
    assert "lines more" not in whole
    assert whole.count("codex SessionStart") + whole.count("codex UserPromptSubmit") == 2
    assert "nacre" in (user_home / ".codex/config.toml").read_text()


def test_declined_init_changes_nothing_and_creates_no_home(
    dialog: Callable[..., Outcome], user_home: Path, prior: Tree
) -> None:
    outcome = dialog("init", answers=[("Do this?", "n")], environ={"PATH": "/usr/bin:/bin"})
    assert outcome.code == 1
    assert "Nothing was changed." in outcome.out
    assert tree(user_home) == prior
    assert not (user_home / ".nacre").exists()


HIVE = "7f3a1c2d-0000-4000-8000-000000000009"


@pytest.fixture
def hive(user_home: Path) -> Path:
    """A new transcript."""
    folder = user_home / ".claude" / "projects" / "-code-hive"
    folder.mkdir(parents=True)
    row = {
        "type": "user",
        "uuid": "a1",
        "sessionId": HIVE,
        "cwd": "/code/hive",
        "timestamp": "2026-11-20T10:00:00Z",
        "userType": "external",
        "isSidechain": False,
        "message": {
            "role": "user",
            "content": "Remember that the hive scale is read every ten minutes.",
        },
    }
    path = folder / f"{HIVE}.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


@pytest.mark.parametrize("reply", ["", "l"])
def test_consent_covers_existing_and_later_sessions(
    dialog: Callable[..., Outcome], nacre: Nacre, hive: Path, reply: str
) -> None:
    outcome = dialog(
        "init", answers=[("Do this?", reply)], environ={"PATH": "/usr/bin:/bin", "NO_COLOR": "1"}
    )
    assert outcome.code == 0, outcome.out
    assert "read   1 transcript of " in outcome.out
    assert "this is free" in outcome.out
    nacre("ingest", "--background")
    assert len(nacre("sessions", "list", "--json").json["lines"]) == (0 if reply else 1)
    nacre("ingest")
    assert len(nacre("sessions", "list", "--json").json["lines"]) == 1


def test_unattended_init_repairs_only_selected_hosts(nacre: Nacre, user_home: Path) -> None:
    (user_home / ".cursor").mkdir()
    (user_home / ".gemini").mkdir()
    nacre("init", "--host", "cursor", "--yes")
    (user_home / ".cursor" / "mcp.json").unlink()
    answer = nacre("init", "--yes", "--json").json
    assert {host["host"] for host in answer["hosts"]} == {"cursor"}
    assert (user_home / ".cursor" / "mcp.json").exists()
    assert not list((user_home / ".gemini").iterdir())


@pytest.mark.parametrize("args", ["5", '"mcp"', "{}"])
def test_foreign_server_with_odd_arguments_is_preserved(
    nacre: Nacre, user_home: Path, args: str
) -> None:
    path = user_home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(
        '{"mcpServers": {"nacre": {"command": "npx", "args": %s, "env": {"A": 1}}}}' % args  # noqa: UP031
    )
    before = path.read_bytes()
    answer = nacre("init", "--host", "cursor", "--yes", "--json", code=None).json
    assert [item["path"] for item in answer["kept"]] == [str(path)]
    assert path.read_bytes() == before
