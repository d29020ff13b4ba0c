"""Reproducible invented statements."""

from __future__ import annotations

import random

THINGS = "archive beacon courier dynamo engraver ferry gauge harvester inverter jetty kiln loom mill nozzle".split()
VERBS = "feeds mirrors measures supplies checks paints copies wakes".split()
PLACES = "amber basalt cobalt dune ember fjord glade heath inlet knoll lagoon meadow".split()


def statement(draw: random.Random, number: object) -> str:
    """Return a sentence that contains this number and begins in lower case."""
    thing, verb, other = draw.choice(THINGS), draw.choice(VERBS), draw.choice(THINGS)
    place, at = draw.choice(PLACES), draw.choice(PLACES)
    return f"the {thing} of {place} numbered {number} {verb} the {other} near {at}."
