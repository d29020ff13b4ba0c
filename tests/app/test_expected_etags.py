"""An edit with an expected etag is written only over the version that was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.errors import EditConflictError, InvalidInputError, InvalidMemoryError, NotFoundError
from nacre.home.change import page_path
from tests.app.conftest import World

PAGE = "# Hive\n\nSensors of the bee yard.\n"


def test_edit_with_the_current_etag_changes_the_etag(world: World) -> None:
    with world.open() as memory:
        memory_id = memory.store("Uploads may be 10 MB").memory_id
        before = memory.call("look", reference=memory_id)
        memory.edit(memory_id, expected=before.etag, content="Uploads may be 25 MB")
        after = memory.call("look", reference=memory_id)
    assert after.memory.content == "Uploads may be 25 MB"
    assert after.etag != before.etag


def test_reading_a_memory_keeps_its_etag(world: World) -> None:
    with world.open() as memory:
        memory_id = memory.store("Uploads may be 10 MB").memory_id
        assert (
            memory.call("look", reference=memory_id).etag
            == memory.call("look", reference=memory_id).etag
        )


def test_edit_with_an_old_etag_conflicts_with_a_manual_edit(world: World) -> None:
    with world.open() as memory:
        memory_id = memory.store("Uploads may be 10 MB").memory_id
        before = memory.call("look", reference=memory_id)
        file = world.memory_file(memory_id)
        file.write_text(file.read_text("utf-8").replace("10 MB", "40 MB"), "utf-8")
        with pytest.raises(EditConflictError):
            memory.edit(memory_id, expected=before.etag, content="Uploads may be 25 MB")
        assert memory.get(memory_id).content == "Uploads may be 40 MB"
        assert "40 MB" in file.read_text("utf-8")


def test_edit_without_an_etag_is_always_written(world: World) -> None:
    with world.open() as memory:
        memory_id = memory.store("Uploads may be 10 MB").memory_id
        memory.edit(memory_id, importance=9)
        assert memory.edit(memory_id, content="Uploads may be 25 MB").importance == 9


@pytest.mark.parametrize(("name", "path"), [("profile", "profile.md"), ("identity", "identity.md")])
def test_owners_page_is_written_only_with_the_current_etag(
    world: World, name: str, path: str
) -> None:
    with world.open() as memory:
        empty = memory.call("page-own", name=name)
        first = memory.call(
            "page-write", name=name, text="Prefers short answers.", expected=empty.etag
        )
        with pytest.raises(EditConflictError):
            memory.call("page-write", name=name, text="Prefers long answers.", expected=empty.etag)
        memory.call("page-write", name=name, text="", expected=first.etag)
        assert memory.call("page-own", name=name).etag == empty.etag == ""
    assert not (world.vault / path).exists()


@pytest.fixture
def page(world: World) -> Path:
    """The page of a project with a folder."""
    world.write(
        page_path("hive"), "---\nid: hive-1\nname: Hive\nroots: [/code/hive]\n---\n# Hive\n"
    )
    return world.vault / page_path("hive")


def test_project_page_keeps_front_matter_missing_in_new_text(world: World, page: Path) -> None:
    with world.open() as memory:
        before = memory.call("page-own", name="project", project="Hive")
        assert before.text == page.read_text("utf-8").strip()
        after = memory.call(
            "page-write", name="project", project="hive", text=PAGE, expected=before.etag
        )
        assert memory.call("place", folder="/code/hive").project == "hive"
    assert after.text.endswith(PAGE.strip())
    assert "roots: [/code/hive]" in page.read_text("utf-8")


def test_project_page_edit_applies_immediately_and_is_undone_exactly(
    world: World, page: Path
) -> None:
    before = page.read_bytes()
    with world.open() as memory:
        text = (
            page.read_text("utf-8").replace("/code/hive", "/code/yard").replace("hive-1", "another")
        )
        memory.call("page-write", name="project", project="hive", text=text)
        assert memory.call("place", folder="/code/yard").project == "hive"
        assert "id: hive-1" in page.read_text("utf-8")
        memory.undo()
    assert page.read_bytes() == before


def test_project_page_with_an_old_etag_conflicts_with_an_edit(world: World, page: Path) -> None:
    with world.open() as memory:
        before = memory.call("page-own", name="project", project="hive")
        page.write_text(page.read_text("utf-8") + "\nBy hand.\n", "utf-8")
        with pytest.raises(EditConflictError):
            memory.call(
                "page-write", name="project", project="hive", text=PAGE, expected=before.etag
            )
    assert "By hand." in page.read_text("utf-8")


def test_invalid_page_requests_are_refused(world: World, page: Path) -> None:
    with world.open() as memory:
        with pytest.raises(NotFoundError):
            memory.call("page-own", name="project", project="mill")
        with pytest.raises(InvalidInputError):
            memory.call("page-own", name="project")
        with pytest.raises(InvalidInputError):
            memory.call("page-write", name="project", project="hive", text="")
        with pytest.raises(InvalidMemoryError):
            memory.call("page-write", name="project", project="hive", text="---\nname: [\n---\n")
    assert page.read_text("utf-8").startswith("---\nid: hive-1\n")
