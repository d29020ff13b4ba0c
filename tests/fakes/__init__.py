"""Stand-ins for models and their providers."""
