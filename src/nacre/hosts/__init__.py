"""Configures agent tools (hosts) to use nacre, and removes the configuration."""
