"""Every operation offered over HTTP is reached by the owner's browser by POST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nacre.base import json
from nacre.serve.catalogue import offered_by
from nacre.values.memory import Face
from tests.catalogue.conftest import copy_home, home, resolve, sample_request  # noqa: F401 - fixtures
from tests.catalogue.samples import SAMPLES
from tests.web_server.conftest import Site

LATE = ("forget", "scrub", "quickstart", "hosts-wire", "config-set")
"""Operations that run last, because they change the home for the others."""


def test_every_operation_is_answered(
    sample_request: Callable[[str], Any],  # noqa: F811
    site_apart: Callable[..., Site],
) -> None:
    offered = offered_by(Face.HTTP)
    requests = {name: sample_request(name) for name in offered}
    here = site_apart()
    owner = here.browser()
    for name in sorted(offered, key=lambda item: (item in LATE, offered[item].writes)):
        answer = here.ask(name, requests[name], **owner)
        expected = SAMPLES[name].error
        if answer.status_code == 200:
            assert expected is None, name
            json.decode(answer.content, Any)
        else:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["code"] in (expected, "unavailable"), (name, answer.text)
