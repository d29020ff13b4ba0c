"""Backup, export, import, forgetting, scrubbing, history, sync and undo."""
