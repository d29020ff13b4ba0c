"""What is answered to requests about chores; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.chores import kinds
from nacre.chores.requests import ChoresRequest
from nacre.home.home import Home
from nacre.values.handoff import ChoresReport


def do_waiting(home: Home, request: ChoresRequest) -> ChoresReport:
    """Do what hooks left to be done."""
    return kinds.do_waiting(home, seconds=request.seconds)
