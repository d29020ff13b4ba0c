"""Where keys come from, and where they are kept."""
