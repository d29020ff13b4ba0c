"""OpenCode: its database, and the files of older versions."""
