"""Is everything well: checks, proofs, repair."""
