"""Learning of memories from sessions."""
