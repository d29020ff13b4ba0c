"""Care of a home: checks, proofs, the database, watching, moving, and servers."""
