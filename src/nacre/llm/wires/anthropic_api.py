"""Anthropic's messages, by its official library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from nacre.errors import ModelRefused
from nacre.llm import failures
from nacre.llm.cancellable import Calls
from nacre.llm.failures import CallTarget
from nacre.llm.wires.connection import body_of, call, http_client, keep_to_maker, less, load_library, timeout_of
from nacre.llm.wires.schemas import held, strict, system_of
from nacre.platform import json_values
from nacre.values.model_calls import Capabilities, Completion, Prompt, Tokens, most_written

STREAMED_TOKENS = 8_192
"""Longer answers are streamed: a connection on which nothing comes for minutes is cut by what lies in between."""

_LOGIN = {"anthropic-beta": "oauth-2025-04-20"}
_LESS = {"schema": "tool", "tool": "text"}
_CUT = ("max_tokens", "model_context_window_exceeded")
_KEPT = {"type": "ephemeral"}


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct):
    content: list[_Block]
    stop_reason: str | None
    usage: _Usage
    model: str = ""
    id: str = ""


class AnthropicModel:
    """A model by Anthropic's messages; implements LanguageModel.

    A schema is enforced as the model can: as the format of its output, or as a tool that it must call. A model that
    takes neither is told of it, from its first refusal on. Raises ModelRefused where the library is missing.
    """

    def __init__(self, asked: CallTarget, capabilities: Capabilities) -> None:
        self.name = asked.name
        self.capabilities = capabilities
        self._asked = asked
        self._calls = Calls()
        self._library: Any = load_library("anthropic", asked)
        credential = asked.credential
        secret = credential.secret if credential else "none"
        is_login = credential is not None and credential.kind == "bearer"
        self._client = self._library.Anthropic(
            **({"auth_token": secret, "default_headers": _LOGIN} if is_login else {"api_key": secret}),
            base_url=asked.provider.base_url, http_client=http_client(asked, self._library),
        )  # fmt: skip
        keep_to_maker(self._client, asked, _LOGIN if is_login else {})

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailable, ModelRefused."""
        while True:
            able = held(self.capabilities, prompt)
            try:
                return self._ask(prompt, able)
            except ModelRefused as error:
                self.capabilities = less(able, error, _LESS)

    def _ask(self, prompt: Prompt, able: Capabilities) -> Completion:
        seconds = prompt.timeout_seconds
        request = {**_request(prompt, able), "model": self._asked.model, "timeout": timeout_of(seconds)}
        is_streamed = prompt.hear or request["max_tokens"] > STREAMED_TOKENS

        def work() -> _Message:
            return self._stream(request, prompt.hear) if is_streamed else self._whole(request)

        message: _Message = call(self._calls, self._asked, self._library, seconds, work)
        return self._completion(message)

    def close(self) -> None:
        """Cut off what runs."""
        self._calls.close()
        self._client.close()

    def _whole(self, request: dict[str, Any]) -> _Message:
        raw = self._client.messages.with_raw_response.create(**request)
        return body_of(self._asked, raw.http_response, _Message)

    def _stream(self, request: dict[str, Any], hear: Callable[[str], None] | None) -> _Message:
        with self._client.messages.stream(**request) as stream:
            kind = stream.response.headers.get("content-type", "")
            if "event-stream" not in kind:
                raise failures.strange(self._asked, kind, stream.response.read())
            if hear:
                for piece in stream.text_stream:
                    hear(piece)
            whole = stream.get_final_message()
        return json_values.parse(whole.to_json(), _Message)

    def _completion(self, message: _Message) -> Completion:
        if message.stop_reason is None:
            raise failures.broken(self._asked)
        if message.stop_reason == "refusal":
            raise failures.declined(self._asked)
        called = [bytes(block.input).decode() for block in message.content if block.type == "tool_use"]
        said = "".join(block.text for block in message.content if block.type == "text")
        usage = message.usage
        tokens = Tokens(
            usage.input_tokens, usage.output_tokens,
            usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0,
        )  # fmt: skip
        is_cut = message.stop_reason in _CUT
        return Completion(called[0] if called else said, tokens, message.model, is_cut, more={"id": message.id})


def _request(prompt: Prompt, able: Capabilities) -> dict[str, Any]:
    mark = {"cache_control": _KEPT} if able.caches else {}
    system = system_of(prompt, able)
    content = [{"type": "text", "text": prompt.shared, **mark}] if prompt.shared else []
    request: dict[str, Any] = {
        "max_tokens": most_written(prompt, able),
        **({"system": [{"type": "text", "text": system, **mark}]} if system else {}),
        "messages": [{"role": "user", "content": [*content, {"type": "text", "text": prompt.text}]}],
    }
    if able.answers == "schema":
        request["output_config"] = {"format": {"type": "json_schema", "schema": strict(prompt.answer)}}
    elif able.answers == "tool":
        tool = {"name": prompt.name, "description": "Gives the answer.", "input_schema": dict(prompt.answer)}
        request |= {"tools": [tool], "tool_choice": {"type": "tool", "name": prompt.name}}
    return request
