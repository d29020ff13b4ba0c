"""What is answered to requests for extraction; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from nacre.errors import InvalidInput
from nacre.extraction.propose import propose
from nacre.extraction.requests import ExtractRequest, ProposalRequest
from nacre.home.home import Home
from nacre.views import Extracted


def preview(home: Home, request: ExtractRequest) -> Extracted:
    """What extraction makes of a text or a session; nothing is stored.

    Raises InvalidInput, NotFound, Conflict, TranscriptUnreadable.
    """
    if bool(request.text.strip()) == bool(request.session):
        raise InvalidInput("give a text or a session", hint="one of them, not both")
    model = None if request.by_model else "none"
    if request.session:
        found = propose(home, ProposalRequest(session=request.session, model=model))
    else:
        with tempfile.TemporaryDirectory(prefix="nacre-extract-") as folder:
            file = Path(folder) / "text.md"
            file.write_text(request.text, encoding="utf-8")
            found = propose(home, ProposalRequest(path=file, model=model))
    problem = next((one.asked.problem for one in found if one.asked and one.asked.problem), None)
    return Extracted(tuple(candidate for one in found for candidate in one.candidates), problem)
