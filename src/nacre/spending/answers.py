"""What is answered to requests about costs; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.spending import budget
from nacre.spending.requests import CostRequest
from nacre.views import CostReport


def show_costs(home: Home, request: CostRequest) -> CostReport:
    """What models cost, and what is left of today's budgets."""
    return budget.costs(home, max(1, request.days))
