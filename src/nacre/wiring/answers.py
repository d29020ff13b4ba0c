"""What is answered to requests about hosts; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.platform.ids import utc_now
from nacre.settings import Settings
from nacre.values.wiring import WiringDone, WiringPlan
from nacre.wiring import apply
from nacre.wiring import plan as planning
from nacre.wiring.requests import WireRequest


def plan(settings: Settings, request: WireRequest) -> WiringPlan:
    """What configuring hosts would change. Raises InvalidInput."""
    return (planning.plan_removal if request.uninstall else planning.plan)(settings, request.wishes)


def wire(settings: Settings, request: WireRequest) -> WiringDone:
    """Configure hosts to use nacre, or no longer. Raises InvalidInput, EditConflict."""
    return apply.apply(settings, plan(settings, request), utc_now())
