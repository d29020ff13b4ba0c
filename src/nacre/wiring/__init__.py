"""Wiring of hosts: planning what changes, applying it, taking it out, proving that it works."""
