"""With gateway.enabled the daemon answers in channels, and reports failures to start."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.conftest import Nacre
from tests.daemon.conftest import Serving, home
from tests.fakes.provider import FakeProvider
from tests.fakes.telegram import TOKEN, FakeTelegram

_BOT = {"BOT": TOKEN}


def configure(provider: FakeProvider, telegram: FakeTelegram) -> None:
    home().mkdir(exist_ok=True)
    (home() / "config.toml").write_text(
        f"""{provider.config()}
[owner]
identities = ["telegram:5054"]
[gateway]
enabled = true
debounce_seconds = 0.1
[gateway.channels.telegram]
token = "env:BOT"
base_url = "{telegram.url}"
""",
        encoding="utf-8",
    )


def test_daemon_answers_in_channels_and_closes_channels_on_exit(
    serving: Callable[..., Serving], nacre: Nacre
) -> None:
    with (
        FakeProvider(["The ferry leaves at nine."], repeats=True) as provider,
        FakeTelegram() as telegram,
    ):
        configure(provider, telegram)
        daemon = serving("--no-watch", environ=_BOT)
        telegram.say(5054, 5054, "when does the ferry leave?")
        telegram.wait_for(lambda: telegram.sent)
        assert telegram.sent[0]["text"] == "The ferry leaves at nine."
        assert nacre("gateway", "--json").json["running"]
        assert "gateway serves" in nacre("gateway", "run", code=None).err
        assert daemon.end() == 0
        assert not nacre("gateway", "--json", code=1).json["running"]


def test_missing_token_is_reported_and_the_daemon_continues(
    serving: Callable[..., Serving], nacre: Nacre
) -> None:
    with FakeProvider() as provider, FakeTelegram() as telegram:
        configure(provider, telegram)
        daemon = serving("--no-watch", environ={"BOT": ""})
        daemon.until("no channel can be opened")
        (channel,) = nacre("gateway", "--json", code=1).json["channels"]
        assert "set BOT in the environment" in channel["problem"]
        assert nacre("serve", "status", "--json").json["state"] == "running"
