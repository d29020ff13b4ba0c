"""Files of platforms are fetched within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from gateway.sites import Routes, listening, run
from nacre.errors import ChannelRefusedError, ChannelUnavailableError
from nacre_gateway.channels import WebApi


async def serve(request: Request) -> Response:
    """Answer as the query says."""
    query = request.query_params
    headers = {name: query[name] for name in ("location", "content-encoding") if name in query}
    return Response(b"x" * int(query.get("bytes", 10)), int(query.get("status", 200)), headers)


async def fetch(folder: Path, query: str) -> bytes:
    """What a client writes to a file of a server that answers as the query says."""
    target = folder / "file"
    async with listening([Routes("/file", serve)]) as address:
        api = WebApi("the platform", address, {})
        try:
            await api.download(f"{address}/file?{query}", target, 1_000, {})
        finally:
            await api.close()
            assert [file.name for file in folder.iterdir()] in ([], ["file"])
    return target.read_bytes()


def test_file_within_the_limit_is_fetched(tmp_path: Path) -> None:
    assert run(fetch(tmp_path, "bytes=1000")) == b"x" * 1_000


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("bytes=1001", ChannelRefusedError, "larger than 1000 bytes"),
        ("status=302&location=/file", ChannelRefusedError, "302"),
        ("status=404&private", ChannelRefusedError, "404"),
        ("content-encoding=gzip", ChannelRefusedError, "refused to send"),
        ("status=503", ChannelUnavailableError, "503"),
        ("status=429", ChannelUnavailableError, "429"),
    ],
)
def test_failed_fetch_leaves_no_file_and_hides_url(
    tmp_path: Path, query: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        run(fetch(tmp_path, query))
    assert "private" not in str(raised.value)
    assert not list(tmp_path.iterdir())
