"""Which project a session belongs to, and what people may do with a project's page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.cli.options import project_slug
from tests.app.conftest import World, says

Visit = Callable[..., str | None]


@pytest.fixture
def visit(world: World) -> Visit:
    """``visit(folder)``: a session there is read; gives its project."""
    count = 0

    def read(folder: Path | str) -> str | None:
        nonlocal count
        count += 1
        session = f"5e55-{count:04d}"
        world.transcript(
            session, says("user", f"Hello number {count}.", uuid=f"u{count}", session=session, cwd=str(folder))
        )
        with world.open() as memory:
            report = memory.ingest()
        assert (report.turns, report.problems) == (1, ())
        found = world.context().sessions.find(f"claude-code:{session}")
        return found[0].project

    return read


def repository(folder: Path, remote: str | None = None) -> Path:
    (folder / ".git").mkdir(parents=True)
    if remote:
        (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    return folder


def slugs(world: World) -> list[str]:
    return [project.slug for project in world.context().files.projects()]


def test_a_repository_below_a_known_folder_is_a_project_of_its_own(world: World, visit: Visit, tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    billing = repository(papers / "billing", "git@host.example:acme/billing.git")
    local = repository(papers / "ledger")
    (papers / "letters").mkdir()
    assert visit(papers) == "papers"
    assert visit(billing) == "billing"
    assert visit(local) == "ledger"
    assert visit(local) == "ledger"
    assert visit(papers / "letters") == "papers"


def test_folders_below_a_repository_belong_to_it(world: World, visit: Visit, tmp_path: Path) -> None:
    billing = repository(tmp_path / "billing")
    (billing / "api" / "v2").mkdir(parents=True)
    assert visit(billing / "api" / "v2") == "billing"
    assert visit(billing) == "billing"
    assert slugs(world) == ["billing"]


def test_two_folders_of_one_name_on_one_machine_are_two_projects(world: World, visit: Visit, tmp_path: Path) -> None:
    first, second = repository(tmp_path / "a" / "backend"), repository(tmp_path / "b" / "backend")
    assert visit(first) == "backend"
    assert visit(second) == "backend-2"
    assert visit(second) == "backend-2"
    assert visit(first) == "backend"


def test_a_folder_of_another_machine_is_the_project_of_that_name(world: World, visit: Visit, tmp_path: Path) -> None:
    assert visit(repository(tmp_path / "backend")) == "backend"
    assert visit("/Users/somebody/code/backend") == "backend"
    assert slugs(world) == ["backend"]


@pytest.mark.parametrize(
    ("folder", "slug"),
    [
        ("/code/../../etc", "etc"),
        ("/code/..", None),
        ("/code/CON", "con-x"),
        ("/code/" + "long-name-" * 60, "long-name-long-name-long-name-long-name-long-name-long-name"),
        ("/code/" + "x" * 5000, "x" * 60),
        ("/code/\N{ROCKET}\N{SPARKLES}", None),
        ("/code/two\nlines: {", "two-lines"),
        ("/code/a\x00b", "ab"),
        ("C:\\Users\\ann\\My App", "my-app"),
        ("relative/My.App!", "my-app"),
        ("/code/书店", "书店"),
    ],
)  # fmt: skip
def test_an_odd_folder_gives_a_safe_name_or_none(world: World, visit: Visit, folder: str, slug: str | None) -> None:
    assert visit(folder) == slug
    assert slugs(world) == ([slug] if slug else [])
    pages = [path.relative_to(world.vault).as_posix() for path in world.vault.rglob("project.md")]
    assert pages == ([f"projects/{slug}/project.md"] if slug else [])
    assert world.context().problems == []


def test_a_new_id_in_a_page_is_taken(world: World, visit: Visit, tmp_path: Path) -> None:
    billing = repository(tmp_path / "billing")
    visit(billing)
    page = world.vault / "projects/billing/project.md"
    lines = page.read_text().splitlines()
    page.write_text("\n".join("id: mine" if line.startswith("id:") else line for line in lines) + "\n")
    assert visit(billing) == "billing"
    assert [(project.id, project.slug) for project in world.context().files.projects()] == [("mine", "billing")]


def test_a_page_without_an_id_gets_one_when_its_project_is_met(world: World, visit: Visit, tmp_path: Path) -> None:
    page = world.write("projects/billing/project.md", "# Billing\n\nMy own words.\n")
    folder = repository(tmp_path / "billing")
    assert visit(folder) == "billing"
    text = page.read_text()
    assert "\nid: " in text
    assert str(folder) in text
    assert text.endswith("# Billing\n\nMy own words.\n")
    assert visit(folder) == "billing"


def test_a_deleted_page_is_written_anew(world: World, visit: Visit, tmp_path: Path) -> None:
    folder = repository(tmp_path / "billing")
    visit(folder)
    page = world.vault / "projects/billing/project.md"
    page.unlink()
    with world.open() as memory:
        memory.list()
        memory.ingest()
    assert slugs(world) == []
    assert visit(folder) == "billing"
    assert page.exists()


def test_a_renamed_folder_keeps_what_resolves_to_it(world: World, visit: Visit, tmp_path: Path) -> None:
    folder = repository(tmp_path / "billing")
    visit(folder)
    (world.vault / "projects/billing").rename(world.vault / "projects/invoices")
    assert visit(folder) == "invoices"
    assert slugs(world) == ["invoices"]


def test_a_copied_page_is_a_project_beside_the_first(world: World, visit: Visit, tmp_path: Path) -> None:
    folder = repository(tmp_path / "billing")
    visit(folder)
    world.write("projects/archive/project.md", (world.vault / "projects/billing/project.md").read_text())
    for _ in range(3):
        assert visit(folder) == "billing"
        assert slugs(world) == ["archive", "billing"]
    assert visit(repository(tmp_path / "archive")) in ("archive", "archive-2")
    assert visit(folder) == "billing"


@pytest.mark.parametrize(
    "page", ["---\nid: [\n---\n", "---\n- a\n---\n", "---\nroots: 5\nremotes: {a: b}\n---\n", "\x00"]
)
def test_a_broken_page_stops_nothing(world: World, visit: Visit, tmp_path: Path, page: str) -> None:
    world.write("projects/billing/project.md", page)
    assert str(visit(repository(tmp_path / "billing"))).startswith("billing")


def test_a_page_that_breaks_later_stays_as_it_is(world: World, visit: Visit, tmp_path: Path) -> None:
    visit(repository(tmp_path / "billing"))
    page = world.write("projects/billing/project.md", "---\nid: [\n---\n")
    assert visit("/Users/somebody/billing") == "billing"
    assert page.read_text() == "---\nid: [\n---\n"


def test_a_label_goes_to_the_project_that_the_settings_name(world: World) -> None:
    world.home.mkdir()
    (world.home / "config.toml").write_text('[projects.labels]\n"Team chat" = "Acme Site"\nnoise = "!!!"\n')
    for name, label in (("a", "Team chat"), ("b", "noise")):
        (world.user_home / f"{name}.md").write_text(
            f"---\nproject: {label}\n---\n# Note {name}\n\nThe pump runs dry.\n"
        )
    with world.open() as memory:
        memory.ingest(world.user_home)
    found = {item.session.title: item.project for item in world.context().sessions.newest()}
    assert found == {"Note a": "acme-site", "Note b": None}


def test_a_project_is_meant_by_its_folder_its_name_or_its_alias(world: World) -> None:
    world.write("projects/My App/decision/cache.md", "We use Redis for the cache.\n")
    world.write("projects/shop-2/project.md", f"---\nname: Corner Shop\naliases: {json.dumps(['Laden'])}\n---\n")
    with world.open() as memory:
        memory.list()
    context = world.context()
    names = ("My App", "my app", "shop-2", "Corner Shop", "Laden", "Else Where")
    assert [project_slug(context, name) for name in names] == [
        "My App",
        "My App",
        "shop-2",
        "shop-2",
        "shop-2",
        "else-where",
    ]
