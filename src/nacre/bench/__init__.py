"""Measuring: how well recall finds what benchmarks ask for, and how fast nacre is. Loaded only when asked for."""
