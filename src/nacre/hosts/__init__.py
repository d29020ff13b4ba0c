"""Configuration of agent tools (hosts) to use nacre, and its removal."""
