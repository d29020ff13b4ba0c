"""Every provider failure is reported in one line that names the provider, the model and a remedy."""

from __future__ import annotations

import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import msgspec
import pytest

from nacre.errors import (
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    PromptTooLongError,
    UnexpectedServiceError,
    UnusableAnswerError,
)
from nacre.llm.api import body_of
from nacre.llm.credentials import Provider
from nacre.llm.failures import CallTarget, ask
from nacre.protocols import LanguageModel
from nacre.values.models import Completion, Prompt
from tests.fakes.provider import FakeProvider, Reply
from tests.llm.conftest import PROMPT, Open
from tests.llm.test_answers import Part

APIS = ["anthropic", "openai", "chat"]
QUICK = replace(PROMPT, timeout_seconds=20.0)
"""A prompt with a timeout that suits a test on a busy machine."""
KEY = "sk-boat-0123456789abcdefghij"


def without_retries(model: LanguageModel) -> LanguageModel:
    """Return the model with its library's retries turned off."""
    model._client.max_retries = 0  # type: ignore[attr-defined]
    return model


def failure(
    open_fake_model: Open, api: str, reply: Reply, prompt: Prompt = QUICK, model: str = "m"
) -> NacreError:
    with FakeProvider([reply], repeats=True) as provider:
        config = provider.config(api).replace("base_url", 'key = "BOAT_KEY"\nbase_url')
        fake_model = without_retries(open_fake_model(f"fake:{model}", config, {"BOAT_KEY": KEY}))
        with pytest.raises(NacreError) as raised:
            fake_model.complete(prompt)
    message = f"{raised.value.message} {raised.value.hint}"
    assert f"fake:{model}" in message or ("fake" in message and model in message)
    assert raised.value.hint
    assert KEY not in message
    assert "\n" not in message
    return raised.value


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("reply", "kind", "message", "remedy"),
    [
        (
            Reply(status=401, message=f"Incorrect API key: {KEY}"),
            ModelRefusedError,
            "does not accept",
            "BOAT_KEY",
        ),
        (Reply(status=403, message="revoked"), ModelRefusedError, "does not let", "allow"),
        (Reply(status=402, message="pay first"), ModelRefusedError, "no credit", "add credit"),
        (
            Reply(status=429, message="no", code="insufficient_quota"),
            ModelRefusedError,
            "no credit",
            "add credit",
        ),
        (
            Reply(status=400, message="Your credit balance is too low"),
            ModelRefusedError,
            "no credit",
            "add credit",
        ),
        (
            Reply(status=404, message="model: m"),
            ModelRefusedError,
            "has no model m",
            "check its name",
        ),
        (Reply(status=413, message="too large"), PromptTooLongError, "too long", "larger window"),
        (
            Reply(status=400, message="maximum context length is 9"),
            PromptTooLongError,
            "too long",
            "larger window",
        ),
        (
            Reply(
                status=400,
                message="max_tokens: 64000 > 32000, the maximum allowed number of output tokens",
            ),
            ModelRefusedError,
            "an answer of this length",
            "output = ",
        ),
        (
            Reply(status=418, message="a teapot"),
            ModelRefusedError,
            "refused .* 418: .*a teapot",
            "models.providers",
        ),
        (Reply(status=500, message="oh"), ModelUnavailableError, r"fails \(500\)", "later"),
        (Reply(status=529, message="busy"), ModelUnavailableError, "overloaded", "later"),
        (Reply(status=429, message="slow down"), ModelUnavailableError, "limits the rate", "later"),
        (Reply(fault="html"), ModelUnavailableError, "web page", "sign-in"),
        (Reply(fault="garbage"), ModelUnavailableError, "is not JSON", "base_url"),
        (Reply({"word": "hull"}, fault="truncated"), ModelUnavailableError, "was cut off", "later"),
        (Reply(fault="drop"), ModelUnavailableError, "127.0.0.1", "base_url"),
        (
            Reply(fault="hang"),
            ModelUnavailableError,
            "within 0.5 seconds",
            "models.timeout_seconds",
        ),
    ],
)
def test_provider_failure_is_named_with_its_remedy(
    open_fake_model: Open, api: str, reply: Reply, kind: type[NacreError], message: str, remedy: str
) -> None:
    prompt = replace(QUICK, timeout_seconds=0.5) if reply.fault == "hang" else QUICK
    error = failure(open_fake_model, api, reply, prompt)
    assert isinstance(error, kind)
    assert remedy in str(error.hint)
    with pytest.raises(kind, match=message):
        raise error


def test_answer_with_an_unexpected_shape_names_its_service() -> None:
    target = CallTarget(Provider("fake", "Fake", "chat", "http://127.0.0.1:1/v1"), "m")
    for body, kind, reason in [
        (
            b'{"error": {"code": 402, "message": "pay first"}}',
            ModelRefusedError,
            "no credit left for fake:m",
        ),
        (b'{"error": {"message": "upstream is away"}}', ModelUnavailableError, "upstream is away"),
        (b'{"status": "ok"}', UnexpectedServiceError, "is not in Fake's format"),
        (b'{"choices": [{"mess', ModelUnavailableError, "was cut off"),
    ]:
        with pytest.raises(kind, match=reason):
            body_of(target, SimpleNamespace(content=body, headers={}), Shape)


class Shape(msgspec.Struct):
    choices: list[int]


