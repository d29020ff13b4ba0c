"""Sessions are assigned to projects by folder and remote, and project pages can be edited."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies

from nacre.cli.options import project_slug
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.projects import list_projects, merge
from tests.app.conftest import World, says

Visit = Callable[..., str | None]


@pytest.fixture
def visit(world: World) -> Visit:
    """Return a function that ingests a session in a folder and returns its project."""
    count = 0

    def read(folder: Path | str) -> str | None:
        nonlocal count
        count += 1
        session = f"5e55-{count:04d}"
        world.transcript(
            session,
            says(
                "user", f"Hello number {count}.", uuid=f"u{count}", session=session, cwd=str(folder)
            ),
        )
        with world.open() as memory:
            report = memory.ingest()
        assert (report.turns, report.problems) == (1, ())
        matches = world.context().sessions.find(f"claude-code:{session}")
        return matches[0].project

    return read


def repository(folder: Path, remote: str | None = None) -> Path:
    (folder / ".git").mkdir(parents=True)
    if remote:
        (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    return folder


def slugs(world: World) -> list[str]:
    return [project.slug for project in world.context().files.projects()]


def test_repository_below_a_known_folder_is_a_separate_project(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    papers = tmp_path / "papers"
    billing = repository(papers / "billing", "git@host.example:acme/billing.git")
    local = repository(papers / "ledger")
    (papers / "letters").mkdir()
    assert visit(papers) == "papers"
    assert visit(billing) == "billing"
    assert visit(local) == "ledger"
    assert visit(local) == "ledger"
    assert visit(papers / "letters") == "papers"


def test_folders_inside_a_repository_belong_to_its_project(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    billing = repository(tmp_path / "billing")
    (billing / "api" / "v2").mkdir(parents=True)
    assert visit(billing / "api" / "v2") == "billing"
    assert visit(billing) == "billing"
    assert slugs(world) == ["billing"]


def test_folders_with_the_same_name_are_separate_projects(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    first, second = repository(tmp_path / "a" / "backend"), repository(tmp_path / "b" / "backend")
    assert visit(first) == "backend"
    assert visit(second) == "backend-2"
    assert visit(second) == "backend-2"
    assert visit(first) == "backend"


def test_folder_on_another_machine_matches_the_project_by_name(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    assert visit(repository(tmp_path / "backend")) == "backend"
    assert visit("/Users/somebody/code/backend") == "backend"
    assert slugs(world) == ["backend"]


@pytest.mark.parametrize(
    ("folder", "slug"),
    [
        ("/code/../../etc", "etc"),
        ("/code/..", None),
        ("/code/CON", "con-x"),
        (
            "/code/" + "long-name-" * 60,
            "long-name-long-name-long-name-long-name-long-name-long-name",
        ),
        ("/code/" + "x" * 5000, "x" * 60),
        ("/code/\N{ROCKET}\N{SPARKLES}", None),
        ("/code/two\nlines: {", "two-lines"),
        ("/code/a\x00b", "ab"),
        ("C:\\Users\\ann\\My App", "my-app"),
        ("relative/My.App!", "my-app"),
        ("/code/书店", "书店"),
    ],
)
def test_unusual_folder_name_gives_a_safe_project_name_or_none(
    world: World, visit: Visit, folder: str, slug: str | None
) -> None:
    assert visit(folder) == slug
    assert slugs(world) == ([slug] if slug else [])
    pages = [path.relative_to(world.vault).as_posix() for path in world.vault.rglob("project.md")]
    assert pages == ([f"projects/{slug}/project.md"] if slug else [])
    assert world.context().problems == []


def test_new_id_in_a_page_becomes_the_project_id(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    billing = repository(tmp_path / "billing")
    visit(billing)
    page = world.vault / "projects/billing/project.md"
    lines = page.read_text().splitlines()
    page.write_text(
        "\n".join("id: mine" if line.startswith("id:") else line for line in lines) + "\n"
    )
    assert visit(billing) == "billing"
    assert [(project.id, project.slug) for project in world.context().files.projects()] == [
        ("mine", "billing")
    ]


def test_page_without_an_id_gets_an_id_on_first_visit(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    page = world.write("projects/billing/project.md", "# Billing\n\nMy own words.\n")
    folder = repository(tmp_path / "billing")
    assert visit(folder) == "billing"
    text = page.read_text()
    assert "\nid: " in text
    assert str(folder) in text
    assert text.endswith("# Billing\n\nMy own words.\n")
    assert visit(folder) == "billing"


def test_deleted_page_is_recreated_on_the_next_visit(
    world: World, visit: Visit, tmp_path: Path
) -> None:
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


def test_renamed_project_folder_keeps_its_source_folders(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "billing")
    visit(folder)
    (world.vault / "projects/billing").rename(world.vault / "projects/invoices")
    assert visit(folder) == "invoices"
    assert slugs(world) == ["invoices"]


def test_copied_page_becomes_a_separate_project(world: World, visit: Visit, tmp_path: Path) -> None:
    folder = repository(tmp_path / "billing")
    visit(folder)
    world.write(
        "projects/archive/project.md", (world.vault / "projects/billing/project.md").read_text()
    )
    for _ in range(3):
        assert visit(folder) == "billing"
        assert slugs(world) == ["archive", "billing"]
    assert visit(repository(tmp_path / "archive")) in ("archive", "archive-2")
    assert visit(folder) == "billing"


@pytest.mark.parametrize(
    "page",
    ["---\nid: [\n---\n", "---\n- a\n---\n", "---\nroots: 5\nremotes: {a: b}\n---\n", "\x00"],
)
def test_invalid_page_does_not_prevent_project_resolution(
    world: World, visit: Visit, tmp_path: Path, page: str
) -> None:
    world.write("projects/billing/project.md", page)
    assert str(visit(repository(tmp_path / "billing"))).startswith("billing")


def test_page_that_becomes_invalid_is_left_unchanged(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    visit(repository(tmp_path / "billing"))
    page = world.write("projects/billing/project.md", "---\nid: [\n---\n")
    assert visit("/Users/somebody/billing") == "billing"
    assert page.read_text() == "---\nid: [\n---\n"


def test_label_is_assigned_to_the_configured_project(world: World) -> None:
    world.home.mkdir()
    (world.home / "config.toml").write_text(
        '[projects.labels]\n"Team chat" = "Acme Site"\nnoise = "!!!"\n'
    )
    for name, label in (("a", "Team chat"), ("b", "noise")):
        (world.user_home / f"{name}.md").write_text(
            f"---\nproject: {label}\n---\n# Note {name}\n\nThe pump runs dry.\n"
        )
    with world.open() as memory:
        memory.ingest(world.user_home)
    projects_by_title = {
        item.session.title: item.project for item in world.context().sessions.newest()
    }
    assert projects_by_title == {"Note a": "acme-site", "Note b": None}


def test_project_is_found_by_folder_name_or_alias(world: World) -> None:
    world.write("projects/My App/decision/cache.md", "We use Redis for the cache.\n")
    world.write(
        "projects/shop-2/project.md",
        f"---\nname: Corner Shop\naliases: {json.dumps(['Laden'])}\n---\n",
    )
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


def git(folder: Path, *arguments: str) -> None:
    options = (
        "-c",
        "user.name=o",
        "-c",
        "user.email=o@example.org",
        "-c",
        "init.defaultBranch=main",
    )
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


def clone(folder: Path, remote: str | None = None) -> Path:
    """Create a git repository with one commit and ``remote`` as its origin, like ``git clone``."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


