"""The vault: memories as Markdown files, and a ledger. Independent of the database."""
