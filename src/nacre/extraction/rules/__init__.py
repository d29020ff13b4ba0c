"""Rules that find statements worth keeping."""
