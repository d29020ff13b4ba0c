"""Contexts: what an agent is given as its session starts, and with each prompt."""
