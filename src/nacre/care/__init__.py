"""Care of a home: checks, proofs, database maintenance, following sessions, the service, moving, and servers."""
