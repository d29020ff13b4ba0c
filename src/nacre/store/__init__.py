"""Storage of sessions, memories and derived data in SQLite or PostgreSQL."""
