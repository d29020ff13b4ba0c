"""Maintenance of a home: checks, proofs, database, following sessions, the service, moving, and servers."""
