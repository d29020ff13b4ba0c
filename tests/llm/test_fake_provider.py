"""The fake provider works with the vendors' own libraries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.fakes.conversation import Line, conversation
from tests.fakes.provider import FakeProvider, Reply

if TYPE_CHECKING:
    import anthropic
    import openai

SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
ASKED: Any = [{"role": "user", "content": "Which word?"}]


def claude(provider: FakeProvider) -> anthropic.Anthropic:
    import anthropic

    return anthropic.Anthropic(api_key="k", base_url=provider.url, max_retries=0)


def gpt(provider: FakeProvider) -> openai.OpenAI:
    import openai

    return openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0)


def test_anthropic_library_reads_a_message_completely_and_streamed() -> None:
    with FakeProvider([{"word": "hull"}], repeats=True) as provider, claude(provider) as client:
        whole = client.messages.create(model="m", max_tokens=50, messages=ASKED)
        assert json.loads(whole.content[0].text) == {"word": "hull"}  # type: ignore[union-attr]
        with client.messages.stream(model="m", max_tokens=50, messages=ASKED) as stream:
            streamed = stream.get_final_message()
    assert streamed.content[0].text == whole.content[0].text  # type: ignore[union-attr]
    assert streamed.stop_reason == whole.stop_reason == "end_turn"
    assert streamed.usage.output_tokens == whole.usage.output_tokens


def test_anthropic_library_reads_a_forced_tool_completely_and_streamed() -> None:
    tools: Any = [{"name": "answer", "input_schema": SCHEMA}]
    choice: Any = {"type": "tool", "name": "answer"}
    more: Any = {
        "model": "m",
        "max_tokens": 50,
        "messages": ASKED,
        "tools": tools,
        "tool_choice": choice,
    }
    with FakeProvider([{"word": "hull"}], repeats=True) as provider, claude(provider) as client:
        whole = client.messages.create(**more)
        with client.messages.stream(**more) as stream:
            streamed = stream.get_final_message()
    assert streamed.content[0].input == whole.content[0].input == {"word": "hull"}  # type: ignore[union-attr]


def test_openai_library_reads_chat_and_responses_completely_and_streamed() -> None:
    with FakeProvider([{"word": "hull"}], repeats=True) as provider, gpt(provider) as client:
        chat = client.chat.completions.create(model="m", messages=ASKED)
        parts = client.chat.completions.create(model="m", messages=ASKED, stream=True)
        text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
        response = client.responses.create(model="m", input=ASKED)
        with client.responses.stream(model="m", input=ASKED) as stream:
            streamed = stream.get_final_response()
    assert chat.choices[0].message.content == text == response.output_text == streamed.output_text
    assert json.loads(text) == {"word": "hull"}


def test_openai_library_reads_vectors_in_both_encodings() -> None:
    with FakeProvider(dimensions=8) as provider, gpt(provider) as client:
        packed = client.embeddings.create(model="m", input=["hull", "mast"])
        plain = client.embeddings.create(model="m", input=["hull", "mast"], encoding_format="float")
        short = client.embeddings.create(model="m", input="hull", dimensions=4)
    assert packed.data[1].embedding == pytest.approx(plain.data[1].embedding, abs=1e-6)
    assert len(short.data[0].embedding) == 4


def test_ollama_chat_is_answered_completely_and_in_lines() -> None:
    with FakeProvider([{"word": "hull"}], repeats=True) as provider:
        whole = httpx2.post(
            f"{provider.url}/api/chat",
            json={"model": "m", "messages": ASKED, "stream": False},
            verify=False,
        )
        lines = httpx2.post(
            f"{provider.url}/api/chat",
            json={"model": "m", "messages": ASKED, "stream": True},
            verify=False,
        )
        tags = httpx2.get(f"{provider.url}/api/tags", verify=False).json()
    text = "".join(json.loads(line)["message"]["content"] for line in lines.text.splitlines())
    assert text == whole.json()["message"]["content"]
    assert tags["models"] == [{"name": "m"}]


@pytest.mark.parametrize("status", [401, 402, 404, 429, 500, 529])
def test_status_has_the_shape_of_each_format(status: int) -> None:
    import anthropic
    import openai

    reply = Reply(status=status, message="not now", headers={"retry-after": "7"})
    with (
        FakeProvider([reply], repeats=True) as provider,
        claude(provider) as claude_client,
        gpt(provider) as gpt_client,
    ):
        with pytest.raises(anthropic.APIStatusError, match="not now") as first:
            claude_client.messages.create(model="m", max_tokens=50, messages=ASKED)
        with pytest.raises(openai.APIStatusError, match="not now") as second:
            gpt_client.chat.completions.create(model="m", messages=ASKED)
    assert first.value.status_code == second.value.status_code == status
    assert first.value.response.headers["retry-after"] == "7"
    assert len(provider.calls) == 2


def test_provider_closes_during_a_hanging_call() -> None:
    with FakeProvider([Reply(fault="hang")]) as provider, pytest.raises(httpx2.TimeoutException):
        httpx2.post(f"{provider.url}/api/chat", json={"model": "m"}, timeout=0.05, verify=False)


SEARCH = {"name": "mcp__notes__search", "description": "Search notes.", "input_schema": SCHEMA}
LINES = [
    Line("Which word", say="It is hull.", tool="search", arguments={"word": "hull"}, tokens=70_000)
]


def test_conversation_calls_an_offered_tool_and_then_answers() -> None:
    more: Any = {"model": "m", "max_tokens": 50, "tools": [SEARCH]}
    with FakeProvider(conversation(LINES)) as provider, claude(provider) as client:
        with client.messages.stream(messages=ASKED, **more) as stream:
            call = stream.get_final_message()
        answer = {"type": "tool_result", "tool_use_id": call.content[0].id, "content": "hull, mast"}  # type: ignore[union-attr]
        after = [
            *ASKED,
            {"role": "assistant", "content": call.content},
            {"role": "user", "content": [answer]},
        ]
        reply = client.messages.create(messages=after, **more)
        plain = client.messages.create(model="m", max_tokens=50, messages=ASKED)
        other = client.messages.create(
            model="m", max_tokens=50, messages=[{"role": "user", "content": "Hello"}]
        )
        counted = client.messages.count_tokens(model="m", messages=ASKED)
    assert call.content[0].name == "mcp__notes__search"  # type: ignore[union-attr]
    assert (call.stop_reason, call.usage.input_tokens) == ("tool_use", 70_000)
    assert reply.content[0].text == plain.content[0].text == "It is hull."  # type: ignore[union-attr]
    assert other.content[0].text == "All right."  # type: ignore[union-attr]
    assert counted.input_tokens > 0


def test_conversation_calls_tools_in_openai_formats() -> None:
    function = {"name": "notes_search", "parameters": SCHEMA}
    space = {
        "type": "namespace",
        "name": "notes",
        "tools": [{"type": "function", "name": "search"}],
    }
    with FakeProvider(conversation(LINES)) as provider, gpt(provider) as client:
        tools: Any = [{"type": "function", "function": function}]
        chat = client.chat.completions.create(model="m", messages=ASKED, tools=tools)
        response = client.responses.create(model="m", input=ASKED, extra_body={"tools": [space]})
    assert chat.choices[0].finish_reason == "tool_calls"
    assert chat.choices[0].message.tool_calls[0].function.name == "notes_search"  # type: ignore[index, union-attr]
    assert (response.output[0].name, response.output[0].namespace) == ("search", "notes")  # type: ignore[union-attr]


def test_gemini_contents_are_answered_completely_and_in_events() -> None:
    question: Any = {"contents": [{"role": "user", "parts": [{"text": "Which word?"}]}]}
    tools = [{"functionDeclarations": [{"name": "notes_search", "parameters": SCHEMA}]}]
    with FakeProvider(conversation(LINES)) as provider:
        base = f"{provider.url}/v1beta/models/m"
        call = httpx2.post(
            f"{base}:generateContent", json={**question, "tools": tools}, verify=False
        ).json()
        events = httpx2.post(
            f"{base}:streamGenerateContent?alt=sse", json=question, verify=False
        ).text.split("\n\n")
    pieces = [json.loads(event.removeprefix("data: ")) for event in events if event]
    assert call["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"name": "notes_search", "args": {"word": "hull"}}}
    ]
    assert (
        "".join(piece["candidates"][0]["content"]["parts"][0]["text"] for piece in pieces)
        == "It is hull."
    )
    assert pieces[-1]["candidates"][0]["finishReason"] == "STOP"


def test_injected_nacre_context_is_not_the_owners_prompt() -> None:
    question: Any = [
        {"role": "user", "content": "<nacre-context>Which word?</nacre-context>\nHello"}
    ]
    with FakeProvider(conversation(LINES)) as provider, claude(provider) as client:
        reply = client.messages.create(model="m", max_tokens=50, messages=question)
    assert reply.content[0].text == "All right."  # type: ignore[union-attr]
