"""Query → ranked hits: lanes, fusion, memory-aware scoring, diversity, budget (docs/recall.md)."""