@pytest.mark.parametrize("fault", ["half-stream", "html", "garbage", "hang", "drop"])
def test_failed_stream_is_not_an_answer(open_fake_model: Open, fault: str) -> None:
    prompt = replace(PROMPT, output_tokens=30_000, timeout_seconds=0.3 if fault == "hang" else 1.0)
    error = failure(
        open_fake_model,
        "anthropic",
        Reply({"word": "hull"}, fault=fault),
        prompt,
        "claude-opus-4-8",
    )
    assert isinstance(error, ModelUnavailableError)


@pytest.mark.parametrize("api", APIS)
def test_slowly_dripping_response_times_out(open_fake_model: Open, api: str) -> None:
    began = time.monotonic()
    error = failure(open_fake_model, api, Reply(fault="drip"), replace(QUICK, timeout_seconds=0.5))
    assert isinstance(error, ModelUnavailableError)
    assert "did not answer within" in error.message
    assert time.monotonic() - began < 15


def test_model_ignoring_the_schema_is_retried_once_then_rejected(
    open_fake_model: Open,
) -> None:
    with FakeProvider(["I would rather not say."], repeats=True) as provider:
        with pytest.raises(UnusableAnswerError):
            ask(open_fake_model("fake:m", provider.config()), PROMPT, Part)
        assert len(provider.calls) == 2


def test_server_without_tls_is_recognised(open_fake_model: Open) -> None:
    with FakeProvider([]) as provider:
        encrypted = provider.config().replace("http://", "https://")
        with pytest.raises(ModelUnavailableError, match=r"does not support TLS.*fake:m") as raised:
            without_retries(open_fake_model("fake:m", encrypted)).complete(QUICK)
    assert not raised.value.retry


def test_untrusted_certificate_is_not_retried(open_fake_model: Open, tmp_path: Path) -> None:
    with _self_signed_server(tmp_path) as port:
        own = f'[models.providers.fake]\nbase_url = "https://127.0.0.1:{port}/v1"\n'
        with pytest.raises(ModelUnavailableError, match="certificate") as raised:
            without_retries(open_fake_model("fake:m", own)).complete(QUICK)
    assert not raised.value.retry
    assert "SSL_CERT_FILE" in str(raised.value.hint)


@contextmanager
def _self_signed_server(folder: Path) -> Iterator[int]:
    """Return the port of a server with a self-signed certificate."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "127.0.0.1")])
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    )
    builder = (
        builder.serial_number(7)
        .not_valid_before(datetime(2020, 1, 1))  # noqa: DTZ001
        .not_valid_after(datetime(2090, 1, 1))  # noqa: DTZ001
    )
    plain = serialization.NoEncryption()
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    pem += key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "server.pem").write_bytes(pem)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:
        greeting = Thread(target=_greet, args=(server, tls))
        greeting.start()
        yield server.getsockname()[1]
        greeting.join()


def _greet(server: socket.socket, tls: ssl.SSLContext) -> None:
    connection, _ = server.accept()
    with connection, suppress(OSError):
        tls.wrap_socket(connection, server_side=True).close()


def test_unreachable_server_is_reported_quickly(open_fake_model: Open) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        own = f'[models.providers.ollama]\nbase_url = "http://127.0.0.1:{port}/v1"\n'
        began = time.monotonic()
        with pytest.raises(
            ModelUnavailableError, match=f"nothing answers at 127.0.0.1:{port}"
        ) as raised:
            open_fake_model("ollama:qwen3", own).complete(PROMPT)
    assert "start Ollama" in str(raised.value.hint)
    assert time.monotonic() - began < 5


def test_password_in_an_address_is_not_shown(open_fake_model: Open) -> None:
    own = '[models.providers.own]\nbase_url = "http://me:a-word-of-mine@127.0.0.1:9/v1"\n'
    with pytest.raises(ModelUnavailableError, match=r"at 127\.0\.0\.1:9 ") as raised:
        open_fake_model("own:m", own).complete(PROMPT)
    assert "of-mine" not in f"{raised.value} {raised.value.hint}"


@pytest.mark.parametrize("api", APIS)
def test_hanging_call_is_cancelled_immediately(open_fake_model: Open, api: str) -> None:
    with FakeProvider([Reply(fault="hang")]) as provider:
        model = open_fake_model("fake:m", provider.config(api))
        ended: list[object] = []
        waiting = Thread(target=lambda: ended.append(_outcome(model)))
        waiting.start()
        while not provider.calls:
            time.sleep(0.01)
        model.close()
        waiting.join(2)
        assert not waiting.is_alive()
    assert isinstance(ended[0], ModelUnavailableError)
    assert "cut off" in ended[0].message


def _outcome(model: LanguageModel) -> Completion | NacreError:
    try:
        return model.complete(PROMPT)
    except NacreError as error:
        return error


@pytest.fixture(autouse=True)
def _no_thread_is_awaited() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("chat", {"choices": [{"message": {"content": [{"type": "text", "text": "red"}]}}]}),
        ("openai", {"choices": [{"message": {"content": {"text": "red"}}}]}),
    ],
)
def test_non_text_answer_is_refused(
    open_fake_model: Open, api: str, body: dict[str, object]
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps({"id": "a", "model": "m", **body}).encode())

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with FakeProvider([]) as provider:
            config = provider.config(api)
        address = f"http://127.0.0.1:{server.server_port}"
        config = re.sub(r"http://127\.0\.0\.1:\d+", address, config)
        with pytest.raises(UnexpectedServiceError, match="format"):
            without_retries(open_fake_model("fake:m", config)).complete(QUICK)
    finally:
        server.shutdown()
        server.server_close()
