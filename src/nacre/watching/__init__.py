"""Following transcripts as they are written: what is watched, the watcher, and how the system starts it."""