@pytest.mark.parametrize(
    "remote",
    [
        "https://host.example/acme/billing.git",
        "https://host.example/acme/billing",
        "https://host.example/acme/billing/",
        "https://ann@host.example/acme/billing.git",
        "https://ann:word@host.example:8443/acme/billing.git",
        "HTTPS://Host.Example/Acme/Billing.git",
        "ssh://git@host.example/acme/billing.git",
        "ssh://git@host.example:2222/acme/billing",
        "ssh://git@ssh.host.example:443/acme/billing.git",
        "git+ssh://host.example/acme/billing.git",
        "git://host.example/acme/billing.git",
        "host.example:acme/billing",
        "git@host.example:/acme/billing.git",
    ],
)
def test_clones_of_one_remote_are_one_project_in_any_spelling(
    world: World, visit: Visit, tmp_path: Path, remote: str
) -> None:
    first = clone(tmp_path / "src" / "billing", "git@host.example:acme/billing.git")
    second = clone(tmp_path / "tmp" / "billing-again", remote)
    assert visit(first) == "billing"
    assert visit(second) == "billing"
    assert slugs(world) == ["billing"]


@pytest.mark.parametrize(
    "remote",
    [
        "git@host.example:bob/billing.git",
        "git@other.example:acme/billing.git",
        "git@host.example:1234/acme/billing.git",
        "../acme/billing",
    ],
)
def test_forks_and_same_named_remotes_are_separate_projects(
    world: World, visit: Visit, tmp_path: Path, remote: str
) -> None:
    assert (
        visit(clone(tmp_path / "src" / "billing", "https://host.example/acme/billing")) == "billing"
    )
    assert visit(clone(tmp_path / "other" / "billing", remote)) == "billing-2"


