"""Answers while they are made: by lines and sentences, and never with a secret, however the pieces are cut."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from nacre.home.home import open_home
from nacre.redact.redactor import Redactor
from nacre.settings import load_settings
from nacre_gateway.conversation import CleanStream
from nacre_gateway.engine import TerminalChat
from tests.fakes.provider import FakeProvider

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
LINES = ["MIIEowIBAAKCAQEA7bq3Zx1Qk9" * 2] * 8
KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *LINES, "-----END RSA PRIVATE KEY-----"])
TALE = "The boat lies at the quay. Its hull is red and its sail hangs out to dry since Friday. "


def heard(text: str, size: int, redactor: Redactor) -> list[str]:
    pieces: list[str] = []
    stream = CleanStream(redactor, pieces.append)
    for start in range(0, len(text), size):
        stream.hear(text[start : start + size])
    stream.finish()
    return pieces


@pytest.mark.parametrize("size", [1, 3, 7, 40, 10_000])
@pytest.mark.parametrize(
    "text",
    [
        f"Use this:\n\n    export GITHUB_TOKEN={TOKEN}\n\nand go on.\n{TALE * 3}",
        f"{TALE * 3}The token is {TOKEN}, and {TALE * 3}",
        f"{TALE}password: hunter2xyzAB9. {TALE}\nThe password is:\nhunter2xyzAB9\n{TALE}",
        f"Here it is.\n{KEY}\n{TALE}",
        f"{TALE * 3}Without an end:\n" + KEY.rpartition("\n")[0],
        f"{TALE * 30}\n" * 3 + f"{TOKEN}\n{TALE}",
        f"Keep out: <private>the {TALE * 30}\n\nharbour</private> {TALE}",
        "word " * 300,
    ],
)
def test_pieces_contain_no_secret_and_equal_the_answer(text: str, size: int) -> None:
    redactor = Redactor()
    assert "".join(heard(text, size, redactor)) == redactor.clean(text)


def test_apparent_sentence_ends_do_not_split_secrets() -> None:
    text, redactor = (
        f"{TALE}The box is No. 4711 HARBOUR, and {TALE}",
        Redactor([r"No\. \d{4} [A-Z]+"]),
    )
    assert "".join(heard(text, 1, redactor)) == redactor.clean(text)


def test_lines_and_sentences_are_streamed_as_written() -> None:
    pieces: list[str] = []
    stream = CleanStream(Redactor(), pieces.append)
    stream.hear("The first line.\nA sentence. ")
    assert pieces == ["The first line.\n"]
    stream.hear("Then another that is as long as it takes for the one before to be shown")
    assert pieces == ["The first line.\n", "A sentence. "]
    stream.hear("\n")
    assert "".join(pieces).endswith("to be shown\n")


def test_terminal_stream_contains_no_secrets(tmp_path: Path) -> None:
    pieces: list[str] = []
    folder = tmp_path / "home"
    folder.mkdir()
    with FakeProvider([f"{TALE}\nThe token is {TOKEN}. {TALE}"]) as provider:
        (folder / "config.toml").write_text(provider.config(), encoding="utf-8")
        environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "NACRE_EMBEDDING_MODEL": "none"}
        settings = load_settings(folder, environ)
        home = open_home(settings)
        talk = TerminalChat(settings, lambda: nullcontext(home), is_owner=True)
        with closing(home.database), closing(talk):
            answer = talk.ask("which token is it?", pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == answer.text
    assert TOKEN not in answer.text
