"""Over HTTP, the owner's browser may call every operation, and a program all but the owner's."""

from __future__ import annotations

from collections.abc import Callable

from nacre.base import json
from nacre.serve.catalogue import CATALOGUE, offered_by
from nacre.values.memory import Face
from tests.catalogue.conftest import SampleRequest
from tests.catalogue.samples import SAMPLES
from tests.catalogue.test_catalogue import fits
from tests.cli.conftest import process  # noqa: F401 - the fixture
from tests.web_server.conftest import Site, site  # noqa: F401 - the fixture

OFFERED = offered_by(Face.HTTP)
OWNERS = [name for name, item in OFFERED.items() if item.owners is True]


def test_every_operation_is_answered_over_http(
    site: Callable[..., Site],  # noqa: F811
    sample_request: SampleRequest,
) -> None:
    requests = {name: sample_request(name) for name in OFFERED}
    here = site()
    wrong = {}
    browser = here.browser()
    for name in sorted(requests, key=lambda name: (CATALOGUE[name].writes, name == "forget")):
        answer = here.ask(name, requests[name], **browser)
        code = None if answer.status_code == 200 else answer.json()["code"]
        if not fits(name, code) or answer.status_code == 500:
            wrong[name] = answer.text
        elif code is None and SAMPLES[name].error is None:
            json.decode(answer.content, CATALOGUE[name].result)
    assert not wrong


def test_owner_resources_are_refused_to_programs_with_the_token(
    site: Callable[..., Site],  # noqa: F811
    sample_request: SampleRequest,
) -> None:
    requests = {name: sample_request(name) for name in OWNERS}
    here = site()
    assert {"review-keep", "page-write", "forget", "config-set", "unretire"} <= set(OWNERS)
    codes = {
        name: here.ask(name, requests[name], **here.token).json().get("code") for name in OWNERS
    }
    assert set(codes.values()) == {"owner_only"}, codes


def test_hooks_secrets_and_data_destinations_are_not_offered_over_http() -> None:
    withheld = CATALOGUE.keys() - OFFERED.keys()
    assert {"hook", "auth-set", "keys-create", "remote-add", "db-reset"} <= withheld
