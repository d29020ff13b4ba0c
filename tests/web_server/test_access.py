"""HTTP access is limited to programs with the token and the owner's browser."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.serve.browsers import Browsers
from nacre.serve.catalogue import offered_by
from nacre.values.memory import Face
from tests.cli.conftest import Nacre, environment
from tests.daemon.conftest import home
from tests.web_server.conftest import Site, free_port

Serve = Callable[..., Site]
_ASK = """
import sys
from nacre.base.link import DaemonRefusedError, ask
try:
    print(ask(sys.argv[1], "open", {}, seconds=20))
except DaemonRefusedError as refused:
    print(refused.error["code"])
"""


def test_program_needs_the_token(site: Serve) -> None:
    here = site()
    anonymous = here.ask("list")
    assert anonymous.status_code == 401
    assert anonymous.headers["content-type"] == "application/problem+json"
    assert anonymous.json()["code"] == "unauthorized"
    assert anonymous.json()["hint"]
    assert here.ask("list", Authorization="Bearer another").status_code == 401
    assert here.ask("list", **here.token).json()["total"] == 0
    assert here.get("/api/v1/me", **here.token).json()["owner"] is False


def test_browser_opened_by_nacre_open_acts_as_the_owner(site: Serve) -> None:
    here = site()
    browser = here.browser()
    me = here.get("/api/v1/me", **browser).json()
    assert me == {
        "owner": True,
        "version": me["version"],
        "home": str(home()),
        "embedding": "none",
        "plugins": ["code", "gateway"],
        "writer": "",
    }
    assert (
        here.ask("config-set", {"key": "recall.limit", "value": "7"}, **browser).json()["value"]
        == 7
    )
    response = here.ask("config-set", {"key": "recall.limit", "value": "8"}, **here.token)
    assert response.status_code == 403
    assert response.json()["code"] == "owner_only"
    assert "nacre open" in response.json()["hint"]


def test_program_memories_are_agents_and_browser_memories_owners(
    site: Serve, process: Nacre
) -> None:
    here = site()
    here.ask("store", {"content": "Billing uses PostgreSQL 16."}, **here.token)
    here.ask("store", {"content": "The ferry leaves at nine."}, **here.browser())
    authors = [
        operation["operation"]["by"] for operation in process("log", "--json").json["operations"]
    ]
    assert authors == ["http", "http, a program"]


def test_cookie_is_limited_to_the_home_and_hidden_from_scripts(site: Serve) -> None:
    here = site()
    answer = here.client.get(here.invited())
    name, *attributes = answer.headers["set-cookie"].split("; ")
    assert name.startswith(Browsers(home()).cookie)
    assert set(attributes) == {"HttpOnly", "Max-Age=7776000", "Path=/", "SameSite=strict"}
    path = home() / "browsers.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert name.partition("=")[2] not in path.read_text()


def test_login_code_works_once(site: Serve) -> None:
    here = site()
    address = here.invited()
    assert here.client.get(address).status_code == 303
    again = here.client.get(address)
    assert again.status_code == 403
    assert "set-cookie" not in again.headers
    assert "nacre open" in again.text


def test_login_code_is_valid_for_a_minute(tmp_path: Path) -> None:
    now = [0.0]
    browsers = Browsers(tmp_path, clock=lambda: now[0])
    early, late = browsers.make_code(), browsers.make_code()
    now[0] = 59.0
    assert browsers.redeem(early)
    now[0] = 61.0
    assert browsers.redeem(late) is None


def test_cookie_without_the_key_cannot_write(site: Serve) -> None:
    here = site()
    browser = here.browser()
    cookie = {"Cookie": browser["Cookie"]}
    assert here.get("/api/v1/me", **cookie).json()["owner"] is True
    for key in ({}, {"X-Nacre": "1"}, {"X-Nacre": here.browser()["X-Nacre"]}):
        response = here.ask("store", {"content": "Gulls are white."}, **cookie, **key)
        assert response.status_code == 403
        assert response.json()["code"] == "no_key"
    assert here.ask("list", **browser).json()["total"] == 0


@pytest.mark.parametrize("site_of", ["cross-site", "same-site"])
def test_page_of_another_port_cannot_use_the_cookie(site: Serve, site_of: str) -> None:
    here = site()
    browser = here.browser()
    assert here.get("/api/v1/me", **browser, Sec_Fetch_Site=site_of).status_code in (401, 403)
    assert here.get("/api/v1/me", **browser, Sec_Fetch_Site="same-origin").status_code == 200


@pytest.mark.parametrize("path", ["/", "/mcp", "/api/v1/me", "/open", "/assets/x.js"])
def test_foreign_hosts_and_origins_are_refused_everywhere(site: Serve, path: str) -> None:
    here = site()
    assert here.get(path, Host="evil.example", **here.token).status_code == 421
    answer = here.get(path, Origin="http://evil.example", **here.token)
    assert answer.status_code == 403
    assert answer.json()["code"] == "other_origin"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux identifies the calling process")
def test_agent_never_receives_the_login_address(site: Serve) -> None:
    here = site()
    response = here.process("open", "--print", "--json", environ={"CLAUDECODE": "1"}, code=None)
    assert response.error["code"] == "owner_only"
    line = f'exec -a claude bash -c \'"$0" -c "$1" "$2"; true\' "{sys.executable}" "$0" "{home()}"'
    result = subprocess.run(
        ["bash", "-c", line, _ASK],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout == "owner_only\n"
    # the parents may have ended, but the agent's variables remain
    orphan = [sys.executable, "-c", _ASK, str(home())]
    result = subprocess.run(
        orphan,
        env=environment({"CLAUDECODE": "1"}),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout == "owner_only\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux identifies the calling process")
def test_orphaned_agent_process_never_receives_the_login_address(
    site: Serve, tmp_path: Path
) -> None:
    site()
    output = tmp_path / "told"
    os.mkfifo(output)
    script = 'setsid "$0" -c "$1" "$2" > "$3" &'  # it starts when the pipe is read, after its parent has ended
    subprocess.run(
        ["bash", "-c", script, sys.executable, _ASK, str(home()), str(output)],
        env=environment(),
        check=True,
    )
    assert output.read_text(encoding="utf-8") == "owner_only\n"


def test_operations_on_local_files_require_the_owner(site: Serve, tmp_path: Path) -> None:
    here = site()
    target = tmp_path / "export.jsonl"
    response = here.ask("export", {"target": str(target)}, **here.token)
    assert response.status_code == 403
    assert not target.exists()
    assert (
        here.ask("ingest", {"paths": [str(tmp_path)]}, **here.token).json()["code"] == "owner_only"
    )
    assert here.ask("export", {"target": str(target)}, **here.browser()).status_code == 200
    assert target.exists()


def test_nacre_open_starts_a_daemon_and_its_cookie_persists(process: Nacre, stopped: None) -> None:
    process("config", "set", "web.port", str(free_port()))
    here = Site("", process)
    address = here.invited()
    here.base = address.partition("/open")[0]
    answer = here.client.get(address)
    assert answer.status_code == 303
    me = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    process("serve", "stop")
    process("serve", "--on-demand", "--no-watch")
    again = here.invited()
    assert again.startswith(here.base), "the daemon keeps the address that browsers know"
    assert here.get("/api/v1/me", **me).json()["owner"] is True
    here.client.close()


def test_forget_revokes_access_of_every_browser(site: Serve, process: Nacre) -> None:
    here = site()
    browser, other_browser = here.browser(), here.browser()
    assert (
        here.ask("list", **browser).status_code
        == here.ask("list", **other_browser).status_code
        == 200
    )
    assert process("open", "--forget", "--json").json == {"forgotten": True}
    assert (
        here.ask("list", **browser).status_code
        == here.ask("list", **other_browser).status_code
        == 401
    )
    assert process("open", "--forget", "--json").json == {"forgotten": False}


def test_token_file_is_accessible_only_to_the_owner(site: Serve) -> None:
    site()
    assert stat.S_IMODE(os.stat(home() / "http.token").st_mode) == 0o600


def test_operations_never_return_a_model_key(site: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {place: f"sk-proj-{place}{'x' * 30}" for place in ("environment", "config", "file")}
    monkeypatch.setenv("OPENAI_API_KEY", keys["environment"])
    home().mkdir(exist_ok=True)
    (home() / "config.toml").write_text(
        f'[models.providers.anthropic]\napi_key = "{keys["config"]}"\n', encoding="utf-8"
    )
    credentials = home() / "credentials.toml"
    credentials.write_text(f'[keys]\ngemini = "{keys["file"]}"\n', encoding="utf-8")
    credentials.chmod(0o600)
    served = site()
    reads = {
        name: served.ask(name, **served.token).text
        for name, operation in offered_by(Face.HTTP).items()
        if not (operation.writes or operation.takes_long)
    }
    assert '"masked":"sk-…xxxx"' in reads["auth"]
    assert [name for name, text in reads.items() if any(key in text for key in keys.values())] == []
