"""Prompts are sent in each provider's format and answers are converted to a single type."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from nacre.errors import ModelRefusedError, PromptTooLongError
from tests.fakes.provider import FakeProvider, Reply
from tests.llm.conftest import PROMPT, Open

PART = {"word": "hull"}
APIS = ["anthropic", "openai", "chat"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("answers", ["schema", "json", "text"])
def test_model_answers_with_any_supported_schema_method(
    open_fake_model: Open, api: str, answers: str
) -> None:
    able = f'[models.capabilities.m]\nwindow = 9000\nanswers = "{answers}"\n'
    with FakeProvider([PART]) as provider:
        completion = open_fake_model("fake:m", provider.config(api) + able).complete(PROMPT)
        [request] = provider.calls
    assert json.loads(completion.text) == PART
    assert completion.model == "m"
    assert not completion.is_cut
    body = json.dumps(request.body)
    assert ("additionalProperties" in body) or (answers == "json" and "schema" in body)
    assert ("Answer with one JSON object" in body) == (answers in ("json", "text"))


@pytest.mark.parametrize("api", APIS)
def test_cached_tokens_are_counted_separately(open_fake_model: Open, api: str) -> None:
    config = "[models.capabilities.m]\ncaches = true\n"
    with FakeProvider([PART], repeats=True) as provider:
        model = open_fake_model("fake:m", provider.config(api) + config)
        first = model.complete(PROMPT).tokens
        again = model.complete(replace(PROMPT, text="Which other part?")).tokens
    assert first.output == again.output > 0
    assert first.cached == 0
    assert again.cached > 0
    assert (first.written > 0) == (api == "anthropic")
    whole = first.input + first.cached + first.written
    assert abs(whole - (again.input + again.cached + again.written)) < 5


def test_shared_prompt_parts_come_first_and_are_cached(open_fake_model: Open) -> None:
    with FakeProvider([PART]) as provider:
        open_fake_model("fake:claude-opus-4-8", provider.config("anthropic")).complete(PROMPT)
        body = provider.calls[0].body
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    shared, text = body["messages"][0]["content"]
    assert shared["text"] == PROMPT.shared
    assert "cache_control" in shared
    assert "cache_control" not in text


def test_long_anthropic_answer_is_streamed_and_equal(open_fake_model: Open) -> None:
    with FakeProvider([PART], repeats=True) as provider:
        model = open_fake_model("fake:claude-opus-4-8", provider.config("anthropic"))
        short = model.complete(PROMPT)
        long = model.complete(replace(PROMPT, output_tokens=30_000))
        assert [bool(call.body.get("stream")) for call in provider.calls] == [False, True]
    assert long.text == short.text
    assert long.tokens.output == short.tokens.output


@pytest.mark.parametrize("api", APIS)
def test_answer_cut_by_token_limit_is_marked(open_fake_model: Open, api: str) -> None:
    with FakeProvider([Reply('{"word": "hu', is_cut=True)]) as provider:
        assert open_fake_model("fake:m", provider.config(api)).complete(PROMPT).is_cut


def test_output_tokens_are_limited_to_the_model_maximum(open_fake_model: Open) -> None:
    with FakeProvider([PART]) as provider:
        open_fake_model("fake:claude-3-haiku-20240307", provider.config("anthropic")).complete(
            replace(PROMPT, output_tokens=60_000)
        )
        assert provider.calls[0].body["max_tokens"] == 4_096


def test_server_without_schema_support_falls_back_and_is_remembered(open_fake_model: Open) -> None:
    def answer(request: Any) -> Any:
        if request.body.get("response_format", {}).get("type") == "json_schema":
            return Reply(status=400, message="response_format.type must be json_object")
        return PART

    able = '[models.capabilities.m]\nanswers = "schema"\n'
    with FakeProvider(answer) as provider:
        model = open_fake_model("fake:m", provider.config() + able)
        assert json.loads(model.complete(PROMPT).text) == PART
        model.complete(PROMPT)
        kinds = [call.body["response_format"]["type"] for call in provider.calls]
    assert kinds == ["json_schema", "json_object", "json_object"]


def test_claude_without_schema_gets_text_instructions(open_fake_model: Open) -> None:
    def answer(request: Any) -> Any:
        if "output_config" in request.body:
            return Reply(status=400, message="output_config: is not supported by this model")
        return PART

    with FakeProvider(answer) as provider:
        model = open_fake_model("fake:claude-haiku-4-5", provider.config("anthropic"))
        assert json.loads(model.complete(PROMPT).text) == PART
        model.complete(PROMPT)
        assert len(provider.calls) == 3
        assert "Answer with one JSON object" in json.dumps(provider.calls[-1].body)


def test_keys_come_from_the_variable_named_by_a_provider(open_fake_model: Open) -> None:
    with FakeProvider([PART]) as provider:
        own = f'[models.providers.fake]\nbase_url = "{provider.url}/v1"\nkey = "BOAT_KEY"\n'
        open_fake_model("fake:m", own, {"BOAT_KEY": "a-key-of-boats"}).complete(PROMPT)
        assert provider.calls[0].key == "a-key-of-boats"
    with pytest.raises(ModelRefusedError, match="needs a key") as error:
        open_fake_model("fake:m", own)
    assert "BOAT_KEY" in str(error.value.hint)


def test_builtin_provider_address_can_be_overridden(open_fake_model: Open) -> None:
    with FakeProvider([PART]) as provider:
        own = f'[models.providers.anthropic]\nbase_url = "{provider.url}"\n'
        model = open_fake_model("anthropic:claude-haiku-4-5", own, {"ANTHROPIC_API_KEY": "k"})
        assert json.loads(model.complete(PROMPT).text) == PART


@pytest.mark.parametrize("api", APIS)
def test_vendor_environment_headers_are_not_sent_elsewhere(
    open_fake_model: Open, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for maker in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{maker}_CUSTOM_HEADERS", "x-gateway-key: secret-of-the-gateway")
        monkeypatch.setenv(f"{maker}_API_KEY", "key-of-the-maker")
        monkeypatch.setenv(f"{maker}_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-maker")
    with FakeProvider([PART]) as provider:
        open_fake_model("fake:m", provider.config(api)).complete(PROMPT)
        header_text = " ".join(provider.calls[0].headers.values())
    assert "of-the" not in header_text


def test_proxy_is_not_used_for_local_servers(
    open_fake_model: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeProvider([PART]) as provider:
        assert open_fake_model("fake:m", provider.config()).complete(PROMPT).text


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ('base_url = "http://models.example/v1"', "unencrypted to models.example"),
        ('base_url = "models.example"', "not an address"),
        (
            'base_url = "https://models.example"\nkey = "sk-live-0123456789abcdef"',
            "must be the name of an environment variable",
        ),
        ('base_url = "https://models.example"\napi = "soap"', "cannot be 'soap'"),
        ('base_url = "https://models.example"\ncolour = "red"', "unknown key 'colour'"),
    ],
)
def test_misspelt_provider_is_named_without_its_key(
    open_fake_model: Open, own: str, message: str
) -> None:
    with pytest.raises(ModelRefusedError, match=message) as error:
        open_fake_model("own:m", f"[models.providers.own]\n{own}\n")
    assert "own" in error.value.message
    assert "0123456789" not in f"{error.value} {error.value.hint}"


def test_plain_http_to_another_machine_is_allowed_if_configured(open_fake_model: Open) -> None:
    own = '[models.providers.own]\nbase_url = "http://models.example/v1"\nplain_http = "yes"\n'
    assert open_fake_model("own:m", own).name == "own:m"


@pytest.mark.parametrize(
    ("name", "message"),
    [("nobody:m", "no model provider"), ("ollama", "not a model"), ("ollama:", "not a model")],
)
def test_invalid_model_name_error_lists_valid_providers(
    open_fake_model: Open, name: str, message: str
) -> None:
    with pytest.raises(ModelRefusedError, match=message):
        open_fake_model(name, "")


def test_missing_library_error_names_the_package(
    open_fake_model: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ModelRefusedError, match="not installed") as error:
        open_fake_model("anthropic:claude-haiku-4-5", "", {"ANTHROPIC_API_KEY": "k"})
    assert error.value.hint == "pip install 'nacre-memory[anthropic]'"


def test_prompt_exceeding_every_window_is_a_specific_error(open_fake_model: Open) -> None:
    with FakeProvider(
        [Reply(status=400, message="prompt is too long: 300000 tokens > 200000 maximum")]
    ) as provider:
        model = open_fake_model("fake:claude-opus-4-8", provider.config("anthropic"))
        with pytest.raises(PromptTooLongError, match="200,000"):
            model.complete(PROMPT)


@pytest.mark.parametrize("api", APIS)
def test_neither_key_nor_prompt_follows_a_redirect(open_fake_model: Open, api: str) -> None:
    with FakeProvider([PART]) as elsewhere:
        redirect = Reply(status=307, headers={"location": f"{elsewhere.url}/v1/messages"})
        with FakeProvider([redirect]) as provider, pytest.raises(ModelRefusedError, match="307"):
            open_fake_model("fake:m", provider.config(api)).complete(PROMPT)
        assert not elsewhere.requests
