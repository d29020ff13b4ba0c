"""``nacre graph`` works on the code of real repositories."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from symbols.repositories import ALIASES, PYTHON
from tests.cli.conftest import Nacre

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def shop(nacre: Nacre, tmp_path: Path) -> Path:
    """A repository whose code has been read."""
    root = PYTHON.write(tmp_path / "shop")
    git(root, "init", "--quiet")
    ingest(nacre, root)
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


def ingest(nacre: Nacre, root: Path, *arguments: str) -> Any:
    return nacre("graph", "ingest-code", str(root), "--project", "shop", *arguments, "--json").json


def callers(nacre: Nacre, name: str, *arguments: str) -> set[str]:
    return {
        link["node"]["name"] or link["node"]["path"]
        for link in ask(nacre, "callers", name, *arguments)["links"]
    }


def ask(nacre: Nacre, *arguments: str) -> Any:
    return nacre("graph", *arguments, "--json").json


def test_callers_are_listed_by_depth_with_call_lines(nacre: Nacre, shop: Path) -> None:
    output = nacre("graph", "callers", "rounded", "--depth", "2").out
    assert "src/shop/money.py:3  Money.convert  calls\n" in output
    assert "    src/shop/orders.py:18  Order.pay  calls Money.convert\n" in output
    assert callers(nacre, "rounded") == {"Money.convert", "Order.check"}


@pytest.mark.parametrize(
    "name",
    [
        "Order.pay",
        "Order::pay",
        "orders.Order.pay",
        "src/shop/orders.py#Order.pay",
        "code:shop/src/shop/orders.py#Order.pay",
    ],
)
def test_symbol_can_be_named_in_several_ways(nacre: Nacre, shop: Path, name: str) -> None:
    assert callers(nacre, name) == {"GiftOrder.wrap", "place.confirm"}


def test_ambiguous_name_lists_its_symbols(nacre: Nacre, shop: Path) -> None:
    answer = ask(nacre, "callers", "check")
    assert [choice["name"] for choice in answer["choices"]] == ["Order.check", "GiftOrder.check"]
    assert not answer["links"]
    output = nacre("graph", "callers", "check").out
    assert "src/shop/orders.py#GiftOrder.check" in output


def test_unknown_name_is_not_found(nacre: Nacre, shop: Path) -> None:
    assert nacre("graph", "callers", "nowhere", "--json", code=3).error["code"] == "not_found"


def test_importers_are_found_by_file_module_and_library(nacre: Nacre, shop: Path) -> None:
    def of(name: str) -> set[str]:
        return {link["node"]["path"] for link in ask(nacre, "importers", name)["links"]}

    assert of("src/shop/stock.py") == of("shop.stock") == {"src/shop/orders.py", "src/shop/cli.py"}
    assert of("os") == of("json") == {"src/shop/orders.py"}


def test_impact_lists_memories_that_name_symbol_or_file(nacre: Nacre, shop: Path) -> None:
    for text in (
        "Totals are converted by `Money.convert`, never by hand.",
        "src/shop/money.py holds no state.",
        "The word convert alone names nothing.",
    ):
        nacre("store", text, "--project", "shop")
    nacre("store", "`Money.convert` of another project", "--project", "bank")
    about = ask(nacre, "about", "Money.convert")
    assert [memory["memory"]["content"] for memory in about["memories"]] == [
        "Totals are converted by `Money.convert`, never by hand."
    ]
    contents = [
        memory["memory"]["content"]
        for memory in ask(nacre, "impact", "src/shop/money.py")["memories"]
    ]
    assert set(contents) == {
        "Totals are converted by `Money.convert`, never by hand.",
        "src/shop/money.py holds no state.",
    }


def test_edited_memory_updates_its_symbols(nacre: Nacre, shop: Path) -> None:
    memory = nacre(
        "store",
        "`Money.convert` rounds down.",
        "--subject",
        "Rounding",
        "--project",
        "shop",
        "--json",
    ).json["memory_id"]
    assert ask(nacre, "about", "Money.convert")["memories"]
    nacre("edit", memory, "--content", "`reserve` rounds down.")
    assert not ask(nacre, "about", "Money.convert")["memories"]
    assert ask(nacre, "about", "reserve")["memories"]


def test_impact_includes_indirect_callers_and_their_memories(nacre: Nacre, shop: Path) -> None:
    nacre("store", "`GiftOrder.wrap` is called by the shop's own counter.", "--project", "shop")
    answer = ask(nacre, "impact", "src/shop/money.py", "Money.convert", "--depth", "3")
    assert {(link["node"]["name"], link["depth"]) for link in answer["links"]} == {
        ("Order.pay", 1),
        ("GiftOrder.wrap", 2),
        ("place.confirm", 2),
        ("refund", 3),
        ("test_gift", 3),
        ("place", 3),
    }
    assert [memory["names"] for memory in answer["memories"]] == [["GiftOrder.wrap"]]


def test_ingest_reads_changed_files_and_removes_deleted_files(nacre: Nacre, shop: Path) -> None:
    again = ingest(nacre, shop)
    assert (again["read"], again["unchanged"]) == (0, len(PYTHON.files))
    (shop / "src" / "shop" / "stock.py").write_text(
        "def reserve(order):\n    release(order)\n", encoding="utf-8"
    )
    (shop / "tools" / "helper.py").unlink()
    report = ingest(nacre, shop)
    assert (report["read"], report["removed"]) == (1, 1)
    assert nacre("graph", "callers", "release", code=3).err
    (shop / "src" / "shop" / "stock.py").write_text(
        "def release(order):\n    pass\n", encoding="utf-8"
    )
    ingest(nacre, shop)
    assert callers(nacre, "release") == {"place"}


def test_changed_alias_updates_edges_without_code_changes(nacre: Nacre, tmp_path: Path) -> None:
    root = ALIASES.write(tmp_path / "code")
    ingest(nacre, root)
    assert callers(nacre, "old/lib/math/sum.js#sum") == {"main"}
    config = root / "old" / "jsconfig.json"
    config.write_text("{}", encoding="utf-8")
    os.utime(config, (time.time() + 60, time.time() + 60))
    assert ingest(nacre, root)["read"] == 0
    assert not callers(nacre, "old/lib/math/sum.js#sum")


def test_files_ignored_by_git_are_not_read(nacre: Nacre, shop: Path) -> None:
    (shop / ".gitignore").write_text("made/\n", encoding="utf-8")
    (shop / "made").mkdir()
    (shop / "made" / "rows.py").write_text("def made_up():\n    pass\n", encoding="utf-8")
    (shop / "new.py").write_text("def brand_new():\n    pass\n", encoding="utf-8")
    ingest(nacre, shop)
    assert nacre("graph", "callers", "made_up", code=3).err
    assert ask(nacre, "callers", "brand_new")["nodes"]


def test_folder_without_git_is_read_without_installed_packages(
    nacre: Nacre, tmp_path: Path
) -> None:
    root = PYTHON.write(tmp_path / "plain")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "big.js").write_text("function fromElsewhere() {}", encoding="utf-8")
    assert ingest(nacre, root)["files"] == len(PYTHON.files)


def test_links_outside_the_repository_are_not_followed(nacre: Nacre, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "private.py").write_text("def private_matter():\n    pass\n", encoding="utf-8")
    root = PYTHON.write(tmp_path / "shop")
    git(root, "init", "--quiet")
    (root / "link.py").symlink_to(outside / "private.py")
    (root / "folder").symlink_to(outside, target_is_directory=True)
    assert ingest(nacre, root)["skipped"] == 1
    assert nacre("graph", "callers", "private_matter", code=3).err


def test_only_names_are_stored(nacre: Nacre, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    text = f'TOKEN = "{SECRET}"\n\n\ndef {SECRET}():\n    return open("sesame-street")\n\n\n# wonderful-comment\n'
    (root / "a.py").write_text(text, encoding="utf-8")
    ingest(nacre, root)
    nacre("graph", "callers", "nowhere", code=3)
    data = b"".join(path.read_bytes() for path in Path(os.environ["NACRE_HOME"]).glob("nacre.db*"))
    for secret in (SECRET, "sesame-street", "wonderful-comment"):
        assert secret.encode() not in data


def test_long_binary_and_minified_files_are_skipped(nacre: Nacre, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "long.py").write_text("x = 1\n" * 200_000, encoding="utf-8")
    (root / "binary.c").write_bytes(b"int x;\0\0")
    (root / "min.js").write_text("function a(){}" * 10_000, encoding="utf-8")
    (root / "fine.py").write_text("def fine():\n    pass\n", encoding="utf-8")
    report = ingest(nacre, root)
    assert (report["read"], report["skipped"]) == (1, 3)


def test_file_that_parses_too_slowly_fails_without_others(nacre: Nacre, tmp_path: Path) -> None:
    (tmp_path / "chain.js").write_text("a" + ".b()\n" * 180_000, encoding="utf-8")
    (tmp_path / "plain.js").write_text("function plain() {}\n", encoding="utf-8")
    report = ingest(nacre, tmp_path)
    assert report["failed"] == ["chain.js"]
    assert report["symbols"] == 1


def test_endlessly_nested_definitions_are_skipped(nacre: Nacre, tmp_path: Path) -> None:
    (tmp_path / "deep.rs").write_text(
        "mod a {\n" * 9_000 + "}\n" * 9_000 + "fn plain() {}\n", encoding="utf-8"
    )
    assert ingest(nacre, tmp_path)["failed"] == []
    assert callers(nacre, "plain") == set()


def test_broken_code_is_parsed_partially(nacre: Nacre, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "a.py").write_text(
        "def whole():\n    half()\n\n\ndef half(:\n\nclass \xff {{{", encoding="latin-1"
    )
    ingest(nacre, root)
    assert ask(nacre, "callers", "whole")["nodes"]


def test_files_over_the_limit_are_skipped_and_reported(nacre: Nacre, shop: Path) -> None:
    result = nacre("graph", "ingest-code", str(shop), "--project", "shop", "--max-files", "3")
    assert "4 files left out" in result.err


def test_code_of_a_project_can_be_forgotten(nacre: Nacre, shop: Path) -> None:
    assert (
        "Forgot the code of shop."
        in nacre("graph", "ingest-code", "--forget", "--project", "shop").out
    )
    assert nacre("graph", "callers", "Order.pay", code=3).err
    assert (
        "There was no code of shop."
        in nacre("graph", "ingest-code", "--forget", "--project", "shop").out
    )


def test_forgetting_a_project_forgets_its_code(nacre: Nacre, shop: Path) -> None:
    nacre("store", "Orders are paid in src/shop/orders.py.", "--project", "shop")
    nacre("forget", "--project", "shop", "--yes")
    assert nacre("graph", "callers", "Order.pay", code=3).err
    assert (
        "There was no code of shop."
        in nacre("graph", "ingest-code", "--forget", "--project", "shop").out
    )


def test_rebuild_keeps_the_code(nacre: Nacre, shop: Path) -> None:
    nacre("admin", "db", "rebuild", "--yes", "--no-vectors")
    assert callers(nacre, "Order.pay") == {"GiftOrder.wrap", "place.confirm"}


def test_missing_parsers_error_names_the_package_to_install(
    nacre: Nacre, process: Nacre, shop: Path
) -> None:
    without = (
        "import sys; sys.modules['tree_sitter_go'] = None; from nacre.__main__ import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", without, "graph", "ingest-code", str(shop), "--project", "shop"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 5
    assert "pip install 'nacre-memory[code]'" in result.stderr
    assert callers(nacre, "Order.pay"), "edges read earlier are still shown"
