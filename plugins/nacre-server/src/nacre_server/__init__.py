"""A memory on a PostgreSQL server: the engine, moving a home there, spaces and keys, and a cluster of processes."""
