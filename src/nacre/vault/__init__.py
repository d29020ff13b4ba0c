"""The vault, which consists of Markdown files with memories, and of a ledger."""
