"""SQLite and PostgreSQL storage of sessions, memories and derived data."""
