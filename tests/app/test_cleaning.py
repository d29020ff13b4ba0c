"""What is cleaned ahead for the archive counts only for the very bytes it was made of."""

from __future__ import annotations

from pathlib import Path

from nacre.home.parsing import Ahead, Job, Portion, clean_file, cut
from nacre.redact.redactor import Redactor
from nacre.store.packs import Cleaner
from tests.canary import CORE, SECRET

REDACTOR = Redactor()


def cleaned(path: Path) -> list[Portion]:
    return list(clean_file(Job(path, path.stat().st_size), Cleaner(REDACTOR.clean_all)))


def test_cleaned_portions_are_found_in_file_order(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two", "three", "gone")]
    texts = [
        b'{"text": "plain"}\n',
        f'{{"text": "{SECRET}"}}\n'.encode(),
        b'{"text": "more"}\n{"to',
    ]
    for path, text in zip(paths, texts, strict=False):
        path.write_bytes(text)
    portions = [portion for path in paths[:3] for portion in cleaned(path)]
    ahead = Ahead(iter(portions), paths)
    assert ahead.find(tmp_path / "unknown", 0, texts[0]) is None
    first = ahead.find(paths[0], 0, texts[0])
    assert first is not None
    assert first.text == texts[0]
    second = ahead.find(paths[1], 0, texts[1])
    assert second is not None
    assert CORE.encode() not in second.text
    assert second.lengths == ((0, len(texts[1]) - 1),)
    assert ahead.find(paths[0], 0, texts[0]) is None
    assert ahead.find(paths[2], 0, texts[2][:-1]) is None
    assert ahead.find(paths[3], 0, b"") is None


def test_changed_lines_do_not_match_cleaned_portions(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_bytes(b'{"text": "plain"}\n')
    portions = cleaned(path)
    path.write_bytes(b'{"text": "other"}\n')
    with path.open("rb") as file:
        ((start, raw),) = cut(file, 0, 18)
    assert Ahead(iter(portions), [path]).find(path, start, raw) is None
    assert Ahead(iter(portions), [path]).find(path, 0, b'{"text": "plain"}\n') is not None
