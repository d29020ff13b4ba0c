"""Every operation is defined once and works in every interface that offers it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import nacre
from nacre.base import json
from nacre.base.link import DaemonRefusedError, ask
from nacre.errors import InvalidInputError, NacreError
from nacre.operations import Operation
from nacre.serve import manifest
from nacre.serve.catalogue import CATALOGUE, offered_by
from nacre.values.memory import Face
from tests.catalogue.conftest import SampleRequest
from tests.catalogue.samples import SAMPLES
from tests.daemon.conftest import Serving

Serve = Callable[..., Serving]
CODES = ("unavailable",)
"""The codes of refusals that depend on the machine."""


def test_every_operation_has_a_sample_and_every_sample_an_operation() -> None:
    assert SAMPLES.keys() == CATALOGUE.keys()


def test_listing_the_catalogue_loads_no_operation_modules() -> None:
    listing = (
        "import sys, nacre.serve.catalogue; "
        "print(*(name for name, one in sys.modules.items() if name.startswith('nacre.') and type(one) is type(sys)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(result) <= {
        "nacre.serve.catalogue",
        "nacre.serve",
        "nacre.operations",
        "nacre.errors",
        "nacre.base",
        "nacre.base.request",
        "nacre.base.json",
        "nacre.base.plugins",
        "nacre.base.lazy",
        "nacre.base.late_modules",
        "nacre.values",
        "nacre.values.memory",
        "nacre.values.session",
        "nacre.serve.manifest",
    }


def test_the_manifest_names_the_operations_of_each_module() -> None:
    script = Path(__file__).parents[2] / "scripts" / "write_manifest.py"
    output = subprocess.run(
        [sys.executable, script, "--show"], capture_output=True, text=True, check=True
    ).stdout
    text = Path(manifest.__file__).read_text(encoding="utf-8")
    assert output == text, "run make generated"


@pytest.mark.parametrize("operation", CATALOGUE.values(), ids=lambda item: item.name)
def test_every_field_of_a_request_has_help(operation: Operation) -> None:
    if operation.name == "hook":
        return  # passed by a host's hook, never typed
    schema, definitions = schema_of(operation.request)
    without = [
        name
        for name, field in schema["properties"].items()
        if "description" not in merged_schema(field, definitions)
    ]
    assert not without


def schema_of(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    (whole,), definitions = msgspec.json.schema_components([kind], schema_hook=json.schema_hook)
    return definitions[whole["$ref"].rpartition("/")[2]], definitions


def merged_schema(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return a field's schema, merged with the schema of its only type."""
    for item in field.get("anyOf", ()):
        if "description" in item:
            return item
    return field


@pytest.mark.parametrize("operation", CATALOGUE.values(), ids=lambda item: item.name)
def test_unknown_request_field_is_refused(operation: Operation) -> None:
    with pytest.raises(InvalidInputError, match="unknown field"):
        operation.make({**SAMPLES[operation.name].request, "nonsense": 1})


def outcome(run: Callable[[], Any]) -> Any:
    """Return the code of a refusal, or ``None``."""
    try:
        run()
    except NacreError as error:
        return error.code
    return None


def fits(name: str, code: str | None) -> bool:
    return code == SAMPLES[name].error or (SAMPLES[name].error in CODES and code is None)


def test_every_operation_is_answered_in_python(
    sample_request: SampleRequest, copy_home: Callable[[str], Path]
) -> None:
    wrong = {}
    for name in offered_by(Face.PYTHON):
        request, folder = sample_request(name), copy_home(name)
        code = outcome(lambda: nacre.call(name, home=folder, **request))  # noqa: B023 - called at once
        if not fits(name, code):
            wrong[name] = code
    assert not wrong


def test_daemon_answers_every_offered_operation(
    serving: Serve, sample_request: SampleRequest
) -> None:
    requests = {name: sample_request(name) for name in offered_by(Face.DAEMON)}
    serving("--no-watch")
    wrong = {}
    for name in sorted(requests, key=lambda name: (CATALOGUE[name].writes, name == "forget")):
        try:
            answer = ask(os.environ["NACRE_HOME"], name, requests[name], seconds=60)
        except DaemonRefusedError as refused:
            if not fits(name, refused.error["code"]):
                wrong[name] = refused.error
        else:
            if SAMPLES[name].error is None:
                json.convert(answer, CATALOGUE[name].result)
    assert not wrong


def test_daemon_refuses_operations_it_does_not_offer(serving: Serve, home: Path) -> None:
    serving("--no-watch")
    without_daemon = CATALOGUE.keys() - offered_by(Face.DAEMON).keys()
    assert {"db-reset", "db-rebuild", "backup-restore", "auth-set"} <= without_daemon
    for name in without_daemon:
        with pytest.raises(DaemonRefusedError) as error:
            ask(str(home), name, {}, seconds=20)
        assert error.value.error["code"] == "invalid_input"


def test_operation_needing_a_closed_home_is_refused_while_open(home: Path) -> None:
    with nacre.open_memory() as memory, pytest.raises(NacreError) as error:
        memory.call("db-reset")
    assert error.value.code == "conflict"


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("store", {"content": "x", "importance": 11}),
        ("log", {"limit": -1}),
        ("store", {}),
        ("nonsense", {}),
    ],
)
def test_out_of_bounds_request_is_refused_before_running(
    name: str, request_: dict[str, Any], home: Path
) -> None:
    with nacre.open_memory() as memory, pytest.raises(InvalidInputError):
        memory.call(name, **request_)
