"""Pages, errors and headers that the HTTP server sends, apart from access control."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.applications import Starlette

from nacre.base.ids import utc_now
from nacre.base.link import LOCK
from nacre.base.locks import is_held
from nacre.base.serving import LOOPBACK, Names
from nacre.home.home import open_home
from nacre.serve.browsers import Browsers
from nacre.serve.events import Bus, Live
from nacre.serve.program import make_app
from nacre.serve.web import Served
from nacre.settings import load_settings
from nacre.values.memory import Actor
from tests.cli.conftest import Nacre
from tests.daemon.conftest import PATIENCE_SECONDS, home
from tests.mcp.test_http import served
from tests.processes import wait
from tests.web_server.conftest import Site, free_port

Serve = Callable[..., Site]
NOTHING_ELSE = "default-src 'none'; script-src 'self'; style-src 'self'"


def problem(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["title"]
    assert body["detail"]


def test_errors_have_a_message_and_a_remedy(site: Serve) -> None:
    here = site()
    token = here.token
    problem(here.ask("recall", {}, **token), 400, "invalid_input")
    problem(here.ask("recall", {"text": "x", "limit": -1}, **token), 400, "invalid_input")
    problem(here.ask("look", {"reference": "01a202fed8b5"}, **token), 404, "not_found")
    problem(here.ask("nonsense", {}, **token), 404, "not_found")
    problem(here.ask("hook", {}, **token), 404, "not_found")
    problem(here.get("/api/v1/list", **token), 405, "method_not_allowed")
    problem(here.get("/api/nonsense", **token), 404, "not_found")
    assert here.client.post(f"{here.base}/api/v1/list", headers=token).json()["total"] == 0


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_input"),
        (b"\xff", "application/json", 400, "invalid_input"),
        (b"[]", "application/json", 400, "invalid_input"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        (b'{"project": "%s"}' % (b"x" * 4_000_000), "application/json", 413, "too_large"),
    ],
    ids=["half", "no text", "no object", "another kind", "too large"],
)
def test_body_must_be_json_of_limited_size(
    body: bytes, kind: str, status: int, code: str, site: Serve
) -> None:
    here = site()
    headers = {**here.token, "Content-Type": kind}
    problem(
        here.client.post(f"{here.base}/api/v1/list", content=body, headers=headers), status, code
    )


@pytest.mark.parametrize("path", ["/", "/memories/01a2", "/review"])
def test_every_page_is_the_dashboard_with_a_strict_csp(site: Serve, path: str) -> None:
    answer = site().get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"].startswith(NOTHING_ELSE)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<title>" in answer.text
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/assets/../program.py", "/assets/..%2fprogram.py", "/assets/%2e%2e/program.py"]
)
def test_only_dashboard_files_are_served(site: Serve, path: str) -> None:
    here = site()
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{here.base}/") as page:
        plain = page.read()
    answer = here.get(path)
    assert answer.status_code == 404 or answer.content == plain
    assert b"import" not in answer.content


def test_remote_access_requires_encryption_or_the_insecure_option(
    site: Serve, process: Nacre, tmp_path: Path
) -> None:
    error = process("serve", "--no-watch", "--http", "0.0.0.0:0", "--json", code=2).error
    assert "web.tls_cert" in error["hint"]
    assert "--insecure" in error["hint"]
    here = site("--http", "0.0.0.0:0", "--insecure")
    here.base = here.base.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - where it is called
    assert here.ask("list", **here.token).status_code == 200


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_certificate_enables_encrypted_serving(
    site: Serve, process: Nacre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    line = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {cert} -days 1 -subj /CN=localhost"
    subprocess.run(line.split(), check=True, capture_output=True)
    monkeypatch.setenv("NACRE_WEB_TLS_CERT", str(key))
    error = process("serve", "--no-watch", "--http", "0", "--json", code=2).error
    assert "cannot be used" in error["message"]
    monkeypatch.setenv("NACRE_WEB_TLS_CERT", str(cert))
    monkeypatch.setenv("NACRE_WEB_TLS_KEY", str(key))
    here = site("--http", "0")
    assert here.base.startswith("https://127.0.0.1:")
    assert here.ask("list", **here.token, Origin=here.base).status_code == 200
    assert (
        here.ask("list", **here.token, Origin=here.base.replace("https", "http")).status_code == 403
    )
    cookie = here.client.get(here.invited()).headers["set-cookie"]
    assert "Secure" in cookie
    with pytest.raises(httpx.HTTPError):
        httpx.get(here.base, verify=ssl.create_default_context(), trust_env=False)


def home_of(folder: Path, run: Any, logged: list[str]) -> Served:
    """A home whose operations all call ``run``. Lines of the daemon's log are appended to
    ``logged``."""
    live = Live(lambda: open_home(load_settings(folder)), Bus(utc_now))
    names = Names.of(LOOPBACK, ())
    return Served(
        folder, run, dict, Browsers(folder), live, logged.append, token="a-token", names=names
    )


def test_unexpected_error_is_logged_and_hidden_from_the_client(tmp_path: Path) -> None:
    def run(*_: Any) -> bytes:
        raise ZeroDivisionError("by nobody foreseen")

    logged: list[str] = []
    headers = {"Authorization": "Bearer a-token"}
    with served(make_app(home_of(tmp_path, run, logged), lambda: Starlette())) as port:
        answer = httpx.post(
            f"http://127.0.0.1:{port}/api/v1/list", headers=headers, trust_env=False, verify=False
        )
    problem(answer, 500, "internal")
    assert "by nobody foreseen" in logged[0]
    assert "nobody foreseen" not in answer.text


def test_operation_is_notified_when_its_client_disconnects(tmp_path: Path) -> None:
    disconnected = threading.Event()

    def run(operation: str, request: bytes, actor: Actor, has_left: Callable[[], bool]) -> bytes:
        wait(has_left)
        disconnected.set()
        return b"null"

    here = home_of(tmp_path, run, [])
    headers = {"Authorization": "Bearer a-token"}
    with served(make_app(here, lambda: Starlette())) as port, pytest.raises(httpx.TimeoutException):
        httpx.post(
            f"http://127.0.0.1:{port}/api/v1/list",
            headers=headers,
            timeout=0.5,
            trust_env=False,
            verify=False,
        )
    assert disconnected.wait(PATIENCE_SECONDS)


def test_http_requests_keep_an_on_demand_daemon_alive(process: Nacre, stopped: None) -> None:
    process("config", "set", "daemon.idle_minutes", "0.05")
    process("config", "set", "web.port", str(free_port()))
    here = Site("", process)
    here.base = here.invited().partition("/open")[0]
    began = time.monotonic()
    while time.monotonic() - began < 3 * 60 * 0.05:
        assert here.get("/").status_code == 200
        time.sleep(0.2)
    wait(lambda: not is_held(home() / LOCK))
    here.client.close()


def test_concurrent_requests_are_all_answered(site: Serve) -> None:
    here = site()
    token = here.token
    # recall records usage and the other operations count it
    operations = ["recall", "cost", "review", "recall", "overview"] * 30
    with ThreadPoolExecutor(16) as pool:
        requests = [{"text": "which database?"} if name == "recall" else {} for name in operations]
        answers = list(
            pool.map(lambda *arguments: here.ask(*arguments, **token), operations, requests)
        )
    assert [answer.text for answer in answers if answer.status_code != 200] == []
