"""A home goes to a PostgreSQL server, and comes back."""
