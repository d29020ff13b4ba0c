"""The archive on disk: transcripts as they were, without secrets, compressed."""
