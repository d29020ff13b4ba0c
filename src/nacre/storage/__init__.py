"""The only package that knows SQL: index and state in one SQLite file, through apsw."""
