"""``nacre report``: numbers on the terminal, and pictures in a file."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Nacre


def test_a_report_tells_what_was_kept_and_writes_pictures_to_a_file(nacre: Nacre, tmp_path: Path) -> None:
    nacre("store", "The tide tables are printed in March", "--project", "harbour")
    assert "  fact  1  1 new  " in nacre("report").out
    page = tmp_path / "year.html"
    told = nacre("report", "--html", str(page), "--json").json
    assert told["path"] == str(page)
    assert told["held"] == [{"name": "fact", "values": [0] * 27 + [1]}]
    assert "<svg" in page.read_text("utf-8")


def test_a_report_takes_no_file_that_is_there(nacre: Nacre, tmp_path: Path) -> None:
    page = tmp_path / "year.html"
    page.write_text("mine", "utf-8")
    assert "--force" in nacre("report", "--html", str(page), code=4).err
    assert page.read_text("utf-8") == "mine"
    nacre("report", "--html", str(page), "--force")
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_a_report_of_a_project_that_nobody_knows_warns(nacre: Nacre) -> None:
    nacre("store", "The tide tables are printed in March", "--project", "harbour")
    outcome = nacre("report", "--project", "harbor", code=None)
    assert "harbor" in outcome.err
