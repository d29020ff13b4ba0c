"""Question to ranked hits: lanes, fusion, memory-aware scoring, diversity, budget."""
