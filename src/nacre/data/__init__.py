"""Backup, export, import, deletion, scrubbing, history, sync and undo."""
