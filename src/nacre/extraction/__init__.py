"""Sessions → candidate memories, without a model: deterministic, typed, grounded in the session's own words."""
