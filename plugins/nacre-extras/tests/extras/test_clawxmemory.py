"""ClawXMemory's clients find its API below /clawxmemory/api."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nacre.api import open_memory
from tests.daemon.conftest import home
from tests.web_server.conftest import Site

Serve = Callable[..., Site]


@pytest.fixture
def here(site: Serve) -> Site:
    """A home with a memory of a project, a memory without a project, and a retired memory."""
    with open_memory() as memory:
        memory.store("Billing uses PostgreSQL", kind="decision", project="acme-billing")
        memory.store("Always answer in short sentences", kind="preference")
        memory.retire(
            memory.store("Lanterns hang above the quay", project="acme-billing").memory_id
        )
        memory.recall("which database does billing use?")
    return site()


def get_json(here: Site, path: str, **headers: str) -> Any:
    answer = here.get(f"/clawxmemory/api/{path}", **(headers or here.token))
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(here: Site, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    return here.client.post(
        f"{here.base}/clawxmemory/api/{path}", json=body, headers=headers or here.token
    )


def act(here: Site, action: str, headers: dict[str, str] | None = None, **body: Any) -> Any:
    return post(here, "memory/actions", {"action": action, **body}, headers)


def test_entries_are_listed_by_filters_and_read_by_path(here: Site) -> None:
    entries = get_json(here, "memory/list")
    assert {item["type"] for item in entries} == {"project", "user"}
    entry = get_json(here, "memory/list?kind=project")[0]
    assert entry["name"] == "Billing uses PostgreSQL"
    assert entry["relativePath"].startswith(
        f"projects/{entry['projectId']}/Project/billing-uses-postgresql-"
    )
    assert get_json(here, f"memory/list?projectId={entry['projectId']}&q=postgresql") == [entry]
    assert get_json(here, "memory/list?q=nothing-of-that") == []
    assert len(get_json(here, "memory/list?limit=1&offset=1")) == 1
    record = get_json(here, f"memory/get?ids={entry['relativePath']}")[0]
    assert "Billing uses PostgreSQL" in record["content"]
    assert record["content"].startswith("---\nname: Billing uses PostgreSQL\n")
    assert get_json(here, "memory/user-summary")["preferences"] == [
        "Always answer in short sentences"
    ]
    group = get_json(here, "projects?q=billing")[0]
    assert (group["projectName"], group["projectCount"], group["feedbackCount"]) == (
        "acme-billing",
        1,
        0,
    )


def test_state_routes_report_status(here: Site) -> None:
    overview = get_json(here, "overview")
    assert (overview["formalProjectCount"], overview["userProfileCount"]) == (1, 1)
    assert overview["dashboardStatus"] in ("healthy", "warning")
    snapshot = get_json(here, "snapshot?limit=1")
    assert len(snapshot["recentMemoryFiles"]) == 1
    assert snapshot["settings"]["autoDreamIntervalMinutes"] == 0
    assert post(here, "index/run", {}).json().keys() == {
        "sessions",
        "turns",
        "memories",
        "problems",
    }


def test_actions_require_the_callers_permission(here: Site) -> None:
    path = get_json(here, "memory/list?kind=project")[0]["relativePath"]
    assert (
        act(here, "delete_entries", here.browser(), ids=[path]).status_code == 409
    )  # it is not deprecated
    owner = here.browser()
    assert act(here, "edit_entry", owner, id=path, name="The database of billing").json()[
        "mutatedIds"
    ] == [path]
    entry = get_json(here, "memory/list?kind=project")[0]
    assert entry["name"] == "The database of billing"
    path = entry["relativePath"]
    assert act(here, "deprecate_entries", owner, ids=[path]).json()["ok"]
    assert get_json(here, "memory/list?kind=project") == []
    assert act(here, "restore_entries", here.token, ids=[path]).status_code == 403
    assert act(here, "restore_entries", owner, ids=[path]).json()["ok"]
    assert get_json(here, "memory/list?kind=project")
    act(here, "deprecate_entries", owner, ids=[path])
    assert act(here, "delete_entries", here.token, ids=[path]).status_code == 403
    assert act(here, "delete_entries", owner, ids=[path]).json()["ok"]
    assert here.get(f"/clawxmemory/api/memory/get?ids={path}", **owner).status_code == 404


def test_inbox_entry_is_filed_into_a_project(here: Site) -> None:
    outcome = here.ask("store", {"content": "The ferry is paid in coins"}, **here.token).json()
    waiting = get_json(here, "tmp")
    assert waiting["totalFiles"] == 1
    path = waiting["projectEntries"][0]["relativePath"]
    assert path.startswith("projects/_tmp/")
    target = get_json(here, "projects")[0]["projectId"]
    filed = act(here, "archive_tmp", here.browser(), ids=[path], targetProjectId=target)
    assert filed.json()["mutatedIds"] == [path]
    assert get_json(here, "tmp")["totalFiles"] == 0
    with open_memory() as memory:
        assert memory.get(outcome["memory_id"]).project == "acme-billing"


def test_project_page_accepts_name_and_description(here: Site) -> None:
    project = get_json(here, "projects")[0]["projectId"]
    body = {
        "projectId": project,
        "projectName": "Billing",
        "description": "Charges accounts.",
        "status": "active",
    }
    assert act(here, "edit_project_meta", here.token, **body, aliases=[]).status_code == 403
    assert act(here, "edit_project_meta", here.browser(), **body, aliases=["bill"]).json()["ok"]
    answer = here.ask("project-show", {"project": "bill"}, **here.token).json()
    assert answer["project"]["name"] == "Billing"
    assert "Charges accounts." in answer["page"]


def test_only_owner_changes_settings_and_runs_dreams(here: Site) -> None:
    assert post(here, "settings", {"autoDreamIntervalMinutes": 360}).status_code == 403
    assert post(here, "dream/run", {}).status_code == 403
    owner = here.browser()
    report = post(here, "settings", {"autoDreamIntervalMinutes": 360}, owner)
    assert report.json()["autoDreamIntervalMinutes"] == 1440
    assert post(here, "settings", {"reasoningMode": "accuracy_first"}, owner).status_code == 400
    assert post(here, "dream/run", {}, owner).json()["onlyPlanned"] in (True, False)
    cleared = post(here, "clear", {}, owner)
    assert (cleared.status_code, cleared.json()["code"]) == (409, "conflict")
    assert "nacre forget" in cleared.json()["hint"]


def test_bundle_is_exported_and_imported(here: Site) -> None:
    bundle = get_json(here, "export")
    assert bundle["formatVersion"] == "clawxmemory-memory-snapshot.v3"
    texts = [file["content"] for file in bundle["files"]]
    assert any("Lanterns" in text and "deprecated: true" in text for text in texts)
    for file in bundle["files"]:
        file["content"] = file["content"].replace("PostgreSQL", "MariaDB on the second server")
    assert post(here, "import", bundle).status_code == 403
    answer = post(here, "import", bundle, here.browser()).json()
    assert answer["imported"]["memoryFiles"] >= 1
    assert [item["name"] for item in get_json(here, "memory/list?q=mariadb")]
    assert post(here, "import", {"formatVersion": "x"}).status_code == 400
    assert not list(home().glob("import-*"))


def test_unknown_action_is_refused_in_the_clients_format(here: Site) -> None:
    for body in ({"action": "explode"}, {"action": "retire"}, {"action": "deprecate_entries"}, {}):
        response = post(here, "memory/actions", body)
        assert response.status_code == 400
        assert response.json()["error"] == response.json()["detail"]
    assert here.get("/clawxmemory/api/memory/get", **here.token).status_code == 400
    assert here.get("/clawxmemory/api/cases/nothing", **here.token).status_code == 404
    assert here.get("/clawxmemory/api/nothing", **here.token).status_code == 404
