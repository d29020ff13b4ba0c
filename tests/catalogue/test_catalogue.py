"""Every operation is written once, and every face that offers it answers."""

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
from tests.catalogue.conftest import Filled
from tests.catalogue.samples import SAMPLES
from tests.daemon.conftest import Serving

Serve = Callable[..., Serving]
CODES = ("unavailable",)
"""With what an operation on the system may be refused on a machine that has it, and be done on another."""


def test_every_operation_has_a_sample_and_every_sample_an_operation() -> None:
    assert SAMPLES.keys() == CATALOGUE.keys()


def test_listing_the_catalogue_loads_no_operation_modules() -> None:
    listing = (
        "import sys, nacre.serve.catalogue; "
        "print(*(name for name, one in sys.modules.items() if name.startswith('nacre.') and type(one) is type(sys)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(loaded) <= {
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
    shown = subprocess.run(
        [sys.executable, script, "--show"], capture_output=True, text=True, check=True
    ).stdout
    written = Path(manifest.__file__).read_text(encoding="utf-8")
    assert shown == written, "run make generated"


@pytest.mark.parametrize("operation", CATALOGUE.values(), ids=lambda one: one.name)
def test_every_field_of_a_request_has_help(operation: Operation) -> None:
    if operation.name == "hook":
        return  # what a host's hook hands over; nobody types it
    schema, known = schema_of(operation.request)
    without = [
        name
        for name, field in schema["properties"].items()
        if "description" not in described(field, known)
    ]
    assert not without


def schema_of(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    (whole,), known = msgspec.json.schema_components([kind], schema_hook=json.schema_hook)
    return known[whole["$ref"].rpartition("/")[2]], known


def described(field: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """A field's schema, with that of the one type it may have."""
    for one in field.get("anyOf", ()):
        if "description" in one:
            return one
    return field


@pytest.mark.parametrize("operation", CATALOGUE.values(), ids=lambda one: one.name)
def test_unknown_request_field_is_refused(operation: Operation) -> None:
    with pytest.raises(InvalidInputError, match="unknown field"):
        operation.make({**SAMPLES[operation.name].request, "nonsense": 1})


def outcome(run: Callable[[], Any]) -> Any:
    """What came out: the code of a refusal, or ``None``."""
    try:
        run()
    except NacreError as error:
        return error.code
    return None


def fits(name: str, code: str | None) -> bool:
    return code == SAMPLES[name].error or (SAMPLES[name].error in CODES and code is None)


def test_every_operation_is_answered_in_python(
    filled: Filled, copied: Callable[[str], Path]
) -> None:
    wrong = {}
    for name in offered_by(Face.PYTHON):
        request, folder = filled(name), copied(name)
        code = outcome(lambda: nacre.call(name, home=folder, **request))  # noqa: B023 - called at once
        if not fits(name, code):
            wrong[name] = code
    assert not wrong


def test_daemon_answers_every_offered_operation(serving: Serve, filled: Filled) -> None:
    requests = {name: filled(name) for name in offered_by(Face.DAEMON)}
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
                json.from_plain(answer, CATALOGUE[name].result)
    assert not wrong


def test_daemon_refuses_operations_it_does_not_offer(serving: Serve, home: Path) -> None:
    serving("--no-watch")
    kept = CATALOGUE.keys() - offered_by(Face.DAEMON).keys()
    assert {"db-reset", "db-rebuild", "backup-restore", "auth-set"} <= kept
    for name in kept:
        with pytest.raises(DaemonRefusedError) as refused:
            ask(str(home), name, {}, seconds=20)
        assert refused.value.error["code"] == "invalid_input"


def test_operation_needing_a_closed_home_is_refused_while_open(home: Path) -> None:
    with nacre.open_memory() as memory, pytest.raises(NacreError) as refused:
        memory.call("db-reset")
    assert refused.value.code == "conflict"


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
