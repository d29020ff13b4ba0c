"""Files that a stranger names are fetched from public places alone, within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from gateway.sites import Routes, listening, run, webhook
from nacre.errors import ChannelRefusedError, ChannelUnavailableError
from nacre.values.gateway import Attachment
from nacre_gateway.channels import is_public


async def serve(request: Request) -> Response:
    """Answer as the query says."""
    query = request.query_params
    headers = {name: query[name] for name in ("location", "content-encoding") if name in query}
    return Response(b"x" * int(query.get("bytes", 10)), int(query.get("status", 200)), headers)


async def fetch(
    folder: Path, url: str, most_bytes: int = 1_000, *, fetch_private: bool = True
) -> bytes:
    """What the channel fetches; ``SITE`` is a server on loopback."""
    target = folder / "file"
    async with (
        listening([Routes("/file", serve)]) as address,
        webhook(folder, fetch_private=fetch_private) as site,
    ):
        try:
            await site.channel.fetch(
                Attachment("f", source=url.replace("SITE", address)), target, most_bytes
            )
        finally:
            assert [one.name for one in folder.iterdir()] in ([], ["file"])
    return target.read_bytes()


def test_files_are_fetched_from_loopback_if_allowed(tmp_path: Path) -> None:
    assert run(fetch(tmp_path, "SITE/file?bytes=1000")) == b"x" * 1_000


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("SITE/file?bytes=1001", ChannelRefusedError, "larger than 1000 bytes"),
        ("SITE/file?status=302&location=/file", ChannelRefusedError, "302"),
        ("SITE/file?status=404", ChannelRefusedError, "404"),
        ("SITE/file?content-encoding=gzip", ChannelRefusedError, "refused to send"),
        ("SITE/file?status=503", ChannelUnavailableError, "503"),
        ("SITE/file?status=429", ChannelUnavailableError, "429"),
        ("http://127.0.0.1:1/private", ChannelUnavailableError, "ConnectError"),
        ("https://files.invalid/private", ChannelUnavailableError, "found"),
        ("http://files.example/private", ChannelRefusedError, "https"),
        ("https://user:private@127.0.0.1/", ChannelRefusedError, "valid"),
        ("https://[::1/private", ChannelRefusedError, "valid"),
        ("https://127.0.0.1:99999/private", ChannelRefusedError, "valid"),
        ("file:///etc/private", ChannelRefusedError, "valid"),
        ("", ChannelRefusedError, "valid"),
    ],
)
def test_failed_fetch_leaves_no_file_and_hides_url(
    tmp_path: Path, url: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said) as raised:
        run(fetch(tmp_path, url))
    assert "private" not in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::1]", "[::ffff:10.0.0.1]", "0"]
)
def test_private_addresses_are_refused_in_every_notation(tmp_path: Path, host: str) -> None:
    with pytest.raises(ChannelRefusedError, match="private address"):
        run(fetch(tmp_path, f"https://{host}/file", fetch_private=False))


def test_plain_http_is_refused_unless_allowed(tmp_path: Path) -> None:
    with pytest.raises(ChannelRefusedError, match="no https URL"):
        run(fetch(tmp_path, "SITE/file", fetch_private=False))


@pytest.mark.parametrize("address", ["9.9.9.9", "2620:fe::fe"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.1",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:9.9.9.9",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "2001:0:a00:1::",
        "fc00::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
    ],
)
def test_non_public_addresses_are_detected_including_ipv6_wrapped(address: str) -> None:
    assert not is_public(address)
