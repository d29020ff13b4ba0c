"""Load benchmarks: many turns, many writers, long jobs, and hosts' hooks."""
