"""Processes on many machines that answer and that work, with all they know on a PostgreSQL server."""
