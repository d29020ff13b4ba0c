"""Whether what changed replaces what was true before, by rules and by models."""
