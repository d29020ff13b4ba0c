"""Live events: what changes in a home, told to whoever listens, whichever process changed it."""
