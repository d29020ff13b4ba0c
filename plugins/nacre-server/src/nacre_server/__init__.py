"""Memories on a PostgreSQL server that several processes and users share."""
