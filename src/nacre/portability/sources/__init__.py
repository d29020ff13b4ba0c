"""Coming in: what other memories wrote, as memories. One module a source behind a registry; nothing is stored here."""
