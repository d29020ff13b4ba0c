"""Learning memories from sessions."""
