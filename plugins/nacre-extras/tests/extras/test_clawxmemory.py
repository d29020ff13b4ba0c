"""ClawXMemory's clients find what they know, below /clawxmemory/api."""

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
    """A home with a memory of a project, one of none and a retired one."""
    with open_memory() as memory:
        memory.store("Billing uses PostgreSQL", kind="decision", project="acme-billing")
        memory.store("Always answer in short sentences", kind="preference")
        memory.retire(
            memory.store("Lanterns hang above the quay", project="acme-billing").memory_id
        )
        memory.recall("which database does billing use?")
    return site()


def asked(here: Site, path: str, **headers: str) -> Any:
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
    listed = asked(here, "memory/list")
    assert {one["type"] for one in listed} == {"project", "user"}
    one = asked(here, "memory/list?kind=project")[0]
    assert one["name"] == "Billing uses PostgreSQL"
    assert one["relativePath"].startswith(
        f"projects/{one['projectId']}/Project/billing-uses-postgresql-"
    )
    assert asked(here, f"memory/list?projectId={one['projectId']}&q=postgresql") == [one]
    assert asked(here, "memory/list?q=nothing-of-that") == []
    assert len(asked(here, "memory/list?limit=1&offset=1")) == 1
    record = asked(here, f"memory/get?ids={one['relativePath']}")[0]
    assert "Billing uses PostgreSQL" in record["content"]
    assert record["content"].startswith("---\nname: Billing uses PostgreSQL\n")
    assert asked(here, "memory/user-summary")["preferences"] == ["Always answer in short sentences"]
    group = asked(here, "projects?q=billing")[0]
    assert (group["projectName"], group["projectCount"], group["feedbackCount"]) == (
        "acme-billing",
        1,
        0,
    )


def test_state_routes_report_status(here: Site) -> None:
    overview = asked(here, "overview")
    assert (overview["formalProjectCount"], overview["userProfileCount"]) == (1, 1)
    assert overview["dashboardStatus"] in ("healthy", "warning")
    snapshot = asked(here, "snapshot?limit=1")
    assert len(snapshot["recentMemoryFiles"]) == 1
    assert snapshot["settings"]["autoDreamIntervalMinutes"] == 0
    assert post(here, "index/run", {}).json().keys() == {
        "sessions",
        "turns",
        "memories",
        "problems",
    }


def test_actions_require_the_callers_permission(here: Site) -> None:
    one = asked(here, "memory/list?kind=project")[0]["relativePath"]
    assert (
        act(here, "delete_entries", here.browser(), ids=[one]).status_code == 409
    )  # it is not deprecated
    owner = here.browser()
    assert act(here, "edit_entry", owner, id=one, name="The database of billing").json()[
        "mutatedIds"
    ] == [one]
    named = asked(here, "memory/list?kind=project")[0]
    assert named["name"] == "The database of billing"
    one = named["relativePath"]
    assert act(here, "deprecate_entries", owner, ids=[one]).json()["ok"]
    assert asked(here, "memory/list?kind=project") == []
    assert act(here, "restore_entries", here.token, ids=[one]).status_code == 403
    assert act(here, "restore_entries", owner, ids=[one]).json()["ok"]
    assert asked(here, "memory/list?kind=project")
    act(here, "deprecate_entries", owner, ids=[one])
    assert act(here, "delete_entries", here.token, ids=[one]).status_code == 403
    assert act(here, "delete_entries", owner, ids=[one]).json()["ok"]
    assert here.get(f"/clawxmemory/api/memory/get?ids={one}", **owner).status_code == 404


def test_inbox_entry_is_filed_into_a_project(here: Site) -> None:
    stored = here.ask("store", {"content": "The ferry is paid in coins"}, **here.token).json()
    waiting = asked(here, "tmp")
    assert waiting["totalFiles"] == 1
    path = waiting["projectEntries"][0]["relativePath"]
    assert path.startswith("projects/_tmp/")
    target = asked(here, "projects")[0]["projectId"]
    filed = act(here, "archive_tmp", here.browser(), ids=[path], targetProjectId=target)
    assert filed.json()["mutatedIds"] == [path]
    assert asked(here, "tmp")["totalFiles"] == 0
    with open_memory() as memory:
        assert memory.get(stored["memory_id"]).project == "acme-billing"


def test_project_page_accepts_name_and_description(here: Site) -> None:
    project = asked(here, "projects")[0]["projectId"]
    body = {
        "projectId": project,
        "projectName": "Billing",
        "description": "Charges accounts.",
        "status": "active",
    }
    assert act(here, "edit_project_meta", here.token, **body, aliases=[]).status_code == 403
    assert act(here, "edit_project_meta", here.browser(), **body, aliases=["bill"]).json()["ok"]
    told = here.ask("project-show", {"project": "bill"}, **here.token).json()
    assert told["project"]["name"] == "Billing"
    assert "Charges accounts." in told["page"]


def test_only_owner_changes_settings_and_runs_dreams(here: Site) -> None:
    assert post(here, "settings", {"autoDreamIntervalMinutes": 360}).status_code == 403
    assert post(here, "dream/run", {}).status_code == 403
    owner = here.browser()
    changed = post(here, "settings", {"autoDreamIntervalMinutes": 360}, owner)
    assert changed.json()["autoDreamIntervalMinutes"] == 1440
    assert post(here, "settings", {"reasoningMode": "accuracy_first"}, owner).status_code == 400
    assert post(here, "dream/run", {}, owner).json()["onlyPlanned"] in (True, False)
    cleared = post(here, "clear", {}, owner)
    assert (cleared.status_code, cleared.json()["code"]) == (409, "conflict")
    assert "nacre forget" in cleared.json()["hint"]


def test_bundle_is_exported_and_imported(here: Site) -> None:
    bundle = asked(here, "export")
    assert bundle["formatVersion"] == "clawxmemory-memory-snapshot.v3"
    texts = [one["content"] for one in bundle["files"]]
    assert any("Lanterns" in one and "deprecated: true" in one for one in texts)
    for one in bundle["files"]:
        one["content"] = one["content"].replace("PostgreSQL", "MariaDB on the second server")
    assert post(here, "import", bundle).status_code == 403
    told = post(here, "import", bundle, here.browser()).json()
    assert told["imported"]["memoryFiles"] >= 1
    assert [one["name"] for one in asked(here, "memory/list?q=mariadb")]
    assert post(here, "import", {"formatVersion": "x"}).status_code == 400
    assert not list(home().glob("import-*"))


def test_unknown_action_is_refused_in_the_clients_format(here: Site) -> None:
    for body in ({"action": "explode"}, {"action": "retire"}, {"action": "deprecate_entries"}, {}):
        refused = post(here, "memory/actions", body)
        assert refused.status_code == 400
        assert refused.json()["error"] == refused.json()["detail"]
    assert here.get("/clawxmemory/api/memory/get", **here.token).status_code == 400
    assert here.get("/clawxmemory/api/cases/nothing", **here.token).status_code == 404
    assert here.get("/clawxmemory/api/nothing", **here.token).status_code == 404
