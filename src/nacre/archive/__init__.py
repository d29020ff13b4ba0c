"""Keep transcripts without secrets, and read them again: archive, retention, pruning, restoring."""
