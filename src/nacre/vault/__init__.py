"""The vault: memories as Markdown files and one ledger. It knows nothing of the database."""
