"""Load benchmarks: many turns, many writers, long jobs, hooks of hosts."""
