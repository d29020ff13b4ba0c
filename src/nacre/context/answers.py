"""What is answered to requests about the owner's pages and what sessions were given; see :mod:`nacre.catalogue`."""

from __future__ import annotations

from nacre.context import pages, session_state
from nacre.context.pages import OwnPage
from nacre.context.requests import GivenRequest, OwnPageRequest, WritePageRequest
from nacre.home.home import Home


def own_page(home: Home, request: OwnPageRequest) -> OwnPage:
    """A page of the owner's or of a project, without secrets. Raises InvalidInput, NotFound, VaultUnusable."""
    return pages.own_page(home, request.name, request.project)


def write_own_page(home: Home, request: WritePageRequest) -> OwnPage:
    """Write a page in the place of what it said. Raises InvalidInput, NotFound, EditConflict, VaultUnusable."""
    return pages.write_own_page(home, request.name, request.text, request.project, expected=request.expected)


def note_given(home: Home, request: GivenRequest) -> None:
    """Keep what a host's session was given, once its agent has it."""
    session_state.write_state(home.settings.home, request.session, request.state)