def test_remote_in_a_page_matches_any_spelling(world: World, visit: Visit, tmp_path: Path) -> None:
    page = world.write(
        "projects/invoices/project.md",
        "---\nremotes: ['ssh://git@host.example:22/acme/billing.git']\n---\n",
    )
    assert visit(clone(tmp_path / "billing", "https://host.example/acme/billing")) == "invoices"
    assert page.read_text().count("acme/billing") == 1


def test_later_remote_is_recorded_and_leads_clones_to_the_project(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    first = clone(tmp_path / "billing")
    assert visit(first) == "billing"
    git(first, "remote", "add", "origin", "git@host.example:acme/billing.git")
    assert visit(first) == "billing"
    assert visit(clone(tmp_path / "b2", "https://host.example/acme/billing")) == "billing"


def test_deleted_clone_keeps_its_project(world: World, visit: Visit, tmp_path: Path) -> None:
    remote = "git@host.example:acme/billing.git"
    assert visit(clone(tmp_path / "src" / "billing", remote)) == "billing"
    deleted = clone(tmp_path / "tmp" / "try-7", remote)
    assert visit(deleted) == "billing"
    shutil.rmtree(deleted)
    assert visit(deleted) == "billing"
    assert visit(deleted / "api") == "billing"
    world.rebuild()
    assert visit(deleted) == "billing"
    assert slugs(world) == ["billing"]


@pytest.mark.parametrize("remote", ["git@host.example:acme/billing.git", None])
def test_worktrees_belong_to_their_repositorys_project_even_when_deleted(
    world: World, visit: Visit, tmp_path: Path, remote: str | None
) -> None:
    main = clone(tmp_path / "src" / "billing", remote)
    places = [
        main / ".worktrees" / "one",
        main / ".claude" / "worktrees" / "two",
        tmp_path / ".codex" / "worktrees" / "3f2a" / "billing",
        tmp_path / ".cursor" / "worktrees" / "billing" / "x7",
        tmp_path / "src" / "billing-fix",
    ]
    for number, place in enumerate(places):
        git(main, "worktree", "add", "-q", "-b", f"b{number}", str(place))
    (places[-1] / "api").mkdir()
    assert [visit(place) for place in (*places, places[-1] / "api", main)] == ["billing"] * 7
    for place in places:
        git(main, "worktree", "remove", "--force", str(place))
    assert [visit(place) for place in (*places, places[-1] / "api")] == ["billing"] * 6
    assert slugs(world) == ["billing"]


@pytest.mark.parametrize("bare", ["billing.git", "billing/.bare"])
def test_worktrees_of_a_bare_repository_are_one_project(
    world: World, visit: Visit, tmp_path: Path, bare: str
) -> None:
    origin = clone(tmp_path / "origin")
    (tmp_path / "billing").mkdir()
    git(tmp_path, "clone", "-q", "--bare", str(origin), bare)
    git(tmp_path / bare, "worktree", "add", "-q", "-b", "one", str(tmp_path / "billing" / "one"))
    git(tmp_path / bare, "worktree", "add", "-q", "-b", "two", str(tmp_path / "billing" / "two"))
    git(tmp_path / bare, "remote", "set-url", "origin", "git@host.example:acme/billing.git")
    assert visit(tmp_path / "billing" / "one") == "billing"
    assert visit(tmp_path / "billing" / "two") == "billing"
    assert visit(clone(tmp_path / "elsewhere", "https://host.example/acme/billing")) == "billing"


def test_worktree_keeps_its_project_after_its_repository_is_deleted(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    main = clone(tmp_path / "billing")
    git(main, "worktree", "add", "-q", "-b", "fix", str(tmp_path / "fix"))
    assert visit(main) == "billing"
    shutil.rmtree(main)
    assert visit(tmp_path / "fix") == "billing"


@pytest.mark.parametrize("remote", ["git@host.example:acme/Wren.git", None])
def test_local_clone_belongs_to_the_original_repositorys_project(
    world: World, visit: Visit, tmp_path: Path, remote: str | None
) -> None:
    first = clone(tmp_path / "Code" / "wren", remote)
    git(first, "clone", "-q", ".", "../copy")
    git(tmp_path, "clone", "-q", f"file://{tmp_path}/Code/copy", "again")
    assert [visit(item) for item in (tmp_path / "again", first, tmp_path / "Code" / "copy")] == [
        "wren"
    ] * 3
    assert slugs(world) == ["wren"]


@pytest.mark.parametrize("remote", ["git@host.example:acme/wren.git", None])
def test_clone_listing_its_origin_path_keeps_its_project(
    world: World, visit: Visit, tmp_path: Path, remote: str | None
) -> None:
    first = clone(tmp_path / "wren", remote)
    git(first, "clone", "-q", ".", "../copy")
    world.write(
        "projects/letters/project.md",
        f"---\nremotes: ['{first}/.']\nroots: ['{tmp_path}/copy']\n---\n",
    )
    assert visit(tmp_path / "copy") == "letters"
    assert visit(first) == "letters"


def test_repositories_with_each_other_as_remote_are_one_project(
    visit: Visit, tmp_path: Path
) -> None:
    first = repository(tmp_path / "wren", str(tmp_path / "lark"))
    repository(tmp_path / "lark", str(first))
    assert visit(first) in ("wren", "lark")


def test_clone_of_a_deleted_repository_is_named_after_the_repository(
    visit: Visit, tmp_path: Path
) -> None:
    assert visit(repository(tmp_path / "copy", f"{tmp_path}/gone/wren/.")) == "wren"


def test_submodule_belongs_to_the_project_of_its_remote(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    library, outer = clone(tmp_path / "library"), clone(tmp_path / "outer")
    git(
        outer,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(library),
        "vendor/lib",
    )
    git(
        outer / "vendor" / "lib", "remote", "set-url", "origin", "git@host.example:acme/library.git"
    )
    assert visit(outer / "vendor" / "lib") == "library"
    assert visit(outer) == "outer"
    assert visit(clone(tmp_path / "again", "https://host.example/acme/library")) == "library"


def test_full_list_of_folders_in_a_page_is_not_extended(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    roots = [f"/gone/{number}" for number in range(50)]
    page = world.write(
        "projects/billing/project.md",
        f"---\nremotes: [host.example/acme/billing]\nroots: {json.dumps(roots)}\n---\n",
    )
    assert visit(clone(tmp_path / "b51", "git@host.example:acme/billing.git")) == "billing"
    assert "b51" not in page.read_text()


Place = tuple[str, str | None]


def read(world: World, places: Sequence[Place], *, at_once: int = 1) -> tuple[str, ...]:
    """Ingest a session with a memory per (folder, branch), in batches; return the last hints."""
    hints: tuple[str, ...] = ()
    for number, (folder, branch) in enumerate(places):
        session = f"5e55-{abs(hash((folder, branch))):020d}"
        words = says(
            "user",
            f"Remember: {Path(folder).name} listens on port {number}001.",
            uuid=f"u{session}",
            session=session,
            cwd=folder,
        )
        stamp = f"2026-11-19T{number:02d}:00:00.000Z"
        world.transcript(session, {**words, "gitBranch": branch or "", "timestamp": stamp})
        if number % at_once == 0 or number == len(places) - 1:
            with world.open() as memory:
                report = memory.ingest()
            assert report.problems == ()
            hints = report.hints
    return hints


def projects_by_place(world: World) -> dict[Place, str | None]:
    sessions = world.context().sessions.newest(limit=-1)
    return {
        (session.session.cwd or "", session.session.branch): session.project for session in sessions
    }


PLACES: dict[Place, str | None] = {
    # home folders are not projects
    ("/home/ines", "main"): None,
    ("/root", None): None,
    ("D:\\Users\\olga", "main"): None,
    ("/mnt/c/Users/olga", "main"): None,
    ("/home/ines/lab/tern", "main"): "tern",
    ("D:\\Users\\olga\\lab\\ibis", "main"): "ibis",
    # a parent folder is a project only if it looks like a repository
    ("/home/ines/heap", None): "heap",
    ("/home/ines/heap/crake", "main"): "crake",
    ("/home/ines/dev", "main"): None,
    ("/home/ines/dev/dunlin", "main"): "dunlin",
    ("/home/ines/lab/heron", "main"): "heron",
    ("/home/ines/lab/heron/api", "main"): "heron",
    ("/home/ines/lab/heron/api/v2", None): "heron",
    ("/srv/api", None): "api",
    # worktrees
    ("/home/ines/lab/heron/.claude/worktrees/two", "two"): "heron",
    ("/home/ines/lab/heron.worktrees/three", "three"): "heron",
    ("/home/ines/lab/heron-worktrees/four/api", "four"): "heron",
    ("/home/ines/lab/heron-quick-fix", "ines/quick-fix"): "heron",
    ("/home/ines/lab/heronry", "main"): "heronry",
    ("/home/ines/.codex/worktrees/3f2a/heron", None): "heron",
    ("/home/ines/.cursor/worktrees/heron/x7q", "x7q"): "heron",
    ("/home/ines/conductor/workspaces/heron/lima", "lima"): "heron",
    ("/private/var/folders/xy/T/kanban/worktrees/ab12-door/heron", "vk/ab12-door"): "heron",
    ("/home/ines/.cursor/worktrees/smew/y8r", None): "smew",
    ("/home/ines/.codex/worktrees/4d5e/smew", None): "smew",
}


@pytest.mark.parametrize("seed", range(4))
def test_order_of_reading_does_not_change_the_projects(world: World, seed: int) -> None:
    places = list(PLACES)
    random.Random(seed).shuffle(places)  # noqa: S311 - not for cryptography
    read(world, places, at_once=(5, 8, 13, 50)[seed])
    assert projects_by_place(world) == PLACES
    projects = sorted({slug for slug in PLACES.values() if slug})
    assert slugs(world) == projects
    ingest(world.context(), IngestOptions(force=True))
    with world.open() as memory:
        projects_of_memories = {
            int(item.content.rstrip(".")[:-3].split()[-1]): item.project
            for item in memory.list(limit=100)
        }
    assert len(projects_of_memories) > 20  # a later port of the same folder replaces the earlier
    assert (
        projects_of_memories.items()
        <= {number: PLACES[place] for number, place in enumerate(places)}.items()
    )
    assert projects_by_place(world) == PLACES
    world.rebuild()
    assert (projects_by_place(world), slugs(world)) == (PLACES, projects)


@pytest.mark.parametrize("seed", range(3))
def test_deleted_worktrees_in_any_folder_belong_to_the_repository_with_their_branch(
    world: World, tmp_path: Path, seed: int
) -> None:
    main, other = clone(tmp_path / "lab" / "heron"), tmp_path / "lab" / "ibis"
    other.mkdir()
    git(other, "init", "-q")
    first = subprocess.run(
        ["git", "rev-list", "--max-parents=0", "HEAD"], cwd=main, capture_output=True, check=True
    )
    places = [
        (world.user_home / ".squad/worktrees/door_18c3ab", "ines/door"),
        (world.user_home / ".local/share/tool/worktree" / first.stdout.decode().strip() / "y", "y"),
        (tmp_path / "board/worktrees/ab12-wide-door", "vk/ab12-wide-door"),
        (tmp_path / "lab" / "quick-fix", "quick-fix"),
        (main / ".tool" / "oslo", "oslo"),
    ]
    for place, branch in places:
        git(main, "worktree", "add", "-q", "-b", branch, str(place))
        git(main, "worktree", "remove", "--force", str(place))
    if seed:
        git(main, "pack-refs", "--all")
    sessions = [(str(place), branch) for place, branch in [*places, (main, "main"), (other, None)]]
    random.Random(seed).shuffle(sessions)  # noqa: S311 - not for cryptography
    read(world, sessions)
    assert projects_by_place(world) == {
        (folder, branch): "ibis" if folder == str(other) else "heron" for folder, branch in sessions
    }
    assert slugs(world) == ["heron", "ibis"]


ACME, BOB = "git@host.example:acme/backend.git", "git@host.example:bob/backend.git"
GULL, TERN = "git@host.example:acme/gull.git", "git@host.example:acme/tern.git"
MIXTURES: dict[str, list[tuple[str, str | None, str]]] = {
    # (folder, remote, expected group)
    "container": [
        ("/workspace", GULL, "gull"),
        ("/workspace", TERN, "tern"),
        ("/workspace", None, "none"),
        ("/workspace/api", None, "api"),
    ],
    "folder": [
        ("/srv/app", GULL, "gull"),
        ("/srv/app", TERN, "tern"),
        ("/srv/app", None, "none"),
    ],
    "container of a remote": [
        ("/workspace", GULL, "gull"),
        ("/workspace", None, "gull"),
        ("/workspace/api", None, "gull"),
    ],
    "names": [
        ("/a/backend", ACME, "acme"),
        ("/b/backend", BOB, "bob"),
        ("/c/backend", None, "other"),
        ("/c/backend/api", None, "other"),
    ],
    "folders": [
        ("/a/backend", ACME, "acme"),
        ("/a/backend", None, "acme"),
        ("/b/backend", BOB, "bob"),
        ("/b/backend", None, "bob"),
    ],
    "worktree": [
        ("/a/backend", ACME, "acme"),
        ("/b/backend", BOB, "bob"),
        ("/home/ines/.codex/worktrees/3f2a/backend", None, "tree"),
    ],
}


@pytest.mark.parametrize("mixture", MIXTURES)
@settings(max_examples=4, deadline=None, derandomize=True)
@given(data=strategies.data())
def test_sessions_in_any_order_form_the_same_projects(
    tmp_path_factory: pytest.TempPathFactory, mixture: str, data: strategies.DataObject
) -> None:
    places = MIXTURES[mixture]
    world = World(tmp_path_factory.mktemp("mixture"))
    for number in data.draw(strategies.permutations(range(len(places)))):
        folder, remote, _ = places[number]
        session, stamp = (
            f"0199a213-81c0-7800-8aa1-{number:012d}",
            f"2026-11-19T1{number}:00:00.000Z",
        )
        git = {"branch": "main", **({"repository_url": remote} if remote else {})}
        meta = {"id": session, "timestamp": stamp, "cwd": folder, "git": git}
        prompt = {"type": "user_message", "message": f"Hello {number}.", "kind": "plain"}
        records = [("session_meta", meta), ("event_msg", prompt)]
        path = world.user_home / f".codex/sessions/2026/11/19/rollout-{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(
                json.dumps({"timestamp": stamp, "type": kind, "payload": payload}) + "\n"
                for kind, payload in records
            )
        )
        with world.open() as memory:
            assert memory.ingest().problems == ()
    projects = {
        int(entry.session.native_id[-1]): entry.project
        for entry in world.context().sessions.newest(limit=-1)
    }
    expected = {
        group: {projects[n] for n, place in enumerate(places) if place[2] == group}
        for _, _, group in places
    }
    assert all(len(slugs) == 1 for slugs in expected.values())
    assert len(set(map(min, (map(str, slugs) for slugs in expected.values())))) == len(expected)
    assert expected.get("none", {None}) == {None}


def test_project_with_own_text_is_kept_when_its_sessions_move(world: World) -> None:
    read(world, [("/lab/heron/api", None)])
    page = world.vault / "projects/api/project.md"
    page.write_text(page.read_text() + "\nAsk Lena.\n")
    read(world, [("/lab/heron", "main")])
    assert set(projects_by_place(world).values()) == {"heron"}
    assert "Ask Lena." in page.read_text()


def test_renamed_folder_and_link_keep_the_project(world: World, tmp_path: Path) -> None:
    old, new = clone(tmp_path / "rug"), tmp_path / "mat"
    read(world, [(str(old), "main")])
    old.rename(new)
    old.symlink_to(new)
    read(world, [(str(new), "main"), (str(old), "main"), (str(old / "api"), "main")])
    assert set(projects_by_place(world).values()) == {"rug"}
    old.unlink()
    later = tmp_path / "felt"
    new.rename(later)
    read(world, [(str(later), "main")])
    copy = tmp_path / "copy"
    shutil.copytree(later, copy)
    read(world, [(str(copy), "main")])
    assert (
        projects_by_place(world)[str(later), "main"],
        projects_by_place(world)[str(copy), "main"],
    ) == ("rug", "copy")


def test_linked_folder_is_one_project(world: World, tmp_path: Path) -> None:
    (tmp_path / "mat").mkdir()
    (tmp_path / "rug").symlink_to(tmp_path / "mat")
    read(world, [(str(tmp_path / "rug"), None), (str(tmp_path / "mat"), None)])
    assert slugs(world) == ["mat"]


def test_folder_that_may_have_been_renamed_is_reported(world: World, tmp_path: Path) -> None:
    clone(tmp_path / "felt")
    clone(tmp_path / "yarn", "git@host.example:acme/yarn.git")
    places = [("/gone/wool", "main"), (tmp_path / "rug", "main"), (tmp_path / "yarn", "main")]
    hints = read(world, [(str(folder), branch) for folder, branch in places])
    assert hints == ()
    hints = read(
        world,
        [*((str(folder), branch) for folder, branch in places), (str(tmp_path / "felt"), "main")],
    )
    assert hints == ("The folder of rug is gone. If it is now felt: nacre project merge rug felt",)
    with world.open() as memory:
        memory.ingest()
    assert [line.hint for line in list_projects(world.context()) if line.hint] == list(hints)
    merge(world.context(), "rug", "felt")
    assert not any(line.hint for line in list_projects(world.context()))
