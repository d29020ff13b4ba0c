"""``nacre graph``: links between memories, what they say, and the code of repositories."""
