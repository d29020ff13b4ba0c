"""What several operations have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOTHING = "platform.request:Nothing"
LONG: Mapping[str, Any] = {"writes": True, "takes_long": True, "reports_progress": True}
