"""Commands about the sessions with agents, and what was done in them."""
