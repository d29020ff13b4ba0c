"""Query → ranked hits: lanes, fusion, memory-aware scoring, diversity, budget. DESIGN section 6."""
