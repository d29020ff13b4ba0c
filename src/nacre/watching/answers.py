"""What is answered to requests about the watcher; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.platform.ids import utc_now
from nacre.settings import Settings
from nacre.watching import install, status
from nacre.watching import survey as surveying
from nacre.watching.requests import SurveyRequest
from nacre.watching.status import Standing
from nacre.watching.survey import Survey


def survey(home: Home, request: SurveyRequest) -> Survey:
    """What the watcher would follow."""
    return surveying.survey(home, request.paths)


def show_status(settings: Settings) -> Standing:
    """Whether the watcher runs, and what it did."""
    return status.standing(settings.home, utc_now())


def start(settings: Settings) -> Standing:
    """Start the watcher. Raises Unavailable."""
    return install.start(settings)


def stop(settings: Settings) -> bool:
    """End the watcher; returns whether one ran. Raises Unavailable."""
    return install.stop(settings)
