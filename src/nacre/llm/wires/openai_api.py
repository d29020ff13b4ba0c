"""OpenAI's responses, and the chat completions of all servers that are compatible with it, by OpenAI's library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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

_LESS = {"schema": "json", "tool": "json", "json": "text"}
_ENDS = ("response.completed", "response.incomplete", "response.failed")

Hear = Callable[[str], None]


class _Details(msgspec.Struct):
    cached_tokens: int | None = 0


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    input_tokens_details: _Details | None = None
    prompt_tokens_details: _Details | None = None


class _Function(msgspec.Struct):
    arguments: str = ""


class _Call(msgspec.Struct):
    function: _Function


class _Said(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: str | None = None


class _Counted(msgspec.Struct, kw_only=True):
    usage: _Usage | None = None
    model: str = ""
    id: str = ""


class _Chat(_Counted, kw_only=True):
    choices: list[_Choice]


class _ChoicePiece(msgspec.Struct):
    delta: _Said
    finish_reason: str | None = None


class _ChatPiece(_Counted, kw_only=True):
    """One event of a chat that is streamed; the last one has the tokens, and no choices."""

    choices: list[_ChoicePiece]


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Item(msgspec.Struct):
    type: str
    content: list[_Part] | None = None
    arguments: str = ""


class _Response(msgspec.Struct):
    output: list[_Item]
    status: str | None = None
    incomplete_details: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    usage: _Usage | None = None
    model: str = ""
    id: str = ""


class _ResponsePiece(msgspec.Struct):
    """One event of a response that is streamed."""

    type: str
    delta: Any = None
    response: Any = None


class OpenAIModel:
    """A model by OpenAI's responses (``openai``) or by chat completions (``chat``); implements LanguageModel.

    A schema is enforced as the model can. A server that says it cannot is asked again with less, and from then on so:
    JSON of any kind, then in words alone. Raises ModelRefused where the library is missing.
    """

    def __init__(self, asked: CallTarget, capabilities: Capabilities) -> None:
        self.name = asked.name
        self.capabilities = capabilities
        self._asked = asked
        self._calls = Calls()
        self._library: Any = load_library("openai", asked)
        self._client = self._library.OpenAI(
            api_key=asked.credential.secret if asked.credential else "none",
            base_url=asked.provider.base_url, http_client=http_client(asked, self._library),
        )  # fmt: skip
        keep_to_maker(self._client, asked, {})

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailable, ModelRefused."""
        while True:
            able = held(self.capabilities, prompt)
            try:
                return self._ask(prompt, able)
            except ModelRefused as error:
                self.capabilities = less(able, error, _LESS)

    def close(self) -> None:
        """Cut off what runs."""
        self._calls.close()
        self._client.close()

    def _ask(self, prompt: Prompt, able: Capabilities) -> Completion:
        seconds = prompt.timeout_seconds
        by_responses = self._asked.provider.api == "openai"
        request = _as_response(prompt, able) if by_responses else _as_chat(prompt, able)
        request |= {"model": self._asked.model, "timeout": timeout_of(seconds)}
        work = self._respond if by_responses else self._chat
        completion: Completion = call(
            self._calls, self._asked, self._library, seconds, lambda: work(request, prompt.hear)
        )
        return completion

    def _chat(self, request: dict[str, Any], hear: Hear | None) -> Completion:
        if hear:
            chat = self._streamed_chat(request, hear)
        else:
            raw = self._client.chat.completions.with_raw_response.create(**request)
            chat = body_of(self._asked, raw.http_response, _Chat)
        if not chat.choices:
            raise failures.broken(self._asked)
        choice = chat.choices[0]
        if choice.message.refusal or choice.finish_reason == "content_filter":
            raise failures.declined(self._asked)
        calls = choice.message.tool_calls
        text = calls[0].function.arguments if calls else choice.message.content or ""
        return _completion(text, chat, is_cut=choice.finish_reason == "length")

    def _streamed_chat(self, request: dict[str, Any], hear: Hear) -> _Chat:
        """A chat of which each piece is heard. Without its last piece it is broken."""
        whole, last, said = _Chat(choices=[]), _Choice(_Said()), list[str]()
        for piece in self._pieces(self._client.chat.completions, request, stream_options={"include_usage": True}):
            part = json_values.parse(piece, _ChatPiece)
            whole = _Chat(choices=[last], usage=part.usage or whole.usage, model=part.model, id=part.id)
            for choice in part.choices:
                last.finish_reason = choice.finish_reason or last.finish_reason
                last.message.refusal = choice.delta.refusal or last.message.refusal
                if choice.delta.content:
                    said.append(choice.delta.content)
                    hear(choice.delta.content)
        if last.finish_reason is None:
            raise failures.broken(self._asked)
        last.message.content = "".join(said)
        whole.usage = whole.usage or _estimated(request, last.message.content)
        return whole

    def _streamed_response(self, request: dict[str, Any], hear: Hear) -> _Response:
        for piece in self._pieces(self._client.responses, request):
            event = json_values.parse(piece, _ResponsePiece)
            if event.type == "response.output_text.delta" and event.delta:
                hear(event.delta)
            if event.type in _ENDS:
                return json_values.convert(event.response, _Response)
        raise failures.broken(self._asked)

    def _pieces(self, api: Any, request: dict[str, Any], **more: Any) -> Iterator[str]:
        """The events of a streamed answer, as JSON."""
        with api.create(**request, stream=True, **more) as stream:
            kind = stream.response.headers.get("content-type", "")
            if "event-stream" not in kind:
                raise failures.strange(self._asked, kind, stream.response.read())
            for event in stream:
                yield event.to_json(indent=None)

    def _respond(self, request: dict[str, Any], hear: Hear | None) -> Completion:
        if hear:
            response = self._streamed_response(request, hear)
        else:
            raw = self._client.responses.with_raw_response.create(**request)
            response = body_of(self._asked, raw.http_response, _Response)
        if response.error:
            codes, said = str(response.error.get("code") or ""), str(response.error.get("message") or "")
            raise failures.refusal(self._asked, 500, said, {}, codes)
        parts = [part for item in response.output for part in item.content or [] if item.type == "message"]
        why = (response.incomplete_details or {}).get("reason")
        if any(part.type == "refusal" for part in parts) or why == "content_filter":
            raise failures.declined(self._asked)
        called = [item.arguments for item in response.output if item.type == "function_call"]
        text = called[0] if called else "".join(part.text for part in parts)
        return _completion(text, response, is_cut=response.status == "incomplete")


