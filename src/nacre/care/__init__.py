"""Care of a home: checks, proofs, the database, following sessions, the service, moving, and servers."""
