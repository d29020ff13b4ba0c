"""How well extraction keeps what sessions with labels say is worth keeping, and leaves the rest."""