def _completion(text: str, answer: _Chat | _Response, *, is_cut: bool) -> Completion:
    usage = answer.usage or _Usage()
    details = usage.input_tokens_details or usage.prompt_tokens_details or _Details()
    cached = details.cached_tokens or 0
    asked = usage.input_tokens or usage.prompt_tokens
    tokens = Tokens(max(0, asked - cached), usage.output_tokens or usage.completion_tokens, cached)
    return Completion(text, tokens, answer.model, is_cut, more={"id": answer.id})


def _estimated(request: dict[str, Any], said: str) -> _Usage:
    """What a stream took whose server counts nothing: four characters a token."""
    asked = sum(len(str(message["content"])) for message in request["messages"])
    return _Usage(prompt_tokens=asked // 4, completion_tokens=len(said) // 4)


def _as_chat(prompt: Prompt, able: Capabilities) -> dict[str, Any]:
    text = f"{prompt.shared}\n\n{prompt.text}" if prompt.shared else prompt.text
    request: dict[str, Any] = {
        "messages": [{"role": "system", "content": system_of(prompt, able)}, {"role": "user", "content": text}],
        "max_tokens": most_written(prompt, able),
    }
    if able.answers == "schema":
        shape = {"name": prompt.name, "strict": True, "schema": strict(prompt.answer)}
        request["response_format"] = {"type": "json_schema", "json_schema": shape}
    elif able.answers == "json":
        request["response_format"] = {"type": "json_object"}
    elif able.answers == "tool":
        function = {"name": prompt.name, "description": "Gives the answer.", "parameters": dict(prompt.answer)}
        request["tools"] = [{"type": "function", "function": function}]
        request["tool_choice"] = {"type": "function", "function": {"name": prompt.name}}
    return request


def _as_response(prompt: Prompt, able: Capabilities) -> dict[str, Any]:
    parts = [prompt.shared, prompt.text] if prompt.shared else [prompt.text]
    request: dict[str, Any] = {
        "instructions": system_of(prompt, able),
        "input": [{"role": "user", "content": [{"type": "input_text", "text": part} for part in parts]}],
        "max_output_tokens": most_written(prompt, able),
        "store": False,
    }
    if able.answers == "schema":
        shape = {"type": "json_schema", "name": prompt.name, "strict": True, "schema": strict(prompt.answer)}
        request["text"] = {"format": shape}
    elif able.answers == "json":
        request["text"] = {"format": {"type": "json_object"}}
    elif able.answers == "tool":
        request["tools"] = [
            {"type": "function", "name": prompt.name, "description": "Gives the answer.", "strict": False,
             "parameters": dict(prompt.answer)}
        ]  # fmt: skip
        request["tool_choice"] = {"type": "function", "name": prompt.name}
    return request
