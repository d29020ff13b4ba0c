"""What must not come back, and its erasure."""
