"""An idle daemon dreams if the owner allows it."""

from __future__ import annotations

import threading
from datetime import timedelta

from nacre.home.home import open_home
from nacre.serve.homes import Homes
from nacre.serve.server import REST_SECONDS, Tending
from nacre.settings import load_settings
from nacre.values.memory import Expiry, Kind, Memory
from tests.cli.conftest import Nacre
from tests.daemon.conftest import home
from tests.processes import wait


def test_idle_daemon_dreams_if_allowed(nacre: Nacre) -> None:
    nacre("config", "set", "dream.at_night", "true")
    nacre("dream", "--yes")  # the first dream only plans
    settings = load_settings(home())
    opened = open_home(settings)
    day = opened.now() - timedelta(days=200)
    over = Memory(
        opened.ids(), Kind.FACT, "Crew", "The crew is away.", day, day, expiry=Expiry.TEMPORARY
    )
    with opened.change("store") as change, change.transaction():
        change.put([over])
    with opened.database.transaction():
        opened.usage.set_value("dreamt", day.isoformat())
    opened.close()
    lines: list[str] = []
    stop, rested = threading.Event(), [0.0]
    homes = Homes(lambda: open_home(settings), settings.home, settings.config)
    tending = Tending(settings, homes, lines.append, lambda _: False, lambda: rested[0])
    thread = threading.Thread(target=tending.run, args=[stop])
    thread.start()
    try:
        rested[0] = REST_SECONDS
        wait(lambda: bool(lines))
    finally:
        stop.set()
        thread.join()
        homes.close()
    assert lines == ["dreamt: retired memories: 1"]
    assert nacre("show", over.id, "--json").json["memory"]["retired"]
