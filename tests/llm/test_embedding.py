"""Embedding models over HTTP: formats, batches and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from nacre.errors import EmbedderUnavailableError
from nacre.llm.embeddings import RemoteEmbedder, open_embedder, place_at, traits_of
from nacre.settings import Settings, load_settings
from tests.fakes.provider import FakeProvider, Reply

KEY = "sk-harbour-0123456789abcdef"
NOW = {"retry-after": "0"}


def settings_for(provider: FakeProvider, home: Path, **environ: str) -> Settings:
    bases = {"openai": "/v1", "voyage": "/v1", "fake": "/v1", "gemini": "/v1beta/openai"}
    tables = "".join(
        f'[models.providers.{name}]\nbase_url = "{provider.url}{path}"\n'
        for name, path in bases.items()
    )
    (home / "config.toml").write_text(f"[models]\ntimeout_seconds = 5\n{tables}", encoding="utf-8")
    keys = {"OPENAI_API_KEY": KEY, "VOYAGE_API_KEY": KEY, "GEMINI_API_KEY": KEY}
    return load_settings(home, {"HOME": str(home), **keys, **environ})


OpenEmbedder = Callable[..., RemoteEmbedder]


@pytest.fixture
def open_remote(tmp_path: Path) -> Iterator[OpenEmbedder]:
    """Open a model of a fake provider and close it at the end of the test."""
    embedders: list[RemoteEmbedder] = []

    def open_configured(
        provider: FakeProvider, name: str = "fake:m", **environ: str
    ) -> RemoteEmbedder:
        embedders.append(open_embedder(settings_for(provider, tmp_path, **environ), name))
        return embedders[-1]

    yield open_configured
    for embedder in embedders:
        embedder.close()


def numbered(count: int) -> list[str]:
    return [f"crane {number}" for number in range(count)]


@pytest.mark.parametrize(
    ("name", "vectors", "size"),
    [
        ("openai:text-embedding-3-small", "openai:text-embedding-3-small@1024", 1024),
        ("openai:text-embedding-3-small@256", "openai:text-embedding-3-small@256", 256),
        ("voyage:voyage-3.5-lite", "voyage:voyage-3.5-lite@1024", 1024),
        ("gemini:gemini-embedding-001@768", "gemini:gemini-embedding-001@768", 768),
        ("fake:m", "fake:m", 64),
    ],
)
def test_each_format_yields_unit_vectors_of_the_requested_size(
    open_remote: OpenEmbedder, name: str, vectors: str, size: int
) -> None:
    with FakeProvider() as provider:
        embedder = open_remote(provider, name)
        embedded = embedder.embed(["a crane", "a ferry", "a crane"])
    assert embedder.name == vectors
    assert embedded.shape == (3, size)
    assert embedded.dtype == np.float32
    assert np.allclose(np.linalg.norm(embedded, axis=1), 1, atol=1e-5)
    assert np.array_equal(embedded[0], embedded[2])
    assert embedder.tokens > 0


def test_voyage_and_gemini_distinguish_questions_from_documents(open_remote: OpenEmbedder) -> None:
    with FakeProvider() as provider:
        for name in ("voyage:voyage-3.5", "gemini:gemini-embedding-001"):
            embedder = open_remote(provider, name)
            embedder.embed(["a crane"])
            embedder.within(2, question=True).embed(["which crane?"])
        bodies = [request.body for request in provider.requests]
    assert [body["input_type"] for body in bodies[:2]] == ["document", "query"]
    assert [body["requests"][0]["taskType"] for body in bodies[2:]] == [
        "RETRIEVAL_DOCUMENT",
        "RETRIEVAL_QUERY",
    ]


def test_key_is_sent_only_in_the_providers_header(open_remote: OpenEmbedder) -> None:
    with FakeProvider() as provider:
        open_remote(provider, "gemini:gemini-embedding-001").embed(["a crane"])
        open_remote(provider, "voyage:voyage-3.5").embed(["a crane"])
        gemini, voyage = (request.headers for request in provider.requests)
    assert gemini["x-goog-api-key"] == KEY
    assert "authorization" not in gemini
    assert voyage["authorization"] == f"Bearer {KEY}"


def test_texts_are_sent_in_ordered_batches_of_200(open_remote: OpenEmbedder) -> None:
    with FakeProvider() as provider:
        vectors = open_remote(provider).embed(numbered(450))
        alone = open_remote(provider).embed(["crane 449"])
        sizes = sorted(len(request.body["input"]) for request in provider.requests)
    assert sizes == [1, 50, 200, 200]
    assert np.array_equal(vectors[449], alone[0])


def test_batches_are_bounded_by_tokens(open_remote: OpenEmbedder) -> None:
    with FakeProvider() as provider:
        open_remote(provider, "openai:text-embedding-3-small").embed(["crane " * 3_000] * 30)
        inputs = [request.body["input"] for request in provider.requests]
    assert max(sum(len(text) for text in texts) for texts in inputs) < 200_000
    assert sum(map(len, inputs)) == 30


def test_a_text_is_cut_to_the_window_between_two_characters(open_remote: OpenEmbedder) -> None:
    with FakeProvider() as provider:
        open_remote(provider, "fake:mxbai-embed-large").embed(["港口" * 5_000])
        (text,) = provider.requests[0].body["input"]
    assert 0 < len(text) <= traits_of("mxbai-embed-large").window
    assert set(text) == {"港", "口"}


def test_text_prefix_of_a_model_is_prepended(open_remote: OpenEmbedder) -> None:
    with FakeProvider() as provider:
        embedder = open_remote(provider, "fake:nomic-embed-text:v1.5")
        embedder.embed(["a crane"])
        embedder.within(2, question=True).embed(["which crane?"])
        inputs = [request.body["input"] for request in provider.requests]
    assert inputs == [["search_document: a crane"], ["search_query: which crane?"]]


def test_empty_text_and_lone_surrogate_are_embedded(open_remote: OpenEmbedder) -> None:
    with FakeProvider() as provider:
        assert open_remote(provider).embed(["", " \n", "\ud800"]).shape == (3, 64)
        assert all(text.strip() for text in provider.requests[0].body["input"])
        assert open_remote(provider).embed([]).shape[0] == 0


@pytest.mark.parametrize(
    "fault",
    [
        Reply(status=429, headers=NOW),
        Reply(status=503, headers=NOW),
        Reply(status=529, headers=NOW),
    ],
)
def test_temporary_failure_is_retried(open_remote: OpenEmbedder, fault: Reply) -> None:
    with FakeProvider(embedding_faults=[fault] * 4) as provider:
        assert open_remote(provider).embed(["a crane"]).shape == (1, 64)
        assert len(provider.requests) == 5


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Reply(status=401, message="bad key"), "does not accept"),
        (Reply(status=404, message="no such model"), "has no model"),
        (Reply(status=402), "no credit"),
        (Reply(fault="html"), "web page"),
        (Reply({"data": []}), "0 vectors for 1 texts"),
        (Reply({"data": [{"embedding": []}]}), "vectors"),
        (Reply({"data": [{"embedding": [0.0, 0.0]}]}), "zero vector"),
        (Reply({"data": [{"embedding": [1e308, 1e308]}]}), "zero vector"),
        (Reply({"data": [{"embedding": [None, 1.0]}]}), "fake:m"),
        (Reply({"nothing": 1}), "fake:m"),
    ],
)
def test_permanent_failure_is_a_single_line_with_a_remedy(
    open_remote: OpenEmbedder, fault: Reply, message: str
) -> None:
    with (
        FakeProvider(embedding_faults=[fault] * 5) as provider,
        pytest.raises(EmbedderUnavailableError, match=message) as caught,
    ):
        open_remote(provider).within(5).embed(["a crane"])
    assert caught.value.hint
    assert "models.default" not in caught.value.hint
    assert KEY not in caught.value.message


def test_unexpected_vector_size_is_refused(open_remote: OpenEmbedder) -> None:
    fault = Reply({"data": [{"embedding": [1.0, 2.0, 3.0]}]})
    with (
        FakeProvider(embedding_faults=[fault]) as provider,
        pytest.raises(EmbedderUnavailableError, match="3 dimensions"),
    ):
        open_remote(provider, "openai:text-embedding-3-small").embed(["a crane"])


def test_long_batches_are_split_and_overlong_texts_cut(
    open_remote: OpenEmbedder,
) -> None:
    too_long = Reply(status=400, message="maximum context length exceeded")
    with FakeProvider(embedding_faults=[too_long, too_long]) as provider:
        assert open_remote(provider).embed(["a crane by the sea", "a ferry"]).shape == (2, 64)
        inputs = [request.body["input"] for request in provider.requests]
    assert inputs == [
        ["a crane by the sea", "a ferry"],
        ["a crane by the sea"],
        ["a crane b"],
        ["a ferry"],
    ]


def test_question_embedding_respects_its_timeout(open_remote: OpenEmbedder) -> None:
    with (
        FakeProvider(embedding_faults=[Reply(fault="hang")]) as provider,
        pytest.raises(EmbedderUnavailableError, match=r"within 0\.2 seconds"),
    ):
        open_remote(provider).within(0.2, question=True).embed(["which crane?"])


def test_failed_batch_cancels_the_other_batches(open_remote: OpenEmbedder) -> None:
    faults = [Reply(status=401)] * 3
    with FakeProvider(embedding_faults=faults) as provider:
        embedder = open_remote(provider)
        with pytest.raises(EmbedderUnavailableError):
            embedder.embed(numbered(2_000))
        assert len(provider.requests) <= 6
        provider.embedding_faults.clear()
        assert embedder.embed(["a crane"]).shape == (1, 64)


def test_missing_key_or_unknown_model_fails_before_sending(
    open_remote: OpenEmbedder,
) -> None:
    with FakeProvider() as provider:
        for name, reason in (
            ("openai:m", "needs a key"),
            ("claude-cli:sonnet", "no embedding models"),
            ("nobody:m", "nobody"),
        ):
            with pytest.raises(EmbedderUnavailableError, match=reason):
                open_remote(provider, name, OPENAI_API_KEY="")
        assert not provider.requests


def test_embedding_destination_is_known_without_a_key(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {"HOME": str(tmp_path)})
    assert place_at(settings, "openai:text-embedding-3-small").host == "api.openai.com"
    assert place_at(settings, "ollama:nomic-embed-text").is_here
    assert place_at(settings, "ollama:nomic-embed-text").price == 0
    assert place_at(settings, "mistral:unheard-of").price is None


def test_local_server_costs_nothing_unless_a_price_is_set(tmp_path: Path) -> None:
    config = '[models.providers.boats]\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "oak"\n'
    (tmp_path / "config.toml").write_text(config, encoding="utf-8")
    settings = load_settings(tmp_path, {"HOME": str(tmp_path)})
    assert place_at(settings, "boats:oar").is_local
    assert place_at(settings, "boats:oar").price == 0
    priced = '[models.capabilities]\n"boats:oar" = {price = {input = 0.5}}\n'
    (tmp_path / "config.toml").write_text(config + priced, encoding="utf-8")
    settings = load_settings(tmp_path, {"HOME": str(tmp_path)})
    assert place_at(settings, "boats:oar").price == Decimal("0.5")


def test_key_does_not_follow_a_redirect(open_remote: OpenEmbedder) -> None:
    with FakeProvider() as elsewhere, FakeProvider() as provider:
        provider.embedding_faults.append(
            Reply(status=307, headers={"location": f"{elsewhere.url}/v1/embeddings"})
        )
        with pytest.raises(EmbedderUnavailableError, match="307"):
            open_remote(provider, "gemini:gemini-embedding-001").embed(["a crane"])
        assert not elsewhere.requests
