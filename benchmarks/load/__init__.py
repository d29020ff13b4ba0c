"""What nacre bears: many turns, many writers, long jobs, hooks on the way of a host."""
